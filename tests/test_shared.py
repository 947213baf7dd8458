"""The real data sets, where they lie beside the project."""

import importlib.util
from pathlib import Path

import pytest

import treecaps
from tests.models.test_treecaps import VARIANTS, assert_equals_naive
from treecaps.data.corpus import Corpus
from treecaps.data.summary import summarise
from treecaps.syntax.languages import LANGUAGES
from treecaps.training.presets import apply_settings, get_preset

pytestmark = pytest.mark.shared


@pytest.mark.parametrize(
    ("data", "frontend", "programs"),
    [
        ("java-sort/train", "tree-sitter", 640),
        ("java-sort/train", "srcml", 640),
        ("python-algorithms/train", "tree-sitter", 1395),
        ("python-algorithms/train", "ast", 1395),
        ("poj104/val", "tree-sitter", 2599),
        ("poj104/val", "srcml", 2599),
        ("atlas/train", "tree-sitter", 16_153),
    ],
)
def test_every_program_becomes_a_tree(
    shared: Path, data: str, frontend: str, programs: int
) -> None:
    assert importlib.util.find_spec("srcml_caller")
    corpus = Corpus.build(shared / f"{data}.jsonl.gz", frontend=frontend)
    assert len(corpus) == corpus.about["programs"] == programs
    assert corpus.failures == []
    if data.startswith("atlas"):
        assert set(corpus.languages) == set(LANGUAGES) - {"tsx"}
    for tree in corpus[:: programs // 200]:
        tree.check()


def test_near_copies_were_kept_on_one_side(shared: Path) -> None:
    train, validation = (
        Corpus.build(shared / f"python-algorithms/{split}.jsonl.gz") for split in ("train", "val")
    )
    found = summarise(train, against=validation)["against"]
    assert found["programs"] == 199
    assert found["exact"]["programs"] == 0
    assert found["near"]["programs"] <= 2


@pytest.mark.parametrize("nodes", ["kinds", "kinds+tokens"])
def test_a_network_learns_sorting_and_is_not_fooled_by_names(shared: Path, nodes: str) -> None:
    train, val = shared / "java-sort/train.jsonl.gz", shared / "java-sort/val.jsonl.gz"
    preset = apply_settings(get_preset("default"), [f"nodes={nodes}", "epochs=8"])
    model = treecaps.train(Corpus.build(train), val=Corpus.build(val), preset=preset)
    scores, blind = (
        treecaps.evaluate(model, Corpus.build(val, blind=blind)) for blind in (False, True)
    )
    assert scores.programs == 38
    assert min(scores.accuracy, blind.accuracy) > 0.6  # one of ten by chance
    if nodes == "kinds":
        assert blind.accuracy == scores.accuracy


@pytest.mark.parametrize(("data", "frontend"), [("java-sort", "srcml"), ("poj104", "tree-sitter")])
def test_the_network_equals_the_naive_one_on_real_programs(
    shared: Path, data: str, frontend: str
) -> None:
    corpus = Corpus.build(shared / f"{data}/val.jsonl.gz", frontend=frontend)
    for config in (VARIANTS["paper"], VARIANTS["log counts"], VARIANTS["stacked deep windows"]):
        assert_equals_naive(config, corpus[:6])
