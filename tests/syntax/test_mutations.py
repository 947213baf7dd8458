from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import EXAMPLES
from treecaps import Tree, parse_code, parse_file
from treecaps.syntax.functions import find_functions
from treecaps.syntax.mutations import KINDS, LANGUAGES, Mutant, mutate, node_at

_ENDINGS = (".py", ".java", ".c", ".cpp", ".js")
FILES = [path for path in EXAMPLES if path.suffix in _ENDINGS]


def mutants(tree: Tree, kind: str | None = None, seeds: int = 12) -> Iterator[Mutant]:
    for seed in range(seeds):
        found = mutate(tree, np.random.default_rng(seed), wanted=kind)
        if found:
            yield found


def ways(code: str, language: str, kind: str) -> set[str]:
    """All that a small program may become by one kind of mistake."""
    return {one.tree.text.decode() for one in mutants(parse_code(code, language), kind, 80)}


@pytest.mark.parametrize(
    ("language", "kind", "code", "expected"),
    [
        ("python", "variable", "def f(a, b):\n    c = a.b + g(b=1)\n",
         {"def f(a, b):\n    c = b.b + g(b=1)\n"}),
        ("java", "variable", "class A { int f(int a, long b) { return a; } }",
         {"class A { int f(int a, long b) { return b; } }"}),
        ("c", "variable", "int f(int a, int *b) { { int c; } return a; }",
         {"int f(int a, int *b) { { int c; } return b; }"}),
        ("cpp", "variable", "int f(int a, int &b) { return a.g(c::d); }",
         {"int f(int a, int &b) { return b.g(c::d); }"}),
        ("javascript", "variable", "function f(a, b) { let c = 1; return a.b; }",
         {"function f(a, b) { let c = 1; return b.b; }",
          "function f(a, b) { let c = 1; return c.b; }"}),
        ("python", "operator", "x = a // b", {"x = a / b", "x = a % b"}),
        ("java", "operator", "class A { boolean b = x && y; }",
         {"class A { boolean b = x || y; }"}),
        ("cpp", "operator", "void f() { cin >> a; }", set()),
        ("python", "negated condition", "if a == b:\n    c\n", {"if a != b:\n    c\n"}),
        ("c", "negated condition", "void f() { while (!a) b(); }", {"void f() { while (a) b(); }"}),
        ("cpp", "negated condition", "void f() { if (a()) b(); }", {"void f() { if (!a()) b(); }"}),
        ("javascript", "missing condition", "x = a && b;", {"x = a;", "x = b;"}),
        ("python", "off by one", "x = 3", {"x = 2", "x = 4"}),
        ("c", "off by one", "int x = n - 1;", {"int x = n;"}),
        ("python", "swapped arguments", "f(a, b, c=d)", {"f(b, a, c=d)"}),
        ("java", "swapped arguments", "class A { int x = f(a, 1); }",
         {"class A { int x = f(1, a); }"}),
        ("c", "index", "int x = a[i];", {"int x = a[i + 1];", "int x = a[i - 1];"}),
        ("cpp", "index", "int x = a[i + 1];", {"int x = a[i];"}),
        ("python", "literal", "x = True", {"x = False"}),
        ("javascript", "literal", "x = 'a' + 'b';", {"x = 'b' + 'b';", "x = 'a' + 'a';"}),
        ("python", "missing statement", "if a:\n    f()\n    g()\n",
         {"if a:\n    g()\n", "if a:\n    f()\n"}),
        ("python", "missing statement", "if a:\n    f()\n", set()),
        ("c", "missing statement", "void f() { g(); }", {"void f() { }"}),
        ("java", "moved statement", "class A { void f() { a(); b(); } }",
         {"class A { void f() { b(); a(); } }"}),
        ("c", "missing jump", "void f() { switch (a) { case 1: g(); break; case 2: h(); } }",
         {"void f() { switch (a) { case 1: g(); case 2: h(); } }"}),
        ("c", "type", "long long x;", {"int x;"}),
    ],
)  # fmt: skip
def test_what_each_kind_of_mistake_makes(
    language: str, kind: str, code: str, expected: set[str]
) -> None:
    assert ways(code, language, kind) == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_mutant_parses_is_another_program_and_its_place_is_known(path: Path) -> None:
    tree = parse_file(path)
    kinds = set()
    for found in mutants(tree):
        kinds.add(found.kind)
        again = parse_code(found.tree.text, tree.language)
        assert again == found.tree
        assert not len(again.errors)
        assert again.text != tree.text
        start, end = found.start, found.end
        # Before the place nothing is changed; what is written there is in its node.
        assert again.text[:start] == tree.text[:start]
        if start < end:
            assert again.start[found.node] <= start < end <= again.end[found.node]
        else:
            assert again.start[found.node] >= start
        if found.expected and found.kind != "missing statement":
            mended = again.text[:start] + found.expected + again.text[end:]
            assert found.kind == "missing jump" or mended == tree.text
    assert len(kinds) > 3
    assert kinds <= set(KINDS)


def test_all_languages_have_files() -> None:
    assert {parse_file(path).language for path in FILES} == set(LANGUAGES)


def test_the_same_seed_gives_the_same() -> None:
    tree = parse_file(FILES[0])
    one, other = (mutate(tree, np.random.default_rng(3)) for _ in range(2))
    assert one is not None
    assert other is not None
    assert (one.kind, one.tree.text) == (other.kind, other.tree.text)


@pytest.mark.parametrize(
    ("code", "language"), [("", "python"), ("x", "python"), ("fn f() { a + b; }", "rust")]
)
def test_where_nothing_can_be_changed_there_is_no_mutant(code: str, language: str) -> None:
    assert mutate(parse_code(code, language), np.random.default_rng(0)) is None


def test_a_mutant_of_a_function_alone() -> None:
    for path in FILES:
        for function in find_functions(parse_file(path)):
            for found in mutants(function.tree, seeds=3):
                assert found.tree.text != function.tree.text


def test_the_node_of_a_span_is_the_innermost_that_holds_it() -> None:
    tree = parse_code("x = a + b\ny = 1\n", "python")
    names = tree.kind_names()
    assert names[node_at(tree, 4, 5)] == "identifier"
    assert names[node_at(tree, 4, 9)] == "binary_operator"
    slow = [node for node in range(len(tree)) if tree.start[node] <= 4 and tree.end[node] >= 9]
    assert node_at(tree, 4, 9) == slow[-1]
    assert tree.token(node_at(tree, 10, 10)) == "y"
    assert tree.token(node_at(tree, 99, 99)) == "1"
