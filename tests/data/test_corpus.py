import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.data.examples import PROGRAMS, equal, write_data
from treecaps.data.corpus import Corpus
from treecaps.data.dataset import DataSet
from treecaps.errors import DataError, ProgramError
from treecaps.syntax.blind import blind
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.program import Program


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("frontend", ["tree-sitter", "ast", "srcml"])
def test_trees_equal_those_parsed_one_by_one(tmp_path: Path, frontend: str, workers: int) -> None:
    data = DataSet(write_data(tmp_path / "a.jsonl"))
    corpus = Corpus.build(data, frontend=frontend, workers=workers)
    parser = get_frontend(frontend)
    index = failed = 0
    for program in data:
        try:
            tree = parser.parse(program) if isinstance(program, Program) else None
        except ProgramError:
            tree = None
        if tree is None:
            failed += 1
            continue
        assert corpus[index] == tree
        assert corpus.program(index) == program
        assert corpus.node_counts[index] == len(tree)
        index += 1
    assert (len(corpus), len(corpus.failures)) == (index, failed)
    assert corpus.about["programs"] == index + failed == 700
    assert {kind for tree in corpus for kind in tree.kind_names()} == set(corpus.kinds)


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    data = write_data(tmp_path / "a.jsonl", 2000)
    one, two, three = (
        Corpus.build(data, workers=workers, cache=tmp_path / str(workers)) for workers in (1, 2, 3)
    )
    assert equal(one, two)
    assert equal(one, three)


def test_it_indexes_like_a_list() -> None:
    corpus = Corpus.build(PROGRAMS)
    trees = list(corpus)
    assert len(trees) == len(corpus) == 52
    assert corpus[-1] == trees[-1]
    assert corpus[10:13] == trees[10:13]
    with pytest.raises(IndexError):
        corpus[52]
    assert corpus.labels[:13] == ["binary-search"] * 13


def test_a_corpus_is_called_as_its_data_now_are(tmp_path: Path) -> None:
    assert Corpus.build(PROGRAMS).name == "programs"
    shutil.copytree(PROGRAMS, tmp_path / "copy")
    assert Corpus.build(tmp_path / "copy").name == "copy"


def test_files_that_are_none_and_names_that_are_no_text_fail_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data" / os.fsdecode(b"c\xff")
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.c")
    (folder / "zero.c").symlink_to("/dev/zero")
    (folder / os.fsdecode(b"x\xff.c")).write_text("int a;")
    corpus = Corpus.build(tmp_path / "data")
    assert (corpus.ids, corpus.labels) == (
        ["c\N{REPLACEMENT CHARACTER}/x\N{REPLACEMENT CHARACTER}.c"],
        ["c\N{REPLACEMENT CHARACTER}"],
    )
    assert [failure.code for failure in corpus.failures] == ["unreadable"] * 2


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("frontend", ["tree-sitter", "ast", "srcml"])
def test_blind_trees_equal_those_made_one_by_one(frontend: str, workers: int) -> None:
    data = DataSet(PROGRAMS)
    parser = get_frontend(frontend)
    programs = [
        blind(program)
        for program in data
        if isinstance(program, Program) and program.language in parser.languages()
    ]
    corpus = Corpus.build(data, frontend=frontend, blind=True, workers=workers)
    assert list(corpus) == [parser.parse(program) for program in programs]
    assert [corpus.program(index) for index in range(len(corpus))] == programs
    assert {failure.code for failure in corpus.failures} <= {"unsupported-language"}


def test_data_without_programs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(DataError, match="holds no programs"):
        Corpus.build(tmp_path / "a.jsonl")


def test_data_that_all_fail_make_an_empty_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("x\ny\n")
    corpus = Corpus.build(tmp_path / "a.jsonl")
    assert len(corpus) == 0
    assert len(corpus.failures) == 2
    assert corpus.node_counts.tolist() == []


def test_trees_are_views_of_the_file() -> None:
    corpus = Corpus.build(PROGRAMS)
    assert not corpus[0].kind.flags.owndata
    assert not corpus[0].kind.flags.writeable
    assert np.shares_memory(corpus[0].parent, corpus[0].parent)


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, float]] = []
    Corpus.build(
        write_data(tmp_path / "a.jsonl", 2000),
        workers=1,
        progress=lambda done, share: seen.append((done, share)),
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (2000, 1.0)
    assert seen[0][1] < 1
