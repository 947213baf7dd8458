"""``TrainedModel``: trained networks with all it takes to feed them, and their folder."""

import json
import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from treecaps._version import __version__
from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, Failure, ModelError, UsageError
from treecaps.hashing import digest, digest_parts
from treecaps.models.architectures import ARCHITECTURES, architecture_of, new_network
from treecaps.models.bundled import find_model
from treecaps.models.calibration import Calibration
from treecaps.models.card import describe, is_card, upgrade_card
from treecaps.models.config import NetworkConfig
from treecaps.models.engine import Engine, Floats, TorchEngine
from treecaps.models.files import parse_json, read_file, to_json_bytes, write_files
from treecaps.models.network import Network
from treecaps.models.settings import of_json, to_json
from treecaps.syntax.frontends import FRONTENDS
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.text import short_repr

if TYPE_CHECKING:
    from treecaps.explanation.attribution import Method
    from treecaps.explanation.explanation import Explanation
    from treecaps.inference.classify import Classification
    from treecaps.inference.embed import Embedding

FORMAT = 1
CONFIG, TENSORS, LABELS, VOCABULARY, CARD = (
    "config.json",
    "model.safetensors",
    "labels.json",
    "vocabulary.json",
    "README.md",
)
_NEXT = "train a model with: treecaps train DATA --out FOLDER"
_AGAIN = "get the whole folder again"

_MOST_MEMBERS = 10_000


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Trained networks, one or several with weights, and all it takes to feed them.

    Args:
        members: The networks.
        weights: How much each counts: not negative, 1 in all.
        vocabulary: Numbers of what it knows of nodes.
        labels: The names of the classes, sorted; none if its task has none.
        frontend: The front end whose trees it was trained on.
        comments: Whether comments were nodes of those trees.
        calibration: What makes probabilities of lengths, and when the answer is unknown.
        card: What made it: data, metrics, versions; plain values for JSON.
        task: The name of the task that it was trained for.
        folder: Where it was read from or is kept, if anywhere.
    """

    members: tuple[Network, ...]
    weights: tuple[float, ...]
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    frontend: str = "tree-sitter"
    comments: bool = False
    calibration: Calibration = field(default_factory=Calibration)
    card: dict[str, Any] = field(default_factory=dict)
    task: str = "classification"
    folder: Path | None = None

    def __post_init__(self) -> None:
        for member in self.members:
            member.eval()

    def __repr__(self) -> str:
        facts = {"task": self.task, "classes": len(self.labels)}
        where = {"folder": str(self.folder)} if self.folder else {}
        return short_repr(self, architecture_of(self.config), **facts, **where)

    @property
    def config(self) -> NetworkConfig:
        """What each of the networks is made of."""
        return self.members[0].config

    @property
    def strongest(self) -> Network:
        """The network that counts most."""
        return self.members[self.weights.index(max(self.weights))]

    def forest(self, trees: Iterable[Tree]) -> Forest:
        """Share of trees what the networks look at."""
        return self.config.forest(trees, self.vocabulary)

    @cached_property
    def engine(self) -> Engine:
        """What runs the networks."""
        return TorchEngine(self.members, self.weights, len(self.labels))

    def scores(self, forest: Forest) -> Floats:
        """Return how much speaks for each class, ``[B, classes]``: the members' weighted mean."""
        return self.engine.scores(forest)

    def probabilities(self, forest: Forest) -> Floats:
        """Return the calibrated probability ``[B, classes]`` of each class."""
        return self.calibration.probabilities(self.scores(forest))

    # What uses models stands above them, so it is imported when it is called.

    def classify(
        self,
        programs: Iterable[Program | Failure | str | Path],
        *,
        top: int = 3,
        functions: bool = False,
        workers: int | None = None,
    ) -> "Generator[Classification | Failure]":
        """Tell the classes of programs, in order, as ``treecaps.classify`` does.

        Args:
            programs: Programs, or files to read; failures pass through.
            top: How many classes to name for each program.
            functions: Whether to tell the class of each function of a program, not of the whole.
            workers: How many processes parse; as many as there are cores by default.
        """
        from treecaps.inference.classify import classify

        return classify(self, programs, top=top, functions=functions, workers=workers)

    def embed(
        self,
        programs: Iterable[Program | Failure | str | Path],
        *,
        functions: bool = False,
        workers: int | None = None,
    ) -> "Generator[Embedding | Failure]":
        """Yield the embeddings of programs, in order, as ``treecaps.Embedder`` does.

        Args:
            programs: Programs, or files to read; failures pass through.
            functions: Whether each function of a program gets an embedding, not the whole.
            workers: How many processes parse; as many as there are cores by default.
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
        tensors = (tensor for member in self.members for tensor in member.state_dict().values())
        return digest_parts(chain([known], (tensor.numpy().tobytes() for tensor in tensors)))

    def save(
        self, folder: str | Path, beside: dict[str, bytes] | None = None, *, half: bool = False
    ) -> None:
        """Write the model into a folder; on a full disk an older model there stays whole.

        Args:
            folder: Where to; it is made if it does not exist.
            beside: The contents of other files that belong to the model.
            half: Whether to save the weights as float16.
        """
        tensors = {
            f"{number}.{name}": (
                tensor.half() if half and tensor.is_floating_point() else tensor
            ).contiguous()
            for number, member in enumerate(self.members)
            for name, tensor in member.state_dict().items()
        }
        contents = {
            TENSORS: save_tensors(tensors, {"format": "pt"}),
            LABELS: to_json_bytes(list(self.labels)),
            VOCABULARY: to_json_bytes(self.vocabulary.to_json()),
        }
        config = {
            "format": FORMAT,
            "treecaps": __version__,
            "task": self.task,
            "model": architecture_of(self.config),
            "network": to_json(self.config),
            "weights": list(self.weights),
            "frontend": self.frontend,
            "comments": self.comments,
            "calibration": vars(self.calibration),
            "files": {name: digest(content) for name, content in contents.items()},
            "card": self.card,
        }
        config["checksum"] = _config_checksum(config)
        contents |= beside or {}
        contents[CARD] = describe(config, self.labels, len(self.vocabulary)).encode(
            "utf-8", "replace"
        )
        # Its checksums tell whether the others are of one model, so it comes last.
        contents[CONFIG] = to_json_bytes(config)
        write_files(Path(folder), contents)

    @classmethod
    def load(cls, folder: str | Path) -> "TrainedModel":
        """Read what ``save`` wrote and check it, or raise ``ModelError``."""
        folder = Path(folder)
        config = _read_config(folder)
        contents = {
            name: read_file(folder / name, _AGAIN) for name in (TENSORS, LABELS, VOCABULARY)
        }
        labels = _check_labels(contents[LABELS], folder / LABELS)
        try:
            kinds = parse_json(contents[VOCABULARY], folder / VOCABULARY, _AGAIN)
            vocabulary = Vocabulary.from_json(kinds)
        except DataError as error:
            raise ModelError(f"{folder / VOCABULARY} is damaged: {error}; {_AGAIN}") from None
        try:
            network = of_json(ARCHITECTURES[config["model"]].config, config["network"])
            members = _build(
                network, len(config["weights"]), vocabulary, len(labels), contents[TENSORS]
            )
        except UsageError as error:
            raise ModelError(f"{folder / CONFIG} is damaged: {error}; {_AGAIN}") from None
        except ValueError as error:
            raise ModelError(f"{folder / TENSORS} is damaged: {error}; {_AGAIN}") from None
        try:
            # Models of the first versions have none.
            calibration = Calibration.from_json(config.get("calibration", vars(Calibration())))
        except ValueError:
            raise _damaged(folder / CONFIG, "calibration") from None
        for name, content in contents.items():
            if config["files"].get(name) != digest(content):
                raise ModelError(
                    f"{folder / name} was altered, or is of another model than {CONFIG}; {_AGAIN}"
                )
        if config.get("checksum") != _config_checksum(config):
            raise ModelError(f"{folder / CONFIG} was altered; {_AGAIN}")
        return cls(
            members,
            tuple(config["weights"]),
            vocabulary,
            labels,
            config["frontend"],
            config["comments"],
            calibration,
            upgrade_card(config["card"]),
            # Models of the first versions do not say.
            config.get("task", "classification" if labels else "similarity"),
            folder,
        )


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


def load(name: str | Path) -> TrainedModel:
    """Read a trained model from its folder, or one that comes with the package by its name."""
    return TrainedModel.load(find_model(name))


def spell_parser(frontend: str, comments: bool) -> str:
    """Say in words what made trees."""
    return f"{frontend} {'with' if comments else 'without'} comments"


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    config = parse_json(read_file(path, f"{folder} is no model; {_NEXT}"), path, _AGAIN)
    if not is_config(config):
        raise ModelError(f"{path} is not that of a treecaps model; {_NEXT}")
    number, made_by = config.get("format"), config.get("treecaps")
    if type(number) is int and number > FORMAT:
        raise ModelError(f"{folder} was written by a newer treecaps, {made_by}: update yours")
    weights = config.get("weights")
    for good, name in (
        (number == FORMAT, "format"),
        (isinstance(made_by, str), "treecaps"),
        (isinstance(config.get("task", ""), str), "task"),
        (isinstance(config.get("network"), dict), "network"),
        (_are_weights(weights), "weights"),
        (config.get("frontend") in FRONTENDS, "frontend"),
        (isinstance(config.get("comments"), bool), "comments"),
        (isinstance(config.get("files"), dict), "files"),
        (is_card(upgrade_card(config.get("card"))), "card"),
    ):
        if not good:
            raise _damaged(path, name)
    return config


def is_config(config: Any) -> TypeGuard[dict[str, Any]]:
    """Whether the contents of a JSON file are the configuration of a model, damaged or not."""
    # A value that cannot be hashed would be an error if it were looked up.
    return isinstance(config, dict) and config.get("model") in list(ARCHITECTURES)


def _damaged(path: Path, name: str) -> ModelError:
    return ModelError(f"{path} is damaged: its {name!r} cannot be right; {_AGAIN}")


def _config_checksum(config: dict[str, Any]) -> str:
    """Return a digest of all that a configuration says, however it is laid out."""
    others = {name: value for name, value in config.items() if name != "checksum"}
    # What is written comes back as plain values.
    plain = json.loads(to_json_bytes(others))
    return digest(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())


def _are_weights(weights: Any) -> bool:
    return (
        isinstance(weights, list)
        and len(weights) <= _MOST_MEMBERS
        and all(isinstance(weight, float) and weight >= 0 for weight in weights)
        and math.isclose(sum(weights), 1, abs_tol=1e-6)
    )


def _check_labels(content: bytes, path: Path) -> tuple[str, ...]:
    labels = parse_json(content, path, _AGAIN)
    if (
        not isinstance(labels, list)
        or not all(isinstance(label, str) for label in labels)
        or labels != sorted(set(labels))
        or len(labels) == 1
    ):
        raise ModelError(
            f"{path} is damaged: it must list at least two class names, in order, or none; {_AGAIN}"
        )
    return tuple(labels)


def _build(
    config: NetworkConfig, count: int, vocabulary: Vocabulary, classes: int, content: bytes
) -> tuple[Network, ...]:
    """Make networks of the contents of a file of tensors, or raise ``ValueError``."""
    try:
        tensors = load_tensors(content)
    except (SafetensorError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it holds no tensors, or was cut off") from None
    members = []
    for number in range(count):
        # On the meta device a network has shapes but no numbers: a wrong size costs nothing.
        try:
            with torch.device("meta"):
                member = new_network(config, len(vocabulary), classes, len(vocabulary.tokens))
        except (ArithmeticError, RuntimeError, ValueError, TypeError) as error:
            raise UsageError(f"its network cannot be built: {error}") from None
        state = {}
        for name, wanted in member.state_dict().items():
            tensor = tensors.pop(f"{number}.{name}", None)
            if tensor is None:
                raise ValueError(f"{number}.{name} is missing")
            if tensor.dtype == torch.float16:
                tensor = tensor.float()
            if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
                raise ValueError(
                    f"{number}.{name} has the shape {tuple(tensor.shape)} of {tensor.dtype}, not"
                    f" {tuple(wanted.shape)} of {wanted.dtype} as the other files say"
                )
            if not bool(tensor.isfinite().all()):
                raise ValueError(f"{number}.{name} holds values that are no numbers")
            state[name] = tensor
        member.load_state_dict(state, assign=True)
        members.append(member)
    if tensors:
        raise ValueError(f"{next(iter(tensors))} does not belong there")
    return tuple(members)
