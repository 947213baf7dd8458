from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import treecaps
from tests.training.vectors.examples import java_trees
from treecaps.data.corpus import Corpus
from treecaps.errors import DataError, UsageError
from treecaps.syntax.tree import Tree
from treecaps.training.vectors import METHODS, coding, parent, word2vec
from treecaps.training.vectors.kind_vectors import KindVectors
from treecaps.training.vectors.learn import learn_vectors

ALIKE = [
    ("for_statement", "while_statement"),
    ("if_statement", "while_statement"),
    ("integral_type", "void_type"),
    ('"+"', '"-"'),
    ('"+"', '"/"'),
    ('"<"', '"<="'),
    ('"public"', '"private"'),
]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn a little, where it matters only that and not what is learned."""
    monkeypatch.setattr(parent, "_STEPS", 20)
    monkeypatch.setattr(coding, "_STEPS", 20)
    monkeypatch.setattr(word2vec, "_SENTENCES", 1000)


def likeness(vectors: KindVectors) -> tuple[float, float]:
    """Return the mean cosine of kinds that people call alike, and of all pairs of kinds."""
    values = vectors.values / np.linalg.norm(vectors.values, axis=1, keepdims=True)
    cosines = values[1:] @ values[1:].T
    alike = [
        cosines[vectors.vocabulary.number(one) - 1, vectors.vocabulary.number(other) - 1]
        for one, other in ALIKE
        if vectors.vocabulary.number(one) and vectors.vocabulary.number(other)
    ]
    assert len(alike) > 4
    return float(np.mean(alike)), float(cosines[np.triu_indices(len(cosines), 1)].mean())


@pytest.mark.parametrize("method", METHODS)
def test_kinds_that_are_alike_come_to_lie_together(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "_STEPS", 600)
    monkeypatch.setattr(word2vec, "_SENTENCES", 20_000)
    alike, all_pairs = likeness(learn_vectors(java_trees(), method))
    assert (alike > all_pairs + 0.25) == (method != "random")


@pytest.mark.shared
def test_loops_are_neighbours_in_a_real_corpus(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "_STEPS", 600)
    corpus = Corpus.build(shared / "java-sort/train.jsonl.gz")
    vectors = learn_vectors(corpus, "coding")
    near = [kind for kind, _ in vectors.neighbours("for_statement")]
    assert {"while_statement", "enhanced_for_statement"} < set(near)
    assert vectors.data == "train.jsonl.gz"
    assert vectors.counts.sum() == corpus.node_counts.sum()
    alike, all_pairs = likeness(vectors)
    assert alike > all_pairs + 0.4


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_vectors(method: str) -> None:
    first, again, other = (
        learn_vectors(java_trees(), method, size=8, seed=seed).values for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", ["parent", "coding"])
def test_torch_works_in_one_thread_meanwhile(method: str) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen: set[int] = set()
        learn_vectors(java_trees(), method, progress=lambda _: seen.add(torch.get_num_threads()))
        assert seen == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 30])
def test_all_methods_share_one_scale(method: str, size: int) -> None:
    seen: list[float] = []
    vectors = learn_vectors(java_trees(), method, size, progress=seen.append)
    values = vectors.values
    assert values.dtype == np.float32
    assert values.shape == (len(vectors.vocabulary), vectors.size) == (len(values), size)
    assert np.square(values[1:]).mean() == pytest.approx(1, rel=1e-4)
    assert np.allclose(values[0], values[1:].mean(0), atol=1e-6)
    assert vectors.counts[0] == 0
    assert vectors.counts.sum() == sum(map(len, java_trees()))
    assert (vectors.method, vectors.seed, vectors.data) == (method, 0, "")
    assert vectors.version == treecaps.__version__
    assert all(before <= after for before, after in pairwise(seen))
    assert seen[-1:] == ([] if method == "random" else [1])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("kinds", "parents", "why"),
    [
        (["a"], [-1], "all nodes are of one kind"),
        (["a", "a", "a"], [-1, 0, 0], "all nodes are of one kind"),
        (["a", "b"], [-1, 0], ""),
    ],
)
def test_the_smallest_trees(method: str, kinds: list[str], parents: list[int], why: str) -> None:
    trees = [Tree.build(kinds, parents)]
    if why and method != "random":
        with pytest.raises(DataError, match=why):
            learn_vectors(trees, method)
    else:
        assert np.isfinite(learn_vectors(trees, method).values).all()


def test_trees_without_children_teach_nothing() -> None:
    trees = [Tree.build(["a"], [-1]), Tree.build(["b"], [-1])]
    with pytest.raises(DataError, match="no node has children"):
        learn_vectors(trees, "parent")
    assert len(learn_vectors(trees, "random").values) == 3


def test_wrong_use_is_said_at_once() -> None:
    trees = java_trees()
    with pytest.raises(UsageError, match="there are parent, coding, word2vec, random"):
        learn_vectors(trees, "magic")
    for size in (0, -1, 5000):
        with pytest.raises(UsageError, match="from 1 to 4,096 numbers"):
            learn_vectors(trees, size=size)
    for seed in (-1, 2**32):
        with pytest.raises(UsageError, match="a seed lies between"):
            learn_vectors(trees, seed=seed)
    with pytest.raises(DataError, match="no trees"):
        learn_vectors([])
