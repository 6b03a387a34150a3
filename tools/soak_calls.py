"""What a round of the soak test calls: the whole library on small fresh data."""

from __future__ import annotations

import contextlib
import io
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import mercer as mc
from mercer import datasets, estimators, linalg, methods, plot, preimages, theory
from mercer.cli import main
from mercer.explore import Table
from mercer.explore._views import Views
from tools.fuzz.checks import check_kernel, fit_and_use, load_damaged
from tools.fuzz.laws import check_engines, check_modes, check_preimage, draw

KERNELS: tuple[Callable[[float], mc.Kernel], ...] = (
    mc.Gaussian,
    mc.Laplace,
    lambda s: mc.Matern(2.5, s),
    lambda s: mc.RationalQuadratic(1.5, s),
    lambda s: mc.Polynomial(2, s, 1.0),
    lambda s: mc.Gaussian(s) + 0.5 * mc.Laplace(2.0 * s),
    lambda s: mc.Gaussian(s) * mc.Linear(),
    lambda s: mc.Gaussian(1.0).transform(mc.Scales([s, 1.0])),
)
SOLVERS = (mc.FixedPoint(), mc.MM(), mc.Newton(), mc.LBFGS(), mc.GradientDescent(),
           mc.Candidates(), mc.Distances(), None)  # fmt: skip


def kernel_values(rng: np.random.Generator) -> None:
    """Values and sums of kernels that no round before had, by every engine."""
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(7, 2))
    for make in KERNELS:
        kernel = make(rng.uniform(0.5, 2.0))
        check_kernel(kernel, X, Y)
        check_engines(kernel, X, rng.normal(size=40), Y)
    words = ["".join(rng.choice(list("abc"), 6)) for _ in range(5)]
    check_kernel(mc.Subsequences(2, 0.5), words, words)
    check_kernel(mc.Jaccard(), [set(word) for word in words], [{"a"}])


def large_sums(rng: np.random.Generator) -> None:
    """Sums in several threads, in blocks, and by Fourier transforms."""
    X = rng.normal(size=(3000, 2))
    psi = mc.mean_embedding(mc.Gaussian(rng.uniform(0.3, 0.6)), X)
    for engine in ("native", "blocked", "spectral"):
        with mc.options(engine=engine, n_jobs=2, working_memory=4):
            psi(X)
            psi.gradient(X[:100])


def caches(rng: np.random.Generator) -> None:
    """Kernels that no round before had fill the caches early."""
    X = rng.normal(size=(3, 2))
    for s in rng.uniform(0.5, 2.0, 20):
        psi = mc.mean_embedding(mc.Gaussian(s) + mc.Laplace(s), X)
        psi(X)
        preimages.lipschitz(mc.mean_embedding(mc.Gaussian(s), X))


def pre_images(rng: np.random.Generator) -> None:
    """Pre-images by some solvers, compression, and proofs."""
    X = rng.normal(size=(25, 2))
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    for i in rng.choice(len(SOLVERS), 3, replace=False):
        check_preimage(psi, SOLVERS[i])
    mc.preimage(mc.kernel_pca(mc.Gaussian(1.0), X, 3).project(mc.feature(mc.Gaussian(1.0), X)))
    mc.compress(psi, 5, random_state=0)
    preimages.global_minimum(psi, 1e-2, 200)


def densities(rng: np.random.Generator) -> None:
    """Densities, modes, bandwidths and segments."""
    X = np.r_[rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 4.0]
    density = mc.kernel_density(mc.Gaussian(0.8), X)
    check_modes(density, None)
    methods.significant_modes(X)
    methods.segment(rng.random((8, 8, 3)))
    mc.convergence_bandwidth(mc.Gaussian(1.0), X)


def hypothesis_tests(rng: np.random.Generator) -> None:
    """Tests of samples, of independence and of a fit."""
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    mc.mmd_test(X, Y, random_state=0)
    mc.hsic_test(X, X[::-1], random_state=0)
    methods.coco_test(X, X**2, random_state=0, n_permutations=50)
    mc.ksd_test(X, lambda x: -x, random_state=0)


def fits(rng: np.random.Generator) -> None:
    """Some estimators, drawn at random: fit, use, go on, save, load."""
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    labels = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0.0, "a", "b")
    names = [name for name in estimators.__all__ if name != "KernelEstimator"]
    for name in rng.choice(names, 5, replace=False):
        model = getattr(estimators, name)()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        if name == "KernelDenoiser":
            model.set_params(noise=0.3)
        fit_and_use(model, X, Y, None, labels if is_classifier(model) else X[:, 0])


def algebra(rng: np.random.Generator) -> None:
    """Low rank, random features, solves and theory."""
    X = rng.normal(size=(60, 2))
    linalg.nystrom(mc.Gaussian(1.0), X, 10, random_state=0)
    linalg.pivoted_cholesky(mc.Gaussian(1.0), X)
    linalg.solve(mc.Gaussian(1.0), X, X[:, 0], 0.1)
    linalg.random_features(mc.Laplace(1.0), 2, 20, random_state=0)(X)
    theory.hellinger([0.5, 0.5], [0.1, 0.9])
    theory.learning.hoeffding(np.ones(9), 2.0)
    datasets.spiral(20, random_state=0)


OUTPUT = io.StringIO()  # one for all commands: click keeps each stream that it wrote to


def files(rng: np.random.Generator) -> None:
    """Damaged files, and commands."""
    with contextlib.suppress(mc.MercerError):
        load_damaged(mc.mean_embedding(mc.Gaussian(1.0), rng.normal(size=(9, 2))),
                     int(rng.integers(10**9)))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder, "a.csv"), Path(folder, "b.csv")
        np.savetxt(table, rng.normal(size=(30, 2)), delimiter=",", header="x,y", comments="")
        for words in ("anomalies", "cluster", "denoise --noise 0.3", "impute", "no-such-command"):
            OUTPUT.seek(0)
            OUTPUT.truncate()
            with contextlib.redirect_stderr(OUTPUT), contextlib.redirect_stdout(OUTPUT):
                main([*words.split(), str(table), "-o", str(out), "--force"])


def edges(rng: np.random.Generator) -> None:
    """Figures, reports, and the answers of the interactive page."""
    X = rng.normal(size=(20, 2))
    draw(plot.plot_element, mc.kernel_density(mc.Gaussian(1.0), X))
    mc.report(mc.KernelDensity().fit(X), X).html()
    views = Views(Table("a.csv", ("x", "y"), X), lambda name, _: Table(name, ("x", "y"), X + 1.0))
    asked = {"columns": [0, 1], "kernel": "gaussian", "bandwidth": 0.4}
    views.load("b.csv", b"")
    for question in (views.rows, views.landscape, views.witness, views.test):
        question(asked)
    views.unload({})


def errors(rng: np.random.Generator) -> None:
    """Input that is refused."""
    X = rng.normal(size=(9, 2))
    wrong: tuple[Callable[[], Any], ...] = (
        lambda: mc.Gaussian(-1.0),
        lambda: mc.Gaussian(1.0)(X * np.nan),
        lambda: mc.KernelPCA(100).fit(X[:0]),
        lambda: mc.SVC().fit(X, np.ones(9)),
        lambda: mc.load(__file__),
        lambda: mc.preimage(mc.mean_embedding(mc.Gaussian(1.0), X), start=X[:, :1]),
    )
    for function in wrong:
        try:
            function()
        except (mc.MercerError, ValueError):
            continue
        raise AssertionError("wrong input was accepted")


def interrupts(rng: np.random.Generator) -> None:
    """Long calls that are interrupted in the middle."""
    X = rng.normal(size=(20_000, 8))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    psi = mc.mean_embedding(mc.Laplace(1.0), X)
    before = signal.signal(signal.SIGALRM, stop)
    for function in (psi, psi.gradient, lambda rows: mc.MeanShift(1.0).fit(rows)):
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        try:
            function(X)
        except KeyboardInterrupt:
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        raise AssertionError("a call ended before it was interrupted")
    signal.signal(signal.SIGALRM, before)


def threads(rng: np.random.Generator) -> None:
    """One estimator in several threads, which end."""
    X = rng.normal(size=(200, 2))
    model = mc.KernelPCA(3, random_state=0).fit(X)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(model.transform, [X] * 3))


CALLS = (kernel_values, large_sums, caches, pre_images, densities, hypothesis_tests, fits,
         algebra, files, edges, errors, interrupts, threads)  # fmt: skip
