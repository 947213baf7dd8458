"""The functions of a program, each as a tree of its own."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.tree import Tree

_FUNCTIONS = frozenset(
    (
        # tree-sitter
        "function_definition",
        "function_declaration",
        "function_item",
        "function_expression",
        "generator_function_declaration",
        "generator_function",
        "arrow_function",
        "method_declaration",
        "method_definition",
        "constructor_declaration",
        "compact_constructor_declaration",
        "destructor_declaration",
        "operator_declaration",
        "local_function_statement",
        "secondary_constructor",
        "init_declaration",
        "deinit_declaration",
        "method",
        "singleton_method",
        # Python's own
        "FunctionDef",
        "AsyncFunctionDef",
        # srcML
        "function",
        "constructor",
        "destructor",
    )
)
_NAMES = frozenset(
    (
        "identifier",
        "simple_identifier",
        "field_identifier",
        "property_identifier",
        "private_property_identifier",
        "qualified_identifier",
        "destructor_name",
        "operator_name",
        "operator",
        "setter",
        "constant",
        "name",
    )
)
_ANONYMOUS = frozenset(("arrow_function", "function_expression", "generator_function"))
_HOLDERS = frozenset(("variable_declarator", "assignment_expression", "pair"))
"""What gives an anonymous function the name that it begins with."""
_SPECIAL = {"init_declaration": "init", "deinit_declaration": "deinit"}
_NAMELESS = "<function>"


@dataclass(frozen=True)
class Function:
    """A function of a program.

    Args:
        name: What it is called.
        line: The line where it begins, from 1.
        tree: Its tree, with the function as the root.
        node: The number of that root in the tree of the program.
    """

    name: str
    line: int
    tree: Tree
    node: int


def find_functions(tree: Tree) -> list[Function]:
    """Return the functions and methods of a program that lie in no other, in order.

    A function without a name counts if a variable or property holds it.
    """
    found: list[Function] = []
    line, counted, last = 1, 0, 0
    for node in np.flatnonzero(_kinds_of_functions(tree.kinds)[tree.kind]).tolist():
        start = int(tree.start[node])
        if node < last or not tree.child_count[node] or not _is_held(tree, node):
            continue
        line += tree.text.count(b"\n", counted, start)
        counted = max(counted, start)
        below = tree.subtree(node)
        found.append(Function(_name(tree, node, below), line, below, node))
        last = node + len(below)
    return found


@cache
def _kinds_of_functions(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return of each kind whether it is one of functions."""
    return np.array([kind in _FUNCTIONS for kind in kinds], bool)


def _is_held(tree: Tree, node: int) -> bool:
    """Return whether a function has a name, or is held by something that has."""
    parent = int(tree.parent[node])
    if tree.kinds[tree.kind[node]] not in _ANONYMOUS:
        return True
    return parent >= 0 and tree.kinds[tree.kind[parent]] in _HOLDERS


def _name(tree: Tree, function: int, below: Tree) -> str:
    """Return the name of a function, whose tree is given too."""
    numbers: list[int] = below.kind.tolist()
    node = 0

    def kind_of(child: int) -> str:
        return below.kinds[numbers[child]]

    if tree.frontend == "ast":
        # Python's own trees have no node for it.
        words = below.text.split(b"(", 1)[0].split()
        return words[-1].decode("utf-8", "replace") if words else _NAMELESS
    kind = kind_of(0)
    if kind in _ANONYMOUS:
        return _text(tree, int(tree.children(int(tree.parent[function]))[0]))
    while True:
        children = below.children(node).tolist()
        # C and C++ have the name inside of declarators: *f(int).
        inner = [child for child in children if kind_of(child).endswith("declarator")]
        if not inner or kind_of(node) == "function_declarator":
            break
        node = inner[0]
    names = [child for child in children if kind_of(child) in _NAMES]
    if not names:
        return _SPECIAL.get(kind, _NAMELESS)
    # A type may stand before the name, and in Go the receiver's parameters.
    parameters = [child for child in children if "parameter" in kind_of(child)]
    before = [child for child in names if parameters and child < parameters[0]]
    return _text(below, before[-1] if before else names[0])


def _text(tree: Tree, node: int) -> str:
    return tree.text[tree.start[node] : tree.end[node]].decode("utf-8", "replace")
