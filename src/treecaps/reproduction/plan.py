"""What the tables of the paper ask for: data, models, and the figures it printed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from treecaps.errors import UsageError

Metrics = dict[str, Any]
"""What is known of one cell; the values are plain, for JSON."""
Results = dict[tuple[str, str], list[Metrics]]
"""By row and data set, the metrics of each seed."""


@dataclass(frozen=True)
class Column:
    """A data set.

    Args:
        name: Its folder.
        title: What the paper calls it.
        frontend: The front end that the paper takes.
        source: Where to get it.
    """

    name: str
    title: str
    frontend: str
    source: str


@dataclass(frozen=True)
class Row:
    """A model.

    Args:
        name: A short name for files.
        title: What it is called in the table.
        model: The architecture.
        preset: Its preset.
        settings: Options that are set.
        frontend: The front end that it needs, whatever the paper takes.
        of: For an ensemble, the row whose first networks it consists of.
        ensemble: How many of them it takes.
        printed: The figures of the paper by data, in per cent.
        printed_ms: Milliseconds a program in the paper, by data.
    """

    name: str
    title: str
    model: str
    preset: str = "default"
    settings: tuple[str, ...] = ()
    frontend: str | None = None
    of: "Row | None" = None
    ensemble: int = 1
    printed: dict[str, str] = field(default_factory=dict)
    printed_ms: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table of the paper."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


_A = Column(
    "python-algorithms",
    "A (Python)",
    "ast",
    "six classes of algorithms in Python; the original comes with github.com/crestonbunch/tbcnn",
)
_B = Column(
    "java-sort",
    "B (Java)",
    "srcml",
    "ten classes of sorting in Java, from the authors of Bui et al. 2019 (github.com/bdqnghi)",
)
_C = Column(
    "poj104",
    "C (C)",
    "srcml",
    "104 problems in C by Mou et al. 2016, known as POJ-104 or OJ; github.com/microsoft/CodeXGLUE"
    " says where to get it (Code-Code/Clone-detection-POJ-104)",
)
_KINDS = ("nodes=kinds", "rename_probability=0")
_PAPER_VECTORS = (*_KINDS, "vectors=parent", "vector_size=30")
"""The paper starts all models from the same vectors of kinds: those of its TreeCaps."""
_WORDS = ("nodes=kinds+tokens",)
_FLOW = "tree-sitter"
"""Data flow is known on these trees alone."""

_TREECAPS = Row(
    "treecaps",
    "TreeCaps, preset paper",
    "treecaps",
    preset="paper",
    printed={_A.name: "100.00 ± 0.00", _B.name: "92.11 ± 0.90", _C.name: "87.95 ± 0.23"},
)
_PUBLISHED = replace(
    _TREECAPS,
    name="treecaps-published",
    title="TreeCaps, preset published",
    preset="published",
)


def _ensemble(row: Row) -> Row:
    """Return the ensemble of the first three networks of a row."""
    return replace(
        row,
        name=f"{row.name}-3",
        title=f"{row.title} (3-ensembles)",
        of=row,
        ensemble=3,
        printed={_A.name: "100.00", _B.name: "94.08", _C.name: "89.41"},
    )


_TABLE1 = (
    Row(
        "ggnn",
        "GGNN",
        "ggnn",
        settings=_PAPER_VECTORS,
        printed={_B.name: "85.00", _C.name: "86.52"},
    ),
    Row(
        "tbcnn",
        "TBCNN",
        "tbcnn",
        settings=_PAPER_VECTORS,
        printed={_A.name: "99.30", _B.name: "75.00", _C.name: "79.40"},
    ),
    _TREECAPS,
    _ensemble(_TREECAPS),
    _PUBLISHED,
    _ensemble(_PUBLISHED),
    Row("treecaps-default", "TreeCaps, preset default, kinds", "treecaps", settings=_KINDS),
    Row("treecaps-words", "TreeCaps, preset default, words", "treecaps", settings=_WORDS),
    Row("astnn", "ASTNN", "astnn", settings=_KINDS),
    Row("tree-lstm", "Tree-LSTM", "tree-lstm", settings=_KINDS),
    Row("dtbcnn", "DTBCNN, tree-sitter", "dtbcnn", settings=_KINDS, frontend=_FLOW),
    Row(
        "bi-dtbcnn",
        "bilateral DTBCNN, tree-sitter",
        "bi-dtbcnn",
        settings=_KINDS,
        frontend=_FLOW,
    ),
    Row("capsgnn", "CapsGNN", "capsgnn", settings=_KINDS),
    Row("svm-windows", "linear SVM on windows", "svm-windows"),
    Row("svm-tokens", "linear SVM on tokens", "svm-tokens"),
    Row(
        "svm-tokens-blind",
        "linear SVM on tokens, of blind programs too",
        "svm-tokens",
        settings=("rename_probability=0.5",),
    ),
)

# A name, a title, what is set, and the accuracy and the milliseconds of the paper.
_VARIANTS = (
    ("max-pooling", "dynamic max pooling", "pooling=max", "83.43", None),
    ("code-size-4", "D_cc = 4", "code_size=4", "90.90", None),
    ("code-size-8", "D_cc = 8", "code_size=8", "92.10", None),
    ("code-size-12", "D_cc = 12", "code_size=12", "90.33", None),
    ("code-size-16", "D_cc = 16", "code_size=16", "91.51", None),
    ("secondary", "secondary layer", "secondary=16", "92.31", "11.9"),
    ("treecaps", "TreeCaps", None, "92.11", "10.3"),
)


def _variants(preset: str, ending: str) -> tuple[Row, ...]:
    """Return the rows of table 2 for a preset; their names have an ending."""
    return tuple(
        Row(
            name + ending,
            f"{title}, preset {preset}",
            "treecaps",
            preset,
            (setting,) if setting else (),
            printed={_B.name: printed},
            printed_ms={_B.name: ms} if ms else {},
        )
        for name, title, setting, printed, ms in _VARIANTS
    )


TABLES = {
    "table1": Table("Table 1: comparison of TreeCaps with other approaches", (_A, _B, _C), _TABLE1),
    "table2": Table(
        "Table 2: effect of different model variants",
        (_B,),
        (*_variants("paper", ""), *_variants("published", "-published")),
    ),
}


def choose_rows(table: Table, names: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows of some names, or all; a model stands for its rows unless it names one."""
    rows = {row.name: {row.name} for row in table.rows}
    for row in table.rows:
        if row.model not in {one.name for one in table.rows}:
            rows.setdefault(row.model, set()).add(row.name)
    for name in names:
        if name not in rows:
            known = ", ".join(row.name for row in table.rows)
            raise UsageError(f"the table has no model {name!r}; it has {known}")
    chosen = {one for name in names or rows for one in rows[name]}
    return tuple(row for row in table.rows if row.name in chosen)


def choose_epochs(table: Table, texts: Sequence[str]) -> dict[str, float]:
    """Return the number of epochs by data set, given as ``4`` for all or as ``poj104=4``.

    A number below 1, as 0.25, is that part of one epoch.
    """
    names = [column.name for column in table.columns]
    every: dict[str, float] = {}
    single: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if equals and name not in names:
            raise UsageError(f"the table has no data set {name!r}; it has {', '.join(names)}")
        if not re.fullmatch(r"0*[1-9][0-9]{0,5}|0?\.[0-9]{0,5}[1-9]0*", number):
            raise UsageError(
                "a number of epochs is a whole number from 1 up, or a part of one as 0.25,"
                f" not {number!r}; write 4, or {names[-1]}=4"
            )
        value = float(number) if "." in number else int(number)
        if equals:
            single[name] = value
        else:
            every = dict.fromkeys(names, value)
    return every | single
