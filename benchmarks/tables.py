"""Write the tables of docs/results.md and README.md anew from the figures in benchmarks/results.

    python benchmarks/tables.py

A table stands between ``<!-- NAME -->`` and ``<!-- end -->``; what has not been measured is a
dash.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from treecaps.models.architectures import ARCHITECTURES

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGES = (HERE.parent / "docs" / "results.md", HERE.parent / "README.md")
DATA = (
    ("java-sort", "srcml"),
    ("java-sort", "tree-sitter"),
    ("python-algorithms", "ast"),
    ("poj104", "srcml"),
    ("poj104", "tree-sitter"),
)
WORDS = (
    ("java-sort", "java-sort"),
    ("poj104", "poj104"),
    ("python-algorithms", "python-algorithms"),
    ("atlas", "atlas"),
    ("cross-language", "cross-language"),
    ("cross-language-java-to-cpp", "cross-language, Java to C++"),
    ("cross-language-cpp-to-java", "cross-language, C++ to Java"),
)
"""Data, and what they are called."""
VECTORS = ("parent", "coding", "word2vec", "random")
SIDES = ("as is", "blind")
TABLE_2 = (
    ("dynamic max pooling instead of variable-to-static routing", "max-pooling", "83.43"),
    ("D_cc = 4", "code-size-4", "90.90"),
    ("D_cc = 8", "parent", "92.10"),
    ("D_cc = 12", "code-size-12", "90.33"),
    ("D_cc = 16", "code-size-16", "91.51"),
    ("a secondary capsule layer", "secondary", "92.31"),
    ("TreeCaps", "parent", "92.11"),
)


def load(name: str) -> dict[str, Any]:
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(name: str, key: str = "", *, blind: bool = False) -> str:
    """Return a mean and its sample deviation over seeds; an ensemble's with ``key="ensemble_"``."""
    values = load(name).get(f"{key}accuracy{'_blind' if blind else ''}")
    if not values:
        return "-"
    text = f"{100 * mean(values):.1f}"
    return text + (f" ± {100 * stdev(values):.1f}" if len(values) > 1 else "")


def span(found: dict[str, Any], key: str) -> str:
    low, high = found[f"{key}_quartiles"]
    return f"{found[key]:.1f} ({low:.1f}-{high:.1f})"


def engine() -> str:
    rows = []
    for name in ("java-sort", "poj104"):
        for preset, found in load(f"engine-{name}").get("presets", {}).items():
            for batch in ("1", "16"):
                one = found[batch]
                for what, word in (("train", "train"), ("infer", "classify")):
                    times = [
                        f"{one[f'{what}{side}_ms_per_program']:.2f} ms"
                        for side in ("", "_unshared", "_naive")
                    ]
                    ratios = [span(one, f"{what}_ratio"), span(one, f"{what}_ratio_unshared")]
                    rows.append([name, f"`{preset}`", batch, word, *times, *ratios])
    header = ("data", "preset", "batch", "what", "engine", "without sharing", "naive")
    return table((*header, "naive / engine", "without sharing / engine"), rows)


def presets() -> str:
    found = load("engine-java-sort").get("presets", {})
    names = list(next(iter(found.values()))["settings"]) if found else []
    settings = [one["settings"] for one in found.values()]
    rows = [[f"`{name}`", *(spell(one[name]) for one in settings)] for name in names]
    return table(("option", *(f"`{name}`" for name in found)), rows)


def spell(value: Any) -> str:
    """Write a value as ``--set`` takes it."""
    if isinstance(value, list):
        return ",".join(map(str, value)) or '""'
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def sizes() -> str:
    rows = [
        [
            f"{row['nodes']:,}",
            f"{row['distinct_windows']:,}",
            f"{row['infer_ms']:.1f} ms",
            f"{row['infer_memory_mb']:.0f} MB",
            f"{row['train_ms']:.1f} ms",
            f"{row['train_memory_mb']:.0f} MB",
        ]
        for row in load("engine-poj104")["sizes"]
    ]
    return table(("nodes", "distinct windows", "classify", "memory", "train", "memory"), rows)


def epoch() -> str:
    found = load("engine-poj104")["epoch"]
    return (
        f"One epoch of poj104 ({found['programs']:,} programs) with sharing the windows of all"
        f" trees and one\nvalidation: {found['seconds']:.0f} s,"
        f" peak memory {found['peak_memory_mb']:,} MB."
    )


def kinds() -> str:
    rows = []
    for data, frontend in DATA:
        name = f"accuracy-{data}-{frontend}"
        found = load(f"{name}-default")
        several = "ensemble" in found and len(found["accuracy"]) == 1
        single = percent(f"{name}-default") + (" (mean of 3)" if several else "")
        machines = [percent(f"{name}-svm{depth}") for depth in (2, 3)]
        together = percent(f"{name}-default", "ensemble_")
        epochs = str(len(found["curves"]["loss"])) if found else "-"
        rows.append([data, frontend, *machines, single, together, epochs])
    header = ("data", "front end", "SVM, windows of depth 2", "depth 3", "preset `default`")
    return table((*header, "ensemble of 3", "epochs"), rows)


def words() -> str:
    rows = []
    for data, what in WORDS:
        name = f"accuracy-{data}-tokens"
        row = [what]
        for model, key in (
            ("svm", ""),
            ("svm-renamed", ""),
            ("default", ""),
            ("default", "ensemble_"),
            ("start", ""),
        ):
            pair = [percent(f"{name}-{model}", key, blind=blind) for blind in (False, True)]
            row.append(" / ".join(pair) if pair != ["-", "-"] else "-")
        rows.append(row)
    machines = ("token SVM", "the same, trained on blind programs too")
    networks = ("treecaps", "ensemble of 3", "fine-tuned from atlas")
    return table(("data", *machines, *networks), rows)


def paper() -> str:
    rows = [
        [data, frontend, *(percent(f"accuracy-{data}-{frontend}-paper-{v}") for v in VECTORS)]
        for data, frontend in DATA
    ]
    return table(("data", "front end", *(f"`{v}`" for v in VECTORS)), rows)


def table2() -> str:
    rows = [
        [what, percent(f"accuracy-java-sort-srcml-paper-{name}"), printed]
        for what, name, printed in TABLE_2
    ]
    return table(("variant", "here", "in the paper"), rows)


def models() -> str:
    speeds = load("models-poj104").get("models", {})
    rows = []
    for name in ARCHITECTURES:
        row = [f"`{name}`"]
        for data in ("java-sort", "poj104"):
            file = f"accuracy-{data}-" + (
                f"model-{name}" if name != "treecaps" else "tokens-default"
            )
            pair = [percent(file, blind=blind) for blind in (False, True)]
            row.append(" / ".join(pair) if pair != ["-", "-"] else "-")
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


def retrieval() -> str:
    found = load("retrieval-poj104")
    rows = []
    for name, row in found["map_at_r"].items():
        texts = [f"{row[side]:.1f}" for side in SIDES]
        if name.startswith("trained") and len(found["seeds"]) > 1:
            every = [[one[side] for one in found["seeds"]] for side in SIDES]
            texts = [f"{text} ± {stdev(some):.1f}" for text, some in zip(texts, every, strict=True)]
        rows.append([name, *texts])
    return table(("MAP@R in per cent", *SIDES), rows)


def index() -> str:
    rows = []
    for name, row in load("index-atlas-poj104")["kinds"].items():
        low, high = row["query_ms_5_to_95"]
        replaced = row["replace_1000_seconds"]
        rows.append(
            [
                name,
                f"{row['build_seconds']:.1f} s",
                f"{row['query_ms']:.1f} ms ({low:.1f}-{high:.1f})",
                f"{row['recall_at_10']:.3f}",
                f"{row['megabytes']:,.0f} MB",
                "-" if replaced is None else f"{replaced:.1f} s",
            ]
        )
    return table(("kind", "build", "search", "recall@10", "on disk", "replace 1,000"), rows)


def serve() -> str:
    rows = []
    for clients, found in load("serve")["clients"].items():
        ratio = found["ratio"]
        text = f"{ratio['median']:.1f} ({ratio['least']:.1f}-{ratio['most']:.1f})"
        for side, word in (("batched", "together"), ("unbatched", "one by one")):
            row = found[side]
            times = [f"{row[key]:,.0f} ms" for key in ("p50_ms", "p95_ms", "p99_ms")]
            alone = side == "unbatched"
            rows.append(
                [
                    "" if alone else clients,
                    word,
                    f"{row['requests_per_second']:,.0f}",
                    "" if alone else text,
                    *times,
                    f"{row['cpu_ms']:.1f} ms",
                ]
            )
    header = ("clients", "programs looked at", "requests/s", "ratio", "50th percentile", "95th")
    return table((*header, "99th", "processor time a request"), rows)


def fuzz() -> str:
    found = load("fuzz")
    names = ("inputs", "timeouts", "crashes", "hangs", "exceptions", "invariants")
    return table(names, [[f"{found[name]:,}" for name in names]])


def against() -> str:
    rows = []
    for job, row in load("against").get("jobs", {}).items():
        low, high = row["quartiles"]
        rows.append(
            [
                job,
                f"{row['before']:.2f} s",
                f"{row['now']:.2f} s",
                f"{row['ratio']:.2f} ({low:.2f}-{high:.2f})",
            ]
        )
    return table(("what", "before", "now", "ratio"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "engine": engine,
    "presets": presets,
    "sizes": sizes,
    "epoch": epoch,
    "kinds": kinds,
    "words": words,
    "models": models,
    "paper": paper,
    "table 2": table2,
    "retrieval": retrieval,
    "index": index,
    "serve": serve,
    "fuzz": fuzz,
    "against": against,
}


def fill_in() -> dict[Path, str]:
    """Return the pages with all tables written anew."""
    written: set[str] = set()
    pages = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, make in TABLES.items():
            place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
            if place.search(text):
                text = place.sub(make().replace("\\", r"\\") + "\n", text, count=1)
                written.add(name)
        pages[page] = text
    if missing := set(TABLES) - written:
        raise SystemExit(f"no page has a place for {', '.join(sorted(missing))}")
    return pages


def main() -> None:
    for page, text in fill_in().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
