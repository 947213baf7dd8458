"""The short way from a file or a piece of code to its tree."""

import threading
from pathlib import Path

from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.frontends.base import Frontend
from treecaps.syntax.program import MAX_BYTES, Program
from treecaps.syntax.tree import Tree

# Parsers keep state while they work, so each thread has its own.
_loaded = threading.local()


def parse_file(
    path: str | Path,
    *,
    language: str | None = None,
    frontend: str = "tree-sitter",
    comments: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Tree:
    """Parse a file; its language comes from its name unless given.

    The parser runs in this process and stops at a time limit as well as it can: see ``parse_code``.

    Raises:
        ProgramError: The file cannot be read or parsed; ``code`` says why in one word.
    """
    program = Program.read(path, language, max_bytes=max_bytes)
    return loaded_frontend(frontend, comments).parse(program)


def parse_code(
    code: str | bytes,
    language: str,
    *,
    frontend: str = "tree-sitter",
    comments: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Tree:
    """Parse a piece of source code in a named language.

    The parser runs in this process. It stops with a timeout after 10 seconds, and 10 more for each
    megabyte, as well as it can: in error recovery tree-sitter may not look at the clock for long,
    Python's own parser never does, and a crash takes this process down. For code from strangers
    use ``parse_programs``, which parses in other processes and guarantees the limit.

    Raises:
        ProgramError: The code cannot be parsed; ``code`` says why in one word.
    """
    return loaded_frontend(frontend, comments).parse(Program(code, language, max_bytes=max_bytes))


def loaded_frontend(name: str, comments: bool) -> Frontend:
    """Return a front end of this thread's own, made when first asked for."""
    frontends: dict[tuple[str, bool], Frontend] = _loaded.__dict__.setdefault("frontends", {})
    if (name, comments) not in frontends:
        frontends[name, comments] = get_frontend(name, comments=comments)
    return frontends[name, comments]
