"""Random trees, and slow, obvious twins of what the package does fast."""

from dataclasses import dataclass, field

import tree_sitter
from hypothesis import strategies as st

from treecaps.syntax.tree import Tree


@dataclass
class Node:
    """A tree node as everybody would write it."""

    kind: str
    start: int
    end: int
    children: list["Node"] = field(default_factory=list)


def pre_order(root: Node) -> list[tuple[str, int, int, int, int]]:
    """Return kind, parent, position, start and end of each node, in pre-order."""
    rows: list[tuple[str, int, int, int, int]] = []
    stack = [(root, -1, 0)]
    while stack:
        node, parent, position = stack.pop()
        rows.append((node.kind, parent, position, node.start, node.end))
        number = len(rows) - 1
        for place in range(len(node.children) - 1, -1, -1):
            stack.append((node.children[place], number, place))
    return rows


def rows_of(tree: Tree) -> list[tuple[str, int, int, int, int]]:
    """Return the same rows for a ``Tree``."""
    columns = (tree.parent, tree.position, tree.start, tree.end)
    return list(zip(tree.kind_names(), *(column.tolist() for column in columns), strict=True))


def from_tree_sitter(node: tree_sitter.Node, comments: bool) -> Node:
    """Copy tree-sitter's own nodes, by plain recursion."""
    name = node.type if node.is_named or node.is_error else f'"{node.type}"'
    children = [
        from_tree_sitter(child, comments)
        for child in node.children
        if comments or not (child.type == "comment" or child.type.endswith("_comment"))
    ]
    return Node(name, node.start_byte, node.end_byte, children)


@st.composite
def random_trees(draw: st.DrawFn) -> Tree:
    """Draw a tree of any shape, with spans and errors."""
    size = draw(st.integers(1, 60))
    text = draw(st.text(max_size=40)).encode("utf-8", "replace")
    parent = [-1]
    path = [0]
    for node in range(1, size):
        del path[draw(st.integers(1, len(path))) :]
        parent.append(path[-1])
        path.append(node)
    kinds = draw(st.lists(st.text(max_size=5), min_size=size, max_size=size))
    places = st.integers(0, len(text))
    spans = [sorted((draw(places), draw(places))) for _ in range(size)]
    errors = draw(st.sets(st.integers(0, size - 1), max_size=3))
    return Tree.build(
        kinds,
        parent,
        text=text,
        start=[start for start, _ in spans],
        end=[end for _, end in spans],
        errors=sorted(errors),
        language=draw(st.sampled_from(["c", "python"])),
        frontend="tree-sitter",
    )
