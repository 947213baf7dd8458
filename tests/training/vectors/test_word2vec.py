import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.vectors.examples import java_trees
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import MissingExtraError
from treecaps.inputs.windows import Windows
from treecaps.syntax.tree import Tree
from treecaps.training.vectors.learn import learn_vectors
from treecaps.training.vectors.word2vec import contexts


@settings(max_examples=50)
@given(st.lists(random_trees(), min_size=1, max_size=4))
def test_contexts_are_those_of_a_node_at_a_time(trees: list[Tree]) -> None:
    vocabulary = Vocabulary.of(trees)
    inputs = Windows.from_trees(trees, vocabulary)
    counts = np.bincount(inputs.window, weights=inputs.count).astype(np.int64)
    expected: Counter[tuple[int, int, int]] = Counter()
    for tree in trees:
        kind = [vocabulary.number(name) for name in tree.kind_names()]
        for node in range(len(tree)):
            before = -1
            for child in tree.children(node).tolist():
                expected[kind[node], before, kind[child]] += 1
                before = kind[child]
    rows, totals = contexts(inputs.layers[0], counts)
    assert dict(zip(map(tuple, rows.tolist()), totals.tolist(), strict=True)) == expected


def test_without_gensim_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'treecaps\[vectors\]'"):
        learn_vectors(java_trees(), "word2vec")
