"""Pages in a real browser, which must complain of nothing and ask nobody else."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

_CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    _CHROMIUM is None, reason="there is no chromium to show the page with: apt install chromium"
)


@contextmanager
def launch() -> Iterator[Browser]:
    """Start Chromium, and end it."""
    with sync_playwright() as playwright:
        # Nothing is loaded from elsewhere, and root has no sandbox.
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


_DESKTOP: dict[str, Any] = {"viewport": {"width": 1200, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """Open a page, and check at the end that all it asked for is below its own address.

    Args:
        browser: What opens it.
        url: Its address.
        options: Those of a context of Playwright; a desktop by default.
    """
    context = browser.new_context(**(options or _DESKTOP))
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text))

    def note_request(asked: Request) -> None:
        if not asked.url.startswith(url):
            wrong.append(asked.url)

    page.on("request", note_request)
    page.goto(url)
    yield page
    assert wrong == []
    assert page.evaluate("window.ran") is None
    context.close()
