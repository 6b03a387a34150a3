"""Power of the default tests against published figures, at level 0.05.

Perturbed uniforms (Biggs, Schrab, Gretton, MMD-FUSE, NeurIPS 2023: the better of FUSE and Agg, and
the median rule), dependence (the noisy shapes of hyppo and its MGC), and Stein discrepancies
(Schrab, Guedj, Gretton, KSD aggregated goodness-of-fit test, NeurIPS 2022).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import mercer as mc
from benchmarks._harness import Array, Settings
from benchmarks._replications import PValue, rejections
from benchmarks._report import Outcome, at_least, at_most

TITLE = "Power of the kernel tests at level 0.05, 200 data sets"
REPETITIONS = 200  # as in the publications
STANDARD_ERRORS = 3.0
SHORTFALL = 0.01

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
KSD_AGG = {0.1: 0.175, 0.2: 0.495, 0.3: 0.82, 0.4: 0.945}  # Gamma(5 + shift, 5) against Gamma(5, 5)


def run(settings: Settings) -> Outcome:
    outcome = Outcome(TITLE)
    shares = rejections("power", designs(), REPETITIONS, (0.05,), settings)
    power = {name: share[0] for name, share in shares.items()}
    uniform = {_uniform_name(*cell): max(found[:2]) for cell, found in UNIFORM.items()}
    _compare(outcome, power, "perturbed uniform", "better of FUSE and Agg", uniform)
    for cell, (_, _, median) in UNIFORM.items():
        name = f"{_uniform_name(*cell)}, median rule"
        error = abs(power[name] - median) / _standard_error(power[name], median)
        values = {"power": power[name], "published": median, "standard errors off": error}
        outcome.add_figures(name, values, {"standard errors off": at_most(STANDARD_ERRORS)})
    for shape, mgc in MGC.items():
        name = f"dependence, {shape}"
        values = {"power": power[name], "median rule": power[f"{name}, median rule"]}
        low = 0.9 * mgc if mgc is not None else values["median rule"] - 0.05
        outcome.add_figures(name, values | {"MGC": mgc}, {"power": at_least(low)})
    gamma = {_gamma_name(shift): found for shift, found in KSD_AGG.items()}
    _compare(outcome, power, "goodness of fit", "KSDAgg", gamma)
    outcome.notes.append(
        "permutations: 999 for 500 rows, 299 for more and for dependence, 499 for KSD"
    )
    return outcome


def _compare(
    outcome: Outcome, power: dict[str, float], group: str, rival: str, published: dict[str, float]
) -> None:
    """Each cell against its published power, and the mean shortfall of all."""
    for name, value in published.items():
        short = (value - power[name]) / _standard_error(power[name], value)
        values = {"power": power[name], rival: value, "standard errors short": short}
        outcome.add_figures(name, values, {"standard errors short": at_most(STANDARD_ERRORS)})
    mean = float(np.mean([value - power[name] for name, value in published.items()]))
    bars = {"mean shortfall": at_most(SHORTFALL)}
    outcome.add_figures(group, {"mean shortfall": mean}, bars)


def _standard_error(p: float, q: float) -> float:
    """Of the difference of two shares of 200, from their mean, which is kept off 0 and 1."""
    mean = min(max((p + q) / 2.0, 1.0 / REPETITIONS), 1.0 - 1.0 / REPETITIONS)
    return float(np.sqrt(2.0 * mean * (1.0 - mean) / REPETITIONS))


def designs() -> dict[str, PValue]:
    """All cells, those with few rows first."""
    out: dict[str, PValue] = {}
    for shape in MGC:
        out[f"dependence, {shape}"] = partial(_dependence, SHAPES[shape], None)
        out[f"dependence, {shape}, median rule"] = partial(_dependence, SHAPES[shape], "median")
    for cell in sorted(UNIFORM, key=lambda c: c[2]):
        out[f"{_uniform_name(*cell)}, median rule"] = partial(_uniform, cell, "median")
        out[_uniform_name(*cell)] = partial(_uniform, cell, None)
        if cell == (2, 1.0, 500):
            out |= {_gamma_name(shift): partial(_gamma, shift) for shift in KSD_AGG}
    return out


def _uniform_name(d: int, amplitude: float, n: int) -> str:
    return f"perturbed uniform, d = {d}, a = {amplitude}, {n} rows"


def _gamma_name(shift: float) -> str:
    return f"gamma, shift {shift}, 500 rows"


def _uniform(cell: tuple[int, float, int], kernel: Any, rng: Rng) -> float:
    d, amplitude, n = cell
    X, Y = perturbed_uniform(n, d, amplitude, rng), rng.uniform(size=(n, d))
    draws = 999 if n == 500 else 299
    test = partial(mc.mmd_test, X, Y, kernel=kernel, n_permutations=draws)
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
    test = partial(mc.hsic_test, x, y, kernel=kernel, n_permutations=299)
    return float(test(random_state=int(rng.integers(2**32))).pvalue)


def _spiral(rng: Rng, noise: Array) -> tuple[Array, Array]:
    u = rng.uniform(0.0, 5.0, size=noise.shape)
    return u * np.cos(np.pi * u), u * np.sin(np.pi * u) + 0.4 * noise


def _sine(rng: Rng, noise: Array) -> tuple[Array, Array]:
    x = rng.uniform(-1.0, 1.0, size=noise.shape) + 0.02 * rng.normal(size=noise.shape)
    return x, np.sin(4.0 * np.pi * x) + noise


def _linear(rng: Rng, noise: Array) -> tuple[Array, Array]:
    x = rng.uniform(-1.0, 1.0, size=noise.shape)
    return x, x + noise


def _exponential(rng: Rng, noise: Array) -> tuple[Array, Array]:
    x = rng.uniform(0.0, 3.0, size=noise.shape)
    return x, np.exp(x) + 10.0 * noise


SHAPES = {"spiral": _spiral, "sine": _sine, "linear": _linear, "exponential": _exponential}


def _gamma(shift: float, rng: Rng) -> float:
    X = rng.gamma(5.0 + shift, 5.0, size=(500, 1))
    test = partial(mc.ksd_test, X, stats.gamma(5.0, scale=5.0), n_permutations=499)
    return float(test(random_state=int(rng.integers(2**32))).pvalue)
