import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_cli import PROGRAMS
from tests.inference.examples import LABELS, save_small_model, small_model
from treecaps.data.corpus import Corpus
from treecaps.inference.evaluate import evaluate


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model") / "mine")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three programs of two classes, without docstrings."""
    folder = tmp_path / "data"
    for name in ("gcd/gcd.c", "gcd/gcd.go", "stack/stack.rs"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAMS / name, folder / name)
    return folder


def test_json_holds_all_figures(model: Path, run_here: Run) -> None:
    done = run_here("evaluate", model, PROGRAMS, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    expected = evaluate(small_model(), Corpus.build(PROGRAMS)).to_dict()
    for key, value in expected.items():
        if key != "ms_per_program":
            assert found[key] == value
    assert list(found) == ["data", *expected, "parse_ms_per_program"]
    assert (found["programs"], found["failed"], found["labels"]) == (52, 0, [*LABELS])
    assert found["ms_per_program"] > 0
    assert found["parse_ms_per_program"] > 0
    again = json.loads(run_here("evaluate", model, PROGRAMS, "--json").stdout)
    assert again["parse_ms_per_program"] is None  # from the cache


def test_renaming_does_not_fool_a_model_of_kinds(model: Path, data: Path, run_here: Run) -> None:
    found = json.loads(run_here("evaluate", model, data, "--json", "--blind").stdout)
    assert found["accuracy_blind"] == found["accuracy"]
    assert found["macro_f1_blind"] == found["macro_f1"]
    assert (found["programs_blind"], found["failed_blind"]) == (3, 0)
    done = run_here("evaluate", model, data, "--blind")
    (accuracy,) = (line for line in done.stdout.splitlines() if "accuracy" in line)
    assert accuracy.split() == ["accuracy", *[f"{found['accuracy']:.2%}"] * 2, "+0.00"]


def test_tables_show_classes_and_mistakes(
    model: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treecaps.cli.evaluate._ROWS", 2)
    monkeypatch.setattr("treecaps.cli.evaluate._MISTAKES", 1)
    done = run_here("evaluate", model, PROGRAMS)
    assert (done.returncode, done.stderr) == (0, "")
    expected = evaluate(small_model(), Corpus.build(PROGRAMS))
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["accuracy", f"{expected.accuracy:.2%}"] in rows
    assert ["macro", "F1", f"{expected.macro_f1:.2%}"] in rows
    worst = min(expected.classes, key=lambda score: score.f1)
    figures = [f"{value:.2f}" for value in (worst.precision, worst.recall, worst.f1)]
    assert [worst.label, "13", *figures] in rows
    label, answer, count = expected.mistakes()[0]
    assert [label, answer, str(count)] in rows
    assert "... and 2 more classes; --json has them all" in done.stdout
    assert "more pairs; --json has them all" in done.stdout


def test_failures_and_unknown_classes_are_told(model: Path, data: Path, run_here: Run) -> None:
    (data / "gcd" / "a.c").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(5000))
    shutil.copy(data / "gcd" / "a.c", data / "gcd" / "b.c")
    (data / "sudoku").mkdir()
    (data / "sudoku" / "c.c").write_text("int main() { return 0; }")
    (data / "alone.c").write_text("int main() { return 0; }")
    done = run_here("evaluate", model, data)
    assert done.returncode == 1
    assert "gcd/a.c: error: looks like a binary file, not source code (and 1 more)" in done.stderr
    assert "1 programs are of classes that the model was not trained on" in done.stderr
    assert "sudoku" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["programs", "4"] in rows
    assert ["failed,", "and", "in", "no", "figure", "2"] in rows
    assert ["without", "a", "label,", "left", "out", "1"] in rows
    found = json.loads(run_here("evaluate", model, data, "--json").stdout)
    assert (found["programs"], found["failed"], found["unlabelled"]) == (4, 2, 1)
    assert found["unknown_labels"] == {"sudoku": 1}
    assert found["failures"][0]["ids"] == ["gcd/a.c", "gcd/b.c"]


def test_a_picture_is_drawn(model: Path, data: Path, run_here: Run, tmp_path: Path) -> None:
    out = tmp_path / "confusion.svg"
    done = run_here("evaluate", model, data, "--confusion", out)
    assert done.returncode == 0
    assert "mine on data" in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("picture", "message"),
    [("a.pdf", "must end in .png or .svg"), ("no/a.png", "there is no folder no")],
)
def test_a_picture_that_cannot_be_is_said_before_the_work(
    picture: str, message: str, run_here: Run
) -> None:
    done = run_here("evaluate", "no-model", "no-data", "--confusion", picture)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_what_cannot_be_scored_is_an_error(
    model: Path, data: Path, tmp_path: Path, run_here: Run
) -> None:
    for words, message in (
        ((tmp_path / "none", data), "none"),
        ((data, data), "is no model"),
        ((model, tmp_path / "none"), "does not exist"),
        ((model, data / "gcd"), "no program of gcd has a label"),
    ):
        done = run_here("evaluate", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_options_reach_the_corpus(model: Path, data: Path, tmp_path: Path, run_here: Run) -> None:
    words = ("evaluate", model, data, "--cache", tmp_path / "cache", "--workers", "1")
    done = run_here(*words, "--language", "c", "--max-mb", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "accuracy" in done.stdout
    assert list((tmp_path / "cache").glob("corpus-*"))
