"""Tables of time, memory and robustness, for tables.py."""

from collections.abc import Iterator
from statistics import median
from typing import Any

from values import load, table

PARSED = ("poj104-tree-sitter", "poj104-srcml", "atlas-tree-sitter", "python-algorithms")


def engines() -> str:
    found = load("engines")
    rows = [
        [
            f"`{name}`",
            f"{found['megabytes'][name]:,.0f} MB",
            f"{found['start_seconds'][name]:.2f} s",
            f"{found['step_ms'][name]:.0f} ms",
            f"{found['program_ms'][name]:.2f} ms" if name in found["program_ms"] else "-",
        ]
        for name in found["megabytes"]
    ]
    return table(("package", "installed", "import", "a step", "a program, all of it"), rows)


def engine() -> str:
    rows = []
    for preset, found in load("engine-java-sort")["presets"].items():
        for batch in ("1", "16"):
            one = found[batch]
            for what, word in (("train", "train"), ("infer", "classify")):
                times = [
                    f"{one[f'{what}{side}_ms_per_program']:.2f} ms"
                    for side in ("", "_unshared", "_naive")
                ]
                ratios = [span(one, f"{what}_ratio"), span(one, f"{what}_ratio_unshared")]
                rows.append([f"`{preset}`", batch, word, *times, *ratios])
    header = ("preset", "batch", "what", "engine", "without sharing", "naive")
    return table((*header, "naive / engine", "without sharing / engine"), rows)


def span(found: dict[str, Any], key: str) -> str:
    low, high = found[f"{key}_quartiles"]
    return f"{found[key]:.1f} ({low:.1f}-{high:.1f})"


def settings() -> str:
    found = load("engine-java-sort")["presets"]
    values = [one["settings"] for one in found.values()]
    rows = [[f"`{name}`", *(spell(one[name]) for one in values)] for name in values[0]]
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
        for row in load("engine-java-sort")["sizes"]
    ]
    return table(("nodes", "distinct windows", "classify", "memory", "train", "memory"), rows)


def authors() -> str:
    rows = []
    for data in ("java-sort", "poj104"):
        found = load(f"authors-{data}")
        for work in ("classify", "gradient", "train") if found else ():
            one = found[work]
            times = [f"{one[f'{side}_ms']:.1f} ms" for side in ("theirs", "ours", "ours_batch")]
            rows.append(
                [data, work, *times, span(one, "ratio_ours"), span(one, "ratio_ours_batch")]
            )
    header = ("data", "what", "theirs", "ours", "ours, 16 together")
    return table((*header, "theirs / ours", "theirs / ours, 16 together"), rows)


def parsing() -> str:
    rows = []
    for data, frontend, row in parsed():
        speeds = [
            f"{row[what]['programs_per_s']:,}/s"
            for what in ("bare", "tree", "one_core", "two_cores")
        ]
        ratios = [
            "{median:.2f} ({low:.2f}-{high:.2f})".format(**row[what])
            for what in ("tree_over_bare", "two_cores_over_one")
        ]
        rows.append([data, frontend, *speeds, *ratios])
    header = ("data", "front end", "bare parser", "to `Tree`", "corpus, 1 core")
    return table((*header, "corpus, 2 cores", "`Tree` / bare", "2 cores / 1"), rows)


def corpora() -> str:
    rows = [
        [
            data,
            frontend,
            f"{row['corpus_programs']:,}",
            f"{row['corpus_failed']:,}",
            f"{row['build_s']:.1f} s",
            f"{row['peak_mb']:,} MB",
            f"{row['load_s']:.2f} s",
        ]
        for data, frontend, row in parsed()
    ]
    header = ("data", "front end", "programs", "failed", "built in", "peak memory")
    return table((*header, "opened again in"), rows)


def parsed() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name in PARSED:
        found = load(f"parsing-{name}")
        for frontend, row in found["frontends"].items():
            yield found["data"], frontend, row


def folder() -> str:
    found = load("folder-atlas")
    names = {
        "numpy": "engine in NumPy",
        "interpreted": "the same, nothing compiled",
        "torch": "engine on PyTorch",
        "index": "`treecaps index`",
        "bare": "bare parser alone",
    }
    rows = []
    for side, name in names.items():
        speeds = found["files_per_second"][side]
        parts = [one for one in found["rounds"] if one["side"] == side and one["cores"] == 2]
        shares = [
            f"{median(one[part] for one in parts):.1f} s" if part in parts[0] else "-"
            for part in ("parsing", "network")
        ]
        ratio = f"{found['two_cores_over_one'][side]:.2f}"
        rows.append([name, f"{speeds['1']:,.0f}", f"{speeds['2']:,.0f}", ratio, *shares])
    header = ("", "files/s, 1 core", "2 cores", "2 cores / 1")
    return table((*header, "parsing, of all processes", "features and network"), rows)


def memory() -> str:
    rows = [
        [
            f"{row['programs']:,}",
            f"{row['nodes'] / 1e6:.1f} million",
            f"{row['peak_mb']:,} MB",
            f"{row['peak_mb_again']:,} MB",
            f"{row['features_mb']:,} MB",
        ]
        for row in load("memory-problems")["trainings"]
    ]
    header = ("programs", "nodes", "peak memory", "when features are there", "features on disk")
    return table(header, rows)


def start() -> str:
    rows = []
    for name, found in load("start")["packages"].items():
        low, high = found["cpu_seconds_quartiles"]
        rows.append(
            [
                f"`{name}`",
                f"{found['megabytes']['all']:,.0f} MB",
                f"{found['cpu_seconds']:.2f} s ({low:.2f}-{high:.2f})",
                f"{found['peak_mb']:,} MB",
            ]
        )
    return table(("package", "installed", "processor time of one answer", "peak memory"), rows)


def index() -> str:
    rows = []
    for name, row in load("index-atlas-poj104")["kinds"].items():
        low, high = row["query_ms_5_to_95"]
        replaced = row["replace_1000_seconds"]
        rows.append(
            [
                {"graph": "treecaps, with a graph"}.get(name, name),
                f"{row['build_seconds']:.1f} s",
                f"{row['query_ms']:.1f} ms ({low:.1f}-{high:.1f})",
                f"{row['recall_at_10']:.3f}",
                f"{row['megabytes']:,.0f} MB",
                "-" if replaced is None else f"{replaced:.1f} s",
            ]
        )
    return table(("kind", "build", "search", "recall@10", "on disk", "replace 1,000"), rows)


def large() -> str:
    titles = {"treecaps": "exact", "graph": "with a graph"}
    rows = []
    for name, row in load("index-large-atlas")["kinds"].items():
        low, high = row["query_ms_5_to_95"]
        rows.append(
            [
                titles[name],
                f"{row['query_ms']:.1f} ms ({low:.1f}-{high:.1f})",
                f"{row['recall_at_10']:.3f}",
                f"{row['build_seconds']:.0f} s",
                f"{row['replace_1000_seconds']:.0f} s",
                f"{row['seconds_to_open']:.0f} s",
                f"{row['megabytes']:,.0f} MB",
                f"{row['memory_mb']:,} MB and {row['mapped_mb']:,} MB mapped",
            ]
        )
    header = ("search", "recall@10", "build", "replace 1,000", "open", "on disk", "memory")
    return table(("", *header), rows)


def indexing() -> str:
    found = load("index-atlas-poj104")
    rows = [
        ["files", f"{found['files']:,}"],
        ["functions", f"{found['functions']:,}"],
        ["`treecaps index`", f"{found['seconds_to_index']:.0f} s"],
        ["again, nothing changed", f"{found['seconds_when_nothing_changed']:.1f} s"],
        ["opening it", f"{found['seconds_to_open']:.1f} s"],
        ["its size", f"{found['megabytes']:.0f} MB"],
    ]
    return table(("atlas and POJ-104, two cores", ""), rows)


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


def shared() -> str:
    found = load("postgres")
    if not found:
        return ""
    write, exact = found["write"], found["exact"]
    rows = [
        ["writing into a file", f"{write['file']['per_second']:,} vectors/s"],
        ["writing into PostgreSQL", f"{write['database']['per_second']:,} vectors/s"],
        ["its size", f"{found['megabytes']:,.0f} MB"],
        ["an exact search, one client", f"{exact['one_client_ms']:,.0f} ms"],
        [
            f"an exact search, {exact['clients']} clients",
            f"{exact['median_ms']:,.0f} ms, 95 of 100 in {exact['p95_ms']:,.0f} ms or less",
        ],
        ["all clients together", f"{exact['searches_per_second']:,.1f} searches/s"],
    ]
    return table(("PostgreSQL", f"{found['vectors']:,} vectors"), rows)


def simulation() -> str:
    rows = [
        [
            f"{row['vectors']:,}",
            f"{row['exact_ms']:.2f} ms",
            f"{row['graph_ms']:.2f} ms",
            f"{row['recall']:.3f}",
            f"{row['graph_seconds']:.1f} s",
        ]
        for row in load("scale").get("simulation", [])
    ]
    return table(("vectors", "exact", "with a graph", "recall@10", "making the graph"), rows)
