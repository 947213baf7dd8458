"""The cross-entropy of the lengths of code capsules."""

from torch import Tensor

from treecaps.nn.cross_entropy import cross_entropy

SHARPNESS = 10
"""What the lengths of capsules, 0 to 1, are multiplied by."""


def length_cross_entropy(lengths: Tensor, label: Tensor) -> Tensor:
    r"""Return the cross-entropy of the softmax of lengths, made sharper.

    .. math:: L = -\ln \frac{e^{10 \|z_m\|}}{\sum_\mu e^{10 \|z_\mu\|}}

    Args:
        lengths: ``[B, classes]``, the lengths of the code capsules.
        label: ``[B]``, the right classes m; below 0 where none is right, see ``cross_entropy``.

    Returns:
        The mean over the batch.
    """
    return cross_entropy(SHARPNESS * lengths, label)
