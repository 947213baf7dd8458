"""What the numbers of a code capsule stand for: vary one, and see which windows come and go."""

from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import Floats, Input
from treecaps.models.light.arrays import softmax
from treecaps.models.light.network import LightTreeCaps
from treecaps.models.trained import TrainedModel
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
    network = strongest(model)
    if "decoder.known" not in network.weights:
        raise UsageError(
            "the model has no decoder to rebuild windows with; train one with windows=1000",
            arguments=("windows=1000",),
        )
    number = model.labels.index(label)
    changes = _vary(network, model.engine.read_trees([tree], model.vocabulary), number)
    known = network.weights["decoder.known"].tolist()
    windows = [_spell(kinds, model.vocabulary) for kinds in known]
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


def strongest(model: TrainedModel) -> LightTreeCaps:
    """Return the network of an ensemble that counts most."""
    return max(model.light_engine.networks, key=itemgetter(0))[1]


def _vary(network: LightTreeCaps, program: Input, number: int) -> Floats:
    """Move each number of a code capsule a step up and a step down, and rebuild both.

    Returns:
        ``[D_cc, windows + 1]``, how much larger the share of each window is above than below.
    """
    first, bias, weight, last = (
        network.weights[f"decoder.{name}"]
        for name in ("first", "bias", "second.weight", "second.bias")
    )
    code = network.code(network.static(program.to_tensors(np.asarray)))[0, number]
    steps = STEP * np.eye(len(code), dtype=code.dtype)
    hidden = np.maximum(np.concatenate([code + steps, code - steps]) @ first[number] + bias, 0)
    above, below = np.split(softmax(hidden @ weight.T + last, 1), 2)
    return above - below


def _spell(kinds: list[int], vocabulary: Vocabulary) -> str:
    """Spell the kind of a node and those of its children; kinds count from 1, 0 is none."""
    names = [vocabulary.kinds[kind - 1] for kind in kinds if kind]
    if not names:
        return "no window"  # training programs had fewer than the decoder has places for
    top, *below = names
    return f"{top}: {' '.join(below)}" if below else top
