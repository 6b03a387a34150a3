"""`--report`: a page beside the result of each command."""

import os
import shlex

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

COMMANDS = {
    "denoise measured.csv -o out.csv --noise 0.2": "Denoising",
    "impute measured.csv -o out.csv": "Filling in missing values",
    "anomalies measured.csv -o out.csv": "Novelty detection",
    "cluster measured.csv -o out.csv": "Mean shift clustering",
    "fit measured.csv --target y -o out.mercer": "Kernel ridge regression",
    "fit measured.csv --target kind -o out.mercer": "Kernel logistic regression",
    "test two-sample measured.csv new.csv --permutations 99": "Comparison of samples",
    "test independence measured.csv --x x --y y --permutations 99": "Independence test",
    "test fit measured.csv --columns x --to norm:0,1 --permutations 99": "Goodness-of-fit test",
}


@pytest.fixture
def files(tmp_path, rng):
    for name in ("measured", "new"):
        rows = rng.normal(size=(30, 2))
        kinds = [["<b>small", "large"][int(x > 0.0)] for x in rows[:, 0]]
        lines = [f"{x:.4f},{y:.4f},{kind}" for (x, y), kind in zip(rows, kinds, strict=True)]
        (tmp_path / f"{name}.csv").write_text("x,y,kind\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_write_reports(run, files, tmp_path, words):
    ran = run(*shlex.split(words), "--report", "page.html")
    assert ran.code == 0, ran.err
    assert "report" in ran.out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<h1>{COMMANDS[words]}" in page
    assert f"mercer {words} --report page.html" in page  # how to repeat it
    assert "<b>small" not in page


def test_reports_are_refused_before_any_work(run, files, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    for words, sentence in {
        "cluster measured.csv -o out.csv --report page.html": "exists already",
        "cluster measured.csv -o out.csv --report page.txt": ".html",
        "cluster measured.csv -o out.csv --report -": "file of its own",
        "fit measured.csv --target y -o out.mercer --report page.html": "exists already",
        "test two-sample measured.csv new.csv --report page.html": "exists already",
        "test two-sample measured.csv new.csv --report no/page.html": "does not exist",
    }.items():
        ran = run(*words.split())
        assert (ran.code, sentence in ran.err) == (2, True), ran.err
    assert not (tmp_path / "out.csv").exists()
    assert (tmp_path / "page.html").read_text() == "mine"
    ran = run(*shlex.split("test two-sample measured.csv new.csv --report page.html --force"))
    assert ran.code == 0
    assert (tmp_path / "page.html").read_text() != "mine"


def test_images_are_shown_in_reports(run, tmp_path, rng):
    from PIL import Image

    (tmp_path / "scans").mkdir()
    for i in range(12):
        pixels = (255 * rng.random((6, 9))).astype("uint8")
        Image.fromarray(pixels).save(tmp_path / "scans" / f"{i}.png")
    assert run(*shlex.split("denoise scans -o out --noise 0.1 --report page.html")).code == 0
    assert "Images before and after denoising" in (tmp_path / "page.html").read_text("utf-8")


def test_a_file_name_that_is_not_unicode(run, files, tmp_path):
    name = os.fsdecode(b"\xff.csv")
    (tmp_path / "measured.csv").rename(tmp_path / name)
    ran = run("anomalies", name, "-o", "out.csv", "--report", "page.html")
    assert ran.code == 0, ran.err
    assert "\\udcff.csv" in (tmp_path / "page.html").read_text("utf-8")
