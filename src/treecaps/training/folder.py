"""The folder that a training writes into: what may be there before, and what it holds after."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from treecaps.errors import ModelError, UsageError, describe_os_error
from treecaps.files import FileLock, is_locked, load_json, read_regular_file
from treecaps.models.files import MAX_JSON_BYTES
from treecaps.models.folder import CONFIG, is_config
from treecaps.training.checkpoint import STATE, holds_state, remove_state

CHECKPOINT = "checkpoint"
LOGS = "logs"
HISTORY = "history.json"
REPORT = "report.html"
_LOCK = ".lock"


def check(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Complain if a folder may not be written into, and change nothing."""
    if resume and overwrite:
        raise UsageError(
            "resume=True goes on with what overwrite=True throws away; choose one",
            arguments=("resume", "overwrite"),
        )
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; name a folder", arguments=("folder",))
        if is_locked(folder / _LOCK):
            raise _busy(folder)
        if folder.is_dir():
            _check_contents(folder, resume=resume, overwrite=overwrite)
    except OSError as error:
        raise _cannot_write(folder, error) from None


@contextmanager
def claim(folder: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold a folder to write into; an older model stays until a new one is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK)
    except BlockingIOError:
        raise _busy(folder) from None
    except OSError as error:
        raise _cannot_write(folder, error) from None
    with closing(lock):
        _check_contents(folder, resume=resume, overwrite=overwrite)
        if overwrite:
            remove_state(folder / CHECKPOINT)
            _remove_logs(folder / LOGS)
        yield


def _busy(folder: Path) -> UsageError:
    return UsageError(
        f"another training is writing into {folder}; wait for it, or choose another folder",
        arguments=("folder",),
    )


def _remove_logs(folder: Path) -> None:
    """Remove what was written for TensorBoard; other files stay."""
    with suppress(OSError):
        for member in folder.iterdir():
            if member.name.isdigit() and member.is_dir():
                for path in member.glob("events.out.tfevents.*"):
                    path.unlink()
                with suppress(OSError):
                    member.rmdir()
        folder.rmdir()


def _cannot_write(folder: Path, error: OSError) -> ModelError:
    return ModelError(
        f"cannot write into {folder}: {describe_os_error(error)}; choose another folder",
        arguments=("folder",),
    )


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a model whose training was not cut short."""
    return _is_model(folder) and not holds_state(folder / CHECKPOINT)


def _check_contents(folder: Path, *, resume: bool, overwrite: bool) -> None:
    if all(path.name == _LOCK for path in folder.iterdir()):
        return
    begun, done = holds_state(folder / CHECKPOINT), _is_model(folder)
    if not begun and (folder / CHECKPOINT / STATE).exists():
        raise UsageError(
            f"{folder / CHECKPOINT / STATE} is no state of a training; choose another folder",
            arguments=("folder",),
        )
    if not begun and not done:
        raise UsageError(
            f"{folder} holds other files; choose another folder", arguments=("folder",)
        )
    if not resume and not overwrite:
        what = "an unfinished training" if begun else "a model"
        way = "go on with resume=True, " if begun else ""
        raise UsageError(
            f"{folder} holds {what}; {way}choose another folder, or replace it with overwrite=True",
            arguments=(*(["resume"] if begun else []), "folder", "overwrite"),
        )


def _is_model(folder: Path) -> bool:
    try:
        return is_config(load_json(read_regular_file(folder / CONFIG, MAX_JSON_BYTES)))
    except (OSError, ValueError):
        return False
