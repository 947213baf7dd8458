from collections import Counter

import numpy as np
import pytest

from tests.conftest import EXAMPLES
from tests.training.examples import example_labels, example_trees, small
from treecaps.data.sequences import Joined
from treecaps.data.vocabulary import Vocabulary
from treecaps.inference.classify import classify_tree
from treecaps.inputs.windows import Windows
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.parse import parse_code
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree
from treecaps.training.background import ordinary_background
from treecaps.training.ordinary import (
    FRONTEND,
    OrdinaryCode,
    can_pack,
    ordinary_code,
    pack_trees,
)
from treecaps.training.train import train

GO = """package main

import "fmt"

func main() {
	fmt.Println("one two")
}
"""


def trees() -> list[Tree]:
    # A kind of Go's is the end of a line.
    return [*example_trees(), parse_code(GO, "go")]


def said(tree: Tree) -> list[list[str]]:
    """Return the words of each distinct leaf of a tree."""
    leaves = JoinedTrees([tree]).leaf_texts
    pairs = zip(leaves.texts, leaves.names, strict=True)
    return [list(split_token(text, name=name)) for text, name in pairs]


@pytest.fixture(scope="module")
def packed() -> OrdinaryCode:
    every = trees()
    words = [said(tree) for tree in every]
    return OrdinaryCode(pack_trees(every, words, [row % 4 == 0 for row in range(len(every))]))


def test_the_examples_can_be_packed() -> None:
    assert {path.suffix for path in EXAMPLES} > {".py", ".java", ".c"}
    assert all(map(can_pack, trees()))
    assert not can_pack(parse_code("int f( { return", "c"))


def test_networks_read_what_was_packed(packed: OrdinaryCode) -> None:
    every = trees()
    found = [packed.tree(row, blind=False) for row in range(len(packed))]
    for one, other in zip(found, every, strict=True):
        one.check()
        assert (one.language, one.frontend) == (other.language, other.frontend)
        assert one.kind_names() == other.kind_names()
        assert one.parent.tolist() == other.parent.tolist()
        # Names that say nothing may be many in a program, and are one when it is packed.
        assert set(map(tuple, said(one))) == set(map(tuple, said(other)))
    vocabulary = Vocabulary.of(every, 1000)
    some, others = (Windows.from_trees(part, vocabulary) for part in (found, every))
    for name in ("kind", "offsets", "token"):
        assert getattr(some.symbols, name).tolist() == getattr(others.symbols, name).tolist()


def test_names_of_blind_programs_say_nothing(packed: OrdinaryCode) -> None:
    for row, tree in enumerate(trees()):
        found = packed.tree(row, blind=True)
        assert found.kind_names() == tree.kind_names()
        leaves = JoinedTrees([found]).leaf_texts
        names = leaves.texts[: sum(leaves.names)]  # they come first
        assert names == [b"v%d" % number for number in range(len(names))]
        assert len(names) == sum(JoinedTrees([tree]).leaf_texts.names)


def test_leaves_that_say_nothing_have_a_text() -> None:
    tree = parse_code("x = 'a' + y", "python")
    assert said(tree) == [["x"], ["y"], ["'"], ["a"]]
    code = OrdinaryCode(pack_trees([tree], [[[], ["one", "word"], ["'"], []]], [False]))
    assert code.tree(0, blind=False).text == b"v0 = ' ? ' + one_word"


def test_half_of_what_is_chosen_is_in_the_languages_asked_for(packed: OrdinaryCode) -> None:
    for val in (False, True):
        rows = packed.choose({"python"}, val=val).tolist()
        assert len(set(rows)) == len(rows)
        assert {bool(packed.is_val[row]) for row in rows} == {val}
        mine = [row for row in rows if packed.language[row] == "python"]
        every = [
            row
            for row, tree in enumerate(trees())
            if tree.language == "python" and (row % 4 == 0) == val
        ]
        assert mine == every
        assert len(rows) <= 2 * len(mine) + 1
    assert len(packed.choose({"cobol"}, val=False)) == sum(~packed.is_val)


def test_what_comes_with_the_package_has_code_of_every_language() -> None:
    code = ordinary_code()
    assert set(code.language) == set(LANGUAGES)
    assert 0.1 < code.is_val.mean() < 0.3
    train_part, val = ordinary_background({"go"})
    for part in (train_part, val):
        languages = Counter(tree.language for tree in part.pieces)
        assert languages["go"] == pytest.approx(len(part) / 2, abs=1)
        for tree in part.pieces[:20]:
            tree.check()
    assert len(train_part) > 3 * len(val)
    assert isinstance(train_part.view(), Joined)


def test_a_model_learns_from_it_that_other_code_is_unknown() -> None:
    settings = ("epochs=8", "background_share=1")
    alone, model = (
        train(example_trees(), example_labels(), preset=small(*settings, *more))
        for more in ((), ("ordinary_background=true",))
    )
    assert alone.calibration.none is None
    assert model.calibration.none is not None
    languages = {tree.language for tree in example_trees()}
    background, val = ordinary_background(languages)
    assert model.card["data"]["training"]["background"] == len(background)
    before, after = (
        np.mean([classify_tree(one, tree).known for tree in val.pieces[:300]])
        for one in (alone, model)
    )
    assert after < before / 2


def test_trees_of_another_front_end_learn_without_it() -> None:
    paths = [path for path in EXAMPLES if path.suffix == ".py"]
    parsed = [parse_code(path.read_bytes(), "python", frontend="ast") for path in paths]
    labels = [path.parent.name for path in paths]
    model = train(
        parsed, labels, frontend="ast", preset=small("epochs=1", "ordinary_background=true")
    )
    assert FRONTEND != "ast"
    assert model.calibration.none is None
