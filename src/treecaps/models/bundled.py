"""Models that come with the package, by name."""

from pathlib import Path

import treecaps
from treecaps.errors import ModelError
from treecaps.text import did_you_mean

HOME = Path(treecaps.__file__).parent / "bundled"
"""A folder for each model; its name is the folder's."""
DEFAULT = "algorithms"
"""What names the algorithms of programs where no other model is asked for."""
SIMILAR = "similar"
"""What makes embeddings of programs where no other model is asked for."""


def bundled_names() -> list[str]:
    """Return the names of the models that come with the package."""
    return sorted(path.parent.name for path in HOME.glob("*/config.json"))


def find_model(name: str | Path) -> Path:
    """Return the folder of a model that is given by its folder, or by the name of a bundled one."""
    folder = Path(name)
    if folder.exists():
        return folder
    names = bundled_names()
    if str(name) in names:
        return HOME / name
    known = f"with the package come {', '.join(names)}; " if names else ""
    train = f"{known}train one with: treecaps train DATA --out FOLDER"
    raise ModelError(
        f"there is no model {name}: no such folder; {did_you_mean(str(name), names) or train}"
    )
