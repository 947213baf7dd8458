"""Which nodes of a tree are statements."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.tree import Tree

_ENDINGS = (
    "_statement",
    "_declaration",
    "_definition",
    "_clause",
    "_loop",
    "_item",
    # srcML
    "_stmt",
)
_WORDS = frozenset(
    (
        # tree-sitter
        "declaration",
        "switch_expression",
        "switch_block_statement_group",
        "method",
        "class",
        "module",
        "program",
        "translation_unit",
        # srcML
        "if",
        "else",
        "for",
        "while",
        "do",
        "switch",
        "case",
        "default",
        "try",
        "catch",
        "finally",
        "return",
        "break",
        "continue",
        "throw",
        "function",
        "constructor",
        "unit",
        # Python's own
        "Module",
        "FunctionDef",
        "AsyncFunctionDef",
        "ClassDef",
        "Return",
        "Delete",
        "Assign",
        "AugAssign",
        "AnnAssign",
        "For",
        "AsyncFor",
        "While",
        "If",
        "With",
        "AsyncWith",
        "Match",
        "match_case",
        "Raise",
        "Try",
        "TryStar",
        "ExceptHandler",
        "Assert",
        "Import",
        "ImportFrom",
        "Global",
        "Nonlocal",
        "Expr",
        "Pass",
        "Break",
        "Continue",
    )
)


@cache
def _statements(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([kind in _WORDS or kind.endswith(_ENDINGS) for kind in kinds], bool)


def begin_statements(tree: Tree) -> NDArray[np.bool_]:
    """Return of each node whether it is a statement; the root always is."""
    found: NDArray[np.bool_] = _statements(tree.kinds)[tree.kind]
    found[0] = True
    return found
