import pytest

from tests.conftest import EXAMPLES
from treecaps.syntax.blind import blind
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.names import is_name
from treecaps.syntax.parse import parse_code, parse_file
from treecaps.syntax.program import Program
from treecaps.syntax.subtokens import MOST, UNKNOWN, split_token
from treecaps.syntax.tree import Tree


def names_in(tree: Tree) -> set[bytes]:
    said = JoinedTrees([tree]).leaf_texts
    return {text for name, text in zip(said.names, said.texts, strict=True) if name}


@pytest.mark.parametrize(
    ("token", "parts"),
    [
        ("bubbleSort", ("bubble", "sort")),
        ("max_heap_size", ("max", "heap", "size")),
        ("HTTPServer", ("http", "server")),
        ("array2D", ("array", "2", "d")),
        ("3.14", ("3", "14")),
        ("1000000007", ("1000000007",)),
        ("%5.2lf of %d\\n", ("%5.2lf", "of", "%d", "\\n")),
        ("+", ("+",)),
        ("'", ("'",)),
        ("größe", ("gr", "öß", "e")),
        ("", ()),
    ],
)
def test_splits_into_words(token: str, parts: tuple[str, ...]) -> None:
    assert split_token(token.encode()) == parts


@pytest.mark.parametrize("name", ["v17", "V0", "x_3", "var12", "identifier_4", "_tmp1", "f2"])
def test_numbered_names_say_nothing(name: str) -> None:
    assert split_token(name.encode(), name=True) == (UNKNOWN,)


def test_digits_say_nothing_in_names_but_in_numbers() -> None:
    assert split_token(b"array2D", name=True) == split_token(b"array3D", name=True)
    assert split_token(b"2") != split_token(b"3")


def test_only_the_beginning_of_a_long_text_counts() -> None:
    assert len(split_token(b"word " * 1000)) == MOST
    assert len(split_token(b"a" * 1000)[0]) < 100


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_no_name_of_a_blind_program_says_anything(path: object) -> None:
    tree = parse_file(str(path))
    program = blind(Program(tree.text, tree.language))
    blinded = parse_code(program.text, tree.language)
    words = names_in(blinded)
    assert words
    said = {text for text in words if split_token(text, name=True) != (UNKNOWN,)}
    # What stays are words of the language that its grammar takes for names.
    assert said <= names_in(tree)
    assert len(said) <= 4


def test_pythons_own_trees_have_names() -> None:
    tree = parse_code("total = total + 1", "python", frontend="ast")
    assert b"total" in names_in(tree)
    assert is_name("Load")
