"""``treecaps data``."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treecaps.cli.flags import add_flags
from treecaps.cli.inputs import build_corpus
from treecaps.cli.options import cache_option, cluster_options, json_option, parser_options
from treecaps.cli.output import add_row, new_table, progress, say_json, say_table
from treecaps.errors import Failure

if TYPE_CHECKING:
    from treecaps.cluster import Workers

_ROWS = 40


@click.command("data")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="Another data set, say the test split: count its programs that have copies in PATH.",
)
@parser_options
@cluster_options
@cache_option
@json_option
def command(
    path: Path,
    against: Path | None,
    frontend: str,
    language: str | None,
    comments: bool,
    max_bytes: int,
    workers: "Workers | None",
    cache: Path | None,
    as_json: bool,
) -> int:
    """Describe a data set: classes, sizes, failures, duplicates.

    PATH is a folder with one sub-folder per class, a JSON Lines file (.jsonl, .jsonl.gz) with
    code, label and perhaps language and id, or a Parquet file with those columns.
    """
    from treecaps.data.summary import summarise

    parse = partial(
        build_corpus,
        frontend=frontend,
        comments=comments,
        language=language,
        max_bytes=max_bytes,
        cache=cache,
        workers=workers,
    )
    corpus = parse(path)
    other = parse(against) if against else None
    with progress("looking for copies") as advance:
        summary = summarise(corpus, against=other, step=lambda share: advance(share, ""))
    if as_json:
        say_json(summary)
    else:
        _print(summary)
    failed = summary["failed"] + summary.get("against", {}).get("failed", 0)
    return 1 if failed else 0


def _print(summary: dict[str, Any]) -> None:
    nodes, duplicates = summary["nodes"], summary["duplicates"]
    facts = new_table("", summary["data"])
    facts.show_header = True
    add_row(facts, "programs", f"{summary['programs']:,}")
    add_row(facts, "failed", f"{summary['failed']:,}")
    add_row(facts, "classes", f"{len(summary['classes']):,}")
    languages = (f"{name} {count:,}" for name, count in summary["languages"].items())
    add_row(facts, "languages", ", ".join(languages))
    add_row(
        facts,
        "nodes",
        f"{nodes['total']:,}: {nodes['min']:,} to {nodes['max']:,} a program,"
        f" median {nodes['median']:,.0f}, mean {nodes['mean']:,.0f}",
    )
    add_row(facts, "kinds", f"{summary['kinds']:,} ({summary['frontend']})")
    broken = summary["broken"]
    add_row(
        facts,
        "broken code",
        f"{broken['programs']:,} programs, {broken['mean_share']:.1%} of their text on average",
    )
    if summary["not_utf8"]:
        add_row(facts, "not UTF-8", f"{summary['not_utf8']:,} programs, with characters replaced")
    for key, title in (
        ("exact", "exact copies"),
        ("same_tree", "same tree"),
        ("near", "near copies"),
        ("conflicting_labels", "copies under other labels"),
    ):
        found = duplicates[key]
        add_row(facts, title, f"{found['programs']:,} programs in {found['groups']:,} groups")
    say_table(facts)
    _print_classes(summary["classes"])
    _print_failures(summary["failures"])
    if "against" in summary:
        _print_copies(summary["against"])


def _print_classes(classes: dict[str, int]) -> None:
    if not classes:
        return
    table = new_table("class", "programs", numbers=("programs",))
    for name, count in list(classes.items())[:_ROWS]:
        add_row(table, name, f"{count:,}")
    say_table(table, len(classes) - _ROWS, "classes")


def _print_failures(failures: list[dict[str, Any]]) -> None:
    if not failures:
        return
    table = new_table("failed", "why", "first", numbers=("failed",))
    for failure in failures[:_ROWS]:
        first = Failure(failure["ids"][0], failure["code"], failure["message"])
        why = add_flags(first.message, first.arguments)
        add_row(table, f"{failure['programs']:,}", why, first.id)
    say_table(table, len(failures) - _ROWS, "reasons")


def _print_copies(copies: dict[str, Any]) -> None:
    table = new_table(
        f"copies in {copies['data']} ({copies['programs']:,} programs)",
        "programs",
        "first",
        numbers=("programs",),
    )
    for key, title in (("exact", "exact"), ("same_tree", "same tree"), ("near", "near")):
        found = copies[key]
        first = " = ".join(found["examples"][0]) if found["examples"] else ""
        add_row(table, title, f"{found['programs']:,}", first)
    say_table(table)
