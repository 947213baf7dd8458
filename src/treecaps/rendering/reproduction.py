"""The pages of a reproduction: Markdown, HTML that needs nothing beside itself, and JSON."""

import json
import re
from collections.abc import Sequence
from statistics import mean, median, stdev
from typing import Any

from treecaps.inference.confusion import Confusion
from treecaps.rendering import charts
from treecaps.rendering.confusion import to_svg
from treecaps.rendering.page import render
from treecaps.reproduction.plan import Column, Metrics, Results, Row, Table
from treecaps.text import replace_surrogates

_HEAD = (
    "model",
    "here",
    "blind",
    "in the paper",
    "epochs",
    "ms a program",
    "training",
    "memory",
    "parameters",
)
_CURVES = ("loss", "validation")
_DIGITS = 4
"""Of the curves in the JSON file."""
_NOT_IN_JSON = ("asked", "command", "labels", "confusion")
"""They are the same for all seeds, or large; the files of the cells have them."""
_NUMBERS = re.compile(r'\[\n[^][{}"]*\]')


def cells(row: Row, column: Column, results: Results) -> list[str]:
    """Return what stands in the columns of a row after the first."""
    found = results.get((row.name, column.name), [])
    memory = [one["memory_mb"] for one in found if one["memory_mb"] is not None]
    ms = row.printed_ms.get(column.name)
    return [
        _spell([one["accuracy"] for one in found]),
        _spell([one["accuracy_blind"] for one in found]),
        row.printed.get(column.name, "-"),
        _spell_epochs(found),
        (f"{median(one['ms'] for one in found):.2f}" if found else "-")
        + (f" (paper: {ms})" if ms else ""),
        f"{mean(one['seconds'] for one in found):,.0f} s" if found else "-",
        f"{max(memory):,} MB" if memory else "-",
        f"{found[0]['parameters']:,}" if found else "-",
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


def _spell(values: Sequence[float]) -> str:
    """Return a mean in per cent, with the sample deviation of several."""
    if not values:
        return "-"
    text = f"{100 * mean(values):.2f}"
    return text + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")


def _spell_epochs(found: Sequence[Metrics]) -> str:
    """Return how many epochs networks were trained, and the preset's number if it is another."""
    if not found:
        return "-"
    trained, asked = found[0]["epochs"], found[0]["preset_epochs"]
    return f"{trained}" if trained == asked else f"{trained} instead of {asked}"


def notes(failed: Sequence[str], quick: bool, facts: dict[str, Any]) -> list[str]:
    """Return what a reader has to know first."""
    found = [
        f"Front ends: {facts['frontends']}; seeds: {facts['seeds']}; treecaps {facts['treecaps']}.",
        "Accuracy in per cent on programs that were not trained on: those of the part test, or val"
        " where there is none; ± is the sample deviation of seeds, and a figure without it is of"
        " one. A tenth of the training programs chose the epoch, the same for all models and seeds."
        " An ensemble consists of the networks of the first three seeds, weighed on that tenth."
        " Blind: every name replaced, comments removed.",
        "Epochs: how many were trained, and how many the preset asks for if that is another number."
        " ms a program: the time from tree to scores of one program at a time, on one CPU core: the"
        " median of up to 200 test programs, each the best of three. Those of the paper are on a"
        " GPU. Training is the time of one network, for an ensemble of all. Memory is what training"
        " takes on top of what was loaded before.",
    ]
    if quick:
        found.insert(
            0,
            "A quick run with a few programs and epochs, to see that it works: its figures say"
            " nothing of the models.",
        )
    return found + [f"Not run: {reason}" for reason in failed]


def to_markdown(table: Table, results: Results, remarks: list[str], name: str) -> str:
    """Return the page as Markdown, with links to the other files of its name."""
    web, data = f"{name}.html", f"{name}.json"
    parts = [f"# {table.title}", *remarks]
    parts.append(
        f"Charts, learning curves and confusion matrices are in [{web}]({web}), the figures of"
        f" every seed in [{data}]({data})."
    )
    for column in table.columns:
        lines = [_HEAD, ["---"] * len(_HEAD)]
        lines += [[row.title, *cells(row, column, results)] for row in table.rows]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts += [f"## {column.title}: {column.name}", count_programs(column, results), text]
    return "\n\n".join(parts) + "\n"


def to_html(table: Table, results: Results, remarks: list[str]) -> str:
    """Return the page as HTML: tables, bars, learning curves and confusion."""
    return render(
        "reproduction",
        title=table.title,
        remarks=remarks,
        head=_HEAD,
        columns=[_column(column, table.rows, results) for column in table.columns],
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


def to_json(table: Table, results: Results, remarks: list[str], facts: dict[str, Any]) -> str:
    """Return all that is behind the page but the confusion matrices, which are large."""
    every = [one for found in results.values() for one in found]
    value = {
        "title": table.title,
        **facts,
        "commands": sorted({one["command"] for one in every if "command" in one}),
        "notes": remarks,
        "rows": [_describe(row, table.columns, results) for row in table.rows],
    }
    text = replace_surrogates(json.dumps(value, indent=1, ensure_ascii=False)) + "\n"
    # A list of numbers takes one line. In JSON a line ends between values only.
    return _NUMBERS.sub(lambda found: "".join(map(str.strip, found[0].split("\n"))), text)


def _describe(row: Row, columns: Sequence[Column], results: Results) -> dict[str, Any]:
    """Return what a model is, what the paper has, and the metrics of each seed by data set."""
    keys = [(row.name, column.name) for column in columns]
    found = {name: results[row, name] for row, name in keys if (row, name) in results}
    value: dict[str, Any] = {
        "name": row.name,
        "title": row.title,
        "model": row.model,
        "preset": row.preset,
        "settings": list(row.settings),
        "ensemble": row.ensemble,
        "paper": row.printed,
        "paper_ms": row.printed_ms,
    }
    for each in found.values():
        asked = each[0]["asked"]
        # Epochs are with the metrics: they may be others on each data set.
        training = {name: one for name, one in asked["training"].items() if name != "epochs"}
        value |= {"network": asked["network"], "training": training}
    value["data"] = {
        column: {
            "frontend": each[0]["asked"]["frontend"],
            "seeds": [_shorten(one) for one in each],
        }
        for column, each in found.items()
    }
    return value


def _shorten(metrics: Metrics) -> Metrics:
    short = {name: value for name, value in metrics.items() if name not in _NOT_IN_JSON}
    for name in _CURVES:
        short[name] = [None if one is None else round(one, _DIGITS) for one in short[name]]
    return short
