"""Source files below a folder."""

import os
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path

from treecaps.errors import Failure, describe_os_error
from treecaps.syntax.ignored import GitIgnore, is_foreign
from treecaps.syntax.languages import has_known_ending, language_of_script

NOTEBOOK = ".ipynb"
"""The ending of Jupyter notebooks, whose cells are programs."""
_SHOWN = 3
"""How many folders that were left out are named."""


@dataclass
class Sources:
    """What a folder holds.

    Args:
        files: Programs, named from the folder on, sorted.
        passed_over: How many files in no known language there are, by their ending.
        failures: Sub-folders that cannot be listed.
        ignored_folders: Sub-folders that were left out, with all that is in them.
        left_out: How many files were left out, by reason.
    """

    files: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    ignored_folders: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def tell_passed_over(self) -> str:
        """Say in a few words which files were passed over."""
        endings = ", ".join(f"{count} {name}" for name, count in self.passed_over.most_common(5))
        more = ", ..." if len(self.passed_over) > 5 else ""
        return f"{_count_files(self.passed_over.total())} in no known language ({endings}{more})"

    def tell_left_out(self) -> str:
        """Say in a few words what was left out; nothing if nothing was."""
        folders = ", ".join(self.ignored_folders[:_SHOWN])
        more = ", ..." if len(self.ignored_folders) > _SHOWN else ""
        count = len(self.ignored_folders)
        parts = [f"{count:,} {'folder' if count == 1 else 'folders'} ({folders}{more})"]
        parts = parts if count else []
        parts += [
            f"{_count_files(count)} ({reason})" for reason, count in self.left_out.most_common()
        ]
        return ", ".join(parts)


def _count_files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def list_sources(
    folder: str | Path,
    *,
    everything: bool = False,
    leave_out: bool = True,
    also: Container[str] = (),
) -> Sources:
    """List the programs below a folder: files in a known language, or every file.

    Hidden files and folders and ``__pycache__`` are left alone, links to folders not followed.

    Args:
        folder: The folder.
        everything: Whether files in no known language are listed too.
        leave_out: Whether to leave out what ``.gitignore`` names, packages of others, virtual
            environments and what builds made.
        also: Endings of other files to list.
    """
    found = Sources()
    ignored = GitIgnore(folder) if leave_out else None

    def note(error: OSError) -> None:
        name = os.path.relpath(error.filename, folder)
        reason = f"cannot be listed: {describe_os_error(error)}"
        found.failures.append(Failure(name, "unreadable", reason))

    for root, folders, files in os.walk(folder, onerror=note):
        below = os.path.relpath(root, folder)
        below = "" if below == "." else below
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name != "__pycache__"
        )
        for name in folders[:] if ignored else ():
            place = os.path.join(below, name)
            if is_foreign(os.path.join(root, name)) or _holds(ignored, place, is_folder=True):
                folders.remove(name)
                found.ignored_folders.append(place)
        for name in files:
            if name.startswith("."):
                continue
            ending = os.path.splitext(name)[1].lower()
            if not (
                everything
                or has_known_ending(name)
                or ending in also
                or (not ending and _is_script(os.path.join(root, name)))
            ):
                found.passed_over[ending or "without ending"] += 1
            elif _holds(ignored, os.path.join(below, name)):
                found.left_out["ignored by .gitignore"] += 1
            else:
                found.files.append(os.path.join(below, name))
    found.files.sort()
    return found


def _holds(ignored: GitIgnore | None, name: str, *, is_folder: bool = False) -> bool:
    return ignored is not None and ignored.holds(name, is_folder=is_folder)


def _is_script(path: str) -> bool:
    """Whether the first line of a file names an interpreter of a known language."""
    try:
        if not os.path.isfile(path):  # a pipe would never end
            return False
        with open(path, "rb") as file:
            return language_of_script(file.read(128)) is not None
    except OSError:
        return False
