"""All architectures by name: those of treecaps, and those that other packages add."""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from treecaps.errors import UsageError, naming_extra
from treecaps.models.config import ModelConfig
from treecaps.models.registry import REGISTERED, Architecture
from treecaps.text import did_you_mean

if TYPE_CHECKING:
    from treecaps.models.network import Model

__all__ = ["ARCHITECTURES", "Architecture", "architecture_of", "get_architecture", "new_model"]

ENTRY_POINTS = "treecaps.architectures"

_BUILT_IN = {
    "treecaps": "treecaps_config",
    "tbcnn": "tbcnn",
    "ggnn": "ggnn",
    "astnn": "astnn",
    "tree-lstm": "tree_lstm",
    "dtbcnn": "dtbcnn",
    "bi-dtbcnn": "bi_dtbcnn",
    "capsgnn": "capsgnn",
    "svm-tokens": "linear",
    "svm-windows": "linear",
}
"""The modules that define architectures; importing one registers its model."""

log = logging.getLogger("treecaps")


class _Architectures(Mapping[str, Architecture]):
    """Architectures by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Architecture:
        if name not in REGISTERED and name in _BUILT_IN:
            with naming_extra(f"the architecture {name}"):
                import_module(f"treecaps.models.{_BUILT_IN[name]}")
        elif name not in REGISTERED:
            _load_entry_points()
        return REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        _load_entry_points()
        return iter(dict.fromkeys((*_BUILT_IN, *REGISTERED)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in list(self)  # what cannot be hashed is no name


ARCHITECTURES = _Architectures()
"""All architectures by name."""


@cache
def _load_entry_points() -> None:
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # whatever is wrong with it, the others can be used
            log.warning("the architecture %s cannot be loaded: %s", entry.name, error)


def architecture_of(config: ModelConfig) -> str:
    """Return the name of the architecture that a configuration is for."""
    # Whoever made the configuration has loaded its architecture.
    return next(name for name, one in REGISTERED.items() if type(config) is one.config)


def get_architecture(name: str) -> Architecture:
    """Return the architecture of a name."""
    if name not in ARCHITECTURES:
        hint = did_you_mean(name, ARCHITECTURES) or f"there are {', '.join(ARCHITECTURES)}"
        raise UsageError(f"there is no model {name!r}; {hint}")
    return ARCHITECTURES[name]


def new_model(config: ModelConfig, kinds: int, classes: int, tokens: int = 0) -> "Model":
    """Return a model with random weights."""
    build: Any = ARCHITECTURES[architecture_of(config)].model
    model: Model = build(config, kinds, classes, tokens)
    return model
