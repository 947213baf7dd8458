import json

import numpy as np
import pytest

from treecaps.errors import UsageError
from treecaps.models.architectures import get_architecture
from treecaps.models.settings import from_text, of_json, show, to_json, types_of
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.training.config import TrainingConfig
from treecaps.training.presets import apply_settings, get_preset, options

PRESETS = get_architecture("treecaps").presets


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_writing_and_reading(name: str) -> None:
    preset = get_preset(name)
    assert of_json(TreeCapsConfig, to_json(preset.network)) == preset.network
    assert of_json(TrainingConfig, to_json(preset.training)) == preset.training
    settings = [f"{name}={show(value)}".replace('""', "") for name, value, _ in options(preset)]
    for other in map(get_preset, PRESETS):
        assert apply_settings(other, settings) == preset


def test_every_option_has_a_help_and_a_name_of_its_own() -> None:
    found = options(get_preset("default"))
    assert len({name for name, _, _ in found}) == len(found)
    assert all(text for _, _, text in found)


def test_settings_are_read_by_their_types() -> None:
    preset = apply_settings(
        get_preset("paper"),
        [
            "hidden=64, 32",
            "routed=25",
            "per_channel=true",
            "gated=No",
            "squash=printed",
            "learning_rate=1e-2",
            "patience=4",
            "channels=16",
            "channels=32",
        ],
    )
    network, training = preset.network, preset.training
    assert isinstance(network, TreeCapsConfig)
    assert (network.hidden, network.routed, network.per_channel) == ((64, 32), 25, True)
    assert (network.gated, network.squash, network.channels) == (False, "printed", 32)
    assert (training.learning_rate, training.patience) == (0.01, 4)
    back = apply_settings(preset, ["hidden=", "routed=none", "patience=None"])
    assert isinstance(back.network, TreeCapsConfig)
    assert (back.network.hidden, back.network.routed, back.training.patience) == ((), None, None)


def test_settings_may_be_values_by_name() -> None:
    settings = {"hidden": (8,), "epochs": 2, "learning_rate": 1, "gated": False}
    preset = apply_settings(get_preset("default"), settings)
    assert isinstance(preset.network, TreeCapsConfig)
    assert (preset.network.hidden, preset.network.gated) == ((8,), False)
    assert (preset.training.epochs, preset.training.learning_rate) == (2, 1.0)
    with pytest.raises(UsageError, match="epochs must be a whole number, or none, not '2'"):
        apply_settings(get_preset("default"), {"epochs": "2"})


def test_settings_may_be_numbers_of_numpy() -> None:
    settings = {
        "hidden": (np.int64(8),),
        "epochs": np.int32(2),
        "learning_rate": np.float32(0.5),
        "weight_decay": np.int64(1),
        "patience": np.uint8(3),
    }
    preset = apply_settings(get_preset("default"), settings)
    assert json.loads(json.dumps(to_json(preset.network)))["hidden"] == [8]
    training = json.loads(json.dumps(to_json(preset.training)))
    assert {name: training[name] for name in list(settings)[1:]} == {
        "epochs": 2,
        "learning_rate": 0.5,
        "weight_decay": 1.0,
        "patience": 3,
    }
    for value in (np.float64(2), True, np.True_):
        with pytest.raises(UsageError, match="epochs must be a whole number"):
            apply_settings(get_preset("default"), {"epochs": value})


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beyond_all_bounds_are_refused(digits: int, sign: int) -> None:
    value = sign * 10**digits
    for name in ("learning_rate", "channels", "epochs", "hidden"):
        with pytest.raises(UsageError, match=f"{name} must be"):
            apply_settings(get_preset("default"), {name: [value] if name == "hidden" else value})


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("chanels=8", "did you mean channels"),
        ("xyzzy=8", "there are nodes, tokens"),
        ("channels", "write name=value"),
        ("channels=many", "channels must be a whole number, not 'many'"),
        ("channels=1.5", "a whole number"),
        ("channels=0", "at least 1"),
        ("hidden=64,0", "at least 1"),
        ("hidden=a", "whole numbers with commas"),
        ("window_depth=1", "at least 2"),
        ("capsule_size=0", "at least 1"),
        ("capsule_size=7", "do not divide"),
        ("routed=0", "at least 1"),
        ("routed=all", "a whole number, or none"),
        ("window_dropout=1", "below 1"),
        ("gated=maybe", "true or false"),
        ("squash=hinton", "sabour or printed"),
        ("decay=linear", "cosine or step or none"),
        ("vectors=magic", "parent or coding or word2vec or random"),
        ("learning_rate=0", "above 0"),
        ("token_lr_multiplier=0", "above 0"),
        ("learning_rate=nan", "a number"),
        ("learning_rate=inf", "a number"),
        ("epochs=0", "at least 1"),
        ("batch_size=-3", "at least 1"),
        ("patience=0", "at least 1"),
        ("weight_decay=-1", "at least 0"),
        ("val_share=1", "below 1"),
        ("channels=1000001", "channels must be at most 1,000,000"),
        ("hidden=8,1000001", "hidden must be at most 1,000,000"),
        ("hidden=" + "8," * 101, "at most 100 layers"),
        ("code_iterations=1001", "at most 1,000"),
        ("static_iterations=1001", "at most 1,000"),
        ("window_depth=1001", "at most 1,000"),
        ("epochs=1000001", "epochs must be at most 1,000,000"),
        ("batch_size=1000001", "at most 1,000,000"),
        ("learning_rate=1e400", "a number"),
        ("channels=" + "9" * 5000, "channels must be a whole number"),
    ],
)
def test_wrong_settings_say_what_is_right(setting: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        apply_settings(get_preset("default"), [setting])


def test_there_is_no_other_preset() -> None:
    with pytest.raises(
        UsageError, match="no preset 'best' of treecaps; there is default and paper"
    ):
        get_preset("best")


def test_types_of_fields_are_found() -> None:
    assert types_of(TrainingConfig)["learning_rate"] is float
    assert from_text(types_of(TrainingConfig)["patience"], "none") is None


def test_a_penalty_is_positive_and_what_is_learned_is_not_set() -> None:
    svm = get_preset("default", "svm-tokens")
    with pytest.raises(UsageError, match="penalty must be above 0"):
        apply_settings(svm, ["penalty=-1"])
    with pytest.raises(UsageError, match="there is no option 'features' of svm-tokens"):
        apply_settings(svm, ["features=10"])
    assert "features" not in [name for name, _, _ in options(svm)]
