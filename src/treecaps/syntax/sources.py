"""Source files below a folder."""

import os
from collections import Counter
from pathlib import Path, PurePath

from treecaps.errors import DataError
from treecaps.syntax.languages import has_known_ending


def list_sources(folder: Path, *, everything: bool = False) -> tuple[list[str], Counter[str]]:
    """List the programs below a folder, sorted, and count the endings of files passed over.

    Hidden files and folders are left alone, and links to folders are not followed.
    """
    found: list[str] = []
    passed_over: Counter[str] = Counter()

    def complain(error: OSError) -> None:
        raise DataError(f"cannot list {error.filename}: {(error.strerror or '').lower()}")

    for root, folders, files in os.walk(folder, onerror=complain):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = os.path.relpath(root, folder)
        for name in files:
            if name.startswith("."):
                continue
            if everything or has_known_ending(name):
                found.append(name if below == "." else os.path.join(below, name))
            else:
                passed_over[PurePath(name).suffix.lower() or "without ending"] += 1
    return sorted(found), passed_over


def tell_passed_over(passed_over: Counter[str]) -> str:
    """Say in a few words which endings the files passed over have."""
    shown = ", ".join(f"{count} {ending}" for ending, count in passed_over.most_common(5))
    return shown + (", ..." if len(passed_over) > 5 else "")
