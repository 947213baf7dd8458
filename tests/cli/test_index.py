import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.inference.examples import save_small_model
from tests.search.examples import copy_programs


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_programs(tmp_path_factory.mktemp("search") / "programs")


def test_index_search_and_clones(
    model: Path, programs: Path, tmp_path: Path, run_here: Run
) -> None:
    out = tmp_path / "index"
    done = run_here("index", programs, "--out", out, "--model", model)
    assert (done.returncode, done.stderr) == (0, "")
    assert "functions of 13 files (13 new, 0 changed, 0 gone; 13 embedded)" in done.stdout
    done = run_here("index", programs, "--out", out, "--model", model, "--json")
    assert json.loads(done.stdout)["embedded"] == 0

    file = programs / "gcd.c"
    done = run_here("search", out, file, "--lines", "5-13", "--top", "3", "--show", "2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    # From where one stands; then the first lines with their numbers.
    assert lines[0] == f"{os.path.relpath(file)}:5 gcd 1.00 c"
    code = file.read_text().split("\n")
    assert lines[1:3] == [f"     5  {code[4]}".rstrip(), f"     6  {code[5]}".rstrip()]
    assert sum(not line.startswith(" ") for line in lines) == 3
    done = run_here("search", out, file, "--lines", "5-13", "--top", "3", "--show", "0")
    assert len(done.stdout.splitlines()) == 3
    done = run_here("search", out, file, "--functions", "--json", "--top", "1")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["function"] for row in rows] == ["gcd", "main"]
    for row in rows:
        (match,) = row["matches"]
        assert (match["path"], match["function"], match["line"]) == (
            "gcd.c",
            row["function"],
            row["line"],
        )

    (programs / "copy.c").write_bytes(file.read_bytes())
    done = run_here("clones", programs, "--model", model, "--threshold", "1")
    (programs / "copy.c").unlink()
    assert done.returncode == 1
    row = "{}:5-13 gcd copied 1.00 alike 1.00 c\n"
    assert f"  {row.format('copy.c')}  {row.format('gcd.c')}" in done.stdout
    done = run_here("clones", out, "--threshold", "1")
    assert (done.returncode, done.stdout) == (0, "")
    assert "functions are alike" in done.stderr

    file.rename(programs / "other.c")
    done = run_here("search", out, programs / "other.c", "--lines", "5-13", "--top", "1")
    (programs / "other.c").rename(file)
    assert done.returncode == 0
    assert f"changed or went away since; bring it up to date: treecaps index {programs}" in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gcd.c", "--lines", "100-200"], "there are no lines 100-200: the program has lines 1-"),
        (["gcd.c", "--lines", "x"], "lines are two numbers such as 10-40, not 'x'"),
        (["gcd.c", "--lines", "1-2", "--functions"], "exclude each other"),
        (["gcd.c", "--language", "klingon"], "klingon"),
        (["empty.c"], "is empty: there is nothing to search for"),
        (["none.c"], "none.c: no such file or directory"),
        (["zeros.c"], "looks like a binary file"),
    ],
)
def test_what_cannot_be_searched_for(
    words: list[str],
    message: str,
    model: Path,
    programs: Path,
    tmp_path: Path,
    run_here: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "index"
    assert run_here("index", programs, "--out", out, "--model", model).returncode == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gcd.c").write_bytes((programs / "gcd.c").read_bytes())
    (tmp_path / "empty.c").write_text(" \n")
    (tmp_path / "zeros.c").write_bytes(bytes(1000))
    done = run_here("search", out, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["index", "clones"])
def test_an_empty_folder(command: str, tmp_path: Path, run_here: Run) -> None:
    out = ["--out", tmp_path / "index"] if command == "index" else []
    (tmp_path / "empty").mkdir()
    done = run_here(command, tmp_path / "empty", *out)
    assert done.returncode == 2
    assert "holds no programs in a known language" in done.stderr
    assert not (tmp_path / "index").exists()


def test_search_with_the_default_model(
    programs: Path, tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    out = tmp_path / "index"
    assert run_here("index", programs, "--out", out).returncode == 0
    # Standard input has no name: its language is guessed.
    give((programs / "gcd.py").read_text())
    done = run_here("search", out, "-", "--functions", "--top", "2")
    first, found, *_ = done.stdout.splitlines()
    assert first.startswith("-:")
    assert re.fullmatch(r"  \S*gcd\.py:\d+ gcd [0-9]+% python", found)
    done = run_here("search", out, programs / "gcd.py", "--functions", "--json")
    match = json.loads(done.stdout.splitlines()[0])["matches"][0]
    assert 0.5 < match["probability"] <= 1
    give("import os\n\nos.environ['PATH'] = 'bin'\n")
    done = run_here("search", out, "-")
    assert done.stdout.startswith("nothing really alike; the nearest:\n")
