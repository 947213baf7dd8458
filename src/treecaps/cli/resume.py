"""Answers that are appended to a file, so that a run that was killed goes on where it stopped."""

import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps._version import __version__
from treecaps.cli.inputs import Input
from treecaps.cli.output import note
from treecaps.errors import DataError, UsageError, describe_os_error
from treecaps.files import FileLock, load_json
from treecaps.text import replace_surrogates

if TYPE_CHECKING:
    from treecaps.models.trained import TrainedModel

_CHANGE_NOTHING = {"append", "as_json", "folder", "paths", "verbose", "workers"}
"""Options that answers do not depend on; the model is known by its fingerprint."""

append_option = click.option(
    "--append",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append JSON Lines to this file. What it has already is passed over, so a run that was"
    " killed goes on.",
)


def go_on(path: Path, inputs: list[Input], model: "TrainedModel") -> list[Input]:
    """Have what is printed from now on appended to a file; return the inputs that it lacks.

    Args:
        path: The file of answers; what made them stands in another one beside it.
        inputs: What ``expand`` returned.
        model: What answers.
    """
    context = click.get_current_context()
    options = {name: context.params[name] for name in context.params.keys() - _CHANGE_NOTHING}
    command = context.info_name
    made_by = {"treecaps": __version__, "command": command, "model": model.fingerprint()}
    about = path.with_name(f"{path.name}.about")
    text = json.dumps(made_by | {"options": options}, sort_keys=True, indent=1, default=str)
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no file; choose another one", arguments=("append",))
    try:
        context.call_on_close(FileLock(path.with_name(f"{path.name}.lock")).close)
        if not path.exists() or not path.stat().st_size:
            about.write_text(text, encoding="utf-8")
        elif not about.exists() or about.read_text(encoding="utf-8") != text:
            raise UsageError(
                f"{path} was not written by this version of treecaps with this model and these"
                " options; choose another file",
                arguments=("append",),
            )
        # One line at a time, so that of a line that a kill cuts short nothing follows.
        file = context.with_resource(open(path, "a", encoding="utf-8", buffering=1))  # noqa: SIM115
        finished = _finished(path)
    except BlockingIOError:
        raise DataError(f"another process appends to {path}; wait until it is done") from None
    except OSError as error:
        raise DataError(f"cannot write {path}: {describe_os_error(error)}") from None
    left = [one for one in inputs if replace_surrogates(one[0]) not in finished]
    if len(left) < len(inputs):
        note(f"{path}: has {len(inputs) - len(left):,} of {len(inputs):,} inputs already")
    context.with_resource(redirect_stdout(file))
    return left


def _finished(path: Path) -> set[str]:
    """Return the inputs that a file has all answers of.

    The last one may have more functions, so it is cut off, with what was not written whole.
    """
    finished: set[str] = set()
    last, begin, end = "", 0, 0
    with open(path, "rb+") as file:
        for line in file:
            try:
                name = str(load_json(line)["id"]) if line.endswith(b"\n") else ""
            except (ValueError, KeyError, TypeError):
                name = ""
            if not name:
                break
            if name != last:
                last, begin = name, end
            finished.add(name)
            end += len(line)
        file.truncate(begin)
    return finished - {last}
