import json
import os
import pty
import sys
from unittest.mock import patch

import pytest

from tests.conftest import read_screen
from treecaps.cli import output


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


def test_json_has_no_lone_surrogates(capfd: pytest.CaptureFixture[str]) -> None:
    value = {"\udce9": ["a\udce9", {"b": ("\ud83d", 1)}], "c": "größer \u2028\n\N{SNAIL}"}
    output.say_json(value)
    shown = capfd.readouterr().out
    assert shown.isascii()
    assert shown.count("\n") == 1
    assert json.loads(shown) == {
        "\ufffd": ["a\ufffd", {"b": ["\ufffd", 1]}],
        "c": "größer \u2028\n\N{SNAIL}",
    }
