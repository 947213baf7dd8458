"""Checkpoints: where a training that was killed goes on."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from treecaps._version import __version__
from treecaps.errors import ModelError, UsageError
from treecaps.files import load_json, read_regular_file
from treecaps.hashing import digest
from treecaps.models.files import (
    MAX_JSON_BYTES,
    parse_json,
    read_file,
    to_json_bytes,
    write_files,
)
from treecaps.models.settings import show, to_json
from treecaps.tasks import TASKS
from treecaps.training.config import TrainingConfig
from treecaps.training.trainer import Trainer

FORMAT = 1
STATE = "state.json"
_OURS = re.compile(r"(\d+-\d+\.safetensors|state\.json)(\.building)?")
"""The names of our files: what else lies in the folder is not ours to remove."""
_AGAIN = "start again with overwrite=True"


class Checkpoint:
    """The state of a training in a folder, as of its last whole epoch.

    ``state.json`` says what is trained on what, and names a file of tensors for each network
    begun. A new state has new file names, and counts from the moment ``state.json`` is replaced,
    so being killed at any moment leaves the old state or the new one.

    Args:
        folder: Where; it need not exist.
        run: All that decides what comes out: a resumed training must have the same.
    """

    def __init__(self, folder: Path, run: dict[str, Any]) -> None:
        self.folder, self.run = folder, run
        self._members: list[dict[str, Any]] = []

    def exists(self) -> bool:
        """Whether there is a state to go on from."""
        return (self.folder / STATE).exists()

    def start(self) -> None:
        """Leave a mark that there is a training to go on with, though nothing is learned yet."""
        write_files(self.folder, {STATE: self._state()})

    def save(self, number: int, trainer: Trainer) -> None:
        """Keep the state of a network in place of its older state."""
        content = save({name: value.contiguous() for name, value in trainer.tensors().items()})
        file = f"{number}-{len(trainer.history)}.safetensors"
        record = {
            "file": file,
            "checksum": digest(content),
            "best_epoch": trainer.best_epoch,
            "history": trainer.history,
        }
        self._members[number:] = [record]
        write_files(self.folder, {file: content, STATE: self._state()})
        self._sweep()

    def load(self) -> None:
        """Read a state that was saved, and refuse that of another training."""
        path = self.folder / STATE
        with _may_overwrite():
            state = parse_json(read_file(path, _AGAIN), path, _AGAIN)
            if not _is_state(state):
                raise ModelError(f"{path} is no state of a training; {_AGAIN}")
            if state.get("format") != FORMAT or state.get("treecaps") != __version__:
                raise ModelError(f"{path} was written by another version of treecaps; {_AGAIN}")
        refuse_other(self.folder.parent, state.get("run"), self.run)
        self._members = state["members"]

    def restore(self, number: int, trainer: Trainer) -> bool:
        """Bring a network into its saved state; tell whether there was one."""
        if number >= len(self._members):
            return False
        record = self._members[number]
        path = self.folder / record["file"]
        with _may_overwrite():
            content = read_file(path, _AGAIN)
            try:
                if digest(content) != record["checksum"]:
                    raise ValueError  # noqa: TRY301
                trainer.restore(load(content), record["history"], record["best_epoch"])
            except (SafetensorError, RuntimeError, ValueError, KeyError, TypeError):
                raise ModelError(f"{path} is damaged; {_AGAIN}") from None
        return True

    def remove(self) -> None:
        """Remove the state, when it is no longer needed."""
        remove_state(self.folder)

    def _state(self) -> bytes:
        return to_json_bytes(
            {
                "format": FORMAT,
                "treecaps": __version__,
                "run": self.run,
                "members": self._members,
            }
        )

    def _sweep(self) -> None:
        """Remove files that no state names any more."""
        named = {STATE, *(record["file"] for record in self._members)}
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.name not in named and _OURS.fullmatch(path.name):
                    path.unlink()


@contextmanager
def _may_overwrite() -> Iterator[None]:
    """Let errors of a state that cannot be used name the argument that helps."""
    try:
        yield
    except ModelError as error:
        raise ModelError(str(error), arguments=("overwrite",)) from None


def holds_state(folder: Path) -> bool:
    """Whether a folder holds the state of a training, and not somebody's files of that name."""
    try:
        return _is_state(load_json(read_regular_file(folder / STATE, MAX_JSON_BYTES)))
    except (OSError, ValueError):
        return False


def remove_state(folder: Path) -> None:
    """Remove a state if there is one; other files in its folder stay, and with them the folder."""
    with suppress(OSError):
        # The state comes first: without it the others mean nothing.
        for path in sorted(folder.iterdir(), key=lambda path: path.name != STATE):
            if _OURS.fullmatch(path.name):
                path.unlink()
        folder.rmdir()


def _is_state(state: Any) -> bool:
    return (
        isinstance(state, dict)
        and isinstance(state.get("members"), list)
        and all(map(_is_member, state["members"]))
        and {"format", "treecaps", "run"} <= state.keys()
    )


def _is_member(record: Any) -> bool:
    match record:
        case {"file": str(file), "checksum": str(), "best_epoch": int(best), "history": [*epochs]}:
            return (
                _OURS.fullmatch(file) is not None
                and 0 <= best <= len(epochs)
                and all(isinstance(epoch, dict) for epoch in epochs)
            )
    return False


def refuse_other(folder: Path, found: Any, run: dict[str, Any]) -> None:
    """Refuse to go on with a training of other data or options."""
    found = found if isinstance(found, dict) else {}
    run = json.loads(json.dumps(run))
    # What there was no option for was not done, and that is what its default says.
    if isinstance(found.get("training"), dict):
        found = {**found, "training": {**to_json(TrainingConfig()), **found["training"]}}
    task = found.get("task")
    if isinstance(task, dict) and task.get("task") in TASKS:
        found = {**found, "task": {**to_json(TASKS[task["task"]]()), **task}}
    if reason := tell_differences(found, run):
        raise UsageError(
            f"cannot resume {folder}: it was started with {reason};"
            " give the same data and options, or choose another folder",
            arguments=("folder",),
        )


def tell_differences(found: dict[str, Any], run: dict[str, Any]) -> str:
    """Return what differs between two trainings, or nothing if they are the same."""
    if found == run:
        return ""
    old, new = _flatten(found), _flatten(run)
    differing = [
        f"{name} {show(old.get(name))} instead of {show(value)}"
        for name, value in new.items()
        if name != "data" and old.get(name) != value
    ]
    return ", ".join(differing) or "other data"


def _flatten(run: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in run.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
