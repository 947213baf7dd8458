from collections import Counter
from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treecaps
from tests.conftest import EXAMPLES
from treecaps.search import copies as module
from treecaps.search.copies import MOST, Copies, Work


def slow_shares(works: list[Work], template: list[Work]) -> dict[tuple[int, int], float]:
    """Compare each with each by counting."""
    given = [Counter(work.pieces.tolist()) for work in template]
    counts = {}
    for work in works:
        count = Counter(work.pieces.tolist())
        counts[work.key] = Counter(
            {
                (piece, number): 1
                for piece, many in count.items()
                for number in range(many)
                if all(number >= other[piece] for other in given)
            }
        )
    have = Counter(piece for count in counts.values() for piece in count)
    weight = {piece: log(len(counts) / max(many - 1, 1)) + 0.1 for piece, many in have.items()}

    def total(pieces: Counter[tuple[int, int]]) -> float:
        return sum(weight[piece] for piece in pieces)

    shares = {}
    for left, right in combinations(range(len(works)), 2):
        one, other = counts[works[left].key], counts[works[right].key]
        least = min(total(one), total(other))
        share = total(one & other) / least if least else 0.0
        same = works[left].key == works[right].key
        shares[left, right] = share if same else min(share, MOST)
    return shares


def random_works(key: str) -> st.SearchStrategy[Work]:
    pieces = st.lists(st.integers(0, 12), max_size=15)
    return pieces.map(lambda some: Work(np.array(some, np.uint64), f"{sorted(some)}{key}"))


def check(works: list[Work], template: list[Work]) -> None:
    slow = slow_shares(works, template)
    copies = Copies(works, template)
    fast = {(left, right): share for left, right, share in copies.pairs()}
    assert fast == pytest.approx(slow)
    for (left, right), share in slow.items():
        assert copies.compare(left, right) == copies.compare(right, left) == pytest.approx(share)
    numbers = np.arange(0, len(works), 2)
    for number, share in zip(numbers.tolist(), copies.nearest(numbers).tolist(), strict=True):
        others = [
            (min(number, other), max(number, other))
            for other in numbers.tolist()
            if other != number
        ]
        assert share == pytest.approx(max((slow[pair] for pair in others), default=0))


@settings(deadline=None)
@given(st.lists(random_works(""), min_size=1, max_size=8), st.lists(random_works("t"), max_size=2))
def test_shares_are_those_of_counting(works: list[Work], template: list[Work]) -> None:
    check(works, template)


@pytest.fixture(scope="module")
def works() -> list[Work]:
    return [Work.from_tree(treecaps.parse_file(path)) for path in EXAMPLES]


def test_shares_of_programs(works: list[Work]) -> None:
    check([*works, works[3]], [])
    check(works, [works[0]])


@pytest.mark.parametrize("threshold", [0.3, 0.9])
def test_many_are_compared_where_they_share_a_rare_piece(
    threshold: float, works: list[Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    works = [*works, works[3], works[5]]
    expected = list(Copies(works).pairs(threshold))
    monkeypatch.setattr(module, "_ALL", 0)
    monkeypatch.setattr(module, "_RARE", 8)
    found = list(Copies(works).pairs(threshold))
    assert len(expected) > 1
    assert [pair[:2] for pair in found] == [pair[:2] for pair in expected]
    assert [pair[2] for pair in found] == pytest.approx([pair[2] for pair in expected])


def test_new_works_are_compared_with_old_ones_only(works: list[Work]) -> None:
    copies = Copies(works)
    every = {pair[:2]: pair[2] for pair in copies.pairs()}
    found = {pair[:2]: pair[2] for pair in copies.pairs(new=7)}
    assert found == {pair: every[pair] for pair in every if pair[0] < 7 <= pair[1]}


def test_many_equal_works_are_linked_once() -> None:
    one, other = (
        Work.from_tree(treecaps.parse_code(f"int f() {{ return g({value}); }}", "c"))
        for value in (1, 2)
    )
    copies = Copies([one] * 5000 + [other])
    links = list(copies.links(1))
    assert len(links) == 4999
    assert {pair.left for pair in links} == {0}
    assert copies.compare(0, 5000) <= MOST


ORIGINAL = """
def read(path):
    with open(path) as file:
        return [int(line) for line in file]

def median(values):
    values = sorted(values)
    middle = len(values) // 2
    if len(values) % 2:
        return values[middle]
    return (values[middle - 1] + values[middle]) / 2

print(median(read("numbers.txt")))
"""
COPY = """
def mid(xs):
    unused = 17
    xs = sorted(xs)
    half = len(xs) // 2
    if not len(xs) % 2:
        return (xs[half] + xs[half - 1]) / 2
    else:
        return xs[half]

# read it
def load(name):
    with open(name) as handle:
        return [int(row) for row in handle]

print(mid(load("data.txt")))
"""
HONEST = """
import statistics, sys

numbers = []
for text in sys.stdin:
    numbers.append(float(text.strip()))
print(statistics.median(numbers))
"""


def work(code: str) -> Work:
    return Work.from_tree(treecaps.parse_code(code, "python"))


def test_a_disguised_copy_is_told_from_an_honest_solution() -> None:
    copies = Copies([work(ORIGINAL), work(COPY), work(HONEST)])
    assert 0.7 < copies.compare(0, 1) <= MOST
    assert copies.compare(0, 2) < 0.3
    assert Copies([work(ORIGINAL), work(COPY)]).compare(0, 1) > 0.7


def test_a_function_in_a_larger_program_is_copied() -> None:
    part = ORIGINAL[ORIGINAL.index("def median") : ORIGINAL.index("print")]
    copies = Copies([work(ORIGINAL), work(part), work(HONEST)])
    assert 0.9 < copies.compare(0, 1) <= MOST


def test_the_template_does_not_count() -> None:
    template = work(ORIGINAL)
    one, other = work(ORIGINAL + "a = max(3, 4)\n"), work(ORIGINAL + "for b in range(9): f(b)\n")
    assert Copies([one, other]).compare(0, 1) > 0.8
    assert Copies([one, other], [template]).compare(0, 1) < 0.3
    assert Copies([template, template], [template]).compare(0, 1) == 0


def test_programs_of_a_submission_are_one_work_in_any_order() -> None:
    one, other = work(ORIGINAL), work(HONEST)
    assert Work.join([one, other]).key == Work.join([other, one]).key
    copies = Copies([Work.join([one, other]), Work.join([other, one]), other])
    assert copies.compare(0, 1) == 1
    assert copies.compare(0, 2) == MOST


def test_nothing_to_compare() -> None:
    assert list(Copies([]).pairs()) == []
    assert list(Copies([work(HONEST)]).pairs()) == []
    assert list(Copies([work(HONEST)]).links(0.5)) == []
