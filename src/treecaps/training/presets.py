"""Presets: what a network is and how it is trained, under one name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import Input
from treecaps.models.architectures import architecture_of, get_architecture
from treecaps.models.config import ModelConfig
from treecaps.models.network import Model
from treecaps.models.settings import allowed, from_json, from_text, types_of, unknown_name
from treecaps.syntax.tree import Tree
from treecaps.tasks import Classification, Task, get_task
from treecaps.training.config import TrainingConfig

_SHOWN = 60
_PARTS = ("network", "task", "training")


@dataclass(frozen=True)
class Preset:
    """A network, what it is trained for, and how."""

    network: ModelConfig
    training: TrainingConfig
    task: Task = field(default_factory=Classification)

    def __post_init__(self) -> None:
        self.task.check_model(self.model)

    @property
    def model(self) -> type[Model]:
        """The class of the model."""
        return get_architecture(architecture_of(self.network)).model

    def read_trees(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Input:
        """Return programs in the form that the model reads."""
        return self.model.read_trees(self.network, trees, vocabulary)


def get_preset(
    name: Any = "default", model: str = "treecaps", task: str = "classification"
) -> Preset:
    """Return a preset of an architecture for a task.

    Args:
        name: The name of the preset.
        model: The name of the architecture.
        task: The name of the task.
    """
    presets = get_architecture(model).presets
    if not isinstance(name, str) or name not in presets:
        raise UsageError(
            f"there is no preset {name!r} of {model}; there is {' and '.join(presets)}"
        )
    network, settings = presets[name]
    preset = apply_settings(Preset(network, TrainingConfig()), settings)
    kind = get_task(task)
    if isinstance(preset.task, kind):
        return preset
    return Preset(network, replace(preset.training, **kind.training), kind())


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
