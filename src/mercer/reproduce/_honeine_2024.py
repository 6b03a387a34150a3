"""Honeine, Theoretical insights on the pre-image resolution (2024): Figures 3, 4 and 5."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mercer._array import Array
from mercer.datasets import Sample, banana, frame, ring, spiral
from mercer.kernels import Epanechnikov, Gaussian, InverseMultiquadric, Kernel, Polynomial
from mercer.plot._style import BLUE, GREY, ORANGE
from mercer.preimages import (
    FixedPoint,
    preimage,
    preimage_gradient,
    preimage_objective,
    surrogate,
)
from mercer.reproduce._experiment import Cell, Claim, Experiment, Result
from mercer.reproduce._figures import axes_grid
from mercer.space import Element

Function: TypeAlias = Callable[[Array], Array]

SOURCE = "P. Honeine, Theoretical insights on the pre-image resolution in machine learning, 2024"
N = 500
STEPS = 3
SETS = {"parabola": banana, "frame": frame, "ring": ring, "spiral": spiral}
KERNELS: dict[str, Kernel] = {
    "Gaussian": Gaussian(0.2),
    "inverse quadratic": InverseMultiquadric(1.0, 10.0),
    "Epanechnikov": Epanechnikov(1.0, 0.5),
}
# The paper states neither the size of the sets nor their noise. Below three times the size of
# `mercer.datasets`, the Epanechnikov window (radius 0.71) reaches from one arm of the spiral to
# the next.
SIZE = 4.0
NOISE = 0.1  # before the sets are enlarged
ROUNDING = 1e-12


def _drawn(name: str) -> Sample:
    draw: Any = SETS[name]
    found: Sample = draw(N, NOISE, random_state=0)
    return found


def _paths(kernel: Kernel, X: Array) -> list[Array]:
    """Every point and its first three fixed-point steps for the mean of all features."""
    psi = Element(kernel, X, np.full((len(X), len(X)), 1.0 / len(X)))  # one copy for each start
    plain = [FixedPoint(max_iter=t, safeguard=False) for t in range(1, STEPS + 1)]
    return [X, *(preimage(psi, solver, start=X).points for solver in plain)]


def _distances(sample: Sample, kernel: Kernel) -> tuple[list[Array], list[float]]:
    """The paths, and the mean distance to the clean curve after 0, 1, 2 and 3 steps."""
    paths = _paths(kernel, SIZE * sample.points)
    return paths, [float(SIZE * sample.distance(P / SIZE).mean()) for P in paths]


def centroids(_: Path | None) -> Result:
    """Figure 3: four sets, three kernels, three steps from every sample."""
    rows: list[tuple[Cell, ...]] = []
    figure, axes = axes_grid(1 + len(KERNELS), len(SETS), 7.2, frame=False)
    for j, name in enumerate(SETS):
        sample = _drawn(name)
        axes[0, j].set_title(name, fontsize=9)
        axes[0, j].plot(*(SIZE * sample.points).T, ".", ms=1.5, color=BLUE)
        for i, (label, kernel) in enumerate(KERNELS.items(), 1):
            paths, d = _distances(sample, kernel)
            rows.append((name, label, d[0], d[-1], d[-1] / d[0]))
            axes[i, j].plot(*paths[0].T, ".", ms=1.2, color=BLUE, alpha=0.35)
            axes[i, j].plot(*paths[-1].T, ".", ms=2.0, color=ORANGE)
    for axis, label in zip(axes[:, 0], ("samples", *KERNELS), strict=True):
        axis.set_ylabel(label, fontsize=8)
    for axis in axes.ravel():
        axis.set_aspect("equal", adjustable="datalim")
    columns = ("set", "kernel", "distance of samples", "distance after 3 steps", "ratio")
    worst = max(float(row[-1]) for row in rows)
    three = Epanechnikov(1.0, 0.5)(np.array([[0.0], [0.3], [0.6]]))
    claims = (
        Claim("three steps bring the points nearer to the curve, in all twelve cases "
              "(largest ratio of distances)", "figure", worst, high=0.9),
        Claim("the Epanechnikov kernel with c = 1, ρ = 0.5 is positive definite (smallest "
              "eigenvalue at 0, 0.3, 0.6)", "positive definite",
              float(np.linalg.eigvalsh(three)[0]), low=0.0,
              why="The text calls the Epanechnikov kernel positive definite; it is not. The "
              "figure does not depend on it, because the fixed point only uses the slope of the "
              "profile.",
              corrected=Claim("the figure needs only the slope of the profile (largest ratio of "
                              "the Epanechnikov kernel)", "figure",
                              max(float(r[-1]) for r in rows if r[1] == "Epanechnikov"),
                              high=0.9)),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


def spiral_paths(_: Path | None) -> Result:
    """Figure 4: a part of the spiral, with the path of each point."""
    sample = _drawn("spiral")
    figure, axes = axes_grid(1, len(KERNELS), 2.6, frame=False)
    rows: list[tuple[Cell, ...]] = []
    path = SIZE * sample.path(2000)
    for axis, (label, kernel) in zip(axes[0], KERNELS.items(), strict=True):
        paths, d = _distances(sample, kernel)
        moved = [float(np.linalg.norm(b - a, axis=1).mean()) for a, b in pairwise(paths)]
        rows.append((label, *d, *moved))
        axis.plot(*path.T, color=GREY, lw=0.8)
        for line in np.stack(paths, axis=1):
            axis.plot(*line.T, color="black", lw=0.5)
        axis.plot(*paths[0].T, ".", ms=4, color=BLUE)
        for P in paths[1:]:
            axis.plot(*P.T, ".", ms=3, color=ORANGE)
        axis.set(xlim=(1.0, 4.5), ylim=(-4.0, -0.5), aspect="equal")
        axis.set_title(label, fontsize=9)
    columns = (
        "kernel", *(f"distance after {t}" for t in range(STEPS + 1)),
        *(f"length of step {t}" for t in range(1, STEPS + 1)),
    )  # fmt: skip
    late = max(abs(float(row[4]) - float(row[3])) / float(row[1]) for row in rows)
    claims = (
        Claim("three steps are enough: the third changes the distance to the curve by a small "
              "share of the first distance", "figure", late, high=0.1),
        Claim("points approach the curve (largest ratio of distances)", "figure",
              max(float(row[4]) / float(row[1]) for row in rows), high=0.9),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


def surrogates(_: Path | None) -> Result:
    """Figure 5: the quadratic that the fixed point minimises, at four guesses."""
    rng = np.random.default_rng(0)
    X, a = rng.uniform(0.0, 1.0, (20, 1)), rng.uniform(0.0, 1.0, 20)
    psi = Element(Gaussian(0.1), X, a / a.sum())
    t = np.linspace(-0.2, 1.2, 1401)[:, None]
    xi = preimage_objective(psi, t)
    figure, axes = axes_grid(1, 1, 2.9)
    axis = axes[0, 0]
    axis.plot(t, xi, color=BLUE, lw=1.5, label="Ξ")
    rows: list[tuple[Cell, ...]] = []
    for i, guess in enumerate((-0.1, 0.2, 0.45, 0.95)):
        here = np.array([[guess]])
        q, slope = _theorem_17(X, a / a.sum(), 0.1, guess)
        step = preimage(psi, FixedPoint(max_iter=1, safeguard=False), start=here).points
        gaps = (q(here) - preimage_objective(psi, here), slope(here) - preimage_gradient(psi, here))
        rows.append((guess, float(step[0, 0]), *(abs(float(gap.ravel()[0])) for gap in gaps),
                     float((q(t) - xi).min()), abs(float(slope(step)[0, 0]))))  # fmt: skip
        axis.plot(t, q(t), "--", color=ORANGE, lw=0.9, label=None if i else "q")
        axis.plot(guess, q(here), "o", ms=5, color=BLUE, label=None if i else "guess")
        axis.plot(step, q(step), "v", ms=6, color=ORANGE, label=None if i else "next guess")
    axis.set(ylim=(xi.min() - 0.04, xi.max() + 0.04), xlabel="x", ylabel="Ξ(x)")
    axis.legend(fontsize=7.5, frameon=False, ncols=2, loc="lower left")
    columns = ("guess", "next guess", "|q - Ξ| at the guess", "|q' - Ξ'| at the guess",
               "min (q - Ξ)", "|q'| at the next guess")  # fmt: skip
    tangent, steps = (max(max(map(float, row[j])) for row in rows)
                      for j in (slice(2, 4), slice(5, 6)))  # fmt: skip
    claims = (
        Claim("q is tangent to Ξ at the guess (largest difference of value or slope)", "figure",
              tangent, high=ROUNDING),
        Claim("the fixed-point step is the minimum of q (slope of q there)", "figure", steps,
              high=ROUNDING),
        Claim("q majorises Ξ by Theorem 27, of projective kernels (q - Ξ at 2 for the kernel "
              "<x, y>², one point 1, guess 1/2)", ">= 0", _projective_gap(), low=-ROUNDING,
              why="The text cites Theorem 27, which is false: its q does not lie above Ξ. The "
              "figure shows Theorem 18, of radial kernels.",
              corrected=Claim("q majorises Ξ by Theorem 18 (smallest q - Ξ in the figure)",
                              ">= 0", min(float(row[4]) for row in rows), low=-ROUNDING)),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


def _theorem_17(X: Array, a: Array, scale: float, guess: float) -> tuple[Function, Function]:
    """The quadratic q of Theorem 17 for a Gaussian on the line and its slope, as printed.

    Theorem 17 leaves out the constant k(0) / 2 of the objective, which is added here.
    """
    u = (guess - X[:, 0]) ** 2
    k = np.exp(-u / (2.0 * scale**2))
    slopes = -k / (2.0 * scale**2)  # k'(u)
    constant = a @ (k - slopes * u)

    def q(x: Array) -> Array:
        return np.asarray(0.5 - (x - X[:, 0]) ** 2 @ (a * slopes) - constant)

    def slope(x: Array) -> Array:
        return np.asarray(2.0 * (X[:, 0] - x) @ (a * slopes))[:, None]

    return q, slope


def _projective_gap() -> float:
    """q - Xi at x = 2 for f(u) = u^2, x_1 = 1, a = 1 and the guess 1/2."""
    psi = Element(Polynomial(2, 1.0, 0.0), np.array([[1.0]]), np.array([1.0]))
    two = np.array([[2.0]])
    return float(surrogate(psi, [0.5])(two)[0] - preimage_objective(psi, two)[0])


EXPERIMENTS = (
    Experiment(
        "centroids", "Pre-images of the mean on four sets", SOURCE, "Fig. 3",
        "500 samples near a parabola, a frame, a ring and a spiral; three fixed-point steps from "
        "each sample to the pre-image of the mean of all features; Gaussian (σ = 0.2), inverse "
        "quadratic (c = 1, p = 10) and Epanechnikov (c = 1, ρ = 0.5). The paper does not state "
        "size and noise: the sets here are those of mercer.datasets, four times as large, with "
        "noise 0.1 before they are enlarged.", centroids, 4),
    Experiment(
        "spiral-paths", "Paths of the iterates on a spiral", SOURCE, "Fig. 4",
        "A part of the spiral above: each sample (blue), three iterates (orange), the path "
        "(black) and the clean curve (grey).", spiral_paths, 2),
    Experiment(
        "surrogate", "The fixed point minimises a quadratic", SOURCE, "Fig. 5",
        "20 uniform samples on a line, uniform coefficients scaled to sum 1, Gaussian kernel. "
        "The paper does not state the bandwidth; here σ = 0.1 for samples in [0, 1].",
        surrogates, 1),
)  # fmt: skip
