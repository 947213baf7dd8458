"""``treecaps vectors``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import build_corpus, tell_failures
from treecaps.cli.options import cache_option, cluster_options, json_option, parser_options
from treecaps.cli.output import add_row, new_table, progress, say, say_json, say_table
from treecaps.errors import DataError
from treecaps.training.vectors import METHODS

if TYPE_CHECKING:
    from treecaps.cluster import Workers

_ROWS = 40


@click.group("vectors")
def command() -> None:
    """Learn vectors for the kinds of nodes, and inspect them."""


@command.command("learn")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, .safetensors by custom.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="parent",
    show_default=True,
    help="What vectors must tell: a node's parent, a node from its children, what is around it;"
    " or nothing.",
)
@click.option(
    "--size",
    type=click.IntRange(1, 4096),
    default=30,
    show_default=True,
    help="Numbers in a vector.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Random seed.",
)
@parser_options
@cluster_options
@cache_option
def learn(
    data: Path,
    out: Path,
    method: str,
    size: int,
    seed: int,
    frontend: str,
    language: str | None,
    comments: bool,
    max_bytes: int,
    workers: "Workers | None",
    cache: Path | None,
) -> int:
    """Learn vectors from the trees of a data set; labels are not used.

    DATA is a folder of programs, a JSON Lines file or a Parquet file, as for treecaps data.
    """
    if not out.parent.is_dir():  # complain now, not after minutes
        raise DataError(f"cannot write {out}: there is no folder {out.parent}")
    from treecaps.training.vectors.learn import learn_vectors

    corpus = build_corpus(
        data,
        frontend=frontend,
        comments=comments,
        language=language,
        max_bytes=max_bytes,
        cache=cache,
        workers=workers,
    )
    tell_failures(data, corpus)
    with progress("learning") as advance:
        vectors = learn_vectors(corpus, method, size, seed, lambda share: advance(share, ""))
    vectors.save(out)
    say(
        f"{out}: {size:,} numbers for each of {len(vectors.vocabulary) - 1:,} kinds,"
        f" by {method} from {len(corpus):,} programs"
    )
    return 1 if corpus.failures else 0


@command.command("neighbours")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("kinds", metavar="[KIND]...", nargs=-1)
@click.option(
    "--top", type=click.IntRange(min=1), default=5, show_default=True, help="How many neighbours."
)
@json_option
def neighbours(file: Path, kinds: tuple[str, ...], top: int, as_json: bool) -> None:
    """Print the kinds that are nearest by cosine; without KIND, for the most frequent kinds."""
    from treecaps.training.vectors.kind_vectors import KindVectors

    vectors = KindVectors.load(file)
    # A shell takes away the quotes that anonymous kinds have.
    chosen = [
        kind
        if vectors.vocabulary.number(kind) or not vectors.vocabulary.number(f'"{kind}"')
        else f'"{kind}"'
        for kind in kinds
    ] or vectors.by_frequency()
    if as_json:
        say_json(
            {
                kind: [
                    {"kind": other, "cosine": cosine}
                    for other, cosine in vectors.neighbours(kind, top)
                ]
                for kind in chosen
            }
        )
        return
    shown = chosen if kinds else chosen[:_ROWS]
    table = new_table("kind", "nodes", "nearest", numbers=("nodes",))
    for kind in shown:
        near = (f"{other} {cosine:.2f}" for other, cosine in vectors.neighbours(kind, top))
        count = vectors.counts[vectors.vocabulary.number(kind)]
        add_row(table, kind, f"{count:,}", ", ".join(near))
    say_table(table, len(chosen) - len(shown), "kinds")


@command.command("plot")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The picture to write: .png or .svg.",
)
def plot(file: Path, out: Path) -> None:
    """Draw the kinds on a plane, those with like vectors together."""
    from treecaps.training.vectors.kind_vectors import KindVectors

    vectors = KindVectors.load(file)
    from treecaps.rendering.vectors import draw_vectors  # slow to load

    draw_vectors(vectors, out)
    say(str(out))
