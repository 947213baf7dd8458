"""Training on programs that are written in another way."""

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.networks import batch_of
from tests.training.examples import example_labels, example_trees, small
from treecaps.errors import UsageError
from treecaps.inputs.base import Input
from treecaps.inputs.windows import Windows
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.trained import TrainedModel
from treecaps.syntax.blind import blind
from treecaps.syntax.parse import parse_code
from treecaps.syntax.program import Program
from treecaps.syntax.rewrite import rewrite
from treecaps.syntax.tree import Tree
from treecaps.training.config import TrainingConfig
from treecaps.training.prepare import Data, prepare
from treecaps.training.presets import get_preset
from treecaps.training.train import Interrupted, train
from treecaps.training.trainer import Trainer


def one_by_one(change: Callable[[Program], Program], trees: Sequence[Tree]) -> list[Tree]:
    """Change programs the slow way."""
    programs = (Program(tree.text, tree.language, id="x") for tree in trees)
    return [parse_code(change(each).text, each.language) for each in programs]


rewritten = partial(one_by_one, partial(rewrite, seed=0))


def windows_of(inputs: Input) -> Windows:
    assert isinstance(inputs, WindowsAndBags)
    return inputs.windows


@cache
def data() -> Data:
    preset = small()
    return prepare(
        example_trees(),
        example_labels(),
        None,
        read_trees=preset.read_trees,
        val_share=0.2,
        seed=0,
        blind=partial(one_by_one, blind),
        rewritten=rewritten,
    )


def test_training_programs_are_there_in_three_ways_and_others_in_two() -> None:
    train_data, val = data().train, data().val
    assert train_data.views == ("blind", "rewritten")
    assert len(train_data.inputs) == len(train_data.every_label) == 3 * len(train_data)
    assert val.views == ("blind",)
    assert val.has_blind
    assert len(val.inputs) == len(val.every_label) == 2 * len(val)
    alone = windows_of(small().read_trees(rewritten(data().trees), data().vocabulary))
    rows = train_data.rows_of("rewritten", np.arange(len(train_data)))
    whole = windows_of(train_data.inputs.select(rows))
    np.testing.assert_array_equal(whole.offsets, alone.offsets)
    np.testing.assert_array_equal(np.sort(whole.count), np.sort(alone.count))
    plain = windows_of(train_data.inputs.select(np.arange(len(train_data))))
    assert not np.array_equal(np.sort(plain.count), np.sort(whole.count))


@pytest.mark.parametrize(
    ("rename", "rewriting", "shares"),
    [
        (0.5, 0.25, (0.25, 0.5, 0.25)),
        (0, 1, (0, 0, 1)),
        (0.5, 1, (0, 0, 1)),
        (1, 0, (0, 1, 0)),
        (0, 0, (1, 0, 0)),
    ],
)
def test_an_epoch_sees_the_shares_that_were_asked_for(
    rename: float, rewriting: float, shares: tuple[float, ...]
) -> None:
    trainer = Trainer(
        small(f"rename_probability={rename}", f"rewrite_probability={rewriting}"), data(), 0
    )
    rows = np.tile(np.arange(len(data().train)), 100)
    view, program = np.divmod(trainer._augment(rows, np.random.default_rng(0)), len(data().train))
    np.testing.assert_array_equal(program, rows)
    found = np.bincount(view, minlength=3) / len(rows)
    np.testing.assert_allclose(found, shares, atol=0.03 if rename == 0.5 else 0)


def test_a_step_is_shown_what_was_rewritten() -> None:
    trainer = Trainer(
        small("rewrite_probability=1", "rename_probability=0", "token_capsule_dropout=0"), data(), 0
    )
    network, examples, rows = trainer.model.eval(), data().train, np.arange(20)
    shown, wanted, plain = (
        network(batch).scores
        for batch in (
            trainer._draw(rows, np.random.default_rng(0))[0],
            batch_of(examples.inputs.select(examples.rows_of("rewritten", rows))),
            batch_of(examples.inputs.select(rows)),
        )
    )
    assert torch.equal(shown, wanted)
    assert not torch.equal(shown, plain)


def test_the_same_training_again_and_after_an_interruption(tmp_path: Path) -> None:
    trees, labels = example_trees(), example_labels()
    preset = small("rewrite_probability=0.5", "epochs=2")
    model = train(trees, labels, preset=preset)
    assert model.fingerprint() == train(trees, labels, preset=preset).fingerprint()
    assert model.fingerprint() != train(trees, labels, preset=small("epochs=2")).fingerprint()
    assert "validation_accuracy_blind" not in model.card["metrics"]

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(trees, labels, preset=preset, folder=tmp_path / "model", on_epoch=stop)
    again = train(trees, labels, preset=preset, folder=tmp_path / "model", resume=True)
    assert again.fingerprint() == model.fingerprint()


def test_trainings_from_before_there_was_rewriting_go_on(tmp_path: Path) -> None:
    trees, labels, preset = example_trees(), example_labels(), small("epochs=2")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "model"
    with pytest.raises(Interrupted):
        train(trees, labels, preset=preset, folder=folder, on_epoch=stop)
    (path,) = folder.rglob("state.json")
    state = json.loads(path.read_text())
    del state["run"]["training"]["rewrite_probability"]
    path.write_text(json.dumps(state))
    with pytest.raises(UsageError, match=r"started with rewrite_probability 0\.0 instead of 0\.5"):
        train(
            trees,
            labels,
            preset=small("epochs=2", "rewrite_probability=0.5"),
            folder=folder,
            resume=True,
        )
    model = train(trees, labels, preset=preset, folder=folder, resume=True)
    assert model.fingerprint() == train(trees, labels, preset=preset).fingerprint()
    assert TrainedModel.load(folder).fingerprint() == model.fingerprint()


def test_it_is_off_by_default() -> None:
    assert TrainingConfig().rewrite_probability == 0
    assert get_preset("default").training.rewrite_probability == 0
    assert get_preset("default", task="similarity").training.rewrite_probability == 0
    with pytest.raises(
        UsageError, match="rewrite_probability must be at least 0 and at most 1, not 2"
    ):
        TrainingConfig(rewrite_probability=2.0)
