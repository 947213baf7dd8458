"""Requests and answers, as the OpenAPI description shows them."""

from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from treecaps.explanation.attribution import Method
from treecaps.search.query import LINES, Lines
from treecaps.server.parsing import Source
from treecaps.syntax.languages import LANGUAGES, language_named


def _check_code(code: str) -> str:
    if "\0" in code:
        raise ValueError("the code holds a NUL character, so it is no source code")
    return code


def _check_language(name: str | None) -> str | None:
    return None if name is None else language_named(name).name


def _to_whole(value: Any) -> Any:
    """Make a whole number of one that is written with a fraction: to JSON, 3.0 is 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_NAMES = sorted({one for known in LANGUAGES.values() for one in (known.name, *known.aliases)})
_Code = Annotated[
    str,
    AfterValidator(_check_code),
    WithJsonSchema({"type": "string", "pattern": "^[^\\u0000]*$"}),
]
_Language = Annotated[
    str | None,
    AfterValidator(_check_language),
    WithJsonSchema({"anyOf": [{"type": "string", "enum": _NAMES}, {"type": "null"}]}),
]
_Top = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_to_whole)]


class LanguageRequest(BaseModel):
    """A program."""

    model_config = ConfigDict(extra="forbid", strict=True)

    code: Annotated[_Code, Field(description="The source code.")]
    filename: Annotated[
        str | None,
        Field(max_length=1000, description="Its name, which may tell the language."),
    ] = None

    @field_validator("*", mode="before")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        """Refuse what JSON can spell and no encoder takes, before anything else sees it."""
        try:
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError:
            raise ValueError("a lone surrogate is no character: send Unicode text") from None
        return value

    def source(self) -> Source:
        """Return the program."""
        values = {name: value for name, value in self if name in Source._fields}
        return Source(**values)


class _Request(LanguageRequest):
    language: Annotated[
        _Language, Field(description="Its language; by default told from the name, or guessed.")
    ] = None


class ClassifyRequest(_Request):
    """A program whose class is asked for."""

    top: Annotated[_Top, Field(description="How many classes to name, best first.")] = 3
    functions: Annotated[
        bool, Field(description="Whether to answer for each function by itself, with a list.")
    ] = False


class EmbedRequest(_Request):
    """A program whose vector is asked for."""

    functions: Annotated[
        bool, Field(description="Whether to answer for each function by itself, with a list.")
    ] = False


class ExplainRequest(_Request):
    """A program whose class is to be explained."""

    label: Annotated[
        str | None, Field(description="The class to explain; the best guess by default.")
    ] = None
    method: Annotated[
        Method | None,
        Field(description="How; by default gradients, and routing for more than 2,000 nodes."),
    ] = None


class SearchRequest(_Request):
    """A program whose like is searched for, by lines or by functions, not both."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "required": ["lines", "functions"],
                "properties": {"lines": {"type": "string"}, "functions": {"const": True}},
            }
        }
    )

    top: Annotated[_Top, Field(description="How many matches, best first.")] = 10
    functions: Annotated[
        bool, Field(description="Whether to search for each function by itself, with a list.")
    ] = False
    lines: Annotated[
        str | None,
        Field(
            pattern=f"^{LINES}$",
            description="Which of its lines to search for, such as 10-40; all by default.",
        ),
    ] = None
    with_code: Annotated[
        bool, Field(description="Whether to give the code of matches, as far as it is unchanged.")
    ] = False

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        if self.lines and self.functions:
            raise ValueError("lines and functions exclude each other: leave one out")
        return self

    def chosen(self) -> Lines | None:
        """Return the lines to search for, if not all."""
        return Lines.parse(self.lines) if self.lines else None


class Candidate(BaseModel):
    """A class that a program may belong to."""

    label: str
    probability: float
    length: float


class Part(BaseModel):
    """A function that is of another class than its program."""

    function: str
    line: int
    label: str
    probability: float


class ClassificationAnswer(BaseModel):
    """What the model says of a program."""

    id: str
    label: str = Field(description="The class, or unknown where none is present enough.")
    known: bool
    guess: str | None = Field(description="The best class; null where nothing can be told.")
    probability: float
    length: float
    top: list[Candidate]
    function: str | None = None
    line: int | None = None
    reason: str | None = Field(None, description="Why nothing can be told, if nothing can.")
    title: str | None = Field(None, description="What the best class is in words, if it is known.")
    parts: list[Part] | None = Field(
        None, description="Functions of other classes, if the class of the program is doubtful."
    )


class EmbeddingAnswer(BaseModel):
    """A program as a vector of length 1."""

    id: str
    vector: list[float]
    function: str | None = None
    line: int | None = None


class Node(BaseModel):
    """A node of the tree, and what it adds to the class."""

    node: int
    parent: int = Field(description="The nearest node above that is listed; -1 for the root.")
    kind: str
    line: int
    start: int = Field(description="Its first byte, in the code as UTF-8.")
    end: int
    contribution: float
    token: float = Field(description="The same with all of it on the leaves.")


class ExplanationAnswer(ClassificationAnswer):
    """What of a program leads to its class."""

    explained: str
    method: str
    lines: list[float] = Field(description="What each line adds.")
    nodes: list[Node] = Field(description="The nodes that add most.")
    nodes_in_all: int
    routes: list[dict[str, Any]]


class Match(BaseModel):
    """Something in the index that is like a program."""

    path: str
    language: str
    similarity: float
    probability: float | None = Field(
        None, description="How probable it is that both solve the same problem, if that is known."
    )
    function: str | None = None
    line: int | None = None
    last_line: int | None = None
    code: str | None = Field(None, description="Its text; null if its file is no longer the same.")


class SearchAnswer(BaseModel):
    """What is most like a program."""

    id: str
    matches: list[Match]
    function: str | None = None
    line: int | None = None


class LanguageAnswer(BaseModel):
    """The language of a program."""

    language: str


class Health(BaseModel):
    """That the server serves."""

    status: str


class Sample(BaseModel):
    """A program to try."""

    name: str
    language: str


class About(BaseModel):
    """What a server is made of."""

    treecaps: str
    model: str
    labels: list[str]
    languages: list[str]
    index: dict[str, int] | None = Field(description="How many files and entries the index has.")
    limits: dict[str, float]
    samples: list[Sample]


class Problem(BaseModel):
    """What went wrong."""

    code: str = Field(description="One word for programs.")
    message: str = Field(description="One line for people.")


class ErrorAnswer(BaseModel):
    """The one form of all errors."""

    error: Problem
