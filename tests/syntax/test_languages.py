from collections.abc import Iterator
from unittest.mock import patch

import pytest

from treecaps.errors import ProgramError, UsageError
from treecaps.syntax import languages
from treecaps.syntax.languages import Language, language_named, language_of_file, register
from treecaps.syntax.parse import parse_code


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("c#", "c_sharp"),
        ("C#", "c_sharp"),
        ("csharp", "c_sharp"),
        ("c_sharp", "c_sharp"),
        ("C++", "cpp"),
        ("cpp", "cpp"),
        ("C", "c"),
        ("JavaScript", "javascript"),
        ("js", "javascript"),
        ("TypeScript", "typescript"),
        ("golang", "go"),
        (" py ", "python"),
        ("kt", "kotlin"),
    ],
)
def test_languages_answer_to_the_names_people_use(spelling: str, name: str) -> None:
    assert language_named(spelling).name == name


def test_a_name_nobody_uses_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown language ''"):
        language_named("")


@pytest.mark.parametrize(("file", "name"), [("a/b.rs", "rust"), ("x.test.TS", "typescript")])
def test_file_names_tell_the_language(file: str, name: str) -> None:
    assert language_of_file(file).name == name


@pytest.fixture
def restored() -> Iterator[None]:
    with (
        patch.dict(languages.LANGUAGES),
        patch.dict(languages._BY_ALIAS),
        patch.dict(languages._BY_ENDING),
    ):
        yield


@pytest.mark.usefixtures("restored")
def test_a_language_is_added_in_a_few_lines() -> None:
    register(
        Language(
            "php-template",
            endings=(".phpt",),
            grammar="tree-sitter-php",
            entry="language_php_only",
        )
    )
    assert language_of_file("a.phpt").name == "php-template"
    tree = parse_code("echo 1;", "PHP Template")
    assert (tree.language, "echo_statement" in tree.kind_names()) == ("php-template", True)


@pytest.mark.usefixtures("restored")
def test_a_wrong_entry_is_said() -> None:
    register(Language("php2", endings=(".php2",), grammar="tree-sitter-php"))
    with pytest.raises(UsageError, match="tree-sitter-php has no 'language'"):
        parse_code("x", "php2")


@pytest.mark.usefixtures("restored")
def test_a_missing_grammar_says_how_to_get_it() -> None:
    register(Language("lua", endings=(".lua",), grammar="tree-sitter-lua-of-nowhere"))
    with pytest.raises(ProgramError, match="pip install tree-sitter-lua-of-nowhere"):
        parse_code("x = 1", "lua")
