from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.networks import batch_of, members_of
from tests.training.examples import LABELS, example_labels, example_trees, small
from tests.training.runs import history, learn, same, weights
from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Selection
from treecaps.errors import DataError, UsageError
from treecaps.models.trained import TrainedModel
from treecaps.rendering.training import train
from treecaps.syntax.blind import blind
from treecaps.syntax.parse import parse_code
from treecaps.syntax.tree import Tree
from treecaps.tasks import Classification, Similarity
from treecaps.training.config import TrainingConfig
from treecaps.training.prepare import change_trees, prepare
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import TrainingProgress
from treecaps.training.trainer import Trainer


@pytest.mark.parametrize("vectors", ["random", "parent"])
def test_it_learns(vectors: str) -> None:
    metrics: list[dict[str, Any]] = []
    model = learn(
        small("epochs=12", "learning_rate=0.05", f"vectors={vectors}"),
        on_epoch=lambda _, epoch: metrics.append(epoch),
    )
    assert metrics[-1]["accuracy"] > 0.9  # chance: 0.25
    assert metrics[-1]["loss"] < metrics[0]["loss"] / 2
    assert metrics[-1]["right_length"] > metrics[0]["right_length"]
    assert model.card["metrics"]["epochs"] == 12


def test_the_seed_decides(tmp_path: Path) -> None:
    dropping = small("window_dropout=0.2")
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = learn(dropping, seed=3)
    assert torch.equal(torch.get_rng_state(), state)  # chance of others is left alone
    torch.manual_seed(2)
    assert same(first, learn(dropping, seed=3, folder=tmp_path / "model"))
    assert not same(first, learn(dropping, seed=4))


def test_numbers_of_numpy_are_numbers() -> None:
    assert same(learn(seed=np.int64(1), ensemble=np.int8(1)), learn(seed=1))


def test_threads_do_not_decide() -> None:
    trees, labels, before = example_trees()[::4], example_labels()[::4], torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        several, again = (train(trees, labels, preset=small("epochs=1")) for _ in range(2))
        torch.set_num_threads(1)
        one = train(trees, labels, preset=small("epochs=1"))
    finally:
        torch.set_num_threads(before)
    assert same(several, again)
    # Sums may be taken in another order.
    for name, value in weights(several).items():
        assert torch.allclose(value, weights(one)[name], atol=1e-5)


def test_the_best_epoch_is_kept() -> None:
    epochs: list[dict[str, Any]] = []
    preset = small("epochs=8", "learning_rate=0.1", "val_share=0.3")
    model = learn(preset, on_epoch=lambda _, metrics: epochs.append(metrics))
    best = max(epochs, key=lambda epoch: (epoch["val_accuracy"], -epoch["val_loss"]))
    assert model.card["members"][0]["best_epoch"] == best["epoch"]
    assert model.card["metrics"]["validation_accuracy"] == pytest.approx(best["val_accuracy"])
    assert 0 < model.card["metrics"]["validation_macro_f1"] <= 1
    for epoch in epochs:
        assert 0 <= epoch["coupling_entropy"] <= 1.0001
        assert 0 < epoch["right_length"] < 1
        assert epoch["gradient_norm"] > 0


def test_the_learning_rate_goes_down_along_a_cosine_or_stays() -> None:
    rates: list[float] = []
    preset = small("epochs=4", "learning_rate=0.01", "batch_size=100", "val_share=0")
    learn(preset, on_epoch=lambda _, metrics: rates.append(metrics["learning_rate"]))
    assert rates == pytest.approx([0.01, 0.00853553, 0.005, 0.00146447], rel=1e-4)
    rates.clear()
    learn(
        small("epochs=2", "decay=none"),
        on_epoch=lambda _, metrics: rates.append(metrics["learning_rate"]),
    )
    assert rates == [0.005, 0.005]


def test_patience_ends() -> None:
    model = learn(small("epochs=50", "patience=2", "learning_rate=0.05"))
    member = model.card["members"][0]
    assert member["epochs"] == member["best_epoch"] + 2 < 50


def test_frozen_vectors_stay() -> None:
    frozen, free = (learn(small(f"freeze_vectors={word}")) for word in ("true", "false"))
    one, other = (
        learn(small("freeze_vectors=true", f"epochs={epochs}")).members[0].get_parameter("vectors")
        for epochs in (1, 2)
    )
    assert torch.equal(one, other)
    fixed, learned = (model.members[0].get_parameter("vectors") for model in (frozen, free))
    assert not torch.equal(fixed, learned)


def test_steps_tell_how_much_is_done() -> None:
    moments: list[TrainingProgress] = []
    learn(ensemble=2, on_step=moments.append)
    shares = [moment.share for moment in moments]
    assert shares == sorted(shares)
    assert len(moments) == 2 * 3 * 6
    assert shares[-1] == pytest.approx(1)
    assert (moments[0].member, moments[0].epoch) == (0, 1)
    assert (moments[-1].member, moments[-1].epoch) == (1, 3)


def test_validation_data_of_their_own() -> None:
    trees, labels = example_trees(), example_labels()
    model = train(
        trees[::2], labels[::2], val=(trees[1::2], [*labels[1:-2:2], "other"]), preset=small()
    )
    assert model.card["data"]["validation"]["programs"] == 26
    assert model.card["data"]["training"]["programs"] == 26
    assert model.card["metrics"]["validation_accuracy"] <= 25 / 26


def test_without_validation_the_last_epoch_is_kept(tmp_path: Path) -> None:
    model = learn(small("val_share=0"), folder=tmp_path, ensemble=2)
    assert [member["best_epoch"] for member in model.card["members"]] == [3, 3]
    assert model.engine.weights == (0.5, 0.5)
    assert "validation_accuracy" not in model.card["metrics"]
    assert same(TrainedModel.load(tmp_path), model)


def test_an_ensemble_is_weighed_and_no_worse_than_its_members(tmp_path: Path) -> None:
    model = learn(small("val_share=0.3"), ensemble=3, seed=5, folder=tmp_path / "model")
    assert len(model.members) == 3
    assert sum(model.engine.weights) == pytest.approx(1)
    assert [member["seed"] for member in model.card["members"]] == [5, 6, 7]
    alone = learn(small("val_share=0.3"), seed=5)
    first = members_of(model)[0]
    assert same(first, alone)
    assert same(TrainedModel.load(tmp_path / "model"), model)


def test_wrong_calls() -> None:
    with pytest.raises(UsageError, match="at least 1 network"):
        learn(ensemble=0)
    with pytest.raises(UsageError, match="a seed lies between"):
        learn(seed=-1)
    with pytest.raises(UsageError, match=r"a seed is a whole number, not 1\.5"):
        learn(seed=1.5)
    wrong: Any = 3
    for val in (wrong, (example_trees(),), example_trees()):
        with pytest.raises(UsageError, match="validation data are"):
            learn(val=val)
    with pytest.raises(UsageError, match="validation data are a list of trees"):
        learn(val=(example_trees(), wrong))
    with pytest.raises(UsageError, match="no preset 3"):
        train(example_trees(), example_labels(), preset=wrong)
    with pytest.raises(UsageError, match="need labels"):
        train(example_trees())
    with pytest.raises(UsageError, match="no preset 'best'"):
        train(example_trees(), example_labels(), preset="best")
    leaves = [Tree.build([kind], [-1]) for kind in "abcd"]
    with pytest.raises(DataError, match=r"no node has children; .*vectors='random'"):
        train(leaves, ["x", "y", "x", "y"], preset=small("vectors=parent"))
    train(leaves, ["x", "y", "x", "y"], preset=small("vectors=random"))


def test_a_corpus_brings_its_labels_and_its_front_end(tmp_path: Path) -> None:
    for name, code in (("one", "x = 1\n"), ("two", "print(2)\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "good.py").write_text(code)
        (tmp_path / name / "bad.py").write_text("(\n")
    corpus = Corpus.build(tmp_path, frontend="ast", workers=1)
    model = train(corpus, val=corpus, preset=small())
    assert (model.frontend, model.comments, model.labels) == ("ast", False, ("one", "two"))
    facts = model.card["data"]["training"]
    other = Corpus.build(tmp_path, workers=1)
    with pytest.raises(UsageError, match=r"parsed by ast without.* by tree-sitter without"):
        train(corpus, val=other, preset=small())
    assert (facts["name"], facts["failed"], facts["programs"]) == (tmp_path.name, 2, 2)


def words() -> tuple[list[Tree], list[str | None]]:
    """Programs whose trees are all of one shape: only a word tells the classes apart."""
    codes = [
        (f"def {verb}_{noun}(x):\n    return x + {number}\n", verb)
        for verb in ("sort", "search")
        for noun in ("list", "items", "rows", "words")
        for number in range(4)
    ]
    return [parse_code(code, "python") for code, _ in codes], [verb for _, verb in codes]


def test_words_are_seen_only_if_asked_for() -> None:
    trees, labels = words()
    for nodes, low, high in (("kinds", 0.3, 0.7), ("kinds+tokens", 0.99, 1)):
        settings = (f"nodes={nodes}", "epochs=30", "learning_rate=0.05")
        model = train(trees, labels, preset=small(*settings))
        inputs = model.read_trees(trees)
        guesses = [model.labels[guess] for guess in model.scores(inputs).argmax(1).tolist()]
        right = np.mean([guess == label for guess, label in zip(guesses, labels, strict=True)])
        assert low <= right <= high, nodes


def test_training_on_blind_programs_too(tmp_path: Path) -> None:
    preset = small(
        "nodes=kinds+tokens", "rename_probability=0.5", "epochs=12", "learning_rate=0.02"
    )
    model = learn(preset, folder=tmp_path / "model")
    metrics = history(tmp_path / "model")[0][-1]
    assert metrics["val_accuracy_blind"] is not None
    assert "validation_accuracy_blind" in model.card["metrics"]
    again = TrainedModel.load(tmp_path / "model")
    assert again.vocabulary == model.vocabulary
    assert same(model, again)
    # No word of a blind program is known, so its answer does not depend on them.
    codes = ("def v0(v1):\n    return v1\n", "def x7(var_2):\n    return var_2\n")
    trees = [parse_code(code, "python") for code in codes]
    lengths = model.scores(model.read_trees(trees))
    assert np.array_equal(lengths[0], lengths[1])


def test_what_cannot_be_made_blind_stays_as_it_is() -> None:
    tree = Tree.build(["a", "b"], [-1, 0])
    parsed = parse_code("def add(a, b):\n    return a + b\n", "python")
    trees = Selection([tree, parsed], np.arange(2))
    kept, blinded = change_trees(trees, "blind", blind, "tree-sitter", False)
    assert kept is tree
    assert blinded.kind_names() == parsed.kind_names()
    assert b"add" not in blinded.text


@pytest.mark.parametrize("secondary", [0, 3])
def test_fine_tuning_whitens_for_a_new_head(secondary: int) -> None:
    sizes = ["epochs=1", "channels=4", "vectors=random", f"secondary={secondary}"]
    preset = apply_settings(get_preset("paper"), sizes)
    trees, labels = example_trees(), example_labels()
    pretrained = train(trees, labels, preset=preset)
    model = train(trees, labels[::-1], preset=preset, init_from=pretrained)
    name = "secondary.whitening" if secondary else "code.whitening"
    before, after = (one.members[0].state_dict()[name] for one in (pretrained, model))
    assert not torch.equal(after[0], torch.eye(len(after[0])))
    # The weights below are pretrained, so a fresh head sees other static capsules.
    assert torch.equal(before, after) == bool(secondary)


@pytest.mark.parametrize("nodes", ["kinds", "kinds+tokens"])
def test_a_model_to_start_with_is_what_training_begins_from(nodes: str) -> None:
    preset = small(f"nodes={nodes}")
    trees, labels = example_trees(), example_labels()
    other = ["x" if label == "gcd" else "y" for label in labels]
    init_from = train(trees[:30], other[:30], preset=preset)
    still = replace(preset, training=replace(preset.training, learning_rate=1e-12))
    model = train(trees, labels, preset=still, init_from=init_from)
    assert model.labels == tuple(LABELS)
    known, more = init_from.vocabulary, model.vocabulary
    assert known != more
    assert {*known.kinds} < {*more.kinds}
    assert {*known.tokens} <= {*more.tokens}
    before, after = init_from.members[0].state_dict(), model.members[0].state_dict()
    for name in before:
        if name == "vectors":
            kept = after[name][[more.number(kind) for kind in known.kinds]]
        elif name == "token_vectors":
            kept = after[name][[more.number_token(token) for token in known.tokens]]
        elif name.startswith(("code.", "decoder.")):
            continue  # of other classes
        else:
            kept = after[name]
        torch.testing.assert_close(kept, before[name])
    if nodes == "kinds":
        # Programs that have nothing new look the same to both, up to the static capsules.
        old = [tree for tree in trees[:30] if known.encode(tree).all()]
        assert old
        statics = [
            one.members[0](batch_of(one.read_trees(old))).static for one in (init_from, model)
        ]
        torch.testing.assert_close(*statics)


def test_a_start_is_part_of_what_is_resumed_and_decides_the_network(tmp_path: Path) -> None:
    init_from, other = (learn(seed=seed) for seed in (1, 2))
    assert (
        init_from.fingerprint()
        != other.fingerprint()
        != learn(seed=1, init_from=other).fingerprint()
    )
    wide = small("channels=16")
    model = learn(wide, init_from=init_from, folder=tmp_path / "model")
    assert model.config == init_from.config
    with pytest.raises(UsageError, match="init_from"):
        learn(wide, init_from=other, folder=tmp_path / "model", resume=True)
    with pytest.raises(UsageError, match="the pretrained model is for tree-sitter without"):
        learn(init_from=init_from, comments=True)


def test_steps_are_larger_words_learn_slower_and_less_is_left_out_among_many_programs() -> None:
    config = TrainingConfig(batch_size=None, window_dropout=None, token_capsule_dropout=None)
    found = [config.for_programs(count, 8)[1:] for count in (50, 2000, 10_000, 40_000)]
    expected = [(4, 20, 0.5, 0.5), (4, 20, 0.5, 0.5), (14, 4, 0.18, 0.1), (15, 2, 0.12, 0.025)]
    assert [pytest.approx(four) for four in expected] == found
    asked = TrainingConfig(token_lr_multiplier=7, window_dropout=0.3, token_capsule_dropout=0.2)
    assert asked.for_programs(40_000, 8)[1:] == (16, 7, 0.3, 0.2)


def test_tokens_that_no_step_sees_learn_nothing() -> None:
    settings = ("nodes=kinds+tokens", "token_channels=4", "token_features=100", "epochs=1")
    begun, all_seen, none_seen = (
        learn(small(*settings, *others)).members[0].state_dict()["tokens.vectors"]
        for others in (
            ["learning_rate=1e-30"],
            ["token_capsule_dropout=0"],
            ["token_capsule_dropout=0.999999"],
        )
    )
    assert torch.equal(none_seen, begun)
    assert not torch.equal(all_seen, begun)


def test_few_programs_are_seen_more_often() -> None:
    config = TrainingConfig(epochs=None)
    counts = [1, 50, 320, 640, 1395, 38_999]
    for task, expected in (
        (Classification(), [400, 400, 80, 40, 27, 8]),
        (Similarity(), [400, 400, 320, 160, 73, 8]),
    ):
        found = [config.for_programs(count, task.num_epochs(count)).epochs for count in counts]
        assert found == expected
    assert TrainingConfig(epochs=3).for_programs(50, 400).epochs == 3
    moments: list[TrainingProgress] = []
    model = learn(small("epochs=none", "batch_size=64", "patience=1"), on_step=moments.append)
    assert {moment.epochs for moment in moments} == {400}
    assert model.card["metrics"]["epochs"] < 400


def test_cross_entropy_counts_beside_the_margin_loss() -> None:
    labels = example_labels()
    data = prepare(
        example_trees(), labels, None, read_trees=small().read_trees, val_share=0.5, seed=0
    )
    label = data.val.label
    losses = []
    for entropy in (0.0, 0.3):
        trainer = Trainer(
            small(f"cross_entropy_weight={entropy}", "learning_rate=1e-12"), data, seed=0
        )
        trainer.begin()
        losses.append(trainer.run_epoch(lambda *_: None)["val_loss"])
    with torch.no_grad():
        lengths = trainer.model(batch_of(data.val.inputs)).lengths
    surprise = -torch.log_softmax(10 * lengths, 1)[torch.arange(len(label)), label].mean()
    assert losses[1] - losses[0] == pytest.approx(0.3 * surprise.item(), rel=1e-4)


def test_what_comes_before_training_is_told() -> None:
    told: list[tuple[str, float]] = []
    learn(
        small("nodes=kinds+tokens", "epochs=1"),
        on_prepare=lambda *what_and_share: told.append(what_and_share),
    )
    shares: dict[str, list[float]] = {}
    for what, share in told:
        shares.setdefault(what, []).append(share)
    assert list(shares) == [
        "making programs blind",
        "gathering kinds and words",
        "reading trees",
    ]
    for values in shares.values():
        assert min(values) == 0
        assert 0.7 < max(values) <= 1
