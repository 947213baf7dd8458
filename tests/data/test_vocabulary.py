import pytest

from tests.conftest import EXAMPLES
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError
from treecaps.syntax.parse import parse_code, parse_file
from treecaps.syntax.subtokens import UNKNOWN
from treecaps.syntax.tree import Tree


def test_knows_the_kinds_that_occur_and_no_others() -> None:
    trees = [parse_file(path) for path in EXAMPLES]
    vocabulary = Vocabulary.of(trees)
    occurring = {name for tree in trees for name in tree.kind_names()}
    assert vocabulary.kinds == (UNKNOWN, *sorted(occurring))
    assert len(vocabulary) == len(occurring) + 1


def test_encodes_by_name_across_grammars() -> None:
    vocabulary = Vocabulary(["if", "while"])
    one = Tree.build(["while", "if"], [-1, 0])
    other = Tree.build(["if", "nonsense", "while"], [-1, 0, 0])
    assert vocabulary.encode(one).tolist() == [2, 1]
    assert vocabulary.encode(other).tolist() == [1, 0, 2]


def test_many_tables_of_kinds_do_not_mix() -> None:
    vocabulary = Vocabulary(["a", "b"])
    for _ in range(300):
        assert vocabulary.encode(Tree.build(["b", "a"], [-1, 0])).tolist() == [2, 1]
        assert vocabulary.encode(Tree.build(["a", "b"], [-1, 0])).tolist() == [1, 2]


def test_goes_to_json_and_back() -> None:
    vocabulary = Vocabulary(["z", "a", UNKNOWN])
    assert vocabulary.to_json() == [UNKNOWN, "a", "z"]
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary


@pytest.mark.parametrize("values", [None, {}, [1], ["a", "b"], [UNKNOWN, "b", "a"], []])
def test_refuses_what_is_no_vocabulary(values: object) -> None:
    with pytest.raises(DataError, match="not a vocabulary"):
        Vocabulary.from_json(values)


def test_knows_the_words_of_two_programs_or_more() -> None:
    codes = ("total = count + 1", "count = 2", "rest = count")
    vocabulary = Vocabulary.of([parse_code(code, "python") for code in codes], tokens=10)
    assert vocabulary.tokens == (UNKNOWN, "count")
    assert vocabulary.number_token("count") == 1
    assert vocabulary.number_token("total") == 0
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary


def test_knows_the_words_of_the_most_programs_first() -> None:
    codes = ("a_word = other", "a_word = other", "a_word = 1", "zebra = 1")
    trees = [parse_code(code, "python") for code in codes]
    assert Vocabulary.of(trees, tokens=2).tokens == (UNKNOWN, "a", "word")
    assert Vocabulary.of(trees[::-1], tokens=2).tokens == (UNKNOWN, "a", "word")


def test_without_words_by_default() -> None:
    vocabulary = Vocabulary.of([parse_code("count = count", "python")] * 2)
    assert vocabulary.tokens == ()
    assert isinstance(vocabulary.to_json(), list)
