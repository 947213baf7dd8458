"""The tree-sitter front end: any language with a grammar, broken code included."""

import importlib
import time
from importlib.metadata import PackageNotFoundError, version
from struct import pack
from typing import Any

import numpy as np
import tree_sitter
from numpy.typing import ArrayLike

from treecaps import compiled
from treecaps.errors import ProgramError, UsageError
from treecaps.syntax.frontends.base import Frontend, describe_timeout, time_limit
from treecaps.syntax.languages import LANGUAGES, Language
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Ints, Tree

_PIECE = 1 << 12
_CHUNK = 1 << 16
_NOTHING = np.zeros(0, np.int32)
_ERROR = 0xFFFF  # tree-sitter's own number for the kind ERROR


class TreeSitterFrontend(Frontend):
    """Trees with every visible node: named ones (rules) and anonymous ones (tokens).

    Broken code gives a tree too; ``Tree.errors`` lists what the parser gave up on or invented.
    """

    name = "tree-sitter"

    def __init__(self, *, comments: bool = False) -> None:
        super().__init__(comments=comments)
        self._grammars: dict[str, _Grammar] = {}

    def languages(self) -> frozenset[str]:
        """Return every known language: each comes with a grammar."""
        return frozenset(LANGUAGES)

    def versions(self) -> dict[str, str]:
        """Return the versions of tree-sitter and of all installed grammars."""
        packages = ["tree-sitter", *sorted({known.grammar for known in LANGUAGES.values()})]
        return {package: _version(package) for package in packages}

    def parse(self, program: Program) -> Tree:
        """Parse one program; only one that takes too long raises ``ProgramError``."""
        grammar = self._grammars.get(program.language)
        if grammar is None:
            grammar = _Grammar(self.language_of(program), self.comments)
            self._grammars[program.language] = grammar
        (kind, parent, start, end), errors = _flatten(grammar, grammar.parse(program.text))
        return Tree(
            language=program.language,
            frontend=self.name,
            text=program.text,
            kinds=grammar.kinds,
            kind=kind,
            parent=parent,
            start=start,
            end=end,
            errors=errors,
        )


class _Grammar:
    """A grammar's parser, the names of its kinds, and the kinds to leave out."""

    def __init__(self, language: Language, comments: bool) -> None:
        try:
            module = importlib.import_module(language.grammar_module)
        except ModuleNotFoundError:
            raise ProgramError(
                "unsupported-language",
                f"the grammar of {language.name} is not installed: pip install {language.grammar}",
            ) from None
        entry = getattr(module, language.entry, None)
        if entry is None:
            raise UsageError(f"{language.grammar} has no {language.entry!r}: name its entry")
        grammar = tree_sitter.Language(entry())
        self._parser = tree_sitter.Parser(grammar)
        numbers = range(grammar.node_kind_count)
        names = [grammar.node_kind_for_id(number) or "" for number in numbers]
        self.kinds = (
            *(
                name if grammar.node_kind_is_named(number) else f'"{name}"'
                for number, name in zip(numbers, names, strict=True)
            ),
            "ERROR",
        )
        self.left_out = bytes(
            not comments and (name == "comment" or name.endswith("_comment")) for name in names
        )
        """For each kind, whether its nodes are left out."""

    def parse(self, text: bytes) -> tree_sitter.Tree:
        """Parse within the time limit, as long as the parser asks for text."""
        deadline = time.monotonic() + time_limit(text)

        # An early end of the text stops the parser soon and leaves it fit for the next program.
        # It asks whenever it leaves the piece it has; in error recovery that may take long.
        def read(offset: int, _: object) -> bytes:
            return text[offset : offset + _PIECE] if time.monotonic() < deadline else b""

        tree = self._parser.parse(read)
        if time.monotonic() >= deadline:
            raise ProgramError("timeout", describe_timeout(text))
        return tree


def _flatten(grammar: _Grammar, tree: tree_sitter.Tree) -> tuple[Ints, Ints]:
    """Walk a tree in pre-order; return kind, parent, start and end, ``[4, n]``, and the errors."""
    broken = tree.root_node.has_error
    missing: ArrayLike
    if loops := compiled.loops:
        packed = loops.flatten(tree.walk(), grammar.left_out, broken)
        rows = np.frombuffer(packed, np.int32).reshape(-1, 5)
        columns, missing = np.ascontiguousarray(rows[:, :4].T), np.flatnonzero(rows[:, 4])
    else:
        columns, missing = _walk(tree.walk(), grammar.left_out, broken)
    return _name_errors(columns, missing, len(grammar.kinds) - 1) if broken else (columns, _NOTHING)


def _walk(cursor: tree_sitter.TreeCursor, left_out: bytes, broken: bool) -> tuple[Ints, list[int]]:
    """Return what ``_flatten`` does, and which nodes are missing.

    This loop takes as long as the parser itself, so it touches each node as little as Python
    allows, and packs its lists now and then to stay small on programs of any size.
    """
    left = frozenset(number for number, out in enumerate(left_out) if out)
    down, across, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    chunks: list[Ints] = []
    missing: list[int] = []
    path: list[int] = []
    parent = -1
    first = 0
    node: Any = cursor.node
    kind = node.kind_id
    while node:
        kinds: list[int] = []
        parents: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        add_kind, add_parent = kinds.append, parents.append
        add_start, add_end = starts.append, ends.append
        for number in range(first, first + _CHUNK):
            add_kind(kind)
            add_parent(parent)
            add_start(node.start_byte)
            add_end(node.end_byte)
            if broken and node.is_missing:
                missing.append(number)
            if down():
                path.append(parent)
                parent = number
                node = cursor.node
                kind = node.kind_id
                if kind not in left:
                    continue
            # On to the next node in pre-order that is not left out.
            node = None
            while not node:
                while not across():
                    if not path:
                        break
                    up()
                    parent = path.pop()
                else:
                    node = cursor.node
                    kind = node.kind_id
                    if kind in left:
                        node = None
                    continue
                break
            if not node:
                break
        first += _CHUNK
        packed = pack(f"{4 * len(kinds)}i", *kinds, *parents, *starts, *ends)
        chunks.append(np.frombuffer(packed, np.int32).reshape(4, -1))
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1), missing


def _name_errors(columns: Ints, missing: ArrayLike, kind: int) -> tuple[Ints, Ints]:
    """Give the nodes of the kind ERROR its number here; return all errors beside the columns."""
    wrong = columns[0] == _ERROR
    columns = columns.copy()
    columns[0, wrong] = kind
    return columns, np.union1d(missing, np.flatnonzero(wrong)).astype(np.int32)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
