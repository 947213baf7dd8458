"""Cross-entropy where some programs are of none of the classes."""

from torch import Tensor


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    r"""Return the cross-entropy of the softmax of logits; where no class is right, with all alike.

    .. math:: L = -\ln p_m \quad\text{or}\quad L = -\frac{1}{M} \sum_\mu \ln p_\mu

    with M classes. The second is known as outlier exposure.

    Args:
        logits: ``[B, classes]``.
        label: ``[B]``, the right classes m; below 0 where none is right.

    Returns:
        The mean over the batch.
    """
    shares = logits.log_softmax(1)
    right = shares.gather(1, label.clamp(min=0).unsqueeze(1)).squeeze(1)
    return -shares.mean(1).where(label < 0, right).mean()
