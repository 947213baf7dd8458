"""Real servers on loopback."""

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.conftest import PYTHON, ROOT
from tests.inference.examples import save_small_model
from treecaps.search.build import update_index

PROGRAMS = ROOT / "examples" / "programs"
GCD = PROGRAMS / "gcd" / "gcd.c"


@dataclass
class Running:
    """A server, and where it answers."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def post(self, path: str, body: Any) -> httpx.Response:
        return httpx.post(f"{self.url}/v1/{path}", json=body, timeout=60)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}/{path}", timeout=60)

    async def ask(self, path: str, body: Any) -> tuple[int, Any]:
        """Ask over a connection of its own, for those who ask many at once."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request(path, json.dumps(body).encode()))
            return parse_answer(await reader.read())
        finally:
            writer.close()
            await writer.wait_closed()


def request(path: str, body: bytes, length: int | None = None) -> bytes:
    """Return a request as it is sent."""
    return (
        f"POST /v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    ).encode() + body


def parse_answer(answer: bytes) -> tuple[int, Any]:
    """Return the status and the values of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def program(path: Path) -> dict[str, Any]:
    return {"code": path.read_text(), "filename": str(path)}


def same(one: Any, other: Any) -> bool:
    """Whether answers are the same but for the last digits, in which sums differ by their order."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return bool(np.isclose(one, other, rtol=1e-4, atol=2e-6))
    return bool(one == other)


def connect(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=30)


def hear(client: socket.socket) -> bytes:
    """Return all that is answered on a connection."""
    with client.makefile("rb") as answers:
        return answers.read()


def read_figure(metrics: str, name: str) -> float:
    (line,) = (line for line in metrics.splitlines() if line.startswith(f"{name} "))
    return float(line.split()[1])


@contextmanager
def serving(*words: str | Path) -> Iterator[Running]:
    """Start a server on a free port, and end it."""
    script = "from treecaps.cli.main import run; run()"
    command = [PYTHON, "-c", script, "serve", "--port", "0", *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert " on http://" in said, process.stderr and process.stderr.read()
            yield Running(process, said.split(" on ")[1].split()[0])
        finally:
            process.kill()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def server(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the small model and an index of some examples."""
    index = tmp_path_factory.mktemp("index") / "gcd.index"
    update_index(PROGRAMS / "gcd", index, model=model_folder, workers=1)
    with serving("--model", model_folder, "--index", index) as running:
        yield running


@pytest.fixture(scope="module")
def strict(model_folder: Path) -> Iterator[Running]:
    words = ("--max-mb", "0.01", "--max-nodes", "50", "--waiting", "1", "--seconds", "3")
    with serving("--model", model_folder, *words) as running:
        yield running
