import json
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from tests.cli.conftest import Run
from tests.inference.test_bugs import WRONG, model
from treecaps.models.trained import TrainedModel

__all__ = ["model"]  # a fixture


@pytest.fixture
def here(model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    low = replace(model, calibration=replace(model.calibration, threshold=0.05))
    low.save(tmp_path / "model")
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "empty.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_place_is_a_line(here: Path, run_here: Run) -> None:
    done = run_here("bugs", "--model", "model", "wrong.py", "--workers", "1")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("wrong.py:2:")
    done = run_here("bugs", "--model", "model", "empty.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing suspicious\n")


def test_json_is_a_line_for_each_program(here: Path, run_here: Run) -> None:
    done = run_here("bugs", "--model", "model", "--json", "--all", "wrong.py", "empty.py", "x.py")
    assert done.returncode == 1
    wrong, empty, missing = map(json.loads, done.stdout.splitlines())
    assert wrong["id"] == "wrong.py"
    assert sorted(bug["line"] for bug in wrong["bugs"]) == [1, 2, 3]
    assert empty == {"id": "empty.py", "bugs": []}
    assert missing["error"]["code"] == "unreadable"


def test_sarif_is_one_log(here: Path, run_here: Run) -> None:
    done = run_here("bugs", "--model", "model", "--sarif", ".")
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    assert log["runs"][0]["results"]
    assert done.returncode == 1
    both = run_here("bugs", "--model", "model", "--sarif", "--json", ".")
    assert both.returncode == 2
    assert "leave out --json or --sarif" in both.stderr


def test_what_cannot_be_read_is_told(here: Path, run_here: Run) -> None:
    (here / "a.rs").write_text("fn f() {}")
    done = run_here("bugs", "--model", "model", "a.rs")
    assert done.returncode == 1
    assert "the model has not learned from rust, only from python" in done.stderr
    other = run_here("bugs", "--model", "algorithms", "wrong.py")
    assert other.returncode == 2
    assert "knows no bugs" in other.stderr


def test_a_cluster_of_this_machine_alone_says_the_same_and_ends(here: Path, run_here: Run) -> None:
    words = ("bugs", "--model", "model", "wrong.py", "empty.py", "--json")
    alone = run_here(*words)
    for name in ("safetensors", "threadpoolctl", "xxhash"):  # nothing of this folder is imported
        (here / f"{name}.py").write_text(f"open({str(here / 'imported')!r}, 'w')\nraise SystemExit")
    done = run_here(*words, "--ray", "--workers", "1")
    assert (done.returncode, done.stdout, done.stderr) == (1, alone.stdout, alone.stderr)
    assert not (here / "imported").exists()
    assert not ray.is_initialized()
