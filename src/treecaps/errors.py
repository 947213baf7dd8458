"""What can go wrong, in words for people and codes for programs."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

FailureCode = Literal[
    "unreadable",  # the file cannot be opened, or is no regular file
    "too-large",
    "binary",  # not text, or text with NUL bytes
    "unknown-language",
    "unsupported-language",  # known, but not to this front end
    "syntax",  # a strict parser refused the program
    "too-deep",  # nested beyond what the parser can hold
    "timeout",
    "crash",  # the parser took its process down
    "record",  # a row of a data set that is not a program
]


_FRONTEND = "frontend=tree-sitter"
_ARGUMENTS = {
    "too-large": ("max_bytes",),
    "unknown-language": ("language",),
    "unsupported-language": (_FRONTEND,),
    "syntax": (_FRONTEND,),
    "too-deep": (_FRONTEND,),
}


class TreeCapsError(Exception):
    """Base of every error that treecaps raises on purpose; its text is one line for people.

    Args:
        message: What is wrong and what to do next, in the words of the library.
        arguments: The arguments to change: their names, or ``name=value``. The command line says
            which of its options these are.
    """

    def __init__(self, message: str, *, arguments: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.arguments = tuple(arguments)


class UsageError(TreeCapsError, ValueError):
    """A call that cannot be right, whatever the data."""


class DataError(TreeCapsError):
    """A data set, corpus or tree file that cannot be used as a whole."""


class ModelError(TreeCapsError):
    """A model folder or checkpoint that cannot be used or written."""


class SearchError(TreeCapsError):
    """An index of vectors that cannot be used or written."""


class TrainingError(TreeCapsError):
    """Training that cannot go on."""


class ProcessError(TreeCapsError):
    """A training by several processes that lost one of them."""


class MissingExtraError(TreeCapsError):
    """A part of treecaps whose optional packages are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs packages that are not installed: pip install 'treecaps[{extra}]'"
        )


_EXTRAS = {
    "fastapi": "serve",
    "matplotlib": "train",
    "prometheus_client": "serve",
    "psycopg": "postgres",
    "pyarrow": "data",
    "ray": "ray",
    "scipy": "train",
    "sklearn": "train",
    "tensorboard": "train",
    "torch": "train",
    "usearch": "usearch",
    "uvicorn": "serve",
}
"""Which extra brings a package."""


@contextmanager
def naming_extra(what: str, extra: str | None = None) -> Iterator[None]:
    """Turn the error of a missing package into ``MissingExtraError``, if an extra would bring it.

    Args:
        what: What needs the package.
        extra: The extra that brings all of what it needs; by default that of the package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        found = _EXTRAS.get((error.name or "").partition(".")[0])
        if found is None:
            raise
        raise MissingExtraError(what, extra or found) from None


class ProgramError(TreeCapsError):
    """One program that cannot be read or parsed; the others go on."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message, arguments=_ARGUMENTS.get(code, ()))
        self.code = code


@dataclass(frozen=True)
class Failure:
    """A program that could not be used, as a result rather than an exception."""

    id: str
    code: str
    message: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments to change, as ``TreeCapsError`` has them."""
        return _ARGUMENTS.get(self.code, ())


def describe_os_error(error: OSError) -> str:
    """Say in a few words what the system complained about."""
    if error.errno == errno.ELOOP:
        return "is a symbolic link that leads back to itself"
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
