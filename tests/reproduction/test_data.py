import json
from pathlib import Path

from treecaps.data.corpus import Corpus
from treecaps.reproduction.data import Labelled, split, take_part


def build(path: Path) -> Corpus:
    """Return 30 programs of a class, 4 of another, one of a third and one of none."""
    labels = [*["many"] * 30, *["few"] * 4, "one", None]
    rows = [
        {"code": f"x = {number}\n" * (number + 1), "language": "python", "label": label}
        for number, label in enumerate(labels)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Corpus.build(path)


def sizes(part: Labelled) -> list[int]:
    return [len(tree) for tree in part.trees]


def test_a_share_of_each_class_validates(tmp_path: Path) -> None:
    corpus = build(tmp_path / "train.jsonl")
    learn, val = split(corpus, 0.1)
    assert sorted(val.labels) == ["few", "many", "many", "many"]
    assert sorted(learn.labels) == ["few"] * 3 + ["many"] * 27 + ["one"]
    # Every program has a size of its own.
    label = dict(zip((len(tree) for tree in corpus), corpus.labels, strict=True))
    assert [label[size] for size in sizes(learn)] == learn.labels
    assert [label[size] for size in sizes(val)] == val.labels
    every = sizes(learn) + sizes(val)
    assert len(set(every)) == len(every) == 35
    again = split(corpus, 0.1)
    assert (sizes(learn), sizes(val)) == (sizes(again[0]), sizes(again[1]))


def test_programs_are_not_taken_in_order(tmp_path: Path) -> None:
    corpus = build(tmp_path / "train.jsonl")
    _, val = split(corpus, 0.5)
    many = [size for size, label in zip(sizes(val), val.labels, strict=True) if label == "many"]
    assert len(many) == 15
    assert max(many) > sorted(len(tree) for tree in corpus)[20]
    assert min(many) < sorted(len(tree) for tree in corpus)[10]


def test_a_part_has_a_share_of_each_class(tmp_path: Path) -> None:
    learn, _ = split(build(tmp_path / "train.jsonl"), 0.1)
    part = take_part(learn, 1 / 3)
    assert sorted(part.labels) == ["few"] + ["many"] * 9 + ["one"]
    label = dict(zip(sizes(learn), learn.labels, strict=True))
    assert [label[size] for size in sizes(part)] == part.labels
    assert sizes(part) == sizes(take_part(learn, 1 / 3)) == sorted(set(sizes(part)))
