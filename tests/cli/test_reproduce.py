import json
import shlex
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import treecaps
from tests.reproduction.loops import write_data
from treecaps.files import FileLock
from treecaps.reproduction.plan import TABLES

Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Small data sets in the place of those of the paper."""
    return write_data(tmp_path / "data")


def reproduce(run_here: Run, *words: Any) -> "CompletedProcess[str]":
    return run_here("reproduce", *words, "--quick", "--frontend", "tree-sitter")


def test_table_1_with_every_model(run_here: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = reproduce(run_here, "table1", "--data", data, "--out", out, "--epochs", "1")
    assert done.returncode == 0, done.stderr
    rows = TABLES["table1"].rows
    # Beside the one seed of a quick run, the networks of two ensembles: two more each.
    assert len(done.stderr.splitlines()) == 3 * (len(rows) + 2 * 2)
    page = (out / "table1-quick.md").read_text()
    assert "A quick run" in page
    assert page.count("24 programs to learn from, 8 to score.") == 3
    for row in rows:
        assert page.count(f"| {row.title} |") == 3
    assert "92.11 ± 0.90" in page
    assert "| - | - |" not in page
    assert page.count("| 1 instead of 30 |") == 3 * 2  # the preset paper and its ensemble
    assert page.count("| 1 instead of 60 |") == 3 * 2
    assert page.count("| 1 |") == 3 * 3  # support vector machines
    web = (out / "table1-quick.html").read_text()
    assert "(table1-quick.html)" in page
    assert web.count("<svg") == 3 * (3 + len(rows))
    assert "http" not in web.replace("http-equiv", "")


def test_it_goes_on_where_it_was_cut_off(run_here: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = (
        "table2",
        "--data",
        data,
        "--out",
        out,
        "--models",
        "treecaps,secondary",
    )
    first = reproduce(run_here, *words)
    assert first.returncode == 0, first.stderr
    cells = sorted((out / "cells").iterdir())
    assert [cell.name.rsplit("-", 2)[0] for cell in cells] == [
        "java-sort-secondary",
        "java-sort-treecaps",
    ]
    kept = {cell: cell.stat().st_mtime_ns for cell in cells}
    seconds = json.loads(cells[0].read_text())["seconds"]
    cells[0].write_text("{")  # as of a full disk
    again = reproduce(run_here, *words)
    assert again.stdout == first.stdout
    changed = [cell for cell in cells if cell.stat().st_mtime_ns != kept[cell]]
    assert changed == [cells[0]]
    # The model was there: what it took before counts, and nobody knows its memory any more.
    assert json.loads(cells[0].read_text())["seconds"] == seconds > 0
    assert json.loads(cells[0].read_text())["memory_mb"] is None
    other = reproduce(run_here, *words[:-1], "max-pooling")
    assert other.returncode == 0, other.stderr
    assert "1/1 java-sort-max-pooling-0" in other.stderr
    page = (out / "table2-quick.md").read_text()
    lines = read_table(page)
    # What was finished before is still there. What nobody asked for is not on the page.
    assert lines["TreeCaps, preset paper"][3] == "6 instead of 30"
    assert "D_cc = 4, preset paper" not in lines
    # Eight is what the preset has: it is the same training, which is not done again.
    eight, same = lines["D_cc = 8, preset paper"], lines["TreeCaps, preset paper"]
    assert (eight[:2], eight[3], eight[5:]) == (same[:2], same[3], same[5:])
    assert eight[3] != "-"
    assert lines["secondary layer, preset paper"][4].endswith(" (paper: 11.9)")
    assert same[4].endswith(" (paper: 10.3)")
    assert float(same[4].split()[0]) > 0


def read_table(page: str) -> dict[str, list[str]]:
    """Return the last table of a page by the first column."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    return {name: rest for name, *rest in rows}


def test_an_ensemble_is_the_networks_of_three_seeds(
    run_here: Run, data: Path, tmp_path: Path
) -> None:
    for name in ("python-algorithms", "poj104"):
        shutil.rmtree(data / name)
    out = tmp_path / "out"
    words = ("reproduce", "table1", "--data", data, "--out", out, "--frontend", "tree-sitter")
    single = (*words, "--models", "treecaps", "--epochs", "9,java-sort=2")
    done = run_here(*single)
    assert "3/3 java-sort-treecaps-2" in done.stderr
    models = {path.name: path.stat().st_mtime_ns for path in (out / "models").rglob("*")}
    assert sum(name.startswith("java-sort-treecaps-") for name in models) == 3
    done = run_here(*words, "--models", "treecaps-3", "--epochs", "java-sort=2")
    assert "4/4 java-sort-treecaps-3-0" in done.stderr
    assert {path.name: path.stat().st_mtime_ns for path in (out / "models").rglob("*")} == models
    # Other epochs of another row: what is finished stays, with its own epochs.
    done = run_here(*words, "--models", "tbcnn", "--epochs", "1", "--seeds", "2")
    lines = read_table((out / "table1.md").read_text().partition("## C")[0])
    assert lines["TBCNN"][3].startswith("1 instead of ")
    for title in ("TreeCaps, preset paper", "TreeCaps, preset paper (3-ensembles)"):
        assert lines[title][3] == "2 instead of 30"
    assert " ± " in lines["TreeCaps, preset paper"][0]
    assert " ± " not in lines["TreeCaps, preset paper (3-ensembles)"][0]
    assert "TreeCaps, preset published" not in lines
    check_json(out / "table1.json", shlex.join(["treecaps", *map(str, single)]))


def check_json(path: Path, command: str) -> None:
    """Check what is behind the page of two seeds and an ensemble of three."""
    assert path.stat().st_size < 40_000
    behind = json.loads(path.read_text())
    assert command in behind["commands"]
    assert len(behind["commands"]) == 3
    assert behind["treecaps"] == treecaps.__version__
    rows = {row["name"]: row for row in behind["rows"]}
    assert list(rows) == ["tbcnn", "treecaps", "treecaps-3"]
    found = rows["treecaps"]["data"]["java-sort"]["seeds"]
    assert [one["seed"] for one in found] == [0, 1]
    for one in found:
        assert one["epochs"] == len(one["loss"]) == len(one["validation"]) == 2
        assert 1 <= one["best_epoch"] <= 2
        assert min(one["ms"], one["seconds"], one["parameters"]) > 0
        assert 0 <= one["accuracy_blind"] <= 1
        assert "confusion" not in one
    assert rows["treecaps"]["network"]["code_size"] == 8
    assert rows["treecaps"]["training"]["batch_size"] is None
    (joined,) = rows["treecaps-3"]["data"]["java-sort"]["seeds"]
    assert len(joined["weights"]) == 3
    assert sum(joined["weights"]) == pytest.approx(1)
    assert joined["parameters"] == 3 * found[0]["parameters"]
    assert joined["seconds"] > found[0]["seconds"] + found[1]["seconds"]


def test_a_page_that_another_process_writes_is_waited_for(
    run_here: Run, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("table1", "--data", data, "--out", out, "--models", "svm-windows")
    assert reproduce(run_here, *words).returncode == 0
    lock = FileLock(out / "table1-quick.lock")
    ended: list[int] = []

    def end() -> None:
        ended.append(time.time_ns())
        lock.close()

    threading.Timer(1.5, end).start()
    assert reproduce(run_here, *words).returncode == 0
    for ending in ("md", "html", "json"):
        assert (out / f"table1-quick.{ending}").stat().st_mtime_ns >= ended[0]
    assert not (out / "table1-quick.lock").exists()


def test_other_data_and_other_options_are_other_cells(
    run_here: Run, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("reproduce", "table1", "--data", data, "--out", out, "--models", "svm-windows")
    full = run_here(*words, "--seeds", "1", "--frontend", "tree-sitter")
    assert full.returncode == 0, full.stderr
    quick = reproduce(run_here, *words[1:])
    assert quick.returncode == 0, quick.stderr
    assert len(list((out / "cells").iterdir())) == 6
    assert "A quick run" not in (out / "table1.md").read_text()
    for part in ("train", "test"):
        path = data / "java-sort" / f"{part}.jsonl"
        path.write_text(path.read_text().replace('"sum"', '"total"'))
    again = reproduce(run_here, *words[1:])
    assert again.returncode == 0, again.stderr
    found = [json.loads(path.read_text())["labels"] for path in (out / "cells").iterdir()]
    assert sorted(found).count(["max", "total"]) == 1
    assert len(found) == 7


def test_a_data_set_that_fails_leaves_the_others(run_here: Run, data: Path, tmp_path: Path) -> None:
    path = data / "python-algorithms" / "train.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"max"' in line))
    path = data / "java-sort" / "test.jsonl"
    path.write_text(path.read_text() + '{"code": "\\u0000", "language": "java", "label": "sum"}\n')
    words = ("table1", "--data", data, "--out", tmp_path / "out", "--models", "svm-windows")
    done = reproduce(run_here, *words)
    assert done.returncode == 1
    message = "training needs at least two classes"
    assert f"python-algorithms-svm-windows-0: error: {message}" in done.stderr
    page = (tmp_path / "out" / "table1-quick.md").read_text()
    assert f"Not run: python-algorithms-svm-windows-0: {message}" in page
    assert page.count("24 programs to learn from, 8 to score") == 2


def test_missing_data_are_named_and_the_others_run(
    run_here: Run, data: Path, tmp_path: Path
) -> None:
    for path in (data / "poj104").iterdir():
        path.unlink()
    words = ("--out", tmp_path / "out", "--models", "svm-windows")
    done = reproduce(run_here, "table1", "--data", data, *words)
    assert done.returncode == 1
    assert "there is no train of the data set poj104" in done.stderr
    assert "train.jsonl.gz" in done.stderr
    page = (tmp_path / "out" / "table1-quick.md").read_text()
    assert "Not run: there is no train of the data set poj104" in page
    nothing = reproduce(run_here, "table1", "--data", tmp_path / "x", *words)
    assert (nothing.returncode, "none of the data sets is there" in nothing.stderr) == (2, True)
    assert "there is no data set java-sort in" in nothing.stderr
    wrong = run_here("reproduce", "table2", "--data", data, "--out", data, "--models", "x")
    assert "the table has no model 'x'; it has max-pooling" in wrong.stderr
    wrong = run_here("reproduce", "table2", "--data", data, "--out", data, "--epochs", "poj104=4")
    assert "the table has no data set 'poj104'; it has java-sort" in wrong.stderr
    assert wrong.returncode == 2


def test_the_name_of_a_folder_makes_no_lines(run_here: Run, data: Path, tmp_path: Path) -> None:
    evil = data.rename(tmp_path / "a\n# 99.99\x1b[41m\udcff")
    (evil / "poj104").rename(tmp_path / "elsewhere")
    words = ("table1", "--data", evil, "--out", tmp_path / "out", "--models", "svm-windows")
    done = reproduce(run_here, *words)
    assert done.returncode == 1
    page = (tmp_path / "out" / "table1-quick.md").read_text()
    assert "a\\n# 99.99\\x1b[41m\N{REPLACEMENT CHARACTER}" in page
    assert all(line.isprintable() for line in (page + done.stderr).split("\n"))
    behind = json.loads((tmp_path / "out" / "table1-quick.json").read_bytes())
    assert "a\n# 99.99\x1b[41m\N{REPLACEMENT CHARACTER}" in behind["commands"][0]
