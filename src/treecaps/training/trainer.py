"""``Trainer``: fits one model to its data, epoch by epoch."""

import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, TrainingError, UsageError
from treecaps.inputs.base import Input, InputDropout
from treecaps.inputs.distinct import Longs
from treecaps.inputs.stored import StoredInput
from treecaps.models.architectures import new_model
from treecaps.models.engine import split_batches
from treecaps.models.network import Model, Network
from treecaps.models.trained import TrainedModel
from treecaps.nn.tensors import ToTensor, to_tensors
from treecaps.tasks.base import Batches
from treecaps.tasks.examples import BACKGROUND
from treecaps.training.config import TrainingConfig
from treecaps.training.data_parallel import DataParallel, Part
from treecaps.training.prepare import Data
from treecaps.training.presets import Preset
from treecaps.training.processes import ALONE, Processes
from treecaps.training.radam import RAdam
from treecaps.training.vectors.learn import learn_vectors

Step = Callable[[float, float], None]
"""Called after each step with the share of the epoch that is done, and the loss."""

_LOWER_RATE = 1e-3
"""The highest learning rate to suggest after one that was too high."""
_BYTES_A_WEIGHT = 4 * 4
"""A weight, its gradient and the two moments of the optimizer."""


def build_model(preset: Preset, data: Data) -> Model:
    """Make a model of the right size for data."""
    known = data.vocabulary
    outputs = preset.task.head_size(data.labels)
    return new_model(preset.network, len(known), outputs, len(known.tokens))


def check_size(preset: Preset, data: Data, processes: Processes = ALONE) -> None:
    """Complain of a model that does not fit into memory, before the system ends the process."""
    try:
        # On the meta device a model has shapes but no numbers.
        with torch.device("meta"):
            model = build_model(preset, data)
        numbers = sum(weight.numel() for weight in model.parameters())
    except (RuntimeError, MemoryError, OverflowError):
        raise UsageError("the network is too large: no memory could hold its weights") from None
    needed = numbers * _BYTES_A_WEIGHT * processes.local_size
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        raise UsageError(
            f"the network is too large: to train its {numbers:,} weights takes"
            f" {needed / 1e9:,.0f} GB of memory, and there are {present / 1e9:,.0f}"
        )


@torch.no_grad()
def copy_pretrained(model: Model, vocabulary: Vocabulary, pretrained: TrainedModel) -> None:
    """Copy pretrained weights except the head.

    Args:
        model: A model like the pretrained one.
        vocabulary: What it knows of nodes: all that the other does, and perhaps more.
        pretrained: Where the weights come from: its first network.
    """
    other = pretrained.members[0].state_dict()
    known = pretrained.vocabulary
    rows = {
        "vectors": [vocabulary.number(kind) for kind in known.kinds],
        "token_vectors": [vocabulary.number_token(token) for token in known.tokens],
    }
    for name, weight in model.state_dict().items():
        if name in rows:
            weight[rows[name]] = other[name].to(weight.device)
        elif not name.startswith(model.HEAD):
            weight.copy_(other[name])


class Trainer:
    """Trains a model, epoch by epoch.

    All randomness comes from the seed and the number of the epoch, so a training that goes on from
    a saved state ends exactly as one that was never interrupted. A model with a closed form is
    fitted at once, in its one epoch.

    Args:
        preset: The model, and how it is trained.
        data: What it learns from.
        seed: Random seed.
        init_from: A pretrained model of the same network; its vocabulary is part of the data's.
        device: Where to train.
        processes: Those that train together. They see the same batches as one alone would, and end
            with the same weights.
    """

    def __init__(
        self,
        preset: Preset,
        data: Data,
        seed: int,
        init_from: TrainedModel | None = None,
        device: torch.device | str = "cpu",
        processes: Processes = ALONE,
    ) -> None:
        self.config, self.task = preset.training, preset.task
        self.data, self.seed, self.init_from = data, seed, init_from
        self.processes = processes
        self.metric = f"val_{self.task.metric}"
        programs = data.train.num_labelled
        self.schedule = self.config.for_programs(programs, self.task.num_epochs(programs))
        self.examples = data.train
        """The programs of the epoch."""
        self._read = partial(preset.read_trees, vocabulary=data.vocabulary)
        self.history: list[dict[str, Any]] = []
        self._val_batches: list[tuple[int, Any]] = []
        self.best: dict[str, Tensor] = {}
        self.best_epoch = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                self.model = build_model(preset, data).to(device)
            except (RuntimeError, MemoryError) as error:
                reason = str(error).partition("\n")[0]
                raise UsageError(f"the network is too large: {reason}") from None
        self.shared: Any = self.model
        """The model as a task sees it: it takes what ``_share`` returns."""
        bf16 = self.config.precision == "bf16"
        if processes.size > 1 or bf16:
            self.shared = DataParallel(self.model, processes, bf16=bf16)
        self.epochs = 1 if self.model.CLOSED_FORM else self.schedule.epochs
        if isinstance(self.model, Network):
            self.model.vectors.requires_grad_(not self.config.freeze_vectors)
        self.optimizer = RAdam(
            self._groups(), lr=self.config.learning_rate, weight_decay=self.config.weight_decay
        )

    def _groups(self) -> list[dict[str, Any]]:
        """Return the weights that learn, by how fast they do."""
        groups: dict[float, list[nn.Parameter]] = {}
        words = getattr(self.model, "token_vectors", None)
        for name, weight in self.model.named_parameters():
            multiplier = self.model.lr_multiplier(name)
            if weight.requires_grad:
                fast = self.schedule.token_lr_multiplier if weight is words else multiplier
                groups.setdefault(fast, []).append(weight)
        return [
            {"params": weights, "lr_multiplier": multiplier}
            for multiplier, weights in groups.items()
        ]

    def _val(self) -> Batches:
        """Return the validation programs; those in memory are put into batches once."""
        inputs = self.data.val.inputs
        if isinstance(inputs, StoredInput):
            return self._batches(inputs)
        self._val_batches = self._val_batches or list(self._batches(inputs))
        return self._val_batches

    def _batches(self, inputs: Input) -> Iterator[tuple[int, Any]]:
        """Yield programs in batches of bounded size, each with its first's number."""
        for begin, some in split_batches(inputs):
            rows = np.arange(len(some))
            own = rows[self.processes.split(some.sizes)]
            part = some if len(own) == len(rows) else some.select(own)
            yield begin, self._share(part, len(rows))

    def _share(self, inputs: Input, programs: int) -> Any:
        """Return what the network takes of a batch with so many programs.

        Args:
            inputs: Those of the programs that are for this process.
            programs: How many the batch has.
        """
        batch = to_tensors(inputs, next(self.model.parameters()))
        if self.shared is self.model:
            return batch
        return Part(batch, programs, spare=self.processes.rank >= programs)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        epochs, patience = len(self.history), self.config.patience
        return epochs >= self.epochs or (
            patience is not None and len(self.data.val) > 0 and epochs - self.best_epoch >= patience
        )

    def begin(self) -> None:
        """Give the model what it starts from: pretrained weights, or vectors of the trees."""
        # Background would crowd out the features of the classes.
        self.model.fit_features(self.data.train.inputs, self.data.train.class_rows)
        if self.init_from:
            copy_pretrained(self.model, self.data.vocabulary, self.init_from)
            self.model.scale_weights(self.data.train.inputs, head_only=True)
        elif isinstance(self.model, Network):
            size = self.model.config.vector_size
            try:
                vectors = learn_vectors(self.data.trees, self.config.vectors, size, self.seed)
            except DataError as error:
                raise DataError(
                    f"{error}; begin with vectors='random'", arguments=("vectors=random",)
                ) from None
            values = torch.from_numpy(vectors.for_vocabulary(self.data.vocabulary))
            with torch.no_grad():
                self.model.vectors.copy_(values)
                self.model.scale_weights(self.data.train.inputs)

    def run_epoch(self, step: Step) -> dict[str, Any]:
        """Go through the training data once, validate, and return the epoch's metrics."""
        epoch = len(self.history) + 1
        begun = time.perf_counter()
        metrics = self._fit_at_once(step) if self.model.CLOSED_FORM else self._learn(epoch, step)
        learned = time.perf_counter()
        self.model.eval()
        with torch.no_grad():
            metrics |= self.task.validate(self.shared, self._val(), self.data.val)
        # Steps are checked before they are taken; the last one has only this.
        if not self._is_finite(metrics["val_loss"]):
            raise self._diverged()
        metrics["seconds"] = time.perf_counter() - begun
        metrics["programs_per_second"] = self.data.train.num_labelled / (learned - begun)
        metrics = dict(self.processes.gather_values({"epoch": epoch, **metrics})[0])
        self.history.append(metrics)
        if self._is_best():
            self.best_epoch = epoch
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        return metrics

    def tensors(self) -> dict[str, Tensor]:
        """Return every number that the next epoch depends on, and the best weights."""
        found = {f"network.{name}": value for name, value in self.model.state_dict().items()}
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
        self.model.load_state_dict(parts["network"])
        states: dict[int, dict[str, Tensor]] = {}
        for key, tensor in parts["optimizer"].items():
            number, _, name = key.partition(".")
            states.setdefault(int(number), {})[name] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": states, "param_groups": groups})
        self.best, self.history, self.best_epoch = parts["best"], history, best_epoch

    def take_over(self) -> None:
        """Go to the state of the first process, which began or restored it."""
        if self.processes.size == 1:
            return
        state = b""
        if self.processes.is_first:
            state = save({name: value.contiguous() for name, value in self.tensors().items()})
        state = self.processes.take_over(state)
        history, best_epoch = self.processes.gather_values([self.history, self.best_epoch])[0]
        if not self.processes.is_first:
            self.restore(load(state), history, best_epoch)

    def _fit_at_once(self, step: Step) -> dict[str, Any]:
        """Fit a model with a closed form to all programs, also as they are blind."""
        train = self.data.train
        self.model.fit(train.inputs, train.every_label)
        step(1.0, 0.0)
        return {"loss": 0.0}

    def _learn(self, epoch: int, step: Step) -> dict[str, Any]:
        """Run gradient descent for an epoch, and return the means of the steps' metrics."""
        rng = np.random.default_rng([self.seed, epoch])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            return self._take_steps(rng, step)

    def _take_steps(self, rng: np.random.Generator, step: Step) -> dict[str, Any]:
        data = self.data
        examples = self.examples = self.task.renew(data.train, data.every, self._read, rng)
        order = self.task.sample(examples.label, self.schedule.batch_size, rng)
        done = len(self.history) * len(order)
        rate = norms = 0.0
        sums: dict[str, float] = {}
        programs: dict[str, int] = {}
        self.model.train()
        for number, rows in enumerate(order):
            rate = _rate(self.config, (done + number) / (self.epochs * len(order)))
            metrics, norm = self._training_step(rows, rate, rng)
            labelled = int(np.count_nonzero(examples.label[rows] != BACKGROUND))
            for name, value in metrics.items():
                count = len(rows) if name == "loss" else labelled  # the others leave out background
                sums[name] = sums.get(name, 0.0) + count * value
                programs[name] = programs.get(name, 0) + count
            norms += norm
            step((number + 1) / len(order), metrics["loss"])
        return {
            **{name: total / programs[name] for name, total in sums.items()},
            "gradient_norm": norms / len(order),
            "learning_rate": rate,
        }

    def _training_step(
        self, rows: Longs, rate: float, rng: np.random.Generator
    ) -> tuple[dict[str, float], float]:
        """Take one step, and return the metrics of the batch and the norm of the gradient."""
        batch, target = self._draw(rows, rng)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["lr_multiplier"]
        self.optimizer.zero_grad()
        total, metrics = self.task.training_step(self.shared, batch, target)
        total.backward()  # type: ignore[no-untyped-call]
        gradients = self._gradients()
        self.processes.average(gradients)
        norm = torch.nn.utils.get_total_norm(gradients).item()
        values = {name: value.item() for name, value in metrics.items()}
        if not math.isfinite(values["loss"] + norm):
            raise self._diverged()
        self.optimizer.step()
        return values, norm

    def _draw(self, rows: Longs, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return programs, each in some view and without a part of it, and what to predict.

        All is drawn for the whole batch, whoever takes which of it.
        """
        examples, schedule = self.examples, self.schedule
        rows = self._augment(rows, rng)
        numbers = rng.integers(2**63, size=len(rows))
        own = self.processes.split(examples.inputs.sizes[rows])
        inputs = examples.inputs.select(
            rows[own],
            InputDropout(numbers[own], schedule.window_dropout, schedule.token_capsule_dropout),
        )
        target = examples.target[rows]
        if isinstance(target, np.ndarray):
            weight = next(self.model.parameters())
            target = ToTensor(weight.device, weight.dtype)(target)
        return self._share(inputs, len(rows)), target

    def _augment(self, rows: Longs, rng: np.random.Generator) -> Longs:
        """Return the rows of a view of each program: as it is, blind or rewritten."""
        examples, config = self.examples, self.config
        if not examples.views:
            return rows
        drawn, chosen = rng.random(len(rows)), rows
        drawn_as = {
            "blind": drawn < config.rename_probability,
            "rewritten": drawn >= 1 - config.rewrite_probability,
        }
        for view in examples.views:
            chosen = np.where(drawn_as[view], examples.rows_of(view, rows), chosen)
        return chosen

    def _gradients(self) -> list[Tensor]:
        return [
            weight.grad
            for group in self.optimizer.param_groups
            for weight in group["params"]
            if weight.grad is not None
        ]

    def _is_finite(self, val_loss: float | None) -> bool:
        """Whether the model still holds numbers, and answers with numbers."""
        if not all(bool(value.isfinite().all()) for value in self.model.state_dict().values()):
            return False
        if val_loss is not None and not math.isfinite(val_loss):
            return False
        rows = np.arange(min(self.schedule.batch_size, len(self.data.train)))
        with torch.no_grad():
            some = self.data.train.inputs.select(rows)
            batch = to_tensors(some, next(self.model.parameters()))
            outputs = self.task.outputs(self.model, batch)
        return bool(outputs.isfinite().all())

    def _diverged(self) -> TrainingError:
        lower = min(self.config.learning_rate / 5, _LOWER_RATE)
        return TrainingError(
            f"training diverged in epoch {len(self.history) + 1}: the loss is not finite;"
            f" try a lower learning_rate: {lower:g}",
            arguments=(f"learning_rate={lower:g}",),
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
    if config.decay == "step":
        return config.learning_rate if share < 0.5 else config.learning_rate / 4
    return config.learning_rate * (1 + math.cos(math.pi * share)) / 2
