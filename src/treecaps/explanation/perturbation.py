"""What the numbers of a code capsule stand for: vary one, and see which windows come and go."""

from typing import Any, NamedTuple

import torch

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.batch import Batch
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


@torch.no_grad()
def perturb(model: TrainedModel, tree: Tree, label: str) -> tuple[Dimension, ...]:
    """Vary each number of a class's code capsule, and rebuild the program's windows from it.

    Args:
        model: A model with a decoder, whose network that counts most is looked at.
        tree: The program.
        label: The class.

    Returns:
        The numbers of the capsule, that which moves most first.
    """
    member = model.strongest
    if not isinstance(member, TreeCaps) or member.decoder is None:
        raise UsageError(
            "the model has no decoder to rebuild windows with; train one with --set windows=1000"
        )
    number = model.labels.index(label)
    code = member(Batch.of(model.forest([tree]))).code[0]
    size = code.shape[1]
    steps = STEP * torch.eye(size)
    versions = code.repeat(2 * size, 1, 1)
    versions[:, number] += torch.cat([steps, -steps])
    shares = member.decoder(versions, torch.full((2 * size,), number)).exp()
    changes = shares[:size] - shares[size:]
    windows = [_spell(kinds, model.vocabulary) for kinds in member.decoder.known.tolist()]
    windows.append(_OTHERS)
    found = []
    for place, change in enumerate(changes):
        ends = [change.topk(min(_SHOWN, len(change)), largest=up) for up in (True, False)]
        comes, goes = (
            tuple(
                Change(windows[window], share)
                for window, share in zip(end.indices.tolist(), end.values.tolist(), strict=True)
            )
            for end in ends
        )
        found.append(Dimension(place, change.clamp(min=0).sum().item(), comes, goes))
    return tuple(sorted(found, key=lambda one: -one.moved))


def _spell(kinds: list[int], vocabulary: Vocabulary) -> str:
    """Spell the kind of a node and those of its children; kinds count from 1, 0 is none."""
    names = [vocabulary.kinds[kind - 1] for kind in kinds if kind]
    if not names:
        return "no window"  # training programs had fewer than the decoder has places for
    top, *below = names
    return f"{top}: {' '.join(below)}" if below else top
