"""A collection of works laid open for people: its nearest pairs, and what matches in each."""

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf

from treecaps.cluster import Workers
from treecaps.data.parallel import parse_programs
from treecaps.errors import Failure
from treecaps.inference.embed import Embedder
from treecaps.search.clones import check_threshold
from treecaps.search.collection import COPIED, ClonePair, Collection, Step
from treecaps.search.lines import LinePair, Lines, match_lines
from treecaps.search.parts import Part, Subtrees, match_subtrees
from treecaps.search.units import Unit
from treecaps.syntax.functions import find_functions
from treecaps.syntax.program import MAX_BYTES, ProgramFile
from treecaps.syntax.tree import Tree

EVERY = 500
"""Up to so many works, all pairs are looked at."""
FLOOR = 0.5
"""Of more works, pairs are looked at from this share on, or if they are alike."""
PAIRS = 2000
"""How many pairs are laid open at most."""
LARGEST = 200_000
"""Works of more bytes are compared, but not shown."""


@dataclass(frozen=True, eq=False)
class Source:
    """A program of a work, or a function.

    Args:
        name: Its file, from the folder on that was read.
        line: The number of its first line.
        indent: What stands before it in its first line.
        tree: Its tree.
    """

    name: str
    line: int
    indent: bytes
    tree: Tree


@dataclass(frozen=True, eq=False)
class ShownPair:
    """A pair, and what matches in it.

    Args:
        left: The number of the left work.
        right: The number of the right work.
        pair: How much they have in common.
        parts: The parts that match; none if one of them cannot be shown.
        lines: Lines beside these that correspond.
    """

    left: int
    right: int
    pair: ClonePair
    parts: list[Part]
    lines: list[LinePair]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Works, the nearest pairs of them, and how near all of them are.

    Args:
        units: The works.
        new: How many of them, the first, are compared with the others; all with all if ``None``.
        sources: The programs of each work; none if it is in no pair, too large, or has changed.
        pairs: The pairs that are laid open, most copied first.
        highest: Of each work the largest share that is copied, and how alike it is to another.
        above: By both measures, how many pairs have at least 0, 0.01, ... 1.
        thresholds: From where on two are copied, and alike.
        floor: The share below which pairs were not looked at.
    """

    units: Sequence[Unit]
    new: int | None
    sources: Sequence[Sequence[Source]]
    pairs: Sequence[ShownPair]
    highest: Sequence[tuple[float, float]]
    above: tuple[list[int], list[int]]
    thresholds: tuple[float, float]
    floor: float

    @property
    def found(self) -> bool:
        """Whether any pair is copied or alike."""
        return any(
            pair.pair.copied >= self.thresholds[0] or alike(pair.pair) >= self.thresholds[1]
            for pair in self.pairs
        )


def alike(pair: ClonePair) -> float:
    """Return how alike two are, as it is told: the probability, or what stands for it."""
    return pair.similarity if pair.probability is None else pair.probability


def compare(
    collection: Collection,
    embedder: Embedder,
    threshold: float | None = None,
    copied: float = COPIED,
    *,
    template: Sequence[Tree] = (),
    max_bytes: int = MAX_BYTES,
    workers: Workers | None = None,
    step: Step | None = None,
) -> Comparison:
    """Lay a collection open.

    Args:
        collection: The works. Their files are read again.
        embedder: What made their vectors.
        threshold: From which product of vectors on two are alike.
        copied: From which share on two are copied.
        template: What everybody was given, which is not looked for in both.
        max_bytes: The largest file that is taken.
        workers: How many processes parse, or a ``RayCluster``; as many processes as there are
            cores by default.
        step: Called with the share done.
    """
    tell = step or (lambda share: None)
    threshold = embedder.alike if threshold is None else threshold
    check_threshold(threshold)
    check_threshold(copied)
    every = len(collection) <= EVERY
    floor = 0.0 if every else min(FLOOR, copied)
    pairs = collection.pairs() if every else collection.pairs(threshold, floor)
    tell(0.2)
    place = {id(unit): number for number, unit in enumerate(collection.units)}
    ends = [(place[id(pair.left)], place[id(pair.right)]) for pair in pairs]
    chosen = choose_pairs(pairs, ends, copied)
    needed = sorted({number for which in chosen for number in ends[which]})
    units = [collection.units[number] for number in needed]
    read = read_sources(units, embedder, max_bytes, workers or os.cpu_count() or 1)
    sources = dict(zip(needed, read, strict=True))
    tell(0.4)
    shown = []
    matches = _Matches(sources, template)
    for done, which in enumerate(chosen):
        tell(0.4 + 0.6 * done / len(chosen))
        shown.append(ShownPair(*ends[which], pairs[which], *matches.of(*ends[which])))
    known = embedder.probability(threshold)
    return Comparison(
        units=collection.units,
        new=collection.new,
        sources=[sources.get(number, []) for number in range(len(collection))],
        pairs=shown,
        highest=_highest(len(collection), pairs, ends),
        above=(_above(pair.copied for pair in pairs), _above(map(alike, pairs))),
        thresholds=(copied, threshold if known is None else known),
        floor=floor,
    )


class _Matches:
    """Finds what matches in pairs of works; what it needs of a work is found once."""

    def __init__(self, sources: Mapping[int, Sequence[Source]], template: Sequence[Tree]) -> None:
        given = Subtrees(template)
        self._subtrees = {
            number: Subtrees([source.tree for source in some], given)
            for number, some in sources.items()
        }
        self._lines = {number: Lines(work) for number, work in self._subtrees.items()}

    def of(self, left: int, right: int) -> tuple[list[Part], list[LinePair]]:
        """Return the parts and lines of two works that match."""
        parts = match_subtrees(self._subtrees[left], self._subtrees[right])
        return parts, match_lines(self._lines[left], self._lines[right], parts)


def choose_pairs(
    pairs: Sequence[ClonePair], ends: Sequence[tuple[int, int]], copied: float
) -> list[int]:
    """Return the numbers of the pairs to lay open: what is copied, then the nearest of each work.

    Args:
        pairs: All pairs, most copied first.
        ends: The numbers of their works.
        copied: From which share on two are copied.
    """
    rank = [inf] * len(pairs)
    for values in ([pair.copied for pair in pairs], [pair.similarity for pair in pairs]):
        seen = Counter[int]()
        for which in sorted(range(len(pairs)), key=lambda which: -values[which]):
            rank[which] = min(rank[which], *(seen[work] for work in ends[which]))
            seen.update(ends[which])
    rank = [-1 if pair.copied >= copied else one for pair, one in zip(pairs, rank, strict=True)]
    return sorted(sorted(range(len(pairs)), key=lambda which: rank[which])[:PAIRS])


def _highest(
    size: int, pairs: Sequence[ClonePair], ends: Sequence[tuple[int, int]]
) -> list[tuple[float, float]]:
    best = [(0.0, 0.0)] * size
    for pair, works in zip(pairs, ends, strict=True):
        for work in works:
            best[work] = max(best[work][0], pair.copied), max(best[work][1], alike(pair))
    return best


def _above(values: Iterable[float]) -> list[int]:
    """Return how many values there are from 0 on, from 0.01 on, and so on to 1, as rounded."""
    sorted_down = sorted(-round(value, 4) for value in values)
    return [bisect_right(sorted_down, -percent / 100) for percent in range(101)]


def read_sources(
    units: Sequence[Unit], embedder: Embedder, max_bytes: int = MAX_BYTES, workers: Workers = 1
) -> list[list[Source]]:
    """Return the programs of works; none of a work that has changed meanwhile, or is too large."""
    wanted = dict.fromkeys((unit.folder, name) for unit in units for name in unit.files)
    model = embedder.model
    files = (ProgramFile(folder / name, name, None, max_bytes) for folder, name in wanted)
    trees = parse_programs(files, model.frontend, comments=model.comments, workers=workers)
    with closing(trees):
        found = dict(zip(wanted, trees, strict=True))
    return [_sources(unit, [found[unit.folder, name] for name in unit.files]) for unit in units]


def _sources(unit: Unit, trees: Sequence[Tree | Failure]) -> list[Source]:
    found = []
    for name, tree in zip(unit.files, trees, strict=True):
        if isinstance(tree, Failure):
            return []
        if unit.function is None:
            found.append(Source(name, 1, b"", tree))
            continue
        for one in find_functions(tree):
            if (one.name, one.line) == (unit.function, unit.line):
                start = int(tree.start[one.node])
                before = tree.text[tree.text.rfind(b"\n", 0, start) + 1 : start]
                found.append(Source(name, one.line, before, one.tree))
                break
    return found if sum(len(one.tree.text) for one in found) <= LARGEST else []
