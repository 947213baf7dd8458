"""RAdam, with one pass over the weights."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

_RECTIFIED = 5
"""Above this many degrees of freedom the variance of the adaptive rate is known well enough."""
_LARGE = 1e12
"""Beside it, a root of squared gradients is nothing."""


class RAdam(torch.optim.AdamW):
    r"""The steps of ``torch.optim.RAdam`` with decoupled weight decay, as steps of ``AdamW``.

    PyTorch makes a step of AdamW in one pass over the weights (``fused``), one of RAdam in many.
    With the rectification r, the corrections :math:`b_1, b_2` of the means, and AdamW's

    .. math:: w \leftarrow w - \eta \frac{m / b_1}{\sqrt{v / b_2} + \epsilon}

    RAdam is AdamW with the learning rate :math:`r \eta` and :math:`\epsilon / \sqrt{b_2}`. In its
    first few steps it does not divide; there, :math:`\epsilon` and :math:`\eta` are made so large
    that nothing else counts.

    Each weight has a group of its own, because one that had no gradient yet is in its first steps.

    Args:
        groups: Groups of weights, with the options of each.
        lr: The learning rate.
        weight_decay: Decoupled weight decay.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], lr: float = 1e-3, weight_decay: float = 0.0
    ) -> None:
        alone = [
            {"fused": weight.device.type in {"cpu", "cuda"}, **group, "params": [weight]}
            for group in groups
            for weight in group["params"]
        ]
        super().__init__(alone, lr, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take a step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        asked = [
            {name: group[name] for name in ("lr", "eps", "weight_decay")}
            for group in self.param_groups
        ]
        for group in self.param_groups:
            scale, eps = self._adapt(group)
            group["lr"] *= scale
            group["eps"] = eps
            group["weight_decay"] /= scale
        try:
            super().step()
        finally:
            for group, values in zip(self.param_groups, asked, strict=True):
                group.update(values)
        return loss

    def _adapt(self, group: dict[str, Any]) -> tuple[float, float]:
        """Return by what the learning rate is multiplied in the next step, and epsilon for it."""
        (weight,) = group["params"]
        step = 1 + int(self.state[weight]["step"] if weight in self.state else 0)
        beta = group["betas"][1]
        correction = 1 - beta**step
        most = 2 / (1 - beta) - 1
        freedom = most - 2 * step * beta**step / correction
        if freedom <= _RECTIFIED:
            return _LARGE, _LARGE
        above = (freedom - 4) * (freedom - 2) * most
        below = (most - 4) * (most - 2) * freedom
        return math.sqrt(above / below), group["eps"] / math.sqrt(correction)
