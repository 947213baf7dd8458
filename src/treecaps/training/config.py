"""How a network is trained."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from treecaps.models.options import check_bounds, option

_FEW = 2000


class Schedule(NamedTuple):
    """What depends on how many programs there are to learn from."""

    epochs: int
    batch_size: int
    token_lr_multiplier: float
    window_dropout: float
    token_capsule_dropout: float


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained. The help of ``treecaps train --set`` is made of this."""

    epochs: int | None = option(30, "number of epochs; chosen from the data set's size if none")
    batch_size: int | None = option(16, "programs a step; if none, 4 to 16")
    learning_rate: float = option(1e-3, "the learning rate of RAdam at the beginning", gt=0)
    token_lr_multiplier: float | None = option(
        None, "how many times faster the vectors of sub-tokens learn; if none, 20 to 2 times", gt=0
    )
    decay: Literal["cosine", "step", "none"] = option(
        "cosine",
        "how the learning rate goes down: along a cosine to zero, to a quarter after half of the"
        " epochs, or not",
    )
    weight_decay: float = option(0.0, "decoupled weight decay", ge=0, le=1_000_000)
    patience: int | None = option(
        None, "stop after so many epochs in a row that were no better on validation data"
    )
    vectors: Literal["parent", "coding", "word2vec", "random"] = option(
        "parent", "how initial node vectors are learned from the training trees"
    )
    freeze_vectors: bool = option(False, "keep the node vectors as they begin")
    window_dropout: float | None = option(
        0.0, "share of a program's windows that a step leaves out; if none, 0.5 to 0.1", ge=0, lt=1
    )
    token_capsule_dropout: float | None = option(
        0.0,
        "share of the programs that a step sees without capsules of tokens; if none, 0.5 to 0",
        ge=0,
        lt=1,
    )
    rename_probability: float = option(
        0.0,
        "share of the programs that an epoch sees blind: without their names and comments",
        ge=0,
        le=1,
    )
    rewrite_probability: float = option(
        0.0,
        "share of the programs that an epoch sees written in another way that means the same",
        ge=0,
        le=1,
    )
    ordinary_background: bool = option(
        False,
        "without other background, learn from features of ordinary code that come with the package"
        " what is of none of the classes",
    )
    precision: Literal["fp32", "bf16"] = option(
        "fp32", "what matrices are multiplied in: float32, or bfloat16 where the processor has it"
    )
    val_share: float = option(
        0.1, "share of each class for validation, where no other data are", ge=0, lt=1
    )

    def __post_init__(self) -> None:
        check_bounds(self)

    def for_programs(self, programs: int, epochs: float) -> "Schedule":
        """Return what is chosen by the number of training programs, where it is not set.

        Args:
            programs: That number.
            epochs: How many epochs so many programs need for the task.
        """
        # Among few programs most words are rare and hardly learn otherwise; among many, vectors
        # that learn so fast never come to rest. And there is less overfitting.
        few = min(1, _FEW / programs)
        return Schedule(
            round(min(epochs, 400)) if self.epochs is None else self.epochs,
            round(16 - 12 * few) if self.batch_size is None else self.batch_size,
            max(20 * few, 2) if self.token_lr_multiplier is None else self.token_lr_multiplier,
            0.1 + 0.4 * few if self.window_dropout is None else self.window_dropout,
            0.5 * few if self.token_capsule_dropout is None else self.token_capsule_dropout,
        )
