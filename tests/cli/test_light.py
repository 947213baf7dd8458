"""Commands in an installation without extras: the packages are there, but cannot be imported."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PYTHON, ROOT
from tests.training.examples import example_labels, example_trees
from treecaps import train
from treecaps.cli.main import COMMANDS

HEAVY = (
    *("fastapi", "gensim", "matplotlib", "numba", "pyarrow", "scipy", "sklearn"),
    *("srcml_caller", "tensorboard", "torch", "usearch"),
)
BLOCK = f"""
import sys
from importlib.abc import MetaPathFinder
class Block(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {HEAVY}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""
COMMAND_LINE = "from treecaps.cli.main import run; run()"
PROGRAMS = ROOT / "examples" / "programs"


def run(script: str, *words: object, block: str = BLOCK) -> "subprocess.CompletedProcess[str]":
    """Run a script where nothing heavy can be imported."""
    return subprocess.run(
        [PYTHON, "-c", block + script, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def treecaps(*words: object) -> "subprocess.CompletedProcess[str]":
    return run(COMMAND_LINE, *words)


def succeed(*words: object) -> str:
    done = treecaps(*words)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_programs_are_classified_embedded_explained_and_parsed(tmp_path: Path) -> None:
    file = PROGRAMS / "gcd" / "gcd.c"
    assert json.loads(succeed("classify", "--json", file))["label"] == "gcd"
    assert len(succeed("classify", "--functions", PROGRAMS / "gcd").splitlines()) > 10
    assert len(json.loads(succeed("embed", file))["vector"]) > 100
    succeed("embed", file, "--format", "npy", "--out", tmp_path / "vectors.npy")
    for method in ("gradients", "routing"):
        found = json.loads(succeed("explain", file, "--method", method, "--perturb", "--json"))
        assert found["label"] == "gcd"
        assert found["dimensions"]
    page = tmp_path / "why.html"
    succeed("explain", file, "--html", page)
    assert "gcd" in page.read_text()
    assert succeed("parse", file).startswith("translation_unit\n")
    assert "algorithms" in succeed("models")


def test_folders_are_indexed_and_searched(tmp_path: Path) -> None:
    index = tmp_path / "index"
    assert "files" in succeed("index", PROGRAMS / "gcd", "--out", index)
    assert "gcd" in succeed("search", index, PROGRAMS / "gcd" / "gcd.py")
    done = treecaps("clones", PROGRAMS / "gcd", "--threshold", "0.5")
    assert "alike" in done.stdout, done.stderr
    page = tmp_path / "clones.html"
    done = treecaps("clones", PROGRAMS / "gcd", "--files", "--html", page)
    assert done.stdout == f"{page}\n", done.stderr
    assert "gcd.rs" in page.read_text()


def test_a_large_index_is_searched_without_a_graph(tmp_path: Path) -> None:
    index = tmp_path / "index"
    large = f"from treecaps.search import graph; graph.FROM = 10; {COMMAND_LINE}"
    needs = (
        "because a fast search among more than 10 vectors needs packages that are not installed:"
        " pip install 'treecaps[usearch]'\n"
    )
    done = run(large, "index", PROGRAMS / "gcd", "--out", index)
    assert done.stderr == f"{index}: every search will look at each vector, {needs}"
    assert "recall" not in done.stdout
    done = run(large, "search", index, PROGRAMS / "gcd" / "gcd.py", "--json")
    assert done.stderr == f"{index}: looking at each vector, {needs}"
    assert len(json.loads(done.stdout)["matches"]) == 10
    assert list(tmp_path.iterdir()) == [index]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_nothing_that_is_slow_to_import(command: str) -> None:
    block = BLOCK.replace("('fastapi'", "('numpy', 'fastapi'")
    assert block != BLOCK
    done = run(COMMAND_LINE, command, "--help", block=block)
    assert done.stdout.startswith(f"Usage: treecaps {command} "), done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("train", PROGRAMS, "--out", "model"), "train"),
        (("train", "--model", "ggnn", "--help"), "train"),
        (("evaluate", "algorithms", PROGRAMS), "train"),
        (("data", PROGRAMS), "data"),
        (("embed", PROGRAMS / "gcd/gcd.c", "--format", "parquet", "--out", "x.parquet"), "data"),
        (("serve",), "serve"),
    ],
)
def test_what_is_missing_is_named(words: tuple[object, ...], extra: str) -> None:
    done = treecaps(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("treecaps: error: ")
    assert done.stderr.endswith(f"pip install 'treecaps[{extra}]'\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_model_of_another_architecture_says_what_it_needs(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    train(example_trees(), example_labels(), model="svm-tokens", folder=folder)
    done = treecaps("classify", "--model", folder, PROGRAMS / "gcd" / "gcd.c")
    assert done.returncode == 2
    assert "the architecture svm-tokens needs packages that are not installed" in done.stderr
    assert "pip install 'treecaps[train]'" in done.stderr


@pytest.mark.parametrize(("name", "extra"), [("train", "train"), ("Corpus", "data")])
def test_names_of_the_package_say_what_they_need(name: str, extra: str) -> None:
    done = run(f"""
import treecaps
try:
    treecaps.{name}
except treecaps.MissingExtraError as error:
    print(error)
""")
    expected = f"treecaps.{name} needs packages that are not installed: pip install"
    assert done.stdout == f"{expected} 'treecaps[{extra}]'\n", done.stderr
