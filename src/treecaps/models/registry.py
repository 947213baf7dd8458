"""The registry of architectures: one decorator adds one."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from treecaps.errors import UsageError
from treecaps.models.config import ModelConfig
from treecaps.models.network import Model

_Model = TypeVar("_Model", bound=type[Model])


class Recommended(NamedTuple):
    """Hyperparameters of an architecture that do well together.

    Args:
        network: Those of the network.
        settings: Those of the task and of training that differ from their defaults, by name.
    """

    network: ModelConfig
    settings: Mapping[str, Any]


class Architecture(NamedTuple):
    """A kind of model.

    Args:
        config: The dataclass of its hyperparameters.
        model: The class of the model.
        presets: Recommended hyperparameters by name; one is called ``default``.
    """

    config: type[ModelConfig]
    model: type[Model]
    presets: Mapping[str, Recommended]


RECOMMENDED_TRAINING: Mapping[str, Any] = {
    "epochs": None,
    "learning_rate": 3e-3,
    "token_lr_multiplier": 5.0,
    "vectors": "random",
    "rename_probability": 0.5,
}
"""Settings of training that do well with most architectures."""

ARCHITECTURES: dict[str, Architecture] = {}
"""All architectures by name. Import it from ``treecaps.models.architectures``, which fills it."""


def register_architecture(name: str, **presets: Recommended) -> Callable[[_Model], _Model]:
    """Return a decorator that adds a model to the registry.

    From then on ``treecaps train --model NAME`` and ``train(model=NAME)`` find it. Another package
    adds one by an entry point of the group ``treecaps.architectures`` that names the class.

    Args:
        name: What it is called.
        presets: Recommended hyperparameters; one is called ``default``.
    """
    if "default" not in presets:
        raise UsageError(f"the architecture {name} needs a preset called default")
    config = type(presets["default"].network)
    for other, one in ARCHITECTURES.items():
        if one.config is config and other != name:
            raise UsageError(f"{config.__name__} is the configuration of {other}; {name} needs one")

    def register(model: _Model) -> _Model:
        ARCHITECTURES[name] = Architecture(config, model, presets)
        return model

    return register
