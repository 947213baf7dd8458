from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treecaps
from tests.conftest import EXAMPLES
from tests.trees import random_trees
from treecaps.syntax import common
from treecaps.syntax.common import common_kind, to_common
from treecaps.syntax.tree import Tree

Nested = tuple[str, int, list["Nested"]]

OTHERS = ("name", "program", "break", "continue")
WORDS = [
    *("function_definition", "block", "if_statement", "assignment", "call", "argument_list"),
    *("type_identifier", "identifier", "string", "expression_statement", "binary_expression"),
    *('"+"', '"="', '"++"', '"("', '"break"', "ERROR", "preproc_region", "unheard_of", "integer"),
]


@st.composite
def program_trees(draw: st.DrawFn) -> Tree:
    """Draw a tree of any shape whose kinds are in the table."""
    tree = draw(random_trees())
    size = len(tree)
    kinds = draw(st.lists(st.sampled_from(WORDS), min_size=size, max_size=size))
    return Tree.build(kinds, tree.parent, text=tree.text, start=tree.start, end=tree.end)


def slow_common(tree: Tree) -> list[Nested]:
    """Return the common tree as nested tuples of kind, node and children, by plain recursion."""
    names = tree.kind_names()
    children: list[list[int]] = [[] for _ in names]
    for node in range(1, len(names)):
        children[tree.parent[node]].append(node)

    def is_remark(node: int) -> bool:
        if names[node] in ("preproc_region", "preproc_endregion"):
            return True
        return names[node] == "expression_statement" and any(
            names[child] == "string" for child in children[node]
        )

    def convert(node: int) -> Iterator[Nested]:
        act, kind = common._look_up(names[node])
        if node == 0 and (act != common._KEEP or is_remark(node)):
            act, kind = common._KEEP, "program"
        elif is_remark(node) or act in (common._LEAVE_OUT, common._SIGN):
            return
        inside = [one for child in children[node] for one in convert(child)]
        if act == common._WRAP:
            yield from inside
            return
        if kind in common._WITH_SIGN:
            found = [common._look_up(names[child]) for child in children[node]]
            signs = [
                sign
                for child, (act, sign) in zip(children[node], found, strict=True)
                if act == common._SIGN and not is_remark(child)
            ]
            kind = signs[-1] if signs else kind
        if kind == "assign" and len(inside) == 1 and node:
            yield from inside
        else:
            yield kind, node, inside

    return list(convert(0))


def fast_common(tree: Tree) -> list[Nested]:
    found = to_common(tree)
    every = {*tree.kinds, *common._COMMON, *common._SIGNS.values()}
    names = {int(common_kind(kind)): kind for kind in (*every, *OTHERS)}
    nested: list[Nested] = [
        (names[int(kind)], int(node), []) for kind, node in zip(found.kind, found.node, strict=True)
    ]
    for number in range(1, len(nested)):
        nested[found.parent[number]][2].append(nested[number])
    assert found.parent[0] == -1
    return nested[:1]


@given(program_trees())
def test_random_trees_are_those_of_plain_recursion(tree: Tree) -> None:
    assert fast_common(tree) == slow_common(tree)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_programs_are_those_of_plain_recursion(path: Path) -> None:
    tree = treecaps.parse_file(path)
    assert fast_common(tree) == slow_common(tree)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_most_kinds_of_programs_are_in_the_table(path: Path) -> None:
    tree = treecaps.parse_file(path)
    found = to_common(tree)
    known = {*common._COMMON, *common._SIGNS.values(), *OTHERS}
    numbers = np.array([common_kind(kind) for kind in sorted(known)])
    assert np.isin(found.kind, numbers).mean() > 0.95


def test_no_kind_is_in_two_lists() -> None:
    words = [word for words in common._COMMON.values() for word in words.split()]
    words += common._WRAPPERS.split() + common._LEFT_OUT.split()
    assert sorted({word for word in words if words.count(word) > 1}) == []


def outline(code: str, language: str) -> str:
    def write(nested: Nested) -> str:
        kind, _, inside = nested
        return f"{kind}({' '.join(map(write, inside))})" if inside else kind

    return write(fast_common(treecaps.parse_code(code, language))[0])


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("c", "int f(int n) { int s = 0; while (s < n) { s += g(s); } return s; }"),
        ("cpp", "long f(long n) { auto s = 0L; while (n > s) s += g(s); return (s); }"),
        (
            "python",
            "def f(n):\n    '''Say'''\n    s=0\n    while s < n: s += g(s)\n    return s",
        ),
        ("javascript", "function f(n) { let s = 0; while (s < n) { s += g(s); } return s; }"),
        (
            "typescript",
            "function f(n: any) { let s: number = 0; while (s < n) s += g(s); return s; }",
        ),
        ("go", "func f(n int) int { s := 0\nfor s < n { s += g(s) }\nreturn s }"),
        ("rust", "fn f(n: i32) -> i32 { let mut s = 0; while s < n { s += g(s); } return s; }"),
        ("kotlin", "fun f(n: Int): Int { var s = 0\nwhile (s < n) { s += g(s) }\nreturn s }"),
        ("ruby", "def f(n)\n  s = 0\n  while s < n\n    s += g(s)\n  end\n  return s\nend"),
        ("php", "<?php function f($n) { $s = 0; while ($s < $n) { $s += g($s); } return $s; }"),
    ],
)
def test_languages_have_the_same_tree_of_the_same_code(language: str, code: str) -> None:
    assert outline(code, language) == (
        "program(function(name name assign(name number)"
        " loop(<(name name) +=(name call(name name))) return(name)))"
    )
