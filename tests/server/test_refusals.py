"""What the server refuses, and those whom it sends away."""

import asyncio
import socket
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.conftest import ROOT
from tests.server.conftest import (
    GCD,
    Running,
    connect,
    hear,
    parse_answer,
    program,
    read_figure,
    request,
    serving,
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"code": "x"', "the body is no JSON"),
        (b"\xff\xfe", "the body is no JSON"),
        (b"\xc3\x28", "the body is no JSON: it is not UTF-8"),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b'{"code": "x", "top": %b}' % (b"1" * 5000), "the body holds a number with too many"),
        (b'{"code": "a\\u0000b"}', "code: the code holds a NUL character"),
        (b'{"code": "x", "language": "cobol"}', "language: unknown language 'cobol'; known: c, "),
        (b'{"code": "x", "language": ""}', "language: unknown language ''; known: c, "),
        (b'{"code": "x", "top": 0}', "top: input should be greater than or equal to 1"),
        (b'{"kode": "x"}', "code: field required; kode: extra inputs are not permitted"),
        (b'{"code": "x", "a\\nb": 1}', r"a\nb: extra inputs are not permitted"),
        (b'{"code": "x", "\\ud800": 1}', "the body: input should be a valid string"),
        (b"[]", "the body: "),
        (b"", "the body: field required"),
    ],
)
def test_what_is_wrong_is_said(server: Running, body: bytes, said: str) -> None:
    found = httpx.post(
        f"{server.url}/v1/classify", content=body, headers={"Content-Type": "application/json"}
    )
    assert found.status_code == 422
    assert found.json()["error"]["code"] == "invalid"
    assert said in found.json()["error"]["message"]
    assert "\n" not in found.json()["error"]["message"]


@pytest.mark.parametrize("field", ["code", "filename", "language", "label", "method", "lines"])
@pytest.mark.parametrize("surrogate", [b"\\ud800", b"\xed\xa0\x80"])
def test_what_is_not_unicode_is_refused(server: Running, field: str, surrogate: bytes) -> None:
    paths = {"label": ["explain"], "method": ["explain"], "lines": ["search"]}
    for path in paths.get(field, ["classify", "embed", "explain", "search"]):
        found = httpx.post(
            f"{server.url}/v1/{path}",
            content=b'{"code": "x", "%b": "a%b"}' % (field.encode(), surrogate),
            headers={"Content-Type": "application/json"},
        )
        assert found.status_code == 422
        assert found.json()["error"] == {
            "code": "invalid",
            "message": f"{field}: a lone surrogate is no character: send Unicode text",
        }


def test_all_errors_have_one_form(server: Running) -> None:
    for found, status, code in (
        (server.get("nothing"), 404, "not-found"),
        (server.get("v1/classify"), 405, "method"),
        (server.post("explain", {"code": "x", "label": "none"}), 422, "usage"),
        (httpx.get(server.url, headers={"Host": "evil.example"}), 421, "host"),
    ):
        assert found.status_code == status
        assert found.json()["error"].keys() == {"code", "message"}
        assert found.json()["error"]["code"] == code


def test_limits_are_refused_with_their_names(strict: Running) -> None:
    for body, status, code, limit in (
        ({"code": "x" * 20_000}, 413, "too-large", "--max-mb"),
        (program(GCD), 413, "too-many-nodes", "--max-nodes"),
    ):
        found = strict.post("classify", body)
        assert (found.status_code, found.json()["error"]["code"]) == (status, code)
        assert limit in found.json()["error"]["message"]
    found = strict.post("search", {"code": "x"})
    assert (found.status_code, found.json()["error"]["code"]) == (404, "no-index")
    assert strict.post("classify", {"code": "int x;"}).status_code == 200


def test_100_mb_are_refused_and_not_kept(server: Running) -> None:
    before = _memory(server)
    for length in (100_000_000, None):
        head = request("classify", b"", length)
        if length is None:  # in pieces, of a length that nobody tells
            head = head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(head)
            piece = b"x" * 1_000_000
            for _ in range(100):
                client.sendall(piece if length else b"f4240\r\n" + piece + b"\r\n")
            if length is None:
                client.sendall(b"0\r\n\r\n")
            status, found = parse_answer(hear(client))
        assert (status, found["error"]["code"]) == (413, "too-large")
        assert "larger than the 1 MB" in found["error"]["message"]
    assert _memory(server) - before < 30_000_000
    assert server.get("healthz").json() == {"status": "ok"}


def _memory(server: Running) -> float:
    return read_figure(server.get("metrics").text, "process_resident_memory_bytes")


def test_more_than_may_wait_are_sent_away(strict: Running) -> None:
    body = b'{"code": "int x;"}'
    with socket.create_connection(("127.0.0.1", strict.port)) as slow:
        slow.sendall(request("classify", body)[:-4])
        while read_figure(strict.get("metrics").text, "treecaps_requests_under_way") == 0:
            pass
        found = strict.post("classify", {"code": "int x;"})
        assert (found.status_code, found.json()["error"]["code"]) == (429, "busy")
        assert found.headers["Retry-After"] == "1"
        assert "--waiting" in found.json()["error"]["message"]
        # Who never finishes asking does not keep the place for ever.
        status, said = parse_answer(hear(slow))
        assert (status, said["error"]["code"]) == (408, "timeout")
    assert strict.post("classify", {"code": "int x;"}).status_code == 200


def test_who_never_finishes_a_head_is_sent_away(strict: Running) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    silent, slow, idle = (connect(strict) for _ in range(3))
    begun = time.monotonic()
    with silent, slow, idle:
        slow.sendall(head)
        idle.sendall(head + b"\r\n")
        heard = b""
        while not heard.endswith(b"}"):
            heard += idle.recv(1000)
        idle.sendall(head)
        for _ in range(5):  # who sends something now and then does not get longer
            time.sleep(0.3)
            slow.sendall(b"X: x\r\n")
            idle.sendall(b"X: x\r\n")
        for client in slow, idle:
            status, said = parse_answer(hear(client))
            assert (status, said["error"]["code"]) == (408, "timeout")
        assert hear(silent) == b""
    assert 2 < time.monotonic() - begun < 10


def test_a_body_that_nobody_reads_does_not_hold_a_connection(strict: Running) -> None:
    begun = time.monotonic()
    with connect(strict) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n")
        client.settimeout(0.2)
        heard = None
        while heard != b"" and time.monotonic() < begun + 10:
            client.sendall(b"x")
            with suppress(TimeoutError):
                heard = client.recv(1000)
    assert heard == b""


def test_400_slow_heads_are_sent_away(strict: Running) -> None:
    async def wait() -> list[bytes]:
        clients = [await asyncio.open_connection("127.0.0.1", strict.port) for _ in range(400)]
        for _, writer in clients:
            writer.write(b"GET /")
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(reader.read() for reader, _ in clients))
        for _, writer in clients:
            writer.close()
        return found

    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in asyncio.run(wait()))
    assert strict.get("healthz").status_code == 200


@pytest.mark.parametrize("size", [20_000, 200_000])
@pytest.mark.parametrize("end", ["\r\n\r\n", ""])
def test_a_head_that_is_too_long_is_refused(server: Running, size: int, end: str) -> None:
    head = f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {'x' * size}{end}"
    with connect(server) as client:
        client.sendall(head.encode())
        status, said = parse_answer(hear(client))
    assert (status, said["error"]["code"]) == (431, "too-large")
    assert "16,384 bytes" in said["error"]["message"]


def test_what_is_no_http_is_refused_in_the_one_form(server: Running) -> None:
    with connect(server) as client:
        client.sendall(b"hello\r\n\r\n")
        status, said = parse_answer(hear(client))
    assert (status, said["error"]["code"]) == (400, "invalid")


def test_what_takes_too_long_is_given_up(model_folder: Path) -> None:
    hostile = (ROOT / "tests" / "hostile" / "arrows.java").read_text()
    with serving("--model", model_folder, "--seconds", "0.5") as server:
        found = server.post("classify", {"code": hostile, "language": "java"})
        assert (found.status_code, found.json()["error"]["code"]) == (503, "timeout")
        assert "--seconds" in found.json()["error"]["message"]
        assert server.get("healthz").status_code == 200
