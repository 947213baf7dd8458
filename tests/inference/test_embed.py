from pathlib import Path

import numpy as np
import pytest

import treecaps
from tests.conftest import EXAMPLES
from tests.inference.examples import small_model
from tests.networks import batch_of, members_of, model_of
from tests.training.examples import example_labels, example_trees
from treecaps.errors import Failure, UsageError
from treecaps.inference.embed import Embedder, Embedding
from treecaps.models.treecaps import Capsules
from treecaps.syntax.functions import find_functions
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train


def capsules_of(path: Path) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the static capsules of one file, one after the other, by themselves."""
    model = small_model()
    answer = model.members[0](batch_of(model.read_trees([treecaps.parse_file(path)])))
    assert isinstance(answer, Capsules)
    return answer.static[0].detach().double().numpy().ravel()


def test_vectors_are_the_static_capsules_of_each_program() -> None:
    files = EXAMPLES[::9]
    results = list(Embedder(small_model()).embed(files))
    assert [result.id for result in results] == [str(path) for path in files]
    for path, result in zip(files, results, strict=True):
        assert isinstance(result, Embedding)
        slow = capsules_of(path)
        np.testing.assert_allclose(result.vector, slow / np.linalg.norm(slow), atol=1e-5)
    trees = [treecaps.parse_file(path) for path in files]
    every = Embedder(small_model()).embed_trees(trees)
    vectors = [result.vector for result in results if isinstance(result, Embedding)]
    np.testing.assert_allclose(every, vectors, atol=1e-5)


def test_programs_of_one_class_are_more_alike() -> None:
    vectors = Embedder().embed_trees(example_trees())
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -1)
    labels = example_labels()
    nearest = [labels[number] for number in alike.argmax(1).tolist()]
    same = [one == other for one, other in zip(labels, nearest, strict=True)]
    assert np.mean(same) > 0.8  # chance: 0.25


def test_networks_together_agree_by_their_weights() -> None:
    preset = apply_settings(
        get_preset("default"), ["epochs=1", "channels=8", "hidden=", "rename_probability=0"]
    )
    pair = train(example_trees()[::5], example_labels()[::5], preset=preset, ensemble=2)
    pair = model_of(pair.members, (0.3, 0.7), pair.vocabulary, pair.labels)
    trees = example_trees()[:4]
    every = (*members_of(pair), pair)
    first, second, both = (Embedder(model).embed_trees(trees) for model in every)
    np.testing.assert_allclose(
        both @ both.T, 0.3 * first @ first.T + 0.7 * second @ second.T, atol=1e-5
    )


def test_functions_have_vectors_of_their_own() -> None:
    file = next(path for path in EXAMPLES if path.name == "gcd.c")
    results = list(Embedder(small_model()).embed([file], functions=True))
    functions = find_functions(treecaps.parse_file(file))
    expected = Embedder(small_model()).embed_trees([function.tree for function in functions])
    assert len(results) == len(functions) > 1
    for result, function, vector in zip(results, functions, expected, strict=True):
        assert isinstance(result, Embedding)
        assert (result.function, result.line) == (function.name, function.line)
        np.testing.assert_allclose(result.vector, vector, atol=1e-5)


def test_failures_pass_and_nothing_gives_nothing(tmp_path: Path) -> None:
    embedder = Embedder(small_model())
    first, second = embedder.embed([tmp_path / "none.c", EXAMPLES[0]])
    assert isinstance(first, Failure)
    assert isinstance(second, Embedding)
    assert first.code == "unreadable"
    assert list(embedder.embed([])) == []
    assert len(embedder.embed_trees([])) == 0
    with pytest.raises(UsageError, match="give a list"):
        embedder.embed(str(EXAMPLES[0]))


def test_other_models_have_no_vectors() -> None:
    preset = apply_settings(get_preset("default", "tbcnn"), ["epochs=1", "rename_probability=0"])
    model = train(example_trees()[::5], example_labels()[::5], preset=preset)
    with pytest.raises(UsageError, match="only the architecture treecaps has embeddings"):
        Embedder(model).embed_trees(example_trees()[:1])
