import pytest

import treecaps


def test_a_wrong_call_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="unknown language 'klingon'") as caught:
        treecaps.Program.of("x", "klingon")
    assert isinstance(caught.value, treecaps.UsageError)
    assert isinstance(caught.value, treecaps.TreeCapsError)
