"""Answers of the bundled models for the sample programs, kept as they were when they were trained.

After a model was trained anew: ``python -m tests.golden.test_answers``, and look at the difference.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.test_cli import PROGRAMS, run
from tests.conftest import EXAMPLES
from treecaps.inference.classify import Classification, classify
from treecaps.inference.embed import Embedder
from treecaps.models.bundled import DEFAULT, SIMILAR, bundled_names
from treecaps.models.trained import load
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.parse import parse_file
from treecaps.syntax.program import Program

HERE = Path(__file__).parent
LETTER = """Hello Mara,

the meeting moved to Thursday, half past nine. Please bring the list of
rooms that you made last week; Jon still has to order chairs for them.
Is there anything else we need before the guests arrive?

Thanks, and see you then,
Piet
"""
LOG = """2024-03-01 09:14:02 INFO  started on port 8080
2024-03-01 09:14:07 WARN  disk is 91 % full
2024-03-01 09:15:31 ERROR connection to 10.0.0.7 lost after 3 tries
2024-03-01 09:15:32 INFO  stopped
"""
MAKEFILE = """CC = gcc
OBJECTS = main.o list.o tree.o

app: $(OBJECTS)
\t$(CC) -o $@ $^

%.o: %.c
\t$(CC) -O2 -c $<

.PHONY: clean
clean:
\trm -f app $(OBJECTS)
"""
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Sales by month"]},
            {
                "cell_type": "code",
                "execution_count": 1,
                "metadata": {},
                "outputs": [],
                "source": ["import pandas as pd\n", "table = pd.read_csv('sales.csv')"],
            },
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    },
    indent=1,
)
OTHERS = {"letter": LETTER, "log": LOG, "makefile": MAKEFILE, "notebook": NOTEBOOK, "nothing": ""}
CLASSIFIERS = [name for name in bundled_names() if name != SIMILAR]


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


def neighbours() -> dict[str, Any]:
    """Return for each sample program the one nearest to it, and their similarity."""
    vectors = Embedder(SIMILAR).embed_trees([parse_file(path) for path in EXAMPLES])
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -1)
    places = [path.relative_to(PROGRAMS).as_posix() for path in EXAMPLES]
    return {
        place: [places[other], round(float(row[other]), 3)]
        for place, row, other in zip(places, alike, alike.argmax(1).tolist(), strict=True)
    }


@pytest.mark.parametrize("language", ["python", "c", "javascript", "kotlin", "rust", "go"])
@pytest.mark.parametrize("text", [LETTER, LOG], ids=["letter", "log"])
def test_other_texts_have_no_guess(text: str, language: str) -> None:
    (found,) = classify(DEFAULT, [Program(text, language)], workers=1)
    assert isinstance(found, Classification)
    assert (found.label, found.guess) == ("unknown", None)
    # Kotlin's parser makes one node of all that it does not understand.
    little = "there is too little code to tell"
    assert found.reason == (little if language == "kotlin" else f"most of it is not {language}")


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_is_no_program_has_no_class_in_any_language(text: str, language: str) -> None:
    (found,) = classify(DEFAULT, [Program(text, language)], workers=1)
    assert isinstance(found, Classification)
    assert not found.known


@pytest.mark.parametrize(
    "code", ["app = 1\n", "def f(app): return app\n", "import os\nnode.next()\n"]
)
def test_a_line_of_code_has_no_class(code: str) -> None:
    (found,) = classify(DEFAULT, [Program(code, "python")], workers=1)
    assert isinstance(found, Classification)
    assert found.verdict == "unknown, there is too little code to tell"


def test_problems_have_titles() -> None:
    model = load("poj104")
    titles = {label: model.title(label) for label in model.labels}
    assert len(set(titles.values())) == len(model.labels) == 104
    path = sorted((HERE / "poj104").iterdir())[0]
    (found,) = classify(model, [path], workers=1)
    assert isinstance(found, Classification)
    assert found.guess
    assert found.title == titles[found.guess]
    said = run("classify", "--model", "poj104", path).stdout
    assert said.startswith(f"{path}: {found.guess} ({found.title}) ")
    assert load(DEFAULT).title("gcd") is None


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_answers_stay_what_they_were(name: str) -> None:
    expected = json.loads((HERE / f"{name}.json").read_text())
    found = answers(name)
    assert found.keys() == expected.keys()
    for place, (label, guess, probability) in expected.items():
        assert found[place] == [label, guess, pytest.approx(probability, abs=0.01)], place


def test_neighbours_stay_what_they_were() -> None:
    found = neighbours()
    for place, (other, similarity) in json.loads((HERE / f"{SIMILAR}.json").read_text()).items():
        assert found.pop(place) == [other, pytest.approx(similarity, abs=0.01)], place
    assert not found


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
    every = {name: answers(name) for name in CLASSIFIERS} | {SIMILAR: neighbours()}
    for name, found in every.items():
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        (HERE / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
