"""Folders of programs, and their indexes."""

import shutil
from functools import cache
from pathlib import Path

from tests.conftest import ROOT
from tests.inference.examples import small_model
from treecaps.inference.embed import Embedder
from treecaps.search import Index
from treecaps.search.build import Update, update_index

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
