"""What the numbers of a code capsule stand for: vary one, and see which windows come and go."""

from typing import Any, NamedTuple

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.tensors import to_numpy, to_tensors
from treecaps.syntax.tree import Tree

STEP = 0.25
"""How far a number is moved either way; a whole capsule is at most 1 long."""
_SHOWN = 3
_OTHERS = "all other windows"


class Change(NamedTuple):
    """A window that comes or goes.

    Args:
        window: A node's kind and the kinds of its children.
        share: How much larger its share of a program's nodes gets.
    """

    window: str
    share: float


class Dimension(NamedTuple):
    """What one number of a code capsule stands for.

    Args:
        number: Which, from 0.
        moved: The share of a program's nodes that changes its window.
        comes: The windows that get more when the number grows, the first most.
        goes: Those that get fewer.
    """

    number: int
    moved: float
    comes: tuple[Change, ...]
    goes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "number": self.number,
            "moved": round(self.moved, 6),
            **{
                name: [{"window": one.window, "share": round(one.share, 6)} for one in changes]
                for name, changes in (("comes", self.comes), ("goes", self.goes))
            },
        }


def perturb(model: TrainedModel, tree: Tree, label: str) -> tuple[Dimension, ...]:
    """Vary each number of a class's code capsule, and rebuild the program's windows from it.

    Args:
        model: A model with a decoder, whose network that counts most is looked at.
        tree: The program.
        label: The class.

    Returns:
        The numbers of the capsule, that which moves most first.
    """
    member = strongest(model)
    if member.decoder is None:
        raise UsageError(
            "the model has no decoder to rebuild windows with; train one with windows=1000",
            arguments=("windows=1000",),
        )
    number = model.labels.index(label)
    code = member(to_tensors(model.read_trees([tree]), member.vectors)).code[0].detach()
    changes = to_numpy(member.decoder.vary(code, number, STEP))
    windows = [_spell(kinds, model.vocabulary) for kinds in member.decoder.known.tolist()]
    windows.append(_OTHERS)
    found = []
    for place, change in enumerate(changes):
        order = np.argsort(-change, kind="stable")
        comes, goes = (
            tuple(Change(windows[window], float(change[window])) for window in end[:_SHOWN])
            for end in (order, order[::-1])
        )
        found.append(Dimension(place, float(change.clip(min=0).sum()), comes, goes))
    return tuple(sorted(found, key=lambda one: -one.moved))


def strongest(model: TrainedModel) -> TreeCaps:
    """Return the network of an ensemble that counts most."""
    weights = model.engine.weights
    member = model.members[weights.index(max(weights))]
    assert isinstance(member, TreeCaps)
    return member


def _spell(kinds: list[int], vocabulary: Vocabulary) -> str:
    """Spell the kind of a node and those of its children; kinds count from 1, 0 is none."""
    names = [vocabulary.kinds[kind - 1] for kind in kinds if kind]
    if not names:
        return "no window"  # training programs had fewer than the decoder has places for
    top, *below = names
    return f"{top}: {' '.join(below)}" if below else top
