"""Answers of the bundled models for the sample programs, kept as they were when they were trained.

After a model was trained anew: ``python -m tests.golden.test_answers``, and look at the difference.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import PROGRAMS, run
from tests.conftest import EXAMPLES
from treecaps.inference.classify import Classification, classify
from treecaps.models.bundled import DEFAULT, bundled_names
from treecaps.models.trained import load
from treecaps.syntax.program import Program

HERE = Path(__file__).parent


def answers(name: str) -> dict[str, Any]:
    """Return what a model says of each sample program in a language that it knows."""
    model = load(name)
    # Solutions of problems 1, 100, 63 and 35; the other model knows none of these.
    files = sorted((HERE / "poj104").iterdir()) if name == "poj104" else EXAMPLES
    found = {}
    for path, answer in zip(files, classify(model, files, workers=1), strict=True):
        assert isinstance(answer, Classification)
        home = HERE if HERE in path.parents else PROGRAMS
        place = path.relative_to(home).as_posix()
        found[place] = [answer.label, answer.guess, round(answer.probability, 3)]
    return found


@pytest.mark.parametrize("name", bundled_names())
def test_answers_stay_what_they_were(name: str) -> None:
    expected = json.loads((HERE / f"{name}.json").read_text())
    found = answers(name)
    assert found.keys() == expected.keys()
    for place, (label, guess, probability) in expected.items():
        assert found[place] == [label, guess, pytest.approx(probability, abs=0.01)], place


def test_a_path_bytes_and_standard_input_agree() -> None:
    file = PROGRAMS / "gcd/gcd.c"
    code = file.read_bytes()
    by_path = run("classify", "--json", file)
    by_input = run("classify", "--json", "-", "--language", "c", stdin=code)
    (by_bytes,) = classify(load(DEFAULT), [Program(code, "c")])
    assert isinstance(by_bytes, Classification)
    for done in (by_path, by_input):
        assert json.loads(done.stdout)["top"] == by_bytes.to_dict()["top"]


def main() -> None:
    for name in bundled_names():
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers(name).items())
        (HERE / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
