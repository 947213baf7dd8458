"""An index that a server searches while ``treecaps index`` brings it up to date."""

import os
import sys
import threading
from pathlib import Path

from treecaps.errors import SearchError
from treecaps.inference.embed import Embedder
from treecaps.search.index import Index
from treecaps.search.store import open_to_read
from treecaps.text import to_one_line

_SECONDS = 1.0
"""How often the file is looked at."""


class FollowedIndex:
    """An index as it was when last finished: a thread reads its file again when it has changed.

    What cannot be read is told on standard error, and the index stays what it was.

    Args:
        path: What ``treecaps index`` writes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._look()
        self.current = self._open()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="index", daemon=True)
        self._thread.start()

    @property
    def embedder(self) -> Embedder:
        """What made it, and makes the vectors of queries."""
        return self.current.embedder

    def close(self, seconds: float | None = None) -> None:
        """End the thread; go on without it if it takes longer than that."""
        self._closed.set()
        self._thread.join(seconds and max(seconds, 0))

    def _look(self) -> tuple[int, ...]:
        """Return what is another after each change of the file; nothing while there is none."""
        try:
            status = os.stat(self._path)
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _follow(self) -> None:
        while not self._closed.wait(_SECONDS):
            # Looked at before it is read: what comes in between is seen the next time.
            if (seen := self._look()) != self._seen:
                self._seen = seen
                try:
                    self._read()
                except SearchError as error:
                    _tell(f"{error}; searching it as it was")

    def _read(self) -> None:
        with open_to_read(self._path) as store:
            # A run that is under way changes the file many times before it is finished.
            finished = store.about["checksum"] != self.current.checksum
        if finished:
            self.current = self._open(self.embedder)

    def _open(self, embedder: Embedder | None = None) -> Index:
        index = Index.open(self._path, embedder)
        if index.note:
            _tell(f"looking at each vector, because {index.note}")
        return index


def _tell(text: str) -> None:
    print(to_one_line(f"treecaps: {text}"), file=sys.stderr, flush=True)
