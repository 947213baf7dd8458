"""A new command: how deep the trees of programs are."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from treecaps import parse_file
from treecaps.cli.inputs import expand, open_input
from treecaps.cli.options import program_options
from treecaps.cli.output import fail, say
from treecaps.errors import Failure

PROGRAMS = Path(__file__).parents[2] / "examples" / "programs"


@click.command("depth")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@program_options
def command(paths: tuple[str, ...], language: str | None, max_bytes: int) -> int:
    """Print how deep the trees of programs are."""
    from treecaps.data.parallel import parse_programs

    inputs = expand(paths, language)
    programs = (open_input(path, failure, language, max_bytes) for path, failure in inputs)
    failed = False
    for (path, _), tree in zip(inputs, parse_programs(programs, "tree-sitter"), strict=True):
        if isinstance(tree, Failure):
            failed = True
            fail(path, tree.message, tree.arguments)
        else:
            say(f"{path}: {tree.depth.max() + 1}")
    return 1 if failed else 0


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package as pip installs it, with a command that works and others that do not."""
    about = tmp_path / "deep_trees-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deep-trees\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[treecaps.commands]\n"
        f"depth = {__name__}:command\n"
        "broken = no_such_module:command\n"
        "number = math:pi\n"
        "models = math:pi\n"
    )
    return tmp_path


def run(package: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "treecaps", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_a_command_of_another_package_runs(package: Path) -> None:
    file = PROGRAMS / "gcd" / "gcd.c"
    done = run(package, "depth", file)
    depth = parse_file(file).depth.max() + 1
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}: {depth}\n", "")
    assert "Print how deep the trees" in run(package, "depth", "--help").stdout


def test_its_messages_name_its_options(package: Path) -> None:
    done = run(package, "depth", PROGRAMS / "gcd" / "gcd.c", "--max-mb", "0.0001")
    assert done.returncode == 1
    assert done.stderr.endswith("raise the limit with max_bytes (--max-mb)\n")


def test_help_lists_it_without_loading_it(package: Path) -> None:
    done = run(package, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  depth   From the package deep-trees.\n" in done.stdout
    assert "  broken  From the package deep-trees.\n" in done.stdout


def test_broken_commands_leave_others_alone(package: Path) -> None:
    broken = run(package, "broken")
    assert broken.returncode == 2
    assert broken.stderr.startswith(
        "treecaps: the command broken cannot be loaded: No module named 'no_such_module'\n"
    )
    number = run(package, "number")
    assert number.returncode == 2
    assert "the command number cannot be loaded: math:pi is no command" in number.stderr
    assert run(package, "models").returncode == 0, "a command of treecaps keeps its name"
