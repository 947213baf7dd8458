"""``Tree``: a syntax tree as flat arrays, nodes in pre-order."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treecaps.errors import DataError
from treecaps.text import short_repr, to_html

Ints = NDArray[np.int32]

_ARRAYS = ("kind", "parent", "start", "end", "errors")
_SHOWN_DEPTH = 40
_SHOWN_NODES, _SHOWN_WIDTH = 500, 200  # in notebooks


@dataclass(frozen=True, eq=False)
class Tree:
    """A syntax tree of n nodes, numbered in pre-order: the root is 0, a parent precedes its
    children, and a subtree is one run of numbers.

    Args:
        language: The language of the program.
        frontend: The front end that made the tree.
        text: The program as UTF-8; ``start`` and ``end`` count its bytes.
        kinds: Names of node kinds, shared by all trees of one grammar. Anonymous nodes of
            tree-sitter (operators, keywords) carry their text in double quotes.
        kind: ``[n]``, indices into ``kinds``.
        parent: ``[n]``, the parent of each node; -1 for the root.
        start: ``[n]``, first byte of each node.
        end: ``[n]``, the byte after the last of each node.
        errors: Nodes that the parser could not make sense of or had to invent.
    """  # noqa: D205

    language: str
    frontend: str
    text: bytes
    kinds: tuple[str, ...]
    kind: Ints
    parent: Ints
    start: Ints
    end: Ints
    errors: Ints

    @classmethod
    def build(
        cls,
        kinds: Sequence[str],
        parent: ArrayLike,
        *,
        text: bytes = b"",
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        errors: ArrayLike = (),
        language: str = "unknown",
        frontend: str = "unknown",
    ) -> "Tree":
        """Make a tree from the kind names and parents of its nodes, and check it."""
        table = {name: number for number, name in enumerate(dict.fromkeys(kinds))}
        zeros = np.zeros(len(kinds), np.int32)
        try:
            tree = cls(
                language=language,
                frontend=frontend,
                text=text,
                kinds=tuple(table),
                kind=_ints([table[name] for name in kinds]),
                parent=_ints(parent),
                start=zeros if start is None else _ints(start),
                end=zeros if end is None else _ints(end),
                errors=_ints(errors),
            )
        except ValueError as error:
            raise DataError(f"not a tree: {error}") from None
        tree.check()
        return tree

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        errors = {"errors": len(self.errors)} if len(self.errors) else {}
        return short_repr(self, self.language, frontend=self.frontend, nodes=len(self), **errors)

    def _repr_html_(self) -> str:
        if len(self) <= _SHOWN_NODES:
            from treecaps.syntax.drawing import to_svg

            # As an image, because the style of a picture in place is that of the whole page.
            picture = b64encode(to_svg(self).encode("utf-8", "replace")).decode()
            return f'<img alt="{to_html(repr(self))}" src="data:image/svg+xml;base64,{picture}">'
        shown = (to_html(line[:_SHOWN_WIDTH]) for line in islice(self.format(), _SHOWN_NODES))
        return f"<pre>{to_html(repr(self))}\n{chr(10).join(shown)}\n...</pre>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (
            (self.language, self.frontend, self.text)
            == (other.language, other.frontend, other.text)
            and np.array_equal(self.parent, other.parent)
            and np.array_equal(self.start, other.start)
            and np.array_equal(self.end, other.end)
            and np.array_equal(self.errors, other.errors)
            and self.kind_names() == other.kind_names()
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def position(self) -> Ints:
        """``[n]``, the place of each node among its siblings, from 0."""
        order = np.argsort(self.parent, kind="stable")
        family = self.parent[order]
        first = np.searchsorted(family, family, side="left")
        position = np.empty(len(self), np.int32)
        position[order] = np.arange(len(self)) - first
        return position

    @cached_property
    def child_count(self) -> Ints:
        """``[n]``, how many children each node has."""
        return np.bincount(self.parent[1:], minlength=len(self)).astype(np.int32)

    @cached_property
    def depth(self) -> Ints:
        """``[n]``, how many nodes lie above each node."""
        depth = [0] * len(self)
        for node, parent in enumerate(self.parent.tolist()):
            if parent >= 0:
                depth[node] = depth[parent] + 1
        return _ints(depth)

    def children(self, node: int) -> Ints:
        """Return the children of one node, in order."""
        return np.flatnonzero(self.parent == node).astype(np.int32)

    def subtree(self, node: int) -> "Tree":
        """Return the tree below a node, with that node as its root and its text alone."""
        # Whatever comes later and hangs on something before the node is beyond it.
        beyond = np.append(self.parent[node + 1 :] < node, True)
        last = node + 1 + int(beyond.argmax())
        begin, end = int(self.start[node]), int(self.end[node])
        parent = self.parent[node:last] - node
        parent[0] = -1
        errors = self.errors
        if len(errors):
            errors = errors[(errors >= node) & (errors < last)] - node
        return Tree(
            language=self.language,
            frontend=self.frontend,
            text=self.text[begin:end],
            kinds=self.kinds,
            kind=self.kind[node:last],
            parent=parent,
            start=np.minimum(np.maximum(self.start[node:last], begin), end) - begin,
            end=np.minimum(np.maximum(self.end[node:last], begin), end) - begin,
            errors=errors,
        )

    def kind_names(self) -> list[str]:
        """Return the name of each node's kind."""
        return [self.kinds[kind] for kind in self.kind.tolist()]

    def token(self, node: int) -> str:
        """Return the source text of a leaf, and nothing for an inner node."""
        if self.child_count[node]:
            return ""
        return self.text[self.start[node] : self.end[node]].decode("utf-8", "replace")

    def tokens(self) -> list[str]:
        """Return ``token`` of every node."""
        return [self.token(node) for node in range(len(self))]

    @cached_property
    def error_share(self) -> float:
        """The share of the program's bytes that lies in nodes the parser gave up on."""
        if not len(self.errors) or not self.text:
            return 0.0
        covered = reached = 0
        for start, end in sorted(zip(self.start[self.errors], self.end[self.errors], strict=True)):
            covered += max(0, int(end) - max(reached, int(start)))
            reached = max(reached, int(end))
        return covered / len(self.text)

    def line_and_column(self, node: int) -> tuple[int, int]:
        """Return where a node starts, both counted from 1, columns in characters."""
        before = self.text[: self.start[node]]
        line_start = before.rfind(b"\n") + 1
        return before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as plain values for JSON, with the kinds it uses."""
        used, kind = np.unique(self.kind, return_inverse=True)
        values = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return {
            "language": self.language,
            "frontend": self.frontend,
            "text": self.text.decode(),
            "kinds": [self.kinds[number] for number in used],
            **values,
            "kind": kind.tolist(),
        }

    def to_json(self) -> str:
        """Return the tree as one line of JSON; ``from_json`` gives an equal tree back."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_dict(cls, values: Any) -> "Tree":
        """Make a tree of what ``to_dict`` returned, and check it."""
        try:
            arrays = {name: _ints(values[name]) for name in _ARRAYS}
            kinds = tuple(values["kinds"])
            names = (values["language"], values["frontend"], *kinds)
            text = values["text"].encode()
        except KeyError as error:
            raise DataError(f"not a tree: {error} is missing") from None
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise DataError(f"not a tree: {error}") from None
        if not all(isinstance(name, str) for name in names):
            raise DataError("not a tree: the language, front end and kinds must be text")
        tree = cls(
            language=values["language"],
            frontend=values["frontend"],
            text=text,
            kinds=kinds,
            **arrays,
        )
        tree.check()
        return tree

    @classmethod
    def from_json(cls, text: str) -> "Tree":
        """Read a tree back from ``to_json``."""
        try:
            values = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise DataError(f"not a tree: {error}") from None
        return cls.from_dict(values)

    def check(self) -> None:
        """Raise ``DataError`` unless the arrays describe one tree in pre-order."""
        size = len(self.kind)
        if not size:
            raise DataError("not a tree: it has no nodes")
        if any(getattr(self, name).shape != (size,) for name in _ARRAYS if name != "errors"):
            raise DataError("not a tree: its arrays differ in length")
        if self.kind.min() < 0 or self.kind.max() >= len(self.kinds):
            raise DataError("not a tree: a kind is not in the table of kinds")
        if len(self.errors) and not 0 <= self.errors.min() <= self.errors.max() < size:
            raise DataError("not a tree: an error names no node")
        if not (
            self.start.min() >= 0
            and (self.start <= self.end).all()
            and self.end.max() <= len(self.text)
        ):
            raise DataError("not a tree: a span lies outside the text")
        try:
            self.text.decode()
        except UnicodeDecodeError:
            raise DataError("not a tree: its text is not UTF-8") from None
        path: list[int] = []
        for node, parent in enumerate(self.parent.tolist()):
            while path and path[-1] != parent:
                path.pop()
            if not path and (node or parent != -1):
                raise DataError(f"not a tree: node {node} breaks the pre-order")
            path.append(node)

    def format(self) -> Iterator[str]:
        """Yield one line a node, indented by depth, leaves with their text."""
        faulty = set(self.errors.tolist())
        names = self.kind_names()
        for node, depth in enumerate(self.depth.tolist()):
            line = "  " * min(depth, _SHOWN_DEPTH)
            if depth > _SHOWN_DEPTH:
                line += f"[{depth}] "
            line += names[node]
            token = self.token(node)
            if token and f'"{token}"' != names[node]:
                line += f"  {json.dumps(token, ensure_ascii=False)}"
            if node in faulty:
                line += "  (error)" if token or self.child_count[node] else "  (missing)"
            yield line


def _ints(values: ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError("an array holds something that is not a whole number")
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise ValueError("an array holds a number beyond 32 bits")
    if array.ndim != 1:
        raise ValueError("an array is not flat")
    return array.astype(np.int32)
