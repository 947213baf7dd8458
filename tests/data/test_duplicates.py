import json
import random
from pathlib import Path

import pytest
from hypothesis import given

from tests.conftest import ROOT
from tests.trees import random_trees
from treecaps.data.corpus import Corpus
from treecaps.data.duplicates import NEAR, find_copies, find_duplicates, shingles, similarity
from treecaps.syntax.parse import parse_code
from treecaps.syntax.tree import Tree

BASE = "int f(int a) { int s = 0; for (int i = 0; i < a; i++) { s += i * i; } return s; }\n"
LONG = "\n".join(BASE.replace("f(", f"f{number}(") for number in range(8))


def corpus_of(path: Path, codes: list[str]) -> Corpus:
    lines = (json.dumps({"code": code, "language": "c", "label": "x"}) for code in codes)
    path.write_text("\n".join(lines))
    return Corpus.build(path)


def slow_shingles(tree: Tree) -> set[tuple[tuple[str, bytes], ...]]:
    nodes = []
    for node, kind in enumerate(tree.kind_names()):
        text = b"" if tree.child_count[node] else tree.text[tree.start[node] : tree.end[node]]
        nodes.append((kind, text))
    return {tuple(nodes[first : first + 5]) for first in range(len(nodes))}


@given(random_trees(), random_trees())
def test_similarity_equals_its_slow_twin(one: Tree, other: Tree) -> None:
    for a, b in ((one, other), (one, one)):
        first, second = slow_shingles(a), slow_shingles(b)
        assert len(shingles(a)) == len(first)
        assert similarity(a, b) == len(first & second) / len(first | second)


def test_a_large_text_is_hashed_like_a_small_one() -> None:
    small = parse_code(BASE, "c")
    large = parse_code(" " * 3000 + BASE, "c")
    assert similarity(small, large) == 1


def test_copies_within_a_data_set(tmp_path: Path) -> None:
    renamed = LONG.replace("s", "t").replace(" a", " b")
    edited = LONG.replace("f3(int a) { int s = 0;", "f3(int a) { int s = 1;")
    other = "void g(void) { while (1) ; }"
    spaced = LONG.replace(" ", "  ") + "// a comment"
    found = find_duplicates(
        corpus_of(tmp_path / "a.jsonl", [LONG, other, LONG, renamed, edited, spaced])
    )
    assert found.exact == [[0, 2]]
    assert found.same_tree == [[0, 2, 3, 4, 5]]
    assert found.near == [[0, 2, 4, 5]]


def test_a_data_set_without_copies(tmp_path: Path) -> None:
    found = find_duplicates(Corpus.build(ROOT / "examples" / "programs"))
    assert (found.exact, found.same_tree, found.near) == ([], [], [])


def test_copies_across_data_sets(tmp_path: Path) -> None:
    train = corpus_of(tmp_path / "train.jsonl", ["int a;", LONG, BASE])
    test = corpus_of(
        tmp_path / "test.jsonl",
        ["void g() {}", BASE, LONG.replace("* i", "+ i", 1), "int b;"],
    )
    found = find_copies(test, train)
    assert found.exact == {1: 2}
    assert found.same_tree == {1: 2, 3: 0}
    assert found.near == {1: 2, 2: 1}


def mutate(code: str, dice: random.Random) -> str:
    lines = code.split("\n")
    for _ in range(dice.randrange(4)):
        place = dice.randrange(len(lines))
        lines[place] = dice.choice(["int x = 1;", lines[place] + lines[place], ""])
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(3))
def test_near_copies_equal_all_pairs(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    originals = [path.read_text() for path in sorted((ROOT / "examples/programs").rglob("*.c"))] + [
        LONG
    ]
    codes = [mutate(dice.choice(originals), dice) for _ in range(60)]
    corpus = corpus_of(tmp_path / "a.jsonl", codes)
    leader = list(range(60))
    for one in range(60):
        for other in range(one):
            if similarity(corpus[one], corpus[other]) >= NEAR:
                old, new = sorted((leader[one], leader[other]), reverse=True)
                leader = [new if value == old else value for value in leader]
    groups = [[n for n in range(60) if leader[n] == first] for first in sorted(set(leader))]
    assert find_duplicates(corpus).near == [group for group in groups if len(group) > 1]
