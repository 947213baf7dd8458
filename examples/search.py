"""Find code that does the same as a file, in whatever language."""

import tempfile
from pathlib import Path

import treecaps
from treecaps.search import Index
from treecaps.search.build import update_index

PROGRAMS = Path(__file__).parent / "programs"

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "programs.index"
    update_index(PROGRAMS, path, functions=False)
    index = Index.open(path)
    (query,) = treecaps.Embedder().embed([PROGRAMS / "gcd" / "gcd.py"])
    for match in index.search(query.vector, top=6):
        print(f"{match.path:45} {match.probability:.0%}")
