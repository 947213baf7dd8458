from itertools import pairwise

import pytest
from hypothesis import given

import treecaps
from tests.search.test_copies import COPY, HONEST, ORIGINAL
from tests.syntax.test_common import program_trees
from treecaps.search.parts import LEAST, Subtrees, match_subtrees, matching_parts
from treecaps.syntax.common import to_common
from treecaps.syntax.tree import Tree


def parse(code: str) -> Tree:
    return treecaps.parse_code(code, "python")


def test_a_program_matches_itself_as_a_whole() -> None:
    tree = parse(ORIGINAL)
    (part,) = matching_parts(tree, tree)
    assert part.size == len(to_common(tree))
    assert part.start[0] == part.start[1]
    assert part.last_line[0] == ORIGINAL.count("\n")


def test_functions_that_moved_are_found() -> None:
    one, other = parse(ORIGINAL), parse(COPY)
    parts = matching_parts(one, other)
    texts = [
        (one.text[part.start[0] : part.end[0]], other.text[part.start[1] : part.end[1]])
        for part in parts
    ]
    assert any(
        left.startswith(b"def read") and right.startswith(b"def load") for left, right in texts
    )
    assert (b"(values[middle - 1] + values[middle]) / 2", b"(xs[half] + xs[half - 1]) / 2") in [
        (left.removeprefix(b"return "), right.removeprefix(b"return ")) for left, right in texts
    ]


def test_statements_that_follow_each_other_are_one_part() -> None:
    run = "a = f(1, 2, 3)\nb = g(a, a) + 2\nc = a * b - h(b)\n"
    (part,) = matching_parts(parse(run + "while c: c = k(c, 3)\n"), parse("if x: y = 1\n" + run))
    assert (part.line, part.last_line) == ((1, 2), (3, 4))


def test_nothing_matches() -> None:
    assert matching_parts(parse("a = 1\n"), parse(HONEST)) == []


@pytest.mark.parametrize("swap", [False, True])
@given(one=program_trees(), other=program_trees())
def test_parts_are_apart_on_both_sides(swap: bool, one: Tree, other: Tree) -> None:
    if swap:
        one, other = other, one
    parts = matching_parts(one, other)
    for part in parts:
        assert part.size >= LEAST
        assert part.line[0] <= part.last_line[0]
    assert sum(part.size for part in parts) <= min(len(to_common(one)), len(to_common(other)))


def test_parts_of_real_programs_do_not_overlap() -> None:
    parts = matching_parts(parse(ORIGINAL), parse(COPY))
    for side in (0, 1):
        spans = sorted((part.start[side], part.end[side]) for part in parts)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_parts_are_found_in_any_program_of_a_work() -> None:
    one, other = parse(ORIGINAL), parse(HONEST)
    left, right = Subtrees([one, other]), Subtrees([other, one])
    parts = match_subtrees(left, right)
    assert [part.program for part in parts] == [(0, 1), (1, 0)]
    for part, tree in zip(parts, (one, other), strict=True):
        assert part.start == (tree.start[0], tree.start[0])
        assert part.end == (tree.end[0], tree.end[0])
    assert match_subtrees(Subtrees([]), right) == []


def test_what_everybody_was_given_matches_within_larger_parts_only() -> None:
    given = "def helper(a, b):\n    return [a * x + b for x in range(a, b)]\n"
    own = "def own(s):\n    total = 0\n    for c in s:\n        total += ord(c)\n    return total\n"
    template = Subtrees([parse(given)])
    both = parse(given + "print(1)\n" + own), parse(own + given)
    left, right = (Subtrees([tree], template) for tree in both)
    (part,) = match_subtrees(left, right)
    assert both[0].text[part.start[0] : part.end[0]].decode() == own.strip()
    assert len(matching_parts(*both)) == 2
    (part,) = match_subtrees(right, right)
    assert (part.start[0], part.end[0]) == (0, len(own + given))
