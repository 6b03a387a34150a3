"""Sums of other profiles of the distance, each beside the single Gaussian."""

from __future__ import annotations

import mercer
from benchmarks._harness import Array, Contender, Key, Settings, data, race
from benchmarks._report import Bar, Outcome, at_most
from mercer.engine import Dense, fields

TITLE = "Profiles beside the Gaussian"

POINTS = 10_000
DIMENSIONS = (2, 10)
GAUSSIAN = "Gaussian"


def cases(dim: int) -> dict[str, tuple[mercer.Kernel, Bar | None]]:
    """Kernels at the scale of standard normal points, and the time of each over the Gaussian's."""
    scale, c = dim**0.5, float(dim)
    gaussian = mercer.Gaussian(scale)
    return {
        GAUSSIAN: (gaussian, None),
        "Gaussian + inverse multiquadric, p = 0.7": (
            gaussian + mercer.InverseMultiquadric(c, 0.7),
            at_most(2.2),
        ),
        "inverse multiquadric, p = 0.5": (mercer.InverseMultiquadric(c, 0.5), at_most(2.0)),
        "inverse multiquadric, p = 0.7": (mercer.InverseMultiquadric(c, 0.7), at_most(2.0)),
        "Laplace": (mercer.Laplace(scale), at_most(2.0)),
        "Matern 3/2": (mercer.Matern(1.5, scale), at_most(2.0)),
        "Matern 5/2": (mercer.Matern(2.5, scale), at_most(2.0)),
    }


def run(settings: Settings) -> Outcome:
    """All kernels of a dimension in one race, float64."""
    outcome = Outcome(TITLE)
    n = settings.size(POINTS, 1000)
    for dim in DIMENSIONS:
        label, named = f"d = {dim}", cases(dim)
        X, Y, A = data(n, dim, "float64")
        contenders = {Key(label, name): _sum(k, X, Y, A) for name, (k, _) in named.items()}
        raced = race(f"profiles, {label}", contenders, settings)
        base = Key(label, GAUSSIAN)
        outcome.add_notes(label, raced)
        outcome.add_rows(label, raced, base)
        outcome.add_figures(
            label,
            {
                f"{n} over Gaussian": raced.ratio(Key(label, n), base)
                for n in named
                if n != GAUSSIAN
            },
            {f"{name} over Gaussian": bar for name, (_, bar) in named.items() if bar is not None},
        )
    return outcome


def _sum(kernel: mercer.Kernel, X: Array, Y: Array, A: Array) -> Contender:
    program, coef = kernel.program, Dense(A)
    return lambda: fields(program, X, Y, coef).value
