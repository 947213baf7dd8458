"""A program as text: read from a file, from bytes or from standard input."""

import codecs
import errno
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from treecaps.errors import Failure, ProgramError, UsageError, describe_os_error
from treecaps.files import read_regular_file, too_large
from treecaps.syntax.languages import (
    has_known_ending,
    language_named,
    language_of_file,
    needs_contents,
)
from treecaps.text import short_repr

MAX_BYTES = 10_000_000
"""The largest program taken by default: far beyond what people write by hand."""

# The UTF-32 marks come first, because the little-endian one begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_URL = re.compile(r"[a-z][a-z\d+.-]+:/", re.IGNORECASE)
"""How an address begins; a path has lost one of its slashes."""
_LIKE_CODE = re.compile(r"[\n\r{(;]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))


@dataclass(frozen=True, init=False, repr=False)
class Program:
    """One program: source code and its language.

    The attribute ``text`` is the code as UTF-8, without a byte order mark. Spans of trees count its
    bytes; for an ordinary UTF-8 file they are offsets into the file. ``replaced`` counts the
    characters that stand for bytes that were not valid text.

    Args:
        code: The source code, not its path: ``Program.read`` reads a file.
        language: Its language, by any name that people use (``c#``, ``py``).
        id: Its file name, or its name in a data set.
        label: The class it belongs to, where that is known.
        max_bytes: More code than that is refused.

    Raises:
        ProgramError: The code is too large, or no text.
    """

    text: bytes
    language: str
    id: str
    label: str | None
    replaced: int

    def __init__(
        self,
        code: str | bytes,
        language: str,
        *,
        id: str = "<code>",
        label: str | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if not isinstance(code, str | bytes):
            kind = type(code).__name__
            raise UsageError(f"code is str or bytes, not {kind}; Program.read(path) reads a file")
        # A lone surrogate is no text: it is let through here and replaced below.
        data = code.encode("utf-8", "surrogatepass") if isinstance(code, str) else code
        if len(data) > max_bytes:
            raise _refuse(too_large(len(data), max_bytes))
        text, replaced = decode(data)
        name = language_named(language).name
        vars(self).update(text=text, language=name, id=id, label=label, replaced=replaced)

    @classmethod
    def from_clean_text(
        cls,
        text: bytes,
        language: str,
        *,
        id: str = "<code>",
        label: str | None = None,
        replaced: int = 0,
    ) -> "Program":
        """Make a program of the text of another, say of a tree, and check nothing again."""
        program = cls.__new__(cls)
        vars(program).update(text=text, language=language, id=id, label=label, replaced=replaced)
        return program

    def replace(
        self, *, id: str | None = None, text: bytes | None = None, language: str | None = None
    ) -> "Program":
        """Return a copy with another id, text or language; the text is not checked."""
        given = {"id": id, "text": text, "language": language}
        changes = {name: value for name, value in given.items() if value is not None}
        return self.from_clean_text(**{**vars(self), **changes})

    def __repr__(self) -> str:
        label = {} if self.label is None else {"label": self.label}
        return short_repr(self, self.id, language=self.language, bytes=len(self.text), **label)

    @classmethod
    def read(
        cls,
        path: str | Path,
        language: str | None = None,
        *,
        id: str | None = None,
        label: str | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> "Program":
        """Read a program from a file; its name or its contents tell the language unless given."""
        name = str(path)
        if isinstance(path, str) and _may_be_code(path):
            raise ProgramError(
                "unreadable", "no such file; if this is code, give Program(code, language)"
            )
        known = language_named(language).name if language else None
        data = read_bytes(path, max_bytes)
        known = known or _tell_language(name, data)
        return cls(data, known, id=id or name, label=label, max_bytes=max_bytes)

    @classmethod
    def read_stdin(cls, language: str | None, *, max_bytes: int = MAX_BYTES) -> "Program":
        """Read a program from standard input, whose language is guessed unless given."""
        if sys.stdin is None:
            raise ProgramError("unreadable", "standard input is closed")
        data = sys.stdin.buffer.read(max_bytes + 1)
        return cls(data, language or _tell_language("", data), id="<stdin>", max_bytes=max_bytes)


@dataclass(frozen=True)
class ProgramFile:
    """A file with a program that is read later, by the process that parses it.

    Args:
        path: The file.
        id: What answers call it.
        language: Its language; by default its name or its contents tell.
        max_bytes: A larger file is refused.
    """

    path: str | Path
    id: str
    language: str | None = None
    max_bytes: int = MAX_BYTES

    def read(self) -> Program | Failure:
        """Return the program, or what is wrong with the file."""
        try:
            return Program.read(self.path, self.language, id=self.id, max_bytes=self.max_bytes)
        except ProgramError as error:
            return Failure(self.id, error.code, str(error))


Item = Program | ProgramFile | Failure
"""A program, a file that it is read from later, or what is wrong with one."""


def _tell_language(name: str, data: bytes) -> str:
    """Return the language of a program by its file name, or where that says nothing by its code."""
    if not needs_contents(name):
        return language_of_file(name).name
    from treecaps.syntax.guess import language_of_code  # imports this module

    return language_of_code(name, decode(data)[0])


def _may_be_code(path: str) -> bool:
    """Whether somebody gave code for a path: to name its language would not help then."""
    looks_so = _LIKE_CODE.search(path) or not has_known_ending(path)
    return bool(looks_so) and not _URL.match(path) and not os.path.lexists(path)


def decode(data: bytes) -> tuple[bytes, int]:
    """Return source bytes as clean UTF-8, and how many characters had to be replaced.

    UTF-8, UTF-16 and, with a byte order mark, UTF-32 are understood. Anything else that is
    mostly text (Latin-1, GBK) keeps what is readable and gets U+FFFD for the rest. A stray NUL
    byte becomes a space, because parsers take it for the end.
    """
    replaced = 0
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    head = data[:8192]
    if encoding is None:
        encoding = _unmarked_utf16(head)
    if encoding is not None and encoding != "utf-8":
        text = data.decode(encoding, "replace")
        replaced = text.count(_REPLACEMENT)
        data = text.encode("utf-8", "replace")
    else:
        _refuse_binary(head)
    while data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    replaced += data.count(0)
    data = data.replace(b"\0", b" ")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        before = data.count(_REPLACEMENT.encode())
        text = data.decode("utf-8", "replace")
        return text.encode(), replaced + text.count(_REPLACEMENT) - before
    return data, replaced


def _unmarked_utf16(head: bytes) -> str | None:
    """Tell UTF-16 without a byte order mark: in code, about every second byte is then NUL."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if len(head) < 4 or max(even, odd) < 0.3 * len(head) or min(even, odd):
        return None
    return "utf-16-be" if even else "utf-16-le"


def _refuse_binary(head: bytes) -> None:
    text = head.decode("utf-8", "replace")
    invalid = text.count(_REPLACEMENT) - head.count(_REPLACEMENT.encode())
    control = len(head) - len(head.translate(None, _CONTROL))
    if invalid + control > 0.3 * len(text):
        raise ProgramError("binary", "looks like a binary file, not source code")


def read_bytes(path: str | Path, max_bytes: int) -> bytes:
    """Return the contents of a file, or raise ``ProgramError`` with what is wrong with it."""
    try:
        return read_regular_file(path, max_bytes)
    except OSError as error:
        if error.errno == errno.ENOENT and _URL.match(str(path)):
            raise ProgramError(
                "unreadable", "is a URL; download it first, or pipe it into '-'"
            ) from None
        raise _refuse(error) from None
    except ValueError:
        raise ProgramError("unreadable", "no such file (its name holds a NUL)") from None


def _refuse(error: OSError) -> ProgramError:
    if error.errno == errno.EFBIG:
        return ProgramError(
            "too-large", f"{describe_os_error(error)}; raise the limit with max_bytes"
        )
    hint = "; pipe it into '-' instead" if error.errno == errno.ESPIPE else ""
    return ProgramError("unreadable", f"{describe_os_error(error)}{hint}")
