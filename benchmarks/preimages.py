"""Pre-images: a thousand digits, the direct solvers, evaluations to convergence, and memory.

The digits are '2's of MNIST as in the experiment of Honeine and Richard (2011): 1,000 centres in
784 dimensions, a subspace of 100 components, noise of variance 0.1; here with a length scale of 10
on pixels in [0, 1], because their 1e5 makes the Gram matrix singular.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mercer as mc
from benchmarks._harness import DATA, Array, Contender, Key, Settings, race
from benchmarks._process import measured
from benchmarks._report import Outcome, Row, at_least, at_most
from mercer import datasets
from mercer.preimages import gradient_bound

TITLE = "Pre-images"
NEEDS = ("mnist_small.npz",)

GEMMS = "time of an iteration over its three GEMMs"
FASTER = "times faster than the obvious NumPy loop, to the same gradient"
EACH = "times faster than the obvious NumPy loop, per iteration"
FACTORISE, APPLY = "seconds with the factorisation", "seconds to apply"
SHARE = "evaluations over those of the plain fixed point"
GROWTH = "resident memory beyond input and output, MB"

_TOLERANCE = 1e-8
ITERATIONS = 5  # timed as the difference of two runs
COUNT, COMPONENTS = 1000, 100
_DIGITS = DATA / "mnist_small.npz"
_PAPER = {"fixed point": "1.5 h", "distances": "5.5 min", "closed form": "1.3 s"}


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    if _DIGITS.exists():
        _run_digits(settings, outcome)
    else:
        outcome.notes.append("digits left out: the data sets are not here")
    _run_evaluations(settings, outcome)
    _run_memory(settings, outcome)
    return outcome


def _run_digits(settings: Settings, outcome: Outcome) -> None:
    n = settings.size(COUNT, 120)
    X, noisy = _digits(n)
    plane = _subspace(X, settings.size(COMPONENTS, 10))
    psi = plane.project(mc.feature(plane.origin.kernel, noisy))
    _run_iteration(psi, X, noisy, settings, outcome)
    _run_closed_form(psi, settings, outcome)
    _run_ten(plane, noisy, settings, outcome)


def _digits(n: int) -> tuple[Array, Array]:
    """Centres, and as many other digits with noise."""
    twos = np.load(_DIGITS)["X_two"][: 2 * n].reshape(2 * n, -1) / 255.0
    noise = np.random.default_rng(0).normal(scale=np.sqrt(0.1), size=(n, twos.shape[1]))
    return twos[:n], twos[n:] + noise


def _subspace(X: Array, components: int) -> mc.Subspace:
    """The leading kernel principal components about the mean."""
    k = mc.Gaussian(10.0)
    mean = mc.mean_embedding(k, X)
    H = np.eye(len(X)) - 1.0 / len(X)
    values, vectors = np.linalg.eigh(H @ k(X) @ H)
    directions = (H @ vectors / np.sqrt(np.maximum(values, 1e-12)))[:, ::-1][:, :components]
    return mc.Subspace(mean, mc.Element(k, mean.points, directions))


def _run_iteration(
    psi: mc.Element, X: Array, noisy: Array, settings: Settings, outcome: Outcome
) -> None:
    """One iteration of all rows at once (a tolerance of nothing keeps every row going), and the
    way to a gradient of 1e-8 of its bound, on which converged rows are retired.
    """
    left, right = psi.coef.left, psi.coef.right
    small = _TOLERANCE * np.asarray(gradient_bound(psi))

    def ours(tol: float, iterations: int) -> Contender:
        solver = mc.FixedPoint(tol=tol, max_iter=iterations)
        return lambda: mc.preimage(psi, solver, start=noisy, eigenvalues=False)

    keys = {
        name: Key("digits", name)
        for name in (
            "mercer, 1 iteration",
            "mercer, 6 iterations",
            "mercer, to the end",
            "mercer, LBFGS to the end",
            "obvious NumPy, 1 iteration",
            "obvious NumPy, to the end",
            "three GEMMs",
        )
    }
    contenders = dict(
        zip(
            keys.values(),
            (
                ours(1e-300, 1),
                ours(1e-300, 1 + ITERATIONS),
                ours(_TOLERANCE, 1000),
                lambda: mc.preimage(psi, mc.LBFGS(tol=_TOLERANCE), start=noisy, eigenvalues=False),
                _obvious(X, noisy, left, right, small, 1),
                _obvious(X, noisy, left, right, small, 1000),
                _three_gemms(X, noisy, left, right),
            ),
            strict=True,
        )
    )
    raced = race("preimages, digits", contenders, settings)
    outcome.add_notes("digits", raced)
    outcome.add_rows(f"{len(noisy)} digits", raced, keys["mercer, 1 iteration"])
    least = {name: raced.timings[key].minimum for name, key in keys.items()}
    each = (least["mercer, 6 iterations"] - least["mercer, 1 iteration"]) / ITERATIONS
    values = {
        "seconds per iteration": each,
        GEMMS: each / least["three GEMMs"],
        EACH: least["obvious NumPy, 1 iteration"] / each,
        FASTER: least["obvious NumPy, to the end"] / least["mercer, to the end"],
        f"{FASTER}, LBFGS": least["obvious NumPy, to the end"] / least["mercer, LBFGS to the end"],
    }
    outcome.add_figures("batched fixed point", values, {GEMMS: at_most(1.6), FASTER: at_least(1.5)})


def _three_gemms(X: Array, Y: Array, left: Array, right: Array) -> Contender:
    """Distances, coefficients and weighted sums, into memory that is there already."""
    K, A, out = (np.empty(s) for s in ((len(Y), len(X)), (len(Y), len(X)), Y.shape))

    def call() -> Array:
        np.matmul(Y, X.T, out=K)
        np.matmul(right.T, left.T, out=A)
        return np.matmul(A, X, out=out)

    return call


def _obvious(
    X: Array, Y: Array, left: Array, right: Array, small: Array, iterations: int
) -> Contender:
    """The loop anyone would write first: all rows until the last has converged."""

    def call() -> Array:
        Z = Y
        for _ in range(iterations):
            squares = (Z**2).sum(1)[:, None] + (X**2).sum(1) - 2 * Z @ X.T
            W = np.exp(-squares / (2 * 10.0**2)) * (left @ right).T
            total = W.sum(1, keepdims=True)
            step = W @ X / total - Z
            Z = Z + step
            gradient = np.linalg.norm(step, axis=1) * np.abs(total[:, 0]) / 10.0**2
            if (gradient <= small).all():
                break
        return Z

    return call


def _run_closed_form(psi: mc.Element, settings: Settings, outcome: Outcome) -> None:
    solver = mc.ClosedForm(penalty=1e-9)
    weights = solver.weights(psi)
    whole = Key("closed form", "with factorisation")
    contenders = {
        whole: lambda: mc.preimage(psi, solver, eigenvalues=False),
        Key("closed form", "apply"): lambda: psi.coef.weigh(weights),
    }
    raced = race("preimages, closed form", contenders, settings)
    outcome.add_rows("closed form", raced, whole)
    values = {
        FACTORISE: raced.timings[whole].minimum,
        APPLY: raced.timings[Key("closed form", "apply")].minimum,
    }
    bars = {FACTORISE: at_most(1.0), APPLY: at_most(0.05)}
    outcome.add_figures("closed form", values, bars)


def _run_ten(plane: mc.Subspace, noisy: Array, settings: Settings, outcome: Outcome) -> None:
    """The ten images of the paper, projection included; its times stand beside."""
    start = noisy[:10]

    def timed(solver: Any, **options: Any) -> Callable[[], Any]:
        def call() -> Any:
            psi = plane.project(mc.feature(plane.origin.kernel, start))
            return mc.preimage(psi, solver, eigenvalues=False, **options)

        return call

    contenders = {
        Key("ten", "fixed point"): timed(mc.FixedPoint(max_iter=10_000), start=start),
        Key("ten", "distances"): timed(mc.Distances()),
        Key("ten", "closed form"): timed(mc.ClosedForm(penalty=1e-9)),
    }
    raced = race("preimages, ten images", contenders, settings)
    for key, timing in raced.timings.items():
        label = f"{key.name} (published: {_PAPER[key.name]})"
        row = Row("ten digits", label, timing.minimum, timing.median, len(timing.seconds))
        outcome.rows.append(row)


def _run_evaluations(settings: Settings, outcome: Outcome) -> None:
    """Kernel sums until the gradient is 1e-8 of its bound, from every noisy point."""
    samples = {
        "frame": (datasets.frame, 0.4, 5),
        "banana": (datasets.banana, 0.5, 3),
        "spiral": (datasets.spiral, 0.3, 10),
        "sine": (datasets.sine, 0.4, 10),
    }
    for name, (draw, scale, components) in samples.items():
        X = draw(random_state=0).points
        k = mc.Gaussian(scale)
        mean = mc.mean_embedding(k, X)
        plane = mc.Subspace.span(mean, mc.feature(k, X) - mean).truncate(components)
        noisy = draw(settings.size(250, 20), random_state=1).points
        psi = plane.project(mc.feature(k, noisy))
        counts = {}
        for label, solver in (
            ("plain", mc.FixedPoint(tol=1e-8, max_iter=20_000)),
            ("newton", mc.Newton(tol=1e-8)),
        ):
            back = mc.preimage(psi, solver, start=noisy)
            small = back.gradient_norm <= 1.01e-8 * gradient_bound(psi)
            assert (small | ~back.ok).all()
            counts[label] = back.n_evaluations.sum()
            outcome.notes.append(f"{name}, {label}: {back!r}, {counts[label]} evaluations")
        values = {SHARE: counts["newton"] / counts["plain"]}
        outcome.add_figures(f"{name}, Newton", values, {SHARE: at_most(0.4)})


def _run_memory(settings: Settings, outcome: Outcome) -> None:
    """A hundred thousand pre-images in a fresh process."""
    count = settings.size(100_000, 2000)
    found = measured(make_many, count=count)
    if isinstance(found, str):
        outcome.notes.append(f"memory: {found}")
        return
    case = f"{count:,} pre-images, 500 points, d = 10"
    outcome.rows.append(Row(case, "mercer", found.seconds, found.seconds, 1))
    output = 8 * count * (10 + 9)  # points, and nine numbers about each
    outcome.add_figures(case, {GROWTH: (found.bytes - output) / 1e6}, {GROWTH: at_most(500)})


def make_many(count: int) -> Contender:
    """Pre-images of that many projections on 500 points."""
    rng = np.random.default_rng(0)
    X, noisy = rng.standard_normal((500, 10)), rng.standard_normal((count, 10))
    k = mc.Gaussian(3.0)
    mean = mc.mean_embedding(k, X)
    plane = mc.Subspace.span(mean, mc.feature(k, X) - mean).truncate(20)
    psi = plane.project(mc.feature(k, noisy))
    mc.preimage(psi[:50], start=noisy[:50])
    return lambda: mc.preimage(psi, start=noisy)
