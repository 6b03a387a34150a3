"""Reports in a real browser: no errors, no requests, and readable on a telephone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import mercer as mc
from tests.browser.conftest import watched

SCRIPT = "<script>document.title = 'run'</script>"
LONG = "a_name_without_any_place_to_break_it_" * 4


def reports():
    """A few reports, with names that try to run."""
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=[SCRIPT, LONG, "c", "<b>d"])
    holes = frame.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    labels = np.array([SCRIPT, LONG, "$x$"])[y]
    digits = load_digits().data[:100]
    psi = mc.mean_embedding(mc.Gaussian(0.5), X[:, :2])
    yield "imputer", mc.report(mc.KernelImputer().fit(holes), holes)
    yield "svc", mc.report(mc.SVC().fit(frame, labels), frame, labels)
    yield "mean shift", mc.report(mc.MeanShift().fit(frame))
    yield "test", mc.report(mc.mmd_test(frame[:50], frame[50:], n_permutations=99), frame)
    yield (
        "denoiser",
        mc.report(mc.KernelDenoiser(noise=2.0).fit(digits), digits, image_shape=(8, 8)),
    )
    yield "pre-image", mc.report(mc.preimage(psi), psi)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, report in reports():
        report.save(folder / f"{name}.html")
    return folder


NAMES = ("imputer", "svc", "mean shift", "test", "denoiser", "pre-image")


@pytest.mark.parametrize("name", NAMES)
def test_reports_load_nothing_and_run_nothing(browser, saved, name):
    page = browser.new_page()
    errors, requests = watched(page)
    page.goto((saved / f"{name}.html").as_uri())
    assert page.title() != "run"
    assert page.locator("script").count() == 0
    pictures = page.locator("img").evaluate_all("all => all.map(i => i.naturalWidth)")
    assert pictures
    assert min(pictures) > 300  # they are shown
    page.close()
    assert errors == []
    assert [url for url in requests if not url.startswith("data:")] == [
        (saved / f"{name}.html").as_uri()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_reports_fit_a_telephone(page, overflow, saved, name):
    page.goto((saved / f"{name}.html").as_uri())
    page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true })")
    assert overflow(page) <= 0


def test_a_name_is_shown_as_it_is(page, saved):
    page.goto((saved / "svc.html").as_uri())
    assert SCRIPT in page.locator("article").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page, saved, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto((saved / "svc.html").as_uri())
    ink = page.locator("article p").first.evaluate("e => getComputedStyle(e).color")
    assert ink == {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}[scheme]
