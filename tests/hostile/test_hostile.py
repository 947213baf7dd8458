import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Run
from tests.conftest import EXAMPLES
from tests.inference.examples import save_small_model
from tests.server.conftest import serving
from tests.test_workers import is_running
from treecaps.data.parallel import parse_programs
from treecaps.errors import Failure
from treecaps.syntax.blind import blind
from treecaps.syntax.frontends import FRONTENDS, base, get_frontend
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

HERE = Path(__file__).parent
HOSTILE = sorted(path for path in HERE.iterdir() if path.suffix not in (".py", ".pyc", ""))
LIMIT = 1.0


@pytest.fixture(autouse=True)
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give parsers little time; worker processes inherit it."""
    monkeypatch.setattr(base, "SECONDS", LIMIT)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class folder of good programs and a hostile one."""
    for path in EXAMPLES[::4]:
        place = tmp_path / "data" / path.parent.name
        place.mkdir(parents=True, exist_ok=True)
        (place / path.name).write_bytes(path.read_bytes())
    (place / "hostile.kt").write_bytes((HERE / "open-brackets.kt").read_bytes())
    return tmp_path / "data"


@pytest.mark.parametrize("frontend", FRONTENDS)
@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.name)
@pytest.mark.parametrize("change", [None, blind])
def test_every_front_end_gives_an_answer_in_time(
    path: Path, frontend: str, change: "type[Program] | None"
) -> None:
    text = path.read_bytes()
    languages = sorted(get_frontend(frontend).languages())
    programs = [Program(text, language, id=language) for language in languages]
    begun = time.monotonic()
    results = list(parse_programs(programs, frontend, change=change, workers=2))
    assert time.monotonic() - begun < len(languages) * (2 * LIMIT + 3)
    codes = {result.code if isinstance(result, Failure) else "tree" for result in results}
    assert len(results) == len(languages)
    assert codes <= {"tree", "timeout", "syntax", "too-deep", "crash"}
    assert "crash" not in codes or frontend == "srcml"


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.name)
def test_each_takes_longer_than_the_limit(path: Path) -> None:
    (result,) = parse_programs([Program.read(path)], "tree-sitter")
    assert isinstance(result, Failure)
    assert result.code == "timeout"
    assert (
        result.message == f"took longer than {LIMIT + len(path.read_bytes()) / 1e5:.3g} s to parse"
    )


def test_one_program_that_hangs_costs_the_others_nothing() -> None:
    good = [Program(f"int a{number};", "c", id=str(number)) for number in range(300)]
    bad = Program.read(HERE / "open-brackets.kt")
    results = list(parse_programs([*good[:200], bad, *good[200:]], "tree-sitter", workers=2))
    assert [isinstance(result, Tree) for result in results] == [True] * 200 + [False] + [True] * 100


@pytest.mark.parametrize("command", ["parse", "classify", "embed"])
def test_commands_say_that_it_took_too_long(
    command: str, folder: Path, model: Path, run_here: Run
) -> None:
    words = () if command == "parse" else ("--model", model)
    done = run_here(command, *words, folder)
    assert done.returncode == 1
    line, *summary = done.stderr.splitlines()
    assert line.endswith("hostile.kt: error: took longer than 1 s to parse")
    assert [text.rpartition(", ")[2] for text in summary] == ["1 failed"] * (command == "classify")
    assert len(done.stdout.splitlines()) == len(EXAMPLES[::4])


def test_an_index_leaves_it_out(folder: Path, model: Path, tmp_path: Path, run_here: Run) -> None:
    done = run_here("index", "--model", model, folder, "--out", tmp_path / "index")
    assert done.returncode == 1
    assert "hostile.kt: error: took longer than 1 s to parse" in done.stderr
    assert f"of {len(EXAMPLES[::4])} files" in done.stdout


def test_search_and_explain_refuse_it(
    folder: Path, model: Path, tmp_path: Path, run_here: Run
) -> None:
    (hostile,) = folder.rglob("hostile.kt")
    run_here("index", "--model", model, folder, "--out", tmp_path / "index")
    for words in (("search", tmp_path / "index"), ("explain", "--model", model)):
        done = run_here(*words, hostile)
        assert done.returncode == 2
        assert "took longer than 1 s to parse" in done.stderr


def test_training_leaves_it_out(folder: Path, tmp_path: Path, run_here: Run) -> None:
    done = run_here("train", folder, "--out", tmp_path / "model", "--epochs", "1")
    assert done.returncode == 1
    assert "hostile.kt: error: took longer than 1 s to parse" in done.stderr
    assert (tmp_path / "model" / "model.safetensors").exists()


def _children(pid: int) -> list[int]:
    """Return the processes below one, at any depth."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.split()
    parents = dict(zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True))
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


@pytest.mark.parametrize("name", ["open-brackets.kt", "arrows.java"])
def test_the_server_answers_and_goes_on(name: str, model: Path) -> None:
    code = (HERE / name).read_text()
    with serving("--model", model, "--seconds", "2") as server:
        answer = server.post("classify", {"code": code, "filename": name})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "timeout")
        good = {"code": EXAMPLES[0].read_text(), "filename": EXAMPLES[0].name}
        assert server.post("classify", good).status_code == 200


def test_a_server_whose_workers_hang_says_so_and_ends(model: Path) -> None:
    body = {"code": (HERE / "arrows.java").read_text(), "language": "java"}
    with serving("--model", model, "--workers", "1", "--seconds", "8") as server:
        assert server.get("healthz").status_code == 200
        processes = _children(server.process.pid)
        with httpx.Client() as client, pytest.raises(httpx.TimeoutException):
            client.post(f"{server.url}/v1/classify", json=body, timeout=3)
        sick = server.get("healthz")
        assert (sick.status_code, sick.json()["error"]["code"]) == (503, "stuck")
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(30)
        assert time.monotonic() - begun < 8 + 5
    until = time.monotonic() + 5
    while any(map(is_running, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, processes))


def test_a_killed_server_leaves_no_process(model: Path) -> None:
    body = {"code": (HERE / "arrows.java").read_text(), "language": "java"}
    with serving("--model", model, "--workers", "2") as server:
        processes = _children(server.process.pid)
        with httpx.Client() as client, pytest.raises(httpx.TimeoutException):
            client.post(f"{server.url}/v1/classify", json=body, timeout=0.5)
        server.process.kill()
        server.process.wait(10)
    until = time.monotonic() + 2
    while any(map(is_running, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, processes))
