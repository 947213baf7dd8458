"""``Explanation``: a program, a model's answer, and what of the program leads to it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from treecaps.data.parallel import parse_programs
from treecaps.errors import DataError, Failure, UsageError
from treecaps.explanation.attribution import Method, attribute, best_method
from treecaps.explanation.perturbation import Dimension, perturb, strongest
from treecaps.explanation.spreading import Contributions, to_tokens
from treecaps.inference.classify import Classification, classify_tree
from treecaps.inference.units import is_empty
from treecaps.inputs.bags import hash_leaves
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.light.tracing import find_routes
from treecaps.models.trained import ModelLike, TrainedModel, as_model
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.tasks import check_answers
from treecaps.text import short_repr, to_html

_ROUTES = 8
_SOURCES = 3


class Route(NamedTuple):
    """A static capsule on the way to the class.

    Args:
        capsule: Its number.
        of: What it comes from.
        share: How much of the code capsule is due to it.
        nodes: The nodes whose windows it is due to most, the first that has each, and how much of
            it.
    """

    capsule: int
    of: Literal["windows", "tokens"]
    share: float
    nodes: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Explanation:
    """What of a program leads to a class.

    Args:
        classification: What the model says of the program.
        label: The class that is explained.
        method: How.
        tree: The program.
        nodes: ``[n]``, what each node adds to the length of the code capsule.
        tokens: ``[n]``, the same, with all of it on the leaves.
        routes: The strongest ways from windows by a static capsule to the class.
        dimensions: What the numbers of the code capsule stand for, where that is asked for.
    """

    classification: Classification
    label: str
    method: Method
    tree: Tree
    nodes: Contributions
    tokens: Contributions
    routes: tuple[Route, ...]
    dimensions: tuple[Dimension, ...] = ()

    def __repr__(self) -> str:
        facts = {"method": self.method, "nodes": len(self.tree)}
        return short_repr(self, self.classification.id, self.label, **facts)

    def _repr_html_(self) -> str:
        from treecaps.explanation.terminal import to_markup

        title = f"{self.classification.id}: {self.classification.label}; what adds to {self.label}:"
        return f"<p>{to_html(title)}</p>{to_markup(self)}"

    @property
    def line_of(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """``[n]``, the line that each node begins in, from 0."""
        breaks = np.flatnonzero(np.frombuffer(self.tree.text, np.uint8) == ord("\n"))
        return np.searchsorted(breaks, self.tree.start)

    @property
    def lines(self) -> Contributions:
        """What each line adds, from the first."""
        count = self.tree.text.count(b"\n") + 1
        return np.bincount(self.line_of, self.tokens, minlength=count).astype(np.float64)

    def to_dict(self, most: int = 1000) -> dict[str, Any]:
        """Return plain values for JSON: all lines, the nodes that add most, and the routes."""
        names, lines = self.tree.kind_names(), self.line_of
        named = [node for route in self.routes for node, _ in route.nodes]
        strongest = np.argsort(-np.abs(self.nodes), kind="stable")[:most].tolist()
        chosen = sorted({0, *strongest, *named})
        above = _nearest_above(self.tree.parent.tolist(), set(chosen))
        return {
            **self.classification.to_dict(),
            "explained": self.label,
            "method": self.method,
            "lines": [round(float(value), 6) for value in self.lines],
            "nodes": [
                {
                    "node": node,
                    "parent": above[node],
                    "kind": names[node],
                    "line": int(lines[node]) + 1,
                    "start": int(self.tree.start[node]),
                    "end": int(self.tree.end[node]),
                    "contribution": round(float(self.nodes[node]), 6),
                    "token": round(float(self.tokens[node]), 6),
                }
                for node in chosen
            ],
            "nodes_in_all": len(self.tree),
            "routes": [
                {
                    "capsule": route.capsule,
                    "of": route.of,
                    "share": round(route.share, 6),
                    "nodes": [{"node": n, "share": round(share, 6)} for n, share in route.nodes],
                }
                for route in self.routes
            ],
            **(
                {"dimensions": [one.to_dict() for one in self.dimensions]}
                if self.dimensions
                else {}
            ),
        }


def _nearest_above(parents: list[int], chosen: set[int]) -> list[int]:
    """Return for each node the nearest chosen one above it, -1 for none."""
    above = [-1] * len(parents)
    for node, parent in enumerate(parents):
        if parent >= 0:
            above[node] = parent if parent in chosen else above[parent]
    return above


def explain(
    model: ModelLike,
    program: Program | Tree | str | Path,
    *,
    label: str | None = None,
    method: Method | None = None,
    dimensions: bool = False,
) -> Explanation:
    """Tell what of a program leads a model to its answer.

    Args:
        model: A trained model of treecaps, its folder, or the name of a bundled one.
        program: The program, its tree by the front end of the model, or its file.
        label: The class to explain; the model's best guess by default, also where that is unknown.
        method: How; see ``attribute``. By default gradients, and routing for a large program.
        dimensions: Whether to tell what the numbers of the code capsule stand for; see ``perturb``.
    """
    model = as_model(model)
    check_answers(model, "classes")
    name = "program"
    if isinstance(program, str | Path):
        program = Program.read(program)
    if isinstance(program, Program):
        name = program.id
        (tree,) = parse_programs([program], model.frontend, comments=model.comments)
        if isinstance(tree, Failure):
            raise DataError(f"{name}: {tree.message}")
        program = tree
    elif program.frontend != model.frontend:
        raise UsageError(f"the model wants a tree by {model.frontend}, not by {program.frontend}")
    if is_empty(program):
        raise UsageError(f"{name} is empty: there is nothing to explain")
    said = classify_tree(model, program, name)
    label = label or said.guess
    if label is None:
        raise UsageError(
            f"{name} has no class to explain: {said.reason}; choose one", arguments=("label",)
        )
    method = method or best_method(model, program)
    nodes = attribute(model, program, label, method)
    routes = _routes(model, program, model.labels.index(label))
    tokens = to_tokens(program, nodes)
    varied = perturb(model, program, label) if dimensions else ()
    return Explanation(said, label, method, program, nodes, tokens, routes, varied)


def _routes(model: TrainedModel, tree: Tree, number: int) -> tuple[Route, ...]:
    """Return the strongest routes of the network that counts most."""
    network = strongest(model)
    config = network.config
    if not config.has_routes:
        return ()
    program, rows = WindowsAndBags.with_rows(tree, model.vocabulary, config.depths, config.feature)
    routes = find_routes(network, program.to_tensors(np.asarray))
    first = np.zeros(len(program.windows.count), np.int64)
    first[rows[::-1]] = np.arange(len(tree))[::-1]
    # Capsules of tokens come from features, each of which first occurs at some leaf.
    leaves = _first_leaves(tree, routes.features)
    windows = routes.windows.shape[1]
    found = []
    for capsule in _largest(routes.code[:, number], _ROUTES):
        of: Literal["windows", "tokens"] = "windows" if capsule < windows else "tokens"
        of_it, where = (
            (routes.windows[:, capsule], first)
            if of == "windows"
            else (routes.tokens[:, capsule - windows], leaves)
        )
        nodes = tuple((int(where[row]), float(of_it[row])) for row in _largest(of_it, _SOURCES))
        found.append(Route(capsule, of, float(routes.code[capsule, number]), nodes))
    return tuple(found)


def _first_leaves(tree: Tree, features: Longs) -> Longs:
    """Return ``[F]``, the leaf where each token feature first occurs."""
    every, runs = hash_leaves(JoinedTrees([tree]))
    hashes = np.concatenate(runs)
    leaves = np.concatenate([every[: len(run)] for run in runs])
    order = np.argsort(hashes, kind="stable")
    return leaves[order[np.searchsorted(hashes[order], features)]]


def _largest(values: Floats, count: int) -> list[int]:
    """Return the places of the largest values, the largest first."""
    places: list[int] = np.argsort(-values, kind="stable")[:count].tolist()
    return places
