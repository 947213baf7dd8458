"""Find code like this: an index of vectors in a file or a database, search in it, and clones."""

from treecaps.search.index import Index
from treecaps.search.matches import AnyIndex, Match
from treecaps.search.opening import open_index

__all__ = ["AnyIndex", "Index", "Match", "open_index"]
