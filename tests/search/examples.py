"""Folders of programs, and their indexes."""

import shutil
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from tests.conftest import ROOT
from tests.inference.examples import small_model
from treecaps.inference.embed import Embedder
from treecaps.search import Index
from treecaps.search.build import Update, update_index

_Item = TypeVar("_Item")

PROGRAMS = ROOT / "examples" / "programs"


@cache
def embedder() -> Embedder:
    return Embedder(small_model())


def copy_programs(folder: Path) -> Path:
    """Copy the sample programs of one class, with their times, and return their folder."""
    shutil.copytree(PROGRAMS / "gcd", folder)
    return folder


def update(folder: Path, path: Path, *, functions: bool = True) -> Update:
    return update_index(folder, path, model=small_model(), functions=functions, workers=1)


def open_index(path: Path) -> Index:
    return Index.open(path, embedder())


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts to files, and make the folders they are in."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def slow_groups(
    items: Iterable[_Item], linked: Callable[[_Item, _Item], bool]
) -> set[frozenset[_Item]]:
    """Compare each with each, and join those that are linked until nothing changes."""
    groups = [{item} for item in items]
    for one, other in combinations([item for group in groups for item in group], 2):
        if linked(one, other):
            first = next(group for group in groups if one in group)
            second = next(group for group in groups if other in group)
            if first is not second:
                first |= second
                groups.remove(second)
    return {frozenset(group) for group in groups if len(group) > 1}
