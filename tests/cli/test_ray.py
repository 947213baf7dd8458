import socket
import threading
import time

import pytest

from tests.cli.conftest import Run
from tests.conftest import EXAMPLES
from treecaps import RayCluster, UsageError


def test_an_address_where_no_cluster_answers_is_told_within_seconds(run_here: Run) -> None:
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answers = threading.Thread(target=_refuse, args=(server,))
        answers.start()
        done = run_here("classify", EXAMPLES[0], "--ray", f"127.0.0.1:{port}")
        answers.join()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"treecaps: error: no Ray cluster answers at 127.0.0.1:{port}: something else answers"
        " there; start one with: ray start --head (--ray local)\n"
    )
    done = run_here("classify", EXAMPLES[0], "--ray", f"127.0.0.1:{port}")
    assert "connection refused; start one with: ray start --head" in done.stderr
    assert time.monotonic() - begun < 20


def _refuse(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_what_is_no_address_is_told_at_once(run_here: Run) -> None:
    done = run_here("classify", "--ray", "src", EXAMPLES[0])
    assert done.stderr == (
        "treecaps: error: src is no address of a Ray cluster; give HOST:PORT, auto or local"
        " (--ray local)\n"
    )
    done = run_here("classify", EXAMPLES[0], "--workers", "2", "--ray", "auto")
    assert "leave out their number (--workers)" in done.stderr
    with pytest.raises(UsageError, match="is no address"):
        RayCluster("ray://host:1")
