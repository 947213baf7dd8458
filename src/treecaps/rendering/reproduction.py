"""The page of a reproduction, as Markdown and as HTML that needs nothing beside itself."""

from collections.abc import Sequence
from statistics import mean, pstdev
from typing import Any

from treecaps.inference.confusion import Confusion
from treecaps.rendering import charts
from treecaps.rendering.confusion import to_svg
from treecaps.rendering.page import render
from treecaps.reproduction.plan import Column, Row, Table

Results = dict[tuple[str, str], list[dict[str, Any]]]
"""By row and data set, the results of each seed."""


def cells(row: Row, column: Column, results: Results) -> list[str]:
    """Return what stands in a cell: as is and blind, in the paper, seconds, memory, parameters."""
    found = results.get((row.name, column.name))
    printed = row.printed.get(column.name, "-")
    if not found:
        return ["-", "-", printed, "-", "-", "-"]
    seconds = mean(one["seconds"] for one in found)
    memory = [one["memory_mb"] for one in found if one["memory_mb"] is not None]
    return [
        spell([one["accuracy"] for one in found]),
        spell([one["accuracy_blind"] for one in found]),
        printed,
        f"{seconds:,.0f} s",
        f"{max(memory):,} MB" if memory else "-",
        f"{found[0]['parameters']:,}",
    ]


def count_programs(column: Column, results: Results) -> str:
    """Say how many programs there are, and how many could not be used."""
    found = [each[0] for (_, name), each in results.items() if name == column.name]
    if not found:
        return "Nothing is finished yet."
    one = max(found, key=lambda each: each["train_failed"] + each["failed"])
    failed = one["train_failed"] + one["failed"]
    text = f"{one['train_programs']:,} programs to learn from, {one['programs']:,} to score"
    return text + (f"; {failed:,} could not be parsed." if failed else ".")


def spell(values: Sequence[float]) -> str:
    """Return a mean in per cent, with the deviation of several."""
    text = f"{100 * mean(values):.2f}"
    return text + (f" ± {100 * pstdev(values):.2f}" if len(values) > 1 else "")


_HEAD = ("model", "here", "blind", "in the paper", "training", "memory", "parameters")


def notes(failed: Sequence[str], quick: bool, facts: dict[str, Any]) -> list[str]:
    """Return what a reader has to know first."""
    found = [
        f"Front ends: {facts['frontends']}; seeds: {facts['seeds']}; treecaps {facts['treecaps']}.",
        "Accuracy in per cent on programs that were not trained on: those of the part test, or val"
        " where there is none; ± is the deviation of seeds. A tenth of the training programs chose"
        " the epoch. Blind: every name replaced, comments removed. Memory is what training takes on"
        " top of what was loaded before.",
    ]
    if quick:
        found.insert(
            0,
            "A quick run with a few programs and epochs, to see that it works: its figures say"
            " nothing of the models.",
        )
    return found + [f"Not run: {reason}" for reason in failed]


def to_markdown(
    table: Table, rows: Sequence[Row], results: Results, remarks: list[str], web: str
) -> str:
    """Return the page as Markdown, with a link to the other."""
    parts = [f"# {table.title}", *remarks]
    parts.append(f"Charts, learning curves and confusion matrices are in [{web}]({web}).")
    for column in table.columns:
        lines = [_HEAD, ["---"] * len(_HEAD)]
        lines += [[row.title, *cells(row, column, results)] for row in rows]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts += [f"## {column.title}: {column.name}", count_programs(column, results), text]
    return "\n\n".join(parts) + "\n"


def to_html(table: Table, rows: Sequence[Row], results: Results, remarks: list[str]) -> str:
    """Return the page as HTML: tables, bars, learning curves and confusion."""
    return render(
        "reproduction",
        title=table.title,
        remarks=remarks,
        head=_HEAD,
        columns=[_column(column, rows, results) for column in table.columns],
    )


def _column(column: Column, rows: Sequence[Row], results: Results) -> dict[str, Any]:
    """Return what the page shows of a data set."""
    trained = [row for row in rows if (row.name, column.name) in results]
    found = {row.title: results[row.name, column.name] for row in trained}
    printed = {
        row.title: float(row.printed[column.name].split()[0]) / 100
        for row in trained
        if column.name in row.printed
    }
    means, blind = (
        {name: mean(one[kind] for one in each) for name, each in found.items()}
        for kind in ("accuracy", "accuracy_blind")
    )
    return {
        "title": f"{column.title}: {column.name}",
        "programs": count_programs(column, results),
        "rows": [(row.title, *cells(row, column, results)) for row in rows],
        "accuracy": charts.bars(means, printed),
        "blind": charts.bars(blind, {}),
        "curves": charts.curves({name: each[0]["validation"] for name, each in found.items()}),
        "confusions": [
            (name, to_svg(Confusion(each[0]["labels"], each[0]["confusion"])))
            for name, each in found.items()
        ],
    }
