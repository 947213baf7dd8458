"""Static capsules of the tokens of programs, and of runs of neighbouring ones."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.inputs.distinct import Longs
from treecaps.nn.squash import SquashForm, squash
from treecaps.nn.weights import normal_

_MIN_PROGRAMS = 6
"""On what fewer programs have, the network overfits; blind ones count by themselves."""
_COUNTED_AT_ONCE = 1 << 24
_UNUSED = torch.iinfo(torch.long).max


class TokenCapsules(nn.Module):
    r"""Routes capsules of tokens, and of runs of them, to a static one a channel.

    .. math:: u_f = \mathrm{squash}(\tanh(W x_f + b)) \qquad
        v = \mathrm{squash}\Bigl(\sum_f (1 + \ln n_f)\, u_f\Bigr)

    for each of the known features f, with a vector :math:`x_f` of its own, that a program has
    :math:`n_f` times; each channel by itself, as tree windows are with one static capsule.

    Args:
        features: How many features are known at most: those that most programs have.
        inputs: The size of their vectors.
        channels: C.
        size: D_pvc, the size of a capsule.
        form: The form of squash.

    Shapes:
        offsets ``[B + 1]``, where the features of each program begin; feature ``[P]``, their
        hashes, and count ``[P]``; output ``[B, C, D_pvc]``.
    """

    def __init__(
        self, features: int, inputs: int, channels: int, size: int, form: SquashForm
    ) -> None:
        super().__init__()
        self.channels, self.size, self.form = channels, size, form
        self.vectors = nn.Parameter(torch.empty(features, inputs))
        normal_(self.vectors, std=0.3)
        self.linear = nn.Linear(inputs, channels * size)
        # Hashes of the features, sorted; the places of those that there are not come last.
        self.register_buffer("known", torch.full((features,), _UNUSED))
        self.known: Tensor

    def reset_parameters(self) -> None:
        """Draw new weights; the features that are known stay."""
        normal_(self.vectors, std=0.3)
        self.linear.reset_parameters()

    def extra_repr(self) -> str:
        """Return the sizes that ``print`` shows."""
        features, inputs = self.vectors.shape
        return f"{features} x {inputs} -> {self.channels} x {self.size}, form={self.form}"

    def forward(
        self, offsets: Tensor, feature: Tensor, count: Tensor, vectors: Tensor | None = None
    ) -> Tensor:
        """Return the static capsules of B programs.

        Args:
            offsets: ``[B + 1]``.
            feature: ``[P]``.
            count: ``[P]``.
            vectors: ``[F, V]``, other vectors for the distinct ones that are known, in order.
        """
        place, program, weight = self.find(offsets, feature, count)
        # Each distinct feature is computed once.
        occurs = place.new_zeros(len(self.known), dtype=torch.bool)
        occurs[place] = True
        number = (occurs.cumsum(0) - 1)[place]
        if vectors is None:
            vectors = self.vectors[occurs]
        programs = torch.arange(len(offsets) - 1, device=offsets.device)
        begins = torch.searchsorted(program, programs)
        sums = functional.embedding_bag(
            number,
            self.capsules(vectors).flatten(1),
            begins,
            mode="sum",
            per_sample_weights=weight,
        )
        return squash(sums.view(-1, self.size, self.channels), self.form, dim=1).mT

    @torch.no_grad()
    def shares(self, offsets: Tensor, feature: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        """Tell what the static capsules of one program are due to.

        Returns:
            ``[F]``, hashes of the features that are known, sorted; and ``[F, C]``, how much of
            each static capsule is due to each feature: 1 in all, or 0 where there is none.
        """
        place, _, weight = self.find(offsets, feature, count)
        units = self.capsules(self.vectors[place])
        along = (units * self(offsets, feature, count)[0].mT).sum(1) * weight.unsqueeze(1)
        return self.known[place], along / along.sum(0).where(along.sum(0) != 0, 1)

    def capsules(self, vectors: Tensor) -> Tensor:
        """Return the capsules ``[F, D_pvc, C]`` of features with some vectors."""
        outputs = self.linear(vectors).to(vectors.dtype).tanh()  # not so by autocast
        return squash(outputs.view(-1, self.size, self.channels), self.form, dim=1)

    def find(
        self, offsets: Tensor, feature: Tensor, count: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``[P]`` each: the known features, whose programs they are, and how they weigh."""
        place = torch.searchsorted(self.known, feature).clamp(max=len(self.known) - 1)
        there = self.known[place] == feature
        programs = torch.arange(len(offsets) - 1, device=offsets.device)
        program = programs.repeat_interleave(offsets.diff())
        weight = 1 + count[there].to(self.vectors.dtype).log()
        return place[there], program[there], weight

    @torch.no_grad()
    def learn_features(self, features: Callable[[], Iterable[Longs]]) -> None:
        """Take over the features that most programs have; of equals, those of lower hashes.

        Args:
            features: Returns the features of all programs, some programs at a time. It is called
                several times: many features are counted a part at a time, to save memory.
        """
        passes = sum(map(len, features())) // _COUNTED_AT_ONCE + 1
        found, programs = np.zeros((2, 0), np.int64)
        for number in range(passes):
            parts = [part[part % passes == number] for part in features()]
            new = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]), return_counts=True)
            found, programs = np.concatenate([found, new[0]]), np.concatenate([programs, new[1]])
            best = np.lexsort((found, -programs))[: len(self.known)]
            found, programs = found[best], programs[best]
        best = np.sort(found[programs >= _MIN_PROGRAMS])
        self.known.fill_(_UNUSED)
        self.known[: len(best)] = torch.from_numpy(best).to(self.known.device)
