from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.training.examples import example_labels, example_trees, small
from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Joined, Selection, corpora_of, count_nodes, spell
from treecaps.errors import DataError, UsageError
from treecaps.inference.classify import classify_tree
from treecaps.inputs.windows import Windows
from treecaps.syntax.functions import find_functions
from treecaps.syntax.parse import parse_code
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.tasks import Classification
from treecaps.tasks.calibrate import find_threshold
from treecaps.tasks.examples import BACKGROUND
from treecaps.training.background import cut_fragment, functions, make_background
from treecaps.training.prepare import prepare
from treecaps.training.train import train

APPS = [
    f"""import os

class App{number}:
    def run(self, path):
        self.log.info("start")
        os.makedirs(path)
        return self.client.send(path, {number})

    def stop(self):
        self.client.close()
"""
    for number in range(20)
]


def apps() -> list[Tree]:
    return [parse_code(text, "python") for text in APPS]


def every(trees: Sequence[Tree]) -> Selection:
    return Selection(trees, np.arange(len(trees)))


def as_it_is(trees: Selection) -> Sequence[Tree]:
    return trees


def texts(trees: Sequence[Tree]) -> list[bytes]:
    return [tree.text for tree in trees]


def test_one_function_of_each_program_that_has_any() -> None:
    trees = [*apps(), parse_code("x = 1\n", "python")]
    found = functions(every(trees))
    assert len(found) == len(APPS)
    for tree, function in zip(trees, found, strict=False):
        assert function.text in [one.tree.text for one in find_functions(tree)]
    assert {function.text.split(b"(")[0] for function in found} == {b"def run", b"def stop"}
    assert count_nodes(found).tolist() == [len(tree) for tree in found]
    assert texts(found[2:4]) == texts(found)[2:4]
    assert len(functions(every([parse_code("x = 1\n", "python")]))) == 0


def test_functions_of_a_corpus_are_known_by_their_places(tmp_path: Path) -> None:
    for number, text in enumerate(APPS):
        (tmp_path / f"{number}.py").write_text(text)
    corpus = Corpus.build(tmp_path, cache=tmp_path / "cache")
    found = functions(every(corpus))
    assert corpora_of(found) == [corpus]
    assert spell(found) == spell(functions(every(corpus))) != spell(found[1:])


def test_a_fragment_is_a_few_lines_in_a_row_and_always_the_same() -> None:
    languages = set()
    for number in range(200):
        text = "".join(f"x{line} = {number}\n" for line in range(40)).encode()
        program = Program.from_clean_text(text, "python", id="a")
        fragment = cut_fragment(program)
        assert fragment.text in text
        assert 3 <= fragment.text.count(b"\n") <= 12
        assert cut_fragment(program).text == fragment.text
        languages.add(fragment.language)
    assert "python" in languages
    assert len(languages) > 5
    short = Program.from_clean_text(b"x = 1", "python")
    assert cut_fragment(short).text == b"x = 1"


def test_a_share_of_the_background_validates_or_all_of_another() -> None:
    train, val = make_background(apps(), None, 0.2, 0, as_it_is)
    assert (len(train.files), len(val.files)) == (16, 4)
    assert sorted(texts(train.files) + texts(val.files)) == sorted(text.encode() for text in APPS)
    train, val = make_background(apps()[:5], apps()[5:], 0.2, 0, as_it_is)
    assert (len(train.files), len(val.files)) == (5, 15)
    with pytest.raises(DataError, match="no background programs"):
        make_background([], None, 0.1, 0, as_it_is)


@pytest.mark.parametrize(("programs", "val"), [(1, 0), (2, 1), (4, 1)])
def test_little_background_validates_too(programs: int, val: int) -> None:
    parts = make_background(apps()[:programs], None, 0.1, 0, as_it_is)
    assert [len(part.files) for part in parts] == [programs - val, val]


def test_files_have_other_views_and_pieces_have_not() -> None:
    background, _ = make_background(apps(), None, 0, 0, as_it_is)

    def other(trees: Selection) -> Sequence[Tree]:
        return [parse_code("y = 2\n", "python")] * len(trees)

    found = background.view(other)
    assert isinstance(found, Joined)
    assert texts(found)[:20] == [b"y = 2\n"] * 20
    assert texts(found)[20:] == texts(background.view())[20:]


def test_background_follows_the_programs_and_is_no_class() -> None:
    background = make_background(apps(), None, 0.2, 0, as_it_is)
    trees, labels = example_trees(), example_labels()
    data = prepare(
        trees,
        labels,
        None,
        read_trees=Windows.from_trees,
        val_share=0.25,
        seed=0,
        background=background,
    )
    assert (len(data.trees), len(data.val_trees), len(data.val)) == (40, 12, 12)
    assert data.train.num_labelled == 40
    assert data.train.label[40:].tolist() == [BACKGROUND] * 48  # 16 files, functions, fragments
    assert data.facts["training"]["background"] == 48
    assert data.background is not None
    assert len(data.background) == 12
    assert data.facts["training"]["programs"] == 40


def test_words_of_background_do_not_crowd_out_those_of_the_classes() -> None:
    trees, labels = example_trees(), example_labels()
    preset = small("epochs=1", "nodes=kinds+tokens", "token_channels=4")
    alone, beside = (
        train(trees, labels, preset=preset, background=background)
        for background in (None, [*apps(), parse_code("class A {}", "java")])
    )
    assert alone.vocabulary.tokens == beside.vocabulary.tokens
    assert set(alone.vocabulary.kinds) < set(beside.vocabulary.kinds)
    one, other = (model.members[0].state_dict()["tokens.known"] for model in (alone, beside))
    assert one.tolist() == other.tolist()


def test_an_epoch_sees_all_programs_and_a_part_of_the_background() -> None:
    label = np.array([0, 1] * 10 + [BACKGROUND] * 100)
    task = Classification(background_share=0.5)
    epochs = [
        np.concatenate(task.sample(label, 4, np.random.default_rng(seed))) for seed in (0, 0, 1)
    ]
    for rows in epochs:
        assert sorted(rows[rows < 20]) == list(range(20))
        assert len(set(rows[rows >= 20])) == 10
    assert epochs[0].tolist() == epochs[1].tolist()
    assert set(epochs[0]) != set(epochs[2])


def test_a_model_learns_to_call_background_unknown() -> None:
    model = train(
        example_trees(),
        example_labels(),
        background=apps(),
        preset=small("epochs=40", "background_share=1"),
    )
    assert model.calibration.none is not None
    answers = [classify_tree(model, tree) for tree in apps()]
    assert not any(answer.known for answer in answers)
    assert max(answer.probability for answer in answers) < 0.5
    known = [classify_tree(model, tree).known for tree in example_trees()]
    assert np.mean(known) > 0.9


@pytest.mark.parametrize("beside", [False, True])
def test_the_threshold_is_that_of_programs_as_they_are(beside: bool) -> None:
    trees, labels = example_trees(), example_labels()
    preset = small("nodes=kinds+tokens", "rename_probability=0.5", "epochs=3")
    background = apps() if beside else None
    model = train(
        trees,
        labels,
        val=(trees, labels),
        background=background,
        val_background=background,
        preset=preset,
    )
    number = np.array([model.labels.index(label) for label in labels if label])
    plain = model.scores(model.read_trees(trees))
    others = None
    if beside:
        pieces = [
            parse_code(one.text, one.language)
            for one in (cut_fragment(Program(text, "python")) for text in APPS)
        ]
        every_piece = [*apps(), *functions(every(apps())), *pieces]
        others = model.scores(model.read_trees(every_piece))
    assert model.calibration.threshold == pytest.approx(
        find_threshold(plain, number, others), abs=1e-5
    )


def test_background_is_for_classes_and_for_models_that_learn_step_by_step() -> None:
    data = example_trees(), example_labels()
    with pytest.raises(UsageError, match="similarity does not learn from background"):
        train(*data, background=apps(), task="similarity")
    with pytest.raises(UsageError, match="svm-tokens does not learn from background"):
        train(*data, background=apps(), model="svm-tokens")
    with pytest.raises(UsageError, match="validation background goes with background"):
        train(*data, val_background=apps())
    with pytest.raises(UsageError, match="are trees, not str"):
        train(*data, background=APPS)  # type: ignore[arg-type]
