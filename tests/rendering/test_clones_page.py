import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import PHONE, launch, needs_chromium, visit
from tests.rendering.test_clones import NASTY, lay_open
from tests.search.examples import PROGRAMS
from tests.search.test_copies import COPY, HONEST, ORIGINAL
from treecaps.rendering.clones import to_html

pytestmark = needs_chromium
JAVA = (PROGRAMS / "bubble-sort" / "BubbleSort.java").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as browser:
        yield browser


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("works")
    renamed = ORIGINAL.replace("median", "mid").replace("values", "xs")
    nasty = NASTY.replace("/", "")
    texts = {
        "ann.py": ORIGINAL,
        "bob.py": f"{renamed}\n# {NASTY}\nprint('{NASTY[:9]}')\n",
        "cem.py": COPY,
        "dan.py": HONEST,
        "eve.java": JAVA,
        "fay.py": (PROGRAMS / "bubble-sort" / "bubble_sort.py").read_text(),
        f"{nasty}.java": JAVA.replace("numbers", "list"),
    }
    page = folder / "page.html"
    page.write_text(to_html(lay_open(folder, texts), title=NASTY, what="files"))
    return page


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    with visit(browser, file.as_uri()) as page:
        yield page


def choose(page: Page, value: int) -> None:
    page.locator("#threshold").fill(str(value))


def open_pair(page: Page, one: str, other: str) -> None:
    choose(page, 0)
    row = page.locator("#pairs tr", has_text=one).filter(has_text=other)
    row.get_by_role("link").first.click()


def test_all_follows_the_threshold(page: Page) -> None:
    choose(page, 100)
    expect(page.locator("#count")).to_have_text("1 of 21 pairs are copied 1.00 or more.")
    expect(page.locator("#groups li")).to_have_count(1)
    expect(page.locator("#pairs tbody tr")).to_have_count(1)
    expect(page.locator("#graph circle")).to_have_count(2)
    expect(page.locator("#graph a")).to_have_count(1)
    expect(page.locator("#bars .on")).to_have_count(0)
    choose(page, 50)
    expect(page.locator("#graph circle")).to_have_count(5)
    expect(page.locator("#groups li")).to_have_count(2)
    expect(page.locator("#groups li").first).to_contain_text(re.compile("^3 files, copied 0"))
    expect(page.locator("#bars .on")).to_have_count(10)
    choose(page, 0)
    expect(page.locator("#pairs tbody tr")).to_have_count(21)
    page.get_by_label("alike").check()
    expect(page.locator("#count")).to_contain_text("pairs are alike 0.95 or more")


def test_pairs_are_sorted_and_sought(page: Page) -> None:
    choose(page, 0)
    shown = page.locator("#pairs tbody tr td:first-child")
    down = [float(text) for text in shown.all_text_contents()]
    assert down == sorted(down, reverse=True)
    page.get_by_role("button", name="copied").click()
    assert [float(text) for text in shown.all_text_contents()] == sorted(down)
    page.get_by_label("Names with").fill("DAN")
    expect(page.locator("#pairs tbody tr")).to_have_count(6)
    page.get_by_label("Names with").fill("")
    page.locator("#graph [data-name='ann.py'] circle").click()
    expect(page.locator("#pairs tbody tr")).to_have_count(6)


def test_a_part_leads_to_its_partner(page: Page) -> None:
    open_pair(page, "ann.py", "cem.py")
    expect(page.locator("#names")).to_have_text("ann.py and cem.py")
    expect(page.locator("#overview")).to_be_hidden()
    for side, text in (("left", ORIGINAL), ("right", COPY)):
        lines = page.locator(f"#{side} pre div").all_text_contents()
        assert [re.sub(r"^\d+", "", line, count=1) for line in lines] == text.rstrip().split("\n")
    part = page.locator("#left .part", has_text="def read")
    part.click()
    partner = page.locator("#right .part", has_text="def load")
    expect(partner).to_have_class("part on")
    assert partner.get_attribute("data-id") == part.get_attribute("data-id")
    page.mouse.move(0, 0)
    expect(partner).to_have_class("part on")
    page.locator("#right .part:not(.on)").first.focus()
    expect(partner).to_have_class("part")
    page.keyboard.press("Enter")
    assert page.locator("#left .on").count() > 0
    page.keyboard.press("Escape")
    expect(page.locator("#overview")).to_be_visible()
    page.go_back()
    expect(page.locator("#names")).to_have_text("ann.py and cem.py")


def test_lines_correspond_across_languages(page: Page) -> None:
    open_pair(page, "eve.java", "fay.py")
    expect(page.locator("#left h3")).to_have_text("eve.java java")
    expect(page.locator("#right h3")).to_have_text("fay.py python")
    page.locator("#left .like", has_text="changed = true;").hover()
    expect(page.locator("#right .on")).to_have_text("swapped = True")


def test_names_and_code_are_shown_and_never_run(page: Page) -> None:
    page.locator("#graph a").last.focus()
    choose(page, 100)
    page.locator("#pairs a").first.click()
    expect(page.locator("#names")).to_contain_text("<img src=x")
    assert page.locator("main img, main script").count() == 0
    assert page.locator("h1").text_content() == NASTY


def test_phones_and_dark_rooms(browser: Browser, file: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        with visit(browser, file.as_uri(), color_scheme=scheme, **PHONE) as page:
            choose(page, 0)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.locator("#pairs a").first.tap()
            expect(page.locator("#right pre")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.locator("#left .part").first.tap()
            assert page.locator("#right .on").count() > 0
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(22, 24, 27)"]
