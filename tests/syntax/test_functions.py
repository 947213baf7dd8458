from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from treecaps.syntax import functions
from treecaps.syntax.functions import find_functions
from treecaps.syntax.parse import parse_code, parse_file


@pytest.mark.parametrize(
    ("language", "code", "names"),
    [
        ("python", "def f(x):\n    def g(): pass\n\nclass A:\n    def m(self): pass\n", "f m"),
        ("c", "static int *f(int a) { return 0; }\nint main(void) { return 0; }", "f main"),
        ("cpp", "void A::g() {}\nstruct B { ~B() {} };", "A::g ~B"),
        ("java", "class A { A() {} public List<String> f(int a) { return null; } }", "A f"),
        ("c_sharp", "class S<T> { S() {} public T Pop() { return x; } ~S() {} }", "S Pop S"),
        ("javascript", "const a = { b: function() {}, c() {} };\nlist.map(x => x);", "b c"),
        ("typescript", "const add = (a: number) => a;\nfunction* gen() {}", "add gen"),
        ("go", "package p\nfunc (s *S) Push(x int) {}\nfunc main() {}", "Push main"),
        ("rust", "impl S { fn push(&mut self) {} }\nfn main() {}", "push main"),
        ("ruby", "def self.make(x)\n  1\nend\ndef empty?\n  true\nend", "make empty?"),
        ("php", "<?php function f($x) { return 1; } class A { function g() {} }", "f g"),
        ("kotlin", "fun <T> List<T>.second(): T = this[1]", "second"),
        ("swift", "struct S { init(x: Int) {}\n func push() {} }", "init push"),
    ],
)
def test_functions_by_name(language: str, code: str, names: str) -> None:
    found = find_functions(parse_code(code, language))
    assert [function.name for function in found] == names.split()


@pytest.mark.parametrize(
    ("path", "frontend"),
    [("stack/stack.py", "ast"), ("stack/LinkedStack.java", "srcml"), ("stack/Stack.cpp", "srcml")],
)
def test_other_front_ends_find_the_same(path: str, frontend: str) -> None:
    file = next(example for example in EXAMPLES if example.as_posix().endswith(path))
    usual, other = (find_functions(parse_file(file, frontend=f)) for f in ("tree-sitter", frontend))
    assert [(f.name, f.line) for f in other] == [(f.name, f.line) for f in usual]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_function_is_a_tree_of_its_own(path: Path) -> None:
    tree = parse_file(path)
    lines = tree.text.decode().splitlines()
    found = find_functions(tree)
    assert found
    for function in found:
        function.tree.check()
        assert function.tree.text in tree.text
        assert function.tree.text.decode().splitlines()[0] in lines[function.line - 1]
        assert function.name in function.tree.text.decode() + lines[function.line - 1]


def test_what_has_no_functions_has_none() -> None:
    assert find_functions(parse_code("x = 1", "python")) == []
    assert find_functions(parse_code("", "c")) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_they_are_the_outermost_nodes_of_such_kinds(path: Path) -> None:
    tree = parse_file(path)
    kinds, parent = tree.kind_names(), tree.parent.tolist()

    def is_function(node: int) -> bool:
        if kinds[node] in functions._ANONYMOUS:
            return kinds[parent[node]] in functions._HOLDERS
        return kinds[node] in functions._FUNCTIONS

    def above(node: int) -> list[int]:
        return [] if parent[node] < 0 else [parent[node], *above(parent[node])]

    expected = [
        node
        for node in range(len(tree))
        if is_function(node) and tree.child_count[node] and not any(map(is_function, above(node)))
    ]
    assert [function.node for function in find_functions(tree)] == expected
