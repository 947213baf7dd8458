"""How what is due to windows, tokens and nodes is shared among nodes and leaves."""

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.bags import hash_leaves
from treecaps.inputs.distinct import Longs
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.tree import Tree

Contributions = NDArray[np.float64]


def to_leaves(tree: Tree, features: Longs, values: Contributions) -> Contributions:
    """Share what is due to tokens and runs of them among the leaves where they occur.

    Args:
        tree: The program.
        features: ``[F]``, hashes, sorted.
        values: ``[F]``, what is due to each.

    Returns:
        ``[n]``, to each occurrence as much, and to all leaves of a run.
    """
    found = np.zeros(len(tree))
    leaves, runs = hash_leaves(JoinedTrees([tree]))
    for length, hashes in enumerate(runs, 1):
        place = np.searchsorted(features, hashes)
        there = np.append(features, 0)[place] == hashes
        place = place[there]
        times = np.bincount(place, minlength=len(features))
        for begin in range(length):
            run = leaves[begin : begin + len(hashes)]
            np.add.at(found, run[there], values[place] / times[place] / length)
    return found


def spread(tree: Tree, windows: Contributions, reach: int) -> Contributions:
    """Share what is due to windows among their nodes: the top and all that is less far below."""
    size = np.ones(len(tree))
    above = np.arange(len(tree))
    lines = [above]
    for _ in range(reach):
        above = np.where(above >= 0, tree.parent[above], -1)
        np.add.at(size, above[above >= 0], 1)
        lines.append(above)
    each = windows / size
    found = np.zeros(len(tree))
    for line in lines:
        found += np.where(line >= 0, each[line], 0)
    return found


def to_tokens(tree: Tree, nodes: Contributions) -> Contributions:
    """Return ``[n]``, what tokens have to do with it: leaves get what is due to those above too.

    A node that is no leaf leaves its part to the leaves below it, to each as much.
    """
    leaf = tree.child_count == 0
    leaves = leaf.astype(np.int64)
    parents = tree.parent.tolist()
    for node in range(len(tree) - 1, 0, -1):
        leaves[parents[node]] += leaves[node]
    found = nodes / leaves
    for node in range(1, len(tree)):
        found[node] += found[parents[node]]
    return np.where(leaf, found, 0)
