"""Ordinary code that comes with the package: background where no other is given.

What is kept of programs are features: the kinds of their nodes, which leaves are the same, and what
leaves say is what leaves of other programs said in a like place, as far as the words are common.
"""

from collections.abc import Collection, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import treecaps
from treecaps.inputs.distinct import Longs
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.tree import Tree

HOME = Path(treecaps.__file__).parent / "bundled" / "ordinary.safetensors"

FRONTEND = "tree-sitter"
UNCOMMON = "qzx"
"""What stands for a word that is not common."""
_BETWEEN = "\0"
"""What stands between texts: some kinds and words are the end of a line."""
_DEEPEST = np.iinfo(np.uint8).max


def can_pack(tree: Tree) -> bool:
    """Whether a tree has no errors, is not too deep, and all of its leaves say something."""
    leaves = tree.child_count == 0
    empty = leaves & (tree.end == tree.start)
    return not (len(tree.errors) or empty.any() or tree.depth.max() > _DEEPEST)


def pack_trees(
    trees: Sequence[Tree],
    said: Sequence[Sequence[Sequence[str]]],
    is_val: Sequence[bool],
) -> bytes:
    """Return the features of trees, as safetensors.

    Args:
        trees: Trees of one front end that can be packed.
        said: For each tree, the words that each of its distinct leaves is to say.
        is_val: Which of them are for validation.
    """
    words = sorted({word for texts in said for text in texts for word in text})
    number = {word: place for place, word in enumerate(words)}
    kinds = sorted({name for tree in trees for name in tree.kind_names()})
    place = {kind: row for row, kind in enumerate(kinds)}
    languages = sorted({tree.language for tree in trees})
    parts: dict[str, list[NDArray[np.integer]]] = {
        name: [] for name in ("kind", "depth", "text", "length", "word")
    }
    counts = []
    for tree, texts in zip(trees, said, strict=True):
        leaves = JoinedTrees([tree]).leaf_texts
        counts.append((len(tree), len(leaves.nodes), sum(leaves.names), len(texts)))
        parts["kind"].append(np.array([place[kind] for kind in tree.kind_names()], np.uint16))
        parts["depth"].append(tree.depth.astype(np.uint8))
        parts["text"].append(leaves.text.astype(np.uint16))
        parts["length"].append(np.array([len(one) for one in texts], np.uint8))
        parts["word"].append(np.array([number[word] for one in texts for word in one], np.uint16))
    return save_arrays(
        {
            "kinds": _pack_text(kinds),
            "words": _pack_text(words),
            "languages": _pack_text(languages),
            "language": np.array([languages.index(tree.language) for tree in trees], np.uint8),
            "is_val": np.array(is_val, np.uint8),
            "counts": np.array(counts, np.int32),
            **{name: np.concatenate(arrays) for name, arrays in parts.items()},
        }
    )


class OrdinaryCode:
    """The programs of a file, each as a tree whose leaves say shuffled words."""

    def __init__(self, content: bytes) -> None:
        arrays = load_arrays(content)
        self._kinds, self._words, self._languages = (
            _unpack_text(arrays[name]) for name in ("kinds", "words", "languages")
        )
        self._arrays = arrays
        self.language = [self._languages[one] for one in arrays["language"].tolist()]
        self.is_val = arrays["is_val"].astype(bool)
        nodes, leaves, names, texts = arrays["counts"].astype(np.int64).T
        self._names = names
        self._nodes, self._leaves, self._texts = (
            np.concatenate([[0], np.cumsum(sizes)]) for sizes in (nodes, leaves, texts)
        )
        self._word_ends = np.concatenate([[0], np.cumsum(arrays["length"], dtype=np.int64)])

    def __len__(self) -> int:
        return len(self.is_val)

    def choose(self, languages: Collection[str], *, val: bool) -> Longs:
        """Return the programs of some languages, and as many of all others, evenly."""
        own = np.isin(self.language, list(languages))
        part = self.is_val == val
        mine, others = np.flatnonzero(own & part), np.flatnonzero(~own & part)
        if not len(mine):
            return others
        step = max(len(others) / len(mine), 1)
        return np.concatenate([mine, others[np.arange(0, len(others), step).astype(np.int64)]])

    def tree(self, row: int, *, blind: bool) -> Tree:
        """Return a program.

        Args:
            row: Which.
            blind: Whether its names say nothing.
        """
        says = self._texts_of(row, blind)
        part = slice(self._nodes[row], self._nodes[row + 1])
        kind, depth = (self._arrays[name][part].astype(np.int32) for name in ("kind", "depth"))
        text = self._arrays["text"][self._leaves[row] : self._leaves[row + 1]].tolist()
        leaf = np.append(depth[1:] <= depth[:-1], True).tolist()
        path = [-1] * (int(depth.max()) + 2)
        parent, start, end, spoken = [], [], [], []
        length, place = 0, iter(text)
        for node, (below, number) in enumerate(zip(depth.tolist(), kind.tolist(), strict=True)):
            path[below + 1] = node
            parent.append(path[below])
            start.append(length)
            if leaf[node]:
                name = self._kinds[number]
                word = name[1:-1].encode() if name.startswith('"') else says[next(place)]
                spoken.append(word)
                end.append(length + len(word))
                length += len(word) + 1
            else:
                end.append(length)
        for node in range(len(parent) - 1, 0, -1):
            end[parent[node]] = max(end[parent[node]], end[node])
        return Tree(
            language=self.language[row],
            frontend=FRONTEND,
            text=b" ".join(spoken),
            kinds=self._kinds,
            kind=kind,
            parent=np.array(parent, np.int32),
            start=np.array(start, np.int32),
            end=np.array(end, np.int32),
            errors=np.zeros(0, np.int32),
        )

    def _texts_of(self, row: int, blind: bool) -> list[bytes]:
        """Return what the distinct leaves of a program say, first its names."""
        first, last = int(self._texts[row]), int(self._texts[row + 1])
        bounds = self._word_ends[first : last + 1].tolist()
        found = []
        for place, (begin, end) in enumerate(pairwise(bounds)):
            named = place < self._names[row]
            words = [self._words[word] for word in self._arrays["word"][begin:end].tolist()]
            if named and (blind or not words):
                words = [f"v{place}"]
            found.append(("_" if named else " ").join(words or ["?"]).encode())
        return found


def _pack_text(texts: Collection[str]) -> NDArray[np.uint8]:
    return np.frombuffer(_BETWEEN.join(texts).encode(), np.uint8)


def _unpack_text(array: NDArray[Any]) -> tuple[str, ...]:
    return tuple(array.tobytes().decode().split(_BETWEEN))


@cache
def ordinary_code() -> OrdinaryCode:
    """Return the ordinary code that comes with the package."""
    return OrdinaryCode(HOME.read_bytes())
