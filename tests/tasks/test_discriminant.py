"""The linear discriminant of embeddings, beside that of SciPy and a slow way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from tests.tasks.test_similarity import made_up, quick
from treecaps.errors import ModelError
from treecaps.inference.embed import Embedder
from treecaps.models.trained import TrainedModel
from treecaps.rendering.training import train
from treecaps.tasks.discriminant import fit_discriminant
from treecaps.tasks.retrieval import map_at_r


def slow_scatter(vectors: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scatter within and between classes, each class counting the same."""
    means = {one: vectors[label == one].mean(0) for one in set(label.tolist())}
    middle = np.mean(list(means.values()), axis=0)
    size = vectors.shape[1]
    within, between = np.zeros((2, size, size))
    for one, mean in means.items():
        rows = vectors[label == one]
        for row in rows:
            within += np.outer(row - mean, row - mean) / len(rows) / len(means)
        between += np.outer(mean - middle, mean - middle) / len(means)
    return within, between


def noisy(rng: np.random.Generator, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors whose first numbers tell classes, and whose last vary within them."""
    label = np.repeat(np.arange(classes), 3 + np.arange(classes) % 4)
    spread = np.array([0.5, 0.5, 0.5, 0.5, 3.0, 3.0])
    means = rng.normal(size=(classes, 6)) * [1, 1, 1, 1, 0.1, 0.1]
    return means[label] + spread * rng.normal(size=(len(label), 6)), label


@pytest.mark.parametrize("whitening", [0.0, 0.5, 1.0])
def test_it_is_that_of_the_slow_way(whitening: float) -> None:
    vectors, label = noisy(np.random.default_rng(0), 40)
    within, between = slow_scatter(vectors, label)
    found = fit_discriminant(vectors, label, 3, whitening).astype(np.float64)
    # What it is multiplied with last are eigenvectors of the scatter between classes.
    values, directions = np.linalg.eigh(within)
    root = directions @ np.diag(values ** (-whitening / 2)) @ directions.T
    strongest = np.linalg.eigh(root @ between @ root)[1][:, ::-1][:, :3]
    assert subspace_angles(found, root @ strongest).max() < 1e-5
    if whitening == 1:
        assert subspace_angles(found, eigh(between, within)[1][:, ::-1][:, :3]).max() < 1e-5


def test_classes_are_found_that_it_was_not_fitted_to() -> None:
    rng = np.random.default_rng(1)
    vectors, label = noisy(rng, 200)
    learned = label < 100
    projection = fit_discriminant(vectors[learned], label[learned], 4, 0.5)

    def score(rows: np.ndarray) -> float:
        found = map_at_r(rows / np.linalg.norm(rows, axis=1, keepdims=True), label[~learned])
        assert found is not None
        return found

    assert score(vectors[~learned] @ projection) > 1.5 * score(vectors[~learned])


def test_directions_that_hardly_vary_are_not_blown_up() -> None:
    vectors, label = noisy(np.random.default_rng(2), 30)
    flat = np.concatenate([vectors, np.zeros((len(vectors), 2))], axis=1)
    found = fit_discriminant(flat, label, 8, 1.0)
    assert np.isfinite(found).all()
    assert np.abs(found).max() == 1
    zeros = np.zeros((6, 3), np.float32)
    assert np.isfinite(fit_discriminant(zeros, np.arange(6) // 2, 2, 0.5)).all()


def test_a_model_has_one_where_there_are_more_classes_than_numbers(tmp_path: Path) -> None:
    trees, labels = made_up(range(8))
    val = made_up(range(20, 24))
    without = train(trees, labels, val=val, preset=quick("epochs=2", "discriminant_size=8"))
    assert without.projection is None
    model = train(trees, labels, val=val, preset=quick("epochs=2", "discriminant_size=5"))
    assert model.projection is not None
    assert model.projection.shape[1] == 5
    assert model.fingerprint() != without.fingerprint()
    found = Embedder(model).embed_trees(val[0])
    expected = without.embeddings(without.read_trees(val[0])) @ model.projection
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    numbers = np.unique(np.array(val[1]), return_inverse=True)[1]
    scored = model.card["metrics"]["validation_map_at_r"]
    assert scored == pytest.approx(map_at_r(found, numbers), abs=1e-6)
    model.save(tmp_path / "model")
    again = TrainedModel.load(tmp_path / "model")
    assert again.fingerprint() == model.fingerprint()
    np.testing.assert_allclose(Embedder(again).embed_trees(val[0]), found, atol=1e-5)
    assert again.embeddings(again.read_trees([])).shape[0] == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda one: one[:-1],
        lambda one: one[0],
        lambda one: one[:, :0],
        lambda one: np.full_like(one, np.nan),
        lambda one: one.astype(np.float64),
    ],
)
def test_one_that_cannot_be_multiplied_with_is_refused(damage: object, tmp_path: Path) -> None:
    assert callable(damage)
    trees, labels = made_up(range(4))
    model = train(trees, labels, preset=quick("epochs=1", "discriminant_size=2"))
    assert model.projection is not None
    replace(model, projection=np.ascontiguousarray(damage(model.projection))).save(tmp_path)
    with pytest.raises(ModelError, match="projection"):
        TrainedModel.load(tmp_path)
