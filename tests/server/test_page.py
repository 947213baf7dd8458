import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import PHONE, launch, needs_chromium, visit
from tests.server.conftest import PROGRAMS, Running

pytestmark = needs_chromium
NASTY = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    with visit(browser, server.url) as page:
        expect(page.locator("#sample option")).not_to_have_count(1)
        yield page


def test_a_sample_is_told_and_explained(page: Page) -> None:
    page.get_by_label("Sample").select_option("binary_search.c")
    expect(page.locator("#verdict")).to_have_text(re.compile("binary-search"))
    expect(page.locator("#language option").first).to_have_text("guessed: c")
    expect(page.locator("#why")).to_be_visible()
    assert page.locator("#bars li").count() == 4
    source = page.locator("#source div").all_text_contents()
    code = page.get_by_label("Code").input_value().split("\n")
    assert [re.sub(r"^ *\d+ (?: *-?[\d.]+ %| {7})  ", "", line) for line in source] == code
    assert page.locator("#source [data-n][style*=background]").count() > 5
    assert page.locator("#tree summary").first.text_content() == "translation_unit"
    expect(page.locator("#alike")).to_be_visible()
    page.locator("#matches summary").first.click()
    expect(page.locator("#matches pre").first).to_contain_text("return")


def test_code_is_shown_and_never_run(page: Page) -> None:
    code = f'char *a = "{NASTY}"; // {NASTY}\n{NASTY}\nint é = 1;'
    page.get_by_label("Code").fill(code)
    page.get_by_label("Language").select_option("c")
    expect(page.locator("#why")).to_be_visible()
    shown = "\n".join(page.locator("#source div").all_text_contents())
    assert shown.count(NASTY) == 3
    assert "int é = 1;" in shown
    assert page.evaluate("window.ran") is None
    assert page.locator("main script, main img").count() == 0


def test_the_keyboard_is_enough(page: Page) -> None:
    order = []
    for _ in range(5):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert order == ["A", "sample", "file", "language", "code"]
    page.keyboard.insert_text((PROGRAMS / "gcd" / "gcd.py").read_text())
    page.keyboard.press("Control+Enter")
    expect(page.locator("#verdict")).to_have_text(re.compile("gcd"))
    expect(page.locator("#verdict")).to_be_focused()
    expect(page.locator("#language option").first).to_have_text("guessed: python")


def test_what_is_wrong_is_said(page: Page) -> None:
    page.get_by_role("button", name="Tell").click()
    expect(page.get_by_role("status")).to_contain_text("There is no code yet")


def test_an_empty_program_is_called_so(page: Page) -> None:
    page.get_by_label("Code").fill("# a comment and nothing else\n")
    page.get_by_label("Language").select_option("python")
    expect(page.locator("#verdict")).to_have_text("unknown, the program is empty")
    expect(page.get_by_role("button", name="Tell")).to_be_enabled()
    expect(page.get_by_role("status")).to_be_hidden()
    expect(page.locator("#bars li")).to_have_count(0)
    expect(page.locator("#why")).to_be_hidden()


def test_why_nothing_can_be_told_is_said(page: Page) -> None:
    page.get_by_label("Code").fill("Dear Ann,\n\nshall I bring the books on Monday?\n\nTom\n")
    page.get_by_label("Language").select_option("python")
    expect(page.locator("#verdict")).to_have_text("unknown, most of it is not python")
    expect(page.get_by_role("status")).to_be_hidden()
    expect(page.locator("#why")).to_be_hidden()
    expect(page.locator("#alike")).to_be_hidden()


def test_a_file_may_be_opened(page: Page) -> None:
    page.locator("#file").set_input_files(PROGRAMS / "stack" / "stack.go")
    expect(page.locator("#verdict")).to_have_text(re.compile("stack"))
    expect(page.locator("#language option").first).to_have_text("guessed: go")
    expect(page.locator("#why")).to_be_visible()


def test_phones_and_dark_rooms(browser: Browser, server: Running) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        with visit(browser, server.url, color_scheme=scheme, **PHONE) as page:
            expect(page.locator("#sample option")).not_to_have_count(1)
            page.get_by_label("Sample").select_option("trie.ts")
            expect(page.locator("#why")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(22, 24, 27)"]
