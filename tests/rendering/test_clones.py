import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.search.examples import embedder, write_files
from tests.search.test_copies import COPY, HONEST, ORIGINAL
from treecaps.cli.output import write_page
from treecaps.rendering.clones import to_html
from treecaps.search.collection import Collection
from treecaps.search.comparison import Comparison, compare
from treecaps.search.units import read_units

NASTY = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 1'><!--"
MANY = "# \N{GRINNING FACE} é \N{HANGUL SYLLABLE GA}\n"


def lay_open(folder: Path, texts: dict[str, str], *, functions: bool = False) -> Comparison:
    write_files(folder, texts)
    units, failures = read_units(folder, list(texts), embedder(), functions=functions, workers=1)
    assert not failures
    return compare(Collection(embedder(), units), embedder(), workers=1)


def read_data(page: str) -> dict[str, Any]:
    found = re.findall('<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    values: dict[str, Any] = json.loads(found[0])
    return values


def cut(text: str, start: int, end: int) -> str:
    """Return some of a text, by places as a script of a page counts them."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


@pytest.mark.parametrize("functions", [False, True])
def test_parts_are_where_the_page_says(functions: bool, tmp_path: Path) -> None:
    inner = "class A:\n" + re.sub("(?m)^(?=.)", "    ", ORIGINAL)
    texts = {
        "a.py": MANY + ORIGINAL,
        "b.py": MANY * 2 + COPY,
        "c.py": MANY + inner,
        "d.c": "int a;",
    }
    comparison = lay_open(tmp_path, texts, functions=functions)
    values = read_data(to_html(comparison, title="a"))
    count = 0
    for pair, shown in zip(values["pairs"], comparison.pairs, strict=True):
        for ends, part in zip(pair["parts"], shown.parts, strict=True):
            for side, (work, place) in enumerate(
                zip((pair["left"], pair["right"]), ends, strict=True)
            ):
                program, start, end = place
                source = values["works"][work]["sources"][program]
                tree = comparison.sources[work][program].tree
                text = tree.text[part.start[side] : part.end[side]].decode()
                assert cut(source["text"], start, end).rstrip() == text.rstrip()
                line = source["line"] + cut(source["text"], 0, start).count("\n")
                assert line == part.line[side] + source["line"] - 1
                count += 1
    assert count > 5


def test_lines_of_a_source_have_their_numbers(tmp_path: Path) -> None:
    comparison = lay_open(tmp_path, {"a.py": MANY + ORIGINAL, "b.py": COPY}, functions=True)
    for work in read_data(to_html(comparison, title="a"))["works"]:
        (source,) = work["sources"]
        name, first, last, _ = re.split("[-: ]", work["name"])
        assert source["line"] == int(first)
        text = (tmp_path / name).read_text().split("\n")[int(first) - 1 : int(last)]
        assert source["text"].split("\n") == text


def test_nothing_in_names_or_code_becomes_part_of_the_page(tmp_path: Path) -> None:
    name = NASTY.replace("/", "")
    texts = {f"{name}.py": f"# {NASTY}\n{ORIGINAL}", "b.py": f"{COPY}\nx = '''{NASTY}'''\n"}
    comparison = lay_open(tmp_path, texts)
    page = to_html(comparison, title=NASTY, facts=[(NASTY, NASTY)], failures=[NASTY])
    assert page.count("<script") == page.count("</script") == 2
    assert "<img" not in page
    assert "<!--" not in page
    works = read_data(page)["works"]
    assert works[0]["name"] == f"{name}.py"
    assert NASTY in works[0]["sources"][0]["text"]


def test_names_that_are_no_text_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    comparison = lay_open(tmp_path, {"a\udcff.py": ORIGINAL, "b.py": HONEST})
    page = tmp_path / "page.html"
    write_page(page, to_html(comparison, title="a\udcff"))
    assert "a\N{REPLACEMENT CHARACTER}.py" in page.read_text(encoding="utf-8")


def test_one_work_is_nothing_to_compare(tmp_path: Path) -> None:
    page = to_html(lay_open(tmp_path, {"a.py": ORIGINAL}), title="a", what="files")
    assert "There is nothing to compare with" in page
    assert read_data(page)["pairs"] == []
