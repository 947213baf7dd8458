import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from treecaps.errors import ProgramError
from treecaps.syntax.frontends.python_ast import AstFrontend
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

FRONTEND = AstFrontend()
PYTHON = [path for path in EXAMPLES if path.suffix == ".py"]
TRICKY = '''
import os.path as p, sys
@decorated
@with_arguments(1, key="é")
async def grün(a: int, *rest, k=3, **more) -> "x":
    """Text."""
    async with open(f"{a!r:>{k}} and {b + 1}") as file: pass
    return [x.y . z for x in a if not x] + {1: b"2", **c}
class A(B, metaclass=C):
    x: int = (yield)
    def f(self): global q; q = lambda: 0; del self.a[1:2, ...]
match a:
    case {"k": [1, *_]} | A(x=0): a @= b
    case _: raise E from e
'''


def parse(code: str | bytes) -> Tree:
    return FRONTEND.parse(Program(code, "python"))


def own_kinds(node: ast.AST) -> list[object]:
    """The kinds of a tree as nested lists, by plain recursion."""
    return [type(node).__name__, *(own_kinds(child) for child in ast.iter_child_nodes(node))]


def kinds_of(tree: Tree) -> list[object]:
    nested: list[list[object]] = [[name] for name in tree.kind_names()]
    for node in range(1, len(tree)):
        nested[tree.parent[node]].append(nested[node])
    return nested[0]


@pytest.mark.parametrize("code", [TRICKY, *(path.read_text() for path in PYTHON)])
def test_trees_equal_the_parsers_own(code: str) -> None:
    tree = parse(code)
    tree.check()
    assert kinds_of(tree) == own_kinds(ast.parse(code))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_names_and_constants_are_leaf_tokens(ending: str, mark: bytes) -> None:
    code = TRICKY.replace('f"{a!r:>{k}} and {b + 1}"', "name").replace("\n", ending)
    tree = parse(mark + code.encode())
    expected = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            expected.append(node.id)
        elif isinstance(node, ast.Attribute):
            expected.append(node.attr)
        elif isinstance(node, ast.Constant):
            expected.append(ast.get_source_segment(code, node) or "")
    found = [
        tree.token(node)
        for node, name in enumerate(tree.kind_names())
        if name in ("Load", "Store", "Del", "Constant") and tree.token(node)
    ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_children_lie_within_their_parents(path: Path) -> None:
    for code in (path.read_text(), TRICKY):
        tree = parse(code)
        parent = tree.parent[1:]
        assert (tree.start[parent] <= tree.start[1:]).all()
        assert (tree.end[1:] <= tree.end[parent]).all()


def test_decorators_belong_to_their_definition() -> None:
    tree = parse("@d\ndef f(): pass\n")
    assert tree.start[tree.kind_names().index("FunctionDef")] == 0


def test_an_empty_program_is_one_node() -> None:
    assert parse("").kind_names() == ["Module"]


@pytest.mark.parametrize(
    "code",
    [
        "print 'hello'",
        'print "%d" % x',
        "print x",
        "exec 'code'",
        "try: pass\nexcept E, e: pass",
        "raise E, 'text'",
        "if a <> b: pass",
        "x = `a`",
        "x = 0777",
        "x = ur'abc'",
        "x = 10L",
        "def f((a, b)): pass",
        "f = lambda (a, b): a",
        "x = `a.b`",
    ],
)
def test_python_2_is_recognised(code: str) -> None:
    with pytest.raises(ProgramError, match=r'this is Python 2.*frontend="tree-sitter"') as caught:
        parse(code)
    assert caught.value.code == "syntax"


@pytest.mark.parametrize(
    "code",
    [
        "def f(:",
        "x = (",
        "  x",
        "return = 1",
        "a b",
        "a b # date: 2019-01-05",
        "assert '<>' in a b",
    ],
)
def test_broken_code_is_refused_with_its_line(code: str) -> None:
    with pytest.raises(ProgramError, match=r'line 2: (?!.*Python 2).*frontend="tree-sitter"'):
        parse("# first\n" + code)


@pytest.mark.parametrize("code", ["-" * 100_000 + "1", "1" + "+1" * 100_000, "a" + ".b" * 100_000])
def test_deep_nesting_is_an_error_of_its_own(code: str) -> None:
    with pytest.raises(ProgramError, match="nested too deeply") as caught:
        parse(code)
    assert caught.value.code == "too-deep"


def test_brackets_nested_deep_are_refused() -> None:
    with pytest.raises(ProgramError, match="too many nested parentheses"):
        parse("(" * 100_000)


def test_numbers_beyond_pythons_limit_are_refused() -> None:
    with pytest.raises(ProgramError, match="limit"):
        parse("x = " + "9" * 5000)


def test_odd_escapes_warn_nobody() -> None:
    assert len(parse(r"x = '\d'")) > 1


def test_other_languages_are_refused() -> None:
    with pytest.raises(ProgramError, match="the ast front end does not read c ") as caught:
        FRONTEND.parse(Program("int a;", "c"))
    assert caught.value.code == "unsupported-language"


@given(st.text() | st.binary(max_size=200))
def test_any_input_gives_a_tree_or_an_error(code: str | bytes) -> None:
    try:
        parse(code).check()
    except ProgramError as error:
        assert str(error)
