"""``TrainedModel``: an engine with all it takes to feed it and to read its answers."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from treecaps.cluster import Workers
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import Failure, UsageError, naming_extra
from treecaps.hashing import digest_parts
from treecaps.inputs.base import Input
from treecaps.models.architectures import architecture_of
from treecaps.models.bundled import find_model
from treecaps.models.calibration import Calibration
from treecaps.models.config import ModelConfig
from treecaps.models.engine import BugEngine, BugScores, BuildEngine, Engine, Floats
from treecaps.models.folder import StoredModel, read_model, write_model
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.syntax.program import Item, Program
from treecaps.syntax.tree import Tree
from treecaps.text import html_table, short_repr

if TYPE_CHECKING:
    from treecaps.explanation.attribution import Method
    from treecaps.explanation.explanation import Explanation
    from treecaps.inference.classify import Classification
    from treecaps.inference.embed import Embedding
    from treecaps.models.light.engine import NumpyEngine
    from treecaps.models.network import Model
    from treecaps.models.torch_engine import TorchEngine

_LEAST = 1e-12
"""Below this, a vector is not made longer."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Trained networks, one or several with weights, and all it takes to feed them.

    Args:
        engine: What runs the networks.
        vocabulary: Numbers of what they know of nodes.
        labels: The names of the classes, sorted; none if the task has none.
        frontend: The front end whose trees they were trained on.
        comments: Whether comments were nodes of those trees.
        calibration: What makes probabilities of scores, and when the answer is unknown.
        card: What made the model: data, metrics, versions; plain values for JSON.
        task: The name of the task that it was trained for.
        folder: Where it was read from or is kept, if anywhere.
        projection: ``[E, D]``, what the embeddings of the engine are multiplied with, if anything.
    """

    engine: Engine
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    frontend: str = "tree-sitter"
    comments: bool = False
    calibration: Calibration = field(default_factory=Calibration)
    card: dict[str, Any] = field(default_factory=dict)
    task: str = "classification"
    folder: Path | None = None
    projection: Floats | None = None

    def __repr__(self) -> str:
        facts = {"task": self.task, "classes": len(self.labels)}
        where = {"folder": str(self.folder)} if self.folder else {}
        return short_repr(self, architecture_of(self.config), **facts, **where)

    def _repr_html_(self) -> str:
        rows = [
            ("architecture", architecture_of(self.config)),
            ("task", self.task),
            ("parser", spell_parser(self.frontend, self.comments)),
            ("classes", ", ".join(self.labels) if self.labels else "none"),
        ]
        return html_table(str(self.folder or "a trained model"), ("", ""), rows)

    def title(self, label: str) -> str | None:
        """Return what a class is in words, if the card tells more than its name."""
        titles = self.card.get("titles")
        found = titles.get(label) if isinstance(titles, dict) else None
        return found if isinstance(found, str) else None

    @property
    def config(self) -> ModelConfig:
        """What each of the networks is made of."""
        return self.engine.config

    @cached_property
    def torch_engine(self) -> "TorchEngine":
        """The same networks on PyTorch, made when they are first asked for."""
        with naming_extra("a network on PyTorch"):
            from treecaps.models.torch_engine import TorchEngine
        if isinstance(self.engine, TorchEngine):
            return self.engine
        engine = self.engine
        return TorchEngine.build(
            self.config, engine.weights, self.vocabulary, engine.outputs, engine.arrays()
        )

    @cached_property
    def light_engine(self) -> "NumpyEngine":
        """The same networks in NumPy, which only those of the architecture treecaps can be."""
        from treecaps.models.light.engine import NumpyEngine

        engine = self.engine
        if isinstance(engine, NumpyEngine):
            return engine
        return NumpyEngine.build(
            self.config, engine.weights, self.vocabulary, engine.outputs, engine.arrays()
        )

    @property
    def members(self) -> "tuple[Model, ...]":
        """The networks of the ensemble, on PyTorch."""
        return self.torch_engine.members

    @property
    def num_parameters(self) -> int:
        """How many weights the networks have in all."""
        return sum(weight.numel() for member in self.members for weight in member.parameters())

    def read_trees(self, trees: Iterable[Tree]) -> Input:
        """Return programs in the form that the networks read."""
        return self.engine.read_trees(trees, self.vocabulary)

    def scores(self, inputs: Input) -> Floats:
        """Return how much speaks for each class, ``[B, classes]``: the members' weighted mean."""
        return self.engine.scores(inputs)

    def probabilities(self, inputs: Input) -> Floats:
        """Return the calibrated probability ``[B, classes]`` of each class."""
        return self.calibration.probabilities(self.scores(inputs))

    def embeddings(self, inputs: Input) -> Floats:
        """Return embeddings of length 1, ``[B, D]``: a dot product says how alike two are."""
        found = self.engine.embed(inputs)
        if self.projection is None or not len(found):
            return found
        projected = found @ self.projection
        length = np.linalg.norm(projected, axis=1, keepdims=True)
        unit: Floats = projected / np.maximum(length, _LEAST)
        return unit

    def score_bugs(self, inputs: Input) -> BugScores:
        """Return how suspicious the nodes of programs are; there must be one or more."""
        if not isinstance(self.engine, BugEngine):
            raise UsageError("the engine of this model cannot tell of nodes: leave out engine")
        return self.engine.score_bugs(inputs)

    # What uses models stands above them, so it is imported when it is called.

    def classify(
        self,
        programs: Iterable[Item | str | Path],
        *,
        top: int = 3,
        functions: bool = False,
        workers: Workers | None = None,
    ) -> "Generator[Classification | Failure]":
        """Tell the classes of programs, in order, as ``treecaps.classify`` does.

        Args:
            programs: Programs, or files to read; failures pass through.
            top: How many classes to name for each program.
            functions: Whether to tell the class of each function of a program, not of the whole.
            workers: How many processes there are, or a ``RayCluster``; as many processes as
                there are cores by default.
        """
        from treecaps.inference.classify import classify

        return classify(self, programs, top=top, functions=functions, workers=workers)

    def embed(
        self,
        programs: Iterable[Item | str | Path],
        *,
        functions: bool = False,
        workers: Workers | None = None,
    ) -> "Generator[Embedding | Failure]":
        """Yield the embeddings of programs, in order, as ``treecaps.Embedder`` does.

        Args:
            programs: Programs, or files to read; failures pass through.
            functions: Whether each function of a program gets an embedding, not the whole.
            workers: How many processes there are, or a ``RayCluster``; as many processes as
                there are cores by default.
        """
        from treecaps.inference.embed import Embedder

        return Embedder(self).embed(programs, functions=functions, workers=workers)

    def explain(
        self,
        program: Program | Tree | str | Path,
        *,
        label: str | None = None,
        method: "Method | None" = None,
        dimensions: bool = False,
    ) -> "Explanation":
        """Tell what of a program leads to its class, as ``treecaps.explain`` does.

        Args:
            program: The program, its tree by the front end of the model, or its file.
            label: The class to explain; the best guess by default.
            method: How; by default gradients, and routing for a large program.
            dimensions: Whether to tell what the numbers of the code capsule stand for.
        """
        from treecaps.explanation.explanation import explain

        return explain(self, program, label=label, method=method, dimensions=dimensions)

    def fingerprint(self) -> str:
        """Return a digest of all that answers depend on."""
        known = repr((self.vocabulary.to_json(), self.labels)).encode()
        arrays = (array.tobytes() for array in self.engine.arrays().values())
        projection = [] if self.projection is None else [self.projection.tobytes()]
        return digest_parts(chain([known], arrays, projection))

    def save(
        self, folder: str | Path, beside: dict[str, bytes] | None = None, *, half: bool = False
    ) -> None:
        """Write the model into a folder; on a full disk an older model there stays whole.

        Args:
            folder: Where to; it is made if it does not exist.
            beside: The contents of other files that belong to the model.
            half: Whether to save the weights as float16.
        """
        parts = {name: getattr(self, name) for name in StoredModel._fields}
        write_model(Path(folder), StoredModel(**parts), beside or {}, half=half)

    @classmethod
    def load(cls, folder: str | Path, *, engine: BuildEngine | None = None) -> "TrainedModel":
        """Read what ``save`` wrote and check it, or raise ``ModelError``.

        Args:
            folder: Where from.
            engine: Makes what runs the networks; by default NumPy runs those of the architecture
                treecaps and PyTorch the others.
        """
        stored = read_model(Path(folder), engine or _build_engine)
        return cls(**stored._asdict(), folder=Path(folder))


def _build_engine(config: ModelConfig, *rest: Any) -> Engine:
    """Make the engine that suits a configuration, as ``BuildEngine`` says."""
    if type(config) is TreeCapsConfig:
        from treecaps.models.light.engine import NumpyEngine

        return NumpyEngine.build(config, *rest)
    from treecaps.models.torch_engine import TorchEngine

    return TorchEngine.build(config, *rest)


ModelLike = TrainedModel | str | Path
"""A trained model, its folder, or the name of one that comes with the package."""


def as_model(model: ModelLike) -> TrainedModel:
    """Return a model as it is, or read it from its folder or by its name."""
    if isinstance(model, TrainedModel):
        return model
    if isinstance(model, str | Path):
        return load(model)
    kind = type(model).__name__
    raise UsageError(
        f"model is a TrainedModel, its folder or the name of a bundled one, not {kind}"
    )


def load(name: str | Path, *, engine: BuildEngine | None = None) -> TrainedModel:
    """Read a trained model from its folder, or one that comes with the package by its name.

    Args:
        name: The folder, or the name.
        engine: Makes what runs the networks; by default NumPy runs those of the architecture
            treecaps and PyTorch the others.
    """
    if not isinstance(name, str | Path):
        raise UsageError(f"a model is loaded by its folder or its name, not {type(name).__name__}")
    if engine is not None and not callable(engine):
        raise UsageError("engine is a function that builds an engine, such as TorchEngine.build")
    return TrainedModel.load(find_model(name), engine=engine)


def spell_parser(frontend: str, comments: bool) -> str:
    """Say in words what made trees."""
    return f"{frontend} {'with' if comments else 'without'} comments"
