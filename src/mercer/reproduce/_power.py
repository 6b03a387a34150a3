"""Power of kernel tests: simulations from the literature, and the power published for them.

Perturbed uniforms (Biggs, Schrab and Gretton, MMD-FUSE, 2023), dependence (the noisy shapes of the
package hyppo and its MGC), and Stein discrepancies (Schrab, Guedj and Gretton, KSD aggregated
goodness-of-fit test, 2022).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from mercer._array import Array
from mercer.methods import hsic_test, ksd_test, mmd_test
from mercer.plot._style import BLUE, GREY, ORANGE
from mercer.reproduce._experiment import Cell, Claim, Experiment, Result
from mercer.reproduce._figures import axes_grid
from mercer.reproduce._replications import PValue, rejections

SOURCE = (
    "F. Biggs, A. Schrab and A. Gretton, MMD-FUSE, 2023; package hyppo; A. Schrab, B. Guedj and "
    "A. Gretton, KSD aggregated goodness-of-fit test, 2022"
)
REPETITIONS = 200  # as in the publications
STANDARD_ERRORS = 3.0
COUNTS = "power_counts.json"  # of an earlier run, which is continued

Rng = np.random.Generator

# d, amplitude, rows in each sample: FUSE, Agg, median bandwidth
UNIFORM = {
    (1, 0.2, 500): (0.18, 0.21, 0.105),
    (1, 0.3, 500): (0.505, 0.605, 0.29),
    (1, 0.4, 500): (0.825, 0.88, 0.465),
    (1, 0.5, 500): (0.975, 0.985, 0.675),
    (2, 0.4, 500): (0.17, 0.145, 0.065),
    (2, 0.6, 500): (0.485, 0.395, 0.05),
    (2, 0.8, 500): (0.885, 0.83, 0.06),
    (2, 1.0, 500): (0.995, 0.99, 0.075),
    (1, 0.2, 1000): (0.43, 0.47, 0.22),
    (2, 0.4, 1000): (0.43, 0.335, 0.045),
    (1, 0.2, 2000): (0.79, 0.875, 0.455),
    (2, 0.4, 2000): (0.805, 0.765, 0.045),
    (1, 0.2, 3000): (0.985, 0.99, 0.70),
    (2, 0.4, 3000): (0.99, 0.975, 0.03),
}
MGC = {"spiral": 0.94, "sine": 0.84, "linear": None, "exponential": None}
HSIC_MEDIAN = {"spiral": 0.20, "sine": 0.11}  # hyppo's HSIC with the median rule
KSD_AGG = {0.1: 0.175, 0.2: 0.495, 0.3: 0.82, 0.4: 0.945}  # Gamma(5 + shift, 5) against Gamma(5, 5)


def power(data: Path | None) -> Result:
    """Shares of rejections at level 0.05 for samples of at most 500 rows."""
    counts = {}
    if data is not None and (data / COUNTS).is_file():
        counts = json.loads((data / COUNTS).read_text(encoding="utf-8"))
    large = [uniform_name(*cell) for cell in UNIFORM if cell[2] > 500]
    chosen = {name: p for name, p in designs().items() if not name.startswith(tuple(large))}
    shares = rejections(chosen, REPETITIONS, (0.05,), counts)
    found = {name: share[0] for name, share in shares.items()}
    published = _published()
    rows: list[tuple[Cell, ...]] = []
    for name, share in found.items():
        printed, by = published.get(name, (float("nan"), ""))
        off = (share - printed) / standard_error(share, printed) if by else float("nan")
        rows.append((name, share, by or "none", printed if by else "", off if by else ""))
    columns = ("simulation", "power", "published for", "published", "standard errors above")
    return Result(columns, rows, _claims(rows), _figure(rows))


def _published() -> dict[str, tuple[float, str]]:
    """The published power of each simulation, and the test that it is for."""
    out: dict[str, tuple[float, str]] = {}
    for cell, (fuse, aggregated, median) in UNIFORM.items():
        best = (fuse, "FUSE") if fuse >= aggregated else (aggregated, "MMDAgg")
        out[uniform_name(*cell)] = best
        out[f"{uniform_name(*cell)}, median rule"] = (median, "median rule")
    for shape, share in MGC.items():
        if share is not None:
            out[f"dependence, {shape}"] = (share, "MGC")
            median_rule = (HSIC_MEDIAN[shape], "HSIC, median rule")
            out[f"dependence, {shape}, median rule"] = median_rule
    return out | {gamma_name(shift): (share, "KSDAgg") for shift, share in KSD_AGG.items()}


def _claims(rows: list[tuple[Cell, ...]]) -> tuple[Claim, ...]:
    off = {str(row[0]): float(row[4]) for row in rows if row[4] != ""}
    median = [abs(value) for name, value in off.items() if name.endswith("median rule")]
    others = {name: value for name, value in off.items() if not name.endswith("median rule")}
    shortest = {
        start: min(value for name, value in others.items() if name.startswith(start))
        for start in ("perturbed uniform", "dependence", "gamma")
    }
    return (
        Claim("tests with the median rule have their published power (largest difference in "
              "standard errors)", "table", max(median), high=STANDARD_ERRORS,
              why="A test with the median rule has another power than published."),
        Claim("the default two-sample test is as powerful as the better of FUSE and MMDAgg "
              "(standard errors, smallest)", "table", shortest["perturbed uniform"],
              low=-STANDARD_ERRORS,
              why="A default test is less powerful than the best published one."),
        Claim("the default test of independence is as powerful as MGC (smallest)", "table",
              shortest["dependence"], low=-STANDARD_ERRORS,
              why="A default test is less powerful than the best published one."),
        Claim("the default test of fit is as powerful as KSDAgg (smallest)", "table",
              shortest["gamma"], low=-STANDARD_ERRORS,
              why="A default test is less powerful than the best published one."),
    )  # fmt: skip


def _figure(rows: list[tuple[Cell, ...]]) -> Any:
    """Power found against power published, with three standard errors."""
    figure, axes = axes_grid(1, 1, 3.6)
    axis = axes[0, 0]
    p = np.linspace(0.005, 0.995, 200)
    width = STANDARD_ERRORS * np.sqrt(2.0 * p * (1.0 - p) / REPETITIONS)
    axis.fill_between(p, p - width, p + width, color=GREY, alpha=0.25, lw=0)
    axis.plot([0, 1], [0, 1], color=GREY, lw=0.7)
    for median, colour, label in ((False, BLUE, "default tests, against the best published"),
                                  (True, ORANGE, "median rule")):  # fmt: skip
        own = [r for r in rows if r[4] != "" and str(r[0]).endswith("median rule") is median]
        axis.plot([r[3] for r in own], [r[1] for r in own], "o", ms=5, color=colour, label=label)
    axis.set(xlabel="published power", ylabel="power found", xlim=(0, 1), ylim=(0, 1.02))
    axis.set_aspect("equal")
    axis.legend(fontsize=7.5, frameon=False)
    return figure


def standard_error(p: float, q: float) -> float:
    """The standard error of a difference of two shares of 200, with their mean kept off 0 and 1."""
    mean = min(max((p + q) / 2.0, 1.0 / REPETITIONS), 1.0 - 1.0 / REPETITIONS)
    return float(np.sqrt(2.0 * mean * (1.0 - mean) / REPETITIONS))


def designs() -> dict[str, PValue]:
    """All cells, those with few rows first."""
    out: dict[str, PValue] = {}
    for shape in MGC:
        out[f"dependence, {shape}"] = partial(_dependence, SHAPES[shape], None)
        out[f"dependence, {shape}, median rule"] = partial(_dependence, SHAPES[shape], "median")
    for cell in sorted(UNIFORM, key=lambda c: c[2]):
        out[f"{uniform_name(*cell)}, median rule"] = partial(_uniform, cell, "median")
        out[uniform_name(*cell)] = partial(_uniform, cell, None)
        if cell == (2, 1.0, 500):
            out |= {gamma_name(shift): partial(_gamma, shift) for shift in KSD_AGG}
    return out


def uniform_name(d: int, amplitude: float, n: int) -> str:
    """The name of a cell of `UNIFORM`."""
    return f"perturbed uniform, d = {d}, a = {amplitude}, {n} rows"


def gamma_name(shift: float) -> str:
    """The name of a cell of `KSD_AGG`."""
    return f"gamma, shift {shift}, 500 rows"


def _uniform(cell: tuple[int, float, int], kernel: Any, rng: Rng) -> float:
    d, amplitude, n = cell
    X, Y = perturbed_uniform(n, d, amplitude, rng), rng.uniform(size=(n, d))
    draws = 999 if n == 500 else 299
    test = partial(mmd_test, X, Y, kernel=kernel, n_permutations=draws)
    return float(test(random_state=int(rng.integers(2**32))).pvalue)


def perturbed_uniform(n: int, d: int, amplitude: float, rng: Rng) -> Array:
    """Rows with density 1 + a e^d sum_j theta_j prod_r G(2 x_r - j_r), j in {1, 2}^d."""
    cells = list(itertools.product((1, 2), repeat=d))
    signs = rng.choice([-1.0, 1.0], size=len(cells))
    rows = np.empty((0, d))
    while len(rows) < n:
        X = rng.uniform(size=(4 * n, d))
        bumps = [s * np.prod(_bump(2.0 * X - j), axis=1) for s, j in zip(signs, cells, strict=True)]
        density = 1.0 + amplitude * np.exp(d) * np.sum(bumps, axis=0)
        rows = np.concatenate([rows, X[rng.uniform(size=4 * n) * (1.0 + amplitude) < density]])
    return rows[:n]


def _bump(t: Array) -> Array:
    """Smooth, positive on (-1, -1/2) and negative on (-1/2, 0); its largest value is 1 / e."""
    out = np.zeros_like(t)
    for low, sign, shift in ((-1.0, 1.0, 3.0), (-0.5, -1.0, 1.0)):
        inside = (t > low) & (t < low + 0.5)
        out[inside] = sign * np.exp(-1.0 / (1.0 - (4.0 * t[inside] + shift) ** 2))
    return out


def _dependence(shape: Callable[[Rng, Array], tuple[Array, Array]], kernel: Any, rng: Rng) -> float:
    x, y = shape(rng, rng.normal(size=(100, 1)))
    test = partial(hsic_test, x, y, kernel=kernel, n_permutations=299)
    return float(test(random_state=int(rng.integers(2**32))).pvalue)


def _spiral(rng: Rng, noise: Array) -> tuple[Array, Array]:
    u = rng.uniform(0.0, 5.0, size=(len(noise), 1))
    return u * np.cos(np.pi * u), u * np.sin(np.pi * u) + 0.4 * noise


def _sine(rng: Rng, noise: Array) -> tuple[Array, Array]:
    x = rng.uniform(-1.0, 1.0, size=(len(noise), 1)) + 0.02 * rng.normal(size=(len(noise), 1))
    return x, np.sin(4.0 * np.pi * x) + noise


def _linear(rng: Rng, noise: Array) -> tuple[Array, Array]:
    x = rng.uniform(-1.0, 1.0, size=(len(noise), 1))
    return x, x + noise


def _exponential(rng: Rng, noise: Array) -> tuple[Array, Array]:
    x = rng.uniform(0.0, 3.0, size=(len(noise), 1))
    return x, np.exp(x) + 10.0 * noise


SHAPES = {"spiral": _spiral, "sine": _sine, "linear": _linear, "exponential": _exponential}


def _gamma(shift: float, rng: Rng) -> float:
    X = rng.gamma(5.0 + shift, 5.0, size=(500, 1))
    test = partial(ksd_test, X, stats.gamma(5.0, scale=5.0), n_permutations=499)
    return float(test(random_state=int(rng.integers(2**32))).pvalue)


EXPERIMENTS = (
    Experiment(
        "power", "Power of the tests at level 0.05", SOURCE, "power tables",
        "Two samples of 500 rows from perturbed uniforms, four shapes of dependence with 100 rows, "
        "and gamma samples of 500 rows; 200 data sets each. Default tests are compared with the "
        "best published test, tests with the median rule with the same rule. The table has shares "
        "of rejections. If the data folder has power_counts.json, which `make bench` keeps, its "
        "counts are continued.", power, 1500, full=True),
)  # fmt: skip
