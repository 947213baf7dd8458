"""Programs of requests, parsed in processes of their own: no parser takes the server down."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.inference.units import CodeUnit, units_of
from treecaps.syntax.frontends.base import time_limit
from treecaps.syntax.guess import guess_language, language_of_code
from treecaps.syntax.languages import (
    LANGUAGES,
    Language,
    has_known_ending,
    language_named,
    language_of_file,
    needs_contents,
    register,
)
from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program
from treecaps.workers import Timer, WorkerLostError, WorkerPool

_Found = TypeVar("_Found")
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_MOMENT = 2.0
"""How many seconds all workers may be busy before the server counts as stuck."""


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
    """Worker processes that parse.

    Args:
        frontend: The name of the front end.
        comments: Whether comments become nodes.
        max_nodes: Larger trees are refused.
        workers: How many processes.
        seconds: How long a program may take, if not less is enough for one of its size.
    """

    def __init__(
        self, frontend: str, comments: bool, max_nodes: int, workers: int, seconds: float
    ) -> None:
        setting = _Setting(frontend, comments, max_nodes, seconds, tuple(LANGUAGES.values()))
        # Forking a process with threads is asking for trouble, so workers start from nothing.
        self._pool = WorkerPool[_Task, Any](workers, partial(_start_worker, setting), "spawn")
        self._seconds = seconds
        self._kinds: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._starting = [self._pool.submit(_PING) for _ in range(workers)]

    def wait(self) -> None:
        """Wait until all have started, which takes a moment."""
        for started in self._starting:
            started.result()

    async def parse(self, source: Source) -> list[CodeUnit] | Failure:
        """Parse a program; one that takes down a process is a failure, and others go on."""
        found = await self._ask(_parse, source)
        return found if isinstance(found, Failure) else [self._share_kinds(one) for one in found]

    async def language(self, source: Source) -> str | Failure:
        """Tell the language of a program without parsing it for good."""
        return await self._ask(_language_of, source)

    async def can_answer(self) -> bool:
        """Whether a worker answers, or all have been busy for no more than a moment."""
        try:
            async with asyncio.timeout(_MOMENT):
                await asyncio.wrap_future(self._pool.submit(_PING))
        except (TimeoutError, WorkerLostError, OSError):
            return not self._pool.is_stuck(_MOMENT)
        return True

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    async def _ask(
        self, work: "Callable[[Source, _Setting], _Found]", source: Source
    ) -> _Found | Failure:
        """Have a process work on a program."""
        for _ in range(2):  # what else than the program ended a process does not end two
            try:
                return await asyncio.wrap_future(self._pool.submit((work, source)))
            except WorkerLostError as lost:
                if lost.timed_out:
                    limit = _limit(source, self._seconds)
                    option = " (--seconds)" if limit == self._seconds else ""
                    said = f"took longer than {limit:.3g} s to parse{option}"
                    return Failure(source.id, "timeout", said)
        return Failure(source.id, "crash", "the parser crashed on it")

    def _share_kinds(self, unit: CodeUnit) -> CodeUnit:
        """Let trees of one grammar share one table of kinds, as those of one process do."""
        kinds = self._kinds.setdefault(unit.tree.kinds, unit.tree.kinds)
        return unit._replace(tree=replace(unit.tree, kinds=kinds))


class _Setting(NamedTuple):
    """What a worker needs to know."""

    frontend: str
    comments: bool
    max_nodes: int
    seconds: float
    languages: tuple[Language, ...]


_Task = tuple[Callable[[Source, _Setting], Any], Source]


def _start_worker(setting: _Setting) -> Callable[[_Task, Timer], Any]:
    for language in setting.languages:
        register(language)
    return partial(_work, setting)


def _work(setting: _Setting, task: _Task, timer: Timer) -> Any:
    work, source = task
    timer.start(_limit(source, setting.seconds))
    return work(source, setting)


def _limit(source: Source, seconds: float) -> float:
    return min(seconds, time_limit(source.code.encode()))


def _parse(source: Source, setting: _Setting) -> list[CodeUnit] | Failure:
    language = _language_of(source, setting)
    if isinstance(language, Failure):
        return language
    program = Program.from_clean_text(
        source.code.removeprefix(_MARK).encode(), language, id=source.id
    )
    try:
        tree = loaded_frontend(setting.frontend, setting.comments).parse(program)
    except ProgramError as error:
        return Failure(source.id, error.code, str(error))
    if len(tree) > setting.max_nodes:
        return Failure(
            source.id,
            "too-many-nodes",
            f"the program has {len(tree):,} nodes, and this server takes {setting.max_nodes:,}"
            " (--max-nodes)",
        )
    found = units_of(source.id, tree, source.functions)
    return [unit for unit in found if isinstance(unit, CodeUnit)]


def _language_of(source: Source, _: _Setting) -> str | Failure:
    """Return the language that a request names, or its file name, or that is guessed."""
    try:
        if source.language:
            return language_named(source.language).name
        if source.filename and has_known_ending(source.filename):
            if needs_contents(source.filename):
                return language_of_code(source.filename, source.code.encode("utf-8", "replace"))
            return language_of_file(source.filename).name
    except UsageError as error:
        return Failure(source.id, "unknown-language", str(error))
    return guess_language(source.code)


_PING: _Task = (_language_of, Source("", "c"))
"""What any worker that can answer does at once."""
