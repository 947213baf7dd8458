import gzip
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, without_privileges
from treecaps.data.dataset import DataSet
from treecaps.errors import DataError, Failure
from treecaps.syntax.program import Program

RECORDS: list[dict[str, Any]] = [
    {"code": "int a;", "label": "x", "language": "c", "id": "one"},
    {"code": "a = 1", "label": 2, "language": "Python"},
    {"code": "class A {}", "language": "c#", "id": 7},
    {"code": "fn f() {}", "label": "x", "id": "dir/f.rs", "language": ""},
]
EXPECTED = [
    Program("int a;", "c", id="one", label="x"),
    Program("a = 1", "python", id="line 2", label="2"),
    Program("class A {}", "c_sharp", id="7"),
    Program("fn f() {}", "rust", id="dir/f.rs", label="x"),
]


def write_lines(path: Path, records: list[Any]) -> Path:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "A.JSONL"])
def test_json_lines_are_read(tmp_path: Path, name: str) -> None:
    data = DataSet(write_lines(tmp_path / name, RECORDS))
    assert list(data) == EXPECTED
    assert data.progress == 1
    assert list(data) == EXPECTED  # and again


def test_parquet_is_read(tmp_path: Path) -> None:
    rows = [{**dict.fromkeys(("code", "label", "language", "id")), **row} for row in RECORDS]
    for row in rows:
        row.update(label=row["label"] and str(row["label"]), id=row["id"] and str(row["id"]))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = list(DataSet(tmp_path / "a.parquet"))
    assert found[0] == EXPECTED[0]
    assert [program.id for program in found] == ["one", "row 2", "7", "dir/f.rs"]


def test_parquet_may_hold_numbers_bytes_and_dictionaries(tmp_path: Path) -> None:
    table = pa.table(
        {
            "code": pa.array([b"int a;", b"int b;"], pa.large_binary()),
            "label": pa.array([1, 2]),
            "language": pa.array(["c", "c"]).dictionary_encode(),
            "other": [[1], [2]],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    first, second = DataSet(tmp_path / "a.parquet")
    assert first == Program("int a;", "c", id="row 1", label="1")
    assert isinstance(second, Program)


def test_a_folder_has_a_class_in_every_sub_folder(tmp_path: Path) -> None:
    for name in ("b/x.c", "a/deep/er/y.py", "z.java", ".hidden/x.c", "a/.secret.c", "a/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path)
    data = DataSet(tmp_path)
    assert list(data) == [
        Program("x", "python", id="a/deep/er/y.py", label="a"),
        Program("x", "c", id="b/x.c", label="b"),
        Program("x", "java", id="z.java"),
    ]
    assert data.sources.passed_over == {".md": 1}
    everything = [program.id for program in DataSet(tmp_path, language="c")]
    assert everything == ["a/deep/er/y.py", "a/notes.md", "b/x.c", "z.java"]


def test_the_examples_are_a_data_set() -> None:
    programs = list(DataSet(ROOT / "examples/programs"))
    assert len(programs) == 52
    assert {program.label for program in programs if isinstance(program, Program)} == {
        "binary-search",
        "bubble-sort",
        "gcd",
        "stack",
    }


def test_a_given_language_wins(tmp_path: Path) -> None:
    data = DataSet(write_lines(tmp_path / "a.jsonl", RECORDS), language="C++")
    assert {program.language for program in data if isinstance(program, Program)} == {"cpp"}


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("nonsense", "record", "is not JSON"),
        ("[1]", "record", "is not a JSON object"),
        ('"text"', "record", "is not a JSON object"),
        ("[" * 4000, "record", "is not JSON"),
        ('{"label": "x"}', "record", "has no 'code' that is text"),
        ('{"code": 1}', "record", "has no 'code' that is text"),
        ('{"code": "x", "label": [1]}', "record", "'label' that is no text or whole"),
        ('{"code": "x", "label": true}', "record", "'label' that is no text or whole"),
        ('{"code": "x", "label": 0.5}', "record", "'label' that is no text or whole"),
        ('{"code": "x", "language": 3}', "record", "'language' that is no text"),
        ('{"code": "x", "language": "cobol"}', "unknown-language", "unknown language 'cobol'"),
        ('{"code": "x"}', "unknown-language", r"unknown language .*language=NAME"),
        ('{"code": "\\u0000\\u0000\\u0000", "language": "c"}', "binary", "binary"),
        ('{"code": "%s", "language": "c"}' % ("x" * 150), "too-large", "larger than"),
        ('{"code": "%s", "language": "c"}' % ("x" * 9000), "too-large", "longer than any program"),
        (b'\xff{"code": "x"}', "record", "is not JSON"),
    ],
)
def test_a_bad_line_is_a_failure_and_the_others_go_on(
    tmp_path: Path, line: str | bytes, code: str, message: str
) -> None:
    good = json.dumps(RECORDS[0]).encode()
    bad = line if isinstance(line, bytes) else line.encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + good + b"\n" + bad + b"\n\n  \n" + good)
    first, failure, last = DataSet(path, max_bytes=100)
    assert isinstance(failure, Failure)
    assert failure.code == code
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(failure.message)
    assert first == last == EXPECTED[0]


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / "pipe.c")
    (tmp_path / "a" / "ok.c").write_text("int a;")
    (tmp_path / "a" / "loop.c").symlink_to("loop.c")
    found = list(DataSet(tmp_path))
    assert [getattr(program, "code", "") for program in found] == ["unreadable", "", "unreadable"]


def test_a_folder_that_cannot_be_listed_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.c").write_text("int a;")
    (tmp_path / "b").chmod(0)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # others may not enter the folders above
    with without_privileges():
        failure, program = DataSet(".")
    assert failure == Failure("b", "unreadable", "cannot be listed: permission denied")
    assert isinstance(program, Program)


@pytest.mark.parametrize(
    ("damage", "message"),
    [(lambda data: data[:-20], "damaged after"), (lambda data: b"no gzip", "damaged after 0")],
)
def test_a_damaged_gzip_is_said(tmp_path: Path, damage: Any, message: str) -> None:
    path = write_lines(tmp_path / "a.jsonl.gz", RECORDS * 500)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        list(DataSet(path))


def test_data_that_may_not_be_read_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "a.jsonl", RECORDS).chmod(0)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with without_privileges(), pytest.raises(DataError, match=r"cannot read a\.jsonl: permission"):
        list(DataSet("a.jsonl"))


def test_a_parquet_without_code_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["x"], "label": ["y"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no column 'code', only: text, label"):
        list(DataSet(tmp_path / "a.parquet"))


def test_a_parquet_of_other_types_is_refused(tmp_path: Path) -> None:
    for column, values in (("code", [1]), ("label", [0.5]), ("id", [datetime(2019, 1, 1)])):
        table = pa.table({"code": ["x"], column: values})
        if column == "code":
            table = pa.table({"code": values})
        pq.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(DataError, match=f"in the column '{column}', not text"):
            list(DataSet(tmp_path / "a.parquet"))


def test_a_parquet_with_invalid_text_is_read(tmp_path: Path) -> None:
    invalid = pa.array([b"int a; // \xff"], pa.binary()).view(pa.string())
    label = pa.array([b"x\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"code": invalid, "label": label}), tmp_path / "a.parquet")
    (program,) = DataSet(tmp_path / "a.parquet", language="c")
    assert program == Program.from_clean_text(
        "int a; // \ufffd".encode(), "c", id="row 1", label="x\ufffd", replaced=1
    )


def test_a_damaged_parquet_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing else")
    with pytest.raises(DataError, match="damaged after 0 rows"):
        list(DataSet(tmp_path / "a.parquet"))


def test_other_paths_say_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "1.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, message in (
        ("a.csv", "is no data set; expected a folder"),
        ("missing", "does not exist"),
        ("empty", "holds no files"),
        (
            "texts",
            r"only 1 file in no known language \(1 .txt\); name their language with language=NAME",
        ),
        ("pipe.jsonl", "neither a folder nor a file"),
    ):
        with pytest.raises(DataError, match=message):
            DataSet(tmp_path / name)


def test_fingerprints_follow_the_contents(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", RECORDS)
    same = write_lines(tmp_path / "b.jsonl", RECORDS)
    before = DataSet(first).fingerprint()
    assert before == DataSet(same).fingerprint() == DataSet(first).fingerprint()
    assert before != DataSet(first, language="c").fingerprint()
    first.write_bytes(first.read_bytes().replace(b"int a", b"int b"))
    assert before != DataSet(first).fingerprint()


def test_stamps_follow_names_sizes_and_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write_lines(tmp_path / name, RECORDS)
    assert DataSet(tmp_path / "a.jsonl").stamp() is None  # too fresh to tell
    monkeypatch.setattr("treecaps.data.dataset._SETTLED_NS", 0)
    before = DataSet(tmp_path / "a.jsonl").stamp()
    assert before == DataSet(tmp_path / "a.jsonl").stamp()
    assert before != DataSet(tmp_path / "b.jsonl").stamp()
    os.utime(tmp_path / "a.jsonl", ns=(1, 1))
    assert before != DataSet(tmp_path / "a.jsonl").stamp()
