"""Short forms of results in notebooks."""

import numpy as np
import pytest

import mercer as mc
from mercer import _html
from mercer._html import Check, Summary, short_form

NASTY = "<img src=x onerror=alert(1)>&"


def test_all_text_is_escaped():
    page = short_form(
        Summary(title=NASTY, asked=NASTY, found=NASTY, facts={NASTY: NASTY},
                checks=(Check("note", NASTY),), page=NASTY)
    )  # fmt: skip
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;&amp;") == 5


def test_results_have_short_forms():
    X = np.random.default_rng(0).normal(size=(20, 1))
    assert "Comparison of samples" in mc.mmd_test(X, X + 1.0, n_permutations=19)._repr_html_()
    assert "Pre-image" in mc.preimage(mc.mean_embedding(mc.Gaussian(1.0), X))._repr_html_()


@pytest.fixture
def address(monkeypatch):
    """Pretend that the package names the address of its documentation, or none."""

    def publish(*urls):
        _html.docs_address.cache_clear()
        metadata = type("Metadata", (), {"get_all": lambda self, name: list(urls) or None})()
        monkeypatch.setattr("importlib.metadata.metadata", lambda name: metadata)

    yield publish
    _html.docs_address.cache_clear()


def test_links_lead_to_the_documentation_of_the_package(address):
    summary = Summary(title="t", asked="a", found="f", facts={}, page="ridge")
    address("Source, https://a.example", "Documentation, https://b.example/docs/")
    assert "<a href='https://b.example/docs/ridge.html'>" in short_form(summary)
    address()
    assert "<a " not in short_form(summary)
