"""The server as a process, and its pages."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.inference.examples import small_model
from tests.server.conftest import (
    GCD,
    PROGRAMS,
    Running,
    connect,
    hear,
    parse_answer,
    program,
    read_figure,
    request,
    serving,
)
from treecaps.search.build import update_index


def test_a_client_may_hang_up_at_any_moment(server: Running) -> None:
    whole = request("explain", json.dumps(program(GCD)).encode())
    for end in (10, len(whole) // 2, len(whole)):
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(whole[:end])
    assert server.post("classify", program(GCD)).status_code == 200
    assert read_figure(server.get("metrics").text, "treecaps_requests_under_way") == 0


def test_a_parser_may_be_killed(strict: Running) -> None:
    assert strict.post("classify", {"code": "int x;"}).status_code == 200
    workers = [
        one
        for one in _below(strict.process.pid)
        if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    for _ in range(3):
        assert strict.post("classify", {"code": "int x;"}).status_code == 200


def _below(process: int) -> list[int]:
    """Return the processes that one has started."""
    return [
        int(child)
        for place in Path(f"/proc/{process}/task").glob("*/children")
        for child in place.read_text().split()
    ]


@pytest.mark.parametrize(
    "path", ["", "healthz", "v1/about", "metrics", "page.js", "docs", "openapi.json"]
)
def test_a_head_is_an_answer_without_its_body(server: Running, path: str) -> None:
    found, whole = httpx.head(f"{server.url}/{path}"), server.get(path)
    assert (found.status_code, found.content) == (200, b"")
    assert found.headers["Content-Type"] == whole.headers["Content-Type"]
    if path != "metrics":
        assert int(found.headers["Content-Length"]) == len(whole.content)
    assert httpx.head(f"{server.url}/v1/classify").status_code == 405


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_accepted_is_finished(model_folder: Path, number: signal.Signals) -> None:
    whole = request("explain", json.dumps(program(GCD)).encode())
    with serving("--model", model_folder) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
        for client in clients:
            client.sendall(whole)
        while read_figure(server.get("metrics").text, "treecaps_requests_under_way") < 5:
            pass
        server.process.send_signal(number)
        for client in clients:
            with client:
                status, found = parse_answer(hear(client))
            assert (status, found["explained"]) == (200, "gcd")
        assert server.process.wait(30) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_server_at_once(
    model_folder: Path, number: signal.Signals
) -> None:
    with serving("--model", model_folder) as server, connect(server) as client:
        client.sendall(request("classify", b"", 10))  # and then nothing, for 30 s
        while read_figure(server.get("metrics").text, "treecaps_requests_under_way") < 1:
            pass
        server.process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(1)
        server.process.send_signal(number)
        assert server.process.wait(5) == 128 + number


def test_a_port_is_for_one_server(server: Running, model_folder: Path) -> None:
    script = "from treecaps.cli.main import run; run()"
    words = ["serve", "--model", str(model_folder), "--port", str(server.port)]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"treecaps: error: cannot serve on port {server.port} of 127.0.0.1: address already in use;"
        " choose another port (--port)\n"
    )


def test_an_index_of_other_trees_is_refused(model_folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "gcd.index"
    replace(small_model(), comments=True).save(tmp_path / "model")
    update_index(PROGRAMS / "gcd", index, model=tmp_path / "model", workers=1)
    script = "from treecaps.cli.main import run; run()"
    words = ["serve", "--model", str(model_folder), "--index", str(index), "--port", "0"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "treecaps: error: the model reads trees by tree-sitter without comments, but that of the"
        " index by tree-sitter with comments: choose another model or index (--model)\n"
    )


def test_figures_for_prometheus(server: Running) -> None:
    server.post("classify", {"code": "int x;"})
    server.get("some/where")
    text = server.get("metrics").text
    assert 'treecaps_requests_total{path="/v1/classify",status="200"}' in text
    assert 'path="other",status="404"' in text
    assert "some/where" not in text
    assert read_figure(text, "treecaps_network_seconds_total") > 0


def test_the_description_needs_nothing_from_outside(server: Running) -> None:
    page = server.get("docs")
    assert "POST /v1/classify" in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy


def test_what_is_not_installed_is_named() -> None:
    script = "import sys; sys.modules['uvicorn'] = None; from treecaps.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", script, "serve"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "treecaps: error: the server needs packages that are not installed:"
        " pip install 'treecaps[serve]'\n"
    )
