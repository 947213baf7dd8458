import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import EXAMPLES
from treecaps import load, parse_code, parse_file, train
from treecaps.data.bugs import label_of, lines_of
from treecaps.data.corpus import Corpus
from treecaps.data.dataset import DataSet
from treecaps.errors import Failure, UsageError
from treecaps.nn.bug_loss import BugLabels, bug_loss, log_sums
from treecaps.nn.node_readout import NodeOutput
from treecaps.syntax.mutations import mutate
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.tasks.bug_targets import MISTAKES, BugTargets, find_threshold
from treecaps.tasks.bugs import Bugs
from treecaps.tasks.examples import Examples
from treecaps.tasks.lines import area_under_curve, line_ranks, lines_of_nodes
from treecaps.training.presets import Preset, apply_settings, get_preset

ENDINGS = (".py", ".java", ".c", ".cpp", ".js")
TREES = [parse_file(path) for path in EXAMPLES if path.suffix in ENDINGS]
RNG = np.random.default_rng


def small(*settings: str, model: str = "treecaps") -> Preset:
    sizes = ["vector_size=6", "readout=8", "batch_size=4", *settings]
    if model == "treecaps":
        sizes += ["hidden=", "channels=2", "slices=8"]
    return apply_settings(get_preset(model=model, task="bugs"), sizes)


def pairs() -> tuple[list[Tree], list[str | None]]:
    """Mutants of the examples, each beside what it was made of, and their labels."""
    trees: list[Tree] = []
    labels: list[str | None] = []
    for tree in TREES:
        mutant = mutate(tree, RNG(0))
        assert mutant is not None
        trees += [mutant.tree, tree]
        labels += [label_of([int(lines_of_nodes(mutant.tree)[mutant.node])]), None]
    return trees, labels


def plain_pairs() -> tuple[list[Tree], list[str | None]]:
    """Small programs in which everybody sees what is wrong, each beside the right one."""
    trees: list[Tree] = []
    labels: list[str | None] = []
    for size in (3, 4, 5):
        for place in range(size):
            lines = ["a = b"] * size
            trees.append(parse_code("\n".join(lines), "python"))
            labels.append(None)
            lines[place] = "a = b + 1"
            trees.append(parse_code("\n".join(lines), "python"))
            labels.append(label_of([place + 1]))
    return trees, labels


def test_labels_tell_of_lines() -> None:
    assert label_of([]) is None
    assert label_of([3, 1, 3]) == "lines 1,3"
    assert lines_of("lines 1,3") == (1, 3)
    for other in (None, "", "1", "lines", "lines x", "lines 1,"):
        assert lines_of(other) == ()


def test_a_data_set_of_pairs_has_both_programs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl.gz"
    rows = [
        {"id": "a.py", "code": "x = 1\ny = 2\n", "fixed": "x = 1\ny = 3\n", "lines": [2],
         "label": "some problem"},
        {"id": "b.py", "code": "z = 1\n", "label": "other"},
        {"id": "c.py", "code": "z = 1\n", "lines": ["2"]},
    ]  # fmt: skip
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    found = list(DataSet(path, bugs=True))
    programs = [one for one in found if isinstance(one, Program)]
    assert [(one.id, one.label, one.text) for one in programs] == [
        ("a.py", "lines 2", b"x = 1\ny = 2\n"),
        ("fixed/a.py", None, b"x = 1\ny = 3\n"),
        ("b.py", None, b"z = 1\n"),
    ]
    assert {one.language for one in programs} == {"python"}
    (failure,) = (one for one in found if isinstance(one, Failure))
    assert (failure.id, failure.code) == ("line 3", "record")
    classes = [one.label for one in DataSet(path) if isinstance(one, Program)]
    assert classes == ["some problem", "other", None]
    assert DataSet(path).fingerprint() != DataSet(path, bugs=True).fingerprint()


def test_lines_without_code_stand_for_the_next_that_has_some() -> None:
    tree = parse_code("a = 1\n\n# here\n\nb = 2\n", "python")
    target = BugTargets.of([tree] * 4, [(2,), (1, 3), (9,), ()])
    assert target.wrong == [(5,), (1, 5), (5,), ()]
    assert target.buggy.tolist() == [True, True, True, False]
    assert target[[3, 0]].wrong == [(), (5,)]
    slow = [tree.line_and_column(node)[0] for node in range(len(tree))]
    assert target.line[0].tolist() == slow


def test_lines_are_ranked_by_the_sums_of_their_nodes() -> None:
    rng = RNG(0)
    line = np.sort(rng.integers(1, 9, 30)).astype(np.int32)
    bug = rng.normal(size=30).astype(np.float32)
    lines, sums = line_ranks(bug, rng.permutation(line))
    slow = {one: np.log(np.exp(bug[line == one]).sum()) for one in np.unique(line)}
    lines, sums = line_ranks(bug, line)
    assert lines.tolist() == sorted(slow, key=lambda one: -slow[one])
    np.testing.assert_allclose(sums, [slow[one] for one in lines.tolist()], rtol=1e-5)


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order() -> None:
    rng = RNG(1)
    score = rng.integers(0, 6, 40).astype(float)
    right = rng.random(40) < 0.4
    pairs = [
        (one > other) + 0.5 * (one == other) for one in score[right] for other in score[~right]
    ]
    assert area_under_curve(score, right) == pytest.approx(np.mean(pairs))
    assert area_under_curve(score, np.ones(40, bool)) is None


def test_few_programs_without_a_bug_exceed_the_threshold() -> None:
    right = RNG(2).random(150)
    threshold = find_threshold(right)
    assert (right > threshold).sum() == 3
    assert find_threshold(right[:0]) == 0.5


def test_the_loss_equals_a_loop_over_programs() -> None:
    torch.manual_seed(0)
    sizes, wrong = [4, 3, 5], {0: [1, 2], 2: [0]}
    output = NodeOutput(torch.randn(12), torch.randn(3), torch.randn(12, 6))
    program = torch.tensor([0] * 4 + [1] * 3 + [2] * 5)
    labels = BugLabels(
        *map(torch.tensor, ([1, 2, 7], [0, 0, 2], [7], [3], [2])),
    )
    found = bug_loss(output, program, labels)
    total = 0.0
    for row, bug in enumerate(output.bug.split(sizes)):  # type: ignore[no-untyped-call]
        every = torch.cat([output.none[row : row + 1], bug]).exp()
        shares = every / every.sum()
        right = shares[[1 + node for node in wrong[row]]].sum() if row in wrong else shares[0]
        total -= right.log().item()
        if row == 2:
            total -= 0.3 * (bug.exp() / bug.exp().sum())[0].log().item()
            total -= 0.2 * output.kinds[7].log_softmax(0)[3].item()
    assert found["loss"].item() == pytest.approx(total / 3, rel=1e-5)
    empty = log_sums(output.bug[:2], torch.tensor([0, 0]), 3)
    assert empty[0].item() == pytest.approx(output.bug[:2].logsumexp(0).item())
    assert (empty[1:] < -1e8).all()


def test_an_epoch_has_new_mutants_beside_the_programs_without_a_bug() -> None:
    trees, labels = pairs()
    trees, labels = trees[:8], labels[:8]
    preset = small()
    names = sorted({one for one in labels if one})
    label = np.array([names.index(one) if one else -1 for one in labels])
    task = Bugs()
    target = task.targets(trees, label, names)
    examples = Examples(np.zeros(0), label, target)  # type: ignore[arg-type]
    seen: list[list[Tree]] = []

    def read(some: list[Tree]) -> list[Tree]:  # stands for what a network reads
        seen.append(some)
        return some

    drawn = [task.renew(examples, trees, read, RNG(seed)) for seed in (0, 0, 1)]  # type: ignore[arg-type]
    assert preset.task == task
    assert [tree.text for tree in seen[0]] == [tree.text for tree in seen[1]]
    assert [tree.text for tree in seen[0]] != [tree.text for tree in seen[2]]
    for epoch, some in zip(drawn, seen, strict=True):
        known = epoch.target.node >= 0
        assert known.sum() == 4
        assert len(epoch) == len(some) == 12
        assert epoch.target.buggy.sum() == 8
        for row in np.flatnonzero(known).tolist():
            line = some[row].line_and_column(int(epoch.target.node[row]))[0]
            assert epoch.target.wrong[row] == (line,)
            assert 0 <= epoch.target.kind[row] < len(MISTAKES)
            # What it was made of stands behind it.
            assert not epoch.target.wrong[row + 1]
            assert some[row].text != some[row + 1].text
    real = Bugs(mutation_probability=0)
    assert real.renew(examples, trees, read, RNG(0)) is examples  # type: ignore[arg-type]
    few = Bugs(mutation_probability=0, epoch_size=4)
    assert len(few.renew(examples, trees, read, RNG(0))) == 4  # type: ignore[arg-type]


def test_twins_are_in_one_batch() -> None:
    batches = Bugs().sample(np.zeros(31, np.int64), 8, RNG(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(31))
    for batch in batches:
        for row in batch.tolist():
            assert (row ^ 1) in batch or row == 30


@pytest.mark.parametrize("model", ["treecaps", "ggnn"])
def test_it_is_learned_and_kept(model: str, tmp_path: Path) -> None:
    trees, labels = plain_pairs()
    preset = small("epochs=12", "learning_rate=0.03", "mutation_probability=0", model=model)
    options = {"folder": tmp_path / "m", "background": TREES[:3]}
    trained = train(trees, labels, val=(trees, labels), preset=preset, **options)  # type: ignore[arg-type]
    assert trained.labels == MISTAKES
    assert trained.card["metrics"]["validation_mrr"] > 0.9
    assert 0 < trained.calibration.threshold < 1
    again = load(tmp_path / "m")
    one, other = (each.score_bugs(each.read_trees(trees[:4])) for each in (trained, again))
    np.testing.assert_allclose(one.bug, other.bug, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.none, other.none, rtol=0, atol=1e-5)


def test_mutations_alone_are_learned_from_and_training_goes_on(tmp_path: Path) -> None:
    trees, labels = pairs()
    trained = train(TREES, [None] * len(TREES), val=(trees, labels), preset=small("epochs=1"))
    assert trained.card["metrics"]["epochs"] == 1
    assert 0 < trained.card["metrics"]["validation_mrr"] < 1
    finer = train(trees, labels, val=(trees, labels), preset=small("epochs=1"), init_from=trained)
    assert finer.config == trained.config


def test_what_cannot_find_bugs_says_so(tmp_path: Path) -> None:
    trees, labels = pairs()
    with pytest.raises(UsageError, match="only the architectures treecaps and ggnn find bugs"):
        train(trees, labels, preset=get_preset(model="tbcnn", task="bugs"))
    with pytest.raises(UsageError, match="bugs are on lines of programs as they are"):
        train(trees, labels, preset=small("rename_probability=0.5"))
    classifier = load("algorithms")
    with pytest.raises(UsageError, match="no read-out for nodes"):
        classifier.score_bugs(classifier.read_trees(trees[:1]))


def test_a_corpus_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    row = {"id": "a.py", "code": "x = 1\n", "fixed": "x = 2\n", "lines": [1]}
    path.write_text(json.dumps(row))
    corpus = Corpus.build(DataSet(path, bugs=True), workers=1, cache=tmp_path / "cache")
    assert corpus.labels == ["lines 1", None]
