"""Blind programs: every name replaced by a meaningless one, comments and docstrings removed."""

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.names import is_name
from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

_NAME, _PROPERTY, _WORDS, _TEMPLATE, _COMMENT, _DOCSTRING, _BODY = range(1, 8)

_SHEBANGS = frozenset(("hash_bang_line", "shebang", "shebang_line", "shebang_directive"))

# srcML looks at the name main: a function of that name needs no type.
_C = frozenset(
    b"main auto break case char const continue default do double else enum extern float for goto"
    b" if inline int long register restrict return short signed sizeof static struct switch typedef"
    b" union unsigned void volatile while bool true false TRUE FALSE NULL defined size_t ssize_t"
    b" ptrdiff_t intptr_t uintptr_t charptr_t nullptr_t max_align_t int8_t int16_t int32_t int64_t"
    b" uint8_t uint16_t uint32_t uint64_t char8_t char16_t char32_t char64_t".split()
)
_JAVA = frozenset(
    b"break case catch class const continue default do else enum extends finally for if import"
    b" instanceof new return static super switch this throw try void while".split()
)
_JAVASCRIPT = _JAVA | frozenset(b"delete function in let typeof var with".split())
_KEPT: dict[str, frozenset[bytes]] = {
    "c": _C,
    "cpp": _C
    | frozenset(
        b"alignas alignof and catch class concept constexpr const_cast decltype delete"
        b" dynamic_cast explicit friend mutable namespace new noexcept not nullptr operator or"
        b" private protected public reinterpret_cast static_assert static_cast template this"
        b" thread_local throw try typeid typename using virtual wchar_t".split()
    ),
    "c_sharp": _JAVA | {b"var"},
    # The grammar has a rule of its own for calls of new and make.
    "go": frozenset(
        b"bool byte complex64 complex128 float32 float64 int int8 int16 int32 int64 rune string"
        b" uint uint8 uint16 uint32 uint64 uintptr new make".split()
    ),
    "java": _JAVA | {b"var"},
    "javascript": _JAVASCRIPT,
    "kotlin": frozenset(
        b"break class continue return this Boolean Byte Char Double Float Int Long Short UByte"
        b" UInt ULong UShort".split()
    ),
    "php": frozenset((b"this", b"self", b"static")),
    "ruby": frozenset((b"else", b"end")),
    "rust": frozenset(
        b"as async await break const continue crate dyn else enum extern false fn for if impl in"
        b" let loop match mod move mut pub ref return self Self static struct super trait true"
        b" type unsafe use where while bool char str f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32"
        b" u64 u128 usize".split()
    ),
    "swift": frozenset(
        b"init self Self Bool Double Float Int Int8 Int16 Int32 Int64 UInt UInt8 UInt16 UInt32"
        b" UInt64".split()
    ),
    "tsx": _JAVASCRIPT,
    "typescript": _JAVASCRIPT,
}
"""Words that stay even where a grammar takes them for names: primitive types that are names to
it, and keywords it meets in macros or in broken code."""

# Bytes beyond ASCII belong to words: programs are UTF-8. Rust's r# is no part of a name.
_WORD = re.compile(rb"(?!r#\w)[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_WORD_WITH_DOLLAR = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
_WITH_DOLLAR = frozenset(("java", "javascript", "typescript", "tsx"))
_QUOTES = (b"@", b"`", b":", b"r#")  # make a name of any word
_OPAQUE = re.compile(
    rb"""(?P<comment>//[^\n]*|/\*.*?\*/)
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\[^'\n]+|\\')'  # literals stay
    | \.?\d[\w.]*                                         # and numbers, with their letters
    | (?P<word>[A-Za-z_\x80-\xff][\w\x80-\xff]*)""",
    re.DOTALL | re.VERBOSE,
)
_SHEBANG = re.compile(rb"#!(?!\s*\[)[^\n]*\n?")  # Rust has #![...]
_REST_OF_LINE = re.compile(rb"[ \t\f\r]*(?:\n|\Z)")
_SEMICOLON = re.compile(rb"[ \t]*;[ \t]*")
_PLAIN_STRING = re.compile(rb"[rRuU]?[\"']")


def blind(program: Program) -> Program:
    """Return a program that does the same without saying so.

    Every name gets a new one, the same everywhere in the program; comments and docstrings go.
    Keywords, primitive types, literals and operators stay. See ``docs/trees.md``.

    Raises:
        ProgramError: tree-sitter refuses the program.
    """
    tree = loaded_frontend("tree-sitter", comments=True).parse(program)
    pieces: list[bytes] = []
    done = 0
    for start, end, new in _cuts(tree):
        pieces += (tree.text[done:start], new)
        done = end
    pieces.append(tree.text[done:])
    return program.replace(text=b"".join(pieces))


def _cuts(tree: Tree) -> Iterator[tuple[int, int, bytes]]:
    """Yield what to replace: from where, to where, by what; in order and apart."""
    text = tree.text
    names = _Names(tree)
    action = _actions(tree.kinds, tree.language)[tree.kind]
    if tree.language == "python":
        _mark_docstrings(tree, action)
    nodes = np.flatnonzero(action)
    done = 0
    if shebang := _SHEBANG.match(text):
        done = shebang.end()
        yield 0, done, b""
    for node, act, start, end in zip(
        nodes.tolist(),
        action[nodes].tolist(),
        tree.start[nodes].tolist(),
        tree.end[nodes].tolist(),
        strict=True,
    ):
        if start < done or start == end:  # inside of what is gone, or invented by the parser
            continue
        cut = start, end, b""
        if act == _COMMENT:
            cut = _without_comment(text, start, end, tree.language)
        elif act == _DOCSTRING:
            cut = _without_docstring(text, start, end)
        elif act == _BODY:
            cut = start, end, b"pass"
        elif act == _TEMPLATE:
            if not is_template(tree, node):
                continue
            cut = start, end, names.rename_first(text[start:end])
        elif not _is_leaf(tree, node):
            continue
        elif act in (_NAME, _PROPERTY):
            leaf = text[start:end]
            every = act == _PROPERTY or leaf.startswith(_QUOTES)
            cut = start, end, names.rename(leaf, every=every)
        else:
            cut = start, end, names.rename_opaque(text[start:end])
        cut = max(cut[0], done), cut[1], cut[2]
        if cut[0] < cut[1]:
            yield cut
            done = cut[1]


class _Names:
    """The new names of one program, given out in the order in which the old ones appear."""

    def __init__(self, tree: Tree) -> None:
        self._word = _WORD_WITH_DOLLAR if tree.language in _WITH_DOLLAR else _WORD
        self._kept = _KEPT.get(tree.language, frozenset())
        # No new name may be an old one, or be mistaken for one in a string.
        self._taken = frozenset(self._word.findall(tree.text))
        self._capitals = tree.language == "ruby"  # where they tell constants from variables
        self._new: dict[bytes, bytes] = {}
        self._count = 0

    def rename(self, leaf: bytes, *, every: bool) -> bytes:
        """Replace the words of a name, not its signs: ``@a``, ``a?``, ``:a`` stay alike.

        Args:
            leaf: The text of the name.
            every: Whether even a keyword is a name here, as in ``a.delete`` or ``@class``.
        """
        return self._word.sub(lambda match: self._rename_word(match[0], every=every), leaf)

    def rename_first(self, leaf: bytes) -> bytes:
        """Replace the word that a text begins with."""
        match = self._word.match(leaf)
        return self._rename_word(match[0]) + leaf[match.end() :] if match else leaf

    def rename_opaque(self, leaf: bytes) -> bytes:
        """Replace the words of text that the grammar does not look into, and its comments."""
        return _OPAQUE.sub(self._rename_token, leaf)

    def _rename_token(self, match: re.Match[bytes]) -> bytes:
        if match["comment"]:
            return b" "
        return self._rename_word(match["word"]) if match["word"] else match[0]

    def _rename_word(self, word: bytes, *, every: bool = False) -> bytes:
        if word == b"_" or (word in self._kept and not every):
            return word
        new = self._new.get(word)
        while new is None or new in self._taken:
            capital = self._capitals and word.decode("utf-8", "replace")[0].isupper()
            new = b"%c%d" % (b"V" if capital else b"v", self._count)
            self._count += 1
        self._new[word] = new
        return new


@cache
def _actions(kinds: tuple[str, ...], language: str) -> NDArray[np.int8]:
    """Return what to do with the nodes of each kind of a grammar."""
    actions = np.zeros(len(kinds), np.int8)
    for number, kind in enumerate(kinds):
        if kind == "comment" or kind.endswith("_comment") or kind in _SHEBANGS:
            actions[number] = _COMMENT
        elif kind.endswith("property_identifier"):
            actions[number] = _PROPERTY
        elif is_name(kind):
            actions[number] = _NAME
        elif kind in ("preproc_arg", "ERROR"):
            actions[number] = _WORDS
        elif kind == "string_content" and language == "kotlin":
            actions[number] = _TEMPLATE
    return actions


def _is_leaf(tree: Tree, node: int) -> bool:
    """Whether a node is a leaf, or would be were it not spelled as a keyword is elsewhere."""
    child = node + 1
    if child == len(tree) or tree.parent[child] != node:
        return True
    return bool(
        tree.kinds[tree.kind[child]].startswith('"')
        and tree.start[child] == tree.start[node]
        and tree.end[child] == tree.end[node]
    )


def is_template(tree: Tree, node: int) -> bool:
    """Whether text follows Kotlin's ``$``, which the grammar gives as a text of its own."""
    dollar = node - 1
    return bool(
        tree.kind[dollar] == tree.kind[node]
        and tree.end[dollar] == tree.start[node]
        and tree.text[tree.start[dollar] : tree.end[dollar]] == b"$"
    )


def _mark_docstrings(tree: Tree, action: NDArray[np.int8]) -> None:
    """Mark the strings that bodies begin with; where nothing else follows, one as the body."""
    kinds = tree.kind_names()
    parent = tree.parent.tolist()
    found: dict[int, list[int]] = {}  # by body
    ended: set[int] = set()
    for node in range(1, len(tree)):
        body = parent[node]
        if body in ended or kinds[node] == "comment" or not _is_body(kinds, parent, body):
            continue
        if (
            kinds[node] == "expression_statement"
            and kinds[node + 1 : node + 2] in (["string"], ["concatenated_string"])
            and tree.end[node + 1] == tree.end[node]
            and _PLAIN_STRING.match(tree.text, tree.start[node])
        ):
            found.setdefault(body, []).append(node)
        elif not kinds[node].startswith('"'):
            ended.add(body)
    for body, docstrings in found.items():
        action[docstrings] = _DOCSTRING
        if body and body not in ended:
            action[docstrings[0]] = _BODY


def _is_body(kinds: list[str], parent: list[int], node: int) -> bool:
    if kinds[node] != "block":
        return kinds[node] == "module"
    return kinds[parent[node]] in ("function_definition", "class_definition")


def _without_comment(text: bytes, start: int, end: int, language: str) -> tuple[int, int, bytes]:
    comment = text[start:end].rstrip(b"\r\n")  # some grammars count the line break in
    end = start + len(comment)
    if lines := _whole_lines(text, start, end):
        return *lines, b""
    # Where a line break ends a statement, so does one in a comment. A directive goes on behind it.
    breaks = b"\n" in comment and language not in ("c", "cpp")
    return start, end, b"\n" if breaks else b" "


def _without_docstring(text: bytes, start: int, end: int) -> tuple[int, int, bytes]:
    if semicolon := _SEMICOLON.match(text, end):
        return start, semicolon.end(), b""
    return *(_whole_lines(text, start, end) or (start, end)), b""


def _whole_lines(text: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return the lines of a span, if nothing else stands on them."""
    while start and text[start - 1] in b" \t\f":
        start -= 1
    rest = _REST_OF_LINE.match(text, end)
    # The line after a backslash belongs to the one before; it must not become another.
    before = text[max(0, start - 3) : start]
    if not rest or (start and not before.endswith(b"\n")) or before.rstrip().endswith(b"\\"):
        return None
    return start, rest.end()
