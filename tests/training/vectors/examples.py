"""Trees to learn vectors from."""

from functools import cache

import treecaps
from tests.conftest import EXAMPLES
from treecaps.syntax.tree import Tree


@cache
def java_trees() -> list[Tree]:
    """Return the trees of the Java programs among the examples."""
    return [treecaps.parse_file(path) for path in EXAMPLES if path.suffix == ".java"]
