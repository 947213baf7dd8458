import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_cli import PROGRAMS, bad_files, run, run_in_terminal
from tests.inference.examples import LABELS, save_small_model, small_model
from tests.search.examples import write_files
from treecaps.inference.classify import Classification, classify
from treecaps.models.calibration import Calibration
from treecaps.models.trained import load
from treecaps.syntax.functions import find_functions
from treecaps.syntax.parse import parse_file


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


def type_in(monkeypatch: pytest.MonkeyPatch, code: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(code)))


def test_each_file_is_a_line(model: Path, run_here: Run) -> None:
    file = PROGRAMS / "gcd/gcd.c"
    done = run_here("classify", "--model", model, PROGRAMS / "stack", file, "--workers", "1")
    lines = done.stdout.splitlines()
    unknown = sum(": unknown" in line for line in lines)
    summary = f"{14 - unknown} of 14 named, {unknown} unknown, 0 failed\n"
    assert (done.returncode, done.stderr) == (0, summary)
    assert len(lines) == 14
    (result,) = classify(small_model(), [file])
    assert isinstance(result, Classification)
    first, *others = (
        f"{one.label} {one.probability:.0%}" for one in result.top if one.probability >= 0.05
    )
    then = f"; then {', '.join(others)}" if others else ""
    assert lines[-1] == f"{file}: {first}{then}"


def test_what_is_in_no_class_is_unknown(tmp_path: Path, run_here: Run) -> None:
    calibration = Calibration(0.01, 0.999)
    replace(small_model(), calibration=calibration).save(tmp_path / "model")
    words = ("classify", "--model", tmp_path / "model", PROGRAMS / "gcd/gcd.c")
    line = run_here(*words, "--top", "1").stdout
    result = json.loads(run_here(*words, "--json").stdout)
    assert (result["label"], result["known"]) == ("unknown", False)
    best = result["top"][0]
    assert result["guess"] == best["label"]
    assert best["probability"] >= 0.05
    assert line.strip().endswith(f": unknown, perhaps {best['label']} {best['probability']:.0%}")


def test_what_is_hardly_probable_is_not_worth_a_word(tmp_path: Path, run_here: Run) -> None:
    # The hotter, the more even: each of so many classes has less than five per cent.
    words = ("classify", "--top", "3", PROGRAMS / "gcd/gcd.c")
    model = load("algorithms")
    for threshold, verdict in ((0.0, "gcd 3%"), (0.999, "unknown")):
        calibration = replace(model.calibration, temperature=1.0, threshold=threshold, none=None)
        replace(model, calibration=calibration).save(tmp_path / verdict)
        line = run_here(*words, "--model", tmp_path / verdict).stdout
        assert line == f"{PROGRAMS / 'gcd/gcd.c'}: {verdict}\n"


def test_an_empty_program_is_called_so(model: Path, tmp_path: Path, run_here: Run) -> None:
    file = tmp_path / "a.py"
    file.write_text("# gcd\n")
    done = run_here("classify", "--model", model, file)
    assert (done.returncode, done.stdout) == (0, f"{file}: unknown, the program is empty\n")
    found = json.loads(run_here("classify", "--model", model, file, "--json").stdout)
    assert (found["label"], found["guess"], found["top"]) == ("unknown", None, [])


def test_one_class_or_all_can_be_named(model: Path, run_here: Run) -> None:
    words = ("classify", "--model", model, PROGRAMS / "gcd/gcd.c", "--top")
    assert "then" not in run_here(*words, "1").stdout
    assert all(label in run_here(*words, "99").stdout for label in LABELS)


def test_json_is_an_object_a_line_and_failures_are_among_them(
    model: Path, tmp_path: Path, run_here: Run
) -> None:
    good, none = PROGRAMS / "gcd/gcd.c", tmp_path / "none.c"
    done = run_here("classify", "--model", model, "--json", good, none, good, "--top", "2")
    assert (done.returncode, done.stderr) == (1, "")
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first == third
    assert list(first) == ["id", "label", "known", "guess", "probability", "length", "top"]
    assert [list(candidate) for candidate in first["top"]] == [
        ["label", "probability", "length"]
    ] * 2
    assert first["id"] == str(good)
    assert second == {
        "id": str(none),
        "error": {"code": "unreadable", "message": "no such file or directory"},
    }


def test_standard_input_is_read(
    model: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("classify", "--model", model, "--json", "-")
    code = (PROGRAMS / "gcd/gcd.c").read_bytes()
    type_in(monkeypatch, code)
    found = json.loads(run_here(*words, "--language", "c").stdout)
    (result,) = classify(model, [PROGRAMS / "gcd/gcd.c"])
    assert isinstance(result, Classification)
    assert found == {**result.to_dict(), "id": "-"}
    type_in(monkeypatch, code)
    assert json.loads(run_here(*words).stdout) == found  # the language is guessed
    done = run_here(*words, "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert "only once" in done.stderr


def test_a_mixed_folder(model: Path, tmp_path: Path, run_here: Run) -> None:
    gcd, notebook = (PROGRAMS / "gcd/gcd.py").read_text(), tmp_path / "a.ipynb"
    cells = [{"cell_type": "code", "source": code} for code in (gcd, "x = 1")]
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}}))
    files = {"tool": "#!/bin/python\n" + gcd, "venv/a.py": gcd, "gone.py": gcd, "notes.md": "x"}
    write_files(tmp_path, {**files, ".gitignore": "gone.py\n"})
    words = ("classify", "--model", model, tmp_path, "--json")
    done = run_here(*words)
    ids = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert ids == [f"{notebook}:cell 1", f"{notebook}:cell 2", str(tmp_path / "tool")]
    assert done.stderr.splitlines() == [
        f"{tmp_path}: passed over 1 file in no known language (1 .md)",
        f"{tmp_path}: left out 1 folder (venv), 1 file (ignored by .gitignore); --all takes them",
    ]
    assert run_here(*words, "--all").stdout.count("\n") == 5


def test_bad_input_gives_a_line_and_loses_nothing(
    model: Path, tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = bad_files(tmp_path)
    said["line.c"] = "larger than 1 MB"  # 10 MB in a line take seconds
    monkeypatch.chdir(tmp_path)
    done = run_here("classify", "--model", model, "--max-mb", "1", *said, PROGRAMS / "gcd/gcd.c")
    assert done.returncode == 1
    shown = {line.split(":")[0] for line in done.stdout.splitlines()}
    *failures, summary = done.stderr.splitlines()
    assert summary.endswith(f" unknown, {len(failures)} failed")
    errors = {line.split(":")[0]: line for line in failures}
    said["huge.c"] = "larger than 1 MB"
    for name, message in said.items():
        if message:
            assert message in errors[name]
        else:
            assert name in shown
    assert len(shown) + len(errors) == len(said) + 1


@pytest.mark.parametrize("broken", ["none", "empty", "cut off", "no labels"])
def test_a_broken_model_is_said_in_a_line(broken: str, tmp_path: Path, run_here: Run) -> None:
    folder = tmp_path / "model"
    if broken != "none":
        save_small_model(folder)
    if broken == "empty":
        for file in folder.iterdir():
            file.unlink()
    if broken == "cut off":
        tensors = folder / "model.safetensors"
        tensors.write_bytes(tensors.read_bytes()[:-100])
    if broken == "no labels":
        (folder / "labels.json").unlink()
    done = run_here("classify", "--model", folder, PROGRAMS / "gcd/gcd.c")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("treecaps: error: ")
    assert str(folder) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["classify"],
        ["classify", "--model", "m"],
        ["classify", "--model", "m", "x.c", "--top", "0"],
        ["classify", "--model", "m", "x.c", "--frontend", "ast"],
        ["classify", "--model", "m", "x.c", "--workers", "0"],
        ["evaluate"],
        ["evaluate", "m"],
    ],
)
def test_wrong_use_exits_with_2(words: list[str], run_here: Run) -> None:
    done = run_here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_an_unknown_language_is_said(model: Path, run_here: Run) -> None:
    file = PROGRAMS / "gcd/gcd.c"
    done = run_here("classify", "--model", model, file, "--language", "cobol")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cobol" in done.stderr


def test_it_works_in_a_process_of_its_own(model: Path) -> None:
    code = (PROGRAMS / "gcd/gcd.py").read_bytes()
    words = ("classify", "--model", model, "-", "--language", "python", PROGRAMS / "stack/stack.c")
    done = run(*words, stdin=code)
    assert done.returncode == 0
    assert re.fullmatch(r"\d of 2 named, \d unknown, 0 failed\n", done.stderr)
    assert done.stdout.startswith("-: ")
    assert done.stdout.count("\n") == 2


@pytest.mark.parametrize("name", ["classify", "embed", "evaluate"])
def test_help_loads_nothing_heavy(name: str) -> None:
    script = (
        "import sys\n"
        "from treecaps.cli.main import main\n"
        f"sys.argv = ['treecaps', '{name}', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'matplotlib', 'rich', 'sklearn', 'torch'} & set(sys.modules)))\n"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).endswith("[]\n")


def test_functions_one_by_one(model: Path, tmp_path: Path, run_here: Run) -> None:
    none = tmp_path / "none.py"
    none.write_text("x = 1\n")
    file = PROGRAMS / "gcd/gcd.c"
    done = run_here("classify", "--model", model, "--functions", file, none, "--top", "1")
    lines = done.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:5 gcd", f"{file}:15 main"]
    remark, summary = done.stderr.splitlines()
    assert (done.returncode, remark) == (0, f"{none}: has no functions")
    assert re.fullmatch(r"\d of 2 named, \d unknown, 0 failed", summary)
    results = run_here("classify", "--model", model, "--functions", "--json", file).stdout
    first, second = map(json.loads, results.splitlines())
    assert (first["id"], first["function"], first["line"]) == (str(file), "gcd", 5)
    assert second["function"] == "main"
    # A function is judged as a program of its own.
    tree = find_functions(parse_file(file))[0].tree
    trained = small_model()
    lengths = trained.scores(trained.read_trees([tree]))
    assert first["length"] == pytest.approx(lengths.max().item())


def test_constructors_and_accessors_are_left_out(
    model: Path, tmp_path: Path, run_here: Run
) -> None:
    file, bean = tmp_path / "a.py", tmp_path / "b.py"
    bean.write_text("class A:\n    def __init__(self):\n        self.x = 1\n")
    file.write_text(bean.read_text() + "\ndef f(n):\n    return f(n - 1) * n if n else 1\n")
    words = ("classify", "--model", model, "--functions", file, bean)
    done = run_here(*words)
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [f"{file}:5 f"]
    assert done.stderr == f"{bean}: has no functions but constructors and accessors\n"
    assert run_here(*words, "--all").stdout.count("\n") == 3


def test_nothing_done_is_exit_status_2(model: Path, tmp_path: Path, run_here: Run) -> None:
    words = ("classify", "--model", model, tmp_path / "none.md", tmp_path / "none")
    done = run_here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("no such file or directory") == 2
    assert run_here(*words, "--json").returncode == 2
    assert run_here(*words, PROGRAMS / "gcd/gcd.c").returncode == 1


def doubtful() -> str:
    """Return a program of which the search is a small part."""
    search = (PROGRAMS / "binary-search/BinarySearch.kt").read_text()
    shows = "".join(f'    println("$city has {number}")\n' for number in range(1, 41))
    return f"{search}\nfun show(city: String) {{\n{shows}}}\n"


def test_only_what_is_known_sorted_and_by_a_template(tmp_path: Path, run_here: Run) -> None:
    texts = {name: (PROGRAMS / name).read_text() for name in ("stack/stack.ts", "gcd/gcd.c")}
    places = [tmp_path / name for name in (*map(os.path.basename, texts), "Search.kt")]
    for place, text in zip(places, [*texts.values(), doubtful()], strict=True):
        place.write_text(text)
    words = ("classify", *places, "--format", r"{id}\t{label}|{probability:.0%}|{function}")
    lines = run_here(*words).stdout.splitlines()
    assert lines[1:] == [f"{places[1]}\tgcd|100%|", f"{places[2]}\tunknown|5%|"]
    assert run_here(*words, "--known-only").stdout.splitlines() == lines[:2]
    for by, order in (("path", [2, 1, 0]), ("class", [1, 0, 2]), ("probability", [1, 0, 2])):
        assert run_here(*words, "--sort", by).stdout.splitlines() == [lines[n] for n in order]
    ids = run_here("classify", *places, "--json", "--sort", "path").stdout.splitlines()
    assert [json.loads(line)["id"] for line in ids] == sorted(map(str, places))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{lable}", "a field 'lable' that is not known; did you mean label"),
        ("{}", "a field '' that is not known; there are id, function"),
        ("{label.upper}", "a field 'label.upper' that is not known"),
        ("{label", "cannot be read"),
        ("{label:d}", "does not fit"),
    ],
)
def test_wrong_templates_are_refused(template: str, message: str, run_here: Run) -> None:
    done = run_here("classify", PROGRAMS / "gcd/gcd.c", "--format", template)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_columns(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a-name-that-is-longer-than-half-of-any-terminal-that-is-looked-at-here-and-now.kt"
    monkeypatch.chdir(tmp_path)
    write_files(
        Path("a"),
        {
            "gcd.c": (PROGRAMS / "gcd/gcd.c").read_text(),
            "empty.py": "",
            f"b/{long}": doubtful(),
            "z.py": "",
        },
    )
    shown = run_in_terminal("classify", "a", columns=width)
    assert f"\x1b]8;;file://{tmp_path}/a/gcd.c\x1b\\gcd.c\x1b]8;;\x1b\\" in shown
    assert "\x1b[32mgcd\x1b[0m" in shown
    assert "\x1b[33munknown\x1b[0m" in shown
    lines = re.sub(r"\x1b(?:\]8;;.*?\x1b\\|\[\d*m)", "", shown).split("\r\n")
    remark = "not sure, perhaps permutations 5%; also binary-search in line 2"
    cut = {80: remark.index(" line"), 120: len(remark)}[width]
    first, rest = remark[:cut], remark[cut:].strip()
    assert lines[:-1] == [
        "a/b",
        f"  {long}",
        f"      unknown        {first}",
        *([" " * 21 + rest] if rest else []),
        "a",
        "  empty.py  unknown        the program is empty",
        "  gcd.c     gcd      100%",
        "  z.py      unknown        the program is empty",
        "1 of 4 named, 3 unknown, 0 failed",
    ]


def test_verbose_says_what_the_time_went_into(model: Path, run_here: Run) -> None:
    done = run_here("classify", "--model", model, PROGRAMS / "gcd", "--verbose")
    assert re.fullmatch(
        r"13 of 13 named, 0 unknown, 0 failed\n"
        r"treecaps: 13 inputs: imports [\d.]+ s, loading [\d.]+ s, parsing [\d.]+ s,"
        r" network [\d.]+ s\n",
        done.stderr,
    )
