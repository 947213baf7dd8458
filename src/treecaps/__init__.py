"""treecaps: what a program does, told from its syntax tree."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from treecaps._version import __version__ as __version__

if TYPE_CHECKING:
    from treecaps.cluster import RayCluster
    from treecaps.data.corpus import Corpus, DamagedCorpusError
    from treecaps.data.dataset import DataSet
    from treecaps.data.duplicates import find_copies, find_duplicates
    from treecaps.data.parallel import parse_programs
    from treecaps.data.summary import summarise
    from treecaps.errors import (
        DataError,
        Failure,
        MissingExtraError,
        ModelError,
        ProgramError,
        TrainingError,
        TreeCapsError,
        UsageError,
    )
    from treecaps.estimator import TreeCapsClassifier
    from treecaps.explanation.explanation import Explanation, explain
    from treecaps.inference.bugs import Bug, BugReport, find_bugs
    from treecaps.inference.classify import Classification, classify
    from treecaps.inference.embed import Embedder, Embedding
    from treecaps.inference.evaluate import Evaluation, evaluate
    from treecaps.inference.retrieval import Retrieval, evaluate_retrieval
    from treecaps.models.trained import TrainedModel, load
    from treecaps.rendering.training import train
    from treecaps.syntax.drawing import to_svg
    from treecaps.syntax.edges import find_edges
    from treecaps.syntax.frontends import get_frontend
    from treecaps.syntax.functions import find_functions
    from treecaps.syntax.languages import Language, register
    from treecaps.syntax.parse import parse_code, parse_file
    from treecaps.syntax.program import Program
    from treecaps.syntax.tree import Tree
    from treecaps.training.vectors.kind_vectors import KindVectors
    from treecaps.training.vectors.learn import learn_vectors

# Loaded when first used, so that the command line starts at once.
_HOMES = {
    "Bug": "treecaps.inference.bugs",
    "BugReport": "treecaps.inference.bugs",
    "Classification": "treecaps.inference.classify",
    "Corpus": "treecaps.data.corpus",
    "DamagedCorpusError": "treecaps.data.corpus",
    "DataError": "treecaps.errors",
    "DataSet": "treecaps.data.dataset",
    "Embedder": "treecaps.inference.embed",
    "Embedding": "treecaps.inference.embed",
    "Evaluation": "treecaps.inference.evaluate",
    "Explanation": "treecaps.explanation.explanation",
    "Failure": "treecaps.errors",
    "KindVectors": "treecaps.training.vectors.kind_vectors",
    "Language": "treecaps.syntax.languages",
    "MissingExtraError": "treecaps.errors",
    "ModelError": "treecaps.errors",
    "Program": "treecaps.syntax.program",
    "ProgramError": "treecaps.errors",
    "RayCluster": "treecaps.cluster",
    "Retrieval": "treecaps.inference.retrieval",
    "TrainedModel": "treecaps.models.trained",
    "TrainingError": "treecaps.errors",
    "Tree": "treecaps.syntax.tree",
    "TreeCapsClassifier": "treecaps.estimator",
    "TreeCapsError": "treecaps.errors",
    "UsageError": "treecaps.errors",
    "classify": "treecaps.inference.classify",
    "evaluate": "treecaps.inference.evaluate",
    "evaluate_retrieval": "treecaps.inference.retrieval",
    "explain": "treecaps.explanation.explanation",
    "find_bugs": "treecaps.inference.bugs",
    "find_copies": "treecaps.data.duplicates",
    "find_duplicates": "treecaps.data.duplicates",
    "find_edges": "treecaps.syntax.edges",
    "find_functions": "treecaps.syntax.functions",
    "get_frontend": "treecaps.syntax.frontends",
    "learn_vectors": "treecaps.training.vectors.learn",
    "load": "treecaps.models.trained",
    "parse_code": "treecaps.syntax.parse",
    "parse_file": "treecaps.syntax.parse",
    "parse_programs": "treecaps.data.parallel",
    "register": "treecaps.syntax.languages",
    "summarise": "treecaps.data.summary",
    "to_svg": "treecaps.syntax.drawing",
    "train": "treecaps.rendering.training",
}

__all__ = [
    "Bug",
    "BugReport",
    "Classification",
    "Corpus",
    "DamagedCorpusError",
    "DataError",
    "DataSet",
    "Embedder",
    "Embedding",
    "Evaluation",
    "Explanation",
    "Failure",
    "KindVectors",
    "Language",
    "MissingExtraError",
    "ModelError",
    "Program",
    "ProgramError",
    "RayCluster",
    "Retrieval",
    "TrainedModel",
    "TrainingError",
    "Tree",
    "TreeCapsClassifier",
    "TreeCapsError",
    "UsageError",
    "classify",
    "evaluate",
    "evaluate_retrieval",
    "explain",
    "find_bugs",
    "find_copies",
    "find_duplicates",
    "find_edges",
    "find_functions",
    "get_frontend",
    "learn_vectors",
    "load",
    "parse_code",
    "parse_file",
    "parse_programs",
    "register",
    "summarise",
    "to_svg",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'treecaps' has no attribute {name!r}")
    from treecaps.errors import naming_extra

    with naming_extra(f"treecaps.{name}"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
