"""What the tables of the paper ask for: data, models, and the figures it printed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from treecaps.errors import UsageError


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
        ensemble: How many networks are weighed against each other.
        printed: The figures of the paper by data, in per cent.
    """

    name: str
    title: str
    model: str
    preset: str = "default"
    settings: tuple[str, ...] = ()
    frontend: str | None = None
    ensemble: int = 1
    printed: dict[str, str] = field(default_factory=dict)


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
_WORDS = ("nodes=kinds+tokens",)
_FLOW = "tree-sitter"
"""Data flow is known on these trees alone."""

TABLES = {
    "table1": Table(
        "Table 1: comparison of TreeCaps with other approaches",
        (_A, _B, _C),
        (
            Row(
                "ggnn",
                "GGNN, tree-sitter",
                "ggnn",
                settings=_KINDS,
                frontend=_FLOW,
                printed={_B.name: "85.00", _C.name: "86.52"},
            ),
            Row(
                "tbcnn",
                "TBCNN",
                "tbcnn",
                settings=_KINDS,
                printed={_A.name: "99.30", _B.name: "75.00", _C.name: "79.40"},
            ),
            Row(
                "treecaps",
                "TreeCaps",
                "treecaps",
                preset="paper",
                printed={
                    _A.name: "100.00 ± 0.00",
                    _B.name: "92.11 ± 0.90",
                    _C.name: "87.95 ± 0.23",
                },
            ),
            Row(
                "treecaps-3",
                "TreeCaps (3-ensembles)",
                "treecaps",
                preset="paper",
                ensemble=3,
                printed={_A.name: "100.00", _B.name: "94.08", _C.name: "89.41"},
            ),
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
        ),
    ),
    "table2": Table(
        "Table 2: effect of different model variants",
        (_B,),
        tuple(
            Row(name, title, "treecaps", "paper", settings, printed={_B.name: printed})
            for name, title, settings, printed in (
                (
                    "max-pooling",
                    "dynamic max pooling instead of variable-to-static routing",
                    ("pooling=max",),
                    "83.43",
                ),
                ("code-size-4", "D_cc = 4", ("code_size=4",), "90.90"),
                ("code-size-8", "D_cc = 8", ("code_size=8",), "92.10"),
                ("code-size-12", "D_cc = 12", ("code_size=12",), "90.33"),
                ("code-size-16", "D_cc = 16", ("code_size=16",), "91.51"),
                (
                    "secondary",
                    "TreeCaps with a secondary capsule layer",
                    ("secondary=16",),
                    "92.31",
                ),
                ("treecaps", "TreeCaps", (), "92.11"),
            )
        ),
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
