"""Train the models that come with the package, and put them where it looks for them.

    python benchmarks/bundle.py --data DIR --only algorithms

``DIR`` holds the data sets, each a folder with ``train.jsonl.gz`` and ``val.jsonl.gz``. Networks
learn from the training programs of all data sets of a model; the validation programs choose the
epoch and calibrate, and are what the model card's figures are of. Training programs that are
copies, or nearly, of validation programs are left out.

``algorithms`` learns its classes first, and then also from background what it does not know.

``similar`` learns similarity, from solutions of programming problems, problems 1 to 64 of
``poj104`` among them, and from implementations of algorithms; its validation programs solve other
problems. It learns in two stages too.

``--init-from FOLDER`` names what a model has learned first, where that is there already.

``--only atlas --out FOLDER`` trains a model that does not come with the package: it has seen
nothing of the other data sets, nor copies, so that ``accuracy.py --init-from`` may begin with it.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from treecaps.data.corpus import Corpus
from treecaps.data.duplicates import find_copies
from treecaps.data.sequences import Joined
from treecaps.inference.retrieval import evaluate_retrieval
from treecaps.models.bundled import HOME
from treecaps.models.trained import TrainedModel
from treecaps.nn.memory import tune_malloc
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train

OTHERS = ("java-sort", "python-algorithms", "cross-language")
MODELS: dict[str, tuple[str, ...]] = {
    "algorithms": ("atlas", *OTHERS),
    "poj104": ("poj104",),
    "similar": ("problems", "poj104", "atlas"),
    "atlas": ("atlas",),
}
VALIDATION: dict[str, tuple[str, ...]] = {"similar": ("problems",)}
"""The data sets that validate a model, if not all that it learns from."""
BUNDLED = ("algorithms", "poj104", "similar")
TASKS = {"similar": "similarity"}
"""What models learn, if not classes."""
BACKGROUND = {"algorithms": "ordinary"}
"""Programs of none of the classes."""
SETTINGS: dict[str, tuple[str, ...]] = {
    "algorithms": ("epochs=6", "learning_rate=0.002"),
    "poj104": ("epochs=6", "ordinary_background=false"),
    "similar": ("batch_size=512", "window_dropout=0.15", "learning_rate=0.004", "epochs=12"),
    "atlas": ("ordinary_background=false",),
}
POJ_PROBLEMS, POJ_PROGRAMS = 64, 400
"""The other problems are for validation and test, as CodeXGLUE divides them; and how many programs
of each there are."""
FIRST: dict[str, tuple[str, ...]] = {
    "algorithms": (
        "hidden=64,64",
        "channels=16",
        "statics=2",
        "gate_capsules=true",
        "epochs=12",
        "ordinary_background=false",
    ),
    "similar": ("statics=1", "windows=0", "batch_size=512", "window_dropout=0.3", "epochs=12"),
}
"""Settings of a training before the other, at higher rates. For ``algorithms``, which learns its
classes alone there, three convolutions and 16 channels of two static capsules do as well as five
and 64 of one, and take half the time. For ``similar``, three convolutions and 32 channels are too
few."""
LABELS = {
    "bubblesort": "bubble-sort",
    "linkedlist": "linked-list",
    "mergesort": "merge-sort",
    "quicksort": "quick-sort",
}
"""Other names of classes, and what they are called here."""
TITLES = {"poj104": Path(__file__).with_name("poj104_titles.json")}
"""What classes are in words, where their names do not say."""


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield {**row, "label": LABELS.get(row["label"], row["label"])}


def merge(data: Path, names: tuple[str, ...], folder: Path) -> None:
    """Write the programs of several data sets into one, under one set of labels."""
    for part in ("train", "val"):
        with gzip.open(folder / f"{part}.jsonl.gz", "wt", encoding="utf-8") as merged:
            for name in names:
                for row in rows_of(data / name / f"{part}.jsonl.gz"):
                    merged.write(json.dumps({**row, "id": f"{name}/{row['id']}"}) + "\n")
        print(f"{part}: {', '.join(names)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", choices=MODELS, help="train this model alone")
    parser.add_argument("--out", type=Path, default=HOME)
    parser.add_argument("--init-from", type=Path, help="the model of the first training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    for name in [options.only] if options.only else BUNDLED:
        bundle(name, options)


def bundle(name: str, options: Any) -> None:
    task = TASKS.get(name, "classification")
    default = get_preset("default", task=task)
    preset = apply_settings(default, [*SETTINGS[name], *options.set])

    def tell(member: int, figures: dict[str, Any]) -> None:
        print(name, member, figures, file=sys.stderr, flush=True)

    if task == "similarity":
        sources = [Corpus.build(options.data / one / "train.jsonl.gz") for one in MODELS[name]]
        # The validation programs have no problem in common with them, and no near copies.
        (val,) = (options.data / one / "val.jsonl.gz" for one in VALIDATION[name])
        learn = partial(
            train,
            Joined(sources),
            [*sources[0].labels, *problems_of(sources[1]), *sources[2].labels],
            val=Corpus.build(val),
            on_epoch=tell,
            seed=options.seed,
        )
        first = options.init_from or learn(preset=apply_settings(default, FIRST[name]))
        learn(preset=preset, init_from=first).save(options.out / name, half=True)
        add_maps(name, options, val)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        merge(options.data, MODELS[name], folder)
        corpus, val = (Corpus.build(folder / f"{part}.jsonl.gz") for part in ("train", "val"))
        unseen = [val]
        if name == "atlas":
            parts = [(other, part) for other in OTHERS for part in ("train", "val")]
            unseen += [Corpus.build(options.data / o / f"{part}.jsonl.gz") for o, part in parts]
        copied: set[int] = set()
        for other in unseen:
            copies = find_copies(corpus, other)
            copied |= {*copies.exact, *copies.same_tree, *copies.near}
        labels = [None if row in copied else label for row, label in enumerate(corpus.labels)]
        learn = partial(train, corpus, labels, val=val, on_epoch=tell, seed=options.seed)
        first = options.init_from if name in FIRST else None
        if name in FIRST and not first:
            first = learn(preset=apply_settings(default, FIRST[name]))
        background, val_background = backgrounds(name, options.data)
        model = learn(
            preset=preset,
            init_from=first,
            background=background,
            val_background=val_background,
        )
        model.save(options.out / name, half=True)
        add_scores(name, options, folder / "val.jsonl.gz")


def problems_of(poj104: Corpus) -> list[str | None]:
    """Return the labels of some programs of the problems of ``poj104`` that may be learned from."""
    seen: Counter[str] = Counter()
    labels: list[str | None] = []
    for label in poj104.labels:
        assert label
        seen[label] += 1
        taken = int(label) <= POJ_PROBLEMS and seen[label] <= POJ_PROGRAMS
        labels.append(f"poj104-{label}" if taken else None)
    return labels


def backgrounds(name: str, data: Path) -> tuple[Corpus | None, Corpus | None]:
    """Return what a classifier learns not to know, if it does, for training and validation."""
    if name not in BACKGROUND:
        return None, None
    home = data / BACKGROUND[name]
    return Corpus.build(home / "train.jsonl.gz"), Corpus.build(home / "val.jsonl.gz")


def add_scores(name: str, options: Any, data: Path) -> None:
    """Write into the card of a model how well it does on which validation programs."""
    model = TrainedModel.load(options.out / name)
    val, blind = (
        Corpus.build(data, frontend=model.frontend, comments=model.comments, blind=blind)
        for blind in (False, True)
    )
    guesses = [
        [model.labels[number] for number in lengths.argmax(1).tolist()]
        for lengths in (model.scores(model.read_trees(corpus)) for corpus in (val, blind))
    ]
    rows = [
        {"program": program, "language": language, "label": label, "as is": one, "blind": other}
        for program, language, label, one, other in zip(
            val.ids, val.languages, val.labels, *guesses, strict=True
        )
    ]
    by_class = by(rows, lambda row: row["label"], "class")
    for line in by_class:
        wrong = Counter(
            row["as is"]
            for row in rows
            if row["label"] == line["class"] and row["as is"] != row["label"]
        )
        line["taken for"] = ", ".join(f"{label} ({n})" for label, n in wrong.most_common(3))
    scores = {
        "Validation data": by(rows, lambda row: row["program"].partition("/")[0], "data"),
        "Languages": by(rows, lambda row: row["language"], "language"),
        "Weakest classes": sorted(by_class, key=lambda line: line["as is"])[:15],
    }
    save_scores(name, model, options, scores)


def add_maps(name: str, options: Any, data: Path) -> None:
    """Write into the card of a model for similarity how well it finds validation programs."""
    model = TrainedModel.load(options.out / name)
    corpora = {view: Corpus.build(data, blind=view == "blind") for view in ("as is", "blind")}
    found = {view: evaluate_retrieval(model, corpus) for view, corpus in corpora.items()}
    rows = [
        {
            "candidates": title,
            **{view: round(getattr(one, f"map_at_r{kind}"), 3) for view, one in found.items()},
        }
        for title, kind in (
            ("all", ""),
            ("of the same language", "_within"),
            ("of other languages", "_across"),
        )
    ]
    save_scores(name, model, options, {"MAP@R on validation data": rows})


def save_scores(
    name: str, model: TrainedModel, options: Any, scores: dict[str, list[dict[str, Any]]]
) -> None:
    """Write scores into the card of a model."""
    names = {"validation": VALIDATION[name]} if name in VALIDATION else {}
    card = {
        **model.card,
        "data": {
            part: {**facts, "name": ", ".join(names.get(part, MODELS[name]))}
            for part, facts in model.card["data"].items()
        },
        "scores": scores,
        **({"titles": json.loads(TITLES[name].read_text())} if name in TITLES else {}),
        "command": f"python benchmarks/bundle.py --data DIR --only {name}"
        + (" --init-from FOLDER" if options.init_from else "")
        + "".join(f" --set {setting}" for setting in options.set)
        + (f" --seed {options.seed}" if options.seed else ""),
    }
    replace(model, card=card).save(options.out / name, half=True)
    for title, lines in scores.items():
        print(title, *lines, sep="\n", file=sys.stderr)


def by(
    rows: list[dict[str, Any]], key: Callable[[dict[str, Any]], str], name: str
) -> list[dict[str, Any]]:
    """Return the accuracy of groups of answers."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [
        {
            name: group,
            "programs": len(members),
            **{
                kind: round(sum(row[kind] == row["label"] for row in members) / len(members), 3)
                for kind in ("as is", "blind")
            },
        }
        for group, members in sorted(groups.items())
    ]


if __name__ == "__main__":
    main()
