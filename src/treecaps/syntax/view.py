"""``View``: a tree as rules that change programs look at it."""

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from treecaps.syntax.names import is_name
from treecaps.syntax.tree import Tree

Cut = tuple[int, int, bytes]
"""What to replace: from where, to where, by what."""

_LITERALS = frozenset(
    (
        "number",
        "number_literal",
        "integer",
        "integer_literal",
        "int_literal",
        "decimal_integer_literal",
        "float",
        "float_literal",
        "decimal_floating_point_literal",
        "real_literal",
        "string",
        "string_literal",
        "interpreted_string_literal",
        "char_literal",
        "character_literal",
        "rune_literal",
        "true",
        "false",
        "none",
        "null",
        "nil",
        "null_literal",
        "boolean_literal",
    )
)
_PLACES = frozenset(
    (
        "variable_name",
        "this",
        "self",
        "subscript_expression",
        "subscript",
        "array_access",
        "element_access_expression",
        "index_expression",
        "element_reference",
        "field_expression",
        "field_access",
        "member_expression",
        "member_access_expression",
        "selector_expression",
        "attribute",
        "navigation_expression",
    )
)
"""What values are kept in, beside names."""
_PARTS = frozenset(
    (
        "string_start",
        "string_content",
        "string_fragment",
        "string_end",
        "escape_sequence",
        "character",
        "string_literal_content",
        "character_literal_content",
        "interpreted_string_literal_content",
        "bracketed_argument_list",
        "argument",
        "navigation_suffix",
        "expression_list",
        "parenthesized_expression",
        "binary_expression",
        "binary_operator",
        "binary",
    )
)
"""What these may consist of, and sums."""
_SIGN = re.compile(r"[<>=!&|^~+*/%?-]")
_HARMLESS = frozenset(('"+"', '"-"', '"*"', '"/"', '"%"', '"->"', '"?."'))
_NAME = re.compile(rb"[$@]*[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
WHOLE = re.compile(rb"\d{1,9}")
BLOCKS = frozenset(("block", "compound_statement", "statement_block"))


def splice(text: bytes, cuts: Iterable[Cut]) -> bytes:
    """Return a text with some pieces replaced; they are in order."""
    pieces: list[bytes] = []
    done = 0
    for start, end, new in cuts:
        pieces += (text[done:start], new)
        done = end
    return b"".join((*pieces, text[done:]))


class View:
    """A tree as rules look at it."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.language = tree, tree.language
        self.start: list[int] = tree.start.tolist()
        self.end: list[int] = tree.end.tolist()
        self._kind: list[int] = tree.kind.tolist()
        self._parent: list[int] = tree.parent.tolist()
        # The children of all nodes, those of each together, and where these begin.
        self._order: list[int] = np.argsort(tree.parent, kind="stable")[1:].tolist()
        self._offsets: list[int] = np.cumsum([0, *tree.child_count]).tolist()

    def kind(self, node: int) -> str:
        """Return the name of a node's kind."""
        return self.tree.kinds[self._kind[node]]

    def text(self, node: int) -> bytes:
        """Return what is written at a node."""
        return self.tree.text[self.start[node] : self.end[node]]

    def children(self, node: int) -> list[int]:
        """Return the children of a node, in order."""
        return self._order[self._offsets[node] : self._offsets[node + 1]]

    def parent(self, node: int) -> int:
        """Return the node above a node; -1 above the root."""
        return self._parent[node]

    def sibling(self, node: int, away: int) -> int | None:
        """Return the node that stands so many places behind one, or before it."""
        parent = self._parent[node]
        place = self._offsets[parent] + int(self.tree.position[node]) + away
        inside = self._offsets[parent] <= place < self._offsets[parent + 1]
        return self._order[place] if inside else None

    def only(self, node: int) -> int:
        """Return what is alone in the lists that Go and Swift have everywhere."""
        while self.kind(node) in ("expression_list", "directly_assignable_expression"):
            inside = self.children(node)
            if len(inside) != 1:
                break
            (node,) = inside
        return node

    def is_named(self, node: int) -> bool:
        """Whether a node is a name."""
        return is_name(self.kind(node)) or self.kind(node) == "variable_name"

    def is_operand(self, node: int) -> bool:
        """Whether a node is a name, a literal, or a place whose value is looked up, not made."""
        kind = self.kind(node)
        return (self.is_named(node) or kind in _LITERALS or kind in _PLACES) and self.is_pure(node)

    def is_pure(self, node: int) -> bool:
        """Whether nothing but operands and sums of them is below a node: it may be any time."""
        end = node + 1
        while end < len(self._parent) and self._parent[end] >= node:
            if not self._is_part(end):
                return False
            end += 1
        return self._is_part(node)

    def _is_part(self, node: int) -> bool:
        kind = self.kind(node)
        if kind.startswith('"'):
            return kind in _HARMLESS or not _SIGN.search(kind)
        if is_name(kind):
            return self.text(node) not in self.macros
        return kind in _LITERALS or kind in _PLACES or kind in _PARTS

    @cached_property
    def macros(self) -> frozenset[bytes]:
        """The names that stand for some text in C, of which nobody knows how it binds."""
        return frozenset(_MACRO.findall(self.tree.text))

    @cached_property
    def counters(self) -> frozenset[bytes]:
        """The names that are set to a whole number somewhere: these are numbers."""
        found = set()
        sets = np.array([kind in ('"="', '":="') for kind in self.tree.kinds])
        for node in np.flatnonzero(sets[self.tree.kind]).tolist():
            name, value = self.sibling(node, -1), self.sibling(node, 1)
            if name is None or value is None or "argument" in self.kind(self.parent(node)):
                continue
            if _NAME.fullmatch(self.text(name)) and WHOLE.fullmatch(self.text(value)):
                found.add(self.text(name))
        return frozenset(found)
