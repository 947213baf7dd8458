"""What the tests of the command line share."""

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from treecaps.cli.main import main

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_here(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in this process: for commands whose packages take seconds to load."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["treecaps", *map(str, words)])
        logger = logging.getLogger("treecaps")
        handlers = logger.handlers[:]
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        logger.handlers[:] = handlers
        shown = capfd.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        return subprocess.CompletedProcess(words, status, shown.out, shown.err)

    return run
