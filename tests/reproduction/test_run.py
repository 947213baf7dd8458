import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.reproduction.loops import write_data
from treecaps.errors import TreeCapsError
from treecaps.files import FileLock
from treecaps.inputs.graphs import Graphs
from treecaps.models.trained import TrainedModel
from treecaps.reproduction.data import Places
from treecaps.reproduction.plan import TABLES, Row
from treecaps.reproduction.run import Cell, Reproduction, list_cells
from treecaps.syntax.edges import EDGES

ROWS = {row.name: row for row in TABLES["table1"].rows}
PYTHON, JAVA, _ = TABLES["table1"].columns


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(write_data(tmp_path / "data"), tmp_path / "out", quick=True)


def run(work: Reproduction, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the metrics of cells; none may fail."""
    found = [metrics for _, metrics in work.run(cells, lambda share, what: None)]
    return [one for one in found if not isinstance(one, TreeCapsError)]


def with_epochs(
    places: Places, epochs: float | None, frontend: str = "tree-sitter"
) -> Reproduction:
    return Reproduction(places, {"java-sort": epochs} if epochs else {}, frontend)


def cells_of(row: Row, *seeds: int) -> list[Cell]:
    return [Cell(row, JAVA, seed) for seed in seeds]


def test_the_networks_of_an_ensemble_come_first() -> None:
    rows = [ROWS["tbcnn"], ROWS["treecaps-3"], ROWS["treecaps"]]
    found = [cell.name for cell in list_cells(rows, [PYTHON, JAVA], range(2))]
    names = ["tbcnn-0", "tbcnn-1", "treecaps-0", "treecaps-1", "treecaps-2", "treecaps-3-0"]
    assert found == [
        f"{data}-{name}" for data in ("python-algorithms", "java-sort") for name in names
    ]


def test_an_ensemble_without_its_networks_fails(places: Places) -> None:
    ((_, error),) = with_epochs(places, 1).run(cells_of(ROWS["treecaps-3"], 0), lambda *_: None)
    assert str(error) == "some of its networks could not be trained"


def test_results_are_of_one_number_of_epochs(places: Places) -> None:
    row = ROWS["tbcnn"]

    def epochs(asked: int | None, seeds: int = 2) -> list[int]:
        found = with_epochs(places, asked).results([row, ROWS["ggnn"]], [JAVA], range(seeds))
        assert set(found) <= {("tbcnn", "java-sort")}
        return [one["epochs"] for one in found.get(("tbcnn", "java-sort"), [])]

    assert epochs(None) == []
    run(with_epochs(places, 2), cells_of(row, 0, 1))
    run(with_epochs(places, 3), cells_of(row, 1))
    assert epochs(2) == [2, 2]
    assert epochs(3) == [3]
    assert epochs(None) == [2, 2]  # more seeds than with 3 epochs
    assert epochs(None, seeds=1) == [2]
    run(with_epochs(places, 3), cells_of(row, 0))
    assert epochs(None) == [3, 3]  # as many seeds, and more epochs
    assert epochs(2) == [2, 2]
    other = with_epochs(places, None, frontend="srcml")
    assert other.results([row], [JAVA], range(2)) == {}


def test_a_model_without_epochs_does_not_run_again(places: Places) -> None:
    cells = cells_of(ROWS["svm-windows"], 0)
    (found,) = run(with_epochs(places, None), cells)
    assert with_epochs(places, 5).kept(cells[0]) == found
    assert (found["epochs"], found["preset_epochs"]) == (1, 1)
    assert found["seconds"] != round(found["seconds"], 1)  # it is rounded on the page


def test_what_another_process_trains_is_waited_for(places: Places) -> None:
    work, cells = with_epochs(places, None), cells_of(ROWS["svm-windows"], 0)
    (found,) = run(work, cells)
    (path,) = (places.out / "cells").iterdir()
    content = path.read_bytes()
    path.unlink()
    (places.out / "models").rename(places.out / "moved")
    again: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: again.extend(run(work, cells)))
    digest = path.stem.rsplit("-", 1)[1]
    with closing(FileLock(path.with_name(f"{digest}.lock"))):
        waiting.start()
        time.sleep(0.5)
        assert waiting.is_alive()
        path.write_bytes(content)
    waiting.join(60)
    assert again == [found]
    assert not (places.out / "models").exists()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"asked": {"format": 1}}'])
def test_a_cell_that_cannot_be_used_is_made_again(places: Places, text: str) -> None:
    work, cells = with_epochs(places, None), cells_of(ROWS["svm-windows"], 0)
    (found,) = run(work, cells)
    (path,) = (places.out / "cells").iterdir()
    path.write_text(text)
    assert work.results([ROWS["svm-windows"]], [JAVA], [0]) == {}
    (again,) = run(work, cells)
    assert again["accuracy"] == found["accuracy"]
    assert work.results([ROWS["svm-windows"]], [JAVA], [0])["svm-windows", "java-sort"]


@pytest.mark.parametrize(("column", "frontend"), [(PYTHON, "ast"), (JAVA, "srcml")])
def test_ggnn_has_edges_in_the_trees_of_the_paper(
    places: Places, column: Any, frontend: str
) -> None:
    epochs = {column.name: 1}
    (found,) = run(Reproduction(places, epochs), [Cell(ROWS["ggnn"], column, 0)])
    assert found["asked"]["frontend"] == frontend
    (folder,) = (places.out / "models").iterdir()
    test = places.load(column, "test", frontend)
    graphs = TrainedModel.load(folder).read_trees(test)
    assert isinstance(graphs, Graphs)
    counts = {EDGES[kind]: (graphs.kind == kind).sum() for kind in set(graphs.kind.tolist())}
    assert set(counts) == {"Child", "NextToken"}
    assert counts["Child"] == sum(len(tree) - 1 for tree in test)
    assert counts["NextToken"] >= 5 * len(test)


def test_a_part_of_an_epoch_trains_on_that_part_once(places: Places) -> None:
    (found,) = run(with_epochs(places, 0.5), cells_of(ROWS["tbcnn"], 0))
    (folder,) = (places.out / "models").iterdir()
    programs = TrainedModel.load(folder).card["data"]["training"]["programs"]
    assert programs == pytest.approx(0.5 * 0.9 * found["train_programs"], rel=0.2)
    (whole,) = run(with_epochs(places, 1), cells_of(ROWS["tbcnn"], 0))
    assert (found["epochs"], whole["epochs"]) == (0.5, 1)
    assert found["preset_epochs"] == whole["preset_epochs"]
    assert (len(found["loss"]), len(whole["loss"])) == (1, 1)


def test_a_model_without_epochs_is_trained_on_all_programs(places: Places) -> None:
    cells = cells_of(ROWS["svm-windows"], 0)
    (found,) = run(with_epochs(places, None), cells)
    assert with_epochs(places, 0.5).kept(cells[0]) == found
