"""The folder that a training writes into: what may be there before, and what it holds after."""

import json
import shutil
from pathlib import Path

from treecaps.errors import ModelError, UsageError, tell
from treecaps.models.trained import CONFIG, NAME

CHECKPOINT = "checkpoint"
LOGS = "logs"
HISTORY = "history.json"


def check(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Complain if a folder may not be written into, and change nothing."""
    if resume and overwrite:
        raise UsageError("--resume goes on with what --overwrite throws away; choose one")
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; name a folder with --out")
        if folder.is_dir() and any(folder.iterdir()):
            _check_contents(folder, resume=resume, overwrite=overwrite)
    except OSError as error:
        raise _cannot_write(folder, error) from None


def claim(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Make a folder ready to be written into; an older model stays until a new one is there."""
    check(folder, resume=resume, overwrite=overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if overwrite:
            for name in (CHECKPOINT, LOGS):
                shutil.rmtree(folder / name, ignore_errors=True)
    except OSError as error:
        raise _cannot_write(folder, error) from None


def _cannot_write(folder: Path, error: OSError) -> ModelError:
    return ModelError(f"cannot write into {folder}: {tell(error)}; choose another --out")


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a model whose training was not cut short."""
    return _is_model(folder) and not (folder / CHECKPOINT).exists()


def _check_contents(folder: Path, *, resume: bool, overwrite: bool) -> None:
    begun, done = (folder / CHECKPOINT).is_dir(), _is_model(folder)
    if not begun and not done:
        raise UsageError(f"{folder} holds other files; choose another --out")
    if not resume and not overwrite:
        what = "an unfinished training" if begun else "a model"
        way = "go on with --resume, " if begun else ""
        raise UsageError(
            f"{folder} holds {what}; {way}choose another --out, or replace it with --overwrite"
        )


def _is_model(folder: Path) -> bool:
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and config.get("model") == NAME
