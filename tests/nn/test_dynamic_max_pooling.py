import torch

from treecaps.nn.dynamic_max_pooling import dynamic_max_pooling


def test_takes_the_largest_of_each_dimension() -> None:
    capsules = torch.randn(6, 3, 4)  # [W, D, C]
    window = torch.tensor([0, 5, 2, 3])
    found = dynamic_max_pooling(capsules, window, [0, 3, 4])
    assert found.shape == (2, 1, 3)
    for d in range(3):
        first = max(capsules[w, d, c].item() for w in (0, 5, 2) for c in range(4))
        assert found[0, 0, d] == first
        assert found[1, 0, d] == capsules[3, d].max()
