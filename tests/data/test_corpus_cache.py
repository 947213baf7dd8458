"""How corpora are kept, found again, and built again if they are damaged."""

import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from tests.conftest import without_privileges
from tests.data.examples import PROGRAMS, equal, write_data
from treecaps.data import corpus as module
from treecaps.data.cache import default_cache
from treecaps.data.corpus import Corpus, DamagedCorpusError
from treecaps.data.dataset import DataSet
from treecaps.errors import DataError
from treecaps.syntax import languages


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


def test_without_a_home_the_cache_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TREECAPS_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home")))
    with pytest.raises(DataError, match="cache=FOLDER or TREECAPS_CACHE"):
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
    assert "making it again" in message
    assert "again" in message
    Corpus.open(folder)
    assert not list(own_cache.glob("building-*"))


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, own_cache: Path) -> None:
    data = write_data(tmp_path / "a.jsonl", 3000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(
            DataError, match=r"cannot keep the corpus in .*cache=FOLDER or TREECAPS_CACHE"
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
