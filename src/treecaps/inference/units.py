"""What of a program gets an answer."""

from typing import NamedTuple

from treecaps.errors import Failure
from treecaps.syntax.functions import find_functions
from treecaps.syntax.tree import Tree


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


def units_of(name: str, tree: Tree, functions: bool) -> list[CodeUnit | Failure]:
    """Return what of a program gets answers: the whole, or each of its functions."""
    if not functions:
        return [CodeUnit(name, tree)]
    found: list[CodeUnit | Failure] = [
        CodeUnit(name, function.tree, function.name, function.line)
        for function in find_functions(tree)
    ]
    return found or [Failure(name, "functions", "has no functions")]
