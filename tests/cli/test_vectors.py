import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.test_cli import PROGRAMS, run
from treecaps.data.vocabulary import Vocabulary
from treecaps.training.vectors.kind_vectors import KindVectors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Vectors of a few kinds."""
    vocabulary = Vocabulary(["for_statement", "if_statement", "identifier", '"+"'])
    values = np.array([[0, 0], [0, 1], [3, 4], [3, 3], [-1, 0]], np.float32)
    path = tmp_path / "some.safetensors"
    KindVectors(vocabulary, values, np.array([0, 2, 10, 1500, 3]), "coding", "", 0, "0.1.0").save(
        path
    )
    return path


def test_learned_vectors_are_written(tmp_path: Path, run_here: Run) -> None:
    file, folder = tmp_path / "some.safetensors", tmp_path / "mine"
    for name in ("gcd/gcd.c", "stack/stack.c"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(PROGRAMS / name, folder / name)
    done = run_here("vectors", "learn", folder, "--out", file, "--size", "8", "--seed", "5")
    assert (done.returncode, done.stderr) == (0, "")
    vectors = KindVectors.load(file)
    kinds = len(vectors.vocabulary) - 1
    assert done.stdout == (
        f"{file}: 8 numbers for each of {kinds} kinds, by parent from 2 programs\n"
    )
    assert (vectors.method, vectors.size, vectors.seed, vectors.data) == ("parent", 8, 5, "mine")


def test_methods_and_front_ends_are_choices(tmp_path: Path) -> None:
    file = tmp_path / "some.safetensors"
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "good.py").write_text("print(1)\n")
    (folder / "bad.py").write_text("print(\n")
    words = ("vectors", "learn", folder, "--out", file, "--method", "random")
    assert run(*words).returncode == 0
    assert "call" in KindVectors.load(file).vocabulary.kinds
    done = run(*words, "--frontend", "ast")
    assert done.returncode == 1
    assert "bad.py: error: " in done.stderr
    assert "from 1 programs" in done.stdout
    assert "Call" in KindVectors.load(file).vocabulary.kinds
    assert run(*words, "--method", "magic").returncode == 2
    assert run(*words, "--size", "0").returncode == 2


def test_a_missing_folder_is_said_before_the_work(tmp_path: Path) -> None:
    done = run("vectors", "learn", tmp_path / "none", "--out", tmp_path / "no" / "some.safetensors")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no folder {tmp_path / 'no'}" in done.stderr
    done = run("vectors", "learn", tmp_path / "none", "--out", tmp_path / "some.safetensors")
    assert done.returncode == 2
    assert "none" in done.stderr


def test_neighbours_are_a_table_or_json(file: Path) -> None:
    lines = [line.split() for line in run("vectors", "neighbours", file).stdout.splitlines()]
    rows = [line for line in lines if len(line) > 3]
    assert [row[0] for row in rows] == ["identifier", "for_statement", "if_statement", '"+"']
    done = run("vectors", "neighbours", file, "for_statement", "+", "--top", "1")
    rows = [line.split() for line in done.stdout.splitlines() if "0." in line]
    assert rows == [
        ["for_statement", "10", "identifier", "0.99"],
        ['"+"', "2", "for_statement", "0.80"],
    ]
    done = run("vectors", "neighbours", file, "--json", "--top", "2")
    found = json.loads(done.stdout)
    assert list(found) == ["identifier", "for_statement", "if_statement", '"+"']
    assert found["for_statement"] == [
        {"kind": "identifier", "cosine": pytest.approx(0.98995, abs=1e-4)},
        {"kind": '"+"', "cosine": pytest.approx(0.8)},
    ]


def test_unknown_kinds_and_bad_files_say_what_to_do(file: Path) -> None:
    done = run("vectors", "neighbours", file, "for_statment")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean for_statement" in done.stderr
    done = run("vectors", "neighbours", file.parent / "none")
    assert done.returncode == 2
    assert "no such file" in done.stderr
    file.write_bytes(b"nonsense")
    done = run("vectors", "plot", file, "--out", file.parent / "picture.png")
    assert done.returncode == 2
    assert "damaged" in done.stderr


def test_pictures_are_drawn(file: Path, run_here: Run) -> None:
    out = file.parent / "picture.png"
    done = run_here("vectors", "plot", file, "--out", out)
    assert (done.returncode, done.stdout) == (0, f"{out}\n")
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [[], ["learn"], ["neighbours"], ["plot"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys\n"
        "from treecaps.cli.main import main\n"
        "sys.argv = ['treecaps', 'vectors', *sys.argv[1:], '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'matplotlib', 'rich', 'torch'} & set(sys.modules)))\n"
    )
    done = subprocess.check_output([sys.executable, "-c", script, *words], text=True)
    assert done.endswith("[]\n")
