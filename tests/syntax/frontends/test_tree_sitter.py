from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import tree_sitter
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.trees import from_tree_sitter, pre_order, rows_of
from treecaps.errors import ProgramError
from treecaps.syntax.frontends import base
from treecaps.syntax.frontends import tree_sitter as module
from treecaps.syntax.frontends.tree_sitter import TreeSitterFrontend
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program

FRONTENDS = {comments: TreeSitterFrontend(comments=comments) for comments in (False, True)}
BROKEN = {
    "c": "int f( { int x = 1 + ; return }",
    "cpp": "template <class T struct A { int f( }; // end\n",
    "python": "def f(:\n  return (1,\nclass",
    "java": "class A { /* c */ void f( { int x = ; }",
    "rust": "/// doc\nfn f( -> { /* x */ let",
}


def own_nodes(program: Program, *, comments: bool) -> list[tuple[str, int, int, int, int]]:
    language = LANGUAGES[program.language]
    entry = getattr(import_module(language.grammar_module), language.entry)
    parser = tree_sitter.Parser(tree_sitter.Language(entry()))
    return pre_order(from_tree_sitter(parser.parse(program.text).root_node, comments))


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_trees_equal_the_parsers_own(path: Path, comments: bool) -> None:
    program = Program.read(path)
    tree = FRONTENDS[comments].parse(program)
    tree.check()
    assert rows_of(tree) == own_nodes(program, comments=comments)
    assert not len(tree.errors)
    assert tree.error_share == 0


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize("language", BROKEN)
def test_broken_code_gives_the_parsers_own_tree_too(language: str, comments: bool) -> None:
    program = Program(BROKEN[language], language)
    tree = FRONTENDS[comments].parse(program)
    tree.check()
    assert rows_of(tree) == own_nodes(program, comments=comments)
    assert len(tree.errors)
    assert 0 <= tree.error_share <= 1


def test_all_thirteen_languages_have_examples() -> None:
    assert {Program.read(path).language for path in EXAMPLES} == set(LANGUAGES) - {"tsx"}


def test_tsx_is_read() -> None:
    tree = FRONTENDS[False].parse(Program("const a = <b>{x as T}</b>;", "tsx"))
    assert "jsx_element" in tree.kind_names()


def test_operators_and_keywords_are_nodes_of_their_own_name() -> None:
    names = FRONTENDS[False].parse(Program("if (a + b) return;", "c")).kind_names()
    assert {'"if"', '"+"', '"return"', "if_statement", "binary_expression"} <= set(names)


def test_comments_are_nodes_on_request_only() -> None:
    program = Program("// one\nint a; /* two */", "c")
    assert "comment" not in FRONTENDS[False].parse(program).kind_names()
    assert FRONTENDS[True].parse(program).kind_names().count("comment") == 2


def test_a_missing_token_is_an_error_of_no_length() -> None:
    tree = FRONTENDS[False].parse(Program("int f() { return 1 }", "c"))
    (missing,) = tree.errors.tolist()
    assert tree.kind_names()[missing] == '";"'
    assert tree.start[missing] == tree.end[missing]
    assert tree.error_share == 0


def test_an_error_says_how_much_was_lost() -> None:
    tree = FRONTENDS[False].parse(Program("int a; @@@@@ int b;", "c"))
    assert tree.error_share == pytest.approx(5 / 19)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_program_is_one_node(language: str) -> None:
    tree = FRONTENDS[False].parse(Program("", language))
    tree.check()
    assert len(tree) == 1


@pytest.mark.parametrize("language", LANGUAGES)
@given(code=st.text() | st.text(alphabet="(){}[]<>'\"`/*#\\\n\t ;:,.=+-a1$@%"))
@settings(max_examples=25)
def test_any_text_gives_the_parsers_own_tree(language: str, code: str) -> None:
    try:
        program = Program(code, language)
    except ProgramError:
        return
    tree = FRONTENDS[False].parse(program)
    tree.check()
    assert rows_of(tree) == own_nodes(program, comments=False)


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.binary(max_size=200))
@settings(max_examples=15)
def test_any_bytes_give_a_tree_or_an_error(language: str, data: bytes) -> None:
    try:
        FRONTENDS[False].parse(Program(data, language)).check()
    except ProgramError as error:
        assert error.code == "binary"


@pytest.mark.parametrize(("opening", "least"), [("(", 100_000), ("{", 100_000), ("-", 1)])
def test_deep_nesting_gives_a_tree(opening: str, least: int) -> None:
    tree = FRONTENDS[False].parse(Program("int a = " + opening * 100_000, "c"))
    assert len(tree) > least
    assert len(list(tree.format())) == len(tree)


def test_a_nested_tree_is_as_deep_as_the_code() -> None:
    tree = FRONTENDS[False].parse(Program("a = " + "-" * 100_000 + "1", "python"))
    assert tree.depth.max() > 100_000
    tree.check()


def test_a_line_of_ten_megabytes_gives_a_tree() -> None:
    line = "int a" + " " * 100 + ";"
    tree = FRONTENDS[False].parse(Program(line * (9_900_000 // len(line)), "c"))
    assert len(tree) == 1 + 4 * (9_900_000 // len(line))
    assert not len(tree.errors)


def test_programs_longer_than_a_chunk_are_whole() -> None:
    count = module._CHUNK  # several chunks of nodes
    tree = FRONTENDS[False].parse(Program("a;" * count, "c"))
    assert len(tree) == 1 + 3 * count
    assert np.array_equal(np.flatnonzero(tree.parent == 0), np.arange(1, len(tree), 3))
    tree.check()


def test_a_program_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "SECONDS", 0.2)
    frontend = TreeSitterFrontend()
    with pytest.raises(ProgramError, match=r"longer than 0.6 s") as caught:
        frontend.parse(Program("x = " + "a<" * 20_000, "cpp"))
    assert caught.value.code == "timeout"
    assert len(frontend.parse(Program("int a;", "cpp"))) > 1
