"""An explanation for terminals and notebooks: the source, coloured by what its tokens add."""

from collections.abc import Iterator
from io import StringIO

import numpy as np
from rich.console import Console
from rich.style import Style
from rich.text import Text

from treecaps.explanation.explanation import Explanation
from treecaps.explanation.perturbation import STEP
from treecaps.text import to_one_line

_FOR, _AGAINST = (211, 84, 0), (31, 119, 180)
_WIDEST = 80
_LINES = 500
_TAB = 8
_GROUND = 0.12  # below this share of the strongest token, nothing is coloured


def to_lines(explanation: Explanation, width: int = 9) -> Iterator[Text]:
    """Yield the lines of a program, each with what it adds to the class in per cent of all."""
    tree = explanation.tree
    heat = _heat(explanation)
    text = tree.text.decode("utf-8", "replace")
    # Bytes are coloured, letters are shown: one letter may be several bytes.
    place = np.cumsum([0, *(len(letter.encode("utf-8", "surrogatepass")) for letter in text)])
    total = float(np.abs(explanation.lines).sum()) or 1.0
    begin = 0
    for line, added in zip(text.split("\n"), explanation.lines, strict=True):
        share = 100 * added / total
        shown = Text(f"{share:{width - 3}.1f} %  " if abs(share) >= 0.1 else " " * (width + 1))
        column = 0
        for offset, letter in enumerate(line.removesuffix("\r")):  # lines may end in \r\n
            at = place[begin + offset]
            warmth = heat[at] if at < len(heat) else 0.0
            if letter == "\t":
                spaces = _TAB - column % _TAB
                shown.append(" " * spaces)
                column += spaces
                continue
            spelled = letter if letter.isprintable() else to_one_line(letter)
            shown.append(spelled, _style(warmth))
            column += len(spelled)
        begin += len(line) + 1
        yield shown


def to_markup(explanation: Explanation) -> str:
    """Return the lines as HTML; of a long program, the first."""
    console = Console(
        file=StringIO(), record=True, force_terminal=True, color_system="truecolor", soft_wrap=True
    )
    lines = list(to_lines(explanation))
    for line in lines[:_LINES]:
        console.print(line, highlight=False)
    if len(lines) > _LINES:
        console.print(f"{len(lines) - _LINES:,} more lines")
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def dimension_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what comes and goes with each number of the code capsule."""
    yield f"When a number of the capsule of {explanation.label} is moved from {STEP} below to"
    yield f"{STEP} above what it is, windows come and go; in per cent of the nodes with children:"
    for one in explanation.dimensions:
        yield f"number {one.number}, which moves {one.moved:.1%} of the nodes"
        for change in (*one.comes, *one.goes[::-1]):
            window = change.window
            window = window if len(window) <= _WIDEST else window[: _WIDEST - 3] + "..."
            yield f"  {100 * change.share:+6.2f} %  {window}"


def _heat(explanation: Explanation) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return for each byte from -1 to 1 how much its token adds."""
    tree, tokens = explanation.tree, explanation.tokens
    heat = np.zeros(len(tree.text) + 1)
    most = float(np.abs(tokens).max()) or 1.0
    for node in np.flatnonzero(tokens).tolist():
        heat[tree.start[node] : tree.end[node]] = tokens[node] / most
    return heat


def _style(warmth: float) -> Style:
    strength = abs(warmth)
    if strength < _GROUND:
        return Style()
    red, green, blue = _FOR if warmth > 0 else _AGAINST
    # From the middle of grey to the full colour, readable on dark and on light.
    mixed = [round(110 + (part - 110) * strength**0.5) for part in (red, green, blue)]
    return Style(color="white", bgcolor=f"rgb({mixed[0]},{mixed[1]},{mixed[2]})")
