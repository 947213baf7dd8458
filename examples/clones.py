"""Compare the works of several people: what is copied, whatever its names, and what is alike."""

from pathlib import Path

import treecaps
from treecaps.search.collection import Collection
from treecaps.search.units import join_submissions, read_units
from treecaps.syntax.sources import list_sources

PROGRAMS = Path(__file__).parent / "programs"  # each folder in it is one work here

embedder = treecaps.Embedder()
files = list_sources(PROGRAMS).files
units, failures = read_units(PROGRAMS, files, embedder, functions=False)
works = Collection(embedder, join_submissions(units))
for pair in works.pairs():
    print(
        f"{pair.left.name:15} {pair.right.name:15} copied {pair.copied:.0%},"
        f" the same problem {pair.probability:.0%}"
    )
