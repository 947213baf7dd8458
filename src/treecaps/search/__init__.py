"""Find code like this: an index of vectors on disk, search in it, and clones."""

from treecaps.search.index import Index, Match

__all__ = ["Index", "Match"]
