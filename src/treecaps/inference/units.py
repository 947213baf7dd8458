"""What of a program gets an answer."""

from collections.abc import Callable
from typing import NamedTuple

from treecaps.errors import Failure
from treecaps.syntax.functions import Function, find_functions
from treecaps.syntax.tree import Tree

_BROKEN = 0.5
"""If a larger share of a text is in error, it is no program."""


class CodeUnit(NamedTuple):
    """What gets an answer: a program, or a function of one.

    Args:
        id: The program's name.
        tree: Its tree.
        function: The name of the function that this is; ``None`` for a whole program.
        line: The line where that begins, from 1.
    """

    id: str
    tree: Tree
    function: str | None = None
    line: int | None = None


def is_empty(tree: Tree) -> bool:
    """Tell whether a program has no code: nothing but white space and comments."""
    return len(tree) == 1


def is_broken(tree: Tree) -> bool:
    """Tell whether most of a text is not of its language."""
    return tree.error_share > _BROKEN


def units_of(
    name: str, tree: Tree, functions: bool, skip: Callable[[Function], bool] | None = None
) -> list[CodeUnit | Failure]:
    """Return what of a program gets answers: the whole, or each of its functions.

    Args:
        name: The program's name.
        tree: Its tree.
        functions: Whether each function gets one.
        skip: Which functions get none.
    """
    if not functions:
        return [CodeUnit(name, tree)]
    every = find_functions(tree)
    found: list[CodeUnit | Failure] = [
        CodeUnit(name, function.tree, function.name, function.line)
        for function in every
        if not (skip and skip(function))
    ]
    but = " but constructors and accessors" if every else ""
    return found or [Failure(name, "functions", f"has no functions{but}")]
