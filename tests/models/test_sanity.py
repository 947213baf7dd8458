"""What each architecture can learn, and what it cannot: on small made-up programs."""

import random
from collections.abc import Callable

import pytest

import treecaps
from treecaps.models.architectures import ARCHITECTURES
from treecaps.syntax.tree import Tree
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train

PROGRAMS = 96
SETTINGS = ("epochs=40", "batch_size=16", "rename_probability=0", "window_dropout=0", "val_share=0")
SMALLER = {
    "treecaps": ("vector_size=16", "hidden=16,16,16,16", "channels=8"),
    "tbcnn": ("vector_size=16", "convolutions=16", "hidden=16", "dropout=0", "learning_rate=1e-2"),
    "ggnn": ("vector_size=16", "hidden=16", "learning_rate=1e-2"),
    "astnn": ("vector_size=16", "encoded=16", "hidden=8", "dropout=0", "epochs=100"),
    "tree-lstm": ("vector_size=16", "hidden=16", "learning_rate=1e-2"),
    "dtbcnn": (
        "vector_size=16",
        "convolutions=16,16",
        "hidden=16",
        "dropout=0",
        "learning_rate=1e-2",
    ),
    "bi-dtbcnn": ("vector_size=16", "convolutions=16,16", "hidden=16", "dropout=0"),
    "capsgnn": ("vector_size=16", "channels=2", "layers=2", "learning_rate=3e-2"),
    "svm-tokens": (),
    "svm-windows": (),
}


def grow(shape: list[object]) -> Tree:
    """Make a tree of nested lists, the kind first; leaves are also the text."""
    kinds: list[str] = []
    parents: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    text = ""

    def add(part: object, parent: int) -> None:
        nonlocal text
        node = len(kinds)
        kind, below = (part[0], part[1:]) if isinstance(part, list) else (part, [])
        kinds.append(str(kind))
        parents.append(parent)
        starts.append(len(text))
        ends.append(0)
        if not below:
            text += f"{kind} "
        for one in below:
            add(one, node)
        ends[node] = len(text)

    add(shape, -1)
    return Tree.build(kinds, parents, text=text.encode(), start=starts, end=ends)


def kind(label: int, chance: random.Random) -> Tree:
    """Whether one leaf is of one kind or another."""
    others = [chance.choice("cdef") for _ in range(6)]
    others.insert(chance.randrange(6), "ab"[label])
    return grow(["root", *others])


def order(label: int, chance: random.Random) -> Tree:
    """Whether one child stands before another, or after it."""
    pair = ["a", "b"] if label else ["b", "a"]
    noise = [["n", chance.choice("cdef")] for _ in range(chance.randrange(4))]
    return grow(["root", ["n", *pair], *noise])


def depth(label: int, chance: random.Random) -> Tree:
    """How deep a leaf lies, where all nodes with their children are the same."""
    deep = ["n", ["n", "x"]]
    chains = (["n", deep], ["n", "y"]) if label else (deep, ["n", ["n", "y"]])
    noise = [["m", chance.choice("cdef")] for _ in range(chance.randrange(4))]
    return grow(["root", *chains, *noise])


def use(label: int, chance: random.Random) -> Tree:
    """Which of two variables that were written far above is used in the end."""
    names = [f"v{number}" for number in chance.sample(range(100), 2)]
    lines = ["def f(alpha, beta):"]
    values = ["alpha", "beta"]
    pairs = list(zip(names, values, strict=True))
    chance.shuffle(pairs)
    lines += [f"    {name} = {value}" for name, value in pairs]
    lines += [f"    g({chance.randrange(3)})" for _ in range(8)]
    lines.append(f"    return {names[label]}")
    return treecaps.parse_code("\n".join(lines), "python")


TASKS: dict[Callable[[int, random.Random], Tree], set[str]] = {
    kind: set(ARCHITECTURES),
    # Sums over children have no order, and neither has a graph of parents alone.
    order: set(ARCHITECTURES) - {"astnn", "tree-lstm", "capsgnn"},
    # One layer, or one word after the other, does not reach so deep.
    depth: set(ARCHITECTURES) - {"tbcnn", "svm-tokens", "svm-windows"},
    # Without edges from uses to writes, nothing tells.
    use: {"ggnn", "dtbcnn", "bi-dtbcnn"},
}
"""Which architectures can do what."""


@pytest.mark.parametrize(
    ("name", "task"),
    [
        pytest.param(name, task, id=f"{name}-{task.__name__}")
        for name in ARCHITECTURES
        for task in TASKS
    ],
)
def test_it_learns_what_it_can(name: str, task: Callable[[int, random.Random], Tree]) -> None:
    chance = random.Random(0)
    labels = [number % 2 for number in range(2 * PROGRAMS)]
    trees = [task(label, chance) for label in labels]
    linear = name.startswith("svm-")
    nodes = () if linear else ("nodes=kinds+tokens" if task is use else "nodes=kinds",)
    preset = apply_settings(get_preset("default", name), [*SETTINGS, *SMALLER[name], *nodes])
    model = train(trees[:PROGRAMS], list(map(str, labels[:PROGRAMS])), preset=preset)
    found = model.scores(model.read_trees(trees[PROGRAMS:])).argmax(1).tolist()
    right = sum(one == other for one, other in zip(found, labels[PROGRAMS:], strict=True))
    able = name in TASKS[task]
    assert (right >= 0.9 * PROGRAMS) == able, f"{right} of {PROGRAMS}"
    assert able or right <= 0.75 * PROGRAMS, f"{right} of {PROGRAMS}"
