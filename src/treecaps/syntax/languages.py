"""The languages treecaps knows: their names, file endings and grammars.

Adding one takes a grammar wheel and one entry::

    from treecaps.syntax.languages import Language, register

    register(Language("lua", endings=(".lua",), grammar="tree-sitter-lua"))
"""

import os
import re
from dataclasses import KW_ONLY, dataclass

from treecaps.errors import ProgramError, UsageError
from treecaps.text import did_you_mean


@dataclass(frozen=True)
class Language:
    """A programming language.

    Args:
        name: The one name used everywhere (``c_sharp``); other spellings are aliases.
        endings: File name endings, each with its dot, in lower case.
        grammar: The package that holds the tree-sitter grammar.
        entry: The function of that package's module that returns the grammar.
        aliases: Other names people use.
        srcml: What srcML calls the language, where srcML knows it.
    """

    name: str
    _: KW_ONLY
    endings: tuple[str, ...]
    grammar: str
    entry: str = "language"
    aliases: tuple[str, ...] = ()
    srcml: str | None = None

    @property
    def grammar_module(self) -> str:
        """The module that the grammar package installs."""
        return self.grammar.replace("-", "_")


LANGUAGES: dict[str, Language] = {}
_BY_ALIAS: dict[str, str] = {}
_BY_ENDING: dict[str, str] = {}
_INTERPRETERS = {
    "bun": "typescript",
    "deno": "typescript",
    "jruby": "ruby",
    "nodejs": "javascript",
    "pypy": "python",
    "rust-script": "rust",
    "ts-node": "typescript",
}
"""Programs that run scripts and are not called as the language."""


def register(language: Language) -> None:
    """Make a language known by its name, its aliases and its file endings."""
    LANGUAGES[language.name] = language
    for alias in (language.name, *language.aliases):
        _BY_ALIAS[_plain(alias)] = language.name
    for ending in language.endings:
        _BY_ENDING[ending] = language.name


def language_named(name: str) -> Language:
    """Return the language that people call ``name`` (``c#``, ``csharp``, ``C_Sharp``)."""
    found = _BY_ALIAS.get(_plain(name))
    if found is None:
        names = [alias for one in LANGUAGES.values() for alias in (one.name, *one.aliases)]
        known = f"known: {', '.join(sorted(LANGUAGES))}"
        raise UsageError(f"unknown language {name!r}; {did_you_mean(name, names) or known}")
    return LANGUAGES[found]


def language_of_file(name: str) -> Language:
    """Return the language that a file's name gives away."""
    ending = _ending(name)
    found = _BY_ENDING.get(ending)
    if found is None:
        shown = f"ending {ending!r}" if ending else "no ending"
        raise ProgramError(
            "unknown-language", f"unknown language ({shown}); name it with language=NAME"
        )
    return LANGUAGES[found]


def has_known_ending(name: str) -> bool:
    """Whether a file's name ends as a program's in a known language."""
    return _ending(name) in _BY_ENDING


def needs_contents(name: str) -> bool:
    """Whether only a file's contents tell its language: its name has no ending, or ``.h``."""
    return _ending(name) in ("", ".h")


def language_of_script(head: bytes) -> Language | None:
    """Return the language of a program that names its interpreter, as in ``#!/bin/env ruby``."""
    if not head.startswith(b"#!"):
        return None
    words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    names = (os.path.basename(word) for word in words if word[0] != "-" and "=" not in word)
    name = next((name for name in names if name != "env"), "")
    name = re.sub(r"[\d.]+$", "", name)  # python3.12
    found = _BY_ALIAS.get(_plain(_INTERPRETERS.get(name, name)))
    return LANGUAGES[found] if found else None


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


for _language in (
    Language("c", endings=(".c", ".h"), grammar="tree-sitter-c", srcml="c"),
    Language(
        "cpp",
        endings=(".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++"),
        grammar="tree-sitter-cpp",
        aliases=("c++", "cxx", "cplusplus"),
        srcml="c_plus_plus",
    ),
    Language(
        "c_sharp",
        endings=(".cs", ".csx"),
        grammar="tree-sitter-c-sharp",
        aliases=("c#", "csharp", "cs"),
        srcml="c_sharp",
    ),
    Language("go", endings=(".go",), grammar="tree-sitter-go", aliases=("golang",)),
    Language("java", endings=(".java",), grammar="tree-sitter-java", srcml="java"),
    Language(
        "javascript",
        endings=(".js", ".mjs", ".cjs", ".jsx"),
        grammar="tree-sitter-javascript",
        aliases=("js", "jsx", "ecmascript", "node"),
    ),
    Language("kotlin", endings=(".kt", ".kts"), grammar="tree-sitter-kotlin", aliases=("kt",)),
    Language("php", endings=(".php",), grammar="tree-sitter-php", entry="language_php"),
    Language(
        "python",
        endings=(".py", ".pyw", ".pyi"),
        grammar="tree-sitter-python",
        aliases=("py", "python3"),
    ),
    Language("ruby", endings=(".rb",), grammar="tree-sitter-ruby", aliases=("rb",)),
    Language("rust", endings=(".rs",), grammar="tree-sitter-rust", aliases=("rs",)),
    Language("swift", endings=(".swift",), grammar="tree-sitter-swift"),
    Language(
        "typescript",
        endings=(".ts", ".mts", ".cts"),
        grammar="tree-sitter-typescript",
        entry="language_typescript",
        aliases=("ts",),
    ),
    Language("tsx", endings=(".tsx",), grammar="tree-sitter-typescript", entry="language_tsx"),
):
    register(_language)
