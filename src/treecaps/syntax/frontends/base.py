"""What every front end is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from treecaps.errors import ProgramError
from treecaps.syntax.languages import LANGUAGES, Language
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree


class Frontend(ABC):
    """A parser that turns programs into trees.

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
            raise ProgramError(
                "unsupported-language",
                f"the {self.name} front end does not read {program.language} (it reads {known});"
                " use --frontend tree-sitter",
            )
        return LANGUAGES[program.language]
