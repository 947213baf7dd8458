"""``treecaps serve``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.options import PlaceType, max_mb_option, model_option, workers_option
from treecaps.cli.output import say
from treecaps.server.limits import Limits

if TYPE_CHECKING:
    from treecaps.search.place import Place

_DEFAULTS = Limits()


@click.command("serve")
@model_option
@click.option(
    "--index",
    type=PlaceType(),
    help="Search this, which treecaps index wrote, a file or postgresql://...; without it, the"
    " server does not search.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 for any that is free.",
)
@max_mb_option(_DEFAULTS.max_bytes / 1e6, "Refuse larger requests.")
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=_DEFAULTS.max_nodes,
    show_default=True,
    help="Refuse programs with larger trees.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.01, max=86400),
    default=_DEFAULTS.seconds,
    show_default=True,
    help="Give up on requests that take longer.",
)
@click.option(
    "--waiting",
    type=click.IntRange(min=1),
    default=_DEFAULTS.waiting,
    show_default=True,
    help="Refuse requests beyond so many under way.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=_DEFAULTS.batch,
    show_default=True,
    help="Maximum batch size: how many programs run through the network together.",
)
@workers_option
def command(
    folder: Path,
    index: "Place | None",
    host: str,
    port: int,
    max_bytes: int,
    max_nodes: int,
    seconds: float,
    waiting: int,
    batch: int,
    workers: int | None,
) -> int:
    """Answer over HTTP, and show a page in the browser.

    POST /v1/classify, /v1/embed, /v1/explain and /v1/search take {"code": "..."} and answer with
    what the commands of these names print with --json; /docs describes them, / is the page. What is
    beyond the limits is refused with a message that names the limit. SIGINT (Ctrl+C) and SIGTERM
    end the server when it has finished what is under way.
    """
    from treecaps.server.run import serve

    limits = Limits(
        max_bytes=max_bytes,
        max_nodes=max_nodes,
        seconds=seconds,
        waiting=waiting,
        batch=batch,
        workers=workers or _DEFAULTS.workers,
    )
    serve(
        folder,
        index,
        host,
        port,
        limits,
        lambda address: say(f"serving {folder} on {address} (Ctrl+C ends it)"),
    )
    return 0
