import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Run
from tests.cli.test_cli import PROGRAMS
from tests.inference.examples import save_small_model, small_model
from treecaps.inference.embed import Embedder
from treecaps.syntax.parse import parse_file

GCD = PROGRAMS / "gcd"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


def test_a_line_of_json_for_each_program(model: Path, run_here: Run) -> None:
    done = run_here("embed", "--model", model, GCD)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    files = sorted(path for path in GCD.iterdir())
    assert [row["id"] for row in rows] == [str(path) for path in files]
    expected = Embedder(small_model()).embed_trees(map(parse_file, files))
    np.testing.assert_allclose([row["vector"] for row in rows], expected, atol=1e-5)


def test_all_formats_say_the_same(model: Path, tmp_path: Path, run_here: Run) -> None:
    outs = [tmp_path / f"vectors.{form}" for form in ("jsonl", "npy", "parquet")]
    for out in outs:
        done = run_here("embed", "--model", model, GCD / "gcd.c", "--functions", "--out", out)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"wrote 2 embeddings to {out}\n"
    assert sorted(tmp_path.iterdir()) == sorted(outs)
    lines: Rows = [json.loads(line) for line in outs[0].read_text().splitlines()]
    array = np.load(outs[1])
    table: Rows = pq.read_table(outs[2]).to_pylist()
    assert array.dtype == np.float32
    for row, vector, other in zip(lines, array, table, strict=True):
        assert [row[name] for name in ("id", "function", "line")] == [
            other[name] for name in ("id", "function", "line")
        ]
        np.testing.assert_allclose(row["vector"], vector, atol=1e-6)
        np.testing.assert_array_equal(other["vector"], vector)
    assert [row["function"] for row in lines] == ["gcd", "main"]


def test_an_array_may_go_down_a_pipe(model: Path) -> None:
    words = ["embed", "--model", str(model), str(GCD), "--format", "npy"]
    script = "from treecaps.cli.main import run; run()"
    made = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, check=True)
    read = "import sys, io, numpy; print(numpy.load(io.BytesIO(sys.stdin.buffer.read())).shape)"
    shape = subprocess.check_output([sys.executable, "-c", read], input=made.stdout)
    assert shape.startswith(b"(13, ")


def test_what_fails_is_told_and_left_out(model: Path, tmp_path: Path, run_here: Run) -> None:
    strange = tmp_path / "gcd\udcff.c"
    strange.write_bytes((GCD / "gcd.c").read_bytes())
    out = tmp_path / "vectors.parquet"
    done = run_here("embed", "--model", model, tmp_path / "none.c", strange, "--out", out)
    assert done.returncode == 1
    assert "none.c: error: no such file or directory" in done.stderr
    (row,) = pq.read_table(out).to_pylist()
    assert row["id"].endswith("gcd\N{REPLACEMENT CHARACTER}.c")


def test_nothing_good_is_an_empty_file(model: Path, tmp_path: Path, run_here: Run) -> None:
    for form in ("jsonl", "npy", "parquet"):
        out = tmp_path / f"vectors.{form}"
        done = run_here("embed", "--model", model, tmp_path / "none.c", "--out", out)
        assert done.returncode == 2
        assert "wrote 0 embeddings" in done.stderr
    assert (tmp_path / "vectors.jsonl").read_text() == ""
    assert np.load(tmp_path / "vectors.npy").shape == (0, 0)
    assert pq.read_table(tmp_path / "vectors.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("vectors.txt", "ends in none of .jsonl, .npy and .parquet: say which with --format"),
        ("missing/vectors.npy", "cannot write"),
    ],
)
def test_an_output_that_cannot_be(
    out: str, message: str, model: Path, tmp_path: Path, run_here: Run
) -> None:
    done = run_here("embed", "--model", model, GCD / "gcd.c", "--out", tmp_path / out)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
