"""The commands with an index in a database, as the roles of the documentation."""

from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'treecaps[postgres]'")

import psycopg

from tests.cli.conftest import Run
from tests.inference.examples import save_small_model
from tests.postgres import PASSWORD, Postgres
from tests.search.examples import PROGRAMS
from treecaps.search.build import update_index

GCD = PROGRAMS / "gcd" / "gcd.c"


def test_roles_have_the_rights_they_need_and_no_others(
    postgres: Postgres, team: str, tmp_path: Path, run_here: Run
) -> None:
    model_folder = save_small_model(tmp_path / "model")
    reader, writer = (postgres.address(team, f"treecaps_{role}") for role in ("reader", "writer"))
    done = run_here("index", PROGRAMS / "gcd", "--out", reader, "--model", model_folder)
    assert done.returncode == 2
    assert "no rights to write postgresql://treecaps_reader@127.0.0.1" in done.stderr
    done = run_here("index", PROGRAMS / "gcd", "--out", writer, "--model", model_folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"postgresql://treecaps_writer@127.0.0.1:{postgres.port}/team: ")
    assert PASSWORD not in done.stdout
    file = tmp_path / "index"
    update_index(PROGRAMS / "gcd", file, model=model_folder, workers=1)
    answers = []
    for place in (file, reader, writer):
        done = run_here("search", place, GCD, "--functions", "--top", "20", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        answers.append(done.stdout)
    assert answers[0] == answers[1] == answers[2]
    for words in ((reader,), (PROGRAMS / "gcd", "--against", reader)):
        done = run_here("clones", *words)
        assert done.returncode == 2
        assert done.stderr.endswith("/team is a database; name a folder, or an index in a file\n")
        assert PASSWORD not in done.stderr
    with (
        psycopg.connect(reader, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("DELETE FROM treecaps.files")
