"""The checks of the browser fixture notice what they should."""

from tests.browser.conftest import watched


def test_errors_and_requests_are_noticed(browser):
    page = browser.new_page()
    errors, requests = watched(page)
    page.goto("data:text/html,<img src='http://127.0.0.1:9/x.png'><script>nothing()</script>")
    page.close()
    assert any("nothing is not defined" in error for error in errors)
    assert "http://127.0.0.1:9/x.png" in requests


def test_a_wide_page_overflows_a_telephone(page, overflow):
    page.set_content("<!doctype html><div style='width: 500px'>wide</div>")
    assert overflow(page) > 100


def test_text_does_not_overflow_a_telephone(page, overflow):
    page.set_content("<!doctype html><p>words that break between lines " * 20)
    assert overflow(page) <= 0
