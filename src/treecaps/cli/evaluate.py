"""``treecaps evaluate``."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treecaps.cli.options import cache_option, cluster_options, json_option, program_options
from treecaps.cli.output import (
    add_row,
    fail,
    new_table,
    note,
    note_sources,
    progress,
    say_json,
    say_table,
    tell_more,
)
from treecaps.errors import Failure, naming_extra

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.data.dataset import DataSet
    from treecaps.inference.evaluate import Evaluation
    from treecaps.inference.retrieval import Retrieval
    from treecaps.models.trained import TrainedModel

    Scores = Evaluation | Retrieval

_ROWS = 40
_MISTAKES = 10
_FIGURES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "map_at_r": "MAP@R",
    "map_at_r_within": "MAP@R within a language",
    "map_at_r_across": "MAP@R across languages",
}
"""The figures that there may be, and what they are called."""


@click.command("evaluate")
@click.argument("folder", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("path", metavar="DATA", type=click.Path(path_type=Path))
@click.option(
    "--blind",
    is_flag=True,
    help="Score a second time with all names replaced, without comments and docstrings.",
)
@click.option(
    "--confusion",
    metavar="PICTURE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw which classes are taken for which into this file, .png or .svg.",
)
@program_options
@cluster_options
@cache_option
@json_option
def command(
    folder: Path,
    path: Path,
    blind: bool,
    confusion: Path | None,
    language: str | None,
    max_bytes: int,
    workers: "Workers | None",
    cache: Path | None,
    as_json: bool,
) -> int:
    """Score a trained model on programs whose classes are known.

    MODEL is the folder of a trained model, which also says how programs are parsed. DATA is a
    folder with one sub-folder per class, a JSON Lines file or a Parquet file, as for treecaps
    data; it should hold none of the programs that the model was trained on.

    Accuracy is the share of programs that got their class. Of a model for similarity, MAP@R tells
    how well each program finds the others of its class: among all, among those of its language, and
    among those of other languages. Programs that cannot be read or parsed are in no figure; they
    are counted beside.
    """
    if confusion:
        from treecaps.rendering.pictures import check_picture

        check_picture(confusion)
    from treecaps.data.dataset import DataSet
    from treecaps.models.trained import load
    from treecaps.nn.memory import tune_malloc
    from treecaps.tasks import check_answers, get_task

    tune_malloc()
    model = load(folder)
    # What has no classes has embeddings, and these find others.
    if confusion or "embeddings" not in get_task(model.task).answers:
        check_answers(model, "classes")
    data = DataSet(path, language=language, max_bytes=max_bytes)
    note_sources(path, data.sources)
    scores, parse_ms = _score(model, data, workers, cache)
    other = _score(model, data, workers, cache, blind=True)[0] if blind else None
    if confusion:
        from treecaps.rendering.confusion import draw_confusion

        draw_confusion(scores, confusion, title=f"{folder.resolve().name} on {path.name}")
    if as_json:
        say_json(_to_dict(path.name, scores, parse_ms, other))
    else:
        _print(path.name, scores, parse_ms, other)
    return 1 if scores.failed or (other and other.failed) else 0


def _score(
    model: "TrainedModel",
    data: "DataSet",
    workers: "Workers | None",
    cache: Path | None,
    *,
    blind: bool = False,
) -> "tuple[Any, float | None]":
    """Return scores, and the milliseconds that parsing a program took unless it was done before.

    The scores are an ``Evaluation``, or a ``Retrieval`` for a model that has no classes.
    """
    with naming_extra("evaluate", "train"):
        from treecaps.data.corpus import Corpus
        from treecaps.inference.evaluate import evaluate
        from treecaps.inference.retrieval import evaluate_retrieval
        from treecaps.tasks import get_task

    has_classes = "classes" in get_task(model.task).answers
    what = f"{data.path.name}, blind" if blind else data.path.name
    parsed = False
    with progress(f"parsing {what}") as advance:

        def step(done: int, share: float) -> None:
            nonlocal parsed
            parsed = True
            advance(share, f"{done:,} programs")

        begun = time.perf_counter()
        corpus = Corpus.build(
            data,
            frontend=model.frontend,
            comments=model.comments,
            blind=blind,
            workers=workers,
            cache=cache,
            progress=step,
        )
        seconds = time.perf_counter() - begun
    with progress(f"{'classifying' if has_classes else 'embedding'} {what}") as advance:
        score: Callable[..., Any] = evaluate if has_classes else evaluate_retrieval
        scores = score(model, corpus, step=lambda share: advance(share, ""))
    # Trees that come from the cache were parsed another day.
    return scores, 1000 * seconds / corpus.about["programs"] if parsed else None


def _to_dict(name: str, scores: "Scores", parse_ms: float | None, blind: Any) -> dict[str, Any]:
    report = {"data": name, **scores.to_dict(), "parse_ms_per_program": parse_ms}
    for key in (*_FIGURES, "programs", "failed") if blind else ():
        if key in report:
            report[f"{key}_blind"] = getattr(blind, key)
    return report


def _print(name: str, scores: Any, parse_ms: float | None, blind: Any) -> None:
    columns = ("as it is", "blind", "points")[: 3 if blind else 1]
    table = new_table(name, *columns, numbers=columns)
    for key, title in _FIGURES.items():
        values = [getattr(found, key, None) for found in (scores, blind) if found]
        known = [value for value in values if value is not None]
        if known:
            cells = ["-" if value is None else f"{value:.2%}" for value in values]
            if len(known) == 2:
                cells.append(f"{100 * (known[1] - known[0]):+.2f}")
            add_row(table, title, *cells)
    for title, key in (
        ("programs", "programs"),
        ("failed, and in no figure", "failed"),
        ("without a label, left out", "unlabelled"),
    ):
        counts = [getattr(found, key) for found in (scores, blind) if found]
        if any(counts):
            add_row(table, title, *(f"{count:,}" for count in counts))
    times = [found.ms_per_program for found in (scores, blind) if found]
    has_classes = hasattr(scores, "confusion")
    what = "classify" if has_classes else "embed"
    add_row(table, f"ms to {what} a program", *(f"{value:.2f}" for value in times))
    if parse_ms is not None:
        add_row(table, "ms to parse a program", f"{parse_ms:.2f}")
    say_table(table)
    if has_classes:
        _print_answers(scores)
    _print_failures(scores)


def _print_answers(scores: "Evaluation") -> None:
    """Print how well each class is told, and what is taken for what."""
    _print_classes(scores)
    _print_mistakes(scores)
    if scores.unknown_labels:
        count = sum(scores.unknown_labels.values())
        names = list(scores.unknown_labels)
        more = ", ..." if len(names) > _ROWS else ""
        note(
            f"{count:,} programs are of classes that the model was not trained on, and count as"
            f" wrong: {', '.join(names[:_ROWS])}{more}"
        )


def _print_failures(scores: "Scores") -> None:
    for failure in scores.failures[:_ROWS]:
        others = failure["programs"] - 1
        more = f" (and {others:,} more)" if others else ""
        first = Failure(failure["ids"][0], failure["code"], failure["message"])
        fail(first.id, first.message + more, first.arguments)
    if len(scores.failures) > _ROWS:
        note(tell_more(len(scores.failures) - _ROWS, "reasons"))


def _print_classes(scores: "Evaluation") -> None:
    columns = ("programs", "precision", "recall", "F1")
    table = new_table("class, worst first", *columns, numbers=columns)
    for score in sorted(scores.classes, key=lambda score: score.f1)[:_ROWS]:
        metrics = (f"{value:.2f}" for value in (score.precision, score.recall, score.f1))
        add_row(table, score.label, f"{score.programs:,}", *metrics)
    say_table(table, len(scores.classes) - _ROWS, "classes")


def _print_mistakes(scores: "Evaluation") -> None:
    mistakes = scores.mistakes()
    if not mistakes:
        return
    table = new_table("most confused", "taken for", "programs", numbers=("programs",))
    for label, answer, count in mistakes[:_MISTAKES]:
        add_row(table, label, answer, f"{count:,}")
    say_table(table, len(mistakes) - _MISTAKES, "pairs")
