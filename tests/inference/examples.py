"""A small trained model, and data to try it on."""

from functools import cache
from pathlib import Path

import torch

import treecaps
from tests.conftest import EXAMPLES
from tests.networks import batch_of, model_of
from treecaps.data.vocabulary import Vocabulary
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig

LABELS = ("binary-search", "bubble-sort", "gcd", "stack")


@cache
def small_model() -> TrainedModel:
    """Return a model that has looked at half the examples for a few seconds."""
    torch.manual_seed(0)
    files = EXAMPLES[::2]
    trees = [treecaps.parse_file(path) for path in files]
    vocabulary = Vocabulary.of(trees)
    config = TreeCapsConfig(
        vector_size=12, channels=8, slices=4, capsule_size=4, statics=8, code_size=4
    )
    network = TreeCaps(config, len(vocabulary), len(LABELS))
    batch = batch_of(TreeCaps.read_trees(config, trees, vocabulary))
    target = torch.tensor([LABELS.index(path.parent.name) for path in files])
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        network.loss(network(batch), target).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return model_of([network], [1.0], vocabulary, LABELS)


def save_small_model(folder: Path) -> Path:
    """Write the small model into a folder, and return the folder."""
    small_model().save(folder)
    return folder
