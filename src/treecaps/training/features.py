"""The features of many programs on disk: built once, by several processes, and used again."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from treecaps._version import __version__
from treecaps.data.cache import DamagedError, keep
from treecaps.data.sequences import corpora_of, map_trees, spell
from treecaps.data.vocabulary import Vocabulary
from treecaps.hashing import digest, digest_file
from treecaps.inputs.base import Input
from treecaps.inputs.distinct import Longs
from treecaps.inputs.packing import Packing
from treecaps.inputs.stored import StoredInput, encode
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.syntax.tree import Tree

ReadTrees = Callable[[Sequence[Tree], Vocabulary], Input]

_FORMAT = 2
_PROGRAMS = "programs.bin"
_INDEX = "index.npy"
_ABOUT = "features.json"


def store_trees(
    trees: Sequence[Tree],
    vocabulary: Vocabulary,
    read_trees: ReadTrees,
    packing: Packing,
    tell: Callable[[float], None],
) -> StoredInput:
    """Keep the features of trees beside the corpora that these come from, and open them.

    Args:
        trees: Trees of corpora.
        vocabulary: Their kinds and sub-tokens.
        read_trees: Returns features of trees.
        packing: How features are packed.
        tell: Called with the share done.
    """
    about = {
        "format": _FORMAT,
        "treecaps": __version__,
        "trees": spell(trees),
        "vocabulary": digest(json.dumps(vocabulary.to_json()).encode()),
        "packing": asdict(packing),
    }

    def build(folder: Path) -> None:
        index = _write(
            folder / _PROGRAMS, trees, partial(_pack, read_trees, vocabulary, packing), tell
        )
        np.save(folder / _INDEX, index)
        made = {name: digest_file(folder / name) for name in (_PROGRAMS, _INDEX)}
        (folder / _ABOUT).write_text(json.dumps({**about, "digests": made}), encoding="utf-8")

    def read(folder: Path) -> StoredInput:
        try:
            found = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            for name, value in found["digests"].items():
                if digest_file(folder / name) != value:
                    raise DamagedError(f"{folder / name} was altered")
            offsets, sizes = np.load(folder / _INDEX, allow_pickle=False)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"the features in {folder} are damaged: {error}") from None
        known = digest(json.dumps([found["digests"], about["vocabulary"]]).encode())
        return StoredInput(folder / _PROGRAMS, packing, offsets, sizes[:-1], known)

    home = corpora_of(trees)[0].home
    key = digest(json.dumps(about, sort_keys=True).encode())
    return keep(home / f"features-{key}", read, build, "the features of programs")


def _pack(
    read_trees: ReadTrees, vocabulary: Vocabulary, packing: Packing, trees: list[Tree]
) -> tuple[list[bytes], Longs]:
    """Return the features of each tree, packed, and how much a network has to compute for it."""
    inputs = read_trees(trees, vocabulary)
    assert isinstance(inputs, WindowsAndBags)
    return encode(packing.pack(inputs), packing), inputs.sizes


def _write(
    path: Path,
    trees: Sequence[Tree],
    pack: Callable[[list[Tree]], tuple[list[bytes], Longs]],
    tell: Callable[[float], None],
) -> Longs:
    """Write packed programs one after the other; return where each begins, and its size."""
    lengths: list[int] = []
    every: list[Longs] = []
    tell(0)
    with open(path, "wb") as file:
        for _, (packed, sizes) in map_trees(trees, pack):
            file.writelines(packed)
            lengths += map(len, packed)
            every.append(sizes)
            tell(len(lengths) / len(trees))
    return np.array([np.cumsum([0, *lengths]), np.concatenate([*every, [0]])], np.int64)
