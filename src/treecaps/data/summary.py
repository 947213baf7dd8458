"""What a data set holds, in figures."""

from collections import Counter
from typing import Any

import numpy as np

from treecaps.data.corpus import Corpus
from treecaps.data.duplicates import Group, Step, find_copies, find_duplicates

_EXAMPLES = 20


def summarise(
    corpus: Corpus, *, against: Corpus | None = None, step: Step | None = None
) -> dict[str, Any]:
    """Describe a corpus in plain values, ready for JSON.

    Args:
        corpus: What to describe.
        against: Another corpus, say of a test split, whose copies in ``corpus`` are counted.
        step: Called with the share done while copies are looked for.
    """
    labels = Counter(label for label in corpus.labels if label is not None)
    sizes = corpus.node_counts
    broken = [tree.error_share for tree in corpus if len(tree.errors)]
    summary: dict[str, Any] = {
        "data": corpus.name,
        "frontend": corpus.about["frontend"],
        "programs": corpus.about["programs"],
        "failed": corpus.about["failed"],
        "unlabelled": len(corpus) - labels.total(),
        "classes": dict(sorted(labels.items())),
        "languages": dict(sorted(Counter(corpus.languages).items())),
        "kinds": len(corpus.kinds),
        "nodes": _nodes(sizes),
        "broken": {
            "programs": len(broken),
            "mean_share": float(np.mean(broken)) if broken else 0.0,
        },
        "not_utf8": int(np.count_nonzero(corpus.replaced)),
        "failures": group_failures(corpus),
        "duplicates": _duplicates(corpus, step),
    }
    if against is not None:
        summary["against"] = _copies(against, corpus, step)
    return summary


def _nodes(sizes: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, float]:
    if not len(sizes):
        return {"total": 0, "mean": 0.0, "min": 0, "median": 0.0, "p95": 0.0, "max": 0}
    return {
        "total": int(sizes.sum()),
        "mean": round(float(sizes.mean()), 1),
        "min": int(sizes.min()),
        "median": float(np.median(sizes)),
        "p95": round(float(np.percentile(sizes, 95)), 1),
        "max": int(sizes.max()),
    }


def group_failures(corpus: Corpus) -> list[dict[str, Any]]:
    """Return the reasons of failures, most frequent first, with the first program of each."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for failure in corpus.failures:
        reasons.setdefault((failure.code, failure.message), []).append(failure.id)
    ranked = sorted(reasons.items(), key=lambda item: -len(item[1]))
    return [
        {"code": code, "message": message, "programs": len(ids), "ids": ids[:_EXAMPLES]}
        for (code, message), ids in ranked
    ]


def _duplicates(corpus: Corpus, step: Step | None) -> dict[str, Any]:
    found = find_duplicates(corpus, step=step)
    conflicts = [
        group
        for group in found.exact
        if len({corpus.labels[number] for number in group} - {None}) > 1
    ]

    def count(groups: list[Group]) -> dict[str, Any]:
        return {
            "programs": sum(len(group) - 1 for group in groups),
            "groups": len(groups),
            "examples": [[corpus.ids[number] for number in group] for group in groups[:_EXAMPLES]],
        }

    return {
        "exact": count(found.exact),
        "same_tree": count(found.same_tree),
        "near": count(found.near),
        "conflicting_labels": count(conflicts),
    }


def _copies(corpus: Corpus, originals: Corpus, step: Step | None) -> dict[str, Any]:
    found = find_copies(corpus, originals, step=step)

    def count(copies: dict[int, int]) -> dict[str, Any]:
        return {
            "programs": len(copies),
            "examples": [
                [corpus.ids[copy], originals.ids[original]]
                for copy, original in list(copies.items())[:_EXAMPLES]
            ],
        }

    return {
        "data": corpus.name,
        "programs": corpus.about["programs"],
        "failed": corpus.about["failed"],
        "exact": count(found.exact),
        "same_tree": count(found.same_tree),
        "near": count(found.near),
    }
