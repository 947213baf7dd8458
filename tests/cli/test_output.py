import json
import os
import pty
import sys
from unittest.mock import patch

import pytest

from tests.conftest import read_screen
from treecaps.cli import output

EVIL = "a.py\nb.py: gcd 99%\r\x1b[41m\u2028\x85\u202e\udcff"


def show_progress(title: str, *steps: tuple[float, str]) -> str:
    """Run a progress bar with a terminal as standard error; return what it shows."""
    reader, writer = pty.openpty()
    terminal = {"TERM": "xterm-256color", "COLUMNS": "120"}
    with (
        open(writer, "w", encoding="utf-8") as stream,
        patch.object(sys, "stderr", stream),
        patch.dict(os.environ, terminal),
        output.progress(title) as advance,
    ):
        for share, remark in steps:
            advance(share, remark)
    return read_screen(reader)


def test_a_terminal_gets_progress_on_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_PATIENCE", 0)
    shown = show_progress("parsing [bold]x", (0.4, "7 programs of a/x[/red]\x1b[41m"))
    assert "parsing [bold]x" in shown
    assert "7 programs of a/x[/red]" in shown
    assert "40%" in shown
    assert "\x1b[41m" not in shown


def test_short_work_shows_nothing() -> None:
    assert show_progress("parsing", (0.4, "7 programs"), (0.8, "14 programs")).strip() == ""


def test_a_pipe_gets_no_progress(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_PATIENCE", 0)
    with output.progress("parsing") as advance:
        advance(0.4, "7 programs")
    assert capfd.readouterr() == ("", "")


def is_one_line(text: str) -> bool:
    """Whether text is a line, and nothing in it moves the cursor or turns letters round."""
    return text.endswith("\n") and text[:-1].isprintable()


def test_one_call_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    output.say(EVIL)
    assert is_one_line(capfd.readouterr().out)
    output.note(EVIL)
    assert is_one_line(capfd.readouterr().err)
    output.fail(EVIL, EVIL)
    assert is_one_line(capfd.readouterr().err)
    output.say_lines([EVIL, "b"])
    first, second = capfd.readouterr().out.splitlines(keepends=True)
    assert is_one_line(first)
    assert second == "b\n"


@pytest.mark.parametrize("name", [EVIL, "a" + " b" * 1000])
def test_one_row_is_one_line(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    table = output.new_table(name, "figure")
    output.add_row(table, name, name)
    output.say_table(table)
    lines = capfd.readouterr().out.splitlines(keepends=True)
    assert all(map(is_one_line, lines))
    assert len(lines) == 5  # the row, the head, the line between them, and one above and below


def test_progress_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_PATIENCE", 0)
    shown = show_progress("parsing a\nb", (0.4, "c\nd"))
    assert "parsing a\\nb" in shown
    assert "c\\nd" in shown


def test_json_has_no_lone_surrogates(capfd: pytest.CaptureFixture[str]) -> None:
    value = {"\udce9": ["a\udce9", {"b": ("\ud83d", 1)}], "c": "größer \u2028\n\N{SNAIL}"}
    output.say_json(value)
    shown = capfd.readouterr().out
    assert shown.isascii()
    assert is_one_line(shown)
    assert json.loads(shown) == {
        "\ufffd": ["a\ufffd", {"b": ["\ufffd", 1]}],
        "c": "größer \u2028\n\N{SNAIL}",
    }


def test_a_table_says_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    table = output.new_table("name")
    output.add_row(table, "first")
    for more, said in ((-1, ""), (0, ""), (1234, "... and 1,234 more names; --json has them all")):
        output.say_table(table, more, "names")
        *_, last = capsys.readouterr().out.splitlines()
        assert last == said
