"""What the server answers."""

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import EXAMPLES
from tests.inference.examples import small_model
from tests.server.conftest import (
    GCD,
    PROGRAMS,
    Running,
    program,
    read_figure,
    same,
    serving,
)
from treecaps.explanation.explanation import explain
from treecaps.inference.classify import classify_tree, classify_units
from treecaps.inference.embed import Embedder
from treecaps.inference.units import CodeUnit
from treecaps.search.build import update_index
from treecaps.search.matches import Match
from treecaps.syntax.parse import parse_file


def test_answers_are_those_of_the_command_line(server: Running) -> None:
    model, tree, body = small_model(), parse_file(GCD), program(GCD)
    expected = classify_tree(model, tree, str(GCD), 4).to_dict()
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


def test_an_index_may_be_of_another_model(model_folder: Path, tmp_path: Path) -> None:
    update_index(PROGRAMS, tmp_path / "index", workers=1)
    tree, body = parse_file(GCD), program(GCD)
    with serving("--model", model_folder, "--index", tmp_path / "index") as running:
        found = running.post("search", {**body, "functions": True, "top": 1}).json()
        assert [one["matches"][0]["function"] for one in found] == ["gcd", "main"]
        assert found[0]["matches"][0]["probability"] > 0.5
        vector = Embedder().embed_trees([tree])[0]
        np.testing.assert_allclose(running.post("embed", body).json()["vector"], vector, atol=2e-6)
        expected = classify_tree(small_model(), tree, str(GCD), 1).label
        assert running.post("classify", body).json()["label"] == expected


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
            assert same(one, classify_tree(model, tree, str(path), top).to_dict())
        else:
            vector = Embedder(model).embed_trees([tree])[0]
            np.testing.assert_allclose(one["vector"], vector, atol=2e-6)
    # They were looked at together: fewer looks than programs.
    looks, programs = (
        read_figure(server.get("metrics").text, name) - read_figure(before, name)
        for name in ("treecaps_batch_programs_count", "treecaps_batch_programs_sum")
    )
    assert programs == len(EXAMPLES)
    assert looks < programs / 2


def test_one_look_at_many_is_a_look_at_each() -> None:
    model = small_model()
    pieces = [CodeUnit(str(path), parse_file(path)) for path in EXAMPLES]
    together = classify_units(model, pieces)
    for piece, one in zip(pieces, together, strict=True):
        assert same(one.to_dict(), classify_tree(model, piece.tree, piece.id).to_dict())


def test_500_clients_at_once_all_get_answers(server: Running) -> None:
    async def ask_all() -> list[tuple[int, Any]]:
        return await asyncio.gather(*(server.ask("classify", program(GCD)) for _ in range(500)))

    expected = classify_tree(small_model(), parse_file(GCD), str(GCD)).to_dict()
    for status, found in asyncio.run(ask_all()):
        assert status == 200
        assert same(found, expected)


def test_the_language_is_told(server: Running) -> None:
    assert server.post("language", {"code": GCD.read_text()}).json() == {"language": "c"}
    named = {"code": "x = 1", "filename": "a.rb"}
    assert server.post("language", named).json() == {"language": "ruby"}
    strange = {"code": GCD.read_text(), "filename": "notes.txt"}
    assert server.post("language", strange).json() == {"language": "c"}
    assert server.post("classify", {"code": "x", "language": "C#"}).status_code == 200


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
        "reason": "the program is empty",
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
