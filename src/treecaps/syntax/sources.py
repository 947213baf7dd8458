"""Source files below a folder."""

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from treecaps.errors import Failure, describe_os_error
from treecaps.syntax.languages import has_known_ending


@dataclass
class Sources:
    """What a folder holds.

    Args:
        files: Programs, named from the folder on, sorted.
        passed_over: How many files in no known language there are, by their ending.
        failures: Sub-folders that cannot be listed.
    """

    files: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def tell_passed_over(self) -> str:
        """Say in a few words which files were passed over."""
        endings = ", ".join(f"{count} {name}" for name, count in self.passed_over.most_common(5))
        more = ", ..." if len(self.passed_over) > 5 else ""
        return f"{self.passed_over.total():,} files in no known language ({endings}{more})"


def list_sources(folder: str | Path, *, everything: bool = False) -> Sources:
    """List the programs below a folder: files in a known language, or every file.

    Hidden files and folders are left alone, and links to folders are not followed.
    """
    found = Sources()

    def note(error: OSError) -> None:
        name = os.path.relpath(error.filename, folder)
        reason = f"cannot be listed: {describe_os_error(error)}"
        found.failures.append(Failure(name, "unreadable", reason))

    for root, folders, files in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = os.path.relpath(root, folder)
        for name in files:
            if name.startswith("."):
                continue
            if everything or has_known_ending(name):
                found.files.append(name if below == "." else os.path.join(below, name))
            else:
                found.passed_over[os.path.splitext(name)[1].lower() or "without ending"] += 1
    found.files.sort()
    return found
