"""Edges between the nodes of a tree: what follows, what a variable was last, what guards it.

The edges of program graphs (Allamanis et al. 2018). ``Child`` and ``NextToken`` are there for every
tree; the others come from a small data-flow pass over the trees that tree-sitter makes of Python,
Java, C and C++. It knows variables by their names within a function, follows branches, loops,
switches, exceptions and jumps, and takes any condition for possible. Fields, calls through pointers
and names of other files are beyond it, and so are ``goto`` and what ``finally`` does after a jump.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.dataflow import Walk
from treecaps.syntax.tree import Tree

EDGES = (
    "Child",
    "NextToken",
    "LastUse",
    "LastWrite",
    "ComputedFrom",
    "LastLexicalUse",
    "GuardedBy",
    "GuardedByNegation",
)
"""The kinds of edges.

- Child: from a node to each of its children.
- NextToken: from a leaf to the next.
- LastUse: from a variable to where it may have been used (read or written) last.
- LastWrite: from a variable to where it may have been written last.
- ComputedFrom: from a variable that is assigned to each variable on the other side.
- LastLexicalUse: from a variable to where it stands before in the text of its function.
- GuardedBy: from a variable to each condition around it that has to hold, and that names it.
- GuardedByNegation: likewise, for a condition that must not hold.
"""
LANGUAGES = ("python", "java", "c", "cpp")
"""The languages whose variables are followed."""
FRONTEND = "tree-sitter"
"""The front end in whose trees they are."""

Edges = NDArray[np.int32]


def find_edges(tree: Tree) -> dict[str, Edges]:
    """Return for each kind of edge pairs ``[E, 2]`` of nodes, from and to, sorted."""
    leaves = np.flatnonzero((tree.child_count == 0) & (tree.end > tree.start))
    found: dict[str, Iterable[Any]] = dict.fromkeys(EDGES, ())
    found["Child"] = np.stack([tree.parent[1:], np.arange(1, len(tree))], 1)
    found["NextToken"] = np.stack([leaves[:-1], leaves[1:]], 1)
    if tree.frontend == FRONTEND and tree.language in LANGUAGES:
        found |= Walk(tree).edges()
    return {name: _sort(pairs) for name, pairs in found.items()}


def _sort(pairs: Iterable[Any]) -> Edges:
    array = pairs if isinstance(pairs, np.ndarray) else np.array(list(pairs))
    return np.unique(array.astype(np.int32).reshape(-1, 2), axis=0)
