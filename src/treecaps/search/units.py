"""What of a folder is compared: functions, files, or whole submissions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from treecaps.cluster import Workers
from treecaps.errors import Failure
from treecaps.inference.embed import Embedder, Vectors
from treecaps.inference.stream import stream
from treecaps.inference.units import CodeUnit, is_broken, is_empty
from treecaps.search.copies import Work
from treecaps.syntax.program import MAX_BYTES, ProgramFile

Step = Callable[[float, str], None]
"""Called now and then with the share done, from 0 to 1, and the file that is looked at."""


@dataclass(frozen=True, eq=False)
class Unit:
    """A function, a file, or the programs of a submission.

    Args:
        path: Its file or folder, from the folder on that was read.
        function: The name of the function; ``None`` for a file or a submission.
        line: Its first line, from 1; ``None`` for a submission.
        last_line: Its last line.
        language: Its language, or the most frequent one.
        vector: ``[E]``, of length 1.
        work: Its pieces.
        folder: The folder that was read.
        files: The files it is made of, from that folder on.
    """

    path: str
    function: str | None
    line: int | None
    last_line: int | None
    language: str
    vector: Vectors
    work: Work
    folder: Path
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """What tells it from others: its path, and for a function its lines."""
        return self.path if self.function is None else f"{self.path}:{self.line}-{self.last_line}"


def read_units(
    folder: Path,
    files: Sequence[str],
    embedder: Embedder,
    *,
    functions: bool = True,
    max_bytes: int = MAX_BYTES,
    workers: Workers | None = None,
    step: Step | None = None,
) -> tuple[list[Unit], list[Failure]]:
    """Parse and embed the programs of a folder, and take them apart.

    Args:
        folder: Where the programs are.
        files: The programs, from the folder on.
        embedder: What makes the vectors.
        functions: Whether each function is a unit, or each file.
        max_bytes: The largest file that is taken.
        workers: How many processes there are, or a ``RayCluster``; as many processes as there are
            cores by default.
        step: Called while files are looked at.
    """

    def programs() -> Iterator[ProgramFile]:
        for number, name in enumerate(files):
            if step:
                step(number / len(files), name)
            yield ProgramFile(folder / name, name, None, max_bytes)

    answer = partial(_to_units, embedder, folder)
    results = stream(embedder.model, programs(), answer, functions=functions, workers=workers)
    units, failures = [], []
    with closing(results):
        for one in results:
            if isinstance(one, Failure):
                failures += [one] if one.code != "functions" else []
            elif one:
                units.append(one)
    return units, failures


def _to_units(
    embedder: Embedder, folder: Path, found: Sequence[CodeUnit]
) -> Iterator[Unit | Failure | None]:
    """Yield what programs or functions are; nothing for what is empty."""
    vectors = embedder.embed_trees([unit.tree for unit in found])
    for (name, tree, function, line), vector in zip(found, vectors, strict=True):
        if is_empty(tree):
            yield None
            continue
        if is_broken(tree):
            where = "it" if function is None else f"{function} in line {line}"
            yield Failure(name, "syntax", f"most of {where} is not {tree.language}")
            continue
        text = tree.text.rstrip()
        first = line or 1
        last = first + text.count(b"\n")
        span = (name, function, first, last, tree.language)
        work = Work.from_tree(tree)
        yield Unit(*span, vector, work, folder, (name,))


def join_submissions(units: Sequence[Unit]) -> list[Unit]:
    """Put the files of each direct sub-folder together; a file beside them is a unit by itself."""
    folders: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        folders[Path(unit.path).parts[0]].append(unit)
    return [_join(name, files) for name, files in sorted(folders.items())]


def _join(name: str, files: list[Unit]) -> Unit:
    if len(files) == 1:
        return replace(files[0], path=name, line=None, last_line=None)
    # A large file says more about a submission than a small one.
    vector = np.sum([unit.vector * len(unit.work.pieces) for unit in files], axis=0)
    return Unit(
        path=name,
        function=None,
        line=None,
        last_line=None,
        language=Counter(unit.language for unit in files).most_common(1)[0][0],
        vector=(vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32),
        work=Work.join([unit.work for unit in files]),
        folder=files[0].folder,
        files=tuple(unit.path for unit in files),
    )
