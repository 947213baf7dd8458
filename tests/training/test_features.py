"""Features on disk: the same as those in memory, made once, and made again if damaged."""

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tests.data.examples import PROGRAMS, write_data
from tests.data.test_corpus_cache import forbid_parsing
from tests.inputs.test_packing import assert_equal
from tests.training.examples import small
from tests.training.runs import same
from treecaps.data import sequences
from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Joined, Selection, corpora_of, count_nodes, map_trees, spell
from treecaps.errors import DataError
from treecaps.inputs.base import InputDropout
from treecaps.inputs.stored import StoredInput
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.nn.token_capsules import TokenCapsules
from treecaps.syntax.blind import blind
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.training import features, prepare
from treecaps.training.prepare import Data, change_trees
from treecaps.training.presets import Preset
from treecaps.training.train import train

WORDS = ("nodes=kinds+tokens", "hidden=8,8", "token_features=500", "token_channels=2")


def prepared(monkeypatch: pytest.MonkeyPatch, on_disk: bool, preset: Preset) -> Data:
    """All that a training sees, as ``train`` prepares it."""
    found: list[Data] = []
    fit = prepare.Data.fingerprint

    def note(data: Data) -> str:
        found.append(data)
        return fit(data)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_IN_MEMORY", 0 if on_disk else 10**9)
        patch.setattr(prepare.Data, "fingerprint", note)
        train(Corpus.build(PROGRAMS), preset=preset)
    return found[0]


def test_what_is_on_disk_is_what_would_be_in_memory(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = small(*WORDS, "epochs=1")
    memory = prepared(monkeypatch, False, preset)
    disk = prepared(monkeypatch, True, preset)
    assert disk.vocabulary == memory.vocabulary
    for kept, held in ((disk.train, memory.train), (disk.val, memory.val)):
        assert isinstance(kept.inputs, StoredInput)
        assert isinstance(held.inputs, WindowsAndBags)
        assert kept.views == held.views == ("blind",)
        assert len(kept.inputs) == len(held.inputs) == 2 * len(kept)
        assert np.array_equal(kept.inputs.sizes, held.inputs.sizes)
        every = np.arange(len(held.inputs))
        assert_equal(kept.inputs.select(every), held.inputs.select(every))
        rows = every[::-3]
        assert_equal(
            kept.inputs.select(rows, InputDropout(rows, 0.4, 0.2)),
            held.inputs.select(rows, InputDropout(rows, 0.4, 0.2)),
        )
        one = np.sort(np.concatenate(list(kept.inputs.features())))
        assert np.array_equal(one, np.sort(np.concatenate(list(held.inputs.features()))))
    assert disk.fingerprint() == prepared(monkeypatch, True, preset).fingerprint()
    assert len(list(own_cache.glob("features-*"))) == 2  # for training and for validation


@pytest.mark.parametrize("settings", [(), ("windows=0",), ("windows=0", "window_depth=3")])
def test_trainings_end_alike(
    settings: tuple[str, ...], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.build(PROGRAMS)
    preset = small(*WORDS, "epochs=2", "window_dropout=0.3", *settings)
    found = []
    for most in (10**9, 0):
        monkeypatch.setattr(prepare, "_IN_MEMORY", most)
        model = train(corpus, preset=preset)
        found.append(model.scores(model.read_trees(list(corpus))))
    # The same numbers are added up in another order.
    assert np.allclose(found[0], found[1], atol=1e-4)


def test_the_second_time_nothing_is_made_again(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "_IN_MEMORY", 0)
    corpus, preset = Corpus.build(PROGRAMS), small(*WORDS, "epochs=1")
    first = train(corpus, preset=preset)
    forbid_parsing(monkeypatch)
    monkeypatch.setattr(features, "_write", lambda *_: pytest.fail("made again"))
    again = train(corpus, preset=preset)
    assert again.card["run"]["data"] == first.card["run"]["data"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "programs.bin").write_bytes(b""),
        lambda folder: (folder / "index.npy").unlink(),
        lambda folder: (folder / "features.json").write_text("[]"),
    ],
)
def test_damaged_features_are_made_again(
    damage: Callable[[Path], object],
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(prepare, "_IN_MEMORY", 0)
    corpus, preset = Corpus.build(PROGRAMS), small("epochs=1")
    first = train(corpus, preset=preset)
    for folder in own_cache.glob("features-*"):
        damage(folder)
    again = train(corpus, preset=preset)
    assert again.card["run"]["data"] == first.card["run"]["data"]
    assert "making it again" in caplog.text


def test_lists_of_trees_stay_in_memory(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_IN_MEMORY", 0)
    corpus = Corpus.build(PROGRAMS)
    train(list(corpus), corpus.labels, preset=small("epochs=1"))
    assert not list(own_cache.glob("features-*"))


def test_what_fails_when_changed_stays_as_it_is(own_cache: Path, tmp_path: Path) -> None:
    corpus = Corpus.build(write_data(tmp_path / "a.jsonl", 8))

    def shorten(program: Program) -> Program:
        text = b"\0" if int(program.id) % 2 else b"int other;"
        return Program(text.decode(), program.language, id=program.id)

    chosen = Selection(corpus, np.array([3, 0, 5]))
    found = change_trees(chosen, "shorter", shorten, "tree-sitter", False)
    same = [tree.text == corpus[row].text for tree, row in zip(found, chosen.rows, strict=True)]
    assert same == [True, False, True]
    assert found[1].text == b"int other;"


def test_blind_programs_of_a_corpus_are_those_of_a_list(own_cache: Path) -> None:
    corpus = Corpus.build(PROGRAMS)
    rows = np.arange(0, len(corpus), 3)
    trees: Any = Selection(corpus, rows), Selection(list(corpus), rows)
    kept, held = (change_trees(some, "blind", blind, "tree-sitter", False) for some in trees)
    assert [tree.text for tree in kept] == [tree.text for tree in held]
    assert [tree.kind_names() for tree in kept] == [tree.kind_names() for tree in held]


def test_blind_programs_of_several_corpora_are_those_of_a_list(
    own_cache: Path, tmp_path: Path
) -> None:
    corpora = [Corpus.build(PROGRAMS), Corpus.build(write_data(tmp_path / "a.jsonl", 8))]
    rows = np.arange(1, sum(map(len, corpora)), 3)
    trees: Any = Joined(corpora), [tree for corpus in corpora for tree in corpus]
    kept, held = (
        change_trees(Selection(some, rows), "blind", blind, "tree-sitter", False) for some in trees
    )
    assert corpora_of(kept)
    assert [tree.text for tree in kept] == [tree.text for tree in held]


def test_sequences_know_where_their_trees_come_from(own_cache: Path) -> None:
    corpus = Corpus.build(PROGRAMS)
    some = Selection(corpus, np.array([1, 4]))
    joined = Joined([some, corpus])
    assert corpora_of(joined) == [corpus, corpus]
    assert corpora_of(Joined([some, list(corpus)])) == []
    assert count_nodes(joined).tolist() == [len(tree) for tree in joined]
    assert json.dumps(spell(joined)) != json.dumps(spell(Joined([corpus, some])))


def test_many_trees_are_divided_among_processes(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.build(PROGRAMS)
    expected = [len(tree) for tree in corpus]
    monkeypatch.setattr(sequences, "_CHUNK_TREES", 3)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def sizes(trees: list[Tree]) -> tuple[int, list[int]]:
        return os.getpid(), list(map(len, trees))

    for trees in (corpus, list(corpus)):
        found = list(map_trees(trees, sizes))
        assert [size for _, (_, some) in found for size in some] == expected
        assert [number for number, _ in found] == [len(some) for _, (_, some) in found]
        here = {process for _, (process, _) in found} == {os.getpid()}
        assert here == (trees is not corpus)


def test_large_trees_come_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "_CHUNK_NODES", 1)
    trees = [Tree.build(["a", "b"], [-1, 0])] * 3
    assert [number for number, _ in map_trees(trees, len)] == [1, 1, 1]


def test_a_process_that_dies_is_told(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "_CHUNK_TREES", 3)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(DataError, match="the trees of 3 programs died, perhaps of memory"):
        list(map_trees(Corpus.build(PROGRAMS), lambda _: os._exit(1)))


def test_other_windows_are_other_features(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_IN_MEMORY", 0)
    corpus = Corpus.build(PROGRAMS)
    for number, depth in enumerate((3, 4), 1):
        train(corpus, preset=small("epochs=1", "windows=0", f"window_depth={depth}"))
        assert len(list(own_cache.glob("features-*"))) == 2 * number


def test_another_corpus_of_the_same_name_is_another(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for programs in (8, 12):
        Corpus.build(write_data(tmp_path / "a.jsonl", programs))
        (folder,) = own_cache.glob("corpus-*")
        folder.rename(tmp_path / "mine")
        monkeypatch.chdir(tmp_path / "mine")
        corpus = Corpus.open(".")
        names.append(spell(corpus))
        assert len(corpus.changed(blind, "blind")) == len(corpus)
        assert len(list(tmp_path.glob("corpus-*"))) == len(names)
        shutil.rmtree(tmp_path / "mine")
    assert names[0] != names[1]


def test_without_a_place_to_keep_them_they_are_held_in_memory(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    corpus, preset = Corpus.build(PROGRAMS), small(*WORDS, "epochs=1")
    expected = train(corpus, preset=preset)
    for folder in own_cache.glob("corpus-*"):
        if folder != corpus.folder:
            shutil.rmtree(folder)
    monkeypatch.setattr(prepare, "_IN_MEMORY", 0)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("treecaps.data.cache._new_folder", Mock(side_effect=full))
    found = train(corpus, preset=preset)
    assert "no space left on device" in caplog.text
    assert "held in memory" in caplog.text
    assert same(found, expected)


def test_features_are_counted_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(0)
    # Few of many numbers, of both signs, so that many have equal counts.
    programs = [chance.choice(400, 120, replace=False) - 200 for _ in range(40)]
    found = []
    for at_once in (1 << 24, 500):
        monkeypatch.setattr("treecaps.nn.token_capsules._COUNTED_AT_ONCE", at_once)
        capsules = TokenCapsules(50, 4, 2, 4, "sabour")
        capsules.learn_features(lambda: iter(programs))
        found.append(capsules.known.tolist())
    counts = Counter(np.concatenate(programs).tolist())
    assert found[0] == sorted(sorted(counts, key=lambda one: (-counts[one], one))[:50])
    assert found[1] == found[0]
