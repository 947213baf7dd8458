import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.symbols import SymbolTable
from treecaps.inputs.windows import Windows
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.names import is_name
from treecaps.syntax.parse import parse_code, parse_file
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree

MOST = 1000


def spell(tree: Tree, vocabulary: Vocabulary) -> list[tuple[int, tuple[int, ...]]]:
    """Say what each node shows, one after the other."""
    shown = []
    for node, kind in enumerate(tree.kind_names()):
        text = tree.text[tree.start[node] : tree.end[node]]
        leaf = not len(tree.children(node)) and not kind.startswith('"') and text
        parts = split_token(text, name=is_name(kind)) if leaf and vocabulary.tokens else ()
        numbers = tuple(vocabulary.number_token(part) for part in parts)
        shown.append((vocabulary.number(kind), numbers))
    return shown


@given(st.lists(random_trees(), min_size=1, max_size=5), st.sampled_from([0, 3, MOST]))
def test_symbols_are_what_nodes_show(trees: list[Tree], tokens: int) -> None:
    assert_shown(trees, Vocabulary.of(trees, tokens))


def test_symbols_of_real_programs() -> None:
    trees = [parse_file(path) for path in EXAMPLES]
    vocabulary = Vocabulary.of(trees, MOST)
    assert len(vocabulary.tokens) > 20
    assert_shown(trees, vocabulary)


def assert_shown(trees: list[Tree], vocabulary: Vocabulary) -> None:
    table = SymbolTable(vocabulary)
    joined = JoinedTrees(trees)
    numbers = np.split(table.encode(joined), joined.firsts[1:])
    symbols = table.symbols()
    for tree, found in zip(trees, numbers, strict=True):
        shown = [
            (
                int(symbols.kind[number]),
                tuple(symbols.token[slice(*symbols.offsets[number : number + 2])].tolist()),
            )
            for number in found
        ]
        assert shown == spell(tree, vocabulary)


def test_what_shows_the_same_is_one_symbol() -> None:
    one, other = (parse_code(code, "python") for code in ("total = v1 + 1", "total = v2 + 1"))
    vocabulary = Vocabulary.of([one, other], MOST)
    inputs = Windows.from_trees([one, other], vocabulary)
    assert (
        inputs.window[: inputs.offsets[1]].tolist() == inputs.window[inputs.offsets[1] :].tolist()
    )
    third = Windows.from_trees([one, parse_code("total = v1 + 2", "python")], vocabulary)
    assert len(third.layers[0]) > len(inputs.layers[0])
