"""Presets: what a network is and how it is trained, under one name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from treecaps.errors import UsageError
from treecaps.models.architectures import architecture_of, get_architecture
from treecaps.models.config import ModelConfig
from treecaps.models.settings import allowed, from_json, from_text, types_of, unknown_name
from treecaps.tasks import Classification, Task, get_task
from treecaps.training.config import TrainingConfig

if TYPE_CHECKING:
    from treecaps.data.vocabulary import Vocabulary
    from treecaps.inputs.base import Input
    from treecaps.inputs.packing import Packing
    from treecaps.models.network import Model
    from treecaps.syntax.tree import Tree

_SHOWN = 60
_PARTS = ("network", "task", "training")
_TASK = "classification"


@dataclass(frozen=True)
class Preset:
    """A network, what it is trained for, and how."""

    network: ModelConfig
    training: TrainingConfig
    task: Task = field(default_factory=Classification)

    @cached_property
    def model(self) -> "type[Model]":
        """The class of the model; ``UsageError`` if it is not for the task."""
        model = get_architecture(architecture_of(self.network)).model
        self.task.check_model(model)
        return model

    def read_trees(self, trees: "Iterable[Tree]", vocabulary: "Vocabulary") -> "Input":
        """Return programs in the form that the model reads."""
        return self.model.read_trees(self.network, trees, vocabulary)

    @property
    def packing(self) -> "Packing | None":
        """How the programs are kept on disk, if they can be."""
        return self.model.packing(self.network)


def get_preset(name: Any = "default", model: str = "treecaps", task: str = _TASK) -> Preset:
    """Return a preset of an architecture for a task.

    Args:
        name: The name of the preset.
        model: The name of the architecture.
        task: The name of the task.
    """
    presets = get_architecture(model).presets
    if name == "default" and task in presets:  # there is one for just this task
        name = task
    if not isinstance(name, str) or name not in presets:
        raise UsageError(
            f"there is no preset {name!r} of {model}; there is {' and '.join(presets)}"
        )
    network, settings = presets[name]
    preset = apply_settings(Preset(network, TrainingConfig()), settings)
    kind = get_task(task)
    # A task that extends another keeps what is recommended for that.
    names = {one.name for one in fields(kind)}
    shared = {name: value for name, value in vars(preset.task).items() if name in names}
    return Preset(network, replace(preset.training, **kind.training), kind(**shared))


def fine_tuning_preset(
    config: ModelConfig, name: Any = "default", model: str | None = None, task: str = _TASK
) -> Preset:
    """Return a preset for fine-tuning: the pretrained model decides what the network is.

    Args:
        config: What the pretrained model is made of.
        name: The name of the preset.
        model: The name of the architecture, which must be that of the model.
        task: The name of the task.
    """
    known = architecture_of(config)
    if model not in (None, known):
        raise UsageError(
            f"the pretrained model is {known}, not {model}: leave out model, or choose {known}",
            arguments=("model",),
        )
    return fine_tune(get_preset(name, known, task), config)


def fine_tune(preset: Preset, config: ModelConfig) -> Preset:
    """Return a preset whose network is that of a pretrained model."""
    known = architecture_of(config)
    if preset.model.CLOSED_FORM or type(preset.network) is not type(config):
        other = architecture_of(preset.network)
        reason = (
            "a linear model cannot be fine-tuned"
            if preset.model.CLOSED_FORM
            else f"{other} cannot be fine-tuned from {known}"
        )
        raise UsageError(f"{reason}: leave out init_from", arguments=("init_from",))
    return replace(preset, network=config)


def apply_settings(preset: Preset, settings: Iterable[str] | Mapping[str, Any]) -> Preset:
    """Return a preset with some options set, given as ``name=value`` or by name."""
    types = {part: _settable(getattr(preset, part)) for part in _PARTS}
    changes: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    typed = isinstance(settings, Mapping)
    pairs = settings.items() if isinstance(settings, Mapping) else map(_split, settings)
    for name, value in pairs:
        part = next((part for part in types if name in types[part]), None)
        if part is None:
            names = [name for part in types.values() for name in part]
            raise unknown_name(name, names, architecture_of(preset.network))
        kind = types[part][name]
        try:
            changes[part][name] = from_json(kind, value) if typed else from_text(kind, value)
        except ValueError:
            raise UsageError(f"{name} must be {allowed(kind)}, not {_show(value)}") from None
    parts = {part: replace(getattr(preset, part), **changes[part]) for part in _PARTS}
    return Preset(**parts)


def _settable(config: Any) -> dict[str, Any]:
    """Return the types of the options that people set."""
    learned = {one.name for one in fields(config) if one.metadata["learned"]}
    return {name: kind for name, kind in types_of(type(config)).items() if name not in learned}


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
        if not one.metadata["learned"]
    ]
