"""The srcML front end: C, C++, C# and Java, as in the paper."""

import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from xml.parsers import expat

import numpy as np

from treecaps.errors import MissingExtraError, ProgramError
from treecaps.syntax.frontends import srcml_process
from treecaps.syntax.frontends.base import Frontend, describe_timeout, time_limit
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Ints, Tree


class SrcmlFrontend(Frontend):
    """Trees of srcML's elements; text between them (brackets, keywords) is no node.

    srcML repeats the program's text in full, so a node's span is where its element begins and
    ends in that text.
    """

    name = "srcml"

    def __init__(self, *, comments: bool = False) -> None:
        super().__init__(comments=comments)
        if find_spec("srcml_caller") is None:
            raise MissingExtraError("the srcml front end", "srcml")
        self._process: subprocess.Popen[bytes] | None = None
        self._kinds: dict[str, int] = {}

    def languages(self) -> frozenset[str]:
        """Return the languages srcML knows."""
        return frozenset(known.name for known in LANGUAGES.values() if known.srcml)

    def versions(self) -> dict[str, str]:
        """Return the version of srcML's package."""
        try:
            return {"srcml-caller": version("srcml-caller")}
        except PackageNotFoundError:
            return {"srcml-caller": "unknown"}

    def parse(self, program: Program) -> Tree:
        """Parse one program; a crash or a timeout of srcML raises ``ProgramError``."""
        language = self.language_of(program).srcml or ""
        # An XML parser turns every line end into a line feed, so srcML is given those, and srcML
        # drops everything around a DEL.
        text = program.text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\x7f", b" ")
        reader = _Reader(self._kinds, self.comments)
        try:
            reader.read(self._ask(language, text))
            complete = reader.end[:1] == [len(text)]
        except expat.ExpatError:
            complete = False
        if not complete:
            raise ProgramError(
                "syntax", 'srcML does not give all of it back; use frontend="tree-sitter"'
            )
        kind, parent, start, end = (
            np.array(column, np.int32)
            for column in (reader.kind, reader.parent, reader.start, reader.end)
        )
        return Tree(
            language=program.language,
            frontend=self.name,
            text=program.text,
            kinds=tuple(self._kinds),
            kind=kind,
            parent=parent,
            start=_original(start, program.text),
            end=_original(end, program.text),
            errors=np.zeros(0, np.int32),
        )

    def _ask(self, language: str, text: bytes) -> bytes:
        process = self._process
        if process is None:
            # -P: the folder people work in may hold modules named like those of Python.
            process = subprocess.Popen(
                [sys.executable, "-P", srcml_process.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            weakref.finalize(self, _stop, process)
            self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        answer = None
        try:
            with suppress(BrokenPipeError):
                head = f"{language} {time_limit(text)}\n".encode()
                srcml_process.send(process.stdin, head + text)
                answer = srcml_process.receive(process.stdout)
        finally:
            # Gone or interrupted half-way: the two sides no longer speak of the same program.
            if answer is None:
                self._process = None
                _stop(process)
        if answer is None:
            if process.returncode == -signal.SIGALRM:
                raise ProgramError("timeout", describe_timeout(text))
            raise ProgramError("crash", 'srcML crashed on it; use frontend="tree-sitter"')
        return answer


class _Reader:
    """Collects the elements of one srcML document, in pre-order, with places in its text."""

    def __init__(self, kinds: dict[str, int], comments: bool) -> None:
        self._kinds = kinds
        self._comments = comments
        self._path: list[int] = []
        self._place = 0
        self._hidden = 0
        self.kind: list[int] = []
        self.parent: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []

    def read(self, xml: bytes) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._open
        parser.EndElementHandler = self._close
        parser.CharacterDataHandler = self._text
        parser.Parse(xml, True)

    def _open(self, name: str, _: object) -> None:
        if name == "escape":  # one character that XML cannot hold
            self._place += 1
        if self._hidden or name == "escape" or (name == "comment" and not self._comments):
            self._hidden += 1
            return
        self.kind.append(self._kinds.setdefault(name, len(self._kinds)))
        self.parent.append(self._path[-1] if self._path else -1)
        self.start.append(self._place)
        self.end.append(self._place)
        self._path.append(len(self.kind) - 1)

    def _close(self, _: str) -> None:
        if self._hidden:
            self._hidden -= 1
        else:
            self.end[self._path.pop()] = self._place

    def _text(self, text: str) -> None:
        self._place += len(text.encode())


def _original(places: Ints, text: bytes) -> Ints:
    """Turn places in the text with single line feeds back into places in the text itself."""
    if b"\r\n" not in text:
        return places
    data = np.frombuffer(text, np.uint8)
    dropped = np.flatnonzero((data[:-1] == 13) & (data[1:] == 10))
    # The k-th pair was shortened by one byte, k places to the left of where it stood.
    shortened = dropped - np.arange(len(dropped))
    return (places + np.searchsorted(shortened, places, side="left")).astype(np.int32)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
