import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.dom import minidom

import pytest
import srcml_caller
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.trees import Node, pre_order, rows_of
from treecaps.errors import MissingExtraError, ProgramError
from treecaps.syntax.frontends import base, get_frontend, srcml
from treecaps.syntax.frontends.srcml import SrcmlFrontend
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

FRONTEND = SrcmlFrontend()
READABLE = [path for path in EXAMPLES if path.suffix in (".c", ".cpp", ".cs", ".java")]


def own_nodes(program: Program, comments: bool) -> list[tuple[str, int, int, int, int]]:
    """Read srcML's XML with another parser, by plain recursion."""
    language = getattr(srcml_caller.CodeLanguage, LANGUAGES[program.language].srcml or "")
    xml = srcml_caller.to_srcml(program.text.decode(), language, False) or ""

    def read(element: minidom.Element, start: int) -> tuple[Node, int]:
        node = Node(element.tagName, start, start)
        place = start
        for child in element.childNodes:
            if isinstance(child, minidom.Text):
                place += len(child.data.encode())
            elif isinstance(child, minidom.Element):
                inner, place = read(child, place)
                if comments or child.tagName != "comment":
                    node.children.append(inner)
        node.end = place
        return node, place

    root = minidom.parseString(xml.encode()).documentElement
    assert root is not None
    return pre_order(read(root, 0)[0])


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_trees_equal_srcmls_own(path: Path, comments: bool) -> None:
    program = Program.read(path)
    tree = SrcmlFrontend(comments=comments).parse(program)
    tree.check()
    assert rows_of(tree) == own_nodes(program, comments)


def names(tree: Tree) -> list[str]:
    return [
        tree.token(node)
        for node, kind in enumerate(tree.kind_names())
        if kind == "name" and tree.token(node)
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_spans_count_bytes_of_the_program(ending: str) -> None:
    code = ending.join(
        ["// é€😀", "", "int\tgrün = 1; \f\x01", 'char *s = "é<&>";', "", "int c; // x", "int d;"]
    )
    tree = FRONTEND.parse(Program(code, "c"))
    assert names(tree) == ["int", "grün", "char", "s", "int", "c", "int", "d"]
    literal = tree.kind_names().index("literal")
    assert tree.token(literal) == "1"


def test_mixed_line_ends_keep_their_places() -> None:
    tree = FRONTEND.parse(Program("int a;\r\nint b;\nint c;\r\r\nint d;", "c"))
    assert names(tree) == ["int", "a", "int", "b", "int", "c", "int", "d"]


def test_a_delete_character_loses_nothing() -> None:
    tree = FRONTEND.parse(Program("int a;\x7f int b;\x7f\x7f int c;", "c"))
    assert names(tree) == ["int", "a", "int", "b", "int", "c"]


@pytest.mark.parametrize("letter", ["\ufffe", "\uffff"])
def test_what_srcml_cannot_give_back_is_an_error(letter: str) -> None:
    with pytest.raises(ProgramError, match="does not give all of it back") as caught:
        FRONTEND.parse(Program(f"int a; // {letter}\nint b;", "c"))
    assert caught.value.code == "syntax"


def test_modules_of_the_current_folder_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("struct", "signal", "srcml_caller"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('run by mistake')")
    monkeypatch.chdir(tmp_path)
    assert len(SrcmlFrontend().parse(Program("int a;", "c"))) > 1


def test_kinds_keep_their_numbers_from_program_to_program() -> None:
    first = FRONTEND.parse(Program("int a;", "c"))
    second = FRONTEND.parse(Program("int b; void f() {}", "c"))
    assert second.kinds[: len(first.kinds)] == first.kinds


def test_an_empty_program_is_one_node() -> None:
    assert FRONTEND.parse(Program("", "java")).kind_names() == ["unit"]


def test_a_crash_of_srcml_is_an_error_and_the_next_program_works() -> None:
    frontend = SrcmlFrontend()
    frontend.parse(Program("int a;", "c"))
    process = frontend._process
    assert process is not None
    process.send_signal(signal.SIGSEGV)
    process.wait()
    with pytest.raises(ProgramError, match="srcML crashed") as caught:
        frontend.parse(Program("int a;", "c"))
    assert caught.value.code == "crash"
    assert len(frontend.parse(Program("int a;", "c"))) > 1


def test_a_program_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "SECONDS", 0.5)
    frontend = SrcmlFrontend()
    with pytest.raises(ProgramError, match=r"longer than 0.54 s") as caught:
        frontend.parse(Program("x = " + "a<" * 2000, "c"))
    assert caught.value.code == "timeout"
    assert len(frontend.parse(Program("int a;", "c"))) > 1


def test_deep_nesting_gives_a_tree_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "SECONDS", 1.0)
    frontend = SrcmlFrontend()
    with pytest.raises(ProgramError, match=r"srcML|longer than"):
        frontend.parse(Program("int a = " + "(" * 100_000, "c"))
    assert len(frontend.parse(Program("int f() " + "{" * 1000, "c"))) > 1000


def test_the_process_ends_with_its_front_end() -> None:
    frontend = SrcmlFrontend()
    frontend.parse(Program("int a;", "c"))
    process = frontend._process
    assert process is not None
    del frontend
    assert process.poll() is not None


def test_the_process_ends_when_its_user_is_killed() -> None:
    script = (
        "import os, signal, sys\n"
        "from treecaps.syntax.frontends.srcml import SrcmlFrontend\n"
        "from treecaps.syntax.program import Program\n"
        "frontend = SrcmlFrontend()\n"
        "frontend.parse(Program('int a;', 'c'))\n"
        "print(frontend._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert found.returncode == -signal.SIGKILL
    command = Path(f"/proc/{int(found.stdout)}/cmdline")
    deadline = time.monotonic() + 10
    # A process that has ended may still be listed, without a command, until it is collected.
    while time.monotonic() < deadline and command.exists() and command.read_bytes():
        time.sleep(0.05)
    assert not command.exists() or not command.read_bytes()


def test_other_languages_are_refused() -> None:
    with pytest.raises(
        ProgramError, match=r"does not read python \(it reads c, c_sharp, cpp, java\)"
    ):
        FRONTEND.parse(Program("x", "python"))


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srcml, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'treecaps\[srcml\]'"):
        get_frontend("srcml")


@given(
    st.sampled_from(["c", "cpp", "c_sharp", "java"]),
    st.text(alphabet="(){}[]<>'\"/*#\\\n\t ;:,.=+-a1 \r\f", max_size=60)
    | st.text(max_size=60)
    | st.binary(max_size=60),
)
@settings(max_examples=60)
def test_any_input_gives_a_tree_or_an_error(language: str, code: str | bytes) -> None:
    try:
        FRONTEND.parse(Program(code, language)).check()
    except ProgramError as error:
        assert error.code in ("binary", "crash", "timeout", "syntax")
