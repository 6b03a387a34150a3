"""A real browser: Debian's chromium without a window, driven by playwright."""

import shutil
from urllib.parse import urlsplit

import pytest

PHONE = {"width": 360, "height": 740}  # CSS pixels of a small telephone
HERE = ("", "127.0.0.1", "::1", "localhost")  # hosts of file:, data: and local addresses


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright (make test-browser)")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs chromium (make test-browser)")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()


def watched(page):
    """Two lists that fill as the page runs: its errors, and the addresses that it asks for."""
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("request", lambda request: requests.append(request.url))
    return errors, requests


@pytest.fixture
def page(browser):
    """A page of its own; the test fails if it logs an error or asks another host for anything."""
    opened = browser.new_page()
    errors, requests = watched(opened)
    yield opened
    opened.close()
    assert errors == []
    assert [url for url in requests if (urlsplit(url).hostname or "") not in HERE] == []


@pytest.fixture
def overflow():
    """How many pixels wider than the window a page is, on a telephone."""

    def measure(page) -> int:
        page.set_viewport_size(PHONE)
        return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    return measure
