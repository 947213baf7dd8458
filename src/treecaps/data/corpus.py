"""``Corpus``: the trees of a data set on disk, memory-mapped."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treecaps._version import __version__
from treecaps.cluster import Workers
from treecaps.data.batches import SCHEMA, Batch, parse_in_batches
from treecaps.data.cache import DamagedError, default_cache, keep
from treecaps.data.dataset import DataSet
from treecaps.data.parallel import Change
from treecaps.errors import DataError, Failure
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
Progress = Callable[[int, float], None]
"""Called now and then with the number of programs done and the share done, from 0 to 1."""


class DamagedCorpusError(DamagedError):
    """A corpus folder that is incomplete, altered or of another version."""


class Corpus(Sequence[Tree]):
    """The trees of a data set, in its order, without the programs that failed.

    A corpus is a folder: ``corpus.json`` says what made it and holds a checksum, and
    ``trees.arrow`` holds one row a program. Opening it checks the file and copies nothing: a
    tree's arrays are views into it. Use ``build`` for a data set and ``open`` for a folder.
    """

    def __init__(self, about: dict[str, Any], table: pa.Table, folder: Path, name: str) -> None:
        self.about = about
        self.folder = folder
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
        workers: Workers | None = None,
        cache: str | Path | None = None,
        progress: Progress | None = None,
    ) -> "Corpus":
        """Return the corpus of a data set, parsing it unless the cache has it.

        Args:
            data: A data set, or where one lies.
            frontend: The parser: ``tree-sitter``, ``ast`` or ``srcml``.
            comments: Whether comments become nodes.
            blind: Whether programs are made blind first: without their names and comments.
            workers: How many processes parse, or a ``RayCluster``; as many processes as there are
                cores by default.
            cache: The folder for corpora; ``TREECAPS_CACHE`` or ``~/.cache/treecaps`` by default.
            progress: Called while parsing.
        """
        data = data if isinstance(data, DataSet) else DataSet(data)
        made_by = _made_by(frontend, comments)
        if blind:
            # What blinds is tree-sitter, whatever parses afterwards.
            made_by["blind"] = get_frontend("tree-sitter").versions()
        home = Path(cache) if cache else default_cache()
        cores = workers or os.cpu_count() or 1

        def tell(programs: int) -> None:
            if progress:
                progress(programs, data.progress)

        def parse(folder: Path) -> None:
            change = make_blind if blind else None
            if not _write(folder, data, made_by, cores, change, tell):
                raise DataError(f"{data.path} holds no programs")

        name = data.path.name
        folder = home / _key(data, made_by, home)
        return keep(folder, lambda found: cls.open(found, name), parse, "the corpus")

    def changed(
        self, change: Change, name: str, progress: Callable[[float], None] | None = None
    ) -> "Corpus":
        """Return the same programs after a change of their text, parsed again.

        It is kept beside this corpus. Programs that fail then are missing in it: ``places`` tells.

        Args:
            change: What is done to each program.
            name: What the change is called; the same name means the same change.
            progress: Called with the share done.
        """
        made_by = {
            **_made_by(self.about["frontend"], self.about["comments"]),
            "changed": [name, self.about["about_checksum"], get_frontend("tree-sitter").versions()],
        }

        def programs() -> Iterator[Program | Failure]:
            for row, tree in enumerate(self):
                if tree.language in LANGUAGES:
                    yield Program.from_clean_text(tree.text, tree.language, id=str(row))
                else:
                    yield Failure(str(row), "unknown-language", "is in no language known here")

        def tell(done: int) -> None:
            if progress:
                progress(done / max(1, len(self)))

        def parse(folder: Path) -> None:
            tell(0)
            _write(folder, programs(), made_by, os.cpu_count() or 1, change, tell)

        key = digest(json.dumps(made_by, sort_keys=True).encode())
        return keep(self.home / f"corpus-{key}", Corpus.open, parse, "the corpus")

    @property
    def home(self) -> Path:
        """The folder that it lies in."""
        return self.folder.parent if self.folder.name else self.folder / ".."

    @property
    def places(self) -> NDArray[np.int64]:
        """For each program that was parsed, failed ones too, its number here, or -1."""
        places = np.full(len(self._rows) + len(self._failed_rows), -1)
        places[self._rows] = np.arange(len(self))
        return places

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
        return cls(about, table, folder, name or folder.name)

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


def _made_by(frontend: str, comments: bool) -> dict[str, Any]:
    """Return all that trees depend on beside the programs."""
    return {
        "format": FORMAT,
        "treecaps": __version__,
        "frontend": frontend,
        "comments": comments,
        "versions": get_frontend(frontend, comments=comments).versions(),
        "languages": digest(repr(sorted(LANGUAGES.items())).encode()),
    }


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
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(note, alone=True) as building:
            building.write_text(contents)


def _write(
    folder: Path,
    programs: Iterable[Program | Failure],
    made_by: dict[str, Any],
    workers: Workers,
    change: Change | None,
    tell: Callable[[int], None],
) -> int:
    """Parse programs into the files of a corpus, and return how many there were."""
    kinds: dict[str, int] = {}
    counts = {"programs": 0, "failed": 0, "nodes": 0}
    parser = made_by["frontend"], made_by["comments"]
    with (
        pa.OSFile(str(folder / _TREES), "wb") as sink,
        pa.ipc.new_file(sink, SCHEMA) as writer,
        closing(parse_in_batches(programs, *parser, kinds, workers, change=change)) as batches,
    ):
        for batch in batches:
            writer.write_batch(batch)
            counts["programs"] += batch.num_rows
            counts["failed"] += batch.num_rows - batch.column("failure_code").null_count
            counts["nodes"] += len(batch.column("kind").values)
            tell(counts["programs"])
    about = {
        **made_by,
        **counts,
        "kinds": list(kinds),
        "checksum": digest_file(folder / _TREES),
    }
    about["about_checksum"] = _about_checksum(about)
    (folder / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return counts["programs"]


def _about_checksum(about: dict[str, Any]) -> str:
    rest = {name: value for name, value in about.items() if name != "about_checksum"}
    return digest(json.dumps(rest, sort_keys=True).encode())
