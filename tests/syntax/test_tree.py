import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trees import random_trees
from treecaps.errors import DataError
from treecaps.syntax.parse import parse_code
from treecaps.syntax.tree import Tree

SMALL = parse_code("int f(int a) { return a + 1; }\n", "c")


@given(random_trees())
def test_json_gives_an_equal_tree_back(tree: Tree) -> None:
    assert Tree.from_json(tree.to_json()) == tree


@given(random_trees())
def test_a_tree_can_be_rebuilt_from_its_parts(tree: Tree) -> None:
    again = Tree.build(
        tree.kind_names(),
        tree.parent,
        text=tree.text,
        start=tree.start,
        end=tree.end,
        errors=tree.errors,
        language=tree.language,
        frontend=tree.frontend,
    )
    assert again == tree


@given(random_trees())
def test_positions_children_and_depths_equal_their_slow_twins(tree: Tree) -> None:
    families: dict[int, list[int]] = {}
    depth: list[int] = []
    for node, parent in enumerate(tree.parent.tolist()):
        families.setdefault(parent, []).append(node)
        depth.append(0 if parent < 0 else depth[parent] + 1)
    assert tree.depth.tolist() == depth
    for node in range(len(tree)):
        children = families.get(node, [])
        assert tree.children(node).tolist() == children
        assert tree.child_count[node] == len(children)
        assert [tree.position[child] for child in children] == list(range(len(children)))
        assert tree.token(node) == (
            ""
            if children
            else tree.text[tree.start[node] : tree.end[node]].decode("utf-8", "replace")
        )
    assert tree.tokens() == [tree.token(node) for node in range(len(tree))]


@given(random_trees())
def test_the_share_of_errors_counts_every_byte_once(tree: Tree) -> None:
    wrong: set[int] = set()
    for node in tree.errors.tolist():
        wrong.update(range(tree.start[node], tree.end[node]))
    assert tree.error_share == (len(wrong) / len(tree.text) if tree.text else 0)


@given(random_trees())
def test_printing_gives_a_line_a_node(tree: Tree) -> None:
    assert len(list(tree.format())) == len(tree)


def test_trees_differ_in_any_part() -> None:
    values = SMALL.to_dict()
    for name in ("language", "frontend"):
        assert Tree.from_dict({**values, name: "other"}) != SMALL
    assert Tree.from_dict({**values, "errors": [1]}) != SMALL
    assert Tree.from_dict({**values, "start": [0] * len(SMALL)}) != SMALL
    assert Tree.from_dict({**values, "kinds": ["x", *values["kinds"][1:]]}) != SMALL
    assert SMALL != "a tree"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": []}, "no nodes"),
        ({"kind": [0]}, "differ in length"),
        ({"kinds": []}, "table of kinds"),
        ({"kinds": [1]}, "must be text"),
        ({"language": 7}, "must be text"),
        ({"errors": [999]}, "names no node"),
        ({"errors": [-1]}, "names no node"),
        ({"text": ""}, "outside the text"),
        ({"text": 5}, "not a tree"),
        ({"parent": None}, "not a whole number"),
        ({"start": [[0]]}, "not flat"),
        ({"start": [0.5]}, "not a whole number"),
        ({"start": [2**40]}, "32 bits"),
        ({"start": [10**30]}, "not a whole number"),
        ({"start": ["a"]}, "not a whole number"),
        ({"start": [True]}, "not a whole number"),
        ({"start": {}}, "not a whole number"),
    ],
)
def test_malformed_trees_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        Tree.from_dict({**SMALL.to_dict(), **change})


@pytest.mark.parametrize("parent", [[0, 0, 0], [-1, -1, 0], [-1, 2, 0], [-1, 0, 5], [-1, 1, 0]])
def test_parents_that_make_no_tree_are_refused(parent: list[int]) -> None:
    with pytest.raises(DataError, match="pre-order"):
        Tree.build(["a", "b", "c"], parent)


def test_a_node_off_the_current_path_breaks_the_pre_order() -> None:
    with pytest.raises(DataError, match="node 3 breaks the pre-order"):
        Tree.build(["a", "b", "c", "d"], [-1, 0, 0, 1])


@given(st.text() | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_other_json_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="not a tree"):
        Tree.from_json(text)


def test_what_is_not_even_text_is_refused() -> None:
    with pytest.raises(DataError, match="not a tree"):
        Tree.from_json(None)  # type: ignore[arg-type]


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(DataError, match="not a whole number"):
        Tree.build(["a"], [0.5])
    with pytest.raises(DataError, match="not UTF-8"):
        Tree.build(["a"], [-1], text=b"\xff")


def test_deep_json_is_refused() -> None:
    with pytest.raises(DataError, match="not a tree"):
        Tree.from_json("[" * 200_000)


def test_printing_shows_kinds_and_tokens() -> None:
    lines = list(SMALL.format())
    assert lines[0] == "translation_unit"
    assert '    primitive_type  "int"' in lines
    assert '      identifier  "f"' in lines
    assert '        "return"' in lines


def test_printing_marks_what_is_wrong_or_missing() -> None:
    lines = "\n".join(parse_code("int f() { return 1 }", "c").format())
    assert '";"  (missing)' in lines
    assert "(error)" in "\n".join(parse_code("int f( {", "c").format())


def test_deep_trees_print_in_bounded_width() -> None:
    depth = 5000
    tree = Tree.build(["a"] * depth, np.arange(depth) - 1)
    lines = list(tree.format())
    assert max(map(len, lines)) < 100
    assert lines[-1].endswith("[4999] a")


def test_places_are_lines_and_columns_of_characters() -> None:
    tree = parse_code('int a;\nchar *s = "é"; int b;\n', "c")
    node = [tree.token(node) for node in range(len(tree))].index("b")
    assert tree.line_and_column(node) == (2, 20)


@given(random_trees(), st.data())
def test_a_subtree_holds_what_lies_below(tree: Tree, data: st.DataObject) -> None:
    node = data.draw(st.integers(0, len(tree) - 1))
    below = [node]
    for other in range(node + 1, len(tree)):
        if tree.parent[other] in below:
            below.append(other)
    found = tree.subtree(node)
    found_parents = [below[up] if up >= 0 else -1 for up in found.parent.tolist()]
    assert found_parents == [-1, *(int(tree.parent[other]) for other in below[1:])]
    assert found.kind_names() == [tree.kind_names()[other] for other in below]
    assert [below[error] for error in found.errors] == [e for e in tree.errors if e in below]


def test_a_subtree_of_a_program_is_that_of_its_text() -> None:
    tree = parse_code("x = 1\ndef add(a, b):\n    return a + b\n", "python")
    node = tree.kind_names().index("function_definition")
    alone = parse_code(tree.text[tree.start[node] : tree.end[node]], "python")
    found = tree.subtree(node)
    assert found == replace(alone.subtree(1), text=found.text)
    assert found.tokens() == alone.tokens()[1:]
    assert tree.subtree(0) == tree
