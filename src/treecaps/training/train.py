"""Training: labelled trees in, a trained model and its folder out."""

import logging
import operator
import platform
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from treecaps._version import __version__
from treecaps.data.corpus import Corpus
from treecaps.errors import TrainingError, UsageError
from treecaps.models.files import to_json_bytes, write_files
from treecaps.models.settings import to_json
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.trained import ModelLike, TrainedModel, as_model
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.tree import Tree
from treecaps.text import replace_surrogates
from treecaps.training.checkpoint import Checkpoint, refuse_other, tell_differences
from treecaps.training.device import check_device
from treecaps.training.facts import Histories, MakeReport, TrainingFacts, read_histories
from treecaps.training.folder import CHECKPOINT, HISTORY, LOGS, REPORT, check, claim, is_complete
from treecaps.training.logs import Logs
from treecaps.training.prepare import Data, Labels, OnPrepare
from treecaps.training.presets import Preset, fine_tune, fine_tuning_preset, get_preset
from treecaps.training.processes import Processes, join
from treecaps.training.source import (
    Source,
    check_background,
    check_parser,
    check_trees,
    refuse_background,
    validation_data,
)
from treecaps.training.trainer import Trainer, check_size

log = logging.getLogger("treecaps")

_MAX_SEED = 2**32


@dataclass(frozen=True)
class TrainingProgress:
    """Where a training is: in which of the epochs of which network, how much of all is done."""

    member: int
    epoch: int
    epochs: int
    share: float
    loss: float


OnStep = Callable[[TrainingProgress], None]
OnEpoch = Callable[[int, dict[str, Any]], None]


class Interrupted(KeyboardInterrupt):
    """Training that was interrupted, with the best model until then if there is one."""

    def __init__(self, model: TrainedModel | None) -> None:
        super().__init__("interrupted")
        self.model = model


def train(
    trees: Sequence[Tree],
    labels: Labels | None = None,
    *,
    val: Corpus | tuple[Sequence[Tree], Labels] | None = None,
    background: Sequence[Tree] | None = None,
    val_background: Sequence[Tree] | None = None,
    preset: Preset | str = "default",
    model: str | None = None,
    task: str = "classification",
    init_from: ModelLike | None = None,
    seed: int = 0,
    ensemble: int = 1,
    frontend: str = "tree-sitter",
    comments: bool = False,
    folder: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "cpu",
    command: str | None = None,
    report: MakeReport | None = None,
    on_prepare: OnPrepare | None = None,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
) -> TrainedModel:
    """Train networks for a task: classification by default.

    Processes that ``torchrun`` started train together: each takes its share of every batch. The
    first writes, and all return the model.

    Args:
        trees: A corpus, or any trees with ``labels``.
        labels: The class of each tree; trees without one are left out.
        val: Data to choose the best epoch with; by default a share of the training data.
        background: Programs of none of the classes, a corpus or any trees: of them, of their
            functions and of a few lines of them a classifier learns to say that it does not know.
        val_background: Others to set the threshold with; by default a share of the background.
        preset: The network and how it is trained, or the name of a preset.
        model: The name of the architecture, where the preset is given by name: treecaps by
            default, or that of ``init_from``.
        task: The name of the task, likewise.
        init_from: A trained model, its folder, or the name of a bundled one, whose first network
            all begin with: they know what it does of code, and learn what it does not. It decides
            what the network is, whatever the preset says.
        seed: The same data, options and seed give the same model.
        ensemble: How many networks are trained, with ``seed``, ``seed + 1`` and so on.
        frontend: The front end that made the trees, unless they are a corpus.
        comments: Whether comments are nodes of the trees, unless they are a corpus.
        folder: Where the model is kept; also checkpoints, so that a killed training can go on.
        resume: Go on with the training that was begun in the folder.
        overwrite: Replace the model or training that is in the folder.
        device: Where to train, as PyTorch names devices: ``cpu``, ``cuda``, ``mps``; or ``auto``.
        command: What was typed, for the model card.
        report: Makes the page ``report.html`` of the folder; ``treecaps.train`` has one.
        on_prepare: Called before training with what is being done, and the share of it that is.
        on_step: Called after each batch.
        on_epoch: Called after each epoch with the network's number and the metrics.

    Raises:
        Interrupted: On Ctrl-C; the best until then is in the folder, and in the exception.
        TrainingError: The loss left all bounds; the best until then is in the folder.
    """
    # This function is long because it documents all arguments of a training.
    seed, ensemble = _check_seed(seed, ensemble)
    pretrained = None if init_from is None else as_model(init_from)
    if pretrained and isinstance(preset, Preset):
        preset = fine_tune(preset, pretrained.config)
    elif pretrained:
        preset = fine_tuning_preset(pretrained.config, preset, model, task)
    elif not isinstance(preset, Preset):
        preset = get_preset(preset, model or "treecaps", task)
    if isinstance(trees, Corpus):
        frontend, comments = trees.about["frontend"], trees.about["comments"]
        labels = trees.labels if labels is None else labels
    _ = preset.model  # complains if it is not for the task
    check_trees(trees)
    if labels is None and preset.task.needs_labels:
        raise UsageError("trees that are no corpus need labels", arguments=("labels",))
    if pretrained:
        parser = pretrained.frontend, pretrained.comments
        check_parser("the pretrained model is for", parser, (frontend, comments))
    others = validation_data(val, frontend, comments)
    labels = [None] * len(trees) if labels is None else labels
    refuse_background(preset, background, val_background)
    check_background(background, val_background, frontend, comments)
    source = Source(
        trees, labels, others, background, val_background, frontend, comments, pretrained
    )
    with join() as processes:
        where = check_device(device, processes)
        # Only the first process writes.
        home = Path(folder) if folder and processes.is_first else None
        if home:
            check(home, resume=resume, overwrite=overwrite)
        with processes.in_turn():
            data = source.prepare(preset, seed, on_prepare or (lambda what, share: None))
        run = _describe_run(preset, data, seed, ensemble, pretrained)
        _check_alike(processes, run)
        checkpoint = Checkpoint(home / CHECKPOINT, run) if home else None
        check_size(preset, data, processes)
        training = _Training(
            preset,
            data,
            source,
            home,
            checkpoint,
            _new_card(preset, data, run, frontend, command),
            report,
            where,
            processes,
        )
        # What was there before is touched when the data are known to be good, not earlier.
        with claim(home, resume=resume, overwrite=overwrite) if home else nullcontext():
            done = processes.gather_values(bool(home and resume and is_complete(home)))[0]
            if folder and done:
                return training.reopen(Path(folder))
            return training.run(
                resume, on_step or (lambda progress: None), on_epoch or (lambda *_: None)
            )


def _check_seed(seed: Any, ensemble: Any) -> tuple[int, int]:
    seed, ensemble = _whole(seed, "a seed"), _whole(ensemble, "the size of an ensemble")
    if ensemble < 1:
        raise UsageError(
            f"an ensemble has at least 1 network, not {ensemble}", arguments=("ensemble",)
        )
    if not 0 <= seed <= _MAX_SEED - ensemble:
        raise UsageError(
            f"a seed lies between 0 and {_MAX_SEED - ensemble:,}, not at {seed:,}",
            arguments=("seed",),
        )
    return seed, ensemble


def _check_alike(processes: Processes, run: dict[str, Any]) -> None:
    """Complain if a process has other data or options than the first."""
    about = {"computer": platform.node(), "run": {"treecaps": __version__, **run}}
    every = processes.gather_values(about)
    for number, other in enumerate(every):
        if found := tell_differences(other["run"], every[0]["run"]):
            raise UsageError(
                f"process {number}, on {other['computer']}, has {found}: all need the same data,"
                " options and version of treecaps"
            )


def _describe_run(
    preset: Preset, data: Data, seed: int, ensemble: int, pretrained: TrainedModel | None
) -> dict[str, Any]:
    """Return all that decides what comes out; a resumed training must have the same."""
    return {
        "data": data.fingerprint(),
        "seed": seed,
        "ensemble": ensemble,
        "network": to_json(preset.network),
        "task": {"task": preset.task.name, **to_json(preset.task)},
        "training": to_json(preset.training),
        **({"init_from": pretrained.fingerprint()} if pretrained else {}),
    }


def _new_card(
    preset: Preset, data: Data, run: dict[str, Any], frontend: str, command: str | None
) -> dict[str, Any]:
    """Return what a model card says before anything is learned."""
    return {
        "use": {
            "summary": preset.task.summary(preset.task.labels(data.labels)),
            "commands": list(preset.task.commands),
        },
        "data": data.facts,
        "run": {name: value for name, value in run.items() if name != "network"},
        "versions": _versions(frontend),
        **({"command": command} if command else {}),
    }


def _whole(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(f"{what} is a whole number, not {value!r}") from None


@dataclass
class _Training:
    """The networks of an ensemble, one after the other, and the folder they are kept in."""

    preset: Preset
    data: Data
    source: Source
    home: Path | None
    checkpoint: Checkpoint | None
    card: dict[str, Any]
    report: MakeReport | None
    device: torch.device
    processes: Processes
    trainers: list[Trainer] = field(default_factory=list)

    def run(self, resume: bool, on_step: OnStep, on_epoch: OnEpoch) -> TrainedModel:
        """Train all networks, and keep the best until then whatever happens."""
        if self.checkpoint:
            if resume and self.checkpoint.exists():
                self.checkpoint.load()
            else:
                self.checkpoint.start()
        try:
            for number in range(self.card["run"]["ensemble"]):
                self._fit(number, on_step, on_epoch)
        except KeyboardInterrupt:
            raise Interrupted(self._keep("interrupted")) from None
        except TrainingError as error:
            self.processes.leave_to_first()
            kept = self._keep("diverged")
            where = f"; the best until then is in {self.home}" if kept and self.home else ""
            raise TrainingError(f"{error}{where}", arguments=error.arguments) from None
        model = self._model()
        self._save(model)
        try:
            self.write_report(model, self._histories)
        except KeyboardInterrupt:
            raise Interrupted(model) from None
        if self.checkpoint:
            self.checkpoint.remove()
        return model

    def reopen(self, home: Path) -> TrainedModel:
        """Return the model of a training that is done, if it is the same training."""
        done = TrainedModel.load(home)
        found = {**done.card.get("run", {}), "network": to_json(done.config.untrained)}
        network = {"network": to_json(self.preset.network)}
        refuse_other(home, found, {**self.card["run"], **network})
        if self.report and not (home / REPORT).exists():
            self.write_report(done, read_histories(home / HISTORY))
        return done

    def write_report(self, model: TrainedModel, histories: Histories) -> None:
        """Write the page that shows how the training went."""
        if self.home and self.report:
            data = self.data
            facts = TrainingFacts(model, histories, data.val_trees, data.val.label, data.labels)
            page = replace_surrogates(self.report(facts)).encode()
            write_files(self.home, {REPORT: page})

    def _fit(self, number: int, on_step: OnStep, on_epoch: OnEpoch) -> None:
        seed, members = self.card["run"]["seed"], self.card["run"]["ensemble"]
        pretrained = self.source.pretrained
        trainer = Trainer(
            self.preset, self.data, seed + number, pretrained, self.device, self.processes
        )
        if self.processes.is_first and not (
            self.checkpoint and self.checkpoint.restore(number, trainer)
        ):
            trainer.begin()
        trainer.take_over()
        self.trainers.append(trainer)

        def step(share: float, loss: float) -> None:
            epoch = len(trainer.history)
            done = (number + (epoch + share) / trainer.epochs) / members
            on_step(TrainingProgress(number, epoch + 1, trainer.epochs, done, loss))

        folder = self.home / LOGS / str(number) if self.home else None
        with Logs(folder, trainer.history) if folder else nullcontext() as logs:
            while not trainer.finished:
                metrics = trainer.run_epoch(step)
                if self.checkpoint:
                    self.checkpoint.save(number, trainer)
                if logs:
                    logs.add(metrics)
                on_epoch(number, metrics)

    def _keep(self, reason: str) -> TrainedModel | None:
        """Make a model of the best until now, if there is any."""
        if not (self.processes.is_first and any(trainer.best for trainer in self.trainers)):
            return None
        self.card["stopped"] = reason
        model = self._model()
        self._save(model)
        return model

    def _model(self) -> TrainedModel:
        """Put the best networks together."""
        trainers = [trainer for trainer in self.trainers if trainer.best]
        for trainer in trainers:
            trainer.model.load_state_dict(trainer.best)
        networks = [trainer.model.requires_grad_(True) for trainer in trainers]
        labels = self.preset.task.labels(self.data.labels)
        weights = [1 / len(networks)] * len(networks)
        model = TrainedModel(
            TorchEngine(networks, weights, self.preset.task.head_size(self.data.labels)),
            self.data.vocabulary,
            labels,
            self.source.frontend,
            self.source.comments,
            task=self.preset.task.name,
        )
        data = self.data
        model, validated = self.preset.task.finish(
            model, data.val, data.nodes, data.background, data.train
        )
        histories = [trainer.history for trainer in trainers]
        metrics = {
            "epochs": sum(map(len, histories)),
            "seconds": sum(epoch["seconds"] for history in histories for epoch in history),
            **validated,
        }
        members = [
            {
                "seed": trainer.seed,
                "epochs": len(trainer.history),
                "best_epoch": trainer.best_epoch,
                _card_name(trainer.metric): trainer.history[trainer.best_epoch - 1][trainer.metric],
            }
            for trainer in trainers
        ]
        card = {**self.card, "metrics": metrics, "members": members}
        return replace(model, card=card, folder=self.home)

    @property
    def _histories(self) -> Histories:
        return [trainer.history for trainer in self.trainers]

    def _save(self, model: TrainedModel) -> None:
        if self.home:
            model.save(self.home, {HISTORY: to_json_bytes({"members": self._histories})})
            with suppress(OSError):
                (self.home / REPORT).unlink()  # it would be of an older model


def _card_name(metric: str) -> str:
    return metric.replace("val_", "validation_", 1)


def _versions(frontend: str) -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **get_frontend(frontend).versions(),
    }
