"""All architectures by name: those of treecaps, and those that other packages add."""

import logging
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from treecaps.errors import UsageError
from treecaps.models.config import ModelConfig
from treecaps.models.network import Model
from treecaps.models.registry import ARCHITECTURES, Architecture

__all__ = ["ARCHITECTURES", "Architecture", "architecture_of", "get_architecture", "new_model"]

ENTRY_POINTS = "treecaps.architectures"

_BUILT_IN = (
    *("treecaps", "tbcnn", "ggnn", "astnn", "tree_lstm", "dtbcnn", "bi_dtbcnn", "capsgnn"),
    "linear",
)
"""The modules that define architectures; importing one registers its model."""

log = logging.getLogger("treecaps")


def _load_all() -> None:
    for module in _BUILT_IN:
        import_module(f"treecaps.models.{module}")
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # whatever is wrong with it, the others can be used
            log.warning("the architecture %s cannot be loaded: %s", entry.name, error)


_load_all()


def architecture_of(config: ModelConfig) -> str:
    """Return the name of the architecture that a configuration is for."""
    return next(name for name, one in ARCHITECTURES.items() if type(config) is one.config)


def get_architecture(name: str) -> Architecture:
    """Return the architecture of a name."""
    if name not in ARCHITECTURES:
        raise UsageError(f"there is no model {name!r}; there are {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def new_model(config: ModelConfig, kinds: int, classes: int, tokens: int = 0) -> Model:
    """Return a model with random weights."""
    build: Any = ARCHITECTURES[architecture_of(config)].model
    model: Model = build(config, kinds, classes, tokens)
    return model
