"""Options that several commands share, so that the same words mean the same everywhere."""

import math
import os
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treecaps.errors import UsageError
from treecaps.models.bundled import DEFAULT, SIMILAR
from treecaps.syntax.frontends import FRONTENDS

Command = Callable[..., Any]

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.search.place import Place

    _ParamType = click.ParamType[Any]
else:  # it is generic in newer versions only
    _ParamType = click.ParamType

_MEGABYTE = 1_000_000
_RAY = "treecaps.ray"
"""Where the address of a cluster is kept until the number of workers is known."""


class LazyChoice(_ParamType):
    """One of several names that are known only when somebody asks: that loads packages.

    Args:
        load: Returns the names.
    """

    name = "choice"

    def __init__(self, load: Callable[[], Iterable[str]]) -> None:
        self._load = load

    @cached_property
    def _choice(self) -> "click.Choice[str]":
        return click.Choice(list(self._load()))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the names, for the help."""
        return self._choice.get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value if it is one of the names."""
        return self._choice.convert(value, param, ctx)


class PlaceType(_ParamType):
    """Where an index is: a path, or the address of a database.

    Args:
        database: Whether it may be a database.
    """

    name = "index"

    def __init__(self, *, database: bool = True) -> None:
        self._database = database

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Place":
        """Return a path or an address; whether there is an index is not looked at."""
        from treecaps.search.place import Address, to_place

        place = to_place(value)
        if isinstance(place, Address) and not self._database:
            raise UsageError(f"{place} is a database; name a folder, or an index in a file")
        return place


def _to_bytes(_: click.Context, __: click.Parameter, value: float) -> int:
    if math.isnan(value):
        raise click.BadParameter("not a number")
    return int(value * _MEGABYTE)


def max_mb_option(megabytes: float, help: str) -> Callable[[Command], Command]:
    """Make the option that bounds what is read; the command gets ``max_bytes``."""
    return click.option(
        "--max-mb",
        "max_bytes",
        type=click.FloatRange(min=0, min_open=True, max=1000),
        default=megabytes,
        show_default=True,
        callback=_to_bytes,
        help=help,
    )


max_bytes_option = max_mb_option(10, "Refuse larger programs.")


def program_options(command: Command) -> Command:
    """Add the options that say which programs are read, and in which language."""
    for option in (
        max_bytes_option,
        click.option(
            "--language",
            metavar="NAME",
            help="The language of all programs (c, c++, c#, ...) instead of what names say.",
        ),
    ):
        command = option(command)
    return command


def parser_options(command: Command) -> Command:
    """Add the options that say how programs are read and parsed."""
    command = program_options(command)
    for option in (
        click.option("--comments", is_flag=True, help="Make nodes of comments too."),
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


all_option = click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also what is left out by default: ignored files, packages of others, virtual"
    " environments, what builds made.",
)
_new_workers_option = partial(
    click.option,
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that parse and answer; all cores by default.",
)
workers_option = _new_workers_option()


def cluster_options(command: Command) -> Command:
    """Add the options that say who parses and answers; the command gets both as ``workers``."""

    def keep_address(context: click.Context, _: click.Parameter, address: str | None) -> None:
        if address is not None:
            from treecaps.cluster import LOCAL, check_address

            # Jobs that were submitted to a cluster find its address there.
            address = address or os.environ.get("RAY_ADDRESS") or LOCAL
            check_address(address)
        context.meta[_RAY] = address

    def choose(context: click.Context, _: click.Parameter, workers: int | None) -> "Workers | None":
        address: str | None = context.meta[_RAY]
        if address is None:
            return workers
        from treecaps.cluster import RayCluster

        return context.with_resource(RayCluster(address, workers))

    ray = click.option(
        "--ray",
        metavar="[ADDRESS]",
        is_flag=False,
        flag_value="",
        is_eager=True,
        expose_value=False,
        callback=keep_address,
        help="Parse and answer on a Ray cluster: HOST:PORT of its head, auto for the one that this"
        " machine is a node of, or local, the default, for one of this machine alone.",
    )
    return _new_workers_option(callback=choose)(ray(command))


cache_option = click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder for parsed trees; TREECAPS_CACHE or ~/.cache/treecaps by default.",
)


def _model_option(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--model",
        "folder",
        metavar="MODEL",
        default=default,
        show_default=True,
        type=click.Path(path_type=Path),
        help="The folder of a trained model, or the name of a bundled one.",
    )


model_option = _model_option(DEFAULT)
embedding_model_option = _model_option(SIMILAR)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
