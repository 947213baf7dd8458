"""The nodes of some trees in one row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.trees import random_trees
from treecaps.syntax import joined as module
from treecaps.syntax.joined import JoinedTrees, join_trees
from treecaps.syntax.names import is_name
from treecaps.syntax.parse import parse_code, parse_file
from treecaps.syntax.tree import Tree


def leaves_of(trees: list[Tree]) -> list[tuple[int, str, bytes]]:
    """Return number, kind and text of each leaf that has a text, node by node."""
    found, number = [], 0
    for tree in trees:
        for node, kind in enumerate(tree.kind_names()):
            text = tree.text[tree.start[node] : tree.end[node]]
            if text and not len(tree.children(node)):
                found.append((number, kind, text))
            number += 1
    return found


def check(trees: list[Tree]) -> None:
    joined = JoinedTrees(trees)
    every = leaves_of(trees)
    assert joined.leaves.tolist() == [number for number, _, _ in every]
    nodes, text, names, texts = joined.leaf_texts
    assert [
        (node, names[said], texts[said])
        for node, said in zip(nodes.tolist(), text.tolist(), strict=True)
    ] == [(number, is_name(kind), said) for number, kind, said in every if not kind.startswith('"')]
    assert len({*zip(names, texts, strict=True)}) == len(texts)
    parents = [
        -1 if parent < 0 else first + parent
        for tree, first in zip(trees, joined.firsts.tolist(), strict=True)
        for parent in tree.parent.tolist()
    ]
    assert joined.parent.tolist() == parents
    assert joined.child_count.tolist() == [parents.count(node) for node in range(len(joined))]


@given(st.lists(random_trees(), min_size=1, max_size=4))
def test_nodes_and_leaves_of_random_trees(trees: list[Tree]) -> None:
    check(trees)


def test_nodes_and_leaves_of_real_programs() -> None:
    check([parse_file(path) for path in EXAMPLES[::9]])


def test_leaves_whose_kind_is_no_text() -> None:
    tree = parse_code("def add(a, b):\n    return a + 1\n", "python")
    found = JoinedTrees([tree]).leaf_texts
    assert found.names == [True, True, True, False]
    assert found.texts == [b"add", b"a", b"b", b"1"]
    assert found.text.tolist() == [0, 1, 2, 1, 3]


def test_a_name_and_another_leaf_with_its_text_are_two() -> None:
    kinds = ["module", "identifier", "string"]
    tree = Tree.build(kinds, [-1, 0, 0], text=b"aa", start=[0, 0, 1], end=[2, 1, 2])
    found = JoinedTrees([tree]).leaf_texts
    assert (found.names, found.texts) == ([True, False], [b"a", b"a"])


def test_many_trees_are_joined_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = [parse_file(path) for path in EXAMPLES[:5]]
    monkeypatch.setattr(module, "_CHUNK_NODES", len(trees[0]) + len(trees[1]))
    parts = list(join_trees(trees))
    assert len(parts) > 1
    assert [tree for part in parts for tree in part.trees] == trees
