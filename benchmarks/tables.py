"""Write all figures of README.md and docs/*.md anew from the files in benchmarks/results.

    python benchmarks/tables.py

A table stands between ``<!-- NAME -->`` and ``<!-- end -->``; what has not been measured is a
dash. Figures in sentences are those of ``values.py``.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import speeds
from values import (
    HERE,
    fill_in_figures,
    load,
    load_card,
    percent,
    spread,
    table,
    without_figures,
)

from treecaps.models.architectures import ARCHITECTURES

PAGES = (HERE.parent / "README.md", *sorted((HERE.parent / "docs").glob("*.md")))
WORDS = ("java-sort", "python-algorithms", "cross-language")
"""Data on which networks with sub-tokens were trained."""
PAPER = (
    ("java-sort", "srcml", "92.11"),
    ("python-algorithms", "ast", "100.00"),
)
"""Data of the paper, with its front ends and what it prints for TreeCaps."""
SIDES = ("as is", "blind")
CONFUSED = 2
"""Classes that are taken for each other no more often are not in the table."""
PUBLISHED = (
    ("tbcnn", "poj104", "94.0", "accuracy-poj104-model-tbcnn", "Mou et al. 2016"),
    ("tbcnn", "poj104", "79.4", "accuracy-poj104-model-tbcnn", "the TreeCaps paper"),
    ("tbcnn", "java-sort", "75.0", "accuracy-java-sort-model-tbcnn", "the TreeCaps paper"),
    ("ggnn", "poj104", "86.5", "accuracy-poj104-model-ggnn", "the TreeCaps paper"),
    ("ggnn", "java-sort", "85.0", "accuracy-java-sort-model-ggnn", "the TreeCaps paper"),
    ("astnn", "poj104", "98.2", "accuracy-poj104-model-astnn", "Zhang et al. 2019"),
)
"""What others printed, and the file of the same model here."""


def both(name: str, key: str = "") -> str:
    """Return an accuracy as is and blind."""
    pair = [percent(name, key, blind=blind) for blind in (False, True)]
    return " / ".join(pair) if pair != ["-", "-"] else "-"


def words() -> str:
    rows = []
    for data in WORDS:
        files = (f"accuracy-{data}-tokens-{model}" for model in ("svm", "svm-renamed", "default"))
        rows.append([data, *map(both, files)])
    machines = ("token SVM", "the same, trained on blind programs too")
    return table(("data", *machines, "treecaps"), rows)


def presets() -> str:
    rows = []
    for data, frontend, printed in PAPER:
        for preset in ("paper", "published"):
            name = f"accuracy-{data}-{frontend}-{preset}"
            if found := load(name):
                learned = f"{100 * mean(found['train_accuracy']):.1f}"
                epochs = str(len(found["curves"]["loss"]))
                row = [data, frontend, f"`{preset}`", percent(name), printed, learned, epochs]
                rows.append(row)
    header = ("data", "front end", "preset", "accuracy", "in the paper")
    return table((*header, "of its training programs", "epochs"), rows)


def routing() -> str:
    found: dict[str, Any] = load("routing").get("data", {})
    by_setting: dict[tuple[str, ...], dict[str, str]] = {}
    for data, parts in found.items():
        for row in parts["settings"]:
            setting = tuple(str(row[name]) for name in ("a", "r", "t"))
            pair = [spread(row[f"accuracy{side}"], 1, 100) for side in ("", "_blind")]
            by_setting.setdefault(setting, {})[data] = " / ".join(pair)
    rows = [
        [*setting, *(texts.get(data, "-") for data in found)]
        for setting, texts in by_setting.items()
    ]
    return table(("a", "r", "t", *found), rows)


def models() -> str:
    speeds = load("models-poj104").get("models", {})
    rows = []
    for name in ARCHITECTURES:
        row = [f"`{name}`"]
        for data in ("java-sort", "poj104"):
            file = f"accuracy-{data}-" + (
                f"model-{name}" if name != "treecaps" else "tokens-default"
            )
            row.append(both(file))
            if data == "java-sort":
                learned = load(file).get("train_accuracy")
                row.append(f"{100 * min(learned):.1f}" if learned else "-")
        speed = speeds.get(name)
        if speed:
            row += [f"{speed[what]['programs_per_second']:,.0f}" for what in ("train", "infer")]
            row.append(f"{speed['parameters']:,}")
        rows.append(row if speed else [*row, "-", "-", "-"])
    accuracies = ("java-sort", "of its training programs, at least", "poj104")
    return table(("model", *accuracies, "trains on", "classifies", "parameters"), rows)


MAPS = "MAP@R in per cent, as is / blind"


def maps(every: Sequence[dict[str, float]], places: Sequence[str]) -> list[str]:
    """Return MAP@R among several kinds of candidates, as is and blind: the mean of some models."""
    return [
        " / ".join(spread([one[f"{place}, {side}"] for one in every], 1) for side in SIDES)
        for place in places
    ]


def retrieval() -> str:
    found, rows = load("retrieval-problems"), []
    for name, row in found["map_at_r"].items():
        every = found["models"] if name.startswith("trained") else [row]
        rows.append([name, *maps(every, ("all", "within", "across"))])
    header = (MAPS, "all", "of the same language", "of other languages")
    return table(header, rows)


def choices() -> str:
    places = ("all", "across", "leetcode", "atcoder", "codejam", "poj104")
    rows = [[name, *maps(every, places)] for name, every in load("choices")["rows"].items()]
    return table((MAPS, "all", "of other languages", *places[2:]), rows)


def smoothing() -> str:
    rows = []
    for title, row in load("smoothing-problems")["rows"].items():
        cells = (
            " / ".join(f"{row[f'{kind}, {side}']:.1f}" for side in SIDES)
            for kind in ("plain", "smooth")
        )
        rows.append([title, f"{row['programs']:,}", *cells])
    header = ("solutions of a problem", "programs", "plain", "`--smooth`")
    return table(header, rows)


def bundled() -> str:
    rows = [
        [
            f"`{name}`",
            row["data"],
            f"{row['programs']:,}",
            *(f"{100 * row[side]:.1f}" for side in SIDES),
        ]
        for name in ("algorithms", "poj104")
        for row in load_card(name)["scores"]["Validation data"]
    ]
    return table(("model", "data", "programs", *SIDES), rows)


def unknown() -> str:
    before, after = load("unknown-before"), load("unknown-algorithms")
    rows = [
        [
            data,
            f"{row['programs']:,}",
            *(f"{100 * one['known']:.2f}" for one in (before["of no class"][data], row)),
        ]
        for data, row in after["of no class"].items()
    ]
    return table(("code of no class", "programs", "before", "now"), rows)


def kept() -> str:
    before, after = load("unknown-before"), load("unknown-algorithms")
    rows = [
        [data, *(f"{100 * one['kept']:.1f}" for one in (before["of its classes"][data], row))]
        for data, row in after["of its classes"].items()
    ]
    return table(("right answers on", "before", "now"), rows)


def confused() -> str:
    rows = [
        [f"{row['one']}, {row['other']}", f"{row['confused']}", f"{row['programs']}"]
        for row in load("classes-atlas")["pairs"]
        if row["confused"] > CONFUSED
    ]
    return table(("classes", "taken for each other", "programs of both"), rows)


def measures() -> str:
    before, after = load("unknown-before"), load("unknown-algorithms")
    rows = [
        [
            name,
            *(
                text
                for one in (before["measures"][name], row)
                for text in (f"{one['area']:.4f}", f"{100 * one['rate']:.2f}")
            ),
        ]
        for name, row in after["measures"].items()
    ]
    return table(("measure", "area before", "rate before", "area now", "rate now"), rows)


def published() -> str:
    rows = [
        [f"`{model}`", data, printed, f"{100 * mean(load(file)['accuracy']):.1f}", source]
        for model, data, printed, file, source in PUBLISHED
    ]
    return table(("model", "data", "published", "here", "published by"), rows)


def reconstruction() -> str:
    names = ("rebuilt", "mean of the class", "mean of all")
    rows = [
        [
            f"{float(weight):g}",
            *(spread(row[name]["seeds"], 1, 100) for name in ("accuracy", "accuracy_blind")),
            *(spread(row[name]["seeds"], 2) for name in names),
        ]
        for weight, row in load("reconstruction-java-sort")["weights"].items()
    ]
    return table(("weight", "accuracy", "blind", "reconstructed", *names[1:]), rows)


def explanations() -> str:
    rows = []
    for data in ("java-sort", "python-algorithms"):
        areas = load(f"explanations-{data}")["areas"]
        for order in ("gradients", "routing", "random"):
            row = areas[order]
            texts = [spread(row[what]["seeds"], 2) for what in ("deletion", "insertion")]
            rows.append([data, order, *texts])
    header = ("deletion (less is better)", "insertion (more is better)")
    return table(("data", "order", *header), rows)


def dependencies() -> str:
    rows = []
    for language, row in load("dependencies-algorithms")["languages"].items():
        areas = [
            f"{found['area']:.2f} ({100 * found['highest_tenth_that_depends']:.1f} %)"
            for found in (
                row[what]
                for what in ("route together", "route together, untrained", "near in the tree")
            )
        ]
        share = f"{100 * row['share_that_depends']:.1f} %"
        name = f"{language.capitalize()} ({row['data']})"
        rows.append([name, str(row["programs"]), share, *areas])
    header = ("language", "programs", "pairs that depend", "route together")
    return table((*header, "the same, three untrained networks", "near in the tree"), rows)


def clones() -> str:
    keys = ("same_name", "same_name_across_languages", "same_label")
    rows = [
        [
            f"{row['probability']:.0%}".replace("%", " %"),
            f"{row['pairs']:,}",
            *("-" if row[key] is None else f"{100 * row[key]:.0f} %" for key in keys),
        ]
        for row in load("clones-atlas")["thresholds"]
    ]
    header = ("alike from", "pairs", "of the same name", "the same, across languages")
    return table((*header, "of the same class"), rows)


def copies() -> str:
    result = load("copies-problems")
    systems = {"copied": "copied", "dolos": "Dolos", "tfidf": "TF-IDF", "vectors": "alike"}
    rows = [
        [STEPS[row["step"]], *(f"{row['area'][system]:.1f}" for system in systems)]
        for row in result["steps"]
    ]
    return table(("changed", *systems.values()), rows)


STEPS = {
    "layout": "comments and layout",
    "names": "names",
    "constants": "constants",
    "order": "order of functions and statements",
    "expressions": "expressions and branches",
    "loops": "loop forms",
    "functions": "functions taken out",
    "unused": "unused statements added",
    "all": "all of these",
}

TABLES: dict[str, Callable[[], str]] = {
    "engine": speeds.engine,
    "engines": speeds.engines,
    "settings": speeds.settings,
    "sizes": speeds.sizes,
    "authors": speeds.authors,
    "words": words,
    "models": models,
    "presets": presets,
    "routing": routing,
    "retrieval": retrieval,
    "choices": choices,
    "smoothing": smoothing,
    "index": speeds.index,
    "serve": speeds.serve,
    "fuzz": speeds.fuzz,
    "parsing": speeds.parsing,
    "corpora": speeds.corpora,
    "bundled": bundled,
    "unknown": unknown,
    "kept": kept,
    "confused": confused,
    "measures": measures,
    "folder": speeds.folder,
    "start": speeds.start,
    "memory": speeds.memory,
    "published": published,
    "reconstruction": reconstruction,
    "explanations": explanations,
    "dependencies": dependencies,
    "clones": clones,
    "copies": copies,
    "indexing": speeds.indexing,
    "large": speeds.large,
    "shared": speeds.shared,
    "simulation": speeds.simulation,
}

_TABLE = re.compile(r"<!-- ([a-z][a-z0-9 ]*) -->\n.*?<!-- end -->", re.DOTALL)


def fill_in() -> dict[Path, str]:
    """Return the pages with all tables and figures written anew."""
    written: set[str] = set()

    def write(place: re.Match[str]) -> str:
        name = place[1]
        if name not in TABLES:
            raise SystemExit(f"there is no table {name!r}")
        written.add(name)
        return f"<!-- {name} -->\n{TABLES[name]()}\n<!-- end -->"

    pages = {
        page: fill_in_figures(_TABLE.sub(write, page.read_text(encoding="utf-8"))) for page in PAGES
    }
    if missing := set(TABLES) - written:
        raise SystemExit(f"no page has a place for {', '.join(sorted(missing))}")
    return pages


def prose(text: str) -> str:
    """Return a page without the tables and figures that are filled in."""
    return without_figures(_TABLE.sub("", text))


def main() -> None:
    for page, text in fill_in().items():
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
