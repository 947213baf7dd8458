import pytest

import treecaps
from tests.conftest import EXAMPLES
from treecaps.errors import UsageError
from treecaps.search.query import Lines, select
from treecaps.syntax.functions import find_functions
from treecaps.syntax.tree import Tree

CODE = """import os

def first(a):
    b = a + 1
    c = b * 2
    return c

def second():
    return 3
"""


def parse(code: str = CODE, language: str = "python") -> Tree:
    return treecaps.parse_code(code, language)


def cut(first: int, last: int) -> Tree:
    return select(parse(), Lines(first, last), functions=False)


@pytest.mark.parametrize("file", EXAMPLES[::7], ids=lambda path: path.name)
def test_the_lines_of_a_function_are_that_function(file: object) -> None:
    tree = treecaps.parse_file(str(file))
    for function in find_functions(tree):
        lines = Lines(function.line, function.line + function.tree.text.rstrip().count(b"\n"))
        before = tree.text[: tree.start[function.node]].rpartition(b"\n")[2]
        after = tree.text[tree.end[function.node] :].partition(b"\n")[0]
        if not before.strip() and not after.strip():
            chosen = select(tree, lines, functions=True)
            assert chosen.kind_names() == function.tree.kind_names()
            assert chosen.tokens() == function.tree.tokens()


def test_some_statements_stand_below_what_holds_them() -> None:
    chosen = cut(4, 5)
    chosen.check()
    assert chosen.kind_names()[0] == "block"
    assert chosen.text == b"b = a + 1\n    c = b * 2"
    assert [token for token in chosen.tokens() if token] == list("b=a+1c=b*2")
    assert int(chosen.child_count[0]) == 2


def test_one_statement_is_itself() -> None:
    assert cut(6, 6).kind_names()[0] == "return_statement"
    assert cut(5, 7) == select(parse(), Lines(5, 6), functions=False)


def test_lines_across_functions_hold_whole_pieces_alone() -> None:
    chosen = cut(6, 9)
    chosen.check()
    assert chosen.kind_names()[0] == "module"
    assert [token for token in chosen.tokens() if token][:2] == ["return", "c"]


def test_all_lines_are_the_program() -> None:
    assert cut(1, 9).kind_names() == parse().kind_names()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (Lines(10, 12), "there are no lines 10-12: the program has lines 1-9"),
        (Lines(0, 3), "there are no lines 0-3"),
        (Lines(5, 4), "there are no lines 5-4"),
        (Lines(2, 2), "lines 2-2 hold no whole piece of code"),
    ],
)
def test_lines_that_are_none(lines: Lines, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        select(parse(), lines, functions=False)


def test_one_function_stands_for_its_file_among_functions() -> None:
    code = "// the greatest\nint max(int a, int b) {\n  return a > b ? a : b;\n}\n"
    tree = parse(code, "c")
    assert select(tree, functions=True).kind_names()[0] == "function_definition"
    assert select(tree, functions=False) == tree
    assert select(parse(), functions=True) == parse()
    mostly_else = parse("def f():\n    pass\n" + "x = [1, 2, 3, 4]\n" * 5)
    assert select(mostly_else, functions=True) == mostly_else
