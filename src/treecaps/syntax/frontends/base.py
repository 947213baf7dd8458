"""What every front end is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from treecaps.errors import ProgramError
from treecaps.syntax.languages import LANGUAGES, Language
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

SECONDS = 10.0
"""How long any program may take to parse."""
SECONDS_PER_MB = 10.0
"""How much longer a large one may take; a healthy parser needs less than two."""


def time_limit(text: bytes) -> float:
    """Return how many seconds a program may take to parse."""
    return SECONDS + SECONDS_PER_MB * len(text) / 1e6


def describe_timeout(text: bytes) -> str:
    """Say that a program took longer than that."""
    return f"took longer than {time_limit(text):.3g} s to parse"


class Frontend(ABC):
    """A parser that turns programs into trees.

    Error recovery in a mess can take for ever, so ``parse`` keeps to ``time_limit`` as well as it
    can. ``treecaps.parse_programs`` guarantees it: there, a worker process that is late is ended.

    Args:
        comments: Whether comments become nodes, where the parser sees them.
    """

    name: ClassVar[str]

    def __init__(self, *, comments: bool = False) -> None:
        self.comments = comments

    @abstractmethod
    def languages(self) -> frozenset[str]:
        """Return the names of the languages this front end reads."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the version of each package that decides what the trees look like."""

    @abstractmethod
    def parse(self, program: Program) -> Tree:
        """Parse one program, or raise ``ProgramError``."""

    def language_of(self, program: Program) -> Language:
        """Return the program's language, or raise if this front end does not read it."""
        if program.language not in self.languages():
            known = ", ".join(sorted(self.languages()))
            hint = "" if self.name == "tree-sitter" else '; use frontend="tree-sitter"'
            raise ProgramError(
                "unsupported-language",
                f"the {self.name} front end does not read {program.language} (it reads {known})"
                + hint,
            )
        return LANGUAGES[program.language]
