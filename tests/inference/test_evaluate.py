import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import treecaps
from tests.conftest import EXAMPLES
from tests.inference.examples import LABELS, small_model
from treecaps.data.corpus import Corpus
from treecaps.errors import DataError, UsageError
from treecaps.inference import evaluate as module
from treecaps.inference.evaluate import evaluate
from treecaps.inputs.windows import Windows
from treecaps.models.trained import TrainedModel


def corpus_of(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> Corpus:
    file = tmp_path / "some.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Corpus.build(file, workers=1, **options)


def rows_of(files: list[Path]) -> list[dict[str, Any]]:
    return [
        {"id": path.name, "code": path.read_text(), "label": path.parent.name} for path in files
    ]


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_their_slow_twins(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    truth = chance.choices([*LABELS[:3], "other", "none"], k=60)
    numbers = [chance.randrange(seed % 4 + 1) for _ in truth]
    answers = [LABELS[number] for number in numbers]
    given = iter(numbers)

    def scores(self: TrainedModel, inputs: Windows) -> Tensor:
        return torch.eye(len(LABELS))[[next(given) for _ in range(len(inputs))]]

    monkeypatch.setattr(TrainedModel, "scores", scores)
    monkeypatch.setattr(module, "_CHUNK_PROGRAMS", 7)
    rows = [{"code": "int a;", "language": "c", "label": label} for label in truth]
    found = evaluate(small_model(), corpus_of(tmp_path, rows))

    pairs = Counter(zip(truth, answers, strict=True))
    right = sum(count for (label, answer), count in pairs.items() if label == answer)
    assert found.accuracy == pytest.approx(right / 60)
    assert found.labels == tuple(sorted({*truth, *answers}))
    assert found.confusion == tuple(
        tuple(pairs[label, answer] for answer in found.labels) for label in found.labels
    )
    all_f1 = []
    for score, label in zip(found.classes, found.labels, strict=True):
        hits, here, put = pairs[label, label], truth.count(label), answers.count(label)
        precision = hits / put if put else 0
        recall = hits / here if here else 0
        f1 = 2 * precision * recall / (precision + recall) if hits else 0
        all_f1.append(f1)
        assert (score.label, score.programs) == (label, here)
        assert (score.precision, score.recall, score.f1) == pytest.approx((precision, recall, f1))
    assert found.macro_f1 == pytest.approx(sum(all_f1) / len(all_f1))
    assert found.unknown_labels == {name: truth.count(name) for name in ("none", "other")}
    wrong = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    mistakes = found.mistakes()
    assert {(label, answer): count for label, answer, count in mistakes} == wrong
    assert [count for *_, count in mistakes] == sorted(wrong.values(), reverse=True)


def test_answers_are_those_of_classify(tmp_path: Path) -> None:
    files = EXAMPLES[::3]
    found = evaluate(small_model(), corpus_of(tmp_path, rows_of(files)))
    right = 0
    for path, result in zip(files, treecaps.classify(small_model(), files), strict=True):
        assert isinstance(result, treecaps.Classification)
        right += result.label == path.parent.name
    assert found.accuracy == pytest.approx(right / len(files))
    assert found.ms_per_program > 0


def test_a_model_of_kinds_is_not_fooled_by_names(tmp_path: Path) -> None:
    rows = rows_of([path for path in EXAMPLES if path.suffix != ".py"])  # Python has docstrings
    plain = evaluate(small_model(), corpus_of(tmp_path, rows))
    blind = evaluate(small_model(), corpus_of(tmp_path, rows, blind=True))
    assert blind.accuracy == plain.accuracy
    assert blind.confusion == plain.confusion


def test_what_cannot_be_scored_is_counted_beside(tmp_path: Path) -> None:
    rows = rows_of(EXAMPLES[:4])
    alone = evaluate(small_model(), corpus_of(tmp_path, rows))
    extra: list[dict[str, Any]] = [
        {"code": 5, "label": "gcd"},
        {"code": "x", "language": "cobol", "label": "gcd"},
        {"code": 6, "label": "gcd"},
        {"code": "int a;", "language": "c"},
    ]
    found = evaluate(small_model(), corpus_of(tmp_path, rows + extra))
    assert (found.accuracy, found.macro_f1) == (alone.accuracy, alone.macro_f1)
    assert (found.programs, found.failed, found.unlabelled) == (4, 3, 1)
    assert [(failure["code"], failure["programs"]) for failure in found.failures] == [
        ("record", 2),
        ("unknown-language", 1),
    ]
    assert found.failures[0]["ids"] == ["line 5", "line 7"]


def test_data_that_cannot_be_scored_are_refused(tmp_path: Path) -> None:
    code = {"code": "int a;", "language": "c"}
    with pytest.raises(DataError, match=r"no program of some\.jsonl has a label"):
        evaluate(small_model(), corpus_of(tmp_path, [code, code]))
    with pytest.raises(DataError, match=r"all 1 programs of some\.jsonl failed: line 1 has no"):
        evaluate(small_model(), corpus_of(tmp_path, [{"label": "gcd"}]))
    with pytest.raises(DataError, match="holds no programs"):
        corpus_of(tmp_path, [])
    labelled = [{"code": "a = 1", "language": "python", "label": "gcd"}]
    with pytest.raises(UsageError, match="was parsed by ast without comments"):
        evaluate(small_model(), corpus_of(tmp_path, labelled, frontend="ast"))
    with pytest.raises(UsageError, match="was parsed by tree-sitter with comments"):
        evaluate(small_model(), corpus_of(tmp_path, labelled, comments=True))


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK_NODES", 1)
    shares: list[float] = []
    evaluate(small_model(), corpus_of(tmp_path, rows_of(EXAMPLES[:4])), step=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1]


def test_the_dictionary_keeps_its_shape(tmp_path: Path) -> None:
    found = evaluate(small_model(), corpus_of(tmp_path, rows_of(EXAMPLES[:4]))).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert list(found) == [
        "accuracy",
        "macro_f1",
        "programs",
        "failed",
        "unlabelled",
        "unknown_labels",
        "classes",
        "labels",
        "confusion",
        "ms_per_program",
        "failures",
    ]
    assert list(found["classes"][0]) == ["label", "precision", "recall", "f1", "programs"]
