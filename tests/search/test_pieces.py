from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import treecaps
from tests.conftest import EXAMPLES
from tests.syntax.test_common import program_trees
from treecaps.search.pieces import DEPTH, find_pieces, hash_shapes, key_without_names
from treecaps.syntax.blind import blind
from treecaps.syntax.common import to_common
from treecaps.syntax.node_hashes import Hashes
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Ints, Tree


def slow_shapes(kind: Hashes, parent: Ints, depth: int) -> list[str]:
    """Write each node with its sorted descendants, by plain recursion."""

    def write(node: int, depth: int) -> str:
        if not depth:
            return str(kind[node])
        children = np.flatnonzero(parent == node).tolist()
        return f"{kind[node]}({' '.join(sorted(write(child, depth - 1) for child in children))})"

    return [write(node, depth) for node in range(len(kind))]


def same_classes(one: list[str], other: list[int]) -> bool:
    """Whether two lists are equal at the same places."""
    return len(set(one)) == len(set(other)) == len({*zip(one, other, strict=True)})


@given(program_trees())
def test_shapes_are_equal_where_sorted_descendants_are(tree: Tree) -> None:
    common = to_common(tree)
    for depth in range(5):
        fast = hash_shapes(common.kind, common.parent, depth)
        assert same_classes(slow_shapes(common.kind, common.parent, depth), fast.tolist())


@pytest.mark.parametrize("path", EXAMPLES[::5], ids=lambda path: path.name)
def test_shapes_of_programs(path: Path) -> None:
    common = to_common(treecaps.parse_file(path))
    fast = hash_shapes(common.kind, common.parent)
    assert same_classes(slow_shapes(common.kind, common.parent, DEPTH), fast.tolist())


@given(program_trees())
def test_any_tree_has_pieces_and_a_key(tree: Tree) -> None:
    pieces = find_pieces(tree)
    assert len(pieces.hashes) == len(pieces.nodes) > 0
    assert pieces.nodes.max() < len(tree)
    assert key_without_names(tree) == key_without_names(tree)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_blind_program_has_the_same_key(path: Path) -> None:
    program = Program.read(path)
    renamed = blind(program)
    assert renamed.text != program.text
    assert key(renamed.text.decode(), program.language) == key(
        program.text.decode(), program.language
    )


def key(code: str, language: str = "c") -> str:
    return key_without_names(treecaps.parse_code(code, language))


CODE = "int f(int a, int b) { return a - b * 2; }"


@pytest.mark.parametrize(
    "code",
    [
        "int g(int x, int y)\n{\n    /* a remark */\n    return x - y * 2;\n}\n",
        "int f(int b, int a) { return b - a * 2; }",
    ],
)
def test_names_and_layout_do_not_change_the_key(code: str) -> None:
    assert key(code) == key(CODE)


@pytest.mark.parametrize(
    "code",
    [
        "int f(int a, int b) { return b - a * 2; }",
        "int f(int a, int b) { return a - a * 2; }",
        "int f(int a, int b) { return a - b * 3; }",
        "int f(int a, int b) { return a + b * 2; }",
        "long f(int a, int b) { return a - b * 2; }",
        "int f(int a, int b) { ; return a - b * 2; }",
    ],
)
def test_all_else_changes_the_key(code: str) -> None:
    assert key(code) != key(CODE)


def test_names_of_others_are_words_and_own_names_are_not() -> None:
    def hashes(code: str) -> set[int]:
        return set(find_pieces(treecaps.parse_code(code, "python")).hashes.tolist())

    assert hashes("a = max(3, 4)") == hashes("b = max(3, 4)")
    assert hashes("a = max(3, 4)") != hashes("a = min(3, 4)")
    assert hashes("a = max(3, 4)") != hashes("a = max(3, 5)")
