"""A server that searches an index in a database, as a role that may only read."""

import time
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'treecaps[postgres]'")

from tests.postgres import PASSWORD, Postgres
from tests.server.conftest import GCD, PROGRAMS, program, same, serving
from treecaps.search.build import update_index


def test_a_server_searches_a_database(
    postgres: Postgres, team: str, model_folder: Path, tmp_path: Path
) -> None:
    writer = postgres.address(team, "treecaps_writer")
    reader = postgres.address(team, "treecaps_reader")
    update_index(PROGRAMS / "gcd", writer, model=model_folder, workers=1)
    update_index(PROGRAMS / "gcd", tmp_path / "index", model=model_folder, workers=1)
    asked = {**program(GCD), "top": 30, "with_code": True}
    with (
        serving("--model", model_folder, "--index", tmp_path / "index") as expected,
        serving("--model", model_folder, "--index", reader) as found,
    ):
        assert same(found.post("search", asked).json(), expected.post("search", asked).json())
        about = found.get("v1/about").json()["index"]
        assert about == expected.get("v1/about").json()["index"]
        postgres.kill()
        lost = found.post("search", asked)
        assert (lost.status_code, lost.json()["error"]["code"]) == (503, "index")
        assert "nobody answers" in lost.json()["error"]["message"]
        assert found.post("classify", program(GCD)).status_code == 200
        postgres.start()
        assert found.post("search", asked).status_code == 200
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "new.c").write_text("int twice(int a)\n{\n    return 2 * a;\n}\n")
        update_index(tmp_path / "more", writer, model=model_folder, workers=1)
        deadline = time.monotonic() + 30
        while found.get("v1/about").json()["index"]["files"] != about["files"] + 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        found.process.terminate()
        said = found.process.communicate(timeout=60)
    assert PASSWORD not in f"{said}{lost.text}{postgres.log()}"
