"""Pages made of templates: Jinja2 escapes all that comes from elsewhere."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_FOLDER = files("treecaps.rendering") / "templates"


def read_asset(name: str) -> Markup:
    """Return a style sheet or a script."""
    return Markup((_FOLDER / name).read_text("utf-8"))


def render(name: str, **values: Any) -> str:
    """Return a page made of a template."""
    return _ENVIRONMENT.get_template(f"{name}.html.j2").render(values)


def _digest(script: str) -> str:
    """Return what a Content Security Policy calls a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


_ENVIRONMENT = Environment(
    loader=PackageLoader("treecaps.rendering"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.globals["read_asset"] = read_asset
_ENVIRONMENT.filters["digest"] = _digest
