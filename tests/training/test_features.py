"""Features on disk: the same as those in memory, made once, and made again if damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.examples import PROGRAMS, write_data
from tests.data.test_corpus_cache import forbid_parsing
from tests.inputs.test_packing import equal
from tests.training.examples import small
from treecaps.data import parallel
from treecaps.data.corpus import Corpus
from treecaps.errors import DataError
from treecaps.inputs.base import InputDropout
from treecaps.inputs.stored import StoredInput
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.syntax.blind import blind
from treecaps.syntax.program import Program
from treecaps.training import features, prepare
from treecaps.training.prepare import Data, change_trees
from treecaps.training.presets import Preset
from treecaps.training.sequences import Joined, Selection, corpora_of, count_nodes, spell
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
        equal(kept.inputs.select(every), held.inputs.select(every))
        rows = every[::-3]
        equal(
            kept.inputs.select(rows, InputDropout(np.random.default_rng(0), 0.4, 0.2)),
            held.inputs.select(rows, InputDropout(np.random.default_rng(0), 0.4, 0.2)),
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


def test_sequences_know_where_their_trees_come_from(own_cache: Path) -> None:
    corpus = Corpus.build(PROGRAMS)
    some = Selection(corpus, np.array([1, 4]))
    joined = Joined([some, corpus])
    assert corpora_of(joined) == [corpus, corpus]
    assert corpora_of(Joined([some, list(corpus)])) == []
    assert count_nodes(joined).tolist() == [len(tree) for tree in joined]
    assert json.dumps(spell(joined)) != json.dumps(spell(Joined([corpus, some])))


def test_many_trees_are_divided_among_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = list(Corpus.build(PROGRAMS))
    expected = [len(tree) for tree in trees]
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 3)
    for workers in (1, 2):
        found = list(parallel.map_trees(trees, lambda some: list(map(len, some)), workers))
        assert [size for _, sizes in found for size in sizes] == expected
        assert sum(number for number, _ in found) == len(trees)


def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 3)
    trees = list(Corpus.build(PROGRAMS))

    def die(some: list[Any]) -> None:
        import os

        os._exit(1)

    with pytest.raises(DataError, match="the trees of 3 programs died, perhaps of memory"):
        list(parallel.map_trees(trees, die, 2))
