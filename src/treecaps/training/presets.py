"""Presets: what a network is and how it is trained, under one name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from treecaps.errors import UsageError
from treecaps.models.architectures import ARCHITECTURES, architecture_of
from treecaps.models.astnn import ASTNNConfig
from treecaps.models.bi_dtbcnn import BiDTBCNNConfig
from treecaps.models.capsgnn import CapsGNNConfig
from treecaps.models.config import NetworkConfig
from treecaps.models.dtbcnn import DTBCNNConfig
from treecaps.models.ggnn import GGNNConfig
from treecaps.models.linear import TokensSVMConfig, WindowsSVMConfig
from treecaps.models.settings import allowed, from_json, from_text, types_of, unknown_name
from treecaps.models.tbcnn import TBCNNConfig
from treecaps.models.tree_lstm import TreeLSTMConfig
from treecaps.models.treecaps import TreeCapsConfig
from treecaps.tasks import Classification, Task, get_task
from treecaps.training.config import TrainingConfig

_SHOWN = 60
_PARTS = ("network", "task", "training")


@dataclass(frozen=True)
class Preset:
    """A network, what it is trained for, and how."""

    network: NetworkConfig
    training: TrainingConfig
    task: Task = field(default_factory=Classification)

    def __post_init__(self) -> None:
        self.task.check_network(ARCHITECTURES[architecture_of(self.network)].network)


PRESETS = {
    # Among the best on validation data, within noise; docs/results.md has what was tried.
    "default": Preset(
        TreeCapsConfig(
            nodes="kinds+tokens",
            vector_size=64,
            hidden=(64, 64, 64, 64),
            residual=True,
            channels=64,
            statics=1,
            counts="log",
            gated=True,
            token_channels=32,
            windows=1000,
        ),
        TrainingConfig(
            epochs=None,
            learning_rate=5e-3,
            vectors="random",
            window_dropout=None,
            tokenless=None,
            rename=0.5,
        ),
        Classification(cross_entropy_weight=1.0),
    ),
    # As printed; docs/paper.md has what the paper leaves open, and why it is read so.
    "paper": Preset(TreeCapsConfig(), TrainingConfig(batch_size=4)),
}


_TRAINING = TrainingConfig(
    epochs=None, learning_rate=3e-3, token_rate=5.0, vectors="random", rename=0.5
)
OTHERS = {
    "tbcnn": Preset(
        TBCNNConfig(nodes="kinds+tokens", vector_size=64, convolutions=(128, 128), dropout=0.3),
        _TRAINING,
    ),
    "ggnn": Preset(GGNNConfig(nodes="kinds+tokens", vector_size=64), _TRAINING),
    "astnn": Preset(ASTNNConfig(nodes="kinds+tokens", vector_size=128, dropout=0.2), _TRAINING),
    "tree-lstm": Preset(TreeLSTMConfig(nodes="kinds+tokens", vector_size=64), _TRAINING),
    "dtbcnn": Preset(
        DTBCNNConfig(nodes="kinds+tokens", vector_size=64, convolutions=(128, 128), dropout=0.3),
        _TRAINING,
    ),
    "bi-dtbcnn": Preset(
        # Nothing is left out: two vectors without different entries of theirs are always apart.
        BiDTBCNNConfig(nodes="kinds+tokens", vector_size=64, convolutions=(128, 128)),
        _TRAINING,
    ),
    "capsgnn": Preset(CapsGNNConfig(nodes="kinds+tokens", vector_size=64), _TRAINING),
    "svm-tokens": Preset(TokensSVMConfig(vector_size=1), TrainingConfig(epochs=1)),
    "svm-windows": Preset(WindowsSVMConfig(vector_size=1), TrainingConfig(epochs=1)),
}
"""The preset ``default`` of the other architectures."""


def get_preset(name: Any, model: str = "treecaps", task: str = "classification") -> Preset:
    """Return the preset of a name, for a model and what it is to learn."""
    presets = PRESETS if model == "treecaps" else {"default": OTHERS[model]}
    if not isinstance(name, str) or name not in presets:
        raise UsageError(
            f"there is no preset {name!r} of {model}; there is {' and '.join(presets)}"
        )
    preset, kind = presets[name], get_task(task)
    if isinstance(preset.task, kind):
        return preset
    return Preset(preset.network, replace(preset.training, **kind.training), kind())


def apply_settings(preset: Preset, settings: Iterable[str] | Mapping[str, Any]) -> Preset:
    """Return a preset with some options set, given as ``name=value`` or by name."""
    types = {part: types_of(type(getattr(preset, part))) for part in _PARTS}
    changes: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    typed = isinstance(settings, Mapping)
    pairs = settings.items() if isinstance(settings, Mapping) else map(_split, settings)
    for name, value in pairs:
        part = next((part for part in types if name in types[part]), None)
        if part is None:
            raise unknown_name(name, [name for part in types.values() for name in part])
        kind = types[part][name]
        try:
            changes[part][name] = from_json(kind, value) if typed else from_text(kind, value)
        except ValueError:
            raise UsageError(f"{name} must be {allowed(kind)}, not {_show(value)}") from None
    parts = {part: replace(getattr(preset, part), **changes[part]) for part in _PARTS}
    return Preset(**parts)


def _split(setting: str) -> tuple[str, str]:
    name, equals, text = setting.partition("=")
    if not equals:
        raise UsageError(f"{setting!r} is no setting; write name=value")
    return name.strip(), text


def _show(value: Any) -> str:
    """Show what was given, but not all of it: a number may have thousands of digits."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of that many digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def options(preset: Preset) -> list[tuple[str, Any, str]]:
    """Return the name, the value and the help of each option of a preset."""
    return [
        (one.name, getattr(part, one.name), one.metadata["help"])
        for part in (preset.network, preset.task, preset.training)
        for one in fields(part)
    ]
