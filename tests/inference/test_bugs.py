import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import EXAMPLES
from tests.tasks.test_bugs import plain_pairs, small
from treecaps import load, parse_code, parse_file, train
from treecaps.errors import Failure, UsageError
from treecaps.inference.bugs import BugReport, find_bugs, find_bugs_in_tree, known_languages
from treecaps.models.calibration import Calibration
from treecaps.models.trained import TrainedModel
from treecaps.rendering.sarif import to_sarif
from treecaps.syntax.functions import find_functions
from treecaps.syntax.program import Program
from treecaps.tasks.lines import lines_of_nodes, log_sum


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    trees, labels = plain_pairs()
    folder = tmp_path_factory.mktemp("bugs")
    preset = small("epochs=12", "learning_rate=0.03", "mutation_probability=0")
    train(trees, labels, val=(trees, labels), preset=preset, folder=folder / "model")
    return load(folder / "model")


def report(model: TrainedModel, code: str, language: str = "python", **options: bool) -> BugReport:
    (found,) = find_bugs(model, [Program(code, language, id="a.py")], workers=1, **options)
    assert isinstance(found, BugReport)
    return found


WRONG, RIGHT = "a = b\na = b + 1\na = b\n", "a = b\na = b\na = b\n"


def test_the_suspicious_line_comes_first(model: TrainedModel) -> None:
    low = replace(model, calibration=replace(model.calibration, threshold=0.05))
    first = report(low, WRONG).bugs[0]
    assert (first.line, first.end_line) == (2, 2)
    assert first.code in "a = b + 1"
    lines = WRONG.splitlines()
    assert lines[first.line - 1][first.column - 1 : first.end_column - 1] == first.code
    assert first.probability > 0.05
    assert all(bug.probability < 0.5 for bug in report(low, RIGHT).bugs)


def test_every_line_with_code_is_ranked(model: TrainedModel) -> None:
    found = report(model, WRONG, every=True).bugs
    assert sorted(bug.line for bug in found) == [1, 2, 3]
    assert found[0].line == 2
    chances = [bug.probability for bug in found]
    assert chances == sorted(chances, reverse=True)
    # Naively: the probability of a bug, divided by the scores of the lines.
    tree = parse_code(WRONG, "python")
    scores = model.score_bugs(model.read_trees([tree]))
    margin = log_sum(scores.bug) - scores.none[0]
    chance = 1 / (1 + np.exp(-margin / model.calibration.temperature))
    shares = np.exp(scores.bug) / np.exp(scores.bug).sum()
    for bug in found:
        on_line = lines_of_nodes(tree) == bug.line
        assert bug.probability == pytest.approx(chance * shares[on_line].sum(), rel=1e-4)


def test_nothing_is_reported_below_the_threshold(model: TrainedModel) -> None:
    high = replace(model, calibration=Calibration(threshold=1.0))
    assert report(high, WRONG).bugs == ()


def test_json_has_what_scanners_ask_for(model: TrainedModel) -> None:
    found = report(model, WRONG, every=True)
    values = json.loads(json.dumps(found.to_dict()))
    assert set(values) == {"id", "bugs"}
    names = {"line", "column", "end_line", "end_column", "probability", "kind"}
    assert all(set(bug) == names for bug in values["bugs"])
    log = to_sarif([found])
    results = log["runs"][0]["results"]
    assert len(results) == len(found.bugs)
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a.py"
    assert place["region"]["startLine"] == found.bugs[0].line
    known = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in results} <= known


@pytest.mark.parametrize("code", ["", "\n\n", "# nothing\n"])
def test_an_empty_program_has_no_bugs(model: TrainedModel, code: str) -> None:
    assert report(model, code, every=True).bugs == ()


def test_columns_count_characters(model: TrainedModel) -> None:
    code = "ä = 'öü'; ä = b\n"
    for bug in report(model, code, every=True).bugs:
        assert code[bug.column - 1 : bug.end_column - 1].startswith(bug.code.removesuffix("..."))


def test_what_it_cannot_read_is_a_failure(model: TrainedModel) -> None:
    assert known_languages(model) == ("python",)
    programs = [
        Program("fn f() {}", "rust", id="a.rs"),
        Program("x = 1\nif (:\n", "python", id="b.py"),
        Program("x = 1\n", "python", id="c.py"),
    ]
    rust, broken, good = find_bugs(model, programs, workers=1)
    assert isinstance(rust, Failure)
    assert rust.message == "the model has not learned from rust, only from python"
    assert isinstance(broken, Failure)
    assert broken.code == "syntax"
    assert broken.message.startswith("syntax error in line 2, column")
    assert isinstance(good, BugReport)
    with pytest.raises(UsageError, match="syntax error"):
        find_bugs_in_tree(model, parse_code("if (:", "python"))


def test_macros_are_no_syntax_errors(model: TrainedModel) -> None:
    both = replace(model, card={"data": {"training": {"languages": ["c"]}}})
    code = "int f(int a) { return a; }\n" * 20
    tree = parse_code(code + "int g() { FOR(i, n) { x(); } return 0; }\n", "c")
    assert len(tree.errors)
    found = find_bugs_in_tree(both, tree, every=True)
    assert {bug.line for bug in found.bugs} >= {1, 2}


def test_a_large_program_is_looked_at_function_by_function(model: TrainedModel) -> None:
    body = "    a = b\n" * 3
    code = "".join(f"def f{number}(b):\n{body}\n" for number in range(200))
    tree = parse_code(code, "python")
    assert len(tree) > 2000
    found = find_bugs_in_tree(model, tree, every=True).bugs
    assert len(found) == 200 * 4
    alone = find_bugs_in_tree(model, find_functions(tree)[0].tree, every=True).bugs
    first = [bug for bug in found if bug.line <= 4]
    assert [bug.line for bug in first] == [bug.line for bug in alone]
    for one, other in zip(first, alone, strict=True):
        assert one.probability == pytest.approx(other.probability, rel=1e-4)


def test_minified_code_is_one_line(model: TrainedModel) -> None:
    found = report(model, ";".join(["a=b"] * 300), every=True)
    assert [bug.line for bug in found.bugs] == [1]
    assert len(found.bugs[0].code) <= 83


def test_other_models_are_refused(model: TrainedModel) -> None:
    with pytest.raises(UsageError, match="knows no bugs"):
        find_bugs("algorithms", [])


def test_workers_say_the_same(model: TrainedModel) -> None:
    paths: list[Path] = [path for path in EXAMPLES if path.suffix == ".py"]
    one, two = ([*find_bugs(model, paths, every=True, workers=n)] for n in (1, 2))
    assert one == two
    for path, found in zip(paths, one, strict=True):
        assert isinstance(found, BugReport)
        assert {bug.line for bug in found.bugs} == set(lines_of_nodes(parse_file(path)).tolist())
