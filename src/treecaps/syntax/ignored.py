"""What a folder holds that is nobody's own work: ignored files, packages, environments, builds."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAMES = frozenset(
    (
        # other people's code
        "node_modules",
        "bower_components",
        "jspm_packages",
        "vendor",
        "third_party",
        "site-packages",
        "Pods",
        "Carthage",
        # virtual environments
        "venv",
        "virtualenv",
        # what builds make
        "_build",
        "build",
        "buck-out",
        "dist",
        "target",
    )
)
_MARKS = ("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG", "CMakeCache.txt")
"""What lies in virtual environments, caches and folders of builds, whatever they are called."""


def is_foreign(folder: str) -> bool:
    """Whether a folder holds packages of others, a virtual environment, or what a build made."""
    if os.path.basename(folder) in _NAMES:
        return True
    return any(os.path.lexists(os.path.join(folder, mark)) for mark in _MARKS)


class GitIgnore:
    """The rules of the ``.gitignore`` files in a folder, below it, and above it in a repository.

    Rules from above do not count if they ignore the folder itself: somebody asked for it.

    Args:
        folder: The folder. What is in it is asked for from the top down, and not below what is
            ignored.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = os.path.abspath(folder)
        self._rules: dict[str, list[tuple[int, GitIgnoreSpec]]] = {}
        above = [self._folder, *map(str, Path(self._folder).parents)]
        tops = [place for place in above if os.path.lexists(os.path.join(place, ".git"))]
        self._top = tops[0] if tops else self._folder
        within = above[: above.index(self._top)]
        if any(self._ignores(place, is_folder=True) for place in within):
            self._top = self._folder
            self._rules.clear()

    def holds(self, name: str, *, is_folder: bool = False) -> bool:
        """Whether what has this name, from the folder on, is ignored."""
        return self._ignores(os.path.join(self._folder, name), is_folder)

    def _ignores(self, path: str, is_folder: bool) -> bool:
        for start, spec in self._rules_in(os.path.dirname(path)):
            decision = spec.check_file(f"{path[start:]}/" if is_folder else path[start:]).include
            if decision is not None:
                return decision
        return False

    def _rules_in(self, place: str) -> "list[tuple[int, GitIgnoreSpec]]":
        """Return the rules for what is in a folder, nearest first, and where their paths start."""
        if place not in self._rules:
            above = [] if place == self._top else self._rules_in(os.path.dirname(place))
            spec = _read(os.path.join(place, ".gitignore"))
            start = len(os.path.join(place, ""))
            self._rules[place] = [(start, spec), *above] if spec else above
        return self._rules[place]


def _read(file: str) -> "GitIgnoreSpec | None":
    if not os.path.isfile(file):
        return None
    from pathspec import GitIgnoreSpec  # takes a moment

    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return GitIgnoreSpec.from_lines(lines)
    except OSError:
        return None
