"""Several processes, started by ``torchrun``, train what one does."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from tests.conftest import ROOT
from tests.training.runs import history
from tests.training.shared import CASES, learn
from treecaps.errors import UsageError
from treecaps.training.device import check_device
from treecaps.training.processes import Processes

EXAMPLES = ROOT / "examples" / "programs"


def torchrun(processes: int, *words: str, **options: Any) -> "subprocess.Popen[str]":
    """Start several processes; what all of them say is the standard output."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.Popen(
        [*launch, "--nproc-per-node", str(processes), *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def train_words(folder: Path, epochs: int, *others: str) -> list[str]:
    settings = ("vectors=random", "vector_size=8", "channels=8", "hidden=8", "token_channels=0")
    return [
        *("-m", "treecaps", "train", str(EXAMPLES), "--out", str(folder)),
        *("--epochs", str(epochs), "--nodes", "kinds", "--cache", str(folder.parent / "cache")),
        *itertools.chain(*(("--set", setting) for setting in settings)),
        *others,
    ]


def errors_in(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("treecaps: error")]


def test_two_processes_learn_what_one_does(tmp_path: Path) -> None:
    together = torchrun(2, "-m", "tests.training.shared", str(tmp_path / "two"))
    for case in CASES:
        learn(case, tmp_path / "one")
    said, _ = together.communicate(timeout=300)
    assert together.returncode == 0, said
    for case in CASES:
        one, two = (tmp_path / name / case for name in ("one", "two"))
        expected, found = (load_file(folder / "model.safetensors") for folder in (one, two))
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=f"{case}: {name}")
        (first,), (same,) = history(one), history(two)
        assert same == [pytest.approx(epoch, abs=1e-4, nan_ok=True) for epoch in first]


def test_a_lost_process_ends_the_others_and_another_number_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    running = torchrun(2, *train_words(folder, 1000))
    assert running.stdout
    said = ""
    while "epoch 2/" not in said:
        said += running.stdout.readline()
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    ranks = {number: Path(f"/proc/{number}/environ").read_bytes() for number in children}
    (second,) = (int(number) for number, words in ranks.items() if b"\0RANK=1\0" in words)
    os.kill(second, signal.SIGKILL)
    begun = time.monotonic()
    said += running.communicate(timeout=60)[0]
    assert time.monotonic() - begun < 30
    assert running.returncode == 1
    (error,) = errors_in(said)
    assert "another process of this training ended" in error
    assert error.endswith("(--resume)")
    assert said.count("epoch 1/") == 1  # only the first process prints
    assert (folder / "checkpoint" / "state.json").exists()
    assert not (folder / "config.json").exists()
    # The training goes on: with other options it would be refused.
    going_on = torchrun(3, *train_words(folder, 1000, "--resume"))
    assert going_on.stdout
    said = ""
    while "epoch" not in said:
        said += going_on.stdout.readline()
    assert int(re.findall(r"epoch (\d+)/1000", said)[0]) >= 3
    going_on.send_signal(signal.SIGINT)
    said += going_on.communicate(timeout=60)[0]
    assert f"interrupted; {folder} holds the best until then" in said
    assert (folder / "config.json").exists()


def test_other_data_are_refused(tmp_path: Path) -> None:
    """Both processes have the same words, and the second reads other data."""
    words = train_words(tmp_path / "model", 1)
    words[words.index(str(EXAMPLES))] = f"{tmp_path}/$RANK"
    for rank, classes in enumerate((["gcd", "stack"], ["gcd", "bubble-sort"])):
        for name in classes:
            shutil.copytree(EXAMPLES / name, tmp_path / str(rank) / name)
    script = " ".join([sys.executable, *words])
    running = torchrun(2, "--no-python", "sh", "-c", script)
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 1
    (error,) = errors_in(said)
    assert re.search("process 1, on .*, has other data: all need the same data", error)
    assert not (tmp_path / "model").exists()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 9))
def test_a_batch_is_split_into_parts_in_order(sizes: list[int], processes: int) -> None:
    every = np.arange(len(sizes))
    parts = [every[Processes(rank, processes).split(np.array(sizes))] for rank in range(processes)]
    assert all(len(part) for part in parts)
    counting = parts[: len(sizes)]
    assert np.concatenate(counting).tolist() == every.tolist()
    if len(sizes) >= processes > 1:
        most = max(sum(sizes[row] for row in part) for part in parts)
        # At worst a part has its share, and the half of a large program on either side.
        assert most <= sum(sizes) / processes + max(sizes) * processes


def test_devices_of_several_processes() -> None:
    several = Processes(1, 2, 1, 2)
    assert check_device("cpu", several).type == "cpu"
    assert check_device("auto").type in {"cpu", "cuda", "mps"}
    for name in ("cuda:0", "mps"):
        with pytest.raises(UsageError, match="several processes cannot train on"):
            check_device(name, several)
