"""Show which lines of a program lead to its class, and write a page with the whole heat map."""

import sys
from pathlib import Path

import treecaps
from treecaps.rendering.explanation import to_html

FILE = Path(__file__).parent / "programs" / "bubble-sort" / "bubble_sort.py"

found = treecaps.explain("algorithms", FILE)
print(f"{FILE.name} is {found.classification.verdict}, most of all because of these lines:")
lines = FILE.read_text().splitlines()
for share, number in sorted(zip(found.lines, range(len(lines))), reverse=True)[:5]:
    print(f"{number + 1:4} {share:4.0%}  {lines[number]}")

if len(sys.argv) > 1:
    Path(sys.argv[1]).write_text(to_html(found), encoding="utf-8")
