"""``TreeCapsClassifier``: treecaps in the manner of scikit-learn."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from treecaps.data.parallel import parse_programs
from treecaps.errors import DataError, Failure, FailureCode, ProgramError, UsageError
from treecaps.models.trained import ModelLike
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train


class TreeCapsClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of programs with ``fit`` and ``predict``.

    A program may be source code as text (``language`` must be given), a ``Path`` to a file, a
    ``Program`` or a ``Tree``.

    Args:
        frontend: The parser: ``tree-sitter``, ``ast`` or ``srcml``.
        language: The language of programs that are given as text, and of files.
        comments: Whether comments become nodes.
        model: The name of the architecture.
        preset: The name of a preset of it.
        init_from: A trained model, its folder, or the name of a bundled one, to begin with.
        settings: Options of the preset to set, by name: ``{"channels": 32}``.
        epochs: Short for the setting of that name.
        ensemble: How many networks are trained and weighed against each other.
        seed: The same programs, labels and seed give the same model.
        device: Where to train, as PyTorch names devices.

    Attributes:
        classes_: The classes, sorted.
        model_: The ``TrainedModel``.
        failures_: The programs that ``fit`` left out, and why.
    """

    def __init__(
        self,
        *,
        frontend: str = "tree-sitter",
        language: str | None = None,
        comments: bool = False,
        model: str = "treecaps",
        preset: str = "default",
        init_from: ModelLike | None = None,
        settings: dict[str, Any] | None = None,
        epochs: int | None = None,
        ensemble: int = 1,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.frontend = frontend
        self.language = language
        self.comments = comments
        self.model = model
        self.preset = preset
        self.init_from = init_from
        self.settings = settings
        self.epochs = epochs
        self.ensemble = ensemble
        self.seed = seed
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.one_d_labels = True
        tags.no_validation = True  # programs are no array of numbers
        return tags

    def fit(self, programs: Sequence[Any], y: Sequence[Any] | NDArray[Any]) -> "TreeCapsClassifier":
        """Train on labelled programs; those that cannot be parsed are left out with a warning.

        Args:
            programs: The programs.
            y: The class of each.
        """
        _refuse_one(programs)
        labels = _check_labels(y)
        if len(programs) != len(labels):
            raise UsageError(f"{len(programs):,} programs cannot have {len(labels):,} labels")
        if not isinstance(self.settings, Mapping | None):
            raise UsageError('settings are options by name, such as {"channels": 32}')
        settings = dict(self.settings or {})
        if self.epochs is not None:
            settings["epochs"] = self.epochs
        preset = apply_settings(get_preset(self.preset, self.model), settings)
        trees, kept = self._parse_labelled(programs, labels)
        try:
            classes = np.unique(kept)
        except TypeError:
            raise UsageError("labels must be of one type: all text, or all numbers") from None
        names = [str(one) for one in classes.tolist()]
        self.model_ = train(
            trees,
            [str(label) for label in np.asarray(kept).tolist()],
            preset=preset,
            init_from=self.init_from,
            seed=self.seed,
            ensemble=self.ensemble,
            device=self.device,
            frontend=self.frontend,
            comments=self.comments,
        )
        self.classes_ = classes
        self._columns = [self.model_.labels.index(name) for name in names]
        return self

    def _parse_labelled(
        self, programs: Sequence[Any], labels: list[Any]
    ) -> tuple[list[Tree], list[Any]]:
        """Return the programs that have a label and can be parsed, and their labels."""
        trees: list[Tree] = []
        kept: list[Any] = []
        self.failures_: list[Failure] = []
        for result, label in zip(self._parse(programs), labels, strict=True):
            if label is None:
                continue
            if isinstance(result, Failure):
                self.failures_.append(result)
            else:
                trees.append(result)
                kept.append(label)
        if missing := sum(label is None for label in labels):
            warnings.warn(
                f"left out {missing:,} of {len(programs):,} programs: they have no label",
                stacklevel=3,
            )
        if self.failures_:
            first = self.failures_[0]
            warnings.warn(
                f"left out {len(self.failures_):,} of {len(programs):,} programs that cannot be"
                f" parsed; program {first.id} {first.message}",
                stacklevel=3,
            )
        if not trees:
            raise DataError("there are no training programs")
        return trees, kept

    def predict(self, programs: Iterable[Any]) -> NDArray[Any]:
        """Return the class of each program."""
        lengths = self._lengths(programs)
        guesses: NDArray[Any] = self.classes_[lengths.argmax(1)]
        return guesses

    def predict_proba(self, programs: Iterable[Any]) -> NDArray[np.float32]:
        """Return the calibrated probability of each class."""
        lengths = self._lengths(programs)
        return self.model_.calibration.probabilities(lengths)

    def _lengths(self, programs: Iterable[Any]) -> NDArray[np.float32]:
        """Return the lengths ``[B, classes]``, with the classes in the order of ``classes_``."""
        check_is_fitted(self, "model_")
        _refuse_one(programs)
        trees = []
        for result in self._parse(programs):
            if isinstance(result, Failure):
                code = cast(FailureCode, result.code)
                raise ProgramError(code, f"program {result.id} {result.message}")
            trees.append(result)
        inputs = self.model_.read_trees(trees)
        return self.model_.scores(inputs)[:, self._columns]

    def _parse(self, programs: Iterable[Any]) -> Iterator[Tree | Failure]:
        """Yield the tree of each program, or what is wrong with it under its number."""
        given = [self._read(program, str(number)) for number, program in enumerate(programs)]
        parsed = parse_programs(
            (one for one in given if not isinstance(one, Tree)),
            self.frontend,
            comments=self.comments,
            workers=os.cpu_count() or 1,
        )
        with closing(parsed):
            for one in given:
                yield one if isinstance(one, Tree) else next(parsed)

    def _read(self, program: Any, id: str) -> Program | Tree | Failure:
        try:
            if isinstance(program, Path):
                program = Program.read(program, self.language)
            elif isinstance(program, str | bytes):
                if self.language is None:
                    raise UsageError(
                        "source code needs a language: TreeCapsClassifier(language=...)"
                    )
                program = Program(program, self.language)
        except ProgramError as error:
            return Failure(id, error.code, str(error))
        if isinstance(program, Program):
            return program.replace(id=id)
        if not isinstance(program, Tree):
            kind = type(program).__name__
            raise UsageError(f"a program is text, a Path, a Program or a Tree, not {kind}")
        return program


def _refuse_one(programs: Any) -> None:
    if isinstance(programs, str | bytes | Path | Program | Tree):
        raise UsageError("give a list of programs, even for one: [program]")


def _check_labels(labels: Any) -> list[Any]:
    """Return labels as a list, if there is one for each program."""
    found = None if isinstance(labels, str | bytes) or not isinstance(labels, Iterable) else labels
    listed = [] if found is None else list(found)
    if found is None or any(np.ndim(label) for label in listed):
        raise UsageError("labels are a list with one label for each program")
    return listed
