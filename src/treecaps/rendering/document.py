"""The frame of a page: its style, light and dark, and what it may run."""

import base64
import hashlib
from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --line: #d5d5d5; --quiet: #6b6b6b;
  --bar: #3b78c2; --for: 211 84 0; --against: 31 119 180; --mark: #ffd54a; --tone: 36% }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --line: #3a3d42;
  --quiet: #9a9a9a; --bar: #6ea8ef; --for: 240 140 60; --against: 90 160 230; --mark: #8a6d00;
  --tone: 66% } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 80rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; overflow-wrap: anywhere } h2 { font-size: 1.25rem; margin-top: 2rem }
h3 { font-size: 1.05rem } .wide { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem; text-align: left;
  white-space: nowrap }
svg { max-width: 100%; height: auto } svg text { fill: currentColor; font: 12px system-ui }
.note { border-left: 4px solid var(--bar); padding: .2rem 1rem } .quiet { color: var(--quiet) }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.5rem }
@media (max-width: 60rem) { .two { grid-template-columns: minmax(0, 1fr) } }
.box { overflow: auto; max-height: 80vh; border: 1px solid var(--line); padding: .6rem }
pre { font: 13px/1.6 ui-monospace, Menlo, Consolas, monospace; margin: 0 }
summary { cursor: pointer }
"""
"""What all pages look like."""


def document(title: str, parts: Iterable[str], *, style: str = "", script: str = "") -> str:
    """Return a page of parts that are HTML; whatever they show, only the script given may run."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    runs = f"; script-src 'sha256-{digest}'" if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'{runs}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}{style}</style>",
            f"<h1>{escape(title)}</h1>",
            *parts,
            *([f"<script>{script}</script>"] if script else []),
            "</html>\n",
        ]
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts, which may be wider than the page."""
    top = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'
