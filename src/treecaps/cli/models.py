"""``treecaps models``."""

from typing import Any

import click

from treecaps.cli.options import json_option
from treecaps.cli.output import add_row, new_table, say, say_json, say_table
from treecaps.tasks import get_task


@click.command("models")
@json_option
def command(as_json: bool) -> int:
    """List the models that come with the package.

    Their names can be given wherever a model's folder can.
    """
    from treecaps.models.bundled import HOME, bundled_names
    from treecaps.models.files import parse_json, read_file

    found = []
    for name in bundled_names():
        folder = HOME / name
        again = "install treecaps again"
        config, labels = (
            parse_json(read_file(folder / file, again), folder / file, again)
            for file in ("config.json", "labels.json")
        )
        found.append(_describe(name, config, labels))
    if as_json:
        say_json(found)
        return 0
    if not found:
        say("no models come with this package; train one with: treecaps train DATA --out FOLDER")
        return 0
    table = new_table("model", "task", "classes", "networks", "metric", "validation", "blind")
    table.show_header = True
    for model in found:
        task = get_task(model["task"])
        shares = (model[f"validation_{task.metric}{kind}"] for kind in ("", "_blind"))
        add_row(
            table,
            model["name"],
            model["task"],
            f"{len(model['classes']):,}" if model["classes"] else "",
            f"{model['networks']}",
            task.title,
            *("" if share is None else f"{share:.1%}" for share in shares),
        )
    say_table(table)
    return 0


def _describe(name: str, config: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    from treecaps.models.card import upgrade_card

    metrics = upgrade_card(config["card"]).get("metrics", {})
    metric = get_task(config["task"]).metric
    return {
        "name": name,
        "task": config["task"],
        "classes": labels,
        "networks": len(config["weights"]),
        "frontend": config["frontend"],
        **{
            f"validation_{metric}{kind}": metrics.get(f"validation_{metric}{kind}")
            for kind in ("", "_blind")
        },
    }
