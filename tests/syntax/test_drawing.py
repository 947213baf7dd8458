from xml.dom import minidom

import numpy as np
from hypothesis import given

from tests.trees import random_trees
from treecaps.syntax.drawing import to_svg
from treecaps.syntax.parse import parse_code
from treecaps.syntax.tree import Tree


def texts(svg: str) -> list[str]:
    found = []
    for element in minidom.parseString(svg).getElementsByTagName("text"):
        spans = element.getElementsByTagName("tspan")
        inner = [span.firstChild for span in spans]
        found.append(" ".join(text.data for text in inner if isinstance(text, minidom.Text)))
    return found


def test_every_node_has_its_name_and_leaves_their_text() -> None:
    tree = parse_code("int f(void) { return x < 1; }", "c")
    shown = texts(to_svg(tree))
    assert len(shown) == len(tree)
    assert "identifier f" in shown
    assert "binary_expression" in shown
    assert '"<"' in shown


@given(random_trees())
def test_any_tree_gives_well_formed_pictures(tree: Tree) -> None:
    svg = minidom.parseString(to_svg(tree).encode())
    assert len(svg.getElementsByTagName("text")) == len(tree)
    assert len(svg.getElementsByTagName("path")) == len(tree) - 1


@given(random_trees())
def test_no_two_nodes_share_a_place(tree: Tree) -> None:
    svg = minidom.parseString(to_svg(tree).encode())
    places = {
        (text.getAttribute("x"), text.getAttribute("y"))
        for text in svg.getElementsByTagName("text")
    }
    assert len(places) == len(tree)


def test_errors_are_marked() -> None:
    assert 'class="error"' in to_svg(parse_code("int f( {", "c"))
    assert 'class="error"' not in to_svg(parse_code("int f;", "c"))


def test_long_texts_are_shortened() -> None:
    shown = texts(to_svg(parse_code(f'char *s = "{"x" * 500}";', "c")))
    assert max(map(len, shown)) < 80


def test_deep_and_wide_trees_are_drawn() -> None:
    for parent in (np.arange(-1, 4999), np.r_[-1, np.zeros(4999, int)]):
        assert to_svg(Tree.build(["a"] * 5000, parent)).count("<text") == 5000
