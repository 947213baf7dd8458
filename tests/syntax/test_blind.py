import ast
import gzip
import itertools
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from treecaps.errors import ProgramError
from treecaps.syntax import blind as module
from treecaps.syntax.blind import blind
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.names import is_name
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

FRONTENDS = {name: get_frontend(name) for name in ("tree-sitter", "ast", "srcml")}
WITH_COMMENTS = get_frontend(comments=True)


def make_blind(code: str, language: str) -> str:
    return blind(Program(code, language)).text.decode()


def shape(tree: Tree) -> list[tuple[int, str]]:
    """Depths and kinds, without the leaf that says a name is spelled as a keyword elsewhere."""
    kinds, start, end = tree.kind_names(), tree.start, tree.end
    return [
        (depth, kinds[node])
        for node, (depth, parent) in enumerate(
            zip(tree.depth.tolist(), tree.parent.tolist(), strict=True)
        )
        if not (
            kinds[node].startswith('"')
            and is_name(kinds[parent])
            and (start[node], end[node]) == (start[parent], end[parent])
        )
    ]


def shape_of(program: Program, frontend: str = "tree-sitter") -> list[tuple[int, str]]:
    return shape(FRONTENDS[frontend].parse(program))


def names_of(program: Program) -> list[str]:
    """The names of a program, in order, without their signs."""
    tree = WITH_COMMENTS.parse(program)
    kept = module._KEPT.get(program.language, frozenset())
    return [
        word
        for kind, token in zip(tree.kind_names(), tree.tokens(), strict=True)
        if is_name(kind)
        for word in re.findall(r"[^\W\d]\w*", token)
        if word.encode() not in kept and word != "_"
    ]


@pytest.fixture
def only_strip(monkeypatch: pytest.MonkeyPatch) -> Callable[[Program], Program]:
    """Remove comments and docstrings, and leave the names."""

    def strip(program: Program) -> Program:
        with monkeypatch.context() as patch:
            patch.setattr(module._Names, "_rename_word", lambda names, word, every=False: word)
            return blind(program)

    return strip


def has_comments(program: Program) -> bool:
    return any(kind.endswith("comment") for kind in WITH_COMMENTS.parse(program).kind_names())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_keep_their_trees_and_lose_their_names(
    path: Path, only_strip: Callable[[Program], Program]
) -> None:
    program = Program.read(path, label="x")
    after = blind(program)
    assert (after.id, after.label, after.language) == (program.id, "x", program.language)
    stripped = only_strip(program)
    for name, frontend in FRONTENDS.items():
        if program.language in frontend.languages():
            assert shape_of(after, name) == shape_of(stripped, name)
    if program.language != "python":
        assert shape_of(after) == shape_of(program)
    assert not has_comments(after)
    old, new = names_of(stripped), names_of(after)
    assert not set(old) & set(new)
    assert len(old) == len(new)
    # The same name everywhere, and another one for another.
    assert len(set(zip(old, new, strict=True))) == len(set(old)) == len(set(new))
    assert blind(program) == after
    assert shape_of(blind(after)) == shape_of(after)


class Strip(ast.NodeTransformer):
    """Remove docstrings the slow way."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            while node.body and ast.get_docstring(node) is not None:
                del node.body[0]
            if not node.body and not isinstance(node, ast.Module):
                node.body.append(ast.Pass())
        return node


def stripped_by_ast(code: str) -> str:
    return ast.unparse(Strip().visit(ast.parse(code)))


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.suffix == ".py"])
def test_docstrings_go_as_the_slow_way_says(
    path: Path, only_strip: Callable[[Program], Program]
) -> None:
    program = Program.read(path)
    stripped = only_strip(program).text.decode()
    assert ast.unparse(ast.parse(stripped)) == stripped_by_ast(program.text.decode())


@pytest.mark.parametrize(
    "code",
    [
        '"""A module."""',
        '"""A module."""\nx = 1',
        '#!/usr/bin/python\n# -*- coding: utf-8 -*-\n"A module."\n"Again."\n\nx = 1\n',
        'def f():\n    """Only this."""\n',
        'def f():\n    """Two"""\n    "of them."\n',
        "def f(): 'On a line.'",
        "def f(): 'On a line.'; return 1",
        "def f():\n    'doc' ; x = 1\n    return x",
        'class A:\n    # one\n    r"""Doc"""  # two\n    # three\n    x = 1\n\n    def f(self):\n'
        '        u"Doc" "and more"\n\n        return "no doc"\n',
        'async def f():\n\t"""Doc\n\n# no comment\n\t"""\n\t# one\n\tpass',
        'if x:\n    "no doc"\ndef f():\n    b"no doc"\ndef g():\n    f"{x}"\n    "no doc"\n',
        'x = """no doc"""\nf("no doc")\n',
        "def f(a=1):\n    return a  # one\n\n    # two\n# three\nf()",
        'class A:\n    """Doc."""\n    class B:\n        """Doc."""\n    x = B',
    ],
)
def test_docstrings_of_all_sorts(code: str, only_strip: Callable[[Program], Program]) -> None:
    stripped = only_strip(Program(code, "python")).text.decode()
    assert ast.unparse(ast.parse(stripped)) == stripped_by_ast(code)
    assert "#" not in re.sub('(?s)""".*?"""', "", stripped)


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("c", "int a/**/b; // c\n", "int v0 v1;  \n"),
        ("c", "int f(void) { return/*x*/1; }", "int v0(void) { return 1; }"),
        ("c", "#define N /* a\n b */ 1\nint x;", "#define v0   1\nint v1;"),
        ("c", "#define M 10 // ten\nint a[M];", "#define v0 10  \nint v1[v0];"),
        (
            "c",
            "#define A(x) \\\n  (x /* c */ * x)\nA(1)",
            "#define v0(v1) \\\n  (v1   * v1)\nv0(1)",
        ),
        ("c", "// one\n  /* two\n */\nint a; // end", "int v0;  "),
        ("c", "// a \\\n   goes on\nint a;", "int v0;"),
        ("c", "int a; \\\n// b\nint c;", "int v0; \\\n \nint v1;"),
        ("c", "/*a*/ /*b*/\nint a;\r\n// c\r\nint d;", "   \nint v0;\r\nint v1;"),
        ("go", "package a\nvar x = 1 /* one\n two */\n", "package v0\nvar v1 = 1 \n\n"),
        ("javascript", "#!/usr/bin/env node\nlet a = b // c\nlet d", "let v0 = v1  \nlet v2"),
        ("javascript", "return /*\n*/ x", "return \n v0"),
        ("kotlin", "#!/usr/bin/kotlin\nval a = 1 // b\n", "val v0 = 1  \n"),
        ("python", "if a:\n  # b\n    # c\n  d\n# e", "if v0:\n  v1\n"),
        ("python", "x = [  # a\n  1,\n  # b\n]", "v0 = [   \n  1,\n]"),
        ("python", "x = a + \\\n  b # c", "v0 = v1 + \\\n  v2  "),
        ("php", "#!/bin/php\n<?php echo 1; // a ?>\nx", "<?php echo 1;  ?>\nx"),
        ("ruby", "a\n  # one\n  .b\n=begin\nc\n=end\nd", "v0\n  .v1\nv2"),
        ("rust", "#![a]\n//! b\n/// c\nfn d() {} // e\n", "#![v0]\nfn v1() {}  \n"),
        ("swift", "let a = 1 /* b /* c */ d */ + 2", "let v0 = 1   + 2"),
        ("tsx", "<a>{/* b */}c</a>", "<v0>{ }c</v0>"),
    ],
)
def test_comments_leave_what_matters(language: str, code: str, expected: str) -> None:
    assert make_blind(code, language) == expected


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        # Text the grammar does not look into.
        ("c", "#define F(n) (n##_t)+0x1Fu+'n'\nn(\"n\");",
         "#define v0(v1) (v1##v2)+0x1Fu+'n'\nv1(\"n\");"),
        ("c", "#define LL long long\n#if defined(LL)", "#define v0 long long\n#if defined(v0)"),
        ("c", "#include <a.h>\nsize_t a; int main() {}",
         "#include <a.h>\nsize_t v0; int main() {}"),
        ("cpp", "std::vector<T> a; a.b = nullptr;", "v0::v1<v2> v3; v3.v4 = nullptr;"),
        ("cpp", "A::~A() { goto x; x: ; }", "v0::~v0() { goto v1; v1: ; }"),
        # Names with signs.
        ("ruby", "@a = a?(:a, a: A)\n$a = @@a", "@v0 = v0?(:v0, v0: V1)\n$v0 = @@v0"),
        ("ruby", 'puts "#{a} a #@b"; $1', 'v0 "#{v1} a #@v2"; $1'),
        ("php", '<?php $a->b("$a {$this->b}");', '<?php $v0->v1("$v0 {$this->v1}");'),
        ("php", "<?php $parent = parent::f();", "<?php $v0 = parent::v1();"),
        ("c_sharp", "int @if = a; @if(x => x);", "int @v0 = v1; @v0(v2 => v2);"),
        ("c_sharp", '@a = a; s = $"a {a:F2}";', '@v0 = v0; v1 = $"a {v0:F2}";'),
        ("c_sharp", "var from = 1; from++;", "var v0 = 1; v0++;"),
        ("kotlin", "val `a b` = \"$a b ${b} \\$a $1\"", "val `v0 v1` = \"$v0 b ${v1} \\$a $1\""),
        ("kotlin", "a@ for (i in x) break@a", "v0@ for (v1 in v2) break@v0"),
        ("kotlin", "val data: Int = A::class", "val v0: Int = v1::class"),
        ("swift", "let `a` = b.map { $0 + a }", "let `v0` = v1.v2 { $0 + v0 }"),
        ("swift", "let copy: Self = .init(copy)", "let v0: Self = .init(v0)"),
        ("rust", "fn f<'a>(x: &'a A, y: &'static u8) {}",
         "fn v0<'v1>(v2: &'v1 v3, v4: &'static u8) {}"),
        ("rust", "fn f() { r#a = a; u8::MAX; m!(if a else b) }",
         "fn v0() { r#v1 = v1; u8::v2; v3!(if v1 else v4) }"),
        ("java", "class $a { var a = $a.a$b; }", "class v0 { var v1 = v0.v2; }"),
        ("javascript", "class A { #a = this.a; } $(`a ${a}`)",
         "class v0 { #v1 = this.v1; } v2(`a ${v1}`)"),
        ("javascript", "a.delete(a.default)", "v0.v1(v0.v2)"),
        ("typescript", "let a: number = b as T", "let v0: number = v1 as v2"),
        ("go", "func f(a []int) { b := make([]T, 1) }",
         "func v0(v1 []int) { v2 := make([]v3, 1) }"),
        ("python", "for _ in a: print(f'a {a!r:>{w}}')", "for _ in v0: v1(f'a {v0!r:>{v2}}')"),
        ("python", "größe = größe.π", "v0 = v0.v1"),
        # No new name is an old one, wherever that stands.
        ("python", "v1 = a; v0 = 'v2'", "v3 = v4; v5 = 'v2'"),
    ],
)  # fmt: skip
def test_names_are_replaced_where_they_stand(language: str, code: str, expected: str) -> None:
    assert make_blind(code, language) == expected


PYTHON = '''
"""Sort."""

class Heap:
    """A heap."""

    def push(self, item, *, key=None):
        "Add one."
        self.items = [*getattr_free(self), (key(item) if key else item)]  # grow
        return self

    def empty(self):
        """Nothing to do."""

def getattr_free(heap):
    match heap.items:
        case []:
            return []
        case [first, *rest]:
            return [first, *rest]

Heap.items = []
heap = Heap().push(3).push(1, key=lambda v: -v)
total = 0
for number, v0 in [(n, f"{n}" "x") for n in heap.items]:
    total += number
    assert v0 == f"{number}x"
assert heap.empty() is None
assert total == 2, "wrong"
1 / (total - 2)
'''


def test_python_does_the_same_afterwards() -> None:
    for code in (PYTHON, make_blind(PYTHON, "python")):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert run.stderr.endswith("ZeroDivisionError: division by zero\n")


NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,3}|v[0-9]|größe", fullmatch=True)


@given(names=st.lists(NAMES, min_size=1, max_size=20))
@settings(max_examples=60)
def test_new_names_are_as_alike_as_the_old(names: list[str]) -> None:
    code = "".join(f"<?php ${name}; ?>" for name in names)
    new = re.findall(r"\$(\w+);", make_blind(code, "php"))
    kept = {"_", "this", "self", "static"}
    for (one, new_one), (two, new_two) in itertools.combinations(zip(names, new, strict=True), 2):
        assert (one == two) == (new_one == new_two)
    assert not set(new) & set(names) - kept


@pytest.mark.parametrize("language", LANGUAGES)
@given(code=st.text() | st.text(alphabet="(){}[]<>'\"`/*#\\\n\t ;:,.=+-ab1$@%!_é"))
@settings(max_examples=25)
def test_any_text_becomes_a_program(language: str, code: str) -> None:
    try:
        program = Program(code, language)
    except ProgramError:
        return
    after = blind(program)
    assert after == blind(program)
    after.text.decode()


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_program_stays_empty(language: str) -> None:
    assert make_blind("", language) == ""


def test_an_unknown_language_is_refused_as_the_front_end_does() -> None:
    with pytest.raises(ProgramError) as caught:
        blind(Program.from_clean_text(b"x", "cobol"))
    assert caught.value.code == "unsupported-language"


def test_long_and_deep_programs_take_no_longer_than_their_size() -> None:
    assert make_blind("a/**/" * 200_000, "c") == "v0 " * 200_000
    assert make_blind("-" * 100_000 + "a", "python") == "-" * 100_000 + "v0"


SHARED = [
    ("atlas", 30, set(LANGUAGES) - {"tsx"}),
    ("java-sort", 100, {"java"}),
    ("poj104", 100, {"c"}),
    ("python-algorithms", 100, {"python"}),
]


@pytest.mark.shared
@pytest.mark.parametrize(("data", "each", "languages"), SHARED)
def test_real_programs_keep_their_trees(
    shared: Path,
    data: str,
    each: int,
    languages: set[str],
    only_strip: Callable[[Program], Program],
) -> None:
    with gzip.open(shared / data / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = file.readlines()
    random.Random(0).shuffle(lines)
    seen: Counter[str] = Counter()
    same = 0
    for record in map(json.loads, lines):
        if seen[record["language"]] == each:
            if seen.total() == each * len(languages):
                break
            continue
        seen[record["language"]] += 1
        program = Program(record["code"], record["language"])
        after = blind(program)
        whole = program.language != "python" and not program.text.startswith(b"#!")
        before = program if whole else only_strip(program)
        same += shape_of(after) == shape_of(before)
        assert not has_comments(after)
    assert set(seen) == languages
    assert same >= 0.97 * seen.total()
