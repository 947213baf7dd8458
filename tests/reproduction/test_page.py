import json
import re
from typing import Any

from treecaps.rendering.reproduction import cells, to_html, to_json, to_markdown
from treecaps.reproduction.plan import TABLES, Results

TABLE = TABLES["table2"]
(JAVA,) = TABLE.columns
ROWS = {row.name: row for row in TABLE.rows}


def metrics(**changes: Any) -> dict[str, Any]:
    return {
        "asked": {"frontend": "srcml", "network": {"a": 1}, "training": {"b": 2, "epochs": 30}},
        "command": "treecaps reproduce 'a, [b]'",
        "seed": 0,
        "train_programs": 10,
        "train_failed": 0,
        "epochs": 4,
        "preset_epochs": 4,
        "seconds": 0.5,
        "memory_mb": 1,
        "loss": [0.123456, 0.1],
        "validation": [0.5, None],
        "parameters": 1000,
        "accuracy": 0.5,
        "programs": 10,
        "failed": 0,
        "accuracy_blind": 0.5,
        "programs_blind": 10,
        "failed_blind": 0,
        "ms": 1.0,
        "labels": ["a", "b"],
        "confusion": [[4, 0], [6, 0]],
        **changes,
    }


def test_a_cell_has_means_and_the_sample_deviation() -> None:
    found = {
        ("treecaps", "java-sort"): [
            metrics(accuracy=0.90005, accuracy_blind=0.9, seconds=0.44, ms=1.0),
            metrics(accuracy=0.92, accuracy_blind=0.9, seconds=0.45, ms=9.0, memory_mb=2000),
            metrics(accuracy=0.94, accuracy_blind=0.6, seconds=0.63, ms=1.234),
        ]
    }
    assert cells(ROWS["treecaps"], JAVA, found) == [
        "92.00 ± 2.00",
        "80.00 ± 17.32",
        "92.11",
        "4",
        "1.23 (paper: 10.3)",
        "1 s",
        "2,000 MB",
        "1,000",
    ]


def test_figures_are_rounded_once() -> None:
    # Rounded before, they would be 12.35 and 2.
    one = metrics(accuracy=0.1234499, seconds=1.46, memory_mb=None)
    found = cells(ROWS["code-size-4"], JAVA, {("code-size-4", "java-sort"): [one]})
    assert found == ["12.34", "50.00", "90.90", "4", "1.00", "1 s", "-", "1,000"]


def test_other_epochs_than_those_of_the_preset_are_named() -> None:
    found = {("secondary", "java-sort"): [metrics(epochs=2, preset_epochs=30)]}
    assert cells(ROWS["secondary"], JAVA, found)[3:5] == ["2 instead of 30", "1.00 (paper: 11.9)"]


def test_what_is_not_trained_has_dashes() -> None:
    dashes = ["-", "-", "92.31", "-", "- (paper: 11.9)", "-", "-", "-"]
    assert cells(ROWS["secondary"], JAVA, {}) == dashes
    found: Results = {("treecaps", "java-sort"): [metrics()]}
    page = to_markdown(TABLE, found, ["A remark."], "name")
    assert page.count("\n| ") == 2 + len(TABLE.rows)
    assert "[name.html](name.html)" in page
    assert "[name.json](name.json)" in page
    web = to_html(TABLE, found, [])
    assert web.count("<tr>") - web.count("<tr><th>a") >= 1 + len(TABLE.rows)
    assert "ms a program" in web
    assert "- (paper: 11.9)" in web


def test_the_figures_behind_a_page() -> None:
    every = [metrics(seed=seed, accuracy=1 / (3 + seed)) for seed in range(3)]
    facts = {"treecaps": "1.2.3", "seeds": 3}
    text = to_json(TABLE, {("treecaps", "java-sort"): every}, ["one, [two"], facts)
    assert '"loss": [0.1235,0.1],\n' in text
    behind = json.loads(text)
    assert behind["treecaps"] == "1.2.3"
    assert behind["commands"] == ["treecaps reproduce 'a, [b]'"]
    assert behind["notes"] == ["one, [two"]
    row = behind["rows"][list(ROWS).index("treecaps")]
    assert (row["network"], row["training"]) == ({"a": 1}, {"b": 2})
    assert row["paper"] == {"java-sort": "92.11"}
    assert row["paper_ms"] == {"java-sort": "10.3"}
    found = row["data"]["java-sort"]
    assert found["frontend"] == "srcml"
    assert [one["accuracy"] for one in found["seeds"]] == [1 / 3, 1 / 4, 1 / 5]
    assert found["seeds"][0]["validation"] == [0.5, None]
    assert not re.search("confusion|asked", text)
    assert behind["rows"][0]["data"] == {}


def test_a_whole_table_1_is_small() -> None:
    table = TABLES["table1"]
    curve = [0.123456789] * 60
    network = {f"option_{number}": "a value" for number in range(40)}
    asked = {"frontend": "tree-sitter", "network": network, "training": {"epochs": 60, **network}}
    one = metrics(asked=asked, loss=curve, validation=curve, confusion=[[1] * 104] * 104)
    every = {(row.name, column.name): [one] * 3 for row in table.rows for column in table.columns}
    assert len(to_json(table, every, [], {}).encode()) < 300_000
