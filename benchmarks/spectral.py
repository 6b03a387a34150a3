"""Densities of a million points at a million queries in the plane, by frequencies."""

from __future__ import annotations

import numpy as np

import mercer
from benchmarks._harness import Array, Contender, Key, Settings, race
from benchmarks._report import Bar, Outcome, at_most
from mercer.engine import Dense, fields

TITLE = "Gaussian density in the plane, spectral engine"

POINTS = 1_000_000
TOLERANCE = 1e-9  # of the sum of the weights; the bar is on the maximum of the density
SECONDS, ERROR = "seconds", "error over the maximum"
CASES: dict[float, dict[str, Bar]] = {  # by bandwidth, on blobs of unit width
    0.7: {SECONDS: at_most(1.0), ERROR: at_most(1e-6)},
    0.07: {ERROR: at_most(1e-6)},
}
_CHECKED = 300  # queries that are compared with the native engine


def run(settings: Settings) -> Outcome:
    """Both bandwidths in one race."""
    outcome = Outcome(TITLE)
    n = settings.size(POINTS, 20_000)
    X, Y = _blobs(n, seed=0), _blobs(n, seed=1)
    A = np.full((n, 1), 1.0 / n)
    contenders: dict[Key, Contender] = {}
    for bandwidth in CASES:
        contenders[Key(f"bandwidth {bandwidth}", "mercer")] = _contender(bandwidth, X, Y, A)
    errors: dict[Key, float] = {}

    def inspect(key: Key, density: Array) -> None:
        bandwidth = float(key.group.split()[1])
        exact = fields(mercer.Gaussian(bandwidth).program, X, Y[:_CHECKED], Dense(A)).value
        errors[key] = float(np.abs(density[:_CHECKED] - exact).max() / density.max())

    raced = race("spectral", contenders, settings, inspect)
    outcome.add_notes("spectral", raced)
    for bandwidth, bars in CASES.items():
        key = Key(f"bandwidth {bandwidth}", "mercer")
        label = f"{n:,} points and queries, bandwidth {bandwidth}"
        outcome.add_rows(label, raced, key, errors=errors)
        values = {SECONDS: raced.timings[key].minimum, ERROR: errors[key]}
        outcome.add_figures(label, values, bars)
    return outcome


def _contender(bandwidth: float, X: Array, Y: Array, A: Array) -> Contender:
    program = mercer.Gaussian(bandwidth).program

    def call() -> Array:
        with mercer.options(tolerance=TOLERANCE):
            return fields(program, X, Y, Dense(A)).value

    return call


def _blobs(n: int, seed: int) -> Array:
    """Ten blobs of unit width; the same blobs for every seed."""
    centres = np.random.default_rng(100).uniform(-20.0, 20.0, size=(10, 2))
    rng = np.random.default_rng(seed)
    return centres[rng.integers(0, 10, n)] + rng.normal(size=(n, 2))
