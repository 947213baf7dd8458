"""How things show themselves: on one short line, and as HTML in notebooks."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treecaps
from tests.conftest import EXAMPLES
from tests.inference.examples import save_small_model, small_model
from tests.search.examples import copy_programs, open_index, update
from treecaps.inference.classify import Classification
from treecaps.inference.evaluate import ClassScore
from treecaps.models.trained import TrainedModel
from treecaps.search.build import Update
from treecaps.search.clones import Group
from treecaps.search.collection import ClonePair
from treecaps.search.copies import Work
from treecaps.search.units import Unit

EVIL = '<script>alert("1")</script>\n\udcff' * 9


class Tags(HTMLParser):
    """Collects the tags of a page, all of which must be closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        page.encode()
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "img":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def classification(name: str = "gcd.c", function: str | None = None) -> Classification:
    (found,) = small_model().classify([EXAMPLES[0]], workers=1)
    assert isinstance(found, Classification)
    candidates = tuple(one._replace(label=name) for one in found.top)
    return replace(found, id=name, label=name, top=candidates, function=function, line=3)


@pytest.fixture
def evaluation() -> treecaps.Evaluation:
    corpus = treecaps.Corpus.build(EXAMPLES[0].parent.parent, workers=1)
    return treecaps.evaluate(small_model(), corpus)


def test_reprs_are_short_lines(tmp_path: Path, evaluation: treecaps.Evaluation) -> None:
    long = tmp_path / ("long" * 50)
    long.mkdir()
    folder = copy_programs(long / "programs")
    update(folder, tmp_path / "index")
    tree = treecaps.parse_file(EXAMPLES[0])
    explanation = treecaps.explain(small_model(), tree)
    shown = {
        repr(small_model()): "TrainedModel('treecaps', task='classification', classes=4)",
        repr(TrainedModel.load(save_small_model(long / "model"))): "classes=4, folder='",
        repr(tree): f"Tree('{tree.language}', frontend='tree-sitter', nodes={len(tree)})",
        repr(classification()): "Classification('gcd.c', 'gcd.c', probability=0.",
        repr(classification(EVIL, EVIL)): "function='",
        repr(treecaps.Embedding(EVIL, np.zeros(8, np.float32), EVIL)): "size=8, function='",
        repr(explanation): f"Explanation('program', '{explanation.label}', method='",
        repr(evaluation): f"Evaluation(accuracy={round(evaluation.accuracy, 4)}, macro_f1=",
        repr(treecaps.Corpus.build(folder, workers=1)): "trees=13, failed=0)",
        repr(treecaps.DataSet(folder, language="c")): "files=13, language='c')",
        repr(open_index(tmp_path / "index")): ", model='<unsaved>', files=13, functions=",
    }
    for line, part in shown.items():
        assert part in line
        assert len(line) < 120
        assert line.isprintable()


def test_trees_are_drawn_in_notebooks() -> None:
    assert Tags(treecaps.parse_code("x = '<b>'", "python")._repr_html_()).seen == {"img"}
    large = Tags(treecaps.parse_code("f('<b>')\n" * 900, "python")._repr_html_())
    assert large.seen == {"pre"}
    assert "<b>" in large.text
    assert large.text.endswith("...")


def test_answers_and_scores_are_tables(evaluation: treecaps.Evaluation) -> None:
    page = Tags(classification(EVIL, EVIL)._repr_html_())
    assert page.seen == {"table", "caption", "tr", "th", "td"}
    assert "<script>" in page.text
    evil = ClassScore(EVIL, 0.25, 0.5, 0.75, 1234)
    page = Tags(replace(evaluation, classes=(evil,))._repr_html_())
    assert page.seen == {"table", "caption", "tr", "th", "td"}
    assert "25.0%50.0%75.0%1,234" in page.text


def test_matches_groups_and_models_are_tables(tmp_path: Path) -> None:
    update(copy_programs(tmp_path / "programs"), tmp_path / "index")
    index = open_index(tmp_path / "index")
    match = replace(index.matches(0, 0.5)[0], path=EVIL)
    one = Unit(EVIL, EVIL, 1, 2, "c", np.ones(1, np.float32), Work.join([]), tmp_path, ())
    group = Group(0.5, (match, replace(match, copied=0.25, probability=0.75)))
    pair = ClonePair(one, one, 0.25, 0.5, None)
    retrieval = treecaps.Retrieval(0.5, None, 0.25, 9, 2, {"c": 9}, 0, 0, 0.1, ())
    changed = Update(1, 2, 3, 4, 5, 6, ())
    shown: list[tuple[Any, str]] = [
        (match, "c0.50"),
        (group, "75%25%"),
        (pair, "copied 25%, alike 0.50"),
        (retrieval, "9 programs of 2 classes"),
        (changed, "removed6failed0"),
        (small_model(), "taskclassification"),
    ]
    for thing, part in shown:
        page = Tags(thing._repr_html_())
        assert page.seen == {"table", "caption", "tr", "th", "td"}
        assert part in page.text


def test_explanations_are_coloured_code() -> None:
    code = EXAMPLES[0].read_text() + "\n" * 600
    program = treecaps.Program(f"/* <script> */\n{code}", "c", id=EVIL)
    shown = treecaps.explain(small_model(), program)._repr_html_()
    page = Tags(shown)
    assert page.seen == {"p", "pre", "span"}
    assert "background-color" in shown
    assert "/* <script> */" in page.text
    assert "more lines" in page.text
