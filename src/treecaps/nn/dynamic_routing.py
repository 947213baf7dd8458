"""Dynamic routing: from a fixed number of capsules to another."""

import math

import torch
from torch import Tensor, nn

from treecaps.nn.squash import SquashForm, squash
from treecaps.nn.weights import normal_

_BIAS = 0.1


def dynamic_routing(
    predictions: Tensor,
    iterations: int = 3,
    form: SquashForm = "sabour",
    bias: Tensor | None = None,
    stop_gradients: bool = False,
) -> tuple[Tensor, Tensor]:
    r"""Route the predictions of J capsules to M capsules (algorithm 2; Sabour et al. 2017).

    From delta = 0, t times

    .. math::
        \gamma_j = \mathrm{softmax}_m(\delta_j) \qquad
        z_m = \mathrm{squash}\Bigl(\sum_j \gamma_{jm} \hat v_{m|j} + b_m\Bigr) \qquad
        \delta_{jm} \mathrel{+}= \hat v_{m|j} \cdot z_m

    Args:
        predictions: ``[J, B, M, D]``, what each capsule j predicts for each capsule m.
        iterations: t.
        form: The form of squash.
        bias: ``[M, D]``, b; the paper has none.
        stop_gradients: Let no gradient through the coupling, as the authors of the algorithm do:
            only the last iteration learns.

    Returns:
        The capsules z, ``[B, M, D]``, and the coupling gamma they were made with, ``[B, J, M]``.
    """
    outputs = predictions.shape[2]
    shift: Tensor | float = 0.0 if bias is None else bias
    inner, inner_shift = predictions, shift
    if stop_gradients and iterations > 1:
        inner = predictions.detach()
        inner_shift = shift.detach() if isinstance(shift, Tensor) else shift
    coupling = predictions.new_full(predictions.shape[:3], 1 / outputs)
    values = squash(inner.sum(0) / outputs + inner_shift, form)
    total = values
    for iteration in range(2, iterations + 1):
        # delta is the product of a prediction with the sum of all z so far.
        coupling = (inner * total).sum(3).softmax(2)
        last = iteration == iterations
        votes, offset = (predictions, shift) if last else (inner, inner_shift)
        values = squash((votes * coupling.unsqueeze(3)).sum(0) + offset, form)
        total = total + values
    return values, coupling.transpose(0, 1)


class CapsuleLayer(nn.Module):
    r"""A fixed number of capsules from another fixed number.

    .. math:: \hat v_{m|j} = W_{jm} v_j

    and dynamic routing from the predictions.

    Args:
        inputs: J, the capsules below.
        input_size: Their size.
        outputs: M, the capsules of this layer.
        output_size: Their size D.
        iterations: t, of dynamic routing.
        form: The form of squash.
        bias: Whether each output has a bias, which begins at 0.1 in every coordinate.
        std: Standard deviation of the initial weights; chosen by the sizes by default.
        stop_gradients: Let no gradient through the coupling.
        whiten: Multiply capsules by a fixed matrix, which ``fit_whitening`` chooses, before W.

    Shapes:
        capsules ``[B, J, input_size]``; output ``[B, M, D]`` and the coupling ``[B, J, M]``.
    """

    def __init__(
        self,
        inputs: int,
        input_size: int,
        outputs: int,
        output_size: int,
        iterations: int = 3,
        form: SquashForm = "sabour",
        *,
        bias: bool = False,
        std: float | None = None,
        stop_gradients: bool = False,
        whiten: bool = False,
    ) -> None:
        super().__init__()
        self.outputs, self.output_size = outputs, output_size
        self.iterations, self.form = iterations, form
        self.std, self.stop_gradients = std, stop_gradients
        self.weight = nn.Parameter(torch.empty(inputs, input_size, outputs * output_size))
        self.bias = nn.Parameter(torch.empty(outputs, output_size)) if bias else None
        self.whitening: Tensor | None
        eye = torch.eye(input_size).repeat(inputs, 1, 1) if whiten else None
        self.register_buffer("whitening", eye)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        # The first iteration gives each of M capsules 1/M of everything. With this deviation,
        # input capsules of length 1 make outputs of length 1/2 before squashing, however many
        # classes there are; smaller ones leave many classes without a signal to learn from.
        inputs = self.weight.shape[0]
        chosen = self.outputs / (2 * math.sqrt(inputs * self.output_size))
        normal_(self.weight, chosen if self.std is None else self.std)
        if self.bias is not None:
            nn.init.constant_(self.bias, _BIAS)

    def extra_repr(self) -> str:
        """Return the sizes that ``print`` shows."""
        inputs, input_size, _ = self.weight.shape
        return (
            f"{inputs} x {input_size} -> {self.outputs} x {self.output_size},"
            f" iterations={self.iterations}, form={self.form}"
        )

    @torch.no_grad()
    def fit_whitening(self, capsules: Tensor) -> None:
        """Choose the whitening for capsules ``[B, J, input_size]`` of training programs."""
        assert self.whitening is not None
        second = torch.einsum("bji,bjk->jik", capsules, capsules) / len(capsules)
        values, vectors = torch.linalg.eigh(second)
        mean = values.mean(1, keepdim=True)
        # A capsule that no program has stays as it is.
        shrunk = (values.clamp(min=0) + mean).where(mean > torch.finfo(mean.dtype).eps, 1)
        self.whitening.copy_((vectors * shrunk.rsqrt().unsqueeze(1)) @ vectors.mT)

    def _predict(self, capsules: Tensor) -> Tensor:
        """Return the predictions ``[J, B, M * D]``."""
        capsules = capsules.transpose(0, 1)
        if self.whitening is not None:
            capsules = torch.bmm(capsules, self.whitening)
        return torch.bmm(capsules, self.weight)

    @torch.no_grad()
    def shares(self, capsules: Tensor) -> Tensor:
        """Return ``[B, J, M]``, how much of each output is due to each capsule.

        That is 1 in all, or 0 where the output is nothing.
        """
        outputs, coupling = self.forward(capsules)
        batch, inputs, _ = capsules.shape
        shape = (inputs, batch, self.outputs, self.output_size)
        predictions = self._predict(capsules).view(shape)
        along = (predictions * outputs).sum(3).transpose(0, 1) * coupling
        total = along.sum(1, keepdim=True)
        return along / total.where(total != 0, 1)

    def forward(self, capsules: Tensor) -> tuple[Tensor, Tensor]:
        """Predict and route."""
        batch, inputs, size = capsules.shape
        shape = (batch, self.outputs, self.output_size)
        if self.iterations == 1 and self.whitening is None:
            # Everything goes everywhere in equal parts: no need to predict one by one.
            weight = self.weight.view(inputs * size, -1)
            sums = (capsules.reshape(batch, -1) @ weight / self.outputs).view(shape)
            if self.bias is not None:
                sums = sums + self.bias
            equal = capsules.new_full((batch, inputs, self.outputs), 1 / self.outputs)
            return squash(sums, self.form), equal
        return dynamic_routing(
            self._predict(capsules).view(inputs, *shape),
            self.iterations,
            self.form,
            self.bias,
            self.stop_gradients,
        )
