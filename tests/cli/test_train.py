import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_cli import COMMAND, PROGRAMS, run, run_in_terminal
from tests.conftest import EXAMPLES
from tests.training.examples import LABELS, SMALL
from treecaps.data.corpus import Corpus
from treecaps.inference.retrieval import evaluate_retrieval
from treecaps.models.trained import TrainedModel, load

QUICK = [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture
def two_classes(tmp_path: Path) -> Path:
    """A small data set of Python programs."""
    folder = tmp_path / "data"
    for label, code in (("loops", "for i in x:\n    y = {}\n"), ("calls", "print({})\n")):
        (folder / label).mkdir(parents=True)
        for number in range(4):
            (folder / label / f"{number}.py").write_text(code.format(number) * (number + 1))
    return folder


def test_a_training_from_data_to_model(run_here: Run, tmp_path: Path) -> None:
    out = tmp_path / "model"
    done = run_here("train", PROGRAMS, "--out", out, *QUICK, "--epochs", "2", "--seed", "7")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert "loss 2." in lines[0]
    assert "validation" in lines[0]
    for words in (
        "48 for training, 4 for validation",
        "2, the best was",
        "accuracy",
        f"report: {out / 'report.html'}",
        f"next: treecaps evaluate {out} DATA",
        f"treecaps classify --model {out} FILE",
    ):
        assert words in done.stdout
    model = TrainedModel.load(out)
    assert list(model.labels) == LABELS
    assert model.card["run"]["seed"] == 7
    assert model.card["command"].startswith(f"treecaps train {PROGRAMS} --out {out}")


def test_a_training_for_similarity(run_here: Run, tmp_path: Path) -> None:
    out = tmp_path / "model"
    words = ("train", PROGRAMS, "--out", out, "--task", "similarity", *QUICK)
    done = run_here(*words, "--epochs", "2")
    assert done.returncode == 0, done.stderr
    assert "validation MAP@R" in done.stderr.splitlines()[-1]
    for line in (
        "44 for training, 8 for validation",
        "MAP@R",
        f"next: treecaps evaluate {out} DATA",
    ):
        assert line in done.stdout
    assert "classify" not in done.stdout
    program = EXAMPLES[0]
    (line,) = run_here("embed", "--model", out, program).stdout.splitlines()
    assert sum(one * one for one in json.loads(line)["vector"]) == pytest.approx(1, abs=1e-3)
    for refused in (
        ("classify", "--model", out, program),
        ("evaluate", out, PROGRAMS, "--confusion", tmp_path / "confusion.png"),
        ("explain", "--model", out, program),
    ):
        told = run_here(*refused)
        assert (told.returncode, told.stdout) == (2, "")
        assert told.stderr.splitlines() == [
            "treecaps: error: this model was trained for similarity and knows no classes: use it"
            " with treecaps evaluate MODEL DATA or treecaps embed --model MODEL FILE or treecaps"
            " index --model MODEL DIR --out INDEX, or train another with: treecaps train DATA --out"
            " FOLDER"
        ]
    scored = json.loads(run_here("evaluate", out, PROGRAMS, "--blind", "--json").stdout)
    expected = evaluate_retrieval(out, Corpus.build(PROGRAMS)).to_dict()
    assert {key: scored[key] for key in expected if key != "ms_per_program"} == {
        key: value for key, value in expected.items() if key != "ms_per_program"
    }
    assert (scored["programs"], scored["classes"], scored["languages"]["c"]) == (52, 4, 4)
    assert scored["map_at_r_within"] is None  # there is one program of each class in a language
    for name in ("map_at_r", "map_at_r_across"):
        assert 0 < scored[name] <= 1
        assert 0 < scored[f"{name}_blind"] <= 1
    table = run_here("evaluate", out, PROGRAMS, "--blind").stdout
    assert f"{scored['map_at_r_across']:.2%}" in table
    assert "MAP@R across languages" in table
    other = run_here("train", PROGRAMS, "--out", out, *QUICK, "--epochs", "2", "--resume")
    assert other.returncode == 2
    assert "task similarity instead of classification" in other.stderr


def test_programs_that_are_rewritten_are_learned_from(run_here: Run, tmp_path: Path) -> None:
    out = tmp_path / "model"
    words = ("train", PROGRAMS, "--out", out, *QUICK, "--epochs", "1")
    done = run_here(*words, "--set", "rewrite_probability=0.5")
    assert done.returncode == 0, done.stderr
    assert TrainedModel.load(out).card["run"]["training"]["rewrite_probability"] == 0.5
    done = run_here(*words, "--overwrite", "--set", "rewrite_probability=2")
    assert done.returncode == 2
    assert "rewrite_probability must be at least 0 and at most 1, not 2" in done.stderr


def test_json_and_ensembles_and_validation_data(
    run_here: Run, two_classes: Path, tmp_path: Path
) -> None:
    words = ("train", two_classes, "--val", PROGRAMS, "--out", tmp_path / "model", *QUICK)
    done = run_here(*words, "--ensemble", "2", "--threads", "1", "--json")
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["model"] == str(tmp_path / "model")
    assert found["data"]["validation"]["programs"] == 52
    assert found["metrics"]["validation_accuracy"] == 0
    assert len(found["members"]) == 2
    assert "52 validation programs count as wrong" in done.stderr
    assert "network 2/2, epoch 3/3: loss" in done.stderr
    again = run_here(*words, "--ensemble", "2", "--resume", "--json")
    assert json.loads(again.stdout) == found


def test_a_training_starts_with_a_bundled_model(
    run_here: Run, two_classes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    done = run_here(
        "train", two_classes, "--out", out, "--init-from", "algorithms", "--epochs", "5"
    )
    assert done.returncode == 0, done.stderr
    init_from, model = load("algorithms"), TrainedModel.load(out)
    assert model.config == init_from.config
    assert {*init_from.vocabulary.tokens} <= {*model.vocabulary.tokens}
    assert model.labels == ("calls", "loops")


def test_a_training_with_background(run_here: Run, two_classes: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    for number in range(10):
        code = f"class A{number}(B):\n    def run(self):\n        self.x.send({number})\n"
        (others / f"{number}.py").write_text(code * 3)
    out = tmp_path / "model"
    words = ("train", two_classes, "--background", others, "--out", out, *QUICK, "--epochs", "2")
    assert run_here(*words).returncode == 0
    model = TrainedModel.load(out)
    assert model.card["data"]["training"]["background"] == 27  # files, functions and fragments
    assert model.calibration.none is not None
    assert run_here(*words, "--resume").returncode == 0
    wrong = run_here("train", two_classes, "--val-background", others, "--out", tmp_path / "other")
    assert wrong.returncode == 2
    assert "validation background goes with background (--background)" in wrong.stderr
    wrong = run_here(*words[:-4], "--task", "similarity", "--overwrite")
    assert wrong.returncode == 2
    assert "similarity does not learn from background" in wrong.stderr


def test_failed_programs_are_told(run_here: Run, two_classes: Path, tmp_path: Path) -> None:
    (two_classes / "loops" / "bad.py").write_text("(\n")
    words = ("train", two_classes, "--out", tmp_path / "model", *QUICK, "--frontend", "ast")
    done = run_here(*words)
    assert done.returncode == 1
    assert "loops/bad.py: error: " in done.stderr
    model = TrainedModel.load(tmp_path / "model")
    assert model.frontend == "ast"
    assert model.card["data"]["training"]["failed"] == 1


def test_wrong_words_are_said_before_the_work(
    run_here: Run, two_classes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    nowhere = tmp_path / "nowhere"
    for words, message in (
        (("--set", "chanels=3"), "did you mean channels"),
        (("--set", "gated=3"), "gated must be true or false"),
        (("--epochs", "0"), "epochs must be at least 1"),
        (("--resume", "--overwrite"), "choose one"),
        (("--threads", "1000000"), "1000000 is not in the range"),
        (("--set", "channels=9999999"), "channels must be at most 1,000,000"),
        (("--init-from", "algoritms"), "algoritms"),
        (
            ("--init-from", "algorithms", "--nodes", "kinds"),
            "--init-from algorithms decides what the",
        ),
        (
            ("--init-from", "algorithms", "--model", "tbcnn"),
            "the pretrained model is treecaps, not tbcnn",
        ),
        (
            ("--task", "similarity", "--model", "tbcnn"),
            "only the architecture treecaps learns similarity",
        ),
    ):
        done = run_here("train", nowhere, "--out", out, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    assert "does not exist" in run_here("train", nowhere, "--out", out).stderr
    done = run_here("train", nowhere, "--out", two_classes)
    assert f"{two_classes} holds other files; choose another folder (--out)" in done.stderr
    done = run_here("train", two_classes / "loops", "--out", out)
    assert (done.returncode, "none of the 4 training programs has a label" in done.stderr) == (
        2,
        True,
    )
    (two_classes / "calls").rename(two_classes / "loops" / "more")
    done = run_here("train", two_classes, "--out", out)
    assert (done.returncode, "at least two classes" in done.stderr) == (2, True)


def test_names_that_are_no_utf8_can_be_learned_from(
    run_here: Run, two_classes: Path, tmp_path: Path
) -> None:
    (two_classes / "calls").rename(two_classes / os.fsdecode(b"\xff"))
    data = two_classes.rename(tmp_path / os.fsdecode(b"data\xfe"))
    out = tmp_path / os.fsdecode(b"model\xfd")
    done = run_here("train", data, "--out", out, "--epochs", "1")
    assert done.returncode == 0, done.stderr
    assert len(TrainedModel.load(out).labels) == 2


def test_help_lists_the_options_of_a_network() -> None:
    shown = " ".join(run("train", "--help").stdout.split())
    assert "channels V', the outputs of a convolution slice" in shown
    assert "learning_rate the learning rate of RAdam" in shown


def test_a_terminal_shows_a_bar(two_classes: Path, tmp_path: Path) -> None:
    shown = run_in_terminal(
        "train", two_classes, "--out", tmp_path / "model", *QUICK, "--epochs", "40"
    )
    assert "training" in shown
    assert "/40, loss 0." in shown
    assert "validation" in shown


def wait_for_epoch(out: Path, epoch: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a training has kept an epoch."""
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        if (out / "checkpoint" / f"0-{epoch}.safetensors").exists():
            return
        time.sleep(0.002)
    raise AssertionError(f"epoch {epoch} was never seen: {process.communicate()}")


@pytest.mark.parametrize("deed", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_training_goes_on_to_the_same_model(
    run_here: Run, two_classes: Path, tmp_path: Path, deed: signal.Signals
) -> None:
    words = ["train", str(two_classes), *QUICK, "--set", "window_dropout=0.2"]
    words += ["--epochs", "300" if deed == signal.SIGINT else "30"]
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [*COMMAND, *words, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for_epoch(out, 3, process)
    process.send_signal(deed)
    shown, told = process.communicate(timeout=60)
    if deed == signal.SIGINT:
        assert process.returncode == 130
        assert b"interrupted" in told
        assert b"--resume goes on" in told
        assert b"next: treecaps evaluate" in shown
        assert b"report.html" not in shown  # there is none yet
        assert TrainedModel.load(out).card["stopped"] == "interrupted"
        return
    assert process.returncode == -signal.SIGKILL
    assert not (out / "config.json").exists()
    assert run_here(*words, "--out", out, "--resume").returncode == 0
    assert run_here(*words, "--out", tmp_path / "whole").returncode == 0
    for name in ("model.safetensors", "labels.json", "vocabulary.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_nothing_heavy_is_loaded_to_name_the_command() -> None:
    script = "import sys, treecaps.cli.train; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"
