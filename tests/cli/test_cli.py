import json
import os
import pty
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import treecaps
from tests.conftest import ROOT, read_screen
from treecaps.syntax.edges import EDGES
from treecaps.syntax.tree import Tree

PROGRAMS = ROOT / "examples" / "programs"
COMMAND = [sys.executable, "-c", "from treecaps.cli.main import run; run()"]


def run(*words: str | Path, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line as people do: in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)], input=stdin, capture_output=True, check=False, **options
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def run_in_terminal(*words: str | Path, columns: int = 100) -> str:
    """Run the command line with a terminal on all sides, and return what it shows."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": f"{columns}"}
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)], stdin=writer, stdout=writer, stderr=writer, env=environment
    )
    os.close(writer)
    shown = read_screen(reader)
    process.wait()
    return shown


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in ("parse", "data"):
        assert name in done.stdout
        assert run(name, "--help").returncode == 0


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from treecaps.cli.main import main\n"
        "sys.argv = ['treecaps', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'pyarrow', 'rich', 'tree_sitter', 'torch'} & set(sys.modules)))\n"
    )
    for words in (["--help"], ["parse", "--help"], ["data", "--help"]):
        done = subprocess.check_output([sys.executable, "-c", script, *words], text=True)
        assert done.endswith("[]\n")


def test_version_names_package_and_grammars() -> None:
    lines = run("--version").stdout.splitlines()
    assert lines[0] == f"treecaps {treecaps.__version__}"
    for grammar in ("tree-sitter-c", "tree-sitter-swift", "srcml-caller", "python"):
        assert any(line.startswith(grammar + " ") for line in lines)


def test_help_is_a_command_too() -> None:
    assert run("help").stdout == run("--help").stdout
    assert run("help", "parse").stdout == run("parse", "--help").stdout
    assert run("help", "vectors", "learn").stdout == run("vectors", "learn", "--help").stdout
    assert run("-V").stdout == run("--version").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("clasify x.c", "there is no command 'clasify'; did you mean classify?"),
        ("help clasify", "there is no command 'clasify'; did you mean classify?"),
        ("help parse x", "treecaps parse has no commands; see treecaps help --help"),
        ("vectors lern", "no such command 'lern'; did you mean learn?"),
        ("parse --comment", "no such option '--comment'; did you mean --comments?"),
        ("parse", "missing argument 'FILE...'; see treecaps parse --help"),
        ("classify --model algoritms x.c", "no such folder; did you mean algorithms?"),
        ("classify --language pyton x.c", "unknown language 'pyton'; did you mean python"),
    ],
)
def test_all_messages_have_one_style(words: str, message: str) -> None:
    done = run(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("treecaps: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_one_file_prints_its_tree() -> None:
    done = run("parse", PROGRAMS / "gcd/gcd.c")
    assert done.returncode == 0
    assert done.stdout.startswith("translation_unit\n  preproc_include\n")
    assert "192 nodes" in done.stderr


def test_many_files_and_folders_print_a_line_each() -> None:
    done = run("parse", PROGRAMS / "gcd", PROGRAMS / "stack/stack.c")
    lines = done.stdout.splitlines()
    assert len(lines) == 14
    assert lines[0].endswith("GCD.swift: swift, 246 nodes")
    assert run("parse", "--tree", PROGRAMS / "gcd").stdout.count("\n") > 1000


def test_standard_input_is_read() -> None:
    done = run("parse", "-", "--language", "c++", "--json", stdin=b"int a;")
    assert json.loads(done.stdout)["tree"]["text"] == "int a;"
    done = run("parse", "-", "--json", stdin=(PROGRAMS / "gcd/gcd.rs").read_bytes())
    assert json.loads(done.stdout)["tree"]["language"] == "rust"


def test_json_is_an_object_a_line_and_failures_are_among_them(tmp_path: Path) -> None:
    done = run(
        "parse", "--json", PROGRAMS / "gcd/gcd.c", tmp_path / "none.c", PROGRAMS / "gcd/gcd.py"
    )
    assert done.returncode == 1
    first, second, third = map(json.loads, done.stdout.splitlines())
    tree = Tree.from_dict(first["tree"])
    assert (first["nodes"], first["errors"], first["error_share"]) == (len(tree), 0, 0)
    assert tree == treecaps.parse_file(PROGRAMS / "gcd/gcd.c")
    assert second == {
        "path": str(tmp_path / "none.c"),
        "error": {"code": "unreadable", "message": "no such file or directory"},
    }
    assert third["tree"]["language"] == "python"


@pytest.mark.parametrize("frontend", ["tree-sitter", "ast", "srcml"])
def test_every_front_end_is_a_choice(frontend: str) -> None:
    file = PROGRAMS / ("gcd/gcd.py" if frontend == "ast" else "gcd/gcd.c")
    done = run("parse", "--frontend", frontend, "--json", file)
    assert json.loads(done.stdout)["tree"]["frontend"] == frontend


def test_broken_code_says_how_much_and_where() -> None:
    done = run("parse", "-", "--language", "c", stdin=b"int a;\nint f( {\n")
    assert done.returncode == 0
    assert "1 error (" in done.stderr
    assert "at 2:1" in done.stderr


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    done = run("parse", PROGRAMS / "gcd/gcd.c", "--svg", tmp_path / "out.svg")
    assert done.returncode == 0
    assert (tmp_path / "out.svg").read_text().startswith("<svg ")
    done = run("parse", PROGRAMS / "gcd", "--svg", tmp_path / "out.svg")
    assert (done.returncode, "draws one file, not 13" in done.stderr) == (2, True)
    done = run("parse", PROGRAMS / "gcd/gcd.c", "--svg", tmp_path / "no/out.svg")
    assert (done.returncode, "cannot write" in done.stderr) == (2, True)


def bad_files(folder: Path) -> dict[str, str]:
    """Write one of each bad input; return what is said of each, nothing where a tree is made."""
    contents: dict[str, tuple[bytes, str]] = {
        "empty.c": (b"", ""),
        "binary.c": (b"\x7fELF\x02\x01\x01" + bytes(5000), "binary"),
        "nul.c": (b"int a;\0int b;", ""),
        "invalid.c": (b"int a; /* \xff\xfe\xfd */ int b; /* more text, and more text */", ""),
        "utf16.c": ("int a;".encode("utf-16"), ""),
        "bom.c": (b"\xef\xbb\xbfint a;", ""),
        "crlf.c": (b"int a;\r\nint b;\r\n", ""),
        "huge.c": (b"int a;\n" * 7_200_000, "larger than 10 MB"),
        "line.c": ((b"int a;" + b" " * 94) * 99_000, ""),
        "deep.c": (b"int a = " + b"(" * 100_000, ""),
        "what.xyz": (b"?", "unknown language"),
    }
    for name, (data, _) in contents.items():
        (folder / name).write_bytes(data)
    (folder / "loop.c").symlink_to("loop.c")
    os.mkfifo(folder / "fifo.c")
    (folder / "folder.c").mkdir()
    said = {name: message for name, (_, message) in contents.items()}
    return {**said, "loop.c": "leads back to itself", "fifo.c": "is a FIFO", "gone.c": "no such"}


def test_bad_input_gives_a_line_or_a_tree_and_loses_nothing(tmp_path: Path) -> None:
    said = bad_files(tmp_path)
    done = run("parse", *said, PROGRAMS / "gcd/gcd.c", cwd=tmp_path, timeout=120)
    assert done.returncode == 1
    shown = {line.split(":")[0]: line for line in done.stdout.splitlines()}
    errors = {line.split(":")[0]: line for line in done.stderr.splitlines()}
    for name, message in said.items():
        if message:
            assert message in errors[name]
        else:
            assert "nodes" in shown[name], name
    assert len(shown) + len(errors) == len(said) + 1
    assert str(PROGRAMS / "gcd/gcd.c") in shown


def test_python_2_is_said_to_be_that() -> None:
    words = ("parse", "-", "--language", "python", "--frontend", "ast")
    done = run(*words, stdin=b"print 'x'\n")
    assert done.returncode == 2
    assert "this is Python 2" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["parse"],
        ["parse", "--frontend", "nothing", "x.c"],
        ["parse", "--language", "cobol", "x.c"],
        ["parse", "--max-mb", "0", "x.c"],
        ["parse", "--max-mb", "inf", "x.c"],
        ["parse", "--max-mb", "nan", "x.c"],
        ["parse", "-", "-", "--language", "c"],
        ["data"],
        ["data", "missing"],
        ["data", str(ROOT / "README.md")],
        ["data", "--workers", "0", str(PROGRAMS)],
        ["nothing"],
        ["--nothing"],
    ],
)
def test_wrong_use_exits_with_2(words: list[str]) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_data_are_described_in_json(tmp_path: Path) -> None:
    done = run("data", PROGRAMS, "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["programs"], found["failed"], len(found["classes"])) == (52, 0, 4)
    assert found["nodes"]["total"] > 10_000
    assert found["duplicates"]["exact"]["programs"] == 0
    assert done.stderr == ""


def test_data_are_described_in_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"code": "int a;", "language": "c", "label": "[b]x"}\nbad\n')
    done = run("data", tmp_path / "a.jsonl", "--against", tmp_path / "a.jsonl")
    assert done.returncode == 1
    assert "[b]x" in done.stdout
    assert "is not JSON: Expecting value" in done.stdout
    assert "copies in a.jsonl" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_a_damaged_cache_is_said_on_standard_error(own_cache: Path) -> None:
    run("data", PROGRAMS)
    (folder,) = own_cache.glob("corpus-*")
    os.truncate(folder / "trees.arrow", 10)
    done = run("data", PROGRAMS, "--json")
    assert json.loads(done.stdout)["programs"] == 52
    assert done.stderr.startswith("treecaps: the corpus in ")
    assert done.stderr.count("\n") == 1


def test_a_terminal_gets_colours_and_a_pipe_does_not() -> None:
    shown = run_in_terminal("parse", "none.c")
    assert "\x1b[" in shown
    assert "\x1b" not in run("parse", "none.c").stderr


def test_escapes_in_code_and_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = tmp_path / "a\x1b[41m.c"
    evil.write_text('char *s = "\x1b[41m"; // \x1b[41m')
    for words in ([evil], [evil, evil], [tmp_path / "none\x1b[41m.c"]):
        shown = run_in_terminal("parse", *words)
        assert "\x1b[41m" not in shown
        assert "\\x1b[41m" in shown or "\\u001b[41m" in shown


def test_odd_paths_fail_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("parse", "x" * 300 + ".c", "", tmp_path / "empty", PROGRAMS / "gcd/gcd.c")
    assert done.returncode == 1
    assert "gcd.c: c, 192 nodes" in done.stdout
    assert "file name too long" in done.stderr
    assert "holds no programs" in done.stderr
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", ">/dev/full"])
def test_closed_and_full_streams_are_no_crash(redirection: str) -> None:
    words = [*COMMAND, "parse", "-", "--language", "c"]
    command = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(
        f"echo 'int a;' | {{ {command} {redirection}; }}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == {"<&-": 2, ">/dev/full": 2}.get(redirection, 0)
    if redirection == ">/dev/full":
        assert "cannot write the output: no space left" in done.stderr


def test_colours_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[31m" in run_in_terminal("parse", "none.c")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in run_in_terminal("parse", "none.c")


def test_a_parser_that_crashes_loses_only_its_file(tmp_path: Path) -> None:
    dice = random.Random(0)
    mess = "".join(dice.choice("([{<a ") for _ in range(250_000))  # too much for this grammar
    (tmp_path / "mess.rb").write_text(mess)
    done = run("parse", tmp_path / "mess.rb", PROGRAMS / "gcd/gcd.c", timeout=120)
    assert done.returncode in (0, 1)
    assert "gcd.c: c, 192 nodes" in done.stdout
    assert "mess.rb" in done.stdout + done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = " ".join(f"'{word}'" for word in [*COMMAND, "parse", "--tree", str(PROGRAMS)])
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, check=False)
    assert done.stdout.count(b"\n") == 1
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_edges_between_nodes() -> None:
    gcd = PROGRAMS / "gcd" / "gcd.c"
    done = run("parse", gcd, "--edges")
    assert done.returncode == 0
    assert 'LastWrite  7:12 "b" -> 10:9 "b"' in done.stdout.splitlines()
    assert "Child" not in done.stdout
    found = json.loads(run("parse", gcd, "--edges", "--json").stdout)
    assert list(found["edges"]) == list(EDGES)
    assert len(found["edges"]["Child"]) == found["nodes"] - 1
    assert "variables are followed" not in done.stderr
    other = run("parse", PROGRAMS / "gcd/gcd.go", "--edges")
    assert "variables are followed in python, java, c, cpp by tree-sitter only" in other.stderr
    swift = json.loads(run("parse", PROGRAMS / "gcd" / "GCD.swift", "--edges", "--json").stdout)
    assert swift["edges"]["NextToken"]
    assert not swift["edges"]["LastUse"]
