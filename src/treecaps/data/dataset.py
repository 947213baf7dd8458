"""Data sets in the shapes people already have, read one program at a time."""

import gzip
import json
import os
import stat
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from treecaps.data.bugs import are_lines, label_of
from treecaps.errors import (
    DataError,
    Failure,
    ProgramError,
    UsageError,
    describe_os_error,
    naming_extra,
)
from treecaps.files import read_blocks
from treecaps.hashing import digest, digest_parts
from treecaps.syntax.languages import language_named, language_of_file
from treecaps.syntax.program import MAX_BYTES, Program
from treecaps.syntax.sources import Sources, list_sources
from treecaps.text import short_repr

if TYPE_CHECKING:
    import pyarrow as pa

_SHAPES = "a folder with one sub-folder per class, .jsonl, .jsonl.gz or .parquet"
_SETTLED_NS = 2_000_000_000
_COLUMNS = ("code", "label", "language", "id")


class DataSet:
    """The programs of a folder, a JSON Lines file or a Parquet file.

    Iterating gives a ``Program`` for each one, or a ``Failure`` for one that cannot be used, and
    can be done again and again. In a folder the name of the first sub-folder is the label, and
    files in no known language are passed over unless ``language`` is given. In JSON Lines and
    Parquet, ``code`` is the program, ``label``, ``language`` and ``id`` may follow.

    Args:
        path: Where the data are.
        language: The language of every program, whatever its file or row says.
        max_bytes: Larger programs become failures.
        bugs: Read which lines of programs have a bug, instead of their classes. In JSON Lines these
            are ``lines``, counted from 1; ``fixed`` may hold the same program without the bug,
            which is a program of its own then. All others are without known bugs.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        language: str | None = None,
        max_bytes: int = MAX_BYTES,
        bugs: bool = False,
    ) -> None:
        self.path = Path(path)
        self.bugs = bugs
        self.language = language_named(language).name if language else None
        self.max_bytes = max_bytes
        self.sources = Sources()
        """What the folder holds, where the data set is one."""
        self.progress = 0.0
        """How far the newest iteration has come, from 0 to 1."""
        self._shape = _shape_of(self.path)
        if self._shape == "folder":
            self.sources = list_sources(self.path, everything=bool(language), leave_out=False)
            if not self.sources.files and not self.sources.failures:
                raise self._nothing_here()

    def __repr__(self) -> str:
        files = {"files": len(self.sources.files)} if self._shape == "folder" else {}
        language = {"language": self.language} if self.language else {}
        return short_repr(self, str(self.path), **files, **language)

    def __iter__(self) -> Iterator[Program | Failure]:
        if self._shape == "folder":
            return self._read_folder()
        if self._shape == "parquet":
            return self._read_parquet()
        return self._read_json_lines()

    def stamp(self) -> str | None:
        """Return a digest of names, sizes and times: equal stamps mean nothing was touched.

        A file touched a moment ago could be touched again without a new time, because clocks of
        file systems tick slowly. Then there is no stamp.
        """
        now = time.time_ns()
        parts = [repr((str(self.path.resolve()), self._options()))]
        for name in self.sources.files or [""]:
            try:
                status = os.stat(os.path.join(self.path, name) if name else self.path)
            except OSError as error:
                parts.append(repr((name, error.errno)))
                continue
            times = (status.st_mtime_ns, status.st_ctime_ns)
            if now - max(times) < _SETTLED_NS:
                return None
            parts.append(repr((name, status.st_size, status.st_ino, *times)))
        return digest("".join(parts).encode())

    def fingerprint(self) -> str:
        """Return a digest of the contents, wherever they lie."""
        return digest_parts(self._contents())

    def _contents(self) -> Iterator[bytes]:
        yield repr(self._options()).encode()
        for name in self.sources.files or [""]:
            yield name.encode("utf-8", "surrogateescape") + b"\0"
            try:
                status = os.stat(self.path / name)
                yield repr((stat.S_IFMT(status.st_mode), status.st_size)).encode()
                if stat.S_ISREG(status.st_mode):
                    yield from read_blocks(self.path / name)
            except OSError as error:
                yield repr(error.errno).encode()

    def _options(self) -> tuple[object, ...]:
        bugs = ("bugs",) if self.bugs else ()
        return self._shape, self.language, self.max_bytes, self.sources.failures, *bugs

    def _nothing_here(self) -> DataError:
        passed_over = self.sources.passed_over
        if not passed_over:
            return DataError(f"{self.path} holds no files; expected {_SHAPES}")
        found = f"{self.path} holds only {self.sources.tell_passed_over()}"
        if any(ending in passed_over for ending in (".jsonl", ".gz", ".parquet")):
            return DataError(f"{found}; name one of the data files")
        return DataError(
            f"{found}; name their language with language=NAME", arguments=("language",)
        )

    def _read_folder(self) -> Iterator[Program | Failure]:
        yield from self.sources.failures
        for number, name in enumerate(self.sources.files):
            self.progress = number / len(self.sources.files)
            parts = PurePath(name).parts
            label = parts[0] if len(parts) > 1 and not self.bugs else None
            shown = PurePath(name).as_posix()
            try:
                yield Program.read(
                    self.path / name,
                    self.language,
                    id=shown,
                    label=label,
                    max_bytes=self.max_bytes,
                )
            except ProgramError as error:
                yield Failure(shown, error.code, str(error))
        self.progress = 1.0

    def _read_json_lines(self) -> Iterator[Program | Failure]:
        size = max(1, self.path.stat().st_size)
        longest = 8 * self.max_bytes + 4096  # every character may be written as \uXXXX
        number = 0
        try:
            with open(self.path, "rb") as raw, self._unpack(raw) as lines:
                while line := lines.readline(longest):
                    number += 1
                    self.progress = raw.tell() / size
                    where = f"line {number}"
                    if len(line) == longest:
                        while line and not line.endswith(b"\n"):
                            line = lines.readline(longest)
                        yield Failure(where, "too-large", "is longer than any program may be")
                    elif line.strip():
                        yield from self._parse_line(line, where)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{self.path} is damaged after {number:,} lines: {error}; get it again"
            ) from None
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {describe_os_error(error)}") from None
        self.progress = 1.0

    def _unpack(self, raw: BinaryIO) -> AbstractContextManager[gzip.GzipFile | BinaryIO]:
        return gzip.GzipFile(fileobj=raw) if self._shape == "jsonl.gz" else nullcontext(raw)

    def _parse_line(self, line: bytes, where: str) -> Iterator[Program | Failure]:
        try:
            record = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            yield Failure(where, "record", f"is not JSON: {reason}")
            return
        if not isinstance(record, dict):
            yield Failure(where, "record", "is not a JSON object")
        elif self.bugs:
            yield from self._programs(record, where)
        else:
            yield self._program(record, where)

    def _programs(self, record: Mapping[str, Any], where: str) -> Iterator[Program | Failure]:
        """Yield a program, perhaps with bugs, and the same without them if it is there."""
        lines, fixed, name = record.get("lines") or [], record.get("fixed"), record.get("id")
        if not are_lines(lines):
            yield Failure(where, "record", "has 'lines' that are no list of line numbers")
            return
        yield self._program({**record, "label": label_of(lines)}, where)
        if fixed is not None:
            twin = {**record, "code": fixed, "label": None}
            yield self._program({**twin, "id": f"fixed/{name or where}"}, where)

    def _read_parquet(self) -> Iterator[Program | Failure]:
        with naming_extra("Parquet"):
            import pyarrow as pa
            import pyarrow.parquet as pq
        number = 0
        try:
            # Neither threads nor whole column chunks in memory.
            with pq.ParquetFile(self.path, buffer_size=1 << 20, pre_buffer=False) as file:
                columns = [name for name in _COLUMNS if name in file.schema_arrow.names]
                if "code" not in columns:
                    raise DataError(
                        f"{self.path} has no column 'code', only: "
                        + ", ".join(file.schema_arrow.names)
                    )
                total = max(1, file.metadata.num_rows)
                for batch in file.iter_batches(batch_size=256, columns=columns, use_threads=False):
                    for values in zip(*map(self._values, columns, batch.columns), strict=True):
                        number += 1
                        self.progress = number / total
                        record = dict(zip(columns, values, strict=True))
                        if self.bugs:
                            record["label"] = None
                        yield self._program(record, f"row {number}")
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{self.path} is damaged after {number:,} rows: {reason}") from None
        self.progress = 1.0

    def _values(self, name: str, column: "pa.Array") -> list[Any]:
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            # Text in Parquet need not be valid, so it is read as bytes.
            column = column.cast(pa.large_binary())
        elif not (
            pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
            or pa.types.is_null(kind)
            or (pa.types.is_integer(kind) and name != "code")
        ):
            raise DataError(f"{self.path} has {kind} in the column {name!r}, not text")
        values: list[Any] = column.to_pylist()
        if name != "code":
            values = [
                value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                for value in values
            ]
        return values

    def _program(self, record: Mapping[str, Any], where: str) -> Program | Failure:
        code, label, language, name = (record.get(column) for column in _COLUMNS)
        if not isinstance(code, str | bytes):
            return Failure(where, "record", "has no 'code' that is text")
        if label is not None and (not isinstance(label, str | int) or isinstance(label, bool)):
            return Failure(where, "record", "has a 'label' that is no text or whole number")
        shown = str(name) if isinstance(name, str | int) else where
        try:
            return Program(
                code,
                self.language or _language_of(language, shown),
                id=shown,
                label=None if label is None else str(label),
                max_bytes=self.max_bytes,
            )
        except ProgramError as error:
            return Failure(shown, error.code, str(error))
        except UsageError as error:
            return Failure(shown, "unknown-language", str(error))


def _language_of(value: object, name: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    if value not in (None, ""):
        raise ProgramError("record", "has a 'language' that is no text")
    return language_of_file(name).name


def _shape_of(path: Path) -> str:
    try:
        if path.is_dir():
            return "folder"
        if not path.exists():
            raise DataError(f"{path} does not exist; expected {_SHAPES}")
        if not path.is_file():
            raise DataError(f"{path} is neither a folder nor a file; expected {_SHAPES}")
    except OSError as error:
        raise DataError(f"cannot open {path}: {describe_os_error(error)}") from None
    for ending in ("jsonl", "jsonl.gz", "parquet"):
        if path.name.lower().endswith("." + ending):
            return ending
    raise DataError(f"{path} is no data set; expected {_SHAPES}")
