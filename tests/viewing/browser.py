"""A real browser for tests: Debian's Chromium through Playwright, and pages of `pt2 view` in it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pt2kit.viewing.answers import Answers
from pt2kit.viewing.server import Server

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


def executable() -> str:
    """The browser; skips where there is none, unless PT2KIT_BROWSER says that it must be there."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        import playwright  # noqa: F401
    except ImportError:
        found = None
    if found is None:
        if os.environ.get("PT2KIT_BROWSER") == "required":
            pytest.fail("expected chromium and playwright, got none; run `make browser`")
        pytest.skip("chromium or playwright is not installed (`make browser`)")
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """A browser with a profile of its own, gone afterwards."""
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One page in the browser, what it asked for and what went wrong in it.

    Args:
        page: Playwright's page.
        base: the address it was served from, or of its file.
    """

    def __init__(self, page: Any, base: str) -> None:
        self.page, self.base = page, base
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))

    def go(self, address: str = "") -> Visit:
        """Open the page at an address and wait until it is drawn, or says that it cannot be."""
        self.page.goto(self.base + address)
        return self.settled()

    def settled(self) -> Visit:
        """Wait until nothing is loading."""
        self.page.wait_for_selector('html:not([data-state="loading"])', state="attached", timeout=60_000)
        self.page.wait_for_timeout(120)
        return self

    def data(self, key: str) -> str:
        """Return a state of the page."""
        return str(self.page.evaluate(f"document.documentElement.dataset.{key} ?? ''"))

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.page.inner_text(selector))

    def foreign(self) -> list[str]:
        """Requests that went anywhere but to the page's own server."""
        own = (self.base, "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]


@contextmanager
def visiting(
    browser: Any, file: Any, old: Any = None, *, data: Any = None, watch: bool = False, **options: Any
) -> Iterator[Visit]:
    """Serve a file, and a page that shows it."""
    answers = Answers(file, old, data=data, watch=watch)
    with Server(answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        context = browser.new_context(viewport={"width": 1300, "height": 850}, **options)
        try:
            yield Visit(context.new_page(), server.url)
        finally:
            context.close()
            server.shutdown()
            thread.join(10)
            answers.close()
