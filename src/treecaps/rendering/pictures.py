"""Pictures on disk: which files they may go to, and the same bytes for the same picture."""

import os
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treecaps.errors import DataError, UsageError, describe_os_error
from treecaps.files import open_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDINGS = (".png", ".svg")


def check_picture(path: str | Path) -> None:
    """Complain of a picture that could not be written, before minutes of work."""
    path = Path(path)
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"cannot draw into {path.name}: its name must end in .png or .svg")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {path.parent}")


def write_picture(figure: "Figure", path: str | Path, **layout: Any) -> None:
    """Write a figure as PNG or SVG, whichever the file's name says."""
    import matplotlib

    path = Path(path)
    style = path.suffix.lower()[1:]
    # The same figure gives the same bytes: no date, no identities by chance.
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "treecaps",
        "font.sans-serif": ["DejaVu Sans"],  # an SVG file repeats the whole list at each label
    }
    contents = BytesIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Names may hold letters that the font lacks; they become boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        metadata = {"Date": None} if style == "svg" else None
        figure.savefig(contents, format=style, metadata=metadata, **layout)
    path = Path(os.path.realpath(path))
    try:
        with open_atomic(path) as file:
            file.write(contents.getvalue())
    except OSError as error:
        raise DataError(f"cannot write {path}: {describe_os_error(error)}") from None
