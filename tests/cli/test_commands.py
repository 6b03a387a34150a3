"""Options that the commands share, kernels as words, and progress bars."""

import io
import sys
import time

import numpy as np

import mercer as mc
from mercer import _progress
from mercer._words import listed
from mercer.cli._options import parse_kernel
from mercer.cli._terminal import Progress
from mercer.estimators import KernelDenoiser, KernelNovelty
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from tests.test_progress import Terminal, until

from .test_tables import numbers


def test_quiet(run, files):
    for command in ("denoise", "impute", "anomalies"):
        ran = run(command, "measured.csv", "-o", f"{command}.csv", "--quiet")
        assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_the_same_seed_gives_the_same_file(run, files):
    for name in ("a.csv", "b.csv"):
        run("denoise", "measured.csv", "-o", name, "--seed", "3")
    assert (files["folder"] / "a.csv").read_bytes() == (files["folder"] / "b.csv").read_bytes()


def test_it_is_said_where_denoising_is_of_no_use(run, files):
    ran = run("denoise", "measured.csv", "-o", "a.csv", "--noise", "1e-4")
    assert ran.code == 0, ran.err
    assert "trust       0.00" in ran.out
    assert ran.err.startswith("note: a change would do more harm than good")
    assert run("denoise", "measured.csv", "-o", "b.csv", "--noise", "0").err == ""


def test_components(run, files):
    ran = run("denoise", "measured.csv", "-o", "out.csv", "--components", "5")
    assert ran.code == 0, ran.err
    assert "components  5 (effectively 5.0)" in ran.out
    X = numbers(files["folder"] / "out.csv", "x", "y") / [1.0, 10.0]
    assert np.abs(np.linalg.norm(X, axis=1) - 1.0).mean() < 0.1


def test_a_given_kernel_is_in_the_units_of_the_data(run, files):
    X = np.load(files["folder"] / "complete.npy") * [1.0, 10.0, 1.0, 0.1]
    np.save("t.npy", X)
    run("anomalies", "t.npy", "-o", "a.npz", "--kernel", "gaussian:3")
    run("denoise", "t.npy", "-o", "b.npy", "--kernel", "laplace:30", "--noise", "0.5")
    novelty = KernelNovelty(Gaussian(3.0), random_state=0).fit(X)
    with np.load("a.npz") as found:
        np.testing.assert_allclose(found["score"], -novelty.score_samples(X), rtol=1e-9)
    model = KernelDenoiser(kernel=Laplace(30.0), noise=0.5, random_state=0).fit(X)
    np.testing.assert_allclose(np.load("b.npy"), model.transform(X), rtol=1e-9)


def test_constant_columns_are_scaled_without_dividing_by_zero(run, files):
    X = np.load(files["folder"] / "complete.npy")
    X[:, 2] = 0.1  # its standard deviation is rounding, not 0
    np.save("t.npy", X)
    ran = run("denoise", "t.npy", "-o", "out.npy", "--noise", "0.3")
    assert (ran.code, ran.err) == (0, "")
    np.testing.assert_allclose(np.load("out.npy")[:, 2], 0.1, rtol=1e-12)


def test_kernels_as_words():
    assert parse_kernel("auto") == "auto"
    assert parse_kernel("Gaussian:0.5") == Gaussian(0.5)
    assert parse_kernel("matern:2.5,3") == Matern(2.5, 3.0)
    assert parse_kernel("polynomial:2") == Polynomial(2)
    assert parse_kernel("polynomial:2,1,0") == Polynomial(2, 1.0, 0.0)
    assert parse_kernel("linear") == Linear()
    assert parse_kernel("rbf:2") == Gaussian(2.0)


def test_lists_of_many():
    assert listed("abc") == "a, b, c"
    assert listed(range(10), 4) == "0, 1, 2 and 7 more"


def test_bars_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(_progress, "_OFTEN", 0.01)
    for stream, quiet, shown in (
        (Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        for i in Progress(quiet).each([0, 1, 2], "working"):
            wait = until if shown else lambda *_: time.sleep(0.05)
            wait(stream, f"] {i}/3")
        with Progress(quiet).waiting("learning"):
            wait(stream, "learning: ")
        assert shown or not stream.getvalue()


def test_the_bar_names_the_slow_parts_of_a_fit(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(_progress, "_OFTEN", 0.001)
    X = np.random.default_rng(0).normal(size=(60, 2))
    with Progress().waiting("learning"):
        mc.MeanShift(bandwidth=0.3).fit(X)
        until(terminal, "learning: curvature")
