import sqlite3
from pathlib import Path

import numpy as np
import pytest

import treecaps
from tests.conftest import EXAMPLES
from tests.search.examples import PROGRAMS, copy_programs, embedder, open_index, update
from treecaps.errors import SearchError, UsageError
from treecaps.inference.embed import Embedder
from treecaps.search import Index, Match
from treecaps.syntax.functions import find_functions


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "index"
    update(PROGRAMS, path)
    return path


def test_search_finds_what_comparing_with_every_function_finds(path: Path) -> None:
    slow = []  # path, function, line, language, vector
    for file in EXAMPLES:
        for function in find_functions(treecaps.parse_file(file)):
            vector = embedder().embed_trees([function.tree])[0].astype(np.float64)
            name = str(file.relative_to(PROGRAMS))
            slow.append((name, function.name, function.line, function.tree.language, vector))
    index = open_index(path)
    assert len(index) == len(slow) > 100
    for *_, query in slow[::25]:
        found = index.search(query.astype(np.float32), top=10)
        best = sorted((float(query @ vector) for *_, vector in slow), reverse=True)[:10]
        # On disk vectors have half of the digits.
        np.testing.assert_allclose([match.similarity for match in found], best, atol=1e-3)
        for match in found:
            (vector,) = (
                row[-1]
                for row in slow
                if row[:4] == (match.path, match.function, match.line, match.language)
            )
            assert match.similarity == pytest.approx(float(query @ vector), abs=1e-3)


def test_many_queries_find_what_each_finds(path: Path) -> None:
    index = open_index(path)
    queries = index.vectors[:70]
    for one, many in zip(queries, index.search_many(queries, 3), strict=True):
        alone = index.search(one, 3)
        assert [match.path for match in alone] == [match.path for match in many]
        np.testing.assert_allclose(
            [match.similarity for match in alone],
            [match.similarity for match in many],
            atol=1e-5,
        )


def test_a_match_has_its_lines(path: Path) -> None:
    index = open_index(path)
    for match in index.search(index.vectors[7], 1000):
        code = index.code(match)
        file = PROGRAMS / match.path
        (function,) = (
            one for one in find_functions(treecaps.parse_file(file)) if one.line == match.line
        )
        assert code is not None
        assert function.tree.text.decode().strip() in code
        assert code.count("\n") == function.tree.text.strip().count(b"\n")
    assert len(index.search(index.vectors[7], 1000)) == len(index)


def test_a_match_in_words_for_json() -> None:
    match = Match("a.c", None, 1, 3, "c", 0.123456)
    assert match.to_dict() == {
        "path": "a.c",
        "line": 1,
        "last_line": 3,
        "language": "c",
        "similarity": 0.1235,
    }


def test_code_is_never_read_from_outside_or_after_a_change(tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    (tmp_path / "secret.c").write_text("int secret(int a) { return a; }\n")
    (folder / "link.c").symlink_to(tmp_path / "secret.c")
    update(folder, tmp_path / "index")
    index = open_index(tmp_path / "index")
    assert index.files == 14
    matches = {match.path: match for match in index.search(index.vectors[0], 1000)}
    assert index.code(matches["gcd.c"])
    assert index.code(matches["link.c"]) is None
    for outside in ("../secret.c", str(tmp_path / "secret.c"), "..", "", "\0"):
        assert index.code(Match(outside, "secret", 1, 1, "c", 1.0)) is None
    (folder / "gcd.c").write_text("int other(void) { return 1; }\n")
    (folder / "gcd.py").unlink()
    assert index.code(matches["gcd.c"]) is None
    assert index.code(matches["gcd.py"]) is None


def test_copies_are_found_each(tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    (folder / "copy.c").write_bytes((folder / "gcd.c").read_bytes())
    done = update(folder, tmp_path / "index")
    assert (done.files, done.embedded) == (14, 13)
    index = open_index(tmp_path / "index")
    assert (len(index), len(index.rows)) == (done.vectors, done.vectors - 2)
    tree = find_functions(treecaps.parse_file(folder / "gcd.c"))[0].tree
    found = index.search(embedder().embed_trees([tree])[0], 2)
    assert [match.path for match in found] == ["copy.c", "gcd.c"]


def test_vectors_that_do_not_fit(path: Path) -> None:
    index = open_index(path)
    with pytest.raises(UsageError, match="numbers each, not 3"):
        index.search(np.zeros(3, np.float32))
    with pytest.raises(UsageError, match="ask for one or more"):
        index.search(index.vectors[0], 0)


def test_an_index_of_another_model(path: Path) -> None:
    with pytest.raises(SearchError, match=r"made by another model .* index again: treecaps index"):
        Index.open(path, Embedder())


@pytest.mark.parametrize("kept", [0, 50, 5000, 40000])
def test_a_truncated_index(kept: int, path: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "index"
    damaged.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(SearchError, match=r"is damaged; remove it|is no index; make one"):
        open_index(damaged)


def test_no_altered_byte_goes_unnoticed(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    expected = open_index(path)
    damaged = tmp_path / "index"
    noticed = 0
    for place in range(101, len(whole), 9973):
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            index = open_index(damaged)
        except SearchError:
            noticed += 1
        else:  # nothing stands there
            np.testing.assert_array_equal(index.vectors, expected.vectors)
            assert index.rows == expected.rows
    assert noticed > 3


def test_what_is_no_index(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match=r"there is no index .* treecaps index DIR --out"):
        open_index(tmp_path / "none")
    (tmp_path / "text").write_text("hello\n" * 1000)
    with pytest.raises(SearchError, match="is no index; make one"):
        open_index(tmp_path / "text")
    with pytest.raises(SearchError, match="cannot read"):
        open_index(tmp_path)
    connection = sqlite3.connect(tmp_path / "other")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    with pytest.raises(SearchError, match="is no index; make one"):
        open_index(tmp_path / "other")


@pytest.mark.parametrize(("number", "message"), [(2, "newer treecaps: update"), (0, "older")])
def test_an_index_of_another_version(number: int, message: str, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "index"
    other.write_bytes(path.read_bytes())
    connection = sqlite3.connect(other)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    with pytest.raises(SearchError, match=message):
        open_index(other)
