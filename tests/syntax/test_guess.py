from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from treecaps.syntax.guess import guess_language
from treecaps.syntax.languages import LANGUAGES, language_of_file


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_told(path: Path) -> None:
    assert guess_language(path.read_bytes()) == language_of_file(path.name).name


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("def f(x):\n    return x + 1\n", "python"),
        ("let f = (x: number): number => x + 1;", "typescript"),
        ("const f = x => x + 1;", "javascript"),
        ("fn f(x: i32) -> i32 { x + 1 }", "rust"),
        ("def f(x)\n  x + 1\nend\n", "ruby"),
        ("<?php function f($x) { return $x + 1; }", "php"),
        ("template <class T> T f(T x) { return x + 1; }", "cpp"),
        ("fun f(x: Int): Int = x + 1", "kotlin"),
        ("func f(_ x: Int) -> Int { x + 1 }", "swift"),
        ("package a\n\nfunc f(x int) int { return x + 1 }\n", "go"),
    ],
)
def test_a_line_may_be_enough(code: str, language: str) -> None:
    assert guess_language(code) == language


@pytest.mark.parametrize("code", ["", "\n", "(((((", "\0\x01", "é" * 5000, "{" * 100_000])
def test_anything_gets_some_language(code: str) -> None:
    assert guess_language(code) in LANGUAGES
