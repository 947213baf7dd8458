import csv
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.inference.examples import save_small_model
from tests.search.examples import write_files
from tests.search.test_copies import COPY, HONEST, ORIGINAL

C = "int f(int n)\n{\n    int s = 0;\n    while (n > 0) s += n--;\n    return s;\n}\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    renamed = ORIGINAL.replace("median", "mid").replace("values", "xs").replace("file", "f")
    files = {
        "ann/main.py": ORIGINAL,
        "bob/main.py": renamed,
        "bob/sum.c": C,
        "cem/start.py": COPY,
        "dan.py": HONEST,
        "node_modules/dan.py": HONEST,
        "cem/test_start.py": HONEST,
    }
    write_files(folder, files)
    return folder


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_pairs_of_files(model: Path, work: Path, run_here: Run) -> None:
    done = run_here("clones", work, "--model", model, "--files", "--pairs", "--json")
    assert done.returncode == 1
    assert "left out 1 folder (node_modules), 1 file (tests); --all takes them" in done.stderr
    found = rows(done.stdout)
    assert len(found) == 10
    assert all(list(row) == ["left", "right", "copied", "similarity"] for row in found)
    copied = {(row["left"], row["right"]): row["copied"] for row in found}
    assert copied["ann/main.py", "bob/main.py"] == 1
    assert 0.6 < copied["ann/main.py", "cem/start.py"] < 1
    assert copied["ann/main.py", "dan.py"] < 0.3
    done = run_here("clones", work, "--model", model, "--files", "--pairs", "--json", "--all")
    assert len(rows(done.stdout)) == 21


def test_submissions(model: Path, work: Path, run_here: Run) -> None:
    command = ("clones", work, "--model", model, "--submissions")
    found = rows(run_here(*command, "--pairs", "--json").stdout)
    assert {row[side] for row in found for side in ("left", "right")} == {
        "ann",
        "bob",
        "cem",
        "dan.py",
    }
    assert found[0] == {**found[0], "left": "ann", "right": "bob", "copied": 0.99}
    done = run_here(*command, "--copied", "0.9", "--threshold", "1")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("2: copied 0.99 or more, alike ")
    assert done.stdout.splitlines()[1].startswith("  ann copied 0.99 alike ")


def test_functions_and_groups(model: Path, work: Path, run_here: Run) -> None:
    command = ("clones", work, "--model", model, "--threshold", "1", "--copied", "1")
    done = run_here(*command)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("2: copied 1.00 or more, alike ")
    assert lines[1].startswith("  ann/main.py:6-11 median copied 1.00 alike ")
    (group,) = rows(run_here(*command, "--json").stdout)
    assert group["copied"] == 1
    assert group["members"][0]["function"] == "median"
    found = rows(run_here(*command, "--json", "--pairs", "--min-lines", "3").stdout)
    assert {(row["left"], row["left_function"]) for row in found if row["copied"] == 1} == {
        ("ann/main.py:2-4", "read"),
        ("ann/main.py:6-11", "median"),
        ("bob/main.py:2-4", "read"),  # with cem's
    }


def test_the_template_does_not_count(
    model: Path, work: Path, tmp_path: Path, run_here: Run
) -> None:
    (tmp_path / "given.py").write_text(ORIGINAL)
    command = ("clones", work, "--model", model, "--files", "--pairs", "--json")
    found = rows(run_here(*command, "--template", tmp_path / "given.py").stdout)
    assert {row["copied"] for row in found if row["left"] == "ann/main.py"} == {0}
    done = run_here(*command, "--template", tmp_path / "none.py")
    assert done.returncode == 2
    assert "none.py" in done.stderr


def test_new_work_against_old(model: Path, work: Path, tmp_path: Path, run_here: Run) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "last.py").write_text(COPY)
    index = tmp_path / "old.index"
    assert run_here("index", old, "--out", index, "--model", model).returncode == 0
    for place in (old, index):
        done = run_here("clones", work, "--model", model, "--files", "--against", place, "--json")
        found = rows(done.stdout)
        assert {row["right"] for row in found} == {"last.py"}
        assert found[0] == {**found[0], "left": "cem/start.py", "copied": 1}
        assert len(found) == 5


def test_bad_input_is_told_and_left_out(model: Path, work: Path, run_here: Run) -> None:
    (work / "eve").mkdir()
    (work / "eve" / "main.py").write_bytes(bytes(100))
    (work / "eve" / "broken.py").write_text("def f(:\n  )(" * 50)
    done = run_here("clones", work, "--model", model, "--submissions", "--pairs", "--json")
    assert done.returncode == 1
    assert "eve/main.py: error: looks like a binary file" in done.stderr
    assert len(rows(done.stdout)) >= 6


def test_what_is_no_program_is_told_and_left_out(model: Path, work: Path, run_here: Run) -> None:
    noise = random.Random(0)
    for name in ("one.cpp", "two.cpp"):
        text = "".join(noise.choices("{}()[]<>;:,.#@!?%^&*~`'\"\\|=+-$", k=2000))
        (work / name).write_text(text)
    done = run_here("clones", work, "--model", model, "--files", "--pairs", "--json")
    assert done.returncode == 1
    for name in ("one.cpp", "two.cpp"):
        assert f"{name}: error: most of it is not cpp" in done.stderr
    assert len(rows(done.stdout)) == 10


def test_submissions_without_code_are_told(
    model: Path, work: Path, tmp_path: Path, run_here: Run
) -> None:
    write_files(work, {"eve/main.py": "# to do\n\n", "fay/answer.txt": "none", "tests/a.py": C})
    page = tmp_path / "page.html"
    done = run_here("clones", work, "--model", model, "--submissions", "--html", page)
    told = [line for line in done.stderr.splitlines() if "no code" in line]
    assert told == [f"{work / name}: error: holds no code to compare" for name in ("eve", "fay")]
    assert done.returncode == 1
    assert "eve: holds no code to compare" in page.read_text()


def test_nothing_is_compared_with_itself(
    model: Path, work: Path, tmp_path: Path, run_here: Run
) -> None:
    command = ("clones", work / "ann", "--model", model, "--files", "--against")
    found = rows(run_here(*command, work, "--json").stdout)
    assert [row["right"] for row in found] == [
        "bob/main.py",
        "cem/start.py",
        "dan.py",
        "bob/sum.c",
    ]
    done = run_here(*command, work / "ann")
    assert done.returncode == 2
    assert "holds nothing else to compare with" in done.stderr


def test_one_file_has_nothing_to_be_compared_with(
    model: Path, tmp_path: Path, run_here: Run
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.py").write_text(ORIGINAL)
    command = ("clones", tmp_path / "one", "--model", model, "--files")
    page = tmp_path / "page.html"
    for words, said in (((), ""), (("--csv",), ""), (("--html", page), f"{page}\n")):
        done = run_here(*command, *words)
        assert (done.returncode, done.stdout) == (0, said)
        assert "nothing to compare" in done.stderr
    assert "There is nothing to compare with" in page.read_text()


def test_a_page_is_written_and_named(
    model: Path, work: Path, tmp_path: Path, run_here: Run
) -> None:
    (work / "eve").mkdir()
    (work / "eve" / "main.py").write_bytes(bytes(100))
    (work / "eve" / "broken.py").write_text("def f(:\n  )(" * 50)
    page = tmp_path / "page.html"
    command = ("clones", work, "--model", model, "--submissions", "--html", page)
    done = run_here(*command)
    assert (done.returncode, done.stdout) == (1, f"{page}\n")
    text = page.read_text()
    assert "eve/main.py: looks like a binary file" in text
    assert "eve/broken.py: most of it is not python" in text
    values = read_data(text)
    assert [one["name"] for one in values["works"]] == ["ann", "bob", "cem", "dan.py"]
    assert {one["name"] for one in values["works"][1]["sources"]} == {"bob/main.py", "bob/sum.c"}
    assert (values["pairs"][0]["left"], values["pairs"][0]["right"]) == (0, 1)
    # The page and what is printed do not exclude each other.
    done = run_here(*command, "--pairs", "--json")
    assert len(rows(done.stdout)) == len(values["pairs"]) == 6
    write_files(tmp_path / "old", {"main.py": COPY})
    done = run_here(*command, "--against", tmp_path / "old", "--copied", "0.5")
    assert values != (values := read_data(page.read_text()))
    assert values["thresholds"][0] == 0.5
    assert [one["name"] for one in values["works"] if one["old"]] == ["main.py"]


def read_data(page: str) -> dict[str, Any]:
    """Return what the script of a page reads."""
    found = re.search('<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    values: dict[str, Any] = json.loads(found[1])
    return values


def test_pairs_as_csv(model: Path, work: Path, run_here: Run) -> None:
    write_files(work, {"=1+1/main.py": ORIGINAL, "a,b/main.py": COPY})
    command = ("clones", work, "--model", model, "--submissions")
    done = run_here(*command, "--csv")
    assert done.returncode == 1
    head, *found = csv.reader(done.stdout.splitlines())
    known = rows(run_here(*command, "--pairs", "--json").stdout)
    assert head == [
        *("left", "right", "left_function", "right_function"),
        *("copied", "similarity", "probability"),
    ]
    assert len(found) == len(known) == 15
    for line, row in zip(found, known, strict=True):
        assert line[:2] == [row[side].replace("=1+1", "'=1+1") for side in ("left", "right")]
        assert line[2:4] == ["", ""]
        assert [float(line[4]), float(line[5]), line[6]] == [row["copied"], row["similarity"], ""]
    assert {"'=1+1", "a,b"} <= {line[side] for line in found for side in (0, 1)}


@pytest.mark.parametrize("place", ["none/page.html", "file/page.html", "", "x" * 300])
def test_a_page_that_cannot_be_written_is_told_before_the_work(
    place: str, model: Path, work: Path, tmp_path: Path, run_here: Run
) -> None:
    (tmp_path / "file").touch()
    # The model would be refused too, but it is loaded later.
    done = run_here("clones", work, "--model", tmp_path, "--html", tmp_path / place)
    assert (done.returncode, done.stdout) == (2, "")
    assert "model" not in done.stderr
    assert ("cannot write" if place else "is a directory") in done.stderr


def test_an_old_page_is_kept_where_the_work_fails(
    model: Path, tmp_path: Path, run_here: Run
) -> None:
    old, new = tmp_path / "old.html", tmp_path / "new.html"
    old.write_text("old")
    for page in (old, new):
        done = run_here("clones", tmp_path / "none", "--model", model, "--html", page)
        assert done.returncode == 2
    assert old.read_text() == "old"
    assert not new.exists()


def test_what_cannot_be_compared(model: Path, work: Path, tmp_path: Path, run_here: Run) -> None:
    index = tmp_path / "work.index"
    assert run_here("index", work, "--out", index, "--model", model).returncode == 0
    for words, message in (
        ((index, "--pairs"), "is an index, which has no syntax trees; name its folder"),
        ((index, "--csv"), "is an index, which has no syntax trees; name its folder"),
        ((index, "--html", tmp_path / "page.html"), "is an index, which has no syntax trees"),
        ((work, "--csv", "--json"), "choose CSV or JSON, not both"),
        ((work, "--files", "--submissions"), "not both"),
        ((work, "--against", tmp_path / "none"), "none does not exist; name the folder"),
        ((work, "--copied", "2"), "above 0 and at most 1"),
        ((work, "--copied", "2", "--html", tmp_path / "page.html"), "above 0 and at most 1"),
    ):
        done = run_here("clones", *words, "--model", model)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
