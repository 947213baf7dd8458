"""The real data sets, where they lie beside the project."""

import importlib.util
from pathlib import Path

import pytest

from treecaps.data.corpus import Corpus
from treecaps.data.summary import summarise
from treecaps.syntax.languages import LANGUAGES

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
