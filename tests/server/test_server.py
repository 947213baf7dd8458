import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.conftest import EXAMPLES, ROOT
from tests.inference.examples import small_model
from tests.server.conftest import PROGRAMS, Running, parse_answer, request, serving
from treecaps.explanation.explanation import explain
from treecaps.inference.classify import answer, answer_all
from treecaps.inference.embed import Embedder
from treecaps.inference.units import CodeUnit
from treecaps.search.build import update_index
from treecaps.search.index import Match
from treecaps.syntax.parse import parse_file

GCD = PROGRAMS / "gcd" / "gcd.c"


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


def test_answers_are_those_of_the_command_line(server: Running) -> None:
    model, tree, body = small_model(), parse_file(GCD), program(GCD)
    expected = answer(model, tree, str(GCD), 4).to_dict()
    assert same(server.post("classify", {**body, "top": 4}).json(), expected)
    vector = Embedder(model).embed_trees([tree])[0]
    found = server.post("embed", body).json()
    assert found.keys() == {"id", "vector"}
    np.testing.assert_allclose(found["vector"], vector, atol=2e-6)
    explained = explain(model, tree, label="stack").to_dict()
    found = server.post("explain", {**body, "label": "stack"}).json()
    assert same(found, {**explained, "id": str(GCD)})


def test_functions_get_answers_by_themselves(server: Running) -> None:
    found = server.post("classify", {**program(GCD), "functions": True}).json()
    assert [(one["function"], one["line"]) for one in found] == [("gcd", 5), ("main", 15)]
    found = server.post("embed", {**program(GCD), "functions": True}).json()
    assert [one["function"] for one in found] == ["gcd", "main"]
    assert server.post("classify", {"code": "x = 1", "functions": True}).json() == []


def test_search_finds_what_was_indexed(server: Running) -> None:
    code = GCD.read_text().split("int main")[0]
    found = server.post("search", {"code": code, "language": "c", "top": 3, "with_code": True})
    assert found.json()["id"] == "<code>"
    first, *others = found.json()["matches"]
    assert len(others) == 2
    assert (first["path"], first["function"], first["language"]) == ("gcd.c", "gcd", "c")
    assert first["code"].startswith("static unsigned long gcd(")
    plain = server.post("search", {"code": code, "language": "c", "top": 1}).json()
    assert plain["matches"][0].keys() <= {*Match.__dataclass_fields__}
    each = server.post("search", {**program(GCD), "functions": True, "top": 2}).json()
    assert [(one["function"], len(one["matches"])) for one in each] == [("gcd", 2), ("main", 2)]
    assert each[1]["matches"][0]["function"] == "main"


def test_lines_of_a_program_are_searched_for(server: Running) -> None:
    body = {**program(GCD), "top": 1}
    for lines, function in ("5-13", "gcd"), ("15-26", "main"):
        (match,) = server.post("search", {**body, "lines": lines}).json()["matches"]
        assert (match["function"], match["similarity"]) == (function, 1.0)
    for wrong, status, said in (
        ({"lines": "5 to 13"}, 422, "lines: string should match pattern"),
        ({"lines": "5-13", "functions": True}, 422, "the body: lines and functions exclude each"),
        ({"lines": "900"}, 404, "there are no lines 900-900: the program has lines 1-26"),
    ):
        refused = server.post("search", {**body, **wrong})
        assert refused.status_code == status
        assert refused.json()["error"]["message"].startswith(said)


def test_an_index_is_followed(model_folder: Path, tmp_path: Path) -> None:
    folder, index = tmp_path / "programs", tmp_path / "index"
    shutil.copytree(PROGRAMS / "gcd", folder)

    def bring_up_to_date() -> None:
        update_index(folder, index, model=model_folder, workers=1)

    bring_up_to_date()
    with serving("--model", model_folder, "--index", index) as running:

        def found() -> set[str]:
            answer = running.post("search", {**program(GCD), "top": 100}).json()
            return {match["path"] for match in answer["matches"]}

        def wait_for(paths: set[str]) -> None:
            until = time.monotonic() + 60
            while found() != paths:
                assert time.monotonic() < until, found()
                time.sleep(0.1)
            assert running.get("v1/about").json()["index"]["files"] == len(paths)

        every = {path.name for path in folder.iterdir()}
        assert found() == every
        (folder / "gcd.c").rename(folder / "divisor.c")
        bring_up_to_date()
        wait_for(every - {"gcd.c"} | {"divisor.c"})
        shutil.rmtree(folder)
        folder.mkdir()
        bring_up_to_date()
        wait_for(set())
        shutil.copy(GCD, folder)
        bring_up_to_date()
        wait_for({"gcd.c"})
        # What is no index any more does not take away what was read.
        index.write_bytes(b"no index")
        assert running.process.stderr is not None
        assert running.process.stderr.readline() == (
            f"treecaps: {index} is no index; make one: treecaps index DIR --out INDEX;"
            " searching it as it was\n"
        )
        assert found() == {"gcd.c"}


def test_many_at_once_get_the_answers_of_one_by_one(server: Running) -> None:
    model = small_model()
    tops = [place % 5 for place in range(len(EXAMPLES))]  # 0: a vector

    async def ask_all() -> list[tuple[int, Any]]:
        asked = [
            server.ask("classify", {**program(path), "top": top})
            if top
            else server.ask("embed", program(path))
            for top, path in zip(tops, EXAMPLES, strict=True)
        ]
        return await asyncio.gather(*asked)

    before = server.get("metrics").text
    found = asyncio.run(ask_all())
    for top, path, (status, one) in zip(tops, EXAMPLES, found, strict=True):
        assert status == 200
        tree = parse_file(path)
        if top:
            assert same(one, answer(model, tree, str(path), top).to_dict())
        else:
            vector = Embedder(model).embed_trees([tree])[0]
            np.testing.assert_allclose(one["vector"], vector, atol=2e-6)
    # They were looked at together: fewer looks than programs.
    looks, programs = (
        _figure(server.get("metrics").text, name) - _figure(before, name)
        for name in ("treecaps_batch_programs_count", "treecaps_batch_programs_sum")
    )
    assert programs == len(EXAMPLES)
    assert looks < programs / 2


def test_one_look_at_many_is_a_look_at_each() -> None:
    model = small_model()
    pieces = [CodeUnit(str(path), parse_file(path)) for path in EXAMPLES]
    together = answer_all(model, pieces)
    for piece, one in zip(pieces, together, strict=True):
        assert same(one.to_dict(), answer(model, piece.tree, piece.id).to_dict())


def _hear(client: socket.socket) -> bytes:
    """Return all that is answered on a connection."""
    with client.makefile("rb") as answers:
        return answers.read()


def _figure(metrics: str, name: str) -> float:
    (line,) = (line for line in metrics.splitlines() if line.startswith(f"{name} "))
    return float(line.split()[1])


def test_the_language_is_told(server: Running) -> None:
    assert server.post("language", {"code": GCD.read_text()}).json() == {"language": "c"}
    named = {"code": "x = 1", "filename": "a.rb"}
    assert server.post("language", named).json() == {"language": "ruby"}
    strange = {"code": GCD.read_text(), "filename": "notes.txt"}
    assert server.post("language", strange).json() == {"language": "c"}
    assert server.post("classify", {"code": "x", "language": "C#"}).status_code == 200


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


def test_names_that_are_not_utf_8_are_shown(model_folder: Path, tmp_path: Path) -> None:
    folder, index = tmp_path / "programs", tmp_path / "index"
    folder.mkdir()
    shutil.copy(GCD, folder / os.fsdecode(b"gcd\xff.c"))
    update_index(folder, index, model=model_folder, workers=1)
    model = tmp_path / os.fsdecode(b"model\xff")
    shutil.copytree(model_folder, model)
    with serving("--model", model, "--index", index) as running:
        found = running.post("search", {**program(GCD), "top": 1, "with_code": True})
        assert found.status_code == 200
        (match,) = found.json()["matches"]
        assert match["path"] == "gcd\N{REPLACEMENT CHARACTER}.c"
        assert "gcd" in match["code"]
        assert running.get("v1/about").json()["model"] == "model\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("code", ["", " \n\t", "# gcd\n"])
def test_an_empty_program_is_called_so(server: Running, code: str) -> None:
    body = {"code": code, "language": "python"}
    found = server.post("classify", {**body, "top": 5})
    assert found.status_code == 200
    assert found.json() == {
        "id": "<code>",
        "label": "unknown",
        "known": False,
        "guess": None,
        "probability": 0.0,
        "length": 0.0,
        "top": [],
    }
    for path, use in ("explain", "explain"), ("search", "search for"):
        refused = server.post(path, body)
        assert refused.status_code == 422
        assert refused.json()["error"] == {
            "code": "empty",
            "message": f"the program is empty: there is nothing to {use}",
        }
    assert server.post("embed", body).status_code == 200
    assert server.post("classify", {**body, "functions": True}).json() == []


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


def test_a_client_may_hang_up_at_any_moment(server: Running) -> None:
    whole = request("explain", json.dumps(program(GCD)).encode())
    for end in (10, len(whole) // 2, len(whole)):
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(whole[:end])
    assert server.post("classify", program(GCD)).status_code == 200
    assert _figure(server.get("metrics").text, "treecaps_requests_under_way") == 0


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


def test_500_clients_at_once_all_get_answers(server: Running) -> None:
    async def ask_all() -> list[tuple[int, Any]]:
        return await asyncio.gather(*(server.ask("classify", program(GCD)) for _ in range(500)))

    expected = answer(small_model(), parse_file(GCD), str(GCD)).to_dict()
    for status, found in asyncio.run(ask_all()):
        assert status == 200
        assert same(found, expected)


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
            status, found = parse_answer(_hear(client))
        assert (status, found["error"]["code"]) == (413, "too-large")
        assert "larger than the 1 MB" in found["error"]["message"]
    assert _memory(server) - before < 30_000_000
    assert server.get("healthz").json() == {"status": "ok"}


def _memory(server: Running) -> float:
    return _figure(server.get("metrics").text, "process_resident_memory_bytes")


@pytest.fixture(scope="module")
def strict(model_folder: Path) -> Iterator[Running]:
    words = ("--max-mb", "0.01", "--max-nodes", "50", "--waiting", "1", "--seconds", "3")
    with serving("--model", model_folder, *words) as running:
        yield running


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


def test_more_than_may_wait_are_sent_away(strict: Running) -> None:
    body = b'{"code": "int x;"}'
    with socket.create_connection(("127.0.0.1", strict.port)) as slow:
        slow.sendall(request("classify", body)[:-4])
        while _figure(strict.get("metrics").text, "treecaps_requests_under_way") == 0:
            pass
        found = strict.post("classify", {"code": "int x;"})
        assert (found.status_code, found.json()["error"]["code"]) == (429, "busy")
        assert found.headers["Retry-After"] == "1"
        assert "--waiting" in found.json()["error"]["message"]
        # Who never finishes asking does not keep the place for ever.
        status, said = parse_answer(_hear(slow))
        assert (status, said["error"]["code"]) == (408, "timeout")
    assert strict.post("classify", {"code": "int x;"}).status_code == 200


def test_who_never_finishes_a_head_is_sent_away(strict: Running) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    silent, slow, idle = (_connect(strict) for _ in range(3))
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
            status, said = parse_answer(_hear(client))
            assert (status, said["error"]["code"]) == (408, "timeout")
        assert _hear(silent) == b""
    assert 2 < time.monotonic() - begun < 10


def test_a_body_that_nobody_reads_does_not_hold_a_connection(strict: Running) -> None:
    begun = time.monotonic()
    with _connect(strict) as client:
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


def _connect(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=30)


@pytest.mark.parametrize("size", [20_000, 200_000])
@pytest.mark.parametrize("end", ["\r\n\r\n", ""])
def test_a_head_that_is_too_long_is_refused(server: Running, size: int, end: str) -> None:
    head = f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {'x' * size}{end}"
    with _connect(server) as client:
        client.sendall(head.encode())
        status, said = parse_answer(_hear(client))
    assert (status, said["error"]["code"]) == (431, "too-large")
    assert "16,384 bytes" in said["error"]["message"]


def test_what_is_no_http_is_refused_in_the_one_form(server: Running) -> None:
    with _connect(server) as client:
        client.sendall(b"hello\r\n\r\n")
        status, said = parse_answer(_hear(client))
    assert (status, said["error"]["code"]) == (400, "invalid")


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


def test_what_takes_too_long_is_given_up(model_folder: Path) -> None:
    hostile = (ROOT / "tests" / "hostile" / "arrows.java").read_text()
    with serving("--model", model_folder, "--seconds", "0.5") as server:
        found = server.post("classify", {"code": hostile, "language": "java"})
        assert (found.status_code, found.json()["error"]["code"]) == (503, "timeout")
        assert "--seconds" in found.json()["error"]["message"]
        assert server.get("healthz").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_accepted_is_finished(model_folder: Path, number: signal.Signals) -> None:
    whole = request("explain", json.dumps(program(GCD)).encode())
    with serving("--model", model_folder) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
        for client in clients:
            client.sendall(whole)
        while _figure(server.get("metrics").text, "treecaps_requests_under_way") < 5:
            pass
        server.process.send_signal(number)
        for client in clients:
            with client:
                status, found = parse_answer(_hear(client))
            assert (status, found["explained"]) == (200, "gcd")
        assert server.process.wait(30) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_server_at_once(
    model_folder: Path, number: signal.Signals
) -> None:
    with serving("--model", model_folder) as server, _connect(server) as client:
        client.sendall(request("classify", b"", 10))  # and then nothing, for 30 s
        while _figure(server.get("metrics").text, "treecaps_requests_under_way") < 1:
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
        " choose another with --port\n"
    )


def test_an_index_of_another_model_is_refused(model_folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "gcd.index"
    update_index(PROGRAMS / "gcd", index, model=model_folder, workers=1)
    script = "from treecaps.cli.main import run; run()"
    words = ["serve", "--index", str(index), "--port", "0"]  # with the bundled model
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"treecaps: error: {index} was made by another model")
    assert f"(its model was {model_folder}); choose that, or remove {index}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_figures_for_prometheus(server: Running) -> None:
    server.post("classify", {"code": "int x;"})
    server.get("some/where")
    text = server.get("metrics").text
    assert 'treecaps_requests_total{path="/v1/classify",status="200"}' in text
    assert 'path="other",status="404"' in text
    assert "some/where" not in text
    assert _figure(text, "treecaps_network_seconds_total") > 0


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
