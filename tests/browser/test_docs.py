"""The built documentation (`make check-docs`): links, formulas, search and a telephone's window."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.conftest import HERE, watched

BUILT = Path(__file__).resolve().parents[2] / "build" / "docs"
PAGES = sorted(BUILT.rglob("*.html"))
pytestmark = pytest.mark.skipif(not PAGES, reason="needs the documentation (make check-docs)")

FORMULAS_ARE_DRAWN = """() => document.querySelectorAll('.math').length
    === document.querySelectorAll('.math mjx-container').length"""


class Names(HTMLParser):
    """The anchors of a page, and the addresses of its links, pictures and scripts."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.addresses = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in ("id", "name"):
                self.anchors.add(value)
            elif key in ("href", "src") and value:
                self.addresses.add(value)


def broken_links(pages):
    """Addresses inside the documentation that no file, or no anchor of a page, answers to."""
    names = {path: Names(path.read_text(encoding="utf-8")) for path in pages}
    found = []
    for path, page in names.items():
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (
                anchor and target in names and anchor not in names[target].anchors
            ):
                found.append(f"{path.name}: {address}")
    return found


def test_links_lead_somewhere():
    assert broken_links(PAGES) == []


def test_broken_links_are_noticed(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(
        '<p id="here"><a href="#here"><a href="#there"><a href="b.html"><a href="http://x">'
    )
    assert sorted(broken_links([page])) == ["a.html: #there", "a.html: b.html"]


def test_each_page_fits_a_telephone_and_asks_for_nothing(browser, overflow):
    found = {}
    page = browser.new_page()
    errors, requests = watched(page)
    for path in PAGES:
        page.goto(path.as_uri())
        page.wait_for_function(FORMULAS_ARE_DRAWN)
        wide = overflow(page)
        elsewhere = [url for url in requests if (urlsplit(url).hostname or "") not in HERE]
        undrawn = page.locator("[data-mjx-error]").count()
        if wide > 0 or errors or elsewhere or undrawn:
            found[path.name] = (wide, list(errors), elsewhere, undrawn)
        errors.clear()
        requests.clear()
    page.close()
    assert found == {}


def test_search_needs_no_network(page):
    page.goto(f"{(BUILT / 'search.html').as_uri()}?q=impute")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a", has_text="KernelImputer").count() > 0
