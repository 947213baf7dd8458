import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest

from tests.conftest import ROOT, without_privileges
from treecaps.data import corpus as module
from treecaps.data.corpus import Corpus, DamagedCorpusError, default_cache
from treecaps.data.dataset import DataSet
from treecaps.errors import DataError, ProgramError
from treecaps.syntax import languages
from treecaps.syntax.blind import blind
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.program import Program

PROGRAMS = ROOT / "examples" / "programs"


def write_data(path: Path, count: int = 700) -> Path:
    """Write programs of several languages, some of which cannot be parsed by ``ast``."""
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            code, language = [
                (f"int f{number}(void) {{ return {number}; }}", "c"),
                (f"def f{number}(): return {number}", "python"),
                ("print 1", "python"),
                ("", "cobol"),
            ][number % 4]
            record = {"code": code, "language": language, "label": str(number % 3)}
            file.write(json.dumps(record) + "\n")
    return path


def equal(one: Corpus, other: Corpus) -> bool:
    return (
        one.about == other.about
        and list(one) == list(other)
        and (one.ids, one.labels, one.languages) == (other.ids, other.labels, other.languages)
        and one.failures == other.failures
    )


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


def forbid_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(module, "parse_in_batches", refuse)


def test_the_second_time_nothing_is_parsed(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treecaps.data.dataset._SETTLED_NS", 0)
    first = Corpus.build(PROGRAMS)
    assert len(list(own_cache.glob("seen-*"))) == 1
    forbid_parsing(monkeypatch)
    monkeypatch.setattr(DataSet, "fingerprint", lambda data: pytest.fail("read again"))
    assert equal(Corpus.build(PROGRAMS), first)


@pytest.mark.parametrize("note", [b"", b"\xff\xfe", b"0" * 31, b"0" * 32 + b"\n"])
def test_a_damaged_note_is_not_believed(
    note: bytes, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treecaps.data.dataset._SETTLED_NS", 0)
    other = write_data(tmp_path / "a.jsonl", 8)
    Corpus.build(PROGRAMS)
    Corpus.build(other)
    for path in own_cache.glob("seen-*"):
        path.write_bytes(note)
    assert len(Corpus.build(PROGRAMS)) == 52
    assert len(Corpus.build(other)) == 6


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


def test_without_a_home_the_cache_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TREECAPS_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home")))
    with pytest.raises(DataError, match="--cache or TREECAPS_CACHE"):
        default_cache()


def test_the_same_contents_elsewhere_are_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Corpus.build(PROGRAMS)
    shutil.copytree(PROGRAMS, tmp_path / "copy")
    forbid_parsing(monkeypatch)
    assert list(Corpus.build(tmp_path / "copy")) == list(first)


def test_whatever_changes_the_trees_is_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_data(tmp_path / "a.jsonl", 8)
    before = Corpus.build(data)
    assert Corpus.build(data, comments=True).about["comments"]
    assert Corpus.build(data, frontend="ast").about["frontend"] == "ast"
    data.write_text(data.read_text().replace("return 0", "return a"))
    after = Corpus.build(data)
    assert after[0] != before[0]
    with patch.dict(languages.LANGUAGES), patch.dict(languages._BY_ALIAS):
        languages.register(languages.Language("cobol", endings=(), grammar="tree-sitter-c"))
        assert len(Corpus.build(data)) == len(after) + 2
    monkeypatch.setattr("treecaps.syntax.frontends.tree_sitter.version", lambda package: "another")
    assert Corpus.build(data).about["versions"]["tree-sitter-c"] == "another"


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


def test_blind_and_seeing_corpora_are_kept_apart(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeing = Corpus.build(PROGRAMS)
    assert "blind" not in seeing.about  # corpora built before there were blind ones stay good
    unseeing = Corpus.build(PROGRAMS, blind=True)
    assert unseeing[0].text != seeing[0].text
    assert len(list(own_cache.glob("corpus-*"))) == 2
    forbid_parsing(monkeypatch)
    assert equal(Corpus.build(PROGRAMS), seeing)
    assert equal(Corpus.build(PROGRAMS, blind=True), unseeing)


def break_trees(folder: Path) -> None:
    path = folder / "trees.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_trees(folder: Path) -> None:
    os.truncate(folder / "trees.arrow", 1000)


def lose_trees(folder: Path) -> None:
    (folder / "trees.arrow").unlink()


def break_about(folder: Path) -> None:
    path = folder / "corpus.json"
    path.write_text(path.read_text().replace("translation_unit", "translation_unjt"))


def empty_about(folder: Path) -> None:
    (folder / "corpus.json").write_text("")


def foreign_about(folder: Path) -> None:
    (folder / "corpus.json").write_text("[]")


def newer_about(folder: Path) -> None:
    path = folder / "corpus.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))


def deep_about(folder: Path) -> None:
    (folder / "corpus.json").write_text("[" * 100_000)


def become_a_dangling_link(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to("nowhere")


def become_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


@pytest.mark.parametrize(
    "damage",
    [
        break_trees,
        cut_trees,
        lose_trees,
        break_about,
        empty_about,
        foreign_about,
        newer_about,
        deep_about,
        become_a_file,
        become_a_dangling_link,
    ],
)
def test_a_damaged_corpus_is_noticed_and_built_again(
    damage: Callable[[Path], None],
    tmp_path: Path,
    own_cache: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = Corpus.build(PROGRAMS, cache=tmp_path)  # elsewhere: it maps its file
    Corpus.build(PROGRAMS)
    (folder,) = own_cache.glob("corpus-*")
    damage(folder)
    with pytest.raises(DamagedCorpusError):
        Corpus.open(folder)
    again = Corpus.build(PROGRAMS)
    assert equal(again, first)
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.count("\n") == 0
    assert "parsing" in message
    assert "again" in message
    Corpus.open(folder)
    assert not list(own_cache.glob("building-*"))


BUILD = """
import sys, time
from treecaps.data import corpus, dataset
print("ready", flush=True)
corpus.Corpus.build(sys.argv[1], workers=2, progress=lambda done, share: time.sleep(0.05))
print("done", flush=True)
"""


def children_of(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_build_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path, own_cache: Path
) -> None:
    data = write_data(tmp_path / "a.jsonl", 20_000)
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 20
    while not (workers := children_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(20) != 0
    assert "done" not in process.stdout.read()
    process.stdout.close()
    assert not list(own_cache.glob("corpus-*"))
    while time.monotonic() < deadline and any(is_running(worker) for worker in workers):
        time.sleep(0.05)
    assert workers
    assert not any(is_running(worker) for worker in workers)
    corpus = Corpus.build(data, workers=2)
    assert len(corpus) == 15_000
    assert not list(own_cache.glob("building-*"))


def test_an_interrupted_build_does_not_wait_for_its_work(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "a.c").write_text("x = " + "a<" * 3000)  # srcML takes for ever
    script = BUILD.replace("workers=2", "workers=2, frontend='srcml'")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0  # srcML itself would be given 30 s
    process.stdout.close()
    assert not list(own_cache.glob("corpus-*"))


def is_running(process: int) -> bool:
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def test_a_script_without_a_main_guard_may_build(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BUILD)
    data = write_data(tmp_path / "a.jsonl", 600)
    command = [sys.executable, str(script), str(data)]
    assert subprocess.check_output(command, text=True) == "ready\ndone\n"


def test_two_builds_at_once_agree(tmp_path: Path, own_cache: Path) -> None:
    data = write_data(tmp_path / "a.jsonl", 3000)
    command = [sys.executable, "-c", BUILD, str(data)]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(list(own_cache.glob("corpus-*"))) == 1
    assert not list(own_cache.glob("building-*"))
    assert len(Corpus.build(data)) == 2250


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, own_cache: Path) -> None:
    data = write_data(tmp_path / "a.jsonl", 3000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(
            DataError, match=r"cannot keep the corpus in .*--cache or TREECAPS_CACHE"
        ):
            Corpus.build(data, workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(own_cache.glob("corpus-*"))
    assert not list(own_cache.glob("building-*"))


def test_a_cache_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path / "a.jsonl", 8)
    for name, mode in (("writable", 0o777), ("readable", 0o555)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # others may not enter the folders above
    Corpus.build("a.jsonl", cache="writable")
    for made in Path("writable").rglob("*"):
        made.chmod(0o755)
    with without_privileges():
        assert len(Corpus.build("a.jsonl", cache="writable")) == 6
        with pytest.raises(DataError, match="permission denied; choose another"):
            Corpus.build("a.jsonl", cache="readable")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot keep the corpus"):
        Corpus.build(PROGRAMS, cache=tmp_path / "file")


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
