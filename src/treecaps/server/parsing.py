"""Programs of requests, parsed in processes of their own: no parser takes the server down."""

import asyncio
import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from typing import NamedTuple, TypeVar

from treecaps.data.parallel import end_with_parent
from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.inference.pieces import Piece, pieces_of
from treecaps.syntax.guess import guess_language
from treecaps.syntax.languages import (
    LANGUAGES,
    Language,
    has_known_ending,
    language_named,
    language_of_file,
    register,
)
from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program

_Found = TypeVar("_Found")
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


class Source(NamedTuple):
    """A program as a request has it.

    Args:
        code: The text.
        language: Its language; guessed by default.
        filename: Its name, which may tell the language.
        functions: Whether each function counts by itself.
    """

    code: str
    language: str | None = None
    filename: str | None = None
    functions: bool = False

    @property
    def id(self) -> str:
        """What the program is called."""
        return self.filename or "<code>"


class Parsers:
    """Processes that parse.

    Args:
        frontend: The name of the front end.
        comments: Whether comments become nodes.
        max_nodes: Larger trees are refused.
        workers: How many processes.
    """

    def __init__(self, frontend: str, comments: bool, max_nodes: int, workers: int) -> None:
        self._setting = (frontend, comments, max_nodes)
        self._workers = workers
        self._pool = self._new_pool(workers)
        self._kinds: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._alone = asyncio.Lock()

    async def parse(self, source: Source) -> list[Piece] | Failure:
        """Parse a program; one that takes down a process is a failure, and others go on."""
        found = await self._ask(_parse, source)
        return found if isinstance(found, Failure) else [self._share_kinds(one) for one in found]

    async def language(self, source: Source) -> str | Failure:
        """Tell the language of a program without parsing it for good."""
        return await self._ask(language_of, source)

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)

    async def _ask(self, work: Callable[[Source], _Found], source: Source) -> _Found | Failure:
        """Have a process work on a program."""
        loop = asyncio.get_running_loop()
        pool = self._pool
        try:
            return await loop.run_in_executor(pool, work, source)
        except BrokenProcessPool:
            # Some program took its process down, and all that were under way with it.
            if pool is self._pool:
                self._pool = self._new_pool(self._workers)
        async with self._alone:
            pool = self._new_pool(1)
            try:
                return await loop.run_in_executor(pool, work, source)
            except BrokenProcessPool:
                return Failure(source.id, "crash", "the parser crashed on it")
            finally:
                pool.shutdown(wait=False)

    def _new_pool(self, size: int) -> ProcessPoolExecutor:
        # Forking a process with threads is asking for trouble, so a process without any forks.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        settings = (*self._setting, tuple(LANGUAGES.values()))
        return ProcessPoolExecutor(size, context, _start, settings)

    def _share_kinds(self, piece: Piece) -> Piece:
        """Let trees of one grammar share one table of kinds, as those of one process do."""
        kinds = self._kinds.setdefault(piece.tree.kinds, piece.tree.kinds)
        return piece._replace(tree=replace(piece.tree, kinds=kinds))


_setting: tuple[str, bool, int] = ("tree-sitter", False, 0)


def _start(frontend: str, comments: bool, max_nodes: int, languages: tuple[Language, ...]) -> None:
    """Begin a process: the server hears signals, and its processes end with it."""
    global _setting  # noqa: PLW0603
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()
    for language in languages:
        register(language)
    _setting = (frontend, comments, max_nodes)


def _parse(source: Source) -> list[Piece] | Failure:
    frontend, comments, max_nodes = _setting
    language = language_of(source)
    if isinstance(language, Failure):
        return language
    program = Program(source.id, source.code.removeprefix(_MARK).encode(), language)
    try:
        tree = loaded_frontend(frontend, comments).parse(program)
    except ProgramError as error:
        return Failure(source.id, error.code, str(error))
    if len(tree) > max_nodes:
        return Failure(
            source.id,
            "too-many-nodes",
            f"the program has {len(tree):,} nodes, and this server takes {max_nodes:,}"
            " (--max-nodes)",
        )
    found = pieces_of(source.id, tree, source.functions)
    return [piece for piece in found if isinstance(piece, Piece)]


def language_of(source: Source) -> str | Failure:
    """Return the language that a request names, or its file name, or that is guessed."""
    try:
        if source.language:
            return language_named(source.language).name
        if source.filename and has_known_ending(source.filename):
            return language_of_file(source.filename).name
    except UsageError as error:
        return Failure(source.id, "unknown-language", str(error))
    return guess_language(source.code)
