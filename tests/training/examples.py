"""Small data to train on, and small networks."""

from functools import cache

import treecaps
from tests.conftest import EXAMPLES
from treecaps.syntax.tree import Tree
from treecaps.training.presets import Preset, apply_settings, get_preset

SMALL = (
    "nodes=kinds",
    "channels=8",
    "hidden=",
    "window_dropout=0",
    "vectors=random",
    "epochs=3",
    "batch_size=8",
    "ordinary_background=false",
)
LABELS = ["binary-search", "bubble-sort", "gcd", "stack"]


def small(*settings: str) -> Preset:
    """Return a preset that is trained in a moment."""
    return apply_settings(get_preset("default"), [*SMALL, *settings])


@cache
def example_trees() -> list[Tree]:
    """Return the trees of all examples."""
    return [treecaps.parse_file(path) for path in EXAMPLES]


def example_labels() -> list[str | None]:
    """Return the classes of all examples."""
    return [path.parent.name for path in EXAMPLES]
