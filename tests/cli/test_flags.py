import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import treecaps
from tests.cli.conftest import Run
from treecaps.cli.evaluate import command as evaluate
from treecaps.cli.flags import FLAGS, add_flags, flags_of
from treecaps.cli.main import COMMANDS, cli
from treecaps.cli.parse import command as parse
from treecaps.cli.train import command as train
from treecaps.cli.vectors import command as vectors
from treecaps.errors import Failure, ModelError, ProgramError, UsageError

SOURCE = Path(treecaps.__file__).parent
OWN_FLAGS = ("cli", "server")
"""Folders whose messages are for those who start commands."""


def test_errors_keep_the_arguments_to_change() -> None:
    error = UsageError("choose one", arguments=("folder", "overwrite"))
    assert (str(error), error.arguments) == ("choose one", ("folder", "overwrite"))
    assert ModelError("no").arguments == ()
    assert ProgramError("too-large", "no").arguments == Failure("a", "too-large", "no").arguments
    assert Failure("a", "binary", "no").arguments == ()
    assert pickle.loads(pickle.dumps(error)).arguments == error.arguments


@pytest.mark.parametrize(
    ("command", "arguments", "flags"),
    [
        (train, ("folder", "overwrite"), " (--out, --overwrite)"),
        (train, ("learning_rate=0.1",), " (--set learning_rate=0.1)"),
        (train, ("words=a b",), " (--set 'words=a b')"),
        (train, ("model=treecaps", "resume=True"), " (--model treecaps, --resume)"),
        (train, (), ""),
        (train, ("unheard_of",), ""),
        (parse, ("frontend=tree-sitter", "folder"), " (--frontend tree-sitter)"),
        (evaluate, ("frontend=tree-sitter", "learning_rate=0.1"), ""),
        (vectors, ("cache",), " (--cache)"),
        (None, ("cache",), ""),
    ],
)
def test_a_command_adds_the_flags_that_it_has(
    command: click.Command | None, arguments: tuple[str, ...], flags: str
) -> None:
    assert add_flags("no", arguments, command) == f"no{flags}"


def test_the_command_that_runs_is_asked_by_default() -> None:
    with click.Context(parse):
        assert add_flags("no", ("language",)) == "no (--language)"
    given = click.Context(parse)
    given.params = {"frontend": "tree-sitter"}
    with given:
        assert add_flags("no", ("frontend=tree-sitter",)) == "no"


def test_every_flag_belongs_to_a_command() -> None:
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in COMMANDS]
    known = {flag for command in commands if command for flag in flags_of(command)}
    assert set(FLAGS.values()) <= known


def test_people_are_told_flags_and_programs_are_not(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = (")
    (tmp_path / "large.py").write_text("a = 1\n" * 999)
    options = ("--frontend", "ast", "--max-mb", "0.001")
    done = run_here("parse", tmp_path, *options)
    small, large = done.stderr.splitlines()
    assert small.endswith('frontend="tree-sitter" takes broken code (--frontend tree-sitter)')
    assert large.endswith("raise the limit with max_bytes (--max-mb)")
    assert "--" not in run_here("parse", tmp_path, *options, "--json").stdout


def test_an_error_that_ends_a_command_names_flags(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    done = run_here("train", tmp_path, "--out", tmp_path)
    assert done.stderr == (
        f"treecaps: error: {tmp_path} holds other files; choose another folder (--out)\n"
    )
    done = run_here("data", tmp_path)
    assert done.stderr.endswith("name their language with language=NAME (--language)\n")


_COMMAND = rf"(treecaps ({'|'.join(COMMANDS)})|ray start) .*"


def messages(source: str) -> Iterator[str]:
    """Yield all texts of a module but its docstrings, with X for what is put into them."""
    module = ast.parse(source)
    done = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            done.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [part if isinstance(part, ast.Constant) else None for part in node.values]
            done.update(filter(None, parts))
            yield "".join(str(part.value) if part else "X" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in done:
            yield node.value


def flags_in(source: str) -> list[str]:
    """Return the messages of a module that name options, but for commands to type."""
    texts = (re.sub(_COMMAND + r"|var\(--", "", text) for text in messages(source))
    return [text for text in texts if re.search(r"(?<![\w-])--[a-z]", text)]


def test_flags_in_messages_are_found() -> None:
    assert flags_in('raise E(f"{a} is old;" " use --new")') == ["X is old; use --new"]
    assert not flags_in('def f():\n    """See --new."""\n    say("do: treecaps train --new")')
    assert flags_in('say(f(a, "--new"))') == ["--new"]
    assert not flags_in('fill = "var(--ink)"')


def test_the_library_names_arguments_not_flags() -> None:
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in OWN_FLAGS
        and flags_in(path.read_text(encoding="utf-8"))
    ]
    assert not found
