"""What an index keeps, and what keeps it: a file (``sqlite``) or a database (``postgres``).

Vectors belong to contents, not to files: a file that is renamed or copied has them already. New
contents are committed some at a time, and nobody sees them before one last transaction says
which files there are now. So readers never see half an update, and what a killed run has done
is not done again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.hashing import digest_fields
from treecaps.search.place import Place

Vectors = NDArray[np.floating[Any]]


class Span(NamedTuple):
    """A function, or a whole file.

    Args:
        function: Its name; ``None`` for a file.
        line: Its first line, from 1.
        last_line: Its last line.
    """

    function: str | None
    line: int
    last_line: int


class Content(NamedTuple):
    """What the index knows of the contents of a file.

    Args:
        key: A digest of text and language.
        language: Its language.
        spans: What has a vector.
        vectors: ``[len(spans), E]``.
    """

    key: str
    language: str
    spans: list[Span]
    vectors: Vectors


class File(NamedTuple):
    """A file that was indexed.

    Args:
        stamp: Size and times, by which it counts as unchanged; empty if only contents can tell.
        key: The key of its contents.
    """

    stamp: str
    key: str


class GraphUpdate(NamedTuple):
    """What has become of the graph of near vectors that a large index has.

    Args:
        recall: The share of the ten nearest that it finds; ``None`` if there is no graph.
        note: Why a large index has none, in words for people.
    """

    recall: float | None = None
    note: str | None = None


class Store(ABC):
    """The index of a folder, opened to be written by nobody else.

    Args:
        place: Where it is.
        about: What it says of itself.
    """

    def __init__(self, place: Place, about: dict[str, Any]) -> None:
        self.place = place
        self.about = about

    @abstractmethod
    def files(self) -> dict[str, File]:
        """Return the files of the folder by their paths, in order."""

    @abstractmethod
    def keys(self) -> set[str]:
        """Return the keys of all contents, whether files have them or not."""

    @abstractmethod
    def count(self) -> int:
        """Return how many vectors files have, those with the same contents each."""

    @abstractmethod
    def add(self, contents: Iterable[Content]) -> None:
        """Keep contents for files that ``finish`` will name; some at a time, as they come."""

    @abstractmethod
    def finish(self, files: Mapping[str, File], about: dict[str, Any]) -> None:
        """Make these the files of the folder, all at once, and forget the contents of others."""

    @abstractmethod
    def update_graph(
        self, files: Mapping[str, File], threads: int, step: Callable[[float], None] | None
    ) -> GraphUpdate:
        """See to it that a large index has a graph of near vectors.

        Args:
            files: What ``finish`` was told.
            threads: How many to use; as many as there are cores if 0.
            step: Called with the share done.
        """


def content_key(text: bytes, language: str) -> str:
    """Return the key of a program's contents."""
    return digest_fields(language, text)
