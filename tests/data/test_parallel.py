import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from treecaps.data import parallel
from treecaps.data.batches import parse_in_batches
from treecaps.data.parallel import Parsed, parse_in_chunks, parse_programs
from treecaps.errors import Failure
from treecaps.syntax.blind import blind
from treecaps.syntax.frontends.tree_sitter import TreeSitterFrontend
from treecaps.syntax.program import Program, ProgramFile
from treecaps.syntax.tree import Tree
from treecaps.workers import _AHEAD


def programs(count: int) -> Iterator[Program]:
    for number in range(count):
        yield Program(f"int a{number};", "c", id=str(number))


def parse(source: Iterable[Program | Failure], workers: int) -> pa.Table:
    return pa.Table.from_batches(list(parse_in_batches(source, "tree-sitter", False, {}, workers)))


@pytest.mark.parametrize("deadly", [{3}, {0, 255, 256, 1999}, set(range(300, 310))])
def test_a_parser_that_crashes_loses_only_its_program(
    deadly: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = TreeSitterFrontend.parse

    def crash(frontend: TreeSitterFrontend, program: Program) -> Tree:
        if int(program.id) in deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return honest(frontend, program)

    monkeypatch.setattr(TreeSitterFrontend, "parse", crash)  # workers inherit it
    table = parse(programs(2000), 2)
    assert table.column("id").to_pylist() == [str(number) for number in range(2000)]
    failed = table.filter(table.column("failure_code").is_valid())
    assert {int(number) for number in failed.column("id").to_pylist()} == deadly
    assert set(failed.column("failure_code").to_pylist()) == {"crash"}


def test_a_program_that_cannot_be_made_blind_fails_alone() -> None:
    mixed = [Program.from_clean_text(b"a", "cobol", id="x"), *programs(2)]
    batches = parse_in_batches(mixed, "tree-sitter", False, {}, 1, change=blind)
    table = pa.Table.from_batches(list(batches))
    assert table.column("failure_code").to_pylist() == ["unsupported-language", None, None]
    assert table.column("text").to_pylist() == [None, b"int v0;", b"int v0;"]


@pytest.mark.parametrize("workers", [1, 2])
def test_only_a_few_chunks_are_read_ahead(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 10)
    read = 0

    def count() -> Iterator[Program]:
        nonlocal read
        for program in programs(1000):
            read += 1
            yield program

    written = 0
    furthest = 0
    for batch in parse_in_batches(count(), "tree-sitter", False, {}, workers):
        furthest = max(furthest, read - written)
        written += batch.num_rows
    assert written == 1000
    assert furthest <= 10 * (_AHEAD * workers + 2)


def test_large_programs_make_small_chunks() -> None:
    large = [Program("a;" * 200_000, "c", id=str(number)) for number in range(4)]
    sizes = [batch.num_rows for batch in parse_in_batches(large, "tree-sitter", False, {}, 1)]
    assert sizes == [1, 1, 1, 1]


def test_failures_pass_through_in_their_place() -> None:
    mixed: list[Program | Failure] = [Failure("x", "binary", "why"), *programs(2)]
    table = parse([*mixed, Failure("y", "record", "so")], 1)
    assert table.column("id").to_pylist() == ["x", "0", "1", "y"]
    assert table.column("failure").to_pylist() == ["why", None, None, "so"]


def test_workers_read_files_as_they_are_read_here(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a.c", "gone.c", "b.py", "c.cobol", "d.c")]
    for place, text in zip(places, ("int a;", "", "b = 1", "", "\0\1"), strict=True):
        if place.name != "gone.c":
            place.write_text(text)
    files = [ProgramFile(place, place.name) for place in places]
    found = list(parse_programs(files, "tree-sitter", workers=2))
    here = [one.read() for one in files]
    assert [one.code for one in found if isinstance(one, Failure)] == [
        "unreadable",
        "unknown-language",
        "binary",
    ]
    assert found[1::2] + found[4:] == here[1::2] + here[4:]
    assert [one.text for one in found if isinstance(one, Tree)] == [b"int a;", b"b = 1"]


def test_large_files_make_small_chunks(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.c").write_text("a;" * 200_000)
    files = [ProgramFile(tmp_path / f"{number}.c", str(number)) for number in range(3)]
    sizes = parse_in_chunks(files, "tree-sitter", False, 1, lambda parsed: len(parsed.outcomes))
    assert list(sizes) == [1, 1, 1]


def test_a_file_that_takes_too_long_loses_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = TreeSitterFrontend.parse

    def wait(frontend: TreeSitterFrontend, program: Program) -> Tree:
        if program.id == "1":
            time.sleep(60)
        return honest(frontend, program)

    monkeypatch.setattr(TreeSitterFrontend, "parse", wait)
    monkeypatch.setattr(parallel, "time_limit", lambda text: 0.2)
    monkeypatch.setattr(parallel, "_GRACE", 0.1)
    for number in range(3):
        (tmp_path / f"{number}.c").write_text("int a;")
    files = [ProgramFile(tmp_path / f"{number}.c", str(number)) for number in range(3)]
    first, late, last = parse_programs(files, "tree-sitter")
    assert isinstance(late, Failure)
    assert (late.id, late.code) == ("1", "timeout")
    assert isinstance(first, Tree)
    assert isinstance(last, Tree)


def test_an_error_of_the_reader_reaches_the_caller() -> None:
    def broken() -> Iterator[Program]:
        yield from programs(600)
        raise RuntimeError("the reader broke")

    with pytest.raises(RuntimeError, match="the reader broke"):
        parse(broken(), 2)


def test_no_programs_make_no_batches() -> None:
    assert list(parse_in_batches([], "tree-sitter", False, {}, 2)) == []


def test_what_kills_a_worker_after_parsing_loses_only_its_program() -> None:
    def finish(parsed: Parsed) -> list[str]:
        names = [one.id if isinstance(one, Failure) else one[0].id for one in parsed.outcomes]
        failed = [isinstance(one, Failure) for one in parsed.outcomes]
        if "7" in names and not failed[names.index("7")]:
            os.kill(os.getpid(), signal.SIGKILL)
        return [f"{name} failed" if bad else name for name, bad in zip(names, failed, strict=True)]

    found = parse_in_chunks(programs(300), "tree-sitter", False, 2, finish)
    names = [name for chunk in found for name in chunk]
    expected = [str(number) for number in range(300)]
    expected[7] = "7 failed"
    assert names == expected


def test_trees_of_all_chunks_share_the_names_of_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 10)
    trees = [one for one in parse_programs(programs(50), "tree-sitter") if isinstance(one, Tree)]
    assert len(trees) == 50
    assert len({id(tree.kinds) for tree in trees}) == 1
