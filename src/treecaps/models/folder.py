"""The folder of a trained model: its files, their checksums and versions."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from treecaps._version import __version__
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, ModelError, UsageError
from treecaps.hashing import digest
from treecaps.models.architectures import ARCHITECTURES, architecture_of
from treecaps.models.calibration import Calibration
from treecaps.models.card import describe, is_card, upgrade_card
from treecaps.models.config import ModelConfig
from treecaps.models.engine import BuildEngine, Engine, Floats, check_array
from treecaps.models.files import parse_json, read_file, to_json_bytes, write_files
from treecaps.models.options import MAX_INT
from treecaps.models.settings import of_json, to_json
from treecaps.syntax.frontends import FRONTENDS

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

_PROJECTION = "projection"
"""The tensor that is no network's."""
_MOST_MEMBERS = 10_000


class StoredModel(NamedTuple):
    """A trained model as its folder has it.

    Args:
        engine: What runs it.
        vocabulary: Numbers of what it knows of nodes.
        labels: The names of the classes, sorted; none if its task has none.
        frontend: The front end whose trees it was trained on.
        comments: Whether comments were nodes of those trees.
        calibration: What makes probabilities of scores, and when the answer is unknown.
        card: What made it: data, metrics, versions; plain values for JSON.
        task: The name of the task that it was trained for.
        projection: What embeddings are multiplied with, if anything.
    """

    engine: Engine
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    frontend: str
    comments: bool
    calibration: Calibration
    card: dict[str, Any]
    task: str
    projection: Floats | None = None


def write_model(
    folder: Path, model: StoredModel, beside: Mapping[str, bytes], *, half: bool = False
) -> None:
    """Write a model into a folder; on a full disk an older model there stays whole.

    Args:
        folder: Where to; it is made if it does not exist.
        model: The model.
        beside: The contents of other files that belong to it.
        half: Whether to save the weights as float16.
    """
    network, arrays = model.engine.config, dict(model.engine.arrays())
    if model.projection is not None:
        arrays[_PROJECTION] = model.projection
    if half:
        arrays = {name: _halve(array) for name, array in arrays.items()}
    contents = {
        TENSORS: save_arrays(arrays, {"format": "pt"}),
        LABELS: to_json_bytes(list(model.labels)),
        VOCABULARY: to_json_bytes(model.vocabulary.to_json()),
    }
    config = {
        "format": FORMAT,
        "treecaps": __version__,
        "task": model.task,
        "model": architecture_of(network),
        "network": to_json(network),
        "outputs": model.engine.outputs,
        "weights": list(model.engine.weights),
        "frontend": model.frontend,
        "comments": model.comments,
        "calibration": vars(model.calibration),
        "files": {name: digest(content) for name, content in contents.items()},
        "card": model.card,
    }
    config["checksum"] = _config_checksum(config)
    contents |= beside
    contents[CARD] = describe(config, model.labels, len(model.vocabulary)).encode(
        "utf-8", "replace"
    )
    # Its checksums tell whether the others are of one model, so it comes last.
    contents[CONFIG] = to_json_bytes(config)
    write_files(folder, contents)


def read_model(folder: Path, build: BuildEngine) -> StoredModel:
    """Read what ``write_model`` wrote and check it, or raise ``ModelError``.

    Args:
        folder: Where from.
        build: Makes the engine.
    """
    config = _read_config(folder)
    contents = {name: read_file(folder / name, _AGAIN) for name in (TENSORS, LABELS, VOCABULARY)}
    labels = _check_labels(contents[LABELS], folder / LABELS)
    try:
        kinds = parse_json(contents[VOCABULARY], folder / VOCABULARY, _AGAIN)
        vocabulary = Vocabulary.from_json(kinds)
    except DataError as error:
        raise ModelError(f"{folder / VOCABULARY} is damaged: {error}; {_AGAIN}") from None
    try:
        network: ModelConfig = of_json(ARCHITECTURES[config["model"]].config, config["network"])
        arrays = _load_arrays(contents[TENSORS])
        projection = arrays.pop(_PROJECTION, None)
        if projection is not None:
            _check_projection(projection, network, config["weights"])
        # Models of the first versions have an output for each class.
        outputs = config.get("outputs", len(labels))
        engine = build(network, config["weights"], vocabulary, outputs, arrays)
    except UsageError as error:
        raise ModelError(f"{folder / CONFIG} is damaged: {error}; {_AGAIN}") from None
    except ValueError as error:
        raise ModelError(f"{folder / TENSORS} is damaged: {error}; {_AGAIN}") from None
    try:
        # Models of the first versions have none.
        calibration = Calibration.from_json(config.get("calibration", vars(Calibration())))
    except ValueError:
        raise _damaged(folder / CONFIG, "calibration") from None
    _check_digests(folder, config, contents)
    return StoredModel(
        engine,
        vocabulary,
        labels,
        config["frontend"],
        config["comments"],
        calibration,
        upgrade_card(config["card"]),
        # Models of the first versions do not say.
        config.get("task", "classification" if labels else "similarity"),
        projection,
    )


def is_config(config: Any) -> TypeGuard[dict[str, Any]]:
    """Whether the contents of a JSON file are the configuration of a model, damaged or not."""
    # A value that cannot be hashed would be an error if it were looked up.
    return isinstance(config, dict) and config.get("model") in list(ARCHITECTURES)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    config = parse_json(read_file(path, f"{folder} is no model; {_NEXT}"), path, _AGAIN)
    if not is_config(config):
        raise ModelError(f"{path} is not that of a treecaps model; {_NEXT}")
    number, made_by = config.get("format"), config.get("treecaps")
    if type(number) is int and number > FORMAT:
        raise ModelError(f"{folder} was written by a newer treecaps, {made_by}: update yours")
    if type(number) is int and number < FORMAT:
        raise ModelError(f"{folder} was written by an older treecaps, {made_by}; {_NEXT}")
    for good, name in (
        (number == FORMAT, "format"),
        (isinstance(made_by, str), "treecaps"),
        (isinstance(config.get("task", ""), str), "task"),
        (isinstance(config.get("network"), dict), "network"),
        (_is_count(config.get("outputs", 0)), "outputs"),
        (_are_weights(config.get("weights")), "weights"),
        (config.get("frontend") in FRONTENDS, "frontend"),
        (isinstance(config.get("comments"), bool), "comments"),
        (isinstance(config.get("files"), dict), "files"),
        (is_card(upgrade_card(config.get("card"))), "card"),
    ):
        if not good:
            raise _damaged(path, name)
    return config


def _check_digests(folder: Path, config: dict[str, Any], contents: Mapping[str, bytes]) -> None:
    """Complain if a file is not the one that the configuration was written with."""
    for name, content in contents.items():
        if config["files"].get(name) != digest(content):
            raise ModelError(
                f"{folder / name} was altered, or is of another model than {CONFIG}; {_AGAIN}"
            )
    if config.get("checksum") != _config_checksum(config):
        raise ModelError(f"{folder / CONFIG} was altered; {_AGAIN}")


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


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


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


def _halve(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float16) if array.dtype == np.float32 else array


def _check_projection(array: NDArray[Any], network: ModelConfig, weights: Sequence[float]) -> None:
    """Raise ``ValueError`` if embeddings cannot be multiplied with an array."""
    numbers = network.embedding_size * np.count_nonzero(weights)
    size = array.shape[-1] if array.ndim else 0
    check_array(_PROJECTION, array, (int(numbers), max(size, 1)), np.dtype(np.float32))


def _load_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, float16 as float32, or raise ``ValueError``."""
    try:
        arrays = load_arrays(content)
    except (SafetensorError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it holds no tensors, or was cut off") from None
    # They are views of the file, which cannot be written to.
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array.copy()
        for name, array in arrays.items()
    }
