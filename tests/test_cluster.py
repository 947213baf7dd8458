"""A cluster of two nodes on this machine must answer as this machine alone does."""

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

import treecaps
from tests.cli.conftest import Run, run_here
from tests.conftest import ROOT
from tests.inference.examples import save_small_model
from tests.search.examples import copy_programs
from treecaps import DataError, Failure, Program, RayCluster, parse_programs
from treecaps.data import parallel
from treecaps.data.corpus import Corpus
from treecaps.data.parallel import Change, Parsed, parse_in_chunks
from treecaps.search.index import Index

__all__ = ["run_here"]  # a fixture


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes with a core each; this process is a driver on the first."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.CRITICAL)
    yield cluster
    ray.shutdown()
    cluster.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK_PROGRAMS", 4)


def programs(count: int) -> list[Program | Failure]:
    found: list[Program | Failure] = [
        Program(f"int f{number}() {{ return {number}; }}", "c", id=str(number))
        for number in range(count)
    ]
    found[count // 2] = Failure("x", "binary", "why")
    return found


def make_deadly(crash: set[str], hang: set[str]) -> tuple[Change, Callable[[], None]]:
    """Return a change that no process survives for some programs, and what makes it impatient."""

    def change(program: Program) -> Program:
        if program.id in crash:
            os.kill(os.getpid(), signal.SIGKILL)
        if program.id in hang:
            ctypes.PyDLL(None).sleep(1000)  # Python's lock is kept meanwhile, as in a parser
        return program

    def hurry() -> None:
        vars(parallel)["time_limit"] = lambda _: 0.5

    return change, hurry


def _list_all(parsed: Parsed) -> list[object]:
    return [
        one if isinstance(one, Failure) else (one[0].id, one[1].to_dict())
        for one in parsed.outcomes
    ]


@pytest.mark.usefixtures("small_chunks", "nodes")
def test_programs_that_kill_or_hang_a_worker_fail_alone_as_on_one_machine() -> None:
    change, hurry = make_deadly({"3", "17"}, {"30"})

    def run(workers: int | RayCluster) -> list[object]:
        parse = parse_in_chunks(
            *(programs(40), "tree-sitter", False, workers, _list_all), change=change, start=hurry
        )
        return [one for some in parse for one in some]

    here = run(2)
    assert run(RayCluster()) == here
    failures = {one.id: one.code for one in here if isinstance(one, Failure)}
    assert failures == {"3": "crash", "17": "crash", "x": "binary", "30": "timeout"}
    assert len(here) == 40


@pytest.mark.usefixtures("small_chunks")
def test_what_a_node_that_died_had_to_do_is_done_by_the_others(nodes: Cluster) -> None:
    doomed = nodes.add_node(num_cpus=2)
    sources = programs(400)

    def slow(program: Program) -> Program:
        time.sleep(0.005)
        return program

    found = parse_programs(sources, "tree-sitter", change=slow, workers=RayCluster())
    first = [next(found) for _ in range(20)]
    nodes.remove_node(doomed, allow_graceful=False)
    trees = [*first, *found]
    here = list(parse_programs(sources, "tree-sitter"))
    assert len(trees) == 400
    for one, other in zip(trees, here, strict=True):
        if isinstance(one, Failure) or isinstance(other, Failure):
            assert one == other
        else:
            assert one.to_dict() == other.to_dict()


@pytest.mark.usefixtures("nodes")
def test_commands_answer_as_on_one_machine(tmp_path: Path, run_here: Run) -> None:
    small = save_small_model(tmp_path / "model")
    folder = copy_programs(tmp_path / "programs")
    (folder / "broken.c").write_bytes(b"\0\1\2\3")
    indices = []
    for command in (
        ("classify", folder, "--json", "--model", small),
        ("classify", folder, "--functions", "--model", small),
        ("embed", folder, "--functions", "--model", small),
        ("clones", folder, "--threshold", "0.5", "--json", "--model", small),
        ("index", folder, "--files", "--model", small, "--out", tmp_path / "index"),
    ):
        answers = []
        for more in ((), ("--ray",)):
            done = run_here(*command, *more)
            answers.append((done.returncode, done.stdout, done.stderr))
            for place in tmp_path.glob("index*"):
                indices.append(Index.open(place).vectors.tobytes())
                place.unlink()
        assert answers[0] == answers[1]
        assert answers[0][0] == 1, "a file is broken"
        assert answers[0][1]
    assert indices[0] == indices[1]


@pytest.mark.usefixtures("nodes")
def test_a_corpus_is_the_same(tmp_path: Path) -> None:
    here, there = (
        Corpus.build(ROOT / "examples" / "programs", cache=tmp_path / str(workers), workers=workers)
        for workers in (1, RayCluster())
    )
    assert here.about == there.about
    assert here.ids == there.ids


@pytest.mark.usefixtures("small_chunks")
def test_a_node_with_another_version_says_so(nodes: Cluster, tmp_path: Path) -> None:
    package = tmp_path / "treecaps"
    package.mkdir()
    for place in Path(treecaps.__file__).parent.iterdir():
        if place.name != "_version.py":
            (package / place.name).symlink_to(place)
    (package / "_version.py").write_text('__version__ = "0.0.1"\n')
    old = nodes.add_node(num_cpus=4, env_vars={"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(DataError, match=r"node \S+: has treecaps 0\.0\.1; install "):
            list(parse_programs(programs(400), "tree-sitter", workers=RayCluster()))
    finally:
        nodes.remove_node(old)
