"""MAP@R: how well the nearest programs are those of the same class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.base import Bools
from treecaps.inputs.distinct import Longs

Floats = NDArray[np.floating[Any]]

_CELLS = 1 << 25
"""How many pairs of programs are compared at a time."""


def map_at_r(vectors: Floats, label: Longs) -> float | None:
    """Return the mean average precision at R of programs that ask for those nearest to them.

    Args:
        vectors: ``[B, E]``, of length 1.
        label: ``[B]``, from 0.

    Returns:
        The mean over all programs that have others of their class; ``None`` if none has.
    """
    return maps_at_r(vectors, label, np.zeros(len(label), np.int64))["map_at_r"]


def maps_at_r(vectors: Floats, label: Longs, language: Longs) -> dict[str, float | None]:
    """Return MAP@R among all programs, among those of one language, and across languages.

    Args:
        vectors: ``[B, E]``, of length 1.
        label: ``[B]``, from 0.
        language: ``[B]``, from 0.

    Returns:
        ``map_at_r``, and where there are several languages ``map_at_r_within`` and
        ``map_at_r_across``: there, only programs of the same language are candidates, or only those
        of others. Each is the mean over programs with candidates of their class.
    """
    several = len(np.unique(language)) > 1
    pair = label * (language.max(initial=0) + 1) + language
    of_label, of_pair = np.bincount(label), np.bincount(pair)
    found: dict[str, list[Floats]] = {"map_at_r": []}
    if several:
        found |= {"map_at_r_within": [], "map_at_r_across": []}
    size = max(1, _CELLS // max(1, len(label)))
    for begin in range(0, len(label), size):
        rows = np.arange(begin, min(begin + size, len(label)))
        alike = vectors[rows] @ vectors.T
        alike[np.arange(len(rows)), rows] = -np.inf  # a program does not find itself
        others, within = of_label[label[rows]] - 1, of_pair[pair[rows]] - 1
        found["map_at_r"].append(average_precision(alike, label[rows], label, others))
        if several:
            same = language[rows][:, None] == language
            for name, candidates, count in (
                ("map_at_r_within", same, within),
                ("map_at_r_across", ~same, others - within),
            ):
                among = np.where(candidates, alike, -np.inf)
                found[name].append(average_precision(among, label[rows], label, count))
    return {name: _mean(parts) for name, parts in found.items()}


def average_precision(alike: Floats, asked: Longs, label: Longs, others: Longs) -> Floats:
    r"""Return the average precision at R (Musgrave et al. 2020) of some programs.

    .. math:: \frac{1}{R} \sum_{k=1}^{R} \mathrm{precision}(k)\, \mathrm{right}(k)

    where R candidates are of the class of a program, precision(k) is the share of those among the k
    most similar ones, and right(k) is 1 if the k-th is one of them and else 0.

    Args:
        alike: ``[n, B]``, how similar each program is to all; minus infinity for what is no
            candidate.
        asked: ``[n]``, the classes of the programs.
        label: ``[B]``, those of all.
        others: ``[n]``, R.

    Returns:
        ``[n]``, or fewer: programs without candidates of their class are left out.
    """
    asking: Bools = others > 0
    if not asking.any():
        return np.zeros(0)
    alike, asked, others = alike[asking], asked[asking], others[asking]
    most = int(others.max())
    nearest = np.argpartition(alike, -most, 1)[:, -most:]
    order = np.argsort(-np.take_along_axis(alike, nearest, 1), 1, kind="stable")
    rank = np.arange(1, most + 1)
    right = label[np.take_along_axis(nearest, order, 1)] == asked[:, None]
    right &= rank <= others[:, None]
    precision = right.cumsum(1) / rank
    found: Floats = (precision * right).sum(1) / others
    return found


def _mean(parts: list[Floats]) -> float | None:
    every = np.concatenate([np.zeros(0), *parts])
    return float(every.mean()) if len(every) else None
