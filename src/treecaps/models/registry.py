"""The registry of architectures: one decorator adds one."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from treecaps.errors import UsageError
from treecaps.models.config import ModelConfig

if TYPE_CHECKING:
    from treecaps.models.network import Model

_Model = TypeVar("_Model", bound="type[Model]")


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
        load: Returns the class of the model; this may take PyTorch.
        presets: Recommended hyperparameters by name; one is called ``default``.
    """

    config: type[ModelConfig]
    load: "Callable[[], type[Model]]"
    presets: Mapping[str, Recommended]

    @property
    def model(self) -> "type[Model]":
        """The class of the model."""
        return self.load()


RECOMMENDED_TRAINING: Mapping[str, Any] = {
    "epochs": None,
    "learning_rate": 3e-3,
    "token_lr_multiplier": 5.0,
    "vectors": "random",
    "rename_probability": 0.5,
}
"""Settings of training that do well with most architectures."""

REGISTERED: dict[str, Architecture] = {}
"""The architectures that are loaded; ``treecaps.models.architectures`` knows the others too."""


def register_architecture(name: str, **presets: Recommended) -> Callable[[_Model], _Model]:
    """Return a decorator that adds a model to the registry.

    From then on ``treecaps train --model NAME`` and ``train(model=NAME)`` find it. Another package
    adds one by an entry point of the group ``treecaps.architectures`` that names the class.

    Args:
        name: What it is called.
        presets: Recommended hyperparameters; one is called ``default``.
    """
    _check(name, presets)

    def decorate(model: _Model) -> _Model:
        register(name, lambda: model, presets)
        return model

    return decorate


def register(
    name: str, load: "Callable[[], type[Model]]", presets: Mapping[str, Recommended]
) -> None:
    """Add an architecture whose model is loaded when it is needed.

    Args:
        name: What it is called.
        load: Returns the class of the model.
        presets: Recommended hyperparameters; one is called ``default``.
    """
    REGISTERED[name] = Architecture(_check(name, presets), load, presets)


def _check(name: str, presets: Mapping[str, Recommended]) -> type[ModelConfig]:
    """Return the configuration of an architecture, or raise ``UsageError``."""
    if "default" not in presets:
        raise UsageError(f"the architecture {name} needs a preset called default")
    config = type(presets["default"].network)
    for other, one in REGISTERED.items():
        if one.config is config and other != name:
            raise UsageError(f"{config.__name__} is the configuration of {other}; {name} needs one")
    return config
