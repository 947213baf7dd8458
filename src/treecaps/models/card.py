"""The model card: what a person should know of a trained model, in Markdown."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treecaps.models.settings import show
from treecaps.text import to_one_line

_CLASSES = 200


def upgrade_card(card: Any) -> Any:
    """Return a card with today's names: the first versions called metrics figures."""
    if not isinstance(card, dict) or "figures" not in card:
        return card
    others = {name: value for name, value in card.items() if name != "figures"}
    return {**others, "metrics": card["figures"]}


def is_card(card: Any) -> bool:
    """Whether a card has the parts that are read of it, and each is of its type."""
    return (
        isinstance(card, dict)
        and _holds(card.get("data", {}), _is_record)
        and _holds(card.get("metrics", {}), _is_number)
        and _holds(card.get("scores", {}), _is_table)
        and _holds(card.get("versions", {}), lambda version: isinstance(version, str))
        and isinstance(card.get("command", ""), str)
        and _is_use(card.get("use", {"summary": "", "commands": []}))
        and ("run" not in card or _is_of_training(card))
    )


def _is_use(use: Any) -> bool:
    """Whether a card says in words what the model is for, and by which commands."""
    match use:
        case {"summary": str(), "commands": [*commands]}:
            return all(isinstance(command, str) for command in commands)
    return False


def _is_of_training(card: dict[str, Any]) -> bool:
    """Whether a card tells what ``treecaps train`` shows."""
    match card:
        case {
            "run": {"seed": int(), "ensemble": int(), "training": dict()},
            "data": {
                "training": {"programs": int(), "classes": int()},
                "validation": {"programs": int()},
            },
            "metrics": {"seconds": _},
            "members": [*members],
        }:
            wanted = {"seed", "epochs", "best_epoch"}
            return all(_is_record(member) and wanted <= member.keys() for member in members)
    return False


def _holds(part: Any, check: Callable[[Any], bool]) -> bool:
    return _is_record(part) and all(map(check, part.values()))


def _is_record(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    # JSON has whole numbers that are larger than any float.
    return isinstance(value, int | float) and not abs(value) > sys.float_info.max


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_record, value))


def describe(config: dict[str, Any], labels: Sequence[str], kinds: int) -> str:
    """Return the card of a model, made of the contents of its ``config.json``."""
    card = config["card"]
    metrics = card.get("metrics", {})
    parts = ["# A treecaps model"]
    if use := card.get("use"):
        commands = "\n".join(map(_plain, use["commands"])).replace("MODEL", ".")
        parts += [_plain(use["summary"]), *([f"```sh\n{commands}\n```"] if commands else [])]
    if labels:
        more = ", ..." if len(labels) > _CLASSES else "."
        parts += ["Classes: " + ", ".join(map(_cell, labels[:_CLASSES])) + more]
    if titles := card.get("titles"):
        parts += ["## Classes", _table(("class", "what it is"), titles.items())]
    if data := card.get("data"):
        parts += ["## Data", _table(("", *data), _rows(data.values()))]
    if metrics:
        parts += ["## Metrics", _table(("metric", ""), [(_words(n), metrics[n]) for n in metrics])]
    for title, rows in card.get("scores", {}).items():
        parts += [
            f"## {_plain(title)}",
            _table(tuple(rows[0]), [tuple(row.values()) for row in rows]),
        ]
    parts += [
        "## Network",
        f"{len(config['weights'])} network(s), {kinds} kinds of nodes,"
        f" front end {config['frontend']}"
        f"{', with comments' if config['comments'] else ''}.",
        _table(("option", "value"), config["network"].items()),
    ]
    if run := card.get("run"):
        seeds = {"seed": run["seed"], "ensemble": run["ensemble"]}
        options = {**run.get("task", {}), **run["training"], **seeds}
        parts += ["## Training", _table(("option", "value"), options.items())]
    if command := card.get("command"):
        parts += ["```sh\n" + _plain(command) + "\n```"]
    versions = {"treecaps": config["treecaps"], **card.get("versions", {})}
    parts += ["## Versions", _table(("package", "version"), versions.items())]
    return "\n\n".join(parts) + "\n"


def _rows(columns: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    columns = list(columns)
    names = dict.fromkeys(name for column in columns for name in column)
    return [(_words(name), *(column.get(name, "") for column in columns)) for name in names]


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else show(value)
    return _plain(text).replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    """Keep other people's words on one line and out of code blocks."""
    return to_one_line(text).replace("```", "'''")
