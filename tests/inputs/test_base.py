import numpy as np

from treecaps.inputs.base import InputDropout


def test_a_program_loses_the_same_whatever_is_beside_it() -> None:
    rng = np.random.default_rng(0)
    numbers, sizes = rng.integers(2**63, size=200), rng.integers(1, 60, size=200)
    whole = InputDropout(numbers, windows=0.3, tokens=0.2)
    for keep in (InputDropout.keep_windows, InputDropout.keep_features):
        every = keep(whole, sizes)
        parts = [
            keep(InputDropout(numbers[some], windows=0.3), sizes[some])
            for some in (slice(0, 70), slice(70, 200))
        ]
        assert every is not None
        assert np.array_equal(every, np.concatenate([part for part in parts if part is not None]))
        assert abs(every.mean() - 0.7) < 0.02
    windows, features = whole.keep_windows(sizes), whole.keep_features(sizes)
    assert windows is not None
    assert features is not None
    assert abs(np.corrcoef(windows, features)[0, 1]) < 0.05
    kept = whole.keep_tokens()
    assert kept is not None
    assert 0.6 < kept.mean() < 0.95
    nothing = InputDropout(numbers)
    assert nothing.keep_windows(sizes) is nothing.keep_features(sizes) is None
    assert nothing.keep_tokens() is None
