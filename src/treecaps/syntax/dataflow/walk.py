"""The walk through a tree, which visits the parts of a program in the order they are computed."""

from collections.abc import Callable, Generator, Iterable

from treecaps.syntax.dataflow.blocks import Blocks, Jumps
from treecaps.syntax.tree import Tree

Steps = Generator["Steps", None, None]
"""A visit: it yields the visits that it asks for."""
Rule = Callable[["Walk", int], Steps]
RULES: dict[str, Rule] = {}
"""How nodes are visited, by their kinds; those of other kinds are visited child by child."""


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register how nodes of some kinds are visited."""

    def register(visit: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, visit))
        return visit

    return register


class Walk(Blocks):
    """Goes through a tree and notes each variable in the block that it stands in.

    Args:
        tree: A tree of Python, Java, C or C++.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.kinds = tree.kind_names()
        self.children: list[list[int]] = [[] for _ in range(len(tree))]
        for node, parent in enumerate(tree.parent.tolist()):
            if parent >= 0:
                self.children[parent].append(node)
        self.jumps: list[Jumps] = []  # what may be left here, the innermost last
        self.label: bytes | None = None  # of the statement that is visited next
        self.functions = 0
        # A visit asks for others by yielding them: trees may be deeper than Python's stack.
        waiting: list[Steps] = [self.visit(0)]
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
            else:
                waiting.append(step)

    def named(self, node: int) -> list[int]:
        """Return the children that are neither signs nor comments."""
        return [
            child
            for child in self.children[node]
            if not self.kinds[child].startswith('"') and not self.kinds[child].endswith("comment")
        ]

    def split(self, node: int, *signs: str) -> tuple[list[int], list[int]]:
        """Return the children before and after the first that is one of some signs."""
        children = self.children[node]
        for place, child in enumerate(children):
            if self.kinds[child] in signs:
                return children[:place], children[place + 1 :]
        return children, []

    def visit(self, node: int) -> Steps:
        """Visit a node and all below it, in the order in which they are computed."""
        kind = self.kinds[node]
        if kind in _WITHOUT:
            return
        # What the parser could not make whole is visited as it stands.
        if kind in RULES and (kind in _JUMPS or self.named(node)):
            yield RULES[kind](self, node)
        elif kind == "identifier":
            self.meet(node)
        else:
            for child in self.children[node]:
                yield self.visit(child)

    def visit_all(self, nodes: Iterable[int]) -> Steps:
        """Visit nodes one after the other."""
        for node in nodes:
            yield self.visit(node)

    def write(self, nodes: Iterable[int], *, read: bool = False) -> Steps:
        """Visit what is assigned to; ``read`` if its old value counts."""
        for node in nodes:
            kind = self.kinds[node]
            if kind == "identifier":
                self.meet(node, read=read, write=True)
            elif kind in _PATTERNS:
                yield self.write(self.children[node], read=read)
            elif kind in _PARTS and self.children[node]:
                # To change a part is to change the whole, whose other parts stay.
                first, *others = self.children[node]
                if kind not in FIELDS:
                    yield self.visit_all(others)
                yield self.write([first], read=True)
            elif kind == "pointer_expression":
                yield self.write(self.children[node], read=True)
            elif kind == "array_declarator":
                yield self.visit_all(self.children[node][1:])
                yield self.write(self.children[node][:1], read=read)
            elif kind != "function_declarator":
                yield self.visit(node)

    def assign(self, targets: Iterable[int], values: Iterable[int], *, read: bool = False) -> Steps:
        """Visit values, then what they are assigned to."""
        begin = len(self.uses)
        yield self.visit_all(values)
        middle = len(self.uses)
        yield self.write(targets, read=read)
        sources = self.uses[begin:middle]
        for use in self.uses[middle:]:
            if use.write:
                self.computed += [(use.node, source.node) for source in sources]


_WITHOUT = frozenset(
    (
        "type",
        "import_statement",
        "import_from_statement",
        "future_import_statement",
        "import_declaration",
        "package_declaration",
        "annotation",
        "marker_annotation",
        "qualified_identifier",
        "scoped_identifier",
        "scoped_type_identifier",
        "global_statement",
        "nonlocal_statement",
        "enumerator",
        "goto_statement",
        "preproc_def",
        "preproc_function_def",
        "preproc_include",
        "using_declaration",
        "template_parameter_list",
        "ERROR",
    )
)
"""What holds no variables."""
_PATTERNS = frozenset(
    (
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "dictionary_splat_pattern",
        "expression_list",
        "tuple",
        "list",
        "parenthesized_expression",
        "pointer_declarator",
        "reference_declarator",
        "parenthesized_declarator",
        "structured_binding_declarator",
    )
)
FIELDS = frozenset(("attribute", "field_access", "field_expression"))
_PARTS = FIELDS | {"subscript", "array_access", "subscript_expression"}
_JUMPS = frozenset(
    (
        "break_statement",
        "continue_statement",
        "return_statement",
        "raise_statement",
        "throw_statement",
    )
)
