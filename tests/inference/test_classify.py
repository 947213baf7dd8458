import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import treecaps
import treecaps.inference.classify as module
from tests.conftest import EXAMPLES
from tests.inference.examples import LABELS, small_model
from treecaps.data import parallel
from treecaps.errors import Failure, UsageError
from treecaps.inference.classify import (
    Candidate,
    Classification,
    Part,
    classify,
    classify_units,
)
from treecaps.inference.units import CodeUnit
from treecaps.models.calibration import Calibration
from treecaps.syntax.functions import find_functions
from treecaps.syntax.program import Program


def answer_slowly(path: Path) -> list[Candidate]:
    """Return all classes of one file, best first, the long and obvious way."""
    model = small_model()
    inputs = model.read_trees([treecaps.parse_file(path)])
    (lengths,) = model.scores(inputs).tolist()
    total = sum(map(math.exp, lengths))
    found = [
        Candidate(label, math.exp(length) / total, length)
        for label, length in zip(LABELS, lengths, strict=True)
    ]
    return sorted(found, key=lambda candidate: -candidate.length)


def test_answers_are_those_of_one_program_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 3)
    files = sorted(EXAMPLES[::4], key=lambda path: path.name)  # languages take turns
    assert len(files) > 12
    assert files[0].suffix != files[1].suffix
    results = list(classify(small_model(), files, top=4, workers=2))
    assert [result.id for result in results] == [str(path) for path in files]
    for path, result in zip(files, results, strict=True):
        assert isinstance(result, Classification)
        slow = answer_slowly(path)
        assert [candidate.label for candidate in result.top] == [other.label for other in slow]
        for candidate, other in zip(result.top, slow, strict=True):
            assert candidate.probability == pytest.approx(other.probability, abs=1e-5)
            assert candidate.length == pytest.approx(other.length, abs=1e-5)
        assert (result.guess, result.probability, result.length) == result.top[0]
        assert (result.label, result.known) == (result.guess, True)


def test_probabilities_are_the_models() -> None:
    model = small_model()
    (result,) = classify(model, [EXAMPLES[0]], top=9)
    assert isinstance(result, Classification)
    inputs = model.read_trees([treecaps.parse_file(EXAMPLES[0])])
    expected = sorted(model.probabilities(inputs)[0].tolist(), reverse=True)
    assert [candidate.probability for candidate in result.top] == pytest.approx(expected)
    assert sum(expected) == pytest.approx(1)


def test_functions_of_other_classes_are_named_where_the_class_is_doubtful(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clear = 0.26  # this model is never sure
    monkeypatch.setattr(module, "_CLEAR", clear)
    model = replace(small_model(), calibration=Calibration(threshold=0.0))
    named = 0
    for path in EXAMPLES[::3]:
        tree = treecaps.parse_file(path)
        (whole,) = classify_units(model, [CodeUnit("program", tree)])
        assert 0.005 <= whole.probability < 0.98
        best: dict[str, Part] = {}
        for one in find_functions(tree):
            (found,) = classify_units(model, [CodeUnit("f", one.tree, one.name, one.line)])
            part = Part(one.name, one.line, found.label, round(found.probability, 4))
            before = best.get(part.label)
            if found.probability >= clear and (
                before is None or part.probability > before.probability
            ):
                best[part.label] = part
        best.pop(whole.label, None)
        parts = [part._replace(probability=round(part.probability, 4)) for part in whole.parts]
        assert parts == sorted(best.values(), key=lambda part: part.line)
        named += len(best)
    assert named > 5


@pytest.mark.parametrize(
    ("sure", "main", "threshold", "takes"),
    [(0, 0, 0.7, True), (1, 0, 0.7, False), (0, 0.9, 0.7, False), (0, 0, 0.1, False)],
)
def test_a_guess_is_right_if_it_is_the_class_of_the_main_function(
    sure: float, main: float, threshold: float, takes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (path for path in EXAMPLES if path.name == "BinarySearch.kt")
    tree = treecaps.parse_file(path)
    bundled = treecaps.load("algorithms")
    (function,) = (one for one in find_functions(tree) if one.name == "searchSorted")
    (answer,) = classify_units(bundled, [CodeUnit("f", function.tree, function.name, 2)])
    model = replace(bundled, calibration=replace(bundled.calibration, threshold=threshold))
    monkeypatch.setattr(module, "_SURE", sure)
    monkeypatch.setattr(module, "_MAIN", main)
    (whole,) = classify_units(model, [CodeUnit("program", tree)])
    (alone,) = classify_units(model, [CodeUnit("program", tree, "all", 1)])  # none are looked at
    assert alone.guess == answer.label == "binary-search"
    expected = answer if takes else alone
    assert takes == (whole.known and not alone.known)
    assert (whole.id, whole.label, whole.function) == ("program", expected.label, None)
    assert [one.label for one in whole.top] == [one.label for one in expected.top]
    assert whole.probability == pytest.approx(expected.probability, abs=1e-5)
    assert whole.length == pytest.approx(expected.length, abs=1e-5)


def test_functions_are_not_looked_at_where_the_class_is_certain_or_hopeless() -> None:
    tree = treecaps.parse_file(EXAMPLES[0])
    certain = replace(small_model(), calibration=Calibration(1e-3, 0.0))
    hopeless = replace(small_model(), calibration=Calibration(0.01, 0.0, none=1.0))
    for model, probability in ((certain, 1.0), (hopeless, 0.0)):
        (found,) = classify_units(model, [CodeUnit("program", tree)])
        assert found.probability == pytest.approx(probability, abs=0.02)
        assert found.parts == ()
        assert "parts" not in found.to_dict()


def test_bad_programs_are_results_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 1)
    (tmp_path / "binary.c").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(5000))
    (tmp_path / "empty.c").touch()
    gone = Failure("before", "record", "is no program")
    programs: list[Program | Failure | str | Path] = [
        gone,
        Program("int main() { return 0; }", "c", id="mine"),
        tmp_path / "none.c",
        str(EXAMPLES[0]),
        tmp_path / "binary.c",
        tmp_path / "empty.c",
    ]
    results = list(classify(small_model(), programs))
    assert results[0] == gone
    assert results[2] == Failure(
        str(tmp_path / "none.c"), "unreadable", "no such file or directory"
    )
    assert isinstance(results[4], Failure)
    assert results[4].code == "binary"
    good = [results[number] for number in (1, 3, 5)]
    assert all(isinstance(result, Classification) for result in good)
    assert [result.id for result in good] == ["mine", str(EXAMPLES[0]), str(tmp_path / "empty.c")]


def test_of_an_empty_program_nothing_is_guessed() -> None:
    model = small_model()
    codes = {"c": "", "python": " \n# gcd\n", "java": "/* gcd */", "go": "// gcd"}
    empty = [Program(code, language) for language, code in codes.items()]
    full = Program("int f() { return 1; }", "c")
    *results, last = classify(model, [*empty, full], top=2)
    for result in results:
        assert isinstance(result, Classification)
        nothing = Classification("<code>", "unknown", False, None, 0.0, 0.0, ())
        assert result == replace(nothing, reason="the program is empty")
        assert result.to_dict()["guess"] is None
    assert isinstance(last, Classification)
    assert last.guess in LABELS
    pieces = [CodeUnit(one.id, treecaps.parse_code(one.text, one.language)) for one in empty]
    assert classify_units(model, pieces) == results


MAIL = "Dear Ann,\n\nthe books are here; shall I bring them on Monday?\n\nYours, Tom\n"


@pytest.mark.parametrize(
    ("code", "min_nodes", "reason"),
    [
        ("app = 1\n", 24, "there is too little code to tell"),
        ("app = 1\n", 6, None),
        ("app = 1\n", 7, "there is too little code to tell"),
        (MAIL, 0, "most of it is not python"),
        ("def f(a):\n    return a + 1\n\n" * 3 + MAIL, 24, None),
    ],
)
def test_of_little_or_broken_code_nothing_is_guessed(
    code: str, min_nodes: int, reason: str | None
) -> None:
    model = replace(small_model(), calibration=Calibration(min_nodes=min_nodes))
    (result,) = classify(model, [Program(code, "python")])
    assert isinstance(result, Classification)
    assert result.reason == reason
    assert (result.guess is None, result.known) == (reason is not None, reason is None)
    assert result.to_dict().get("reason") == reason
    assert result.verdict == (f"unknown, {reason}" if reason else result.label)


def test_kinds_that_were_not_in_training_are_no_trouble() -> None:
    model = small_model()
    program = Program("fn f() -> u8 { unsafe { async { loop { yield 1 } } } }", "rust")
    tree = treecaps.parse_code(program.text, "rust")
    assert (model.vocabulary.encode(tree) == 0).any()
    (result,) = classify(model, [program])
    assert isinstance(result, Classification)
    assert result.label in LABELS


def test_a_large_file_is_classified() -> None:
    line = "int f{0}(int a) {{ while (a) {{ a = a * {0} + g(a, {0}); }} return a; }}\n"
    code = "".join(map(line.format, range(6000)))
    (result,) = classify(small_model(), [Program(code, "c")])
    assert isinstance(result, Classification)
    assert 0 <= result.length <= 1


def test_programs_may_be_without_end() -> None:
    read = 0

    def programs() -> Iterator[Program]:
        nonlocal read
        for read in itertools.count(1):
            yield Program("int a;", "c", id=str(read))

    results = classify(small_model(), programs(), top=1, workers=1)
    found = list(itertools.islice(results, 300))
    results.close()
    assert [result.id for result in found] == [str(number) for number in range(1, 301)]
    assert read < 5000


def test_nothing_gives_nothing_and_some_class_must_be_named() -> None:
    assert list(classify(small_model(), [])) == []
    with pytest.raises(UsageError, match="name one or more"):
        classify(small_model(), [], top=0)
    for one in ("b5.py", Path("b5.py")):
        with pytest.raises(UsageError, match="give a list"):
            classify(small_model(), one)  # type: ignore[arg-type]


def test_the_dictionary_keeps_its_shape() -> None:
    top = (Candidate("a", 0.6, 0.9), Candidate("b", 0.4, 0.5))
    assert Classification("x.c", "a", True, *top[0], top).to_dict() == {
        "id": "x.c",
        "label": "a",
        "known": True,
        "guess": "a",
        "probability": 0.6,
        "length": 0.9,
        "top": [
            {"label": "a", "probability": 0.6, "length": 0.9},
            {"label": "b", "probability": 0.4, "length": 0.5},
        ],
    }
