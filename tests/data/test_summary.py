import json
from pathlib import Path

from treecaps.data.corpus import Corpus
from treecaps.data.summary import summarise

ROWS = [
    {"code": "int a;", "label": "x", "language": "c"},
    {"code": "int a;", "label": "y", "language": "c"},
    {"code": "int a;", "label": "y", "language": "c"},
    {"code": "a = (", "label": "y", "language": "python"},
    {"code": "b", "language": "python"},
    {"code": "c", "language": "cobol"},
    {"code": "d", "language": "cobol"},
    {"label": "x"},
]


def corpus_of(path: Path, rows: list[dict[str, str]]) -> Corpus:
    path.write_text("\n".join(map(json.dumps, rows)))
    return Corpus.build(path)


def test_figures_are_those_of_the_data(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "a.jsonl", ROWS)
    summary = summarise(corpus)
    assert json.loads(json.dumps(summary)) == summary
    assert summary["programs"] == 8
    assert summary["failed"] == 3
    assert summary["unlabelled"] == 1
    assert summary["classes"] == {"x": 1, "y": 3}
    assert summary["languages"] == {"c": 3, "python": 2}
    sizes = [len(tree) for tree in corpus]
    assert summary["nodes"]["total"] == sum(sizes)
    assert summary["nodes"]["max"] == max(sizes)
    assert summary["nodes"]["median"] == sorted(sizes)[2]
    assert summary["broken"]["programs"] == 1
    assert 0 < summary["broken"]["mean_share"] <= 1
    first, second = summary["failures"]
    assert (first["code"], first["programs"]) == ("unknown-language", 2)
    assert first["ids"] == ["line 6", "line 7"]
    assert second["code"] == "record"


def test_duplicates_and_conflicts_are_counted(tmp_path: Path) -> None:
    found = summarise(corpus_of(tmp_path / "a.jsonl", ROWS))["duplicates"]
    assert found["exact"] == {
        "programs": 2,
        "groups": 1,
        "examples": [["line 1", "line 2", "line 3"]],
    }
    assert found["conflicting_labels"]["groups"] == 1
    assert found["near"]["programs"] == 2


def test_copies_in_another_data_set_are_counted(tmp_path: Path) -> None:
    train = corpus_of(tmp_path / "a.jsonl", ROWS)
    test = corpus_of(tmp_path / "b.jsonl", [{"code": "f();", "language": "c"}, ROWS[0]])
    found = summarise(train, against=test)["against"]
    assert found["programs"] == 2
    assert found["exact"] == {"programs": 1, "examples": [["line 2", "line 1"]]}


def test_all_failing_gives_figures_too(tmp_path: Path) -> None:
    summary = summarise(corpus_of(tmp_path / "a.jsonl", [{"x": "y"}]))
    assert (summary["programs"], summary["failed"]) == (1, 1)
    assert summary["nodes"]["total"] == 0
    assert summary["classes"] == {}
