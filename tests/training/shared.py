"""Trainings that one process and several run alike; a script for ``torchrun``.

torchrun --nproc-per-node 2 -m tests.training.shared FOLDER
"""

import sys
from pathlib import Path

import treecaps
from tests.training.examples import example_labels, example_trees
from tests.training.runs import weights
from treecaps.models.trained import TrainedModel
from treecaps.training.presets import apply_settings, get_preset

_SMALL = ("epochs=1", "vectors=random", "ordinary_background=false", "vector_size=16")
_DROPOUT = ("window_dropout=0.3", "token_capsule_dropout=0.3", "token_dropout=0.2")
_CAPSULES = ("channels=8", "hidden=16", *_DROPOUT)
CASES = {
    # The last batch has one program: too few for two processes.
    "treecaps": ("classification", (*_CAPSULES, "batch_size=17", "reconstruction=0.5")),
    "treecaps similarity": ("similarity", (*_CAPSULES, "batch_size=24", "samples_per_class=4")),
    "treecaps bugs": ("bugs", ("channels=8", "token_dropout=0.2", "batch_size=16")),
    "tbcnn": ("classification", ("convolutions=16", "dropout=0.3", "token_dropout=0.2")),
    "bi-dtbcnn": ("classification", ("convolutions=16", "hidden=16")),
    "svm-tokens": ("classification", ()),
}
"""For each case its task and its settings; it begins with the architecture."""


def learn(case: str, folder: Path) -> TrainedModel:
    """Train one of the cases, with background where it learns from that."""
    task, settings = CASES[case]
    model = case.split(maxsplit=1)[0]
    preset = get_preset("default", model, task)
    if not model.startswith("svm"):
        preset = apply_settings(preset, [*_SMALL, *settings])
    trees, labels = example_trees(), example_labels()
    background = trees[:9] if model == "treecaps" and task == "classification" else None
    return treecaps.train(
        trees,
        labels,
        preset=preset,
        background=background,
        folder=folder / case,
    )


def main(folder: Path) -> None:
    """Train all cases; the other processes end with the same weights as the first."""
    from treecaps.training.processes import join

    with join() as processes:
        for case in CASES:
            model = learn(case, folder)
            sums = [float(value.double().sum()) for value in weights(model).values()]
            every = processes.gather_values(sums)
            assert all(other == every[0] for other in every), case


if __name__ == "__main__":
    main(Path(sys.argv[1]))
