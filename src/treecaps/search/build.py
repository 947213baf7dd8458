"""From a folder to its index: only what is new or has changed is parsed and embedded."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treecaps._version import __version__
from treecaps.cluster import Workers
from treecaps.errors import Failure, ProgramError, SearchError, UsageError
from treecaps.inference.embed import Embedder, Vectors
from treecaps.inference.stream import stream
from treecaps.inference.units import CodeUnit
from treecaps.models.bundled import SIMILAR
from treecaps.models.trained import ModelLike
from treecaps.search.fingerprint import fingerprint, model_name
from treecaps.search.matches import check_made_by
from treecaps.search.opening import exists, open_to_write
from treecaps.search.place import Place, to_place
from treecaps.search.store import Content, File, Span, Store, content_key
from treecaps.syntax.program import MAX_BYTES, Program
from treecaps.syntax.sources import Sources, list_sources
from treecaps.text import html_table

Step = Callable[[float, str], None]
"""Called now and then with the share done, from 0 to 1, and the file that is looked at."""

_RECENT = 2_000_000_000
"""Nanoseconds in which a file may change again without its time being another."""


@dataclass(frozen=True)
class Update:
    """What an index holds after an update, and what was done for it.

    Args:
        vectors: How many functions, or files, can be found.
        files: How many files are in the index.
        embedded: How many different contents had to be parsed and embedded.
        added: How many files are new.
        changed: How many have other contents than before.
        removed: How many have gone.
        failures: Files that could not be read or parsed; they are not in the index.
        recall: The share of the ten nearest that the graph of a large index finds; ``None`` if it
            has none, so that every vector is looked at.
        note: Why a large index has no graph, in words for people.
    """

    vectors: int
    files: int
    embedded: int
    added: int
    changed: int
    removed: int
    failures: tuple[Failure, ...]
    recall: float | None = None
    note: str | None = None

    def _repr_html_(self) -> str:
        names = ("vectors", "files", "embedded", "added", "changed", "removed")
        rows = [(name, f"{getattr(self, name):,}") for name in names]
        return html_table("index", ("", ""), [*rows, ("failed", f"{len(self.failures):,}")])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**vars(self), "failures": [vars(failure) for failure in self.failures]}


def update_index(
    folder: str | Path,
    path: str | Place,
    *,
    model: ModelLike = SIMILAR,
    functions: bool = True,
    max_bytes: int = MAX_BYTES,
    workers: Workers | None = None,
    sources: Sources | None = None,
    step: Step | None = None,
) -> Update:
    """Make the index of a folder, or bring one up to date.

    Args:
        folder: Where the programs are.
        path: The file of the index, or the address of a database.
        model: A trained model, its folder, or the name of a bundled one.
        functions: Whether each function gets a vector, or each file.
        max_bytes: The largest file that is taken.
        workers: How many processes parse, or a ``RayCluster``; as many processes as there are
            cores by default.
        sources: What ``list_sources`` found in the folder, if it was asked already.
        step: Called while files are looked at.
    """
    folder, place = Path(folder), to_place(path)
    if not folder.is_dir():
        wrong = "is no folder" if folder.exists() else "does not exist"
        raise UsageError(f"{folder} {wrong}; name the folder whose programs to index")
    sources = sources or list_sources(folder)
    if not sources.files and not exists(place, folder):
        raise UsageError(f"{folder} holds no programs in a known language: nothing to index")
    embedder = Embedder(model)
    about = _about(folder, embedder, functions)
    with open_to_write(place, about) as store:
        before = store.files()
        _check_same(store, about, embedder)
        work = _Work(folder, before, store.keys(), max_bytes, step)
        store.add(_contents(work, sources, embedder, functions, workers))
        files = work.good_files()
        # The graph of before stays known: it is recognised as old, and can be brought up to date.
        store.finish(files, store.about | about)
        vectors = store.count()
        tell = partial(_tell_graph, step) if step else None
        threads = workers if isinstance(workers, int) else 0
        recall, note = store.update_graph(files, threads, tell)
    failures = (*sources.failures, *work.failures())
    return Update(
        vectors=vectors,
        files=len(files),
        embedded=work.embedded,
        added=len(files.keys() - before.keys()),
        changed=sum(
            name in before and before[name].key != file.key for name, file in files.items()
        ),
        removed=len(before.keys() - files.keys()),
        failures=failures,
        recall=recall,
        note=note,
    )


def _about(folder: Path, embedder: Embedder, functions: bool) -> dict[str, Any]:
    """Return what an index says of itself."""
    return {
        "treecaps": __version__,
        "model": model_name(embedder.model),
        "fingerprint": fingerprint(embedder),
        "functions": functions,
        "folder": str(folder.resolve()),
    }


def _tell_graph(step: Step, share: float) -> None:
    step(share, "graph of neighbours")


def _check_same(store: Store, about: dict[str, Any], embedder: Embedder) -> None:
    """Raise ``SearchError`` unless an index is of this folder, kind and model."""
    place, old = store.place, store.about
    if old["folder"] != about["folder"] and Path(old["folder"]).is_dir():
        raise SearchError(
            f"{place} is the index of {old['folder']}; choose another file", arguments=("path",)
        )
    if old["functions"] != about["functions"]:
        kind = "functions, not of files" if old["functions"] else "files, not of functions"
        raise SearchError(
            f"{place} is an index of {kind}; choose another file", arguments=("path",)
        )
    check_made_by(old, embedder, place)


class _Work:
    """Finds out what of a folder has to be embedded."""

    def __init__(
        self,
        folder: Path,
        before: dict[str, File],
        known: set[str],
        max_bytes: int,
        step: Step | None,
    ) -> None:
        self.embedded = 0
        self.failed: dict[str, Failure] = {}  # by the key of contents
        self._folder = folder
        self._before = before
        self._known = known
        self._max_bytes = max_bytes
        self._step = step
        self._files: dict[str, File] = {}
        self._unread: list[Failure] = []

    def programs(self, names: list[str]) -> Iterator[Program]:
        """Yield contents that have no vectors yet, under their keys."""
        for number, name in enumerate(names):
            if self._step:
                self._step(number / len(names), name)
            try:
                program = self._read(name)
            except ProgramError as error:
                self._unread.append(Failure(name, error.code, str(error)))
                continue
            if program and self._files[name].key not in self._known:
                self._known.add(self._files[name].key)
                self.embedded += 1
                yield program.replace(id=self._files[name].key)

    def _read(self, name: str) -> Program | None:
        """Read a file, unless it is known to be what it was."""
        path = self._folder / name
        stamp = _stamp(path)
        old = self._before.get(name)
        if old and stamp and old.stamp == stamp and old.key in self._known:
            self._files[name] = old
            return None
        program = Program.read(path, max_bytes=self._max_bytes)
        self._files[name] = File(stamp, content_key(program.text, program.language))
        return program

    def good_files(self) -> dict[str, File]:
        """Return the files of the index that is to be."""
        return {name: file for name, file in self._files.items() if file.key not in self.failed}

    def failures(self) -> list[Failure]:
        """Return what is wrong with each of the others."""
        parsed = (
            replace(self.failed[file.key], id=name)
            for name, file in self._files.items()
            if file.key in self.failed
        )
        return sorted([*self._unread, *parsed], key=lambda failure: failure.id)


def _stamp(path: Path) -> str:
    """Return what changes when a file does; nothing if it may yet change within one tick."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""  # reading it says what is wrong
    last = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - last < _RECENT:
        return ""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class _Part(NamedTuple):
    """A function or a file: the key of the contents it is from, and what the index keeps of it."""

    id: str
    language: str
    span: Span | None
    vector: Vectors


def _contents(
    work: _Work, sources: Sources, embedder: Embedder, functions: bool, workers: Workers | None
) -> Iterator[Content]:
    """Yield the vectors of contents that have none yet."""
    answer = partial(_embed, embedder)
    programs = work.programs(sources.files)
    results = stream(embedder.model, programs, answer, functions=functions, workers=workers)
    with closing(results):
        for key, found in groupby(results, attrgetter("id")):
            spans, vectors, language = [], [], ""
            for one in found:
                if isinstance(one, _Part):
                    if one.span:
                        spans.append(one.span)
                        vectors.append(one.vector)
                        language = one.language
                elif one.code != "functions":
                    work.failed[key] = one
            if key not in work.failed:
                rows = np.stack(vectors) if vectors else np.zeros((0, 0), np.float32)
                yield Content(key, language, spans, rows)


def _embed(embedder: Embedder, units: Sequence[CodeUnit]) -> Iterator[_Part]:
    """Yield what an index keeps of programs or functions; what is blank has no span."""
    vectors = embedder.embed_trees([unit.tree for unit in units])
    for unit, vector in zip(units, vectors, strict=True):
        text = unit.tree.text.rstrip()
        line = unit.line or 1
        span = Span(unit.function, line, line + text.count(b"\n")) if text else None
        yield _Part(unit.id, unit.tree.language, span, vector)
