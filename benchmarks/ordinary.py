"""Pack the features of ordinary code that come with the package.

    python benchmarks/ordinary.py --data DIR

``DIR`` holds files of ordinary code, ``train.jsonl.gz``, divided by repository. Of each language a
few whole files are taken, and more functions and fragments of a few lines; a quarter of the
repositories are for validation. Words that many repositories have are kept, no others, and not in
the program where they were.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Selection
from treecaps.hashing import hash_64
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.subtokens import UNKNOWN, split_token
from treecaps.syntax.tree import Tree
from treecaps.training.background import cut_fragment, functions
from treecaps.training.ordinary import HOME, UNCOMMON, can_pack, pack_trees
from treecaps.training.prepare import change_trees

COUNTS = {"files": (50, 4000), "functions": (350, 400), "fragments": (150, 400)}
"""How many of each language there are, and how many nodes they have at most."""
LEAST = 24
"""How many nodes they have at least."""
REPOSITORIES = 15
"""A word is common if so many repositories have it."""
LEAST_ALIKE = 20
"""How many leaves must stand in a like place to be exchanged among themselves."""
VAL = 4
"""One repository in so many is for validation."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", type=Path, default=HOME)
    options = parser.parse_args()
    corpus = Corpus.build(options.data / "train.jsonl.gz")
    everything = Selection(corpus, np.arange(len(corpus)))
    repository = [name.split("/")[0] for name in corpus.ids]
    words = common_words(corpus, repository)
    pieces = {
        "files": (corpus, np.arange(len(corpus))),
        "functions": ((found := functions(everything)), found.rows),
        "fragments": (
            change_trees(everything, "fragment", cut_fragment, "tree-sitter", False),
            np.arange(len(corpus)),
        ),
    }
    trees: list[Tree] = []
    is_val: list[bool] = []
    for kind, (some, rows) in pieces.items():
        most, nodes = COUNTS[kind]
        taken: dict[tuple[str, bool], int] = defaultdict(int)
        for place in np.random.default_rng(0).permutation(len(some)).tolist():
            tree = some[place]
            val = hash_64(repository[rows[place]].encode()) % VAL == 0
            enough = most // VAL if val else most
            if taken[tree.language, val] == enough or not LEAST <= len(tree) <= nodes:
                continue
            if can_pack(tree):
                taken[tree.language, val] += 1
                trees.append(tree)
                is_val.append(val)
        print(kind, dict(taken))
    content = pack_trees(trees, exchange(trees, set(words)), is_val)
    options.out.write_bytes(content)
    print(f"{len(trees):,} programs, {len(content):,} bytes")


def exchange(trees: list[Tree], words: set[str]) -> list[list[list[str]]]:
    """Return for each tree what its distinct leaves say, exchanged with leaves of other programs.

    Leaves are exchanged that stand in a like place, where they stand first; of what they say, the
    common words are kept.
    """
    said: list[list[list[str]]] = []
    fine: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
    coarse: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
    for row, tree in enumerate(trees):
        leaves = JoinedTrees([tree]).leaf_texts
        pairs = zip(leaves.texts, leaves.names, strict=True)
        said.append([common_part(text, name, words) for text, name in pairs])
        kinds, parents, position = tree.kind_names(), tree.parent.tolist(), tree.position.tolist()
        seen: set[int] = set()
        for node, text in zip(leaves.nodes.tolist(), leaves.text.tolist(), strict=True):
            if text not in seen:
                seen.add(text)
                above = parents[node]
                place = kinds[above], kinds[max(parents[above], 0)], min(position[node], 2)
                fine[tree.language, kinds[node], *place].append((row, text))
    for like, leaves_there in list(fine.items()):
        if len(leaves_there) < LEAST_ALIKE:
            coarse[like[:2]] += fine.pop(like)
    rng = np.random.default_rng(0)
    for group in (*fine.values(), *coarse.values()):
        found = [said[row][text] for row, text in group]
        for (row, text), other in zip(group, rng.permutation(len(found)).tolist(), strict=True):
            said[row][text] = found[other]
    return said


def common_part(text: bytes, is_name: bool, words: set[str]) -> list[str]:
    """Return the words of a leaf; those of a name in their order."""
    found = [word if word in words else UNCOMMON for word in split_token(text, name=is_name)]
    return found if is_name else sorted(found)


def common_words(trees: Corpus, repository: list[str]) -> list[str]:
    """Return the words of names and of other leaves that many repositories have."""
    found: dict[str, set[str]] = defaultdict(set)
    for tree, name in zip(trees, repository, strict=True):
        leaves = JoinedTrees([tree]).leaf_texts
        for text, named in zip(leaves.texts, leaves.names, strict=True):
            for word in split_token(text, name=named):
                found[word].add(name)
    return sorted(
        word for word, names in found.items() if len(names) >= REPOSITORIES and word != UNKNOWN
    )


if __name__ == "__main__":
    main()
