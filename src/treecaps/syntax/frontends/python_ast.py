"""The ``ast`` front end: Python's own parser, as in the paper."""

import ast
import platform
import re
import warnings

import numpy as np

from treecaps.errors import ProgramError
from treecaps.syntax.frontends.base import Frontend
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

_KINDS = tuple(
    sorted(
        name
        for name, value in vars(ast).items()
        if isinstance(value, type) and issubclass(value, ast.AST) and value is not ast.AST
    )
)
_KIND_NUMBERS = {name: number for number, name in enumerate(_KINDS)}
_NEWLINE = re.compile(rb"\r\n|\n|\r")

# What Python 3 says of Python 2 code, and what a line of it may look like.
_PYTHON_2_MESSAGES = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
)
_PYTHON_2_LINE = re.compile(
    r"""\s*(print\s+["'\w%]|exec\s+["'\w]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)"""
    r"|\s*def\s+\w+\(.*\(.*\).*\):|.*(`[\w.]+`|[\w)\]]\s*<>\s*[\w(]|\bur['\"]|\b\d+[lL]\b|\blambda\s*\()"
)


class AstFrontend(Frontend):
    """Trees of the node classes of Python's ``ast``, children in the order of their fields.

    Python gives no position to some nodes. ``Load``, ``Store`` and ``Del`` get the span of the
    name they belong to, so that names are leaf tokens here too; operators get an empty span.
    The parser knows no comments.
    """

    name = "ast"

    def languages(self) -> frozenset[str]:
        """Return Python alone."""
        return frozenset({"python"})

    def versions(self) -> dict[str, str]:
        """Return the version of Python, whose parser this is."""
        return {"python": platform.python_version()}

    def parse(self, program: Program) -> Tree:
        """Parse one program; code that this Python refuses raises ``ProgramError``."""
        self.language_of(program)
        kind: list[int] = []
        parents: list[int] = []
        spans: list[tuple[int, int] | None] = []
        locate = _Locator(program.text)
        stack: list[tuple[ast.AST, int, ast.AST | None]] = [(_parse(program.text), -1, None)]
        while stack:
            node, parent, owner = stack.pop()
            number = len(kind)
            kind.append(_KIND_NUMBERS[type(node).__name__])
            parents.append(parent)
            spans.append(locate(node, owner, spans[parent] if owner else None))
            children = list(ast.iter_child_nodes(node))
            stack.extend((child, number, node) for child in reversed(children))
        start, end = _nested(spans, parents)
        return Tree(
            language=program.language,
            frontend=self.name,
            text=program.text,
            kinds=_KINDS,
            kind=np.array(kind, np.int32),
            parent=np.array(parents, np.int32),
            start=np.array(start, np.int32),
            end=np.array(end, np.int32),
            errors=np.zeros(0, np.int32),
        )


def _parse(text: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\d" in a string and the like
            return ast.parse(text.decode())
    except SyntaxError as error:
        message = error.msg
        if message.startswith(_PYTHON_2_MESSAGES) or _PYTHON_2_LINE.match(error.text or ""):
            raise ProgramError(
                "syntax",
                f"line {error.lineno}: this is Python 2, which Python's own parser refuses;"
                ' use frontend="tree-sitter"',
            ) from None
        raise ProgramError(
            "syntax", f'line {error.lineno}: {message}; frontend="tree-sitter" takes broken code'
        ) from None
    except (RecursionError, MemoryError):
        raise ProgramError(
            "too-deep", 'is nested too deeply for Python\'s own parser; use frontend="tree-sitter"'
        ) from None
    except (ValueError, OverflowError) as error:
        raise ProgramError("syntax", f"Python's own parser refuses it: {error}") from None


class _Locator:
    """Finds the bytes of a node from the lines and columns that Python gives."""

    def __init__(self, text: bytes) -> None:
        self._size = len(text)
        self._line_starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]

    def __call__(
        self, node: ast.AST, owner: ast.AST | None, outer: tuple[int, int] | None
    ) -> tuple[int, int] | None:
        if owner is None:
            return 0, self._size
        if isinstance(node, ast.expr_context) and outer:
            if isinstance(owner, ast.Name):
                return outer
            name = owner.attr if isinstance(owner, ast.Attribute) else ""
            return outer[1] - len(name.encode()), outer[1]
        line = getattr(node, "lineno", None)
        if line is None:
            return None
        decorators = getattr(node, "decorator_list", None)
        if decorators:  # "@" and the decorators stand before the line of the definition
            start = self._place(decorators[0].lineno, max(0, decorators[0].col_offset - 1))
        else:
            start = self._place(line, node.col_offset)  # type: ignore[attr-defined]
        end = self._place(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return start, end

    def _place(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column


def _nested(spans: list[tuple[int, int] | None], parents: list[int]) -> tuple[list[int], list[int]]:
    """Return the starts and ends of all nodes, each within its parent.

    Nodes without a place (``arguments``, ``comprehension``) span their children; those without
    either (operators) get an empty span where their parent starts. Before Python 3.12, what
    stands inside an f-string has a made-up place, which is moved into the string.
    """
    placed = [span is not None for span in spans]
    for number in range(len(spans) - 1, 0, -1):
        inner, parent = spans[number], parents[number]
        if inner and not placed[parent]:
            outer = spans[parent] or inner
            spans[parent] = min(inner[0], outer[0]), max(inner[1], outer[1])
    starts: list[int] = []
    ends: list[int] = []
    for span, parent in zip(spans, parents, strict=True):
        if parent < 0:
            first, last = span or (0, 0)
        else:
            first, last = starts[parent], ends[parent]
        start, end = span or (first, first)
        starts.append(min(max(start, first), last))
        ends.append(min(max(end, starts[-1]), last))
    return starts, ends
