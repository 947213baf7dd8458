"""The functions of a program, each as a tree of its own."""

from dataclasses import dataclass

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
    kinds = tree.kind_names()
    parent = tree.parent.tolist()
    inside = [False] * len(tree)
    found = []
    for node, up in enumerate(parent):
        inside[node] = up >= 0 and (inside[up] or _is_function(kinds, parent, up))
        if not inside[node] and tree.child_count[node] and _is_function(kinds, parent, node):
            line = tree.text.count(b"\n", 0, int(tree.start[node])) + 1
            found.append(Function(_name(tree, kinds, node), line, tree.subtree(node), node))
    return found


def _is_function(kinds: list[str], parent: list[int], node: int) -> bool:
    if kinds[node] in _ANONYMOUS:
        return parent[node] >= 0 and kinds[parent[node]] in _HOLDERS
    return kinds[node] in _FUNCTIONS


def _name(tree: Tree, kinds: list[str], node: int) -> str:
    if tree.frontend == "ast":
        # Python's own trees have no node for it.
        words = tree.text[tree.start[node] :].split(b"(", 1)[0].split()
        return words[-1].decode("utf-8", "replace") if words else _NAMELESS
    if kinds[node] in _ANONYMOUS:
        return _text(tree, int(tree.children(int(tree.parent[node]))[0]))
    kind = kinds[node]
    while True:
        children = tree.children(node).tolist()
        # C and C++ have the name inside of declarators: *f(int).
        inner = [child for child in children if kinds[child].endswith("declarator")]
        if not inner or kinds[node] == "function_declarator":
            break
        node = inner[0]
    names = [child for child in children if kinds[child] in _NAMES]
    if not names:
        return _SPECIAL.get(kind, _NAMELESS)
    # A type may stand before the name, and in Go the receiver's parameters.
    parameters = [child for child in children if "parameter" in kinds[child]]
    before = [child for child in names if parameters and child < parameters[0]]
    return _text(tree, before[-1] if before else names[0])


def _text(tree: Tree, node: int) -> str:
    return tree.text[tree.start[node] : tree.end[node]].decode("utf-8", "replace")
