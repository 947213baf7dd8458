"""Names that hold line breaks and the like: none makes a line of its own, or moves the cursor."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_cli import PROGRAMS
from tests.cli.test_train import QUICK
from tests.inference.examples import save_small_model

EVIL = "a\nb.py: gcd 99%\r\x1b[41m\u2028\x85\u202e"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


def copy_programs(place: Path, name: str) -> Path:
    """Put programs of two classes into a folder, with a name in all of theirs."""
    folder = place / f"data{name}"
    for label in ("gcd", "stack"):
        (folder / f"{label}{name}").mkdir(parents=True)
        code = (PROGRAMS / label / f"{label}.py").read_text()
        for number in range(4):
            file = folder / f"{label}{name}" / f"{number}{name}.py"
            file.write_text(f"x = {number}\n{code}")
    (folder / f"gcd{name}" / f"none{name}.py").symlink_to("none")
    return folder


COMMANDS: dict[str, list[str]] = {
    "classify": ["classify", "--model", "MODEL", "DATA"],
    "clones": ["clones", "--model", "MODEL", "DATA"],
    "data": ["data", "DATA", "--against", "DATA"],
    "evaluate": ["evaluate", "MODEL", "DATA"],
    "explain": ["explain", "--model", "MODEL", "FILE"],
    "functions": ["classify", "--functions", "--model", "MODEL", "FILE", "DATA/none.py"],
    "label": ["explain", "--model", "MODEL", "FILE", "--label", "DATA"],
    "no data": ["data", "DATA/none"],
    "no model": ["classify", "--model", "DATA", "FILE"],
    "parse": ["parse", "DATA"],
    "tree": ["parse", "--tree", "DATA"],
    "train": ["train", "DATA", "--out", "DATA-model", *QUICK, "--epochs", "1"],
    "unknown option": ["classify", "--DATA"],
    "usage": ["data", "DATA", "DATA"],
    "vectors": ["vectors", "learn", "DATA", "--out", "DATA-vectors"],
    "wrong vectors": ["vectors", "neighbours", "FILE"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_changes_no_lines(command: str, model: Path, tmp_path: Path, run_here: Run) -> None:
    counts = []
    for name in ("-x", EVIL):
        data = copy_programs(tmp_path, name)
        places = {"MODEL": model, "DATA": data, "FILE": data / f"gcd{name}" / f"0{name}.py"}
        words = COMMANDS[command]
        for word, place in places.items():
            words = [one.replace(word, str(place)) for one in words]
        done = run_here(*words)
        for lines in (done.stdout, done.stderr):
            assert all(line.isprintable() for line in lines.split("\n"))
        counts.append((done.returncode, done.stdout.count("\n"), done.stderr.count("\n")))
    assert counts[0] == counts[1]
    assert sum(counts[0][1:]) > 0


def test_an_index_with_such_names(model: Path, tmp_path: Path, run_here: Run) -> None:
    counts = []
    for name in ("-x", EVIL):
        data, out = copy_programs(tmp_path, name), tmp_path / f"index{name}"
        file = data / f"gcd{name}" / f"0{name}.py"
        made = run_here("index", data, "--out", out, "--model", model)
        found = run_here("search", out, file)
        one_by_one = run_here("search", out, file, "--functions")
        file.rename(tmp_path / f"other{name}.py")
        gone = run_here("search", out, tmp_path / f"other{name}.py")
        shown = [
            text for done in (made, found, one_by_one, gone) for text in (done.stdout, done.stderr)
        ]
        assert all(line.isprintable() for text in shown for line in text.split("\n"))
        counts.append([text.count("\n") for text in shown])
    assert counts[0] == counts[1]


def test_a_warning_is_one_line(own_cache: Path, tmp_path: Path, run_here: Run) -> None:
    data = copy_programs(tmp_path, EVIL)
    run_here("data", data)
    (folder,) = own_cache.glob("corpus-*")
    os.truncate(folder / "trees.arrow", 10)
    told = run_here("data", data).stderr
    assert told.startswith("treecaps: the corpus in ")
    assert told[:-1].isprintable()


def test_names_that_are_not_utf_8_are_shown_as_far_as_they_are(
    model: Path, tmp_path: Path, run_here: Run
) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.py")
    file.write_text("x = 1\n")
    shown = str(tmp_path / "caf\N{REPLACEMENT CHARACTER}.py")
    none = tmp_path / os.fsdecode(b"none\xe9.py")
    words = ("classify", "--model", model, file, none)
    done = run_here(*words)
    assert done.stdout.startswith(f"{shown}: ")
    assert "none\N{REPLACEMENT CHARACTER}.py: error: " in done.stderr
    first, second = map(json.loads, run_here(*words, "--json").stdout.splitlines())
    assert first["id"] == shown
    assert second["id"].endswith("none\N{REPLACEMENT CHARACTER}.py")


def test_the_card_of_a_model_has_no_lines_of_others(tmp_path: Path, run_here: Run) -> None:
    counts = []
    for name in ("-x", EVIL):
        data, out = copy_programs(tmp_path, name), tmp_path / f"model{name}"
        run_here("train", data, "--out", out, *QUICK, "--epochs", "1")
        lines = (out / "README.md").read_bytes().decode().split("\n")
        assert all(line.isprintable() for line in lines)
        counts.append(len(lines))
    assert counts[0] == counts[1]
