"""From labelled trees to the examples of a task, for training and for validation."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treecaps.data.cache import CannotKeepError
from treecaps.data.corpus import Corpus
from treecaps.data.parallel import Change, parse_programs
from treecaps.data.sequences import (
    Joined,
    Selection,
    TreeTransform,
    corpora_of,
    count_nodes,
    map_trees,
)
from treecaps.data.vocabulary import Counts, Vocabulary
from treecaps.errors import DataError, UsageError
from treecaps.hashing import digest_parts
from treecaps.inputs.base import Input
from treecaps.inputs.distinct import Longs
from treecaps.inputs.packing import Packing
from treecaps.inputs.stored import StoredInput
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.tasks import Classification, Task
from treecaps.tasks.examples import BACKGROUND, UNKNOWN, Examples
from treecaps.training.background import Background
from treecaps.training.features import store_trees

Labels = Sequence[str | None]

log = logging.getLogger("treecaps")

_NAMED = 5
_CLASSIFICATION = Classification()


ReadTrees = Callable[[Iterable[Tree], Vocabulary], Input]
"""Returns programs in the form that a model reads."""
_IN_MEMORY = 10_000_000
"""How many nodes programs may have in all, in all views, to be held in memory: 2 GB or so."""
OnPrepare = Callable[[str, float], None]
"""Called with what is being done before training begins, and the share of it that is."""


@dataclass(frozen=True)
class Data:
    """All that a training sees.

    Args:
        every: The trees of ``train``, in all views and with background.
        trees: The training trees as they are, without background.
        val_trees: The validation trees.
        vocabulary: Their kinds and sub-tokens.
        labels: The names of the classes.
        train: The training programs, and background.
        val: The validation programs; none where there is nothing to validate with.
        facts: How many programs there are, for the model card.
        background: Background for validation, if there is any.
    """

    every: Sequence[Tree]
    trees: Sequence[Tree]
    val_trees: Sequence[Tree]
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    train: Examples
    val: Examples
    facts: dict[str, dict[str, Any]]
    background: Examples | None = None

    @property
    def nodes(self) -> Longs:
        """How many nodes each of the training trees has."""
        return count_nodes(self.trees)

    def fingerprint(self) -> str:
        """Return a digest of everything that networks learn from."""
        return digest_parts(self._contents())

    def _contents(self) -> Iterator[bytes]:
        known = (self.vocabulary.kinds, self.vocabulary.tokens, self.labels)
        yield repr(known).encode()
        others = [] if self.background is None else [self.background]
        for examples in (self.train, self.val, *others):
            yield examples.label.tobytes()
            yield from _bytes_of(examples.inputs)
            yield from _bytes_of(examples.target)


def _bytes_of(value: Any) -> Iterator[bytes]:
    """Yield all that inputs and targets hold: arrays, and dataclasses and sequences of them."""
    if isinstance(value, np.ndarray):
        yield value.tobytes()
    elif isinstance(value, StoredInput):
        yield value.digest.encode()
    elif is_dataclass(value):
        for one in fields(value):
            yield from _bytes_of(getattr(value, one.name))
    elif isinstance(value, tuple | list) and not all(isinstance(one, str) for one in value):
        for one in value:
            yield from _bytes_of(one)
    else:
        yield repr(value).encode()


def prepare(
    trees: Sequence[Tree],
    labels: Labels,
    val: tuple[Sequence[Tree], Labels] | None,
    *,
    read_trees: ReadTrees,
    val_share: float,
    seed: int,
    packing: Packing | None = None,
    tokens: int = 0,
    blind: TreeTransform | None = None,
    rewritten: TreeTransform | None = None,
    known: Vocabulary | None = None,
    task: Task = _CLASSIFICATION,
    background: tuple[Background, Background] | None = None,
    on_prepare: OnPrepare = lambda what, share: None,
) -> Data:
    """Turn labelled trees into what networks learn from.

    Args:
        trees: Trees to learn from.
        labels: Their labels; trees without one are left out.
        val: Other trees and labels for validation.
        read_trees: Returns programs in the form that networks read.
        val_share: Without other trees, this share of each class is set aside for validation.
        seed: Random seed when it is set aside.
        packing: How programs are kept on disk where they are many, if they can be.
        tokens: How many sub-tokens to know.
        blind: Makes the trees blind, where networks are to see them so as well.
        rewritten: Rewrites training programs, where they are to be seen so as well.
        known: What networks know already; what the trees have beside it is added.
        task: What is learned.
        background: Programs of none of the classes, for training and for validation.
        on_prepare: Called now and then.
    """
    # This function is long because it documents all that the data depend on.
    split = _split(trees, labels, val, task=task, val_share=val_share, seed=seed)
    val_views = {"blind": blind} if blind else {}
    views = {**val_views, **({"rewritten": rewritten} if rewritten else {})}
    every = _in_views(split.trees, views)
    others = background[0].in_views(views) if background else []
    vocabulary = _gather(every, others, tokens, known, on_prepare)

    def examples(parts: Sequence[Sequence[Tree]], label: Longs, views: Iterable[str]) -> Examples:
        joined, tell = Joined(parts), partial(on_prepare, "reading trees")
        inputs = _read(joined, vocabulary, read_trees, packing, tell)
        targets = task.targets(joined, np.tile(label, len(parts)), split.names)
        return Examples(inputs, label, targets, tuple(views))

    label = np.concatenate([split.label, _no_class(others)])
    if task.data == "bugs":
        split.facts["training"]["languages"] = sorted({tree.language for tree in split.trees})
    if others:
        every = [Joined(pair) for pair in zip(every, others, strict=True)]
        split.facts["training"]["background"] = len(others[0])
    val_every = _in_views(split.val_trees, val_views)
    val_others = background[1].in_views(val_views) if background and len(background[1]) else []
    return Data(
        Joined(every),
        split.trees,
        split.val_trees,
        vocabulary,
        split.names,
        examples(every, label, views),
        examples(val_every, split.val_label, val_views),
        split.facts,
        examples(val_others, _no_class(val_others), val_views) if val_others else None,
    )


def _gather(
    every: Sequence[Sequence[Tree]],
    others: Sequence[Sequence[Tree]],
    tokens: int,
    known: Vocabulary | None,
    on_prepare: OnPrepare,
) -> Vocabulary:
    """Return the kinds of trees and of background, the sub-tokens of trees, and what is known.

    Background would crowd out the words of the classes.
    """
    tell = partial(on_prepare, "gathering kinds and words")
    counts = _count(Joined(every), tokens > 0, tell), _count(Joined(others), False, tell)
    vocabulary = Vocabulary.from_counts(chain(*counts), tokens)
    return vocabulary if known is None else vocabulary | known


def _no_class(views: Sequence[Sequence[Tree]]) -> Longs:
    """Return the classes of background that is given in several views, or not at all."""
    return np.full(len(views[0]) if views else 0, BACKGROUND)


def _in_views(trees: Selection, views: Mapping[str, TreeTransform]) -> list[Sequence[Tree]]:
    """Return trees as they are, then in each of the other views."""
    return [trees, *(transform(trees) for transform in views.values())]


class _Split(NamedTuple):
    """Programs for training and for validation, with the numbers of their classes."""

    trees: Selection
    label: Longs
    val_trees: Selection
    val_label: Longs
    names: tuple[str, ...]
    facts: dict[str, dict[str, Any]]


def _split(
    trees: Sequence[Tree],
    labels: Labels,
    val: tuple[Sequence[Tree], Labels] | None,
    *,
    task: Task,
    val_share: float,
    seed: int,
) -> _Split:
    """Give classes numbers, and set programs aside for validation where no others are given."""
    rows = _labelled(trees, labels, "training", task)
    found = {str(label) for label in labels if label is not None}
    if task.needs_labels and len(found) < 2:
        raise UsageError(f"training needs at least two classes; there is only {min(found)!r}")
    val_rows = _labelled(*val, "validation", task) if val else rows[:0]
    others = {str(label) for label in (val[1] if val else ()) if label is not None}
    names = task.classes(found, others)
    numbers = {name: number for number, name in enumerate(names)}
    label = _encode(labels, rows, numbers)
    facts: dict[str, dict[str, Any]] = {"training": _facts(trees, len(labels) - len(rows))}
    if val is None:
        chosen = _set_aside(label, val_share, seed, least=task.min_programs)
        val_trees, val_label = Selection(trees, rows[chosen]), label[chosen]
        rows, label = rows[~chosen], label[~chosen]
        facts["validation"] = {"name": "a part of the training data"}
    else:
        val_trees, val_label = Selection(val[0], val_rows), _encode(val[1], val_rows, numbers)
        facts["validation"] = _facts(val[0], len(val[1]) - len(val_rows))
        if task.needs_labels:
            _note_unknown(val[1], numbers)
    task.check_labels(label)
    if not task.can_validate(val_label):
        log.warning("there is nothing to validate with: the networks of the last epoch are kept")
    facts["training"] |= {"programs": len(label), "classes": len(found)}
    facts["validation"] |= {"programs": len(val_label), "classes": len(np.unique(val_label))}
    return _Split(Selection(trees, rows), label, val_trees, val_label, tuple(names), facts)


def _read(
    trees: Joined,
    vocabulary: Vocabulary,
    read_trees: ReadTrees,
    packing: Packing | None,
    tell: Callable[[float], None],
) -> Input:
    """Return programs in the form that networks read, on disk if they are many."""
    if packing and corpora_of(trees) and count_nodes(trees).sum() > _IN_MEMORY:
        try:
            return store_trees(trees, vocabulary, read_trees, packing, tell)
        except CannotKeepError as error:
            log.warning("%s; this time, programs are held in memory", error)
    return read_trees(_watch(trees, tell), vocabulary)


def _watch(trees: Sequence[Tree], tell: Callable[[float], None]) -> Iterator[Tree]:
    """Yield trees, and tell what share of them has been asked for."""
    for number, tree in enumerate(trees):
        tell(number / len(trees))
        yield tree


def _count(trees: Sequence[Tree], words: bool, tell: Callable[[float], None]) -> Iterator[Counts]:
    """Yield the kinds and sub-tokens of some trees at a time."""
    done = 0
    tell(0)
    for number, counts in map_trees(trees, partial(Counts.of, words=words)):
        done += number
        tell(done / len(trees))
        yield counts


def change_trees(
    trees: Selection,
    name: str,
    change: Change,
    frontend: str,
    comments: bool,
    tell: Callable[[float], None] = lambda share: None,
) -> Sequence[Tree]:
    """Parse programs again after a change of their text; what fails stays as it is.

    Args:
        trees: The programs. Those of a corpus are kept beside it, for the next time.
        name: What the change is called; the same name means the same change.
        change: What is done to each program.
        frontend: The front end.
        comments: Whether comments are nodes.
        tell: Called with the share done.
    """
    corpus = trees.trees
    if isinstance(corpus, Joined):
        every = (Selection(part, np.arange(len(part))) for part in corpus.parts)
        parts = [change_trees(part, name, change, frontend, comments, tell) for part in every]
        return Selection(Joined(parts), trees.rows)
    if isinstance(corpus, Corpus):
        try:
            changed = corpus.changed(change, name, tell)
        except CannotKeepError as error:
            log.warning("%s; this time, programs are held in memory", error)
        else:
            places = changed.places
            places = np.where(places < 0, len(changed) + np.arange(len(corpus)), places)
            return Selection(Joined([changed, corpus]), places[trees.rows])
    found = list(trees)
    rows = [row for row, tree in enumerate(found) if tree.language in LANGUAGES]
    parsed = parse_programs(
        (
            Program.from_clean_text(found[row].text, found[row].language, id=str(row))
            for row in rows
        ),
        frontend,
        comments=comments,
        change=change,
        workers=os.cpu_count() or 1,
    )
    with closing(parsed) as results:
        for row, result in zip(rows, results, strict=True):
            tell(row / len(found))
            if isinstance(result, Tree):
                found[row] = result
    return found


def _facts(trees: Sequence[Tree], unlabelled: int) -> dict[str, Any]:
    about = {"name": trees.name, "failed": len(trees.failures)} if isinstance(trees, Corpus) else {}
    return {**about, "unlabelled": unlabelled}


def _labelled(trees: Any, labels: Any, what: str, task: Task) -> Longs:
    """Return the numbers of the trees that can be used, and complain where there are none."""
    if isinstance(labels, str) or not (
        isinstance(trees, Collection) and isinstance(labels, Collection)
    ):
        raise UsageError(f"{what} data are a list of trees and a list of labels")
    if len(trees) != len(labels):
        raise UsageError(f"{len(trees):,} {what} programs cannot have {len(labels):,} labels")
    if not len(trees):
        raise DataError(f"there are no {what} programs")
    wrong = next((label for label in labels if not isinstance(label, str | None)), None)
    if wrong is not None:
        raise UsageError(f"a label is text or None, not {type(wrong).__name__}: {wrong!r}")
    if not task.needs_labels:
        return np.arange(len(trees))
    rows = np.flatnonzero([label is not None for label in labels])
    if not len(rows):
        raise DataError(
            f"none of the {len(labels):,} {what} programs has a label; put them into one folder"
            " per class, or add 'label' to each row"
        )
    if len(rows) < len(labels):
        log.warning(
            "left out %s of %s %s programs: they have no label",
            f"{len(labels) - len(rows):,}",
            f"{len(labels):,}",
            what,
        )
    return rows


def _encode(labels: Labels, rows: Longs, numbers: dict[str, int]) -> Longs:
    return np.array([numbers.get(labels[row] or "", UNKNOWN) for row in rows.tolist()], np.int64)


def _set_aside(
    label: Longs, share: float, seed: int, least: int
) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Choose programs of each class for validation; the least stay, and where they can, go."""
    chosen = np.zeros(len(label), bool)
    if not share:
        return chosen
    rng = np.random.default_rng([seed, 0])  # epochs count from 1
    for number in np.unique(label):
        rows = rng.permutation(np.flatnonzero(label == number))
        chosen[rows[: min(max(least, round(share * len(rows))), len(rows) - least)]] = True
    return chosen


def _note_unknown(labels: Labels, numbers: dict[str, int]) -> None:
    unknown = Counter(label for label in labels if label is not None and label not in numbers)
    if not unknown:
        return
    named = ", ".join(sorted(unknown)[:_NAMED]) + (", ..." if len(unknown) > _NAMED else "")
    log.warning(
        "%s validation programs count as wrong: the training data have no class %s",
        f"{unknown.total():,}",
        named,
    )
