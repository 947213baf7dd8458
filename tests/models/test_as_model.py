from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

import treecaps
from tests.conftest import EXAMPLES
from tests.inference.examples import save_small_model, small_model
from tests.search.examples import copy_programs
from tests.training.examples import example_labels, example_trees
from treecaps.errors import SearchError, UsageError
from treecaps.models.trained import ModelLike, TrainedModel, as_model
from treecaps.search import Index
from treecaps.search.build import update_index
from treecaps.training.presets import apply_settings, fine_tuning_preset, get_preset


@pytest.fixture(scope="module", params=["object", "folder", "name of the folder"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelLike:
    if request.param == "object":
        return small_model()
    folder = save_small_model(tmp_path_factory.mktemp("model"))
    return folder if request.param == "folder" else str(folder)


def test_a_model_is_taken_as_an_object_or_by_its_folder(model: ModelLike) -> None:
    file = EXAMPLES[0]
    (said,) = treecaps.classify(model, [file], workers=1)
    (expected,) = treecaps.classify(small_model(), [file], workers=1)
    assert isinstance(said, treecaps.Classification)
    assert isinstance(expected, treecaps.Classification)
    assert (said.id, said.label, said.guess) == (expected.id, expected.label, expected.guess)
    assert said.probability == pytest.approx(expected.probability, abs=1e-5)
    assert treecaps.explain(model, file).label
    assert treecaps.Embedder(model).model.labels == small_model().labels
    corpus = treecaps.Corpus.build(file.parent.parent, workers=1)
    assert treecaps.evaluate(model, corpus).programs == len(EXAMPLES)


def test_training_begins_with_it(model: ModelLike) -> None:
    quick = apply_settings(get_preset("default"), {"epochs": 1})
    found = treecaps.train(example_trees(), example_labels(), preset=quick, init_from=model)
    assert found.config == as_model(model).config
    estimator = treecaps.TreeCapsClassifier(init_from=model, epochs=1)
    copy = clone(estimator).fit(example_trees(), example_labels())
    assert copy.model_.config == found.config


def test_an_index_names_the_model_that_made_it(model: ModelLike, tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    update_index(folder, path, model=model, workers=1)
    if isinstance(model, TrainedModel):
        with pytest.raises(SearchError, match="was not saved: give its embedder"):
            Index.open(path)
    else:
        assert Index.open(path).model == str(model)


def test_bundled_models_have_names() -> None:
    found = as_model("algorithms")
    assert as_model(found) is found
    assert found.folder
    assert found.folder.name == "algorithms"


def test_a_trained_model_knows_its_folder(tmp_path: Path) -> None:
    quick = apply_settings(get_preset("default"), {"epochs": 1, "channels": 8})
    found = treecaps.train(example_trees(), example_labels(), preset=quick, folder=tmp_path / "m")
    assert found.folder == tmp_path / "m" == as_model(tmp_path / "m").folder


def test_other_things_are_no_models() -> None:
    with pytest.raises(UsageError, match=r"model is a TrainedModel, its folder or .* not int"):
        as_model(3)  # type: ignore[arg-type]


def test_a_model_has_methods_for_what_it_does() -> None:
    found, files = small_model(), EXAMPLES[:3]
    assert list(found.classify(files, top=2)) == list(treecaps.classify(found, files, top=2))
    assert found.explain(files[0], label="gcd").label == "gcd"
    one, other = found.embed(files[:1], functions=True), found.embed(files[:1])
    assert isinstance(embedding := next(other), treecaps.Embedding)
    assert embedding.function is None
    assert isinstance(embedding := next(one), treecaps.Embedding)
    assert embedding.function


def test_wrong_calls_say_what_is_right() -> None:
    wrong: list[tuple[Any, str]] = [
        (lambda: treecaps.load(3), "loaded by its folder or its name, not int"),  # type: ignore[arg-type]
        (lambda: treecaps.load("algorithms", engine="onnx"), "engine is a function"),  # type: ignore[arg-type]
        (lambda: treecaps.evaluate(small_model(), "folder"), "as a corpus, not str"),  # type: ignore[arg-type]
        (lambda: treecaps.train(["int a;"], ["x"]), "are trees, not str"),  # type: ignore[list-item]
        (lambda: treecaps.train("folder", ["x"]), "a corpus, or a list of trees"),  # type: ignore[arg-type]
    ]
    for call, words in wrong:
        with pytest.raises(UsageError, match=words):
            call()


def test_fine_tuning_takes_the_preset_of_the_pretrained_architecture(tmp_path: Path) -> None:
    trees, labels = example_trees(), example_labels()
    quick = apply_settings(get_preset("default", "astnn"), {"epochs": 1})
    astnn = treecaps.train(trees, labels, preset=quick)
    assert fine_tuning_preset(astnn.config).training.learning_rate == 3e-3
    assert fine_tuning_preset(small_model().config).training.learning_rate == 5e-3
    with pytest.raises(UsageError, match="the pretrained model is astnn, not tbcnn"):
        treecaps.train(trees, labels, model="tbcnn", init_from=astnn)
    with pytest.raises(UsageError, match="treecaps cannot be fine-tuned from astnn"):
        treecaps.train(trees, labels, preset=get_preset(), init_from=astnn)
    svm = treecaps.train(trees, labels, model="svm-tokens")
    with pytest.raises(UsageError, match="a linear model cannot be fine-tuned"):
        treecaps.train(trees, labels, init_from=svm, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
