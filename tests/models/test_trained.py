import errno
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.special import softmax

import treecaps
from tests.limits import error_of, in_place_of_a_file
from tests.networks import members_of, model_of
from tests.training.examples import LABELS, example_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import ModelError
from treecaps.inputs.base import Input
from treecaps.models import engine
from treecaps.models import folder as folder_module
from treecaps.models.torch_engine import batches
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig

CONFIG = TreeCapsConfig(vector_size=6, channels=4, slices=4, capsule_size=4, statics=3)


def some_model(members: int = 1, labels: tuple[str, ...] = tuple(LABELS)) -> TrainedModel:
    torch.manual_seed(members)
    vocabulary = Vocabulary.of(example_trees())
    networks = tuple(TreeCaps(CONFIG, len(vocabulary), len(labels)) for _ in range(members))
    weights = {1: (1.0,), 2: (0.25, 0.75)}[members]
    return model_of(networks, weights, vocabulary, labels, card={"data": {}, "note": "ü|<b>"})


def some_inputs(model: TrainedModel) -> Input:
    return model.read_trees(example_trees())


@pytest.mark.parametrize("members", [1, 2])
def test_what_is_saved_is_loaded(tmp_path: Path, members: int) -> None:
    model = some_model(members)
    model.save(tmp_path / "new" / "folder")
    again = treecaps.load(tmp_path / "new" / "folder")
    assert again.config == CONFIG
    assert again.engine.weights == model.engine.weights
    assert again.vocabulary == model.vocabulary
    assert again.labels == model.labels
    assert (again.frontend, again.comments, again.card) == ("tree-sitter", False, model.card)
    assert not any(member.training for member in again.members)
    inputs = some_inputs(model)
    assert np.array_equal(again.torch_engine.scores(inputs), model.scores(inputs))
    names = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert names == {
        "config.json",
        "model.safetensors",
        "labels.json",
        "vocabulary.json",
        "README.md",
    }


def test_lengths_are_the_weighted_mean_whatever_the_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = some_model(2)
    inputs = some_inputs(model)
    one, other = members_of(model)
    expected = 0.25 * one.scores(inputs) + 0.75 * other.scores(inputs)
    for programs, windows in ((64, 1 << 14), (7, 1 << 14), (64, 300), (64, 1)):
        monkeypatch.setattr(engine, "_PROGRAMS", programs)
        monkeypatch.setattr(engine, "_WINDOWS", windows)
        sizes = [len(batch) for _, batch in batches(inputs, model.members[0])]
        assert sum(sizes) == len(inputs)
        assert max(sizes) <= programs
        assert np.allclose(model.scores(inputs), expected, atol=1e-6)
    lengths = model.scores(inputs)
    assert np.allclose(model.probabilities(inputs), softmax(lengths, 1))
    nothing = inputs.select(np.zeros(0, np.int64))
    assert model.scores(nothing).shape == (0, 4)


def test_batches_are_bounded_by_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_WINDOWS", 400)
    model = some_model()
    for _, batch in batches(some_inputs(model), model.members[0]):
        assert len(batch) == 1 or batch.windows.bounds[-1] <= 400


def test_the_card_says_what_made_it(tmp_path: Path) -> None:
    model = some_model(2)
    card = {
        "data": {"training": {"name": "a|b", "programs": 7}},
        "metrics": {"validation_accuracy": 0.75},
        "run": {"seed": 5, "ensemble": 2, "training": {"learning_rate": 0.01}},
        "versions": {"torch": "2.13"},
        "command": "treecaps train `x`",
    }
    replace(model, card=card).save(tmp_path)
    text = (tmp_path / "README.md").read_text()
    for words in (
        "bubble-sort",
        "| name | a\\|b |",
        "| validation accuracy | 0.75 |",
        "| learning_rate | 0.01 |",
        "| seed | 5 |",
        "| channels | 4 |",
        "treecaps train `x`",
        "| torch | 2.13 |",
    ):
        assert words in text
    assert json.loads((tmp_path / "config.json").read_text())["card"] == card


def test_a_full_disk_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = some_model(1)
    old.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    real = os.fsync
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match=r"no space left on device.*make room"):
        some_model(2).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    TrainedModel.load(tmp_path)


def test_a_folder_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot write into"):
        some_model().save(tmp_path / "file")


def change(name: str, value: Any) -> Callable[[Path], None]:
    """Return what changes one value of the configuration."""

    def apply(folder: Path) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text())
        if name.startswith("network."):
            config["network"][name.removeprefix("network.")] = value
        else:
            config[name] = value
        path.write_text(json.dumps(config))

    return apply


def forge(name: str, value: Any) -> Callable[[Path], None]:
    """Return what changes one value of the configuration, and its checksum too."""

    def apply(folder: Path) -> None:
        change(name, value)(folder)
        path = folder / "config.json"
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**config, "checksum": folder_module._config_checksum(config)}))

    return apply


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def write(name: str, contents: bytes) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes(contents)

    return apply


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file(found, folder / "model.safetensors")

    return apply


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (remove("config.json"), r"config.json: no such file.*treecaps train"),
        (remove("model.safetensors"), "model.safetensors: no such file"),
        (remove("labels.json"), "labels.json: no such file"),
        (remove("vocabulary.json"), "vocabulary.json: no such file"),
        (cut("config.json"), "config.json is damaged: it is not JSON"),
        (cut("model.safetensors"), "model.safetensors is damaged: it holds no tensors"),
        (cut("labels.json"), "labels.json is damaged"),
        (cut("vocabulary.json"), "vocabulary.json is damaged"),
        (write("config.json", b"[]"), "not that of a treecaps model"),
        (write("config.json", b'{"model_type": "bert"}'), "not that of a treecaps model"),
        (write("config.json", b"[" * 100_000), "is not JSON"),
        (write("config.json", b"\xff\xfe\x00"), "is not JSON"),
        (write("model.safetensors", b""), "holds no tensors"),
        (write("model.safetensors", b"\x80\x04pickle" * 20), "holds no tensors"),
        (write("labels.json", b'["a", "b"]'), "was altered"),
        (write("labels.json", b'["b", "a", "c", "d"]'), "in order"),
        (write("labels.json", b'["a"]'), "at least two"),
        (write("labels.json", b"[1, 2, 3, 4]"), "class names"),
        (write("labels.json", b'["a", "b", "c", "d"]'), "labels.json was altered"),
        (write("vocabulary.json", b'["<unknown>", "a"]'), "has the shape"),
        (write("vocabulary.json", b'{"a": 1}'), "vocabulary.json is damaged"),
        (change("format", 2), "newer treecaps, .*: update yours"),
        (change("format", 0), "older treecaps, .*; train a model with"),
        (change("format", None), "'format' cannot be right"),
        (change("weights", [0.5]), "'weights' cannot be right"),
        (change("weights", [float("nan")]), "'weights' cannot be right"),
        (change("weights", [1.5, -0.5]), "'weights' cannot be right"),
        (change("weights", [0.5, 0.5]), "1.* is missing"),
        (change("weights", "1"), "'weights' cannot be right"),
        (change("frontend", "magic"), "'frontend' cannot be right"),
        (change("comments", 1), "'comments' cannot be right"),
        (change("network", []), "'network' cannot be right"),
        (change("network.channels", 8), "has the shape"),
        (change("network.channels", 10**6), "has the shape"),
        (change("network.channels", 10**9), "channels must be at most 1,000,000"),
        (change("network.channels", "8"), "channels must be a whole number, not '8'"),
        (change("network.channels", -4), "config.json is damaged"),
        (change("network.capsule_size", 3), "config.json is damaged"),
        (change("network.chanels", 8), "no option 'chanels'; did you mean channels"),
        (change("network.squash", "none"), "squash must be sabour or printed"),
        (change("network.squash", "printed"), "config.json was altered"),
        (change("card", {"metrics": {"validation_accuracy": 1.0}}), "config.json was altered"),
        (change("comments", True), "config.json was altered"),
        (change("files", {}), "was altered"),
        (tensors(lambda found: found["0.primary.bias"].fill_(torch.nan)), "are no numbers"),
        (tensors(lambda found: found.pop("0.vectors")), "0.vectors is missing"),
        (tensors(lambda found: found.update(x=torch.ones(1))), "x does not belong there"),
        (
            tensors(lambda found: found.update({"0.vectors": found["0.vectors"].double()})),
            "of float64, not",
        ),
        (tensors(lambda found: found["0.vectors"].add_(1)), "model.safetensors was altered"),
        (forge("model", []), "not that of a treecaps model"),
        (forge("model", {}), "not that of a treecaps model"),
        (forge("treecaps", []), "'treecaps' cannot be right"),
        (forge("format", [1]), "'format' cannot be right"),
        (forge("frontend", []), "'frontend' cannot be right"),
        (forge("weights", [1.0] + [0.0] * 20_000), "'weights' cannot be right"),
        (forge("weights", [10**400]), "'weights' cannot be right"),
        (forge("network.channels", 10**15), "channels must be at most 1,000,000"),
        (forge("network.channels", 10**400), "channels must be a whole number"),
        (forge("network.hidden", [10**15]), "hidden must be at most 1,000,000"),
        (forge("network.squash", []), "squash must be sabour or printed"),
        (forge("calibration", []), "'calibration' cannot be right"),
        (forge("calibration", {"temperature": 1e-320, "threshold": 0.0}), "'calibration' cannot"),
        (forge("calibration", {"temperature": 1e300, "threshold": 0.0}), "'calibration' cannot"),
        (forge("calibration", {"temperature": 1.0, "threshold": math.nan}), "'calibration' cannot"),
        (forge("card", []), "'card' cannot be right"),
        (forge("card", {"data": []}), "'card' cannot be right"),
        (forge("card", {"data": {"training": 1}}), "'card' cannot be right"),
        (forge("card", {"metrics": {"seconds": "1"}}), "'card' cannot be right"),
        (forge("card", {"metrics": {"seconds": 10**400}}), "'card' cannot be right"),
        (forge("card", {"versions": 3}), "'card' cannot be right"),
        (forge("card", {"scores": {"Languages": []}}), "'card' cannot be right"),
        (forge("card", {"command": 3}), "'card' cannot be right"),
        (forge("card", {"run": []}), "'card' cannot be right"),
        (forge("card", {"run": {}}), "'card' cannot be right"),
        (forge("card", {"deep": nested(200)}), "config.json is damaged: it is not JSON"),
        (write("labels.json", b"[" * 200 + b"]" * 200), "labels.json is damaged: it is not JSON"),
        (write("vocabulary.json", b"[" * 100_000), "vocabulary.json is damaged: it is not JSON"),
    ],
)
def test_a_damaged_folder_is_refused(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    some_model().save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=words) as caught:
        TrainedModel.load(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "labels.json", "vocabulary.json"]
)
@in_place_of_a_file
def test_anything_but_a_file_of_bounded_size_is_refused_at_once(
    tmp_path: Path, name: str, make: Callable[[Path], None], words: str
) -> None:
    some_model().save(tmp_path)
    (tmp_path / name).unlink()
    make(tmp_path / name)
    error = error_of(lambda: TrainedModel.load(tmp_path))
    assert isinstance(error, ModelError)
    assert f"cannot read {tmp_path / name}: {words}" in str(error)


def test_files_of_two_models_do_not_go_together(tmp_path: Path) -> None:
    some_model().save(tmp_path / "one")
    torch.manual_seed(9)
    other = TreeCaps(CONFIG, len(some_model().vocabulary), 4)
    model_of([other], [1.0], some_model().vocabulary, tuple(LABELS)).save(tmp_path / "two")
    (tmp_path / "two/model.safetensors").replace(tmp_path / "one/model.safetensors")
    with pytest.raises(ModelError, match="of another model"):
        TrainedModel.load(tmp_path / "one")


def test_a_missing_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no such file.*treecaps train DATA --out FOLDER"):
        TrainedModel.load(tmp_path / "none")


def test_options_that_did_not_exist_yet_have_their_defaults(tmp_path: Path) -> None:
    some_model().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["network"]["token_dropout"]
    config["checksum"] = folder_module._config_checksum(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert TrainedModel.load(tmp_path).config == CONFIG


def test_a_configuration_may_be_laid_out_anew(tmp_path: Path) -> None:
    some_model().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(dict(reversed(config.items())), indent=4))
    assert TrainedModel.load(tmp_path).config == CONFIG


def test_names_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    labels = ("a", "b", "\udcfe", "\udcff")
    card = {"data": {"training": {"name": "\udce4"}}, "command": "treecaps train \udce4"}
    replace(some_model(), labels=labels, card=card).save(tmp_path)
    model = TrainedModel.load(tmp_path)
    assert (model.labels, model.card) == (labels, card)
    assert "treecaps train \N{REPLACEMENT CHARACTER}" in (tmp_path / "README.md").read_text()


def test_loading_does_not_load_torchs_compiler(tmp_path: Path) -> None:
    some_model().save(tmp_path)
    code = (
        "import sys, treecaps; treecaps.load(sys.argv[1]); sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_the_card_has_the_scores_of_a_model(tmp_path: Path) -> None:
    lines = [{"language": "c", "programs": 3, "as is": 0.5}]
    replace(some_model(), card={"scores": {"Languages": lines}}).save(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert (
        "## Languages\n\n| language | programs | as is |\n| --- | --- | --- |\n| c | 3 | 0.5 |"
        in text
    )
