import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from treecaps.inference.confusion import Confusion, count_predictions

WORDS = st.sampled_from("abcd")


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1))
def test_it_equals_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    truth, answers = ([pair[side] for pair in pairs] for side in (0, 1))
    labels, counts = count_predictions(truth, answers)
    assert list(labels) == sorted({*truth, *answers})
    assert [list(row) for row in counts] == confusion_matrix(truth, answers, labels=labels).tolist()


def test_no_programs_have_no_classes() -> None:
    assert count_predictions([], []) == Confusion((), ())
