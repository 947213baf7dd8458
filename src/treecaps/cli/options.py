"""Options that several commands share, so that the same words mean the same everywhere."""

import math
from collections.abc import Callable
from typing import Any

import click

from treecaps.syntax.frontends import FRONTENDS

Command = Callable[..., Any]

_MEGABYTE = 1_000_000


def _to_bytes(_: click.Context, __: click.Parameter, value: float) -> int:
    if math.isnan(value):
        raise click.BadParameter("not a number")
    return int(value * _MEGABYTE)


def parser_options(command: Command) -> Command:
    """Add the options that say how programs are parsed."""
    for option in (
        click.option(
            "--max-mb",
            "max_bytes",
            type=click.FloatRange(min=0, min_open=True, max=1000),
            default=10,
            show_default=True,
            callback=_to_bytes,
            help="Refuse larger programs.",
        ),
        click.option("--comments", is_flag=True, help="Make nodes of comments too."),
        click.option(
            "--language",
            metavar="NAME",
            help="The language of all programs (c, c++, c#, ...) instead of what names say.",
        ),
        click.option(
            "--frontend",
            type=click.Choice(FRONTENDS),
            default="tree-sitter",
            show_default=True,
            help="The parser.",
        ),
    ):
        command = option(command)
    return command


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
