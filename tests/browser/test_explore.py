"""`mercer explore` in a real browser: move the slider, click, load a second file."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.browser.conftest import watched

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # milliseconds; the machine may be busy

NAME = "weight <i>kg</i>"
REFINED = re.compile("local maxim")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three groups far apart in a.csv; b.csv lacks one of them."""
    folder = tmp_path_factory.mktemp("explore")
    rng = np.random.default_rng(0)
    groups = [c + rng.normal(size=(80, 2)) * [1.0, 9.0] for c in ([0, 0], [8, 0], [4, 90])]
    for name, rows in (("a.csv", np.concatenate(groups)), ("b.csv", np.concatenate(groups[:2]))):
        lines = [f"{x:.3f},{y:.2f},row {i}" for i, (x, y) in enumerate(rows)]
        lines[3] = "1.5,,row 3"
        (folder / name).write_text("\n".join([f"height,{NAME},label", *lines]) + "\n")
    (folder / "other.csv").write_text("height,age\n1,2\n3,4\n5,6\n")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", "explore", "a.csv", "--no-browser"],
        cwd=folder, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    process.stdout.close()


@pytest.fixture
def explorer(page, address):
    """The page after its first picture."""
    page.goto(address)
    expect(page.locator("#detail")).to_have_text(REFINED)
    return page


def number_of_modes(page):
    expect(page.locator("#detail")).to_have_text(REFINED)
    return int(page.locator("#count").inner_text().split()[0])


def canvas(page):
    return page.locator("#plot").screenshot()


def expect_change(page, before):
    """Wait until the picture is another."""
    for _ in range(300):
        if canvas(page) != before:
            return
        page.wait_for_timeout(100)
    pytest.fail("the picture stayed the same")


def click(page, across, up):
    """Click at these shares of the width and height of the plot."""
    box = page.locator("#plot").bounding_box()
    page.mouse.click(box["x"] + across * box["width"], box["y"] + up * box["height"])


def test_the_first_picture(explorer):
    expect(explorer.locator("#count")).to_have_text("3 modes")
    expect(explorer.locator("#detail")).to_have_text("each proved to be a local maximum")
    expect(explorer.locator("#file")).to_have_text("a.csv · 239 of 240 rows")
    expect(explorer.locator("#modes tbody tr")).to_have_count(3)
    expect(explorer.locator("#modes th")).to_have_text(["mode", "height", NAME, "rows"])
    facts = explorer.locator("#used li")
    expect(facts).to_have_text(
        ["a.csv: 240 rows", re.compile("^1 row left out"), "column label left out: text"],
        use_inner_text=False,
    )
    assert explorer.locator("i").count() == 0  # names are text, not HTML


def test_the_slider_changes_the_number_of_modes(explorer):
    before = canvas(explorer)
    explorer.locator("#bandwidth").fill("-0.9")
    expect(explorer.locator("#count")).not_to_have_text("3 modes")
    assert number_of_modes(explorer) > 10
    expect_change(explorer, before)
    explorer.locator("#bandwidth").fill("1")
    expect(explorer.locator("#count")).to_have_text("1 mode")
    expect(explorer.locator("#detail")).to_have_text("proved to be a local maximum")


def test_only_the_last_of_many_moves_counts(explorer):
    """Like a person who drags the slider to and fro."""
    explorer.evaluate(
        """async () => {
            const slider = document.getElementById("bandwidth");
            for (let i = 0; i < 60; i++) {
                slider.value = Math.sin(i);
                slider.dispatchEvent(new Event("input"));
                await new Promise((done) => setTimeout(done, 5));
            }
            slider.value = 0;
            slider.dispatchEvent(new Event("input"));
        }"""
    )
    expect(explorer.locator("#count")).to_have_text("3 modes")
    assert number_of_modes(explorer) == 3


@pytest.mark.parametrize("columns", [1, 2])
def test_a_click_shows_an_ascent_and_a_pre_image(columns, explorer):
    if columns == 1:
        explorer.locator("#up").select_option("(one column)")
        expect(explorer.locator("#modes th")).to_have_text(["mode", "height", "rows"])
        expect(explorer.locator("#detail")).to_have_text(REFINED)
    before = canvas(explorer)
    click(explorer, 0.35, 0.75)
    expect(explorer.locator("#preimage")).to_contain_text("on 10 kernel principal components")
    told = explorer.locator("#ascent").inner_text()
    steps = re.fullmatch(r"Mean shift goes from (.*) to (.*) in (\d+) steps?\. ?", told)
    assert steps, told
    assert int(steps[3]) > 2
    expect_change(explorer, before)
    explorer.locator("#components").fill("3")
    explorer.locator("#components").press("Enter")
    expect(explorer.locator("#preimage")).to_contain_text("on 3 kernel principal components")
    explorer.locator("#bandwidth").fill("1")  # the path follows the bandwidth
    expect(explorer.locator("#ascent")).not_to_have_text(told)


def test_a_second_file_is_compared(explorer, folder):
    explorer.locator("#second").set_input_files(folder / "b.csv")
    expect(explorer.locator("#pvalue")).to_have_text(re.compile(r"p = 0\.\d+"))
    assert float(explorer.locator("#pvalue").inner_text()[4:]) < 0.01
    expect(explorer.locator("#test")).to_contain_text("a difference as large would be rare")
    expect(explorer.locator("#count")).to_have_text("Difference")
    expect(explorer.locator("#legend")).to_contain_text("Blue: more of the first file, a.csv.")
    before = canvas(explorer)
    explorer.locator("#bandwidth").fill("-0.5")
    expect(explorer.locator("#length")).to_contain_text("0.1")
    expect_change(explorer, before)
    explorer.get_by_label("density and modes").check()
    expect(explorer.locator("#detail")).to_have_text(REFINED)
    explorer.locator("#remove").click()
    expect(explorer.locator("#views")).to_be_hidden()
    expect(explorer.locator("#pvalue")).to_be_empty()


def test_a_file_compared_with_itself_is_not_called_different(explorer, folder):
    explorer.locator("#second").set_input_files(folder / "a.csv")
    expect(explorer.locator("#test")).to_contain_text("does not depend on the slider")
    assert "would be rare" not in explorer.locator("#test").inner_text()
    explorer.locator("#remove").click()
    expect(explorer.locator("#pvalue")).to_be_empty()


def test_errors_are_told_in_words(browser, address, folder):
    page = browser.new_page()
    errors, _ = watched(page)
    page.goto(address)
    expect(page.locator("#detail")).to_have_text(REFINED)
    page.locator("#second").set_input_files(folder / "other.csv")
    expect(page.locator("#error")).to_contain_text(f"other.csv has no column '{NAME}'")
    page.locator("#across").select_option(NAME)
    expect(page.locator("#error")).to_have_text("choose two different columns")
    page.locator("#up").select_option("height")
    expect(page.locator("#error")).to_be_hidden()
    page.route("**/rows", lambda route: route.abort())
    page.locator("#up").select_option("(one column)")
    expect(page.locator("#error")).to_contain_text("mercer does not answer")
    page.close()
    assert all("Failed to load resource" in error for error in errors)


def test_every_kernel_draws(explorer):
    for kernel in ("Laplace", "Matérn 3/2", "Gaussian"):
        before = canvas(explorer)
        explorer.locator("#kernel").select_option(kernel)
        expect_change(explorer, before)
        expect(explorer.locator("#detail")).to_have_text(re.compile("local maxim|stopped"))


def test_on_a_telephone(explorer, overflow):
    assert overflow(explorer) <= 0
    explorer.locator("#bandwidth").fill("1")
    expect(explorer.locator("#count")).to_have_text("1 mode")
    click(explorer, 0.6, 0.6)
    expect(explorer.locator("#ascent")).to_contain_text("Mean shift goes from")
    assert overflow(explorer) <= 0
