"""An index that a server searches while ``treecaps index`` brings it up to date."""

import os
import sys
import threading

from treecaps.errors import SearchError
from treecaps.inference.embed import Embedder
from treecaps.search.index import Index
from treecaps.search.matches import AnyIndex
from treecaps.search.opening import open_index
from treecaps.search.place import Address, Place
from treecaps.search.sqlite import open_to_read
from treecaps.text import to_one_line

_SECONDS = 1.0
"""How often the place is looked at."""


class FollowedIndex:
    """An index as it was when last finished: a thread reads its file again when it has changed.

    What cannot be read is told on standard error, and the index stays what it was. A database is
    searched as it is; the thread keeps the connection, and tells when that is lost.

    Args:
        place: What ``treecaps index`` writes.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._seen = self._look()
        self._said = ""
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
        if isinstance(self._place, Address):
            return ()
        try:
            status = os.stat(self._place)
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _follow(self) -> None:
        while not self._closed.wait(_SECONDS):
            try:
                self._refresh()
                said = ""
            except SearchError as error:
                said = str(error)
            if said and said != self._said:
                _tell(said)
            self._said = said

    def _refresh(self) -> None:
        # Looked at before it is read: what comes in between is seen the next time.
        seen = self._look()
        self.current.refresh()
        if isinstance(self._place, Address) or seen == self._seen:
            return
        self._seen = seen
        try:
            with open_to_read(self._place) as store:
                # A run that is under way changes the file many times before it is finished.
                finished = store.about["checksum"] != self._checksum
            if finished:
                self.current = self._open(self.embedder)
        except SearchError as error:
            raise SearchError(f"{error}; searching it as it was") from None

    def _open(self, embedder: Embedder | None = None) -> AnyIndex:
        index = open_index(self._place, embedder)
        self._checksum = index.checksum if isinstance(index, Index) else ""
        if index.note:
            _tell(f"looking at each vector, because {index.note}")
        return index


def _tell(text: str) -> None:
    print(to_one_line(f"treecaps: {text}"), file=sys.stderr, flush=True)
