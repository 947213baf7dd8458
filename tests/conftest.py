"""What all tests share."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.postgres import Postgres

# How fast a test is depends on what else the machine does, and is not what it tests.
settings.register_profile("treecaps", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("treecaps")

# Two threads on a busy machine wait for each other most of the time. Commands that tests start
# inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts jobs in the background with interrupts ignored, and commands that tests start and
# interrupt would ignore them too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PYTHON = os.environ.get("TREECAPS_PYTHON", sys.executable)
"""Runs commands and servers; another one has another installation of the package."""
ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(path for path in (ROOT / "examples" / "programs").rglob("*") if path.is_file())


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test's corpora apart, and away from the user's."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TREECAPS_CACHE", str(cache))
    return cache


@pytest.fixture
def shared() -> Path:
    """The data sets beside the project."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the data sets are not beside the project")
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """A database server with pgvector, which tests may kill and start again."""
    from tests.postgres import running

    # A killed process loses nothing that the system has; only a power cut would.
    with running("-c", "fsync=off") as server:
        yield server


@pytest.fixture(scope="session")
def team(postgres: "Postgres") -> str:
    """A database whose roles are those of the documentation."""
    from tests.postgres import create_team

    return create_team(postgres)


def read_screen(terminal: int) -> str:
    """Read all that was shown on a terminal whose other side is closed, or will be."""
    shown = b""
    # A terminal says by an error that the other side has gone.
    with open(terminal, "rb", buffering=0) as screen, suppress(OSError):
        while block := screen.read(65536):
            shown += block
    return shown.decode()


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything: become somebody else for a moment."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
