"""Gram matrices of the Gaussian kernel, k(X, X) and k(X, Y)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial.distance import cdist

import mercer
from benchmarks import _peers
from benchmarks._harness import Array, Contender, Key, Settings, data, race
from benchmarks._report import Bar, Outcome, at_least, at_most
from benchmarks.sums import error
from mercer.engine import gram

TITLE = "Gram matrix of the Gaussian kernel"

FASTER = "times faster than sklearn rbf_kernel"
TIME = "time over sklearn rbf_kernel"
TORCH = "time over torch"

POINTS = 5_000
CASES: Mapping[int, Mapping[str, Bar]] = {  # by dimension; the bars are for float64
    2: {FASTER: at_least(2)},
    64: {FASTER: at_least(2)},
    784: {TIME: at_most(1.05)},
}
_CHECKED = 100  # rows that are compared with differences in float64


def run(settings: Settings) -> Outcome:
    """Both dtypes of a dimension, and both kinds of matrix, in one race."""
    outcome = Outcome(TITLE, notes=_peers.missing())
    n = settings.size(POINTS, 1000)
    for dim, bars in CASES.items():
        _run(dim, bars, n, settings, outcome)
    return outcome


def _run(dim: int, bars: Mapping[str, Bar], n: int, settings: Settings, outcome: Outcome) -> None:
    contenders: dict[Key, Contender] = {}
    references: dict[str, Array] = {}
    for dtype in ("float64", "float32"):
        X, Z, _ = data(n, dim, dtype)
        for which, Y in (("k(X, X)", X), ("k(X, Y)", Z)):
            group = f"{which}, {dtype}"
            distances = cdist(X[:_CHECKED].astype(float), Y.astype(float), "sqeuclidean")
            references[group] = np.exp(-0.5 / dim * distances)
            for name, call in _contenders(dim, X, Y).items():
                contenders[Key(group, name)] = call
    errors: dict[Key, float] = {}

    def inspect(key: Key, result: Array) -> None:
        errors[key] = error(result[:_CHECKED], references[key.group])

    raced = race(f"gram, d = {dim}", contenders, settings, inspect)
    outcome.add_notes(f"d = {dim}", raced)
    outcome.notes.extend(f"d = {dim}, {note}" for note in _peers.settings(contenders))
    for group in references:
        ours, label = Key(group, "mercer"), f"d = {dim}, {group}"
        sklearn, torch = Key(group, "sklearn rbf_kernel"), Key(group, "torch")
        outcome.add_rows(label, raced, ours, errors=errors)
        values = {TORCH: raced.ratio(ours, torch)}
        if TIME in bars:
            values[TIME] = raced.ratio(ours, sklearn)
        else:
            values[FASTER] = raced.ratio(sklearn, ours)
        outcome.add_figures(label, values, bars if group.endswith("float64") else {})


def _contenders(dim: int, X: Array, Y: Array) -> dict[str, Contender]:
    program = mercer.Gaussian(dim**0.5).program

    def blocked() -> Array:
        with mercer.options(engine="blocked"):
            return gram(program, X, Y)

    return {
        "mercer": lambda: gram(program, X, Y),
        "mercer, NumPy only": blocked,
        **_peers.grams(X, Y, 0.5 / dim),
    }
