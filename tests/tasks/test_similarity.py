import math
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

import treecaps
from tests.training.examples import example_labels, example_trees, small
from treecaps.errors import UsageError
from treecaps.inference.classify import classify
from treecaps.inference.embed import Embedder
from treecaps.models.trained import TrainedModel
from treecaps.nn.contrastive_loss import contrastive_loss
from treecaps.rendering.training import train
from treecaps.syntax.tree import Tree
from treecaps.tasks.retrieval import average_precision, map_at_r, maps_at_r
from treecaps.tasks.similarity import Similarity
from treecaps.training.prepare import prepare
from treecaps.training.presets import Preset, apply_settings, get_preset

SIMILARITY = ("batch_size=16", "samples_per_class=4", "learning_rate=0.01")


def quick(*settings: str) -> Preset:
    """Return a preset that learns similarity in a moment."""
    return apply_settings(replace(small(), task=Similarity()), [*SIMILARITY, *settings])


def made_up(classes: range, count: int = 8) -> tuple[list[Tree], list[str | None]]:
    """Return programs: those of a class share two statements in some order, among others.

    What is common to all is most of a program, so untrained vectors see little of the classes.
    """
    shapes = ("a = b[c]", "a(b)", "a.b = c", "a += b", "del a", "assert a", "a = {}", "a = not b")
    pairs = [(one, other) for one in range(len(shapes)) for other in range(one)]
    trees: list[Tree] = []
    labels: list[str | None] = []
    for number in classes:
        chance = Random(number)
        for _ in range(count):
            lines = [shapes[place] for place in pairs[number]]
            lines += [f"if a < {chance.randint(0, 9)}:\n    a = a * 2" for _ in range(3)]
            lines += [f"while a:\n    a = a - {n}" for n in range(chance.randint(1, 5))]
            chance.shuffle(lines)
            trees.append(treecaps.parse_code("\n".join(lines), "python"))
            labels.append(f"pair {number}")
    return trees, labels


def slow_map_at_r(vectors: np.ndarray, labels: list[int], candidates: np.ndarray) -> float | None:
    """Go through the programs one by one, and through what each finds."""
    found = []
    for row, label in enumerate(labels):
        others = [other for other in range(len(labels)) if other != row]
        others = [other for other in others if candidates[row, other]]
        relevant = sum(labels[other] == label for other in others)
        if not relevant:
            continue
        others.sort(key=lambda other: -float(vectors[row] @ vectors[other]))
        right, total = 0, 0.0
        for rank, other in enumerate(others[:relevant], 1):
            if labels[other] == label:
                right += 1
                total += right / rank
        found.append(total / relevant)
    return sum(found) / len(found) if found else None


def test_map_at_r_is_that_of_the_slow_way() -> None:
    chance = np.random.default_rng(0)
    for classes, count in ((2, 5), (7, 40), (30, 40)):
        labels = chance.integers(classes, size=count)
        vectors = chance.normal(size=(count, 6)) + np.eye(30, 6)[labels]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        language = chance.integers(3, size=count)
        same = np.equal.outer(language, language)
        found = maps_at_r(vectors, labels, language)
        for name, candidates in (
            ("map_at_r", np.ones_like(same)),
            ("map_at_r_within", same),
            ("map_at_r_across", ~same),
        ):
            expected = slow_map_at_r(vectors, labels.tolist(), candidates)
            assert found[name] == pytest.approx(expected, abs=1e-9)


def test_map_at_r_looks_at_programs_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 4))
    label, language = np.arange(50) % 6, np.arange(50) % 5
    whole = maps_at_r(vectors, label, language)
    monkeypatch.setattr("treecaps.tasks.retrieval._CELLS", 350)
    assert maps_at_r(vectors, label, language) == pytest.approx(whole)


def test_map_at_r_by_hand() -> None:
    # The first asks: its nearest is wrong, the second is right: (0 + 1/2) / 2.
    alike = np.array([[-np.inf, 0.9, 0.8, 0.1]])
    label = np.array([0, 1, 0, 0])
    assert average_precision(alike, label[:1], label, np.array([2])).tolist() == [0.25]
    assert map_at_r(np.eye(3), np.arange(3)) is None
    assert map_at_r(np.zeros((0, 3)), np.zeros(0, np.int64)) is None
    assert map_at_r(np.ones((4, 1)), np.zeros(4, np.int64)) == 1
    # Of one language there is nothing within or across.
    assert list(maps_at_r(np.ones((4, 1)), np.zeros(4, np.int64), np.ones(4, np.int64))) == [
        "map_at_r"
    ]


def test_the_loss_is_that_of_the_slow_way() -> None:
    chance = torch.Generator().manual_seed(1)
    vectors = torch.randn(9, 5, generator=chance, dtype=torch.float64)
    label = torch.tensor([0, 0, 1, 1, 1, 2, 0, 3, 3])  # the program of class 2 is alone
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    terms = []
    for row in range(9):
        same = [other for other in range(9) if other != row and label[other] == label[row]]
        if same:
            rest = sum(
                math.exp(float(unit[row] @ unit[other]) / 0.2) for other in range(9) if other != row
            )
            each = [math.log(math.exp(float(unit[row] @ unit[p]) / 0.2) / rest) for p in same]
            terms.append(-sum(each) / len(each))
    found = contrastive_loss(vectors, label, 0.2)
    assert found.item() == pytest.approx(sum(terms) / len(terms))


def test_the_loss_of_programs_without_others_is_nothing() -> None:
    for programs in (1, 3):
        vectors = torch.randn(programs, 4, requires_grad=True)
        loss = contrastive_loss(vectors, torch.arange(programs), 0.1)
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.item() == 0
        assert vectors.grad is not None
        assert vectors.grad.isfinite().all()


def test_a_step_has_several_programs_of_a_class_and_an_epoch_all_programs() -> None:
    _, labels = made_up(range(10), 9)
    label = np.unique(np.array(labels), return_inverse=True)[1]
    task = Similarity(samples_per_class=4)
    steps = task.sample(label, 16, np.random.default_rng(0))
    assert sorted(np.concatenate(steps).tolist()) == list(range(90))
    for rows in steps[:-1]:
        assert len(rows) == 16
        _, counts = np.unique(label[rows], return_counts=True)
        assert counts.max() >= 4
    again = task.sample(label, 16, np.random.default_rng(1))
    assert any(not np.array_equal(one, other) for one, other in zip(steps, again, strict=True))


def test_what_is_learned_holds_for_classes_that_were_never_seen() -> None:
    trees, labels = made_up(range(20))
    val = made_up(range(20, 28))
    model = train(trees, labels, val=val, preset=quick("epochs=8"))
    assert model.labels == ()
    numbers = np.unique(np.array(val[1]), return_inverse=True)[1]
    learned = map_at_r(Embedder(model).embed_trees(val[0]), numbers)
    untrained = train(trees, labels, val=val, preset=quick("epochs=1", "learning_rate=1e-9"))
    before = map_at_r(Embedder(untrained).embed_trees(val[0]), numbers)
    assert learned is not None
    assert before is not None
    assert learned > before + 0.1
    assert model.card["metrics"]["validation_map_at_r"] == pytest.approx(learned, abs=1e-6)
    assert model.card["data"]["training"]["classes"] == 20
    assert model.card["data"]["validation"]["classes"] == 8
    member = model.card["members"][0]
    assert member["validation_map_at_r"] == pytest.approx(learned, abs=1e-6)


def test_a_model_for_similarity_is_kept_and_reported_and_resumed(tmp_path: Path) -> None:
    trees, labels = made_up(range(6))
    preset = quick("epochs=3", "window_dropout=0.2", "rename_probability=0.5", "nodes=kinds+tokens")
    model = train(trees, labels, preset=preset, folder=tmp_path / "one", ensemble=2)
    again = TrainedModel.load(tmp_path / "one")
    assert again.fingerprint() == model.fingerprint()
    assert again.labels == ()
    assert again.engine.weights == (0.5, 0.5)
    np.testing.assert_allclose(
        Embedder(again).embed_trees(trees[:3]), Embedder(model).embed_trees(trees[:3]), atol=1e-5
    )
    report = (tmp_path / "one" / "report.html").read_text()
    assert "MAP@R in per cent" in report
    assert "A map of the programs" in report
    assert "taken for" not in report
    card = (tmp_path / "one" / "README.md").read_text()
    assert "treecaps embed --model . FILE" in card
    assert "classify" not in card

    def stop(_: int, metrics: dict[str, object]) -> None:
        if metrics["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(trees, labels, preset=preset, folder=tmp_path / "two", ensemble=2, on_epoch=stop)
    resumed = train(trees, labels, preset=preset, folder=tmp_path / "two", ensemble=2, resume=True)
    assert resumed.fingerprint() == model.fingerprint()


def test_one_training_begins_with_the_other() -> None:
    trees, labels = example_trees()[::2], example_labels()[::2]
    classifier = train(trees, labels, preset=small("epochs=1", "windows=20"))
    similar = train(trees, labels, preset=quick("epochs=1"), init_from=classifier)
    assert similar.labels == ()
    assert similar.config == classifier.config
    back = train(trees, labels, preset=small("epochs=1"), init_from=similar)
    assert back.labels == classifier.labels
    assert len(list(classify(back, []))) == 0


def test_a_model_without_classes_says_so() -> None:
    trees, labels = made_up(range(3), 4)
    model = train(trees, labels, preset=quick("epochs=1"))
    for ask in (
        lambda: classify(model, []),
        lambda: treecaps.explain(model, trees[0]),
    ):
        with pytest.raises(UsageError, match="trained for similarity and knows no classes"):
            ask()


def test_validation_programs_are_set_aside_in_pairs() -> None:
    trees, labels = made_up(range(4), 6)
    trees, labels = trees[:-3], labels[:-3]  # the last class has three programs
    data = prepare(
        trees,
        labels,
        None,
        task=Similarity(),
        read_trees=quick().read_trees,
        val_share=0.1,
        seed=0,
    )
    assert np.bincount(data.val.label).tolist() == [2, 2, 2, 1]


def test_programs_without_others_of_their_class_teach_and_tell_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trees, labels = made_up(range(3), 4)
    model = train(trees, labels, val=(trees[::4], labels[::4]), preset=quick("epochs=2"))
    assert "nothing to validate with" in caplog.text
    assert model.card["members"][0]["best_epoch"] == 2
    assert "validation_map_at_r" not in model.card["metrics"]
    with pytest.raises(UsageError, match="classes of two programs or more"):
        train(trees[::4], labels[::4], preset=quick("epochs=1"))


def test_only_treecaps_learns_similarity() -> None:
    with pytest.raises(UsageError, match="only the architecture treecaps learns similarity"):
        _ = get_preset("default", "tbcnn", "similarity").model
    with pytest.raises(UsageError, match="there is no task 'search'"):
        get_preset("default", task="search")
    with pytest.raises(UsageError, match="temperature must be above 0"):
        apply_settings(quick(), ["temperature=0"])
    with pytest.raises(UsageError, match="samples_per_class must be at least 2"):
        apply_settings(quick(), ["samples_per_class=1"])
    classifier = treecaps.TreeCapsClassifier(language="python", settings={"task": "similarity"})
    with pytest.raises(UsageError, match="there is no option 'task'"):
        classifier.fit(["x", "y"], ["a", "b"])
    with pytest.raises(UsageError, match="only the architecture treecaps learns similarity"):
        train([], [], preset=replace(quick(), network=get_preset("default", "tbcnn").network))
