import gzip
import json
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from treecaps.errors import ProgramError
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.syntax.rewrite import rewrite

PARSER = get_frontend(comments=True)
SEEDS = range(6)


def ways(code: str, language: str) -> set[str]:
    """All that a small program may become."""
    program = Program(code, language)
    return {rewrite(program, seed).text.decode() for seed in range(60)}


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("c", "int x = a < b[i + 1];", "int x = b[i + 1] > a;"),
        ("c", "int x = p->a >= 'c';", "int x = 'c' <= p->a;"),
        ("javascript", "x = a.b !== null;", "x = null !== a.b;"),
        ("python", "x = a == 'b'", "x = 'b' == a"),
        ("ruby", "x = @a <= 3", "x = 3 >= @a"),
        ("rust", "fn f() { g = a.b != c; }", "fn f() { g = c != a.b; }"),
        ("kotlin", "val x = a > b.c", "val x = b.c < a"),
        ("swift", "let x = a > b.c", "let x = b.c < a"),
        ("c", "void f() { i++; }", "void f() { i += 1; }"),
        ("c_sharp", "--i;", "i -= 1;"),
        ("java", "class A { void f() { for (;;++i) {} } }",
         "class A { void f() { for (;;i += 1) {} } }"),
        ("go", "package a\nfunc f() { i-- }", "package a\nfunc f() { i -= 1 }"),
        ("php", "<?php $i = 0; $i++;", "<?php $i = 0; $i += 1;"),
        ("cpp", "void f() { for (int i = 0;; ++i) {} }",
         "void f() { for (int i = 0;; i += 1) {} }"),
        ("c", "void f() { x *= y; }", "void f() { x = x * y; }"),
        ("c", "void f() { x -= y - 1; }", "void f() { x = x - (y - 1); }"),
        ("go", "package a\nfunc f() { x = x + y*z }", "package a\nfunc f() { x += y*z }"),
        ("java", "class A { void f() { x = x + y; } }", "class A { void f() { x += y; } }"),
        ("python", "n = 0\nn += 2", "n = 0\nn = n + 2"),
        ("python", "n = 0\nn = n - 2", "n = 0\nn -= 2"),
        ("swift", "var n = 0; n += 1", "var n = 0; n = n + 1"),
        ("rust", "fn f() { let mut n = 0; n += 1; }", "fn f() { let mut n = 0; n = n + 1; }"),
        ("c", "int f() { return a; }", "int f() { return (a); }"),
        ("c", "int f() { return(a); }", "int f() { return a; }"),
        ("python", "def f():\n    return(a + 1)", "def f():\n    return a + 1"),
        ("go", "package a\nfunc f() int { return a }", "package a\nfunc f() int { return (a) }"),
        ("c", "void f() { if (a) { b(); } else { c(); } }",
         "void f() { if (!(a)) { c(); } else { b(); } }"),
        ("cpp", "void f() { if (a()) {} else { c(); } }",
         "void f() { if (!(a())) { c(); } else {} }"),
        ("c_sharp", "if (a) { b(); } else { c(); }", "if (!(a)) { c(); } else { b(); }"),
        ("kotlin", "val x = if (a) { b } else { c }", "val x = if (!(a)) { c } else { b }"),
        ("go", "package a\nfunc f() { if a { b() } else { c() } }",
         "package a\nfunc f() { if !(a) { c() } else { b() } }"),
        ("rust", "fn f() { if a { b } else { c } }", "fn f() { if !(a) { c } else { b } }"),
        ("python", "if a:\n    b\n    c\nelse:\n    d\n",
         "if not (a):\n    d\nelse:\n    b\n    c\n"),
    ],
)  # fmt: skip
def test_what_is_written_in_another_way(language: str, code: str, expected: str) -> None:
    assert ways(code, language) == {code, expected}


@pytest.mark.parametrize(
    ("language", "code"),
    [
        # Whoever is called first may matter.
        ("c", "int x = f() < g();"),
        ("c", "int x = a[i++] < b;"),
        ("python", "x = a < b < c"),
        ("python", "x = f'{g()}' == b"),
        ("ruby", "x = a.b == c"),
        ("c_sharp", "f(b > a, c > (d));"),
        # A value that is asked for, or no number.
        ("c", "void f() { x = i++; }"),
        ("c", "void f() { for (; i--;) {} }"),
        ("c", "void f() { *p++; a[i]++; }"),
        ("cpp", "void f() { it++; }"),
        ("javascript", "s++"),
        ("javascript", "let n = 0n; n++;"),
        # Lists that others have, narrow numbers, calls.
        ("python", "x += [1]"),
        ("python", "x = x + y"),
        ("python", "x = 0\ny = x = x + 1"),
        ("cpp", "void f() { s += 'a'; }"),
        ("java", "class A { void f() { b += 1; } }"),
        ("c", "void f() { x += g(); }"),
        ("c", "void f() { x = x - a - b; y = x + y; x <<= 1; }"),
        ("kotlin", "fun f() { list += 1 }"),
        # What a macro stands for may bind less than it seems.
        ("c", "#define M a + b\nvoid f() { x *= M; x = x - M; y = c < t[M].d; }"),
        # What needs its parentheses, or cannot have any.
        ("python", "def f():\n    return (yield)"),
        ("python", "def f():\n    return a, b"),
        ("javascript", "function f() { return (\n  a\n); }"),
        ("cpp", "A f() { return {1, 2}; }"),
        ("go", "package a\nfunc f() (int, int) { return a, b }"),
        # Chains, declarations, other margins.
        ("c", "void f() { if (a) { b(); } else if (c) { d(); } }"),
        ("c", "void f() { if (a) b(); else { c(); } }"),
        ("c", "void f() { if (a) { b(); } /* c */ else { d(); } }"),
        ("cpp", "void f() { if (int a = g()) { b(); } else { c(); } }"),
        ("cpp", "void f() { if constexpr (a) { b(); } else { c(); } }"),
        ("go", "package a\nfunc f() { if x := g(); x { b() } else { c() } }"),
        ("rust", "fn f() { if let Some(a) = b { c } else { d } }"),
        ("python", "if a:\n    b\nelse:\n  c"),
        ("python", "if a: b\nelse: c"),
        ("python", "if a:\n    b\nelif c:\n    d\nelse:\n    e"),
        # What the parser does not understand.
        ("c", "void f() { i++; } )"),
    ],
)
def test_what_stays_as_it_is(language: str, code: str) -> None:
    assert ways(code, language) == {code}


def test_what_is_exchanged_is_changed_inside() -> None:
    code = "int f() { if (a) { return b; } else { if (c) { d(); } else { i++; } } }"
    found = ways(code, "c")
    assert (
        "int f() { if (!(a)) { if (c) { d(); } else { i += 1; } } else { return (b); } }" in found
    )
    assert "int f() { if (a) { return (b); } else { if (!(c)) { i++; } else { d(); } } }" in found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_parse_as_well_as_before(path: Path) -> None:
    program = Program.read(path, label="x")
    errors = len(PARSER.parse(program).errors)
    for seed in SEEDS:
        after = rewrite(program, seed)
        assert (after.id, after.label, after.language) == (program.id, "x", program.language)
        assert len(PARSER.parse(after).errors) <= errors
        assert after == rewrite(program, seed)


def test_most_examples_are_changed() -> None:
    programs = list(map(Program.read, EXAMPLES))
    changed = {
        program.id
        for program in programs
        for seed in SEEDS
        if rewrite(program, seed).text != program.text
    }
    languages = {program.language for program in programs if program.id in changed}
    assert len(changed) > 0.8 * len(programs)
    assert languages == set(LANGUAGES) - {"tsx"}


PYTHON = """
def steps(n):
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return (count)

shared = [1]
other = shared
other += [2]
for first in range(1, 12):
    for second in (3, 5, 8):
        if first < second:
            print(first, "is less", steps(first))
            if first == 4:
                print("four")
            else:
                print(first >= second)
        else:
            print(second, '''is
less''', steps(second), shared)
"""

C = """
#include <stdio.h>
int twice(int a) { return a + a; }
int main(void)
{
    int sum = 0, i, a[10];
    for (i = 0; i < 10; i++) {
        a[i] = i * i % 7;
        if (a[i] >= 3) { sum += a[i] - 1; } else { sum = sum - twice(i) * 2; }
        if (sum == a[i] || a[i] != 2) { printf("%d ", sum); --sum; } else { sum *= 2 + i; }
    }
    while (i--) sum -= i;
    printf("%d\\n", sum);
    return (sum != 0);
}
"""

PYTHON_EXAMPLES = [path.read_text() for path in EXAMPLES if path.suffix == ".py"]
C_EXAMPLES = [path.read_text() for path in EXAMPLES if path.suffix == ".c"]


@pytest.mark.parametrize("code", [PYTHON, *PYTHON_EXAMPLES])
def test_python_does_the_same_afterwards(code: str) -> None:
    answers = []
    for text in {code, *sorted(ways(code, "python"))[:5]}:
        words = [sys.executable, "-I", "-c", text]
        done = subprocess.run(words, capture_output=True, check=False, input=b"")
        answers.append((done.returncode, done.stdout))
    assert answers == [answers[0]] * len(answers)
    assert answers[0][0] == 0
    assert answers[0][1]


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
@pytest.mark.parametrize("code", [C, *C_EXAMPLES])
def test_c_does_the_same_afterwards(code: str, tmp_path: Path) -> None:
    answers = []
    for text in {code, *sorted(ways(code, "c"))[:5]}:
        (tmp_path / "a.c").write_text(text)
        subprocess.run(["gcc", "-w", "-o", "a", "a.c"], cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / "a"], capture_output=True, check=False, input=b"")
        answers.append((done.returncode, done.stdout))
    assert answers == [answers[0]] * len(answers)
    assert len(answers) > 1
    assert answers[0][1]


@pytest.mark.parametrize("language", LANGUAGES)
@given(code=st.text() | st.text(alphabet="(){}[]<>'\"/*\n ;:,.=+-!ab1$@if"), seed=st.integers(0, 9))
@settings(max_examples=15)
def test_any_text_becomes_a_program(language: str, code: str, seed: int) -> None:
    try:
        program = Program(code, language)
    except ProgramError:
        return
    after = rewrite(program, seed)
    assert after == rewrite(program, seed)
    assert len(PARSER.parse(after).errors) <= len(PARSER.parse(program).errors)


def test_long_and_deep_programs_take_no_longer_than_their_size() -> None:
    code = "void f() { " + "i++; " * 20_000 + "x += " + "(" * 5000 + "a" + ")" * 5000 + "; }"
    after = rewrite(Program(code, "c"), 0).text
    assert 5000 < after.count(b"i += 1; ") < 15_000
    deep = "if (a) {" * 300 + "} else { b(); }" * 300
    assert b"!(a)" in rewrite(Program(deep, "javascript"), 0).text


@pytest.mark.shared
@pytest.mark.parametrize("data", ["atlas", "java-sort", "poj104", "python-algorithms"])
def test_real_programs_parse_as_well_as_before(shared: Path, data: str) -> None:
    with gzip.open(shared / data / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in islice(file, 0, 2400, 20)]
    changed = 0
    for record in records:
        program = Program(record["code"], record["language"])
        after = rewrite(program, 0)
        changed += after.text != program.text
        assert len(PARSER.parse(after).errors) <= len(PARSER.parse(program).errors)
    assert changed > 0.7 * len(records)
