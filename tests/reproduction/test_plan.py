import pytest

from treecaps.errors import UsageError
from treecaps.reproduction.plan import TABLES, choose_epochs, choose_rows
from treecaps.training.presets import Preset, apply_settings, get_preset

ROWS = {name: {row.name: row for row in table.rows} for name, table in TABLES.items()}


def preset_of(table: str, name: str) -> Preset:
    row = ROWS[table][name]
    return apply_settings(get_preset(row.preset, row.model), row.settings)


@pytest.mark.parametrize("name", ["ggnn", "tbcnn"])
def test_the_other_approaches_begin_as_treecaps_does(name: str) -> None:
    paper, other = get_preset("paper"), preset_of("table1", name)
    assert ROWS["table1"][name].frontend is None
    for option in ("nodes", "vector_size"):
        assert getattr(other.network, option) == getattr(paper.network, option)
    for option in ("vectors", "freeze_vectors", "rename_probability", "rewrite_probability"):
        assert getattr(other.training, option) == getattr(paper.training, option)


def test_both_presets_have_all_variants() -> None:
    names = [name for name in ROWS["table2"] if not name.endswith("-published")]
    assert len(names) == 7
    assert list(ROWS["table2"]) == names + [f"{name}-published" for name in names]
    for name in names:
        rows = [ROWS["table2"][one] for one in (name, f"{name}-published")]
        assert [row.preset for row in rows] == ["paper", "published"]
        assert rows[0].settings == rows[1].settings
        assert rows[0].printed == rows[1].printed
    assert preset_of("table2", "treecaps") == get_preset("paper")
    assert preset_of("table2", "treecaps-published") == get_preset("published")
    times = {name: row.printed_ms for name, row in ROWS["table2"].items() if row.printed_ms}
    assert times["treecaps"] == times["treecaps-published"] == {"java-sort": "10.3"}
    assert times["secondary"] == times["secondary-published"] == {"java-sort": "11.9"}
    assert len(times) == 4


def test_ensembles_are_of_single_rows() -> None:
    table = TABLES["table1"]
    for name, preset in (("treecaps", "paper"), ("treecaps-published", "published")):
        single, joined = choose_rows(table, [f"{name}-3", name])
        assert (single.name, joined.name) == (name, f"{name}-3")
        assert preset in joined.title
        assert joined.of == single
        assert joined.ensemble == 3
        assert (joined.preset, joined.settings) == (single.preset, single.settings)
        assert joined.printed["poj104"] == "89.41"
        assert single.printed["poj104"] == "87.95 ± 0.23"


def test_epochs_are_for_all_data_or_for_one() -> None:
    table = TABLES["table1"]
    assert choose_epochs(table, []) == {}
    every = {"python-algorithms": 4, "java-sort": 4, "poj104": 4}
    assert choose_epochs(table, ["4"]) == every
    assert choose_epochs(table, ["poj104=2", "4"]) == {**every, "poj104": 2}
    assert choose_epochs(table, ["poj104=2", "poj104=03"]) == {"poj104": 3}
    assert choose_epochs(table, ["poj104=0.25", "java-sort=.5"]) == {
        "poj104": 0.25,
        "java-sort": 0.5,
    }


@pytest.mark.parametrize(
    "text", ["0", "-1", "", "four", "poj104=", "poj104=1.5", "0.0", "²", "9" * 5000]
)
def test_epochs_are_whole_numbers_or_a_part_of_one(text: str) -> None:
    with pytest.raises(UsageError, match="a number of epochs is a whole number from 1 up"):
        choose_epochs(TABLES["table1"], [text])


def test_a_data_set_that_the_table_has_not_has_no_epochs() -> None:
    with pytest.raises(UsageError, match="no data set 'poj104'; it has java-sort"):
        choose_epochs(TABLES["table2"], ["poj104=4"])
