"""How long a model takes for one program."""

import time
from statistics import median

from treecaps.data.corpus import Corpus
from treecaps.models.trained import TrainedModel
from treecaps.syntax.tree import Tree

TIMED_PROGRAMS = 200
"""How many programs are timed at most."""
ROUNDS = 3
"""How often each is timed."""


def time_programs(model: TrainedModel, corpus: Corpus) -> float:
    """Return the median time of classifying one program at a time, in milliseconds.

    It is the time from the tree to the scores of the classes; parsing is not in it. The shortest
    of several times counts for each program, because other processes may get in between.

    Args:
        model: The model.
        corpus: Programs, of which some are taken evenly.
    """
    step = -(-len(corpus) // TIMED_PROGRAMS)
    trees = [corpus[row] for row in range(0, len(corpus), step)]
    rounds = [[_time(model, tree) for tree in trees] for _ in range(ROUNDS)]
    best: list[float] = [min(times) for times in zip(*rounds, strict=True)]
    return 1000 * median(best)


def _time(model: TrainedModel, tree: Tree) -> float:
    begun = time.perf_counter()
    model.scores(model.read_trees([tree]))
    return time.perf_counter() - begun
