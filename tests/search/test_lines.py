from collections import defaultdict
from itertools import combinations
from math import log

import pytest

import treecaps
from tests.conftest import ROOT
from tests.search.test_copies import COPY, HONEST, ORIGINAL
from treecaps.search.lines import COMMON, LEAST, LinePair, Lines, list_features, match_lines
from treecaps.search.parts import Part, Subtrees, match_subtrees

_Place = tuple[int, int]
PROGRAMS = ROOT / "examples" / "programs"
NAMES = ("bubble-sort/BubbleSort.java", "bubble-sort/bubble_sort.py", "stack/stack.go")


def works() -> list[Subtrees]:
    trees = [treecaps.parse_file(PROGRAMS / name) for name in NAMES]
    code = [treecaps.parse_code(text, "python") for text in (ORIGINAL, COPY, HONEST)]
    return [*(Subtrees([tree]) for tree in (*trees, *code)), Subtrees([code[0], trees[1]])]


def slow_sets(work: Subtrees, parts: list[Part], side: int) -> dict[_Place, set[int]]:
    found: defaultdict[_Place, set[int]] = defaultdict(set)
    for one in list_features(work):
        inside = any(
            part.program[side] == one.program and part.start[side] <= one.start < part.end[side]
            for part in parts
        )
        if not inside:
            found[one.program, one.line].add(one.hash)
    return found


def slow_match(
    left: Subtrees, right: Subtrees, parts: list[Part]
) -> dict[tuple[_Place, _Place], float]:
    """Compare each line with each, and take those that are each other's best."""
    one, other = slow_sets(left, parts, 0), slow_sets(right, parts, 1)
    lines = [*one.values(), *other.values()]

    def weigh(features: set[int]) -> float:
        counts = [sum(feature in line for line in lines) for feature in features]
        return sum(log(1 + len(lines) / count) for count in counts if count <= COMMON)

    found = {
        (line, match): 2
        * weigh(one[line] & other[match])
        / (weigh(one[line]) + weigh(other[match]))
        for line in one
        for match in other
    }
    return {
        pair: share
        for pair, share in found.items()
        if share >= LEAST
        and all(
            share >= other - 1e-9
            for (line, match), other in found.items()
            if line == pair[0] or match == pair[1]
        )
    }


def test_lines_that_correspond_are_those_of_comparing_each_with_each() -> None:
    shown = 0
    for left, right in combinations(works(), 2):
        for parts in ([], match_subtrees(left, right)):
            slow = slow_match(left, right, parts)
            fast = match_lines(Lines(left), Lines(right), parts)
            shown += len(fast)
            # Of lines that are as near, one is chosen.
            for pair in fast:
                assert slow[pair.left, pair.right] == pytest.approx(pair.share)
            assert {pair.left for pair in fast} | {pair.right for pair in fast} <= {
                line for pair in slow for line in pair
            }
            assert len({pair.left for pair in fast}) == len({pair.right for pair in fast})
            assert len(fast) >= len({line for line, _ in slow}) / 2
    assert shown > 50


def test_lines_correspond_across_languages() -> None:
    java, python, *_ = works()
    found = match_lines(Lines(java), Lines(python), match_subtrees(java, python))
    numbers = [(pair.left.number, pair.right.number) for pair in found]
    code = [work.trees[0].text.decode().splitlines() for work in (java, python)]
    lines = [(code[0][one - 1].strip(), code[1][other - 1].strip()) for one, other in numbers]
    assert ("changed = true;", "swapped = True") in lines
    assert ("changed = false;", "swapped = False") in lines
    assert numbers == sorted(numbers)


def test_what_everybody_was_given_does_not_correspond() -> None:
    tree = treecaps.parse_code(ORIGINAL, "python")
    alone = Subtrees([tree])
    assert match_lines(Lines(alone), Lines(alone)) != []
    given = Subtrees([tree], alone)
    assert match_lines(Lines(given), Lines(given)) == []


def test_empty_works_have_no_lines() -> None:
    nothing, blank = Lines(Subtrees([])), Lines(Subtrees([treecaps.parse_code("", "c")]))
    found: list[LinePair] = match_lines(nothing, blank)
    assert found == []
