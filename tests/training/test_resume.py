import errno
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from tests.training.examples import example_labels, example_trees, small
from tests.training.runs import StopError, history, learn, same, stop_after
from treecaps.errors import ModelError, TrainingError, UsageError
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.rendering.training import train
from treecaps.training.facts import TrainingFacts
from treecaps.training.train import Interrupted, TrainingProgress


def test_the_folder_holds_the_model_its_history_and_logs(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "model"
    model = learn(folder=folder, command="treecaps train x")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "history.json",
        "labels.json",
        "logs",
        "model.safetensors",
        "report.html",
        "vocabulary.json",
    }
    assert [epoch["epoch"] for epoch in history(folder)[0]] == [1, 2, 3]
    events = EventAccumulator(str(folder / "logs" / "0"))
    events.Reload()
    accuracies = [event.value for event in events.Scalars("val_accuracy")]
    expected = [epoch["val_accuracy"] for epoch in history(folder)[0]]
    assert accuracies == pytest.approx(expected)
    card = (folder / "README.md").read_text()
    assert "treecaps train x" in card
    assert "| tree-sitter-python |" in card
    assert TrainedModel.load(folder).card == model.card


@pytest.mark.parametrize("epochs", [1, 2, 4, 5])
def test_a_stopped_training_goes_on_exactly(tmp_path: Path, epochs: int) -> None:
    preset = small("window_dropout=0.2", "weight_decay=0.01", "freeze_vectors=true")
    whole = learn(preset, ensemble=2, folder=tmp_path / "whole")
    folder = tmp_path / "broken"
    with pytest.raises(StopError):
        learn(preset, ensemble=2, folder=folder, on_epoch=stop_after(epochs, StopError()))
    assert (folder / "checkpoint" / "state.json").exists()
    seen: list[tuple[int, int]] = []
    model = learn(
        preset,
        ensemble=2,
        folder=folder,
        resume=True,
        on_epoch=lambda member, metrics: seen.append((member, metrics["epoch"])),
    )
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)][epochs:]
    assert same(model, whole)
    assert history(folder) == history(tmp_path / "whole")
    for name in ("model.safetensors", "vocabulary.json", "labels.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (folder / "checkpoint").exists()


def test_a_finished_training_is_not_done_again(tmp_path: Path) -> None:
    model = learn(folder=tmp_path)
    seen: list[TrainingProgress] = []
    assert same(learn(folder=tmp_path, resume=True, on_step=seen.append), model)
    assert not seen
    with pytest.raises(UsageError, match="epochs 3 instead of 4"):
        learn(small("epochs=4"), folder=tmp_path, resume=True)


def test_a_report_that_is_missing_is_written(tmp_path: Path) -> None:
    learn(folder=tmp_path)
    report = tmp_path / "report.html"
    page = report.read_text()
    report.unlink()
    learn(folder=tmp_path, resume=True)
    assert report.read_text() == page


def test_a_report_is_what_the_caller_makes_of_the_facts(tmp_path: Path) -> None:
    seen: list[TrainingFacts] = []

    def tell(facts: TrainingFacts) -> str:
        seen.append(facts)
        return "as the caller likes it"

    model = learn(folder=tmp_path / "model", report=tell)
    assert (tmp_path / "model" / "report.html").read_text() == "as the caller likes it"
    (facts,) = seen
    assert facts.model is model
    assert len(facts.trees) == len(facts.label) == model.card["data"]["validation"]["programs"]
    assert [len(one) for one in facts.histories] == [3]
    assert tuple(facts.names) == model.labels
    learn(folder=tmp_path / "none", report=None)
    assert not (tmp_path / "none" / "report.html").exists()
    learn(folder=tmp_path / "none", resume=True, report=None)
    assert not (tmp_path / "none" / "report.html").exists()


@pytest.mark.parametrize(
    "damage",
    [
        None,
        b"{",
        b"[" * 100_000,
        b"[]",
        b'{"members": []}',
        b'{"members": {"a": 1}}',
        b'{"members": [[]]}',
        b'{"members": [[1]]}',
        b'{"members": [[{"loss": "<b>"}]]}',
        b'{"members": [[{"loss": NaN}]]}',
        b'{"members": [[{"loss": 1' + b"0" * 400 + b"}]]}",
        b'{"members": [[{"loss": 1}, {}]]}',
    ],
)
def test_without_a_history_the_report_has_no_curves(
    damage: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learn(small("epochs=1"), folder=tmp_path)
    (tmp_path / "report.html").unlink()
    (tmp_path / "history.json").unlink()
    if damage:
        (tmp_path / "history.json").write_bytes(damage)
    learn(small("epochs=1"), folder=tmp_path, resume=True)
    assert "history.json is missing or damaged" in caplog.text
    page = (tmp_path / "report.html").read_text()
    assert "Which classes are taken for which" in page
    assert "Epoch by epoch" not in page


@pytest.mark.parametrize("error", [StopError(), KeyboardInterrupt()])
def test_what_was_stopped_before_its_report_gets_one(error: BaseException, tmp_path: Path) -> None:
    def stop(facts: TrainingFacts) -> str:
        raise error

    learn(seed=1, folder=tmp_path)
    with pytest.raises(
        Interrupted if isinstance(error, KeyboardInterrupt) else StopError
    ) as caught:
        learn(folder=tmp_path, overwrite=True, report=stop)
    kept = TrainedModel.load(tmp_path)
    if isinstance(caught.value, Interrupted):
        assert caught.value.model is not None
        assert same(caught.value.model, kept)
    assert not (tmp_path / "report.html").exists()  # that of the older model has gone
    seen: list[TrainingProgress] = []
    assert same(learn(folder=tmp_path, resume=True, on_step=seen.append), kept)
    assert not seen
    assert "Epoch by epoch" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "checkpoint").exists()


def test_resuming_what_never_began_begins(tmp_path: Path) -> None:
    learn(folder=tmp_path / "new", resume=True)
    assert (tmp_path / "new" / "config.json").exists()


def test_other_data_or_options_are_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        learn(folder=tmp_path, on_epoch=stop_after(1, StopError()))
    with pytest.raises(UsageError, match=r"batch_size 8 instead of 4.*give the same"):
        learn(small("batch_size=4"), folder=tmp_path, resume=True)
    with pytest.raises(UsageError, match=r"statics \d instead of 3"):
        learn(small("statics=3"), folder=tmp_path, resume=True)
    with pytest.raises(UsageError, match="seed 0 instead of 1"):
        learn(seed=1, folder=tmp_path, resume=True)
    with pytest.raises(UsageError, match="ensemble 1 instead of 2"):
        learn(ensemble=2, folder=tmp_path, resume=True)
    with pytest.raises(UsageError, match="started with other data"):
        train(
            example_trees()[1:],
            example_labels()[1:],
            preset=small(),
            folder=tmp_path,
            resume=True,
        )


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        learn(folder=tmp_path, on_epoch=stop_after(2, StopError()))
    state, tensors = sorted(
        (tmp_path / "checkpoint").iterdir(), key=lambda path: path.suffix != ".json"
    )
    os.truncate(tensors, 100)
    with pytest.raises(ModelError, match=f"{tensors.name} is damaged; start again"):
        learn(folder=tmp_path, resume=True)
    tensors.unlink()
    with pytest.raises(ModelError, match="no such file"):
        learn(folder=tmp_path, resume=True)
    for content in ("{", "[]", "{}", '{"members": []}'):
        state.write_text(content)
        for resume in (True, False):
            with pytest.raises(UsageError, match=r"state.json is no state of a training"):
                learn(folder=tmp_path, resume=resume, overwrite=not resume)
        assert state.read_text() == content
    state.write_text('{"format": 0, "treecaps": "0.0", "run": {}, "members": []}')
    with pytest.raises(ModelError, match=r"another version of treecaps; start again"):
        learn(folder=tmp_path, resume=True)
    learn(folder=tmp_path, overwrite=True)
    TrainedModel.load(tmp_path)


def test_a_full_disk_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = learn(folder=tmp_path / "whole")
    folder = tmp_path / "full"
    real = os.fsync

    def full(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("0-2.safetensors.building"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match="no space left on device"):
        learn(folder=folder)
    names = {path.name for path in (folder / "checkpoint").iterdir()}
    assert names == {"state.json", "0-1.safetensors"}
    monkeypatch.undo()
    assert same(learn(folder=folder, resume=True), whole)


def test_an_interruption_keeps_the_best(tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as caught:
        learn(folder=tmp_path, ensemble=2, on_epoch=stop_after(4, KeyboardInterrupt()))
    model = caught.value.model
    assert model is not None
    assert len(model.members) == 2
    assert model.card["stopped"] == "interrupted"
    assert same(TrainedModel.load(tmp_path), model)
    whole = learn(ensemble=2)
    assert same(learn(folder=tmp_path, ensemble=2, resume=True), whole)
    assert "stopped" not in TrainedModel.load(tmp_path).card


def test_an_interruption_before_the_first_epoch_keeps_nothing(tmp_path: Path) -> None:
    def on_step(moment: TrainingProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        learn(folder=tmp_path, on_step=on_step)
    assert caught.value.model is None
    assert not (tmp_path / "config.json").exists()
    assert same(learn(folder=tmp_path, resume=True), learn())


def test_a_loss_without_bounds_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TreeCaps.loss
    calls = 0

    def loss(self: TreeCaps, capsules: Any, label: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += self.training
        return real(self, capsules, label) * (torch.nan if calls > 8 else 1)

    monkeypatch.setattr(TreeCaps, "loss", loss)
    with pytest.raises(TrainingError, match=r"epoch 2: .*_rate: 0.001; the best") as diverged:
        learn(folder=tmp_path)
    assert diverged.value.arguments == ("learning_rate=0.001",)
    assert TrainedModel.load(tmp_path).card["stopped"] == "diverged"
    calls = 8
    with pytest.raises(TrainingError, match=r"epoch 1: .*learning_rate: 0.001$"):
        learn()


@pytest.mark.parametrize("val_share", [0.1, 0])
def test_the_last_step_of_an_epoch_is_checked_too(tmp_path: Path, val_share: float) -> None:
    old = learn(folder=tmp_path)
    preset = small("epochs=1", "batch_size=64", "learning_rate=1e30", f"val_share={val_share}")
    with pytest.raises(TrainingError, match=r"epoch 1: .*learning_rate: 0.001$"):
        learn(preset, folder=tmp_path, overwrite=True)
    assert same(TrainedModel.load(tmp_path), old)


def test_what_is_not_ours_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "logs").mkdir()
    mine = [tmp_path / "checkpoint" / "mine.txt", tmp_path / "logs" / "mine.txt"]
    for path in mine:
        path.write_text("mine")
    for resume in (True, False):
        with pytest.raises(UsageError, match="holds other files"):
            learn(folder=tmp_path, resume=resume, overwrite=not resume)
    for path in mine:
        path.rename(tmp_path.parent / f"{tmp_path.name}-{path.parent.name}")
        path.parent.rmdir()
    with pytest.raises(StopError):
        learn(folder=tmp_path, on_epoch=stop_after(2, StopError()))
    for path in mine:
        (tmp_path.parent / f"{tmp_path.name}-{path.parent.name}").rename(path)
    learn(folder=tmp_path, resume=True)
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["mine.txt"]
    learn(folder=tmp_path, overwrite=True)
    assert [path.read_text() for path in mine] == ["mine", "mine"]
    assert len(list((tmp_path / "logs" / "0").iterdir())) == 1


def test_overwriting_waits_for_good_data(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        learn(folder=tmp_path, on_epoch=stop_after(1, StopError()))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="two classes"):
        train(example_trees()[:2], ["a", "a"], folder=tmp_path, overwrite=True)
    huge = small("channels=1000000", "hidden=1000000", "vector_size=1000000")
    with pytest.raises(UsageError, match="the network is too large"):
        learn(huge, folder=tmp_path, overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_only_one_training_writes_into_a_folder(tmp_path: Path) -> None:
    refused = 0

    def on_epoch(member: int, metrics: dict[str, Any]) -> None:
        nonlocal refused
        for options in ((False, False), (True, False), (False, True)):
            with pytest.raises(UsageError, match="another training is writing into"):
                learn(folder=tmp_path, resume=options[0], overwrite=options[1])
            refused += 1

    (tmp_path / ".lock").touch()  # of a training that was killed
    model = learn(folder=tmp_path, on_epoch=on_epoch)
    assert refused == 9
    assert same(TrainedModel.load(tmp_path), model)
    assert not (tmp_path / ".lock").exists()


def test_trouble_with_logs_does_not_stop_a_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "\udcff"
    model = learn(folder=folder)
    assert "logs for TensorBoard" in caplog.text
    assert same(TrainedModel.load(folder), model)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    learn(folder=tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match=r"holds a model; .*overwrite=True"):
        learn(folder=tmp_path / "model")
    with pytest.raises(UsageError, match="choose one"):
        learn(folder=tmp_path / "model", resume=True, overwrite=True)
    learn(folder=tmp_path / "model", overwrite=True, seed=1)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != before
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="holds other files"):
            learn(folder=tmp_path, overwrite=overwrite)
    with pytest.raises(UsageError, match="holds other files"):
        learn(folder=tmp_path, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        learn(folder=tmp_path / "file")
    with pytest.raises(ModelError, match="cannot write into"):
        learn(folder=tmp_path / "file" / "model")


def test_an_unfinished_training_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        learn(folder=tmp_path, on_epoch=stop_after(1, StopError()))
    with pytest.raises(UsageError, match="unfinished training; go on with resume=True"):
        learn(folder=tmp_path)


def test_an_old_model_stays_until_the_new_one_is_there(tmp_path: Path) -> None:
    old = learn(folder=tmp_path)
    with pytest.raises(StopError):
        learn(seed=1, folder=tmp_path, overwrite=True, on_epoch=stop_after(2, StopError()))
    assert same(TrainedModel.load(tmp_path), old)
    new = learn(seed=1, folder=tmp_path, resume=True)
    assert same(TrainedModel.load(tmp_path), new)
    assert not same(new, old)
