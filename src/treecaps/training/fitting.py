"""Fitting one network to its data, epoch by epoch."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from treecaps.data.distinct import Longs
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, TrainingError, UsageError
from treecaps.models.architectures import new_network
from treecaps.models.engine import batches
from treecaps.models.linear import LinearConfig, fit_linear
from treecaps.models.network import Network
from treecaps.models.trained import TrainedModel
from treecaps.nn.batch import Batch
from treecaps.training.config import TrainingConfig
from treecaps.training.prepare import Data
from treecaps.training.presets import Preset
from treecaps.vectors.learn import learn_vectors

Step = Callable[[float, float], None]
"""Called after each step with the share of the epoch that is done, and the loss."""

_LOWER_RATE = 1e-3
"""The highest learning rate to suggest after one that was too high."""
_BYTES_A_WEIGHT = 4 * 4
"""A weight, its gradient and the two moments of the optimizer."""


def build_network(preset: Preset, data: Data) -> Network:
    """Make a network of the right size for data."""
    known = data.vocabulary
    outputs = preset.task.head_size(data.labels)
    return new_network(preset.network, len(known), outputs, len(known.tokens))


def check_size(preset: Preset, data: Data) -> None:
    """Complain of a network that does not fit into memory, before the system ends the process."""
    try:
        # On the meta device a network has shapes but no numbers.
        with torch.device("meta"):
            network = build_network(preset, data)
        numbers = sum(weight.numel() for weight in network.parameters())
    except (RuntimeError, MemoryError, OverflowError):
        raise UsageError("the network is too large: no memory could hold its weights") from None
    needed = numbers * _BYTES_A_WEIGHT
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        raise UsageError(
            f"the network is too large: to train its {numbers:,} weights takes"
            f" {needed / 1e9:,.0f} GB of memory, and there are {present / 1e9:,.0f}"
        )


@torch.no_grad()
def inherit(network: Network, vocabulary: Vocabulary, model: TrainedModel) -> None:
    """Copy pretrained weights except the head.

    Args:
        network: A network like that of the model.
        vocabulary: What it knows of nodes: all that the model does, and perhaps more.
        model: Where the other comes from, its first network.
    """
    other = model.members[0].state_dict()
    rows = {
        "vectors": [vocabulary.number(kind) for kind in model.vocabulary.kinds],
        "token_vectors": [vocabulary.number_token(token) for token in model.vocabulary.tokens],
    }
    for name, weight in network.state_dict().items():
        if name in rows:
            weight[rows[name]] = other[name]
        elif not name.startswith(network.OUTPUT):
            weight.copy_(other[name])


class Fitting:
    """A network on its way through the epochs.

    All chance comes from the seed and the number of the epoch, so a fitting that goes on from a
    saved state ends exactly as one that was never interrupted.

    Args:
        preset: The network, and how it is trained.
        data: What it learns from.
        seed: Random seed.
        init_from: A model of the same network to begin with; its vocabulary is part of the data's.
    """

    def __init__(
        self, preset: Preset, data: Data, seed: int, init_from: TrainedModel | None = None
    ) -> None:
        self.config, self.task = preset.training, preset.task
        self.data, self.seed, self.init_from = data, seed, init_from
        self.metric = f"val_{self.task.metric}"
        self.schedule = self.config.for_programs(
            len(data.train), self.task.num_epochs(len(data.train))
        )
        self.epochs = self.schedule.epochs
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] = {}
        self.best_epoch = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                self.network = build_network(preset, data)
            except (RuntimeError, MemoryError) as error:
                reason = str(error).partition("\n")[0]
                raise UsageError(f"the network is too large: {reason}") from None
        self.network.vectors.requires_grad_(not self.config.freeze_vectors)
        self.optimizer = torch.optim.RAdam(
            self._groups(),
            lr=self.config.learning_rate,
            weight_decay=self.config.weight_decay,
            decoupled_weight_decay=True,
        )
        self._val = list(batches(data.val.forest))

    def _groups(self) -> list[dict[str, Any]]:
        """Return the weights that learn, by how fast they do."""
        groups: dict[float, list[nn.Parameter]] = {}
        for name, weight in self.network.named_parameters():
            words = weight is self.network.token_vectors
            multiplier = self.schedule.token_rate if words else self.network.lr_multiplier(name)
            if weight.requires_grad:
                groups.setdefault(multiplier, []).append(weight)
        return [
            {"params": weights, "lr_multiplier": multiplier}
            for multiplier, weights in groups.items()
        ]

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        epochs, patience = len(self.history), self.config.patience
        return epochs >= self.epochs or (
            patience is not None and len(self.data.val) > 0 and epochs - self.best_epoch >= patience
        )

    def begin(self) -> None:
        """Give the network what it starts from: another's weights, or vectors of the trees."""
        self.network.fit_features(self.data.train.forest)
        if self.init_from:
            inherit(self.network, self.data.vocabulary, self.init_from)
            return
        size = self.network.config.vector_size
        try:
            vectors = learn_vectors(self.data.trees, self.config.vectors, size, self.seed)
        except DataError as error:
            raise DataError(f"{error}; begin with --set vectors=random") from None
        values = torch.from_numpy(vectors.for_vocabulary(self.data.vocabulary))
        with torch.no_grad():
            self.network.vectors.copy_(values)

    def run_epoch(self, step: Step) -> dict[str, Any]:
        """Go through the training data once, validate, and return the epoch's metrics."""
        epoch = len(self.history) + 1
        begun = time.perf_counter()
        chance = np.random.default_rng([self.seed, epoch])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(chance.integers(2**63)))
            metrics = self._learn(chance, step)
        learned = time.perf_counter()
        metrics |= self.task.validate(self.network, self._val, self.data.val)
        # Steps are checked before they are taken; the last one has only this.
        if not self._is_finite(metrics["val_loss"]):
            raise self._diverged()
        metrics["seconds"] = time.perf_counter() - begun
        metrics["programs_per_second"] = len(self.data.train) / (learned - begun)
        metrics = {"epoch": epoch, **metrics}
        self.history.append(metrics)
        if self._is_best():
            self.best_epoch = epoch
            self.best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        return metrics

    def tensors(self) -> dict[str, Tensor]:
        """Return every number that the next epoch depends on, and the best weights."""
        found = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        found |= {f"best.{name}": value for name, value in self.best.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
        return found

    def restore(
        self, tensors: dict[str, Tensor], history: list[dict[str, Any]], best_epoch: int
    ) -> None:
        """Go back to a state that ``tensors`` returned."""
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "best": {}, "optimizer": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition(".")
            parts[part][name] = tensor
        self.network.load_state_dict(parts["network"])
        states: dict[int, dict[str, Tensor]] = {}
        for key, tensor in parts["optimizer"].items():
            number, _, name = key.partition(".")
            states.setdefault(int(number), {})[name] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": states, "param_groups": groups})
        self.best, self.history, self.best_epoch = parts["best"], history, best_epoch

    def _draw(self, rows: Longs, chance: np.random.Generator) -> Batch:
        """Return the programs of a step, each in some way, without some windows and tokens."""
        examples = self.data.train
        rows = self._tell(rows, chance)
        share = self.schedule.window_dropout
        leave = (lambda windows: chance.random(windows) < share) if share else None
        few = self.schedule.token_capsule_dropout if examples.forest.bags else 0
        bare = chance.random(len(rows)) < few if few else None
        return Batch.of(examples.forest.select(rows, leave, bare))

    def _tell(self, rows: Longs, chance: np.random.Generator) -> Longs:
        """Return where in the forest programs are as they are, or blind, or rewritten."""
        examples, config = self.data.train, self.config
        if not examples.ways:
            return rows
        drawn, told = chance.random(len(rows)), rows
        chosen = {
            "blind": drawn < config.rename_probability,
            "rewritten": drawn >= 1 - config.rewrite_probability,
        }
        for way in examples.ways:
            told = np.where(chosen[way], examples.told(way, rows), told)
        return told

    def _learn(self, chance: np.random.Generator, step: Step) -> dict[str, Any]:
        examples = self.data.train
        order = self.task.sample(examples.label.numpy(), self.config.batch_size, chance)
        programs = len(examples)
        steps = len(order)
        done = len(self.history) * steps
        rate = 0.0
        sums: dict[str, float] = {}
        norms = 0.0
        self.network.train()
        for number, rows in enumerate(order):
            target = examples.target[rows]
            batch = self._draw(rows, chance)
            rate = _rate(self.config, (done + number) / (self.epochs * steps))
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["lr_multiplier"]
            self.optimizer.zero_grad()
            total, metrics = self.task.training_step(self.network, batch, target)
            total.backward()  # type: ignore[no-untyped-call]
            norm = self._gradient_norm()
            loss = metrics["loss"].item()
            if not math.isfinite(loss + norm):
                raise self._diverged()
            self.optimizer.step()
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + len(rows) * value.item()
            norms += norm
            step((number + 1) / steps, loss)
        return {
            **{name: total / programs for name, total in sums.items()},
            "gradient_norm": norms / steps,
            "learning_rate": rate,
        }

    def _gradient_norm(self) -> float:
        gradients = [
            weight.grad
            for group in self.optimizer.param_groups
            for weight in group["params"]
            if weight.grad is not None
        ]
        return torch.nn.utils.get_total_norm(gradients).item()

    def _is_finite(self, val_loss: float | None) -> bool:
        """Whether the network still holds numbers, and answers with numbers."""
        if not all(bool(value.isfinite().all()) for value in self.network.state_dict().values()):
            return False
        if val_loss is not None and not math.isfinite(val_loss):
            return False
        rows = np.arange(min(self.config.batch_size, len(self.data.train)))
        self.network.eval()
        with torch.no_grad():
            batch = Batch.of(self.data.train.forest.select(rows))
            outputs = self.task.outputs(self.network, batch)
        return bool(outputs.isfinite().all())

    def _diverged(self) -> TrainingError:
        lower = min(self.config.learning_rate / 5, _LOWER_RATE)
        return TrainingError(
            f"the loss left all bounds in epoch {len(self.history) + 1}; try a lower"
            f" learning rate: --set learning_rate={lower:g}"
        )

    def _is_best(self) -> bool:
        if not self.best_epoch or self.history[-1][self.metric] is None:
            return True
        newest, best = (
            (
                epoch[self.metric] + epoch.get(f"{self.metric}_blind", 0),
                -(epoch["val_loss"] or 0),
            )
            for epoch in (self.history[-1], self.history[self.best_epoch - 1])
        )
        return newest > best


def _rate(config: TrainingConfig, share: float) -> float:
    """Return the learning rate when a share of all steps is done."""
    if config.decay == "none":
        return config.learning_rate
    return config.learning_rate * (1 + math.cos(math.pi * share)) / 2


class LinearFitting(Fitting):
    """A linear machine, which is fitted at once: in its one epoch.

    Args:
        preset: The machine.
        data: What it learns from.
        seed: Random seed.
        init_from: Cannot be made use of.
    """

    def __init__(
        self, preset: Preset, data: Data, seed: int, init_from: TrainedModel | None = None
    ) -> None:
        super().__init__(preset, data, seed)
        if init_from:
            raise UsageError("a linear model cannot begin with another; leave out init_from")
        assert isinstance(preset.network, LinearConfig)
        self.machine, self.epochs = preset.network, 1

    def begin(self) -> None:
        """Begin with nothing."""

    def run_epoch(self, step: Step) -> dict[str, Any]:
        """Fit the machine to all programs, also as they are blind, and validate."""
        begun = time.perf_counter()
        train, known = self.data.train, self.data.vocabulary
        assert train.forest.bags is not None
        sizes = (len(known), len(self.data.labels), len(known.tokens))
        self.network = fit_linear(self.machine, *sizes, train.forest.bags, train.every_label)
        step(1.0, 0.0)
        validated = self.task.validate(self.network, self._val, self.data.val)
        metrics: dict[str, Any] = {"epoch": 1, "loss": 0.0, **validated}
        seconds = time.perf_counter() - begun
        metrics |= {"seconds": seconds, "programs_per_second": len(train) / seconds}
        self.history.append(metrics)
        self.best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        self.best_epoch = 1
        return metrics

    def restore(
        self, tensors: dict[str, Tensor], history: list[dict[str, Any]], best_epoch: int
    ) -> None:
        """Go back to a machine that ``tensors`` returned."""
        config = replace(self.machine, features=len(tensors["network.feature"]))
        known = self.data.vocabulary
        self.network = new_network(config, len(known), len(self.data.labels), len(known.tokens))
        super().restore(tensors, history, best_epoch)
