"""Bilateral DTBCNN: two programs, the same or different? (Bui et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.errors import UsageError
from treecaps.inputs.graphs import GraphTensors
from treecaps.models.dtbcnn import DTBCNN, DependencyTower, DTBCNNConfig
from treecaps.models.network import Network, NetworkOutput
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.syntax.languages import LANGUAGES


@dataclass(frozen=True)
class BiDTBCNNConfig(DTBCNNConfig):
    """What a bilateral DTBCNN is made of."""

    second: tuple[str, ...] = option(
        (), "languages that a second tower reads; without, one tower reads all"
    )
    shots: int = option(4, "how many programs of each class and tower others are compared with")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.second:
            if name not in LANGUAGES:
                known = ", ".join(sorted(LANGUAGES))
                raise UsageError(f"second names languages; {name!r} is none of {known}")


@dataclass(frozen=True)
class Compared(NetworkOutput):
    """What a bilateral network says of B programs.

    Args:
        vectors: ``[B, hidden]``, what their towers make of them.
        tower: ``[B]``, which tower read each: 0 or 1.
    """

    vectors: Tensor
    tower: Tensor


@register_architecture(
    "bi-dtbcnn",
    # No dropout: two vectors without different entries of theirs are always apart.
    default=Recommended(
        BiDTBCNNConfig(nodes="kinds+tokens", vector_size=64, convolutions=(128, 128)),
        RECOMMENDED_TRAINING,
    ),
)
class BiDTBCNN(Network):
    """Two towers, possibly of two languages, that say whether two programs are of one class.

    A pair of programs is judged by a hidden layer over what the towers make of the two, and over
    how far that is apart: from the two alone it learned nothing in a trial. In training the
    programs of a step are paired with each other and with those that the network remembers: the
    last few of each class and tower. These also classify: the class of a program is that whose
    remembered programs are the most alike. With two towers they are those of the other tower, where
    it has seen the class: a program of one language is told by programs of another.
    """

    HEAD = ("examples", "seen")
    LEARNS_BACKGROUND = False

    config: BiDTBCNNConfig
    examples: Tensor  # [towers, classes, shots, hidden]
    seen: Tensor  # [towers, classes], how many programs so far

    read_trees = DTBCNN.read_trees

    def __init__(self, config: BiDTBCNNConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        count, size = 2 if config.second else 1, config.hidden
        self.towers = nn.ModuleList(DependencyTower(config) for _ in range(count))
        for tower in self.towers[1:]:
            tower.load_state_dict(self.towers[0].state_dict())  # what is alike begins so
        self.scale = nn.LayerNorm(size)
        self.one = nn.Linear(size, size)
        self.other = nn.Linear(size, size, bias=False)
        self.apart = nn.Linear(size, size, bias=False)
        self.same = nn.Linear(size, 1)
        self.register_buffer("examples", torch.zeros(count, classes, config.shots, size))
        self.register_buffer("seen", torch.zeros(count, classes, dtype=torch.int64))

    def forward(self, graphs: GraphTensors[Tensor]) -> Compared:
        """Look at each program, compare it with those remembered."""
        nodes = self.symbol_vectors(graphs.symbols)[graphs.symbol]
        second = [int(name in self.config.second) for name in graphs.languages]
        tower = torch.tensor(second, device=nodes.device)
        found = torch.stack([reads(nodes, graphs, len(graphs)) for reads in self.towers])
        vectors = self.scale(found[tower, torch.arange(len(graphs), device=nodes.device)])
        return Compared(self._classify(vectors, tower), vectors, tower)

    def loss(self, output: NetworkOutput, label: Tensor) -> Tensor:
        """Return the mean loss of pairs; those of one class weigh as much as all others.

        In training, the programs are remembered.
        """
        assert isinstance(output, Compared)
        kept = self._kept()
        others = torch.cat([output.vectors, self.examples[kept]])
        same = label.unsqueeze(1) == torch.cat([label, kept.nonzero()[:, 1]])
        itself = torch.eye(*same.shape, dtype=torch.bool, device=same.device)
        loss = functional.binary_cross_entropy_with_logits(
            self._compare(output.vectors, others), same.to(others.dtype), reduction="none"
        )
        sides = [loss[side] for side in (same & ~itself, ~same) if side.any()]
        if self.training:
            self._remember(output, label)
        # A step of one program, with none remembered, has no pairs.
        return torch.stack([side.mean() for side in sides]).mean() if sides else 0 * loss.sum()

    @torch.no_grad()
    def _remember(self, output: Compared, label: Tensor) -> None:
        """Put programs in the places of the oldest of their class and tower."""
        for vector, tower, number in zip(output.vectors, output.tower, label, strict=True):
            place = self.seen[tower, number] % self.config.shots
            self.examples[tower, number, place] = vector
            self.seen[tower, number] += 1

    @torch.no_grad()
    def _classify(self, vectors: Tensor, tower: Tensor) -> Tensor:
        """Return ``[B, classes]``, how likely each program is of one class with those of a class.

        Only pairs are learned from, so no gradient is kept.
        """
        kept = self._kept()
        alike = self._compare(vectors, self.examples.flatten(0, 2)).sigmoid().view(-1, *kept.shape)
        means = (alike * kept).sum(3) / kept.sum(2).clamp(min=1)  # [B, towers, classes]
        program = torch.arange(len(vectors), device=vectors.device)
        across = (tower + 1) % len(self.seen)
        return torch.where(self.seen[across] > 0, means[program, across], means[program, tower])

    def _compare(self, vectors: Tensor, others: Tensor) -> Tensor:
        """Return ``[B, O]``, how much speaks for each pair to be of one class, as logits."""
        apart = self.apart((vectors.unsqueeze(1) - others).abs())
        pairs = self.one(vectors).unsqueeze(1) + self.other(others) + apart
        found: Tensor = self.same(pairs.relu()).squeeze(2)
        return found

    def _kept(self) -> Tensor:
        """``[towers, classes, shots]``, which places hold a program."""
        return torch.arange(self.config.shots, device=self.seen.device) < self.seen.unsqueeze(2)
