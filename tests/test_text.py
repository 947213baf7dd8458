import os

import pytest

from treecaps.text import replace_surrogates, to_one_line


def test_names_that_are_not_utf_8_can_be_encoded() -> None:
    name = os.fsdecode(b"caf\xe9.py")
    assert replace_surrogates(name).encode() == "caf\N{REPLACEMENT CHARACTER}.py".encode()


def test_text_that_is_fine_stays() -> None:
    assert replace_surrogates("größer \N{SNOWMAN}\n") == "größer \N{SNOWMAN}\n"
    assert to_one_line("größer \N{SNOWMAN}") == "größer \N{SNOWMAN}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("a\r\x1b[31mb", "a\\r\\x1b[31mb"),
        ("a\u2028b\x85c\u202ed", "a\\u2028b\\x85c\\u202ed"),
        ("a\udce9b", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_all_text_fits_on_one_line(text: str, shown: str) -> None:
    assert to_one_line(text) == shown
    assert len(to_one_line(text).splitlines()) == 1
