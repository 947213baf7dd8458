"""The folder in which corpora and features are kept, and how folders get there whole."""

import logging
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from treecaps.errors import DataError, describe_os_error

_Kept = TypeVar("_Kept")

_BUILDING = "building"

log = logging.getLogger("treecaps")


class DamagedError(DataError):
    """A folder that was kept, but is incomplete, altered or of another version."""


class CannotKeepError(DataError):
    """There is no room, or no right, to keep something in the folder for it."""


def default_cache() -> Path:
    """Return the folder in which corpora are kept."""
    if chosen := os.environ.get("TREECAPS_CACHE"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "treecaps"
    try:
        return Path.home() / ".cache" / "treecaps"
    except RuntimeError:
        raise DataError(
            "you have no home folder; name one with cache=FOLDER or TREECAPS_CACHE",
            arguments=("cache",),
        ) from None


def keep(
    folder: Path, read: Callable[[Path], _Kept], build: Callable[[Path], object], what: str
) -> _Kept:
    """Return what is kept in a folder; build it first unless it is there, and whole.

    Args:
        folder: The folder; what its name says decides what is in it.
        read: Reads it, and raises ``DamagedError`` if it cannot.
        build: Fills a folder with what is to be kept.
        what: What it is, for messages.
    """
    home = folder.parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        _sweep(home)
        if os.path.lexists(folder):
            try:
                return read(folder)
            except DamagedError as error:
                log.warning("%s; making it again", error)
                # Moved first: what is half removed must not look whole.
                doomed = _new_folder(home)
                with suppress(FileNotFoundError):  # another process may have been quicker
                    folder.rename(doomed / folder.name)
                shutil.rmtree(doomed, ignore_errors=True)
        building = _new_folder(home)
        try:
            build(building)
            try:
                building.rename(folder)
            except OSError:
                # Another process may have been quicker with the same: what it kept is as good.
                if not folder.exists():
                    raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return read(folder)
    except OSError as error:
        raise CannotKeepError(
            f"cannot keep {what} in {home}: {describe_os_error(error)};"
            " choose another folder with cache=FOLDER or TREECAPS_CACHE",
            arguments=("cache",),
        ) from None


def _sweep(home: Path) -> None:
    """Remove what killed builds on this computer left behind."""
    for folder in home.glob(f"{_BUILDING}-{platform.node()}-*"):
        process = folder.name.rsplit("-", 2)[1]
        if process.isdigit() and not _is_alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _new_folder(home: Path) -> Path:
    """Make a folder to work in, named so that a later run can tell whether its maker lives."""
    prefix = f"{_BUILDING}-{platform.node()}-{os.getpid()}-"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=home))
