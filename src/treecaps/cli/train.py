"""``treecaps train``."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treecaps.cli.inputs import build_corpus, tell_failures
from treecaps.cli.options import LazyChoice, cache_option, json_option, parser_options
from treecaps.cli.output import (
    add_row,
    is_terminal,
    new_table,
    note,
    progress,
    say,
    say_json,
    say_table,
)
from treecaps.cli.processes import one_speaks
from treecaps.errors import UsageError

if TYPE_CHECKING:
    from treecaps.data.corpus import Corpus
    from treecaps.models.trained import TrainedModel
    from treecaps.tasks import Task
    from treecaps.training.presets import Preset
    from treecaps.training.train import TrainingProgress


def _architectures() -> list[str]:
    from treecaps.models.architectures import ARCHITECTURES

    return list(ARCHITECTURES)


def _tasks() -> list[str]:
    from treecaps.tasks import TASKS

    return list(TASKS)


class _Command(click.Command):
    """A command whose help lists what --set can set for a model."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from treecaps.models.architectures import get_architecture
        from treecaps.models.settings import show
        from treecaps.tasks import get_task
        from treecaps.training.presets import get_preset, options

        model = ctx.params.get("model") or "treecaps"
        names = list(get_architecture(model).presets)
        rows = []
        for every in zip(*(options(get_preset(name, model)) for name in names), strict=True):
            name, value, text = every[0]
            others = [
                f"{preset}: {show(other)}"
                for preset, (_, other, _) in zip(names[1:], every[1:], strict=True)
                if other != value
            ]
            rows.append((name, f"{text}  [{'; '.join([show(value), *others])}]"))
        with formatter.section(f"Names for --set with --model {model}"):
            formatter.write_dl(rows)
        for name in _tasks()[1:]:
            own = [
                (one.name, f"{one.metadata['help']}  [{show(one.default)}]")
                for one in fields(get_task(name))
            ]
            if own:
                with formatter.section(f"Names for --set with --task {name}"):
                    formatter.write_dl(own)
        formatter.write_paragraph()
        formatter.write_text("Those of another: treecaps train --model NAME --help")


@click.command("train", cls=_Command)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--val",
    type=click.Path(path_type=Path),
    help="Data to choose the best epoch with; a share of DATA by default. Never the test data.",
)
@click.option(
    "--background",
    type=click.Path(path_type=Path),
    help="Programs of none of the classes, in the form of DATA; labels do not matter. The model"
    " learns to call such code unknown. By default, ordinary code that comes with the package"
    " serves.",
)
@click.option(
    "--val-background",
    type=click.Path(path_type=Path),
    help="Others to set the threshold with; a share of --background by default.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder for the model, its checkpoints and logs.",
)
@click.option(
    "--task",
    type=LazyChoice(_tasks),
    default="classification",
    show_default=True,
    help="What is learned: classes, embeddings that are near where classes agree, or bugs.",
)
@click.option(
    "--model",
    type=LazyChoice(_architectures),
    is_eager=True,  # the help is about it
    help="The architecture; treecaps by default, or what --init-from is.",
)
@click.option(
    "--preset",
    metavar="NAME",
    default="default",
    show_default=True,
    help="What the network is and how it is trained: default, or for treecaps also paper (as"
    " printed) and published (as its authors' code does it).",
)
@click.option(
    "--init-from",
    metavar="MODEL",
    type=click.Path(path_type=Path),
    help="Fine-tune a pretrained model: its folder, or the name of a bundled one. All weights but"
    " the head are copied. That pays where programs are few. It decides what the network is.",
)
@click.option(
    "--nodes",
    type=click.Choice(("kinds", "kinds+tokens")),
    help="What the network sees of nodes: their kinds alone, or also the words of names, numbers"
    " and strings. Short for --set nodes=...",
)
@click.option("--epochs", type=int, metavar="N", help="Short for --set epochs=N.")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set an option of the preset; the names are below. May be repeated.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed.",
)
@click.option(
    "--ensemble",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many networks to train and weigh against each other.",
)
@click.option("--resume", is_flag=True, help="Go on with the training that was begun in --out.")
@click.option("--overwrite", is_flag=True, help="Replace the model that is in --out.")
@parser_options
@click.option(
    "--threads",
    type=click.IntRange(min=1, max=max(256, 4 * (os.cpu_count() or 1))),
    default=1,
    show_default=True,
    help="Threads that compute; more pay for large networks on an idle machine.",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="Where to train, as PyTorch names devices: cpu, cuda, cuda:1, mps; or auto: a GPU if there"
    " is one. Under torchrun, each process takes its own.",
)
@click.option(
    "--precision",
    type=click.Choice(("fp32", "bf16")),
    help="What matrices are multiplied in: float32, or bfloat16 where the processor has it. Short"
    " for --set precision=...",
)
@cache_option
@json_option
def command(
    data: Path,
    val: Path | None,
    background: Path | None,
    val_background: Path | None,
    out: Path,
    task: str,
    model: str | None,
    preset: str,
    init_from: Path | None,
    nodes: str | None,
    epochs: int | None,
    settings: tuple[str, ...],
    seed: int,
    ensemble: int,
    resume: bool,
    overwrite: bool,
    threads: int,
    device: str,
    precision: str | None,
    as_json: bool,
    **parsing: Any,
) -> int:
    """Train a classifier, embeddings for search, or a model that finds bugs.

    DATA is a folder with one sub-folder per class, a JSON Lines file (.jsonl, .jsonl.gz) with
    code and label (for bugs: lines and fixed), or a Parquet file with those columns.

    Several processes or computers train one model together:
    torchrun --nproc-per-node 4 -m treecaps train ...
    """
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc
    from treecaps.training import folder
    from treecaps.training.device import check_device
    from treecaps.training.processes import join
    from treecaps.training.source import refuse_background
    from treecaps.training.train import Interrupted

    # This function is long because it has an argument for each option.
    short = {"nodes": nodes, "epochs": epochs, "precision": precision}
    settings += tuple(f"{name}={value}" for name, value in short.items() if value is not None)
    places = {"data": data, "val": val, "background": background, "val_background": val_background}
    options = {"seed": seed, "resume": resume, "overwrite": overwrite, "device": device}
    with join() as processes, one_speaks(processes):
        # Complain now, not after minutes.
        check_device(device, processes)
        chosen, first = _choose_preset(preset, model, task, init_from, settings)
        refuse_background(chosen, background, val_background)
        if processes.is_first:
            folder.check(out, resume=resume, overwrite=overwrite)
        with processes.in_turn():
            corpora = _build_corpora(places, {**parsing, "bugs": chosen.task.data == "bugs"})
        set_num_threads(threads)
        tune_malloc()
        try:
            trained = _train(corpora, chosen, ensemble, folder=out, init_from=first, **options)
            # To torchrun, every status but 0 means that a process failed.
            failed = processes.size == 1 and any(corpus.failures for corpus in corpora.values())
            status = 1 if failed else 0
        except Interrupted as interrupted:
            if interrupted.model is None:
                note("treecaps: interrupted before anything was learned")
                return 130
            note(f"treecaps: interrupted; {out} holds the best until then, --resume goes on")
            trained, status = interrupted.model, 130
        if as_json:
            say_json({"model": str(out), **trained.card})
        else:
            _print(trained, chosen.task, out)
        return status


def _build_corpora(places: dict[str, Path | None], parsing: dict[str, Any]) -> "dict[str, Corpus]":
    """Parse the data that are given, and tell what failed."""
    corpora = {}
    for name, place in places.items():
        if place:
            corpora[name] = build_corpus(place, **parsing)
            tell_failures(place, corpora[name])
    return corpora


def _choose_preset(
    name: str, model: str | None, task: str, init_from: Path | None, settings: tuple[str, ...]
) -> "tuple[Preset, TrainedModel | None]":
    """Return what to train and how, and the pretrained model to begin with."""
    from treecaps.models.trained import load
    from treecaps.training.presets import apply_settings, fine_tuning_preset, get_preset

    first = load(init_from) if init_from else None
    base = (
        fine_tuning_preset(first.config, name, model, task)
        if first
        else get_preset(name, model or "treecaps", task)
    )
    chosen = apply_settings(base, settings)
    _ = chosen.model  # complains if it is not for the task
    if chosen.network != base.network and first:
        raise UsageError(
            f"--init-from {init_from} decides what the network is: only training can be set"
        )
    return chosen, first


def _train(
    corpora: "dict[str, Corpus]", preset: "Preset", ensemble: int, **options: Any
) -> "TrainedModel":
    """Train with a progress bar; ``options`` are those of ``train``."""
    from treecaps.rendering.report import to_html
    from treecaps.training.train import train

    with progress("training") as advance:
        on_step, on_epoch = _reporters(advance, preset.task, ensemble)
        return train(
            corpora["data"],
            val=corpora.get("val"),
            background=corpora.get("background"),
            val_background=corpora.get("val_background"),
            preset=preset,
            ensemble=ensemble,
            command=shlex.join(["treecaps", *sys.argv[1:]]),
            report=to_html,
            on_prepare=lambda what, share: advance(0.0, f"{what}, {share:.0%}"),
            on_step=on_step,
            on_epoch=on_epoch,
            **options,
        )


def _reporters(
    advance: Callable[[float, str], None], task: "Task", ensemble: int
) -> "tuple[Callable[[TrainingProgress], None], Callable[[int, dict[str, Any]], None]]":
    """Return what shows progress: a bar on a terminal, a line for each epoch elsewhere."""
    watched = is_terminal(sys.stderr)
    where = newest = ""

    def on_step(done: "TrainingProgress") -> None:
        nonlocal where
        network = f"network {done.member + 1}/{ensemble}, " if ensemble > 1 else ""
        where = f"{network}epoch {done.epoch}/{done.epochs}"
        advance(done.share, f"{where}, loss {done.loss:.3f}{newest}")

    def on_epoch(_: int, metrics: dict[str, Any]) -> None:
        nonlocal newest
        name, newest = f"val_{task.metric}", ""
        for key, word in ((name, f"validation {task.title}"), (f"{name}_blind", "blind")):
            if metrics.get(key) is not None:
                newest += f", {word} {metrics[key]:.1%}"
        if not watched:
            note(f"{where}: loss {metrics['loss']:.3f}{newest}, {metrics['seconds']:.1f} s")

    return on_step, on_epoch


def _print(model: "TrainedModel", task: "Task", out: Path) -> None:
    facts, metrics = model.card["data"], model.card["metrics"]
    table = new_table("", str(out))
    table.show_header = True
    add_row(
        table,
        "programs",
        f"{facts['training']['programs']:,} for training,"
        f" {facts['validation']['programs']:,} for validation",
    )
    if task.needs_labels:
        add_row(table, "classes", f"{facts['training']['classes']:,}")
    for member in model.card["members"]:
        name = f"epochs, seed {member['seed']}" if len(model.members) > 1 else "epochs"
        add_row(table, name, f"{member['epochs']}, the best was {member['best_epoch']}")
    if len(model.members) > 1:
        add_row(table, "weights", ", ".join(f"{weight:.2f}" for weight in model.engine.weights))
    for row in task.describe(metrics):
        add_row(table, *row)
    add_row(table, "time", f"{metrics['seconds']:.0f} s")
    say_table(table)
    from treecaps.training.folder import REPORT

    folder = shlex.quote(str(out))
    if (out / REPORT).exists():  # not after an interrupt
        say(f"report: {shlex.quote(str(out / REPORT))}")
    for word, line in zip(("next:", "     "), task.commands, strict=False):
        say(f"{word} {line.replace('MODEL', folder)}")
