import json
import random
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from treecaps.reproduction.plan import TABLES

Run = Callable[..., "CompletedProcess[str]"]

LOOPS = {
    "python": {
        "sum": "def {f}({v}):\n    {t} = {n}\n    for {i} in {v}:\n        {t} += {i}\n"
        "    return {t}\n",
        "max": "def {f}({v}):\n    {t} = {n}\n    for {i} in {v}:\n        if {i} > {t}:\n"
        "            {t} = {i}\n    return {t}\n",
    },
    "java": {
        "sum": "class A {{ int {f}(int[] {v}) {{ int {t} = {n}; for (int {i} : {v}) {t} += {i};"
        " return {t}; }} }}\n",
        "max": "class A {{ int {f}(int[] {v}) {{ int {t} = {n}; for (int {i} : {v}) if ({i} > {t})"
        " {t} = {i}; return {t}; }} }}\n",
    },
    "c": {
        "sum": "int {f}(int *{v}, int n) {{ int {t} = {n}; for (int {i} = 0; {i} < n; {i}++)"
        " {t} += {v}[{i}]; return {t}; }}\n",
        "max": "int {f}(int *{v}, int n) {{ int {t} = {n}; for (int {i} = 0; {i} < n; {i}++)"
        " if ({v}[{i}] > {t}) {t} = {v}[{i}]; return {t}; }}\n",
    },
}
DATA = {"python-algorithms": "python", "java-sort": "java", "poj104": "c"}
NAMES = ["alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma", "theta"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Small data sets in the place of those of the paper."""
    home = tmp_path / "data"
    for name, language in DATA.items():
        (home / name).mkdir(parents=True)
        for part, count in (("train", 12), ("test", 4)):
            chance = random.Random(part)
            rows = []
            for number in range(count):
                for label, code in LOOPS[language].items():
                    words = dict(zip("fvti", chance.sample(NAMES, 4), strict=True))
                    text = code.format(n=number, **words)
                    rows.append({"code": text, "language": language, "label": label})
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (home / name / f"{part}.jsonl").write_text(lines)
    return home


def reproduce(run_here: Run, *words: Any) -> "CompletedProcess[str]":
    return run_here("reproduce", *words, "--quick", "--frontend", "tree-sitter")


def test_table_1_with_every_model(run_here: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = reproduce(run_here, "table1", "--data", data, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = TABLES["table1"].rows
    assert len(done.stderr.splitlines()) == 3 * len(rows)
    page = (out / "table1-quick.md").read_text()
    assert "A quick run" in page
    assert page.count("24 programs to learn from, 8 to score.") == 3
    for row in rows:
        assert page.count(f"| {row.title} |") == 3
    assert "92.11 ± 0.90" in page
    assert "| - | - |" not in page.replace("| - | - | - |", "")
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
    # The model was there: what it took before counts.
    assert json.loads(cells[0].read_text())["seconds"] == seconds > 0
    other = reproduce(run_here, *words[:-1], "max-pooling")
    assert other.returncode == 0, other.stderr
    assert "1/1 java-sort-max-pooling-0" in other.stderr
    page = (out / "table2-quick.md").read_text()
    assert "| TreeCaps |" in page  # what was finished before is still there
    assert "D_cc = 4" not in page


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


def test_the_name_of_a_folder_makes_no_lines(run_here: Run, data: Path, tmp_path: Path) -> None:
    evil = data.rename(tmp_path / "a\n# 99.99\x1b[41m\udcff")
    (evil / "poj104").rename(tmp_path / "elsewhere")
    words = ("table1", "--data", evil, "--out", tmp_path / "out", "--models", "svm-windows")
    done = reproduce(run_here, *words)
    assert done.returncode == 1
    page = (tmp_path / "out" / "table1-quick.md").read_text()
    assert "a\\n# 99.99\\x1b[41m\N{REPLACEMENT CHARACTER}" in page
    assert all(line.isprintable() for line in (page + done.stderr).split("\n"))
