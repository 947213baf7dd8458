import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from treecaps.nn.dropout import Dropout, draw_tokens

_WORD = (1 << 64) - 1


def mix(value: int) -> int:
    """Scatter the bits of a number, as splitmix64 ends."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
    return value ^ (value >> 31)


def test_rows_are_dropped_as_one_process_does() -> None:
    values = torch.randn(11, 4, 3)
    layer = Dropout(0.4)
    torch.manual_seed(3)
    alone = layer(values)
    torch.manual_seed(3)
    assert torch.equal(torch.nn.Dropout(0.4)(values), alone)
    for begin, end in ((0, 4), (4, 11)):
        layer.place = lambda rows, begin=begin: (begin, 11)
        torch.manual_seed(3)
        assert torch.equal(layer(values[begin:end]), alone[begin:end])
        assert torch.equal(layer.eval()(values[begin:end]), values[begin:end])
        layer.train()


symbols = st.tuples(st.integers(0, 9), st.lists(st.integers(0, 99), max_size=4))


@given(st.lists(symbols, max_size=8), st.integers(0, 99), st.floats(0, 0.99))
def test_tokens_are_drawn_by_what_a_symbol_holds(
    shown: list[tuple[int, list[int]]], seed: int, probability: float
) -> None:
    kind = torch.tensor([kind for kind, _ in shown], dtype=torch.int64)
    offsets = torch.tensor(np.cumsum([0, *(len(tokens) for _, tokens in shown)]))
    token = torch.tensor([token for _, tokens in shown for token in tokens], dtype=torch.int64)
    torch.manual_seed(seed)
    found = draw_tokens(kind, offsets, token, probability).tolist()
    torch.manual_seed(seed)
    step = int(torch.randint(1 << 62, ()))
    expected = []
    for number, tokens in shown:
        every = enumerate(tokens)
        content = mix(number) + sum(mix(one * 0x9E3779B97F4A7C15 + at & _WORD) for at, one in every)
        drawn = mix(content + step & _WORD)
        for place in range(len(tokens)):
            share = (mix(drawn + place & _WORD) & ((1 << 53) - 1)) / (1 << 53)
            expected.append(share >= probability)
    assert found == expected


def test_the_share_of_tokens_that_stay() -> None:
    kind = torch.arange(5000) % 7
    offsets = torch.arange(0, 15001, 3)
    token = torch.randint(400, (15000,), generator=torch.Generator().manual_seed(0))
    draws = torch.stack([draw_tokens(kind, offsets, token, 0.15) for _ in range(20)]).float()
    assert abs(draws.mean() - 0.85) < 0.005
    # Other tokens go in every step.
    assert abs(draws.mean(0).std() - (0.85 * 0.15 / 20) ** 0.5) < 0.005
    assert abs(np.corrcoef(draws[:, 0::3].flatten(), draws[:, 1::3].flatten())[0, 1]) < 0.02
