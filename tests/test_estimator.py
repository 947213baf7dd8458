import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import InputTags, estimator_checks, get_tags

import treecaps
from tests.conftest import EXAMPLES
from tests.training.examples import LABELS, example_labels, example_trees
from treecaps.errors import DataError, ProgramError, UsageError
from treecaps.estimator import TreeCapsClassifier
from treecaps.syntax.program import Program

SETTINGS = {"channels": 8, "hidden": (), "vectors": "random", "batch_size": 8}
PYTHON = [path for path in EXAMPLES if path.suffix == ".py"]


def some(**options: Any) -> TreeCapsClassifier:
    return TreeCapsClassifier(**{"settings": SETTINGS, "epochs": 2, **options})


def test_it_learns() -> None:
    settings = {**SETTINGS, "learning_rate": 0.05, "val_share": 0.0}
    model = some(settings=settings, epochs=12)
    assert model.fit(example_trees(), example_labels()) is model
    assert model.score(example_trees(), example_labels()) > 0.9
    assert model.classes_.tolist() == LABELS
    assert set(model.predict(example_trees()).tolist()) == set(LABELS)
    probabilities = model.predict_proba(example_trees())
    assert probabilities.shape == (52, 4)
    assert np.allclose(probabilities.sum(1), 1)
    best = model.classes_[probabilities.argmax(1)]
    assert best.tolist() == model.predict(example_trees()).tolist()
    assert model.failures_ == []
    assert isinstance(model.model_, treecaps.TrainedModel)


def test_programs_come_in_many_shapes() -> None:
    labels = [path.parent.name for path in PYTHON]
    shapes: list[list[Any]] = [
        [path.read_text() for path in PYTHON],
        [path.read_bytes() for path in PYTHON],
        list(PYTHON),
        [Program.read(path) for path in PYTHON],
        [treecaps.parse_file(path) for path in PYTHON],
    ]
    model = some(language="python").fit(PYTHON, labels)
    expected = model.predict_proba(PYTHON)
    for programs in shapes:
        assert np.array_equal(model.predict_proba(programs), expected)
    assert model.predict([]).tolist() == []


def test_classes_are_numbers_too() -> None:
    labels = np.array([2 + 5 * LABELS.index(path.parent.name) for path in EXAMPLES])
    model = some(epochs=1).fit(example_trees(), labels)
    assert model.classes_.tolist() == [2, 7, 12, 17]  # as names, 12 comes before 2
    assert model.model_.labels == ("12", "17", "2", "7")
    inputs = model.model_.read_trees(example_trees())
    own = [int(model.model_.labels[i]) for i in model.model_.scores(inputs).argmax(1).tolist()]
    assert model.predict(example_trees()).tolist() == own


def test_it_is_an_estimator() -> None:
    model = some(seed=3)
    assert model.get_params()["seed"] == 3
    copy = clone(model).set_params(seed=4, ensemble=2)
    assert (copy.seed, copy.ensemble, model.seed) == (4, 2, 3)
    with pytest.raises(NotFittedError):
        model.predict(PYTHON)
    first, again = (clone(model).fit(example_trees(), example_labels()) for _ in range(2))
    assert np.array_equal(
        first.predict_proba(example_trees()), again.predict_proba(example_trees())
    )
    copy.fit(example_trees(), example_labels())
    assert len(copy.model_.members) == 2


class OfNumbers(TreeCapsClassifier):
    """Takes the rows of numbers of scikit-learn's checks, each as a program that tells them."""

    def _read(self, program: Any, id: str) -> Any:
        code = "".join(f"x = {'-' * int(value > 0)}y\n" for value in np.ravel(program))
        return Program(code, "python", id=id)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags()
        return tags


API_CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimators_unfitted",
]
FIT_CHECKS = [
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_dict_unchanged",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_estimators_pickle",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_pipeline_consistency",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
]


@pytest.mark.parametrize("check", API_CHECKS)
def test_it_passes_the_checks_of_scikit_learn(check: str) -> None:
    getattr(estimator_checks, check)("TreeCapsClassifier", some())


@pytest.mark.parametrize("check", FIT_CHECKS)
def test_it_passes_the_checks_of_scikit_learn_with_data(check: str) -> None:
    getattr(estimator_checks, check)("OfNumbers", OfNumbers(settings=SETTINGS, epochs=1))


def test_tags_are_those_of_a_classifier_of_texts() -> None:
    tags = get_tags(some())
    assert is_classifier(some())
    assert tags.requires_fit
    assert tags.no_validation
    assert not tags.non_deterministic
    assert tags.target_tags.required
    assert tags.classifier_tags.multi_class
    assert (tags.input_tags.one_d_array, tags.input_tags.two_d_array) == (True, False)
    assert tags.input_tags.string


def test_programs_that_cannot_be_parsed_are_left_out_of_fit(tmp_path: Path) -> None:
    labels = [path.parent.name for path in PYTHON]
    programs = [*PYTHON, tmp_path / "none.py"]
    model = some()
    with pytest.warns(UserWarning, match="left out 1 of 5 programs.*program 4 no such file"):
        model.fit(programs, [*labels, "gcd"])
    assert [(failure.id, failure.code) for failure in model.failures_] == [("4", "unreadable")]
    with pytest.raises(ProgramError, match="program 1 no such file") as caught:
        model.predict([PYTHON[0], tmp_path / "none.py"])
    assert caught.value.code == "unreadable"
    with (
        pytest.warns(UserWarning, match="left out 1 of 1"),
        pytest.raises(DataError, match="no training programs"),
    ):
        some().fit([tmp_path / "none.py"], ["a"])


def test_programs_without_label_are_left_out_of_fit() -> None:
    labels = example_labels()
    with pytest.warns(UserWarning, match="left out 3 of 52 programs: they have no label"):
        model = some(epochs=1).fit(example_trees(), [None] * 3 + labels[3:])
    assert model.classes_.tolist() == LABELS
    assert model.model_.card["data"]["training"]["programs"] < 49


def test_options_may_be_numbers_of_numpy() -> None:
    options = {"epochs": np.int64(1), "seed": np.int32(3), "ensemble": np.int64(1)}
    model = some(**options).fit(example_trees(), example_labels())
    other = some(epochs=1, seed=3).fit(example_trees(), example_labels())
    probabilities = model.predict_proba(example_trees())
    assert np.array_equal(probabilities, other.predict_proba(example_trees()))


def test_wrong_calls() -> None:
    labels = [path.parent.name for path in PYTHON]
    shapes: list[Any] = [np.array([labels]).T, np.eye(4, dtype=int), "abcd", 3]
    for shape in shapes:
        with pytest.raises(UsageError, match="one label for each program"):
            some().fit(PYTHON, shape)
    with pytest.raises(UsageError, match="of one type"):
        some().fit(PYTHON, [1, "a", 3.5, object()])
    wrong: list[Any] = [["channels=8"], 3, "channels=8"]
    for settings in wrong:
        with pytest.raises(UsageError, match="settings are options by name"):
            some(settings=settings).fit(PYTHON, labels)
    with pytest.raises(UsageError, match="no preset None"):
        some(preset=None).fit(PYTHON, labels)
    fitted = some(language="python", epochs=1).fit(PYTHON, labels)
    ones: list[Any] = ["x = 1\n", PYTHON[0], Program.read(PYTHON[0]), example_trees()[0]]
    for one in ones:
        with pytest.raises(UsageError, match="give a list"):
            fitted.predict(one)
    with pytest.raises(UsageError, match="source code needs a language"):
        some().fit(["x = 1"], ["a"])
    with pytest.raises(UsageError, match="not int"):
        some().fit([1], ["a"])
    with pytest.raises(UsageError, match="4 programs cannot have 1 labels"):
        some().fit(PYTHON, ["a"])
    with pytest.raises(UsageError, match="no preset"):
        some(preset="best").fit(PYTHON, labels)
    with pytest.raises(UsageError, match="did you mean channels"):
        some(settings={"chanels": 1}).fit(PYTHON, labels)
    with pytest.raises(UsageError, match="at least two classes"):
        some().fit(PYTHON, ["a"] * 4)


def test_folds_in_other_processes_end_quietly() -> None:
    # In a process of its own: what the workers of its workers say is said when it ends.
    script = (
        "from sklearn.model_selection import cross_val_score\n"
        "from treecaps import TreeCapsClassifier\n"
        "programs = [f'for i in x:\\n    y = {n}\\n' for n in range(4)]\n"
        "programs += [f'print({n})\\n' for n in range(4)]\n"
        "model = TreeCapsClassifier(language='python', epochs=1)\n"
        "print(len(cross_val_score(model, programs, ['a'] * 4 + ['b'] * 4, cv=2, n_jobs=2)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert "Traceback" not in done.stderr
