"""``Corpus``: the trees of a data set on disk, memory-mapped."""

import json
import logging
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treecaps._version import __version__
from treecaps.data.batches import SCHEMA, Batch, parse_in_batches
from treecaps.data.dataset import DataSet
from treecaps.errors import DataError, Failure, describe_os_error
from treecaps.files import atomic_path
from treecaps.hashing import digest, digest_file
from treecaps.syntax.blind import blind as make_blind
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.text import short_repr

FORMAT = 1
_TREES = "trees.arrow"
_ABOUT = "corpus.json"
_BUILDING = "building"

log = logging.getLogger("treecaps")

Progress = Callable[[int, float], None]
"""Called now and then with the number of programs done and the share done, from 0 to 1."""


class DamagedCorpusError(DataError):
    """A corpus folder that is incomplete, altered or of another version."""


class Corpus(Sequence[Tree]):
    """The trees of a data set, in its order, without the programs that failed.

    A corpus is a folder: ``corpus.json`` says what made it and holds a checksum, and
    ``trees.arrow`` holds one row a program. Opening it checks the file and copies nothing: a
    tree's arrays are views into it. Use ``build`` for a data set and ``open`` for a folder.
    """

    def __init__(self, about: dict[str, Any], table: pa.Table, name: str) -> None:
        self.about = about
        self.name = name
        self.kinds: tuple[str, ...] = tuple(about["kinds"])
        self._table = table
        self._batches = [Batch(batch) for batch in table.to_batches()]
        self._firsts = np.cumsum([0, *(batch.rows for batch in self._batches)])
        good = table.column("failure_code").is_null().to_numpy()
        self._rows = np.flatnonzero(good)
        self._failed_rows = np.flatnonzero(~good)

    @classmethod
    def build(
        cls,
        data: DataSet | str | Path,
        *,
        frontend: str = "tree-sitter",
        comments: bool = False,
        blind: bool = False,
        workers: int | None = None,
        cache: str | Path | None = None,
        progress: Progress | None = None,
    ) -> "Corpus":
        """Return the corpus of a data set, parsing it unless the cache has it.

        Args:
            data: A data set, or where one lies.
            frontend: The parser: ``tree-sitter``, ``ast`` or ``srcml``.
            comments: Whether comments become nodes.
            blind: Whether programs are made blind first: without their names and comments.
            workers: How many processes parse; as many as there are cores by default.
            cache: The folder for corpora; ``TREECAPS_CACHE`` or ``~/.cache/treecaps`` by default.
            progress: Called while parsing.
        """
        data = data if isinstance(data, DataSet) else DataSet(data)
        parser = get_frontend(frontend, comments=comments)
        made_by = {
            "format": FORMAT,
            "treecaps": __version__,
            "frontend": frontend,
            "comments": comments,
            "versions": parser.versions(),
            "languages": digest(repr(sorted(LANGUAGES.items())).encode()),
        }
        if blind:
            # What blinds is tree-sitter, whatever parses afterwards.
            made_by["blind"] = get_frontend("tree-sitter").versions()
        home = Path(cache) if cache else default_cache()
        try:
            home.mkdir(parents=True, exist_ok=True)
            _sweep(home)
            folder = home / _key(data, made_by, home)
            if os.path.lexists(folder):
                try:
                    return cls.open(folder, data.path.name)
                except DamagedCorpusError as error:
                    log.warning("%s; parsing %s again", error, data.path)
                    # Moved first: a folder that is half deleted must not look like a corpus.
                    doomed = _new_folder(home)
                    with suppress(FileNotFoundError):  # another process may have been quicker
                        folder.rename(doomed / folder.name)
                    shutil.rmtree(doomed, ignore_errors=True)
            return cls._parse(data, made_by, folder, workers or os.cpu_count() or 1, progress)
        except OSError as error:
            raise DataError(
                f"cannot keep the corpus in {home}: {describe_os_error(error)};"
                " choose another folder with cache=FOLDER or TREECAPS_CACHE",
                arguments=("cache",),
            ) from None

    @classmethod
    def _parse(
        cls,
        data: DataSet,
        made_by: dict[str, Any],
        folder: Path,
        workers: int,
        progress: Progress | None,
    ) -> "Corpus":
        kinds: dict[str, int] = {}
        counts = {"programs": 0, "failed": 0, "nodes": 0}
        building = _new_folder(folder.parent)
        try:
            with (
                pa.OSFile(str(building / _TREES), "wb") as sink,
                pa.ipc.new_file(sink, SCHEMA) as writer,
                closing(
                    parse_in_batches(
                        data,
                        made_by["frontend"],
                        made_by["comments"],
                        kinds,
                        workers,
                        change=make_blind if "blind" in made_by else None,
                    )
                ) as batches,
            ):
                for batch in batches:
                    writer.write_batch(batch)
                    counts["programs"] += batch.num_rows
                    counts["failed"] += batch.num_rows - batch.column("failure_code").null_count
                    counts["nodes"] += len(batch.column("kind").values)
                    if progress:
                        progress(counts["programs"], data.progress)
            if not counts["programs"]:
                raise DataError(f"{data.path} holds no programs")
            about = {
                **made_by,
                **counts,
                "kinds": list(kinds),
                "checksum": digest_file(building / _TREES),
            }
            about["about_checksum"] = _about_checksum(about)
            (building / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
            try:
                building.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
                # Another process was quicker with the same data: its corpus is as good.
            return cls.open(folder, data.path.name)
        finally:
            shutil.rmtree(building, ignore_errors=True)

    @classmethod
    def open(cls, folder: str | Path, name: str | None = None) -> "Corpus":
        """Open a corpus folder, or raise ``DamagedCorpusError``.

        Args:
            folder: What ``build`` made.
            name: What to call it; the folder's name by default.
        """
        folder = Path(folder)
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            if about["format"] != FORMAT:
                raise DamagedCorpusError(f"the corpus in {folder} is of another version")
            if about["about_checksum"] != _about_checksum(about):
                raise DamagedCorpusError(f"the corpus in {folder} is damaged: {_ABOUT} was altered")
            if about["checksum"] != digest_file(folder / _TREES):
                raise DamagedCorpusError(f"the corpus in {folder} is damaged: {_TREES} was altered")
            with pa.memory_map(str(folder / _TREES)) as source:
                table = pa.ipc.open_file(source).read_all()
        except (
            FileNotFoundError,
            NotADirectoryError,
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
            pa.ArrowException,
        ) as error:
            raise DamagedCorpusError(f"the corpus in {folder} is damaged: {error}") from None
        return cls(about, table, name or folder.name)

    def __repr__(self) -> str:
        facts = {"trees": len(self), "failed": len(self._failed_rows)}
        return short_repr(self, self.name, frontend=self.about["frontend"], **facts)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Tree: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tree]: ...
    def __getitem__(self, index: int | slice) -> Tree | list[Tree]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row = int(self._rows[index])
        number = int(np.searchsorted(self._firsts, row, side="right")) - 1
        batch = self._batches[number]
        return batch.tree(row - int(self._firsts[number]), self.kinds, self.about["frontend"])

    @cached_property
    def ids(self) -> list[str]:
        """The id of each program."""
        return self._strings("id")

    @cached_property
    def labels(self) -> list[str | None]:
        """The label of each program, ``None`` where it has none."""
        return self._strings("label")

    @cached_property
    def languages(self) -> list[str]:
        """The language of each program."""
        return self._strings("language")

    @cached_property
    def node_counts(self) -> NDArray[np.int64]:
        """How many nodes each tree has."""
        sizes = [np.diff(batch.offsets["kind"]) for batch in self._batches]
        return np.concatenate(sizes).astype(np.int64)[self._rows]

    @cached_property
    def replaced(self) -> NDArray[np.int64]:
        """How many characters of each program stand for bytes that were not valid text."""
        replaced: NDArray[np.int64] = self._table.column("replaced").to_numpy()[self._rows]
        return replaced

    @cached_property
    def failures(self) -> list[Failure]:
        """The programs that could not be read or parsed, and why."""
        columns = ("id", "failure_code", "failure")
        rows = self._table.select(columns).take(pa.array(self._failed_rows)).to_pylist()
        return [Failure(*(row[name] for name in columns)) for row in rows]

    def program(self, index: int) -> Program:
        """Return the program that a tree was made from."""
        tree = self[index]
        return Program.from_clean_text(
            tree.text,
            tree.language,
            id=self.ids[index],
            label=self.labels[index],
            replaced=int(self.replaced[index]),
        )

    def _strings(self, column: str) -> list[Any]:
        values: list[Any] = self._table.column(column).take(pa.array(self._rows)).to_pylist()
        return values


def default_cache() -> Path:
    """Return the folder in which corpora are kept."""
    if chosen := os.environ.get("TREECAPS_CACHE"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "treecaps"
    try:
        return Path.home() / ".cache" / "treecaps"
    except RuntimeError:
        raise DataError(
            "you have no home folder; name one with cache=FOLDER or TREECAPS_CACHE",
            arguments=("cache",),
        ) from None


def _key(data: DataSet, made_by: dict[str, Any], home: Path) -> str:
    """Return the name of a data set's corpus: a digest of the contents and of what parses them.

    Reading 50,000 files takes longer than opening their corpus, so the digest of the contents
    is noted under a digest of the files' names, sizes and times, as git does.
    """
    stamp = data.stamp()
    note = home / f"seen-{stamp}"
    try:
        contents = note.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        contents = ""
    if not re.fullmatch("[0-9a-f]{32}", contents):
        contents = data.fingerprint()
        if stamp:
            _write_note(note, contents)
    parser = json.dumps(made_by, sort_keys=True)
    return f"corpus-{digest((contents + parser).encode())}"


def _write_note(note: Path, contents: str) -> None:
    # A note only saves time. Others that write this one write the same.
    with suppress(OSError), atomic_path(note, alone=True) as building:
        building.write_text(contents)


def _new_folder(home: Path) -> Path:
    """Make a folder to work in, named so that a later run can tell whether its maker lives."""
    prefix = f"{_BUILDING}-{platform.node()}-{os.getpid()}-"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=home))


def _sweep(home: Path) -> None:
    """Remove what killed builds on this computer left behind."""
    for folder in home.glob(f"{_BUILDING}-{platform.node()}-*"):
        process = folder.name.rsplit("-", 2)[1]
        if process.isdigit() and not _is_alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _about_checksum(about: dict[str, Any]) -> str:
    rest = {name: value for name, value in about.items() if name != "about_checksum"}
    return digest(json.dumps(rest, sort_keys=True).encode())
