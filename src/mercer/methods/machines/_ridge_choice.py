"""The kernel and the penalty of ridge regression, chosen by leave-one-out errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer import engine
from mercer._array import Array, Points, is_sparse
from mercer.engine import Dense, Scales
from mercer.kernels import Gaussian, Kernel, LaplaceProduct, Matern, median_scale
from mercer.methods.machines._ridge import MergedRows
from mercer.methods.machines._ridge_path import RidgePath

KERNEL_ROWS = 1_000
PENALTY_ROWS = 3_000
_LENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the median distance
_ROUNDS = 2  # of column scales: a third changed little on the tables of `benchmarks/ridge.py`
_ROWS_PER_COLUMN = 10  # below, slopes of single columns are mostly noise
_STEP = 0.1  # standard deviations: the slope between neighbouring rows, not at a cusp
_LONGEST = 100.0  # length of a column over the shortest: no column is forgotten

Family = Callable[[float], Kernel]


def choose_kernel(X: Points, rows: MergedRows, median: float, *, fit_intercept: bool) -> Kernel:
    """The candidate with the smallest leave-one-out error, each with its own best penalty.

    Candidates are Gaussian, Matern 3/2 and Laplace product kernels (the latter for dense rows) of
    five lengths each, in units of the median distance between rows. The best one is then tried on
    scaled columns: the scale of a column is the slope of the fit along it, so that columns which
    matter little contribute little to the distance. After A. Radhakrishnan, D. Beaglehole,
    P. Pandit, M. Belkin, Mechanism for feature learning in neural networks and backpropagation-free
    machine learning models, Science 383, 2024, with the diagonal of their matrix.

    Errors are those of at most 1,000 of the distinct rows X, evenly spaced in their order.
    """
    part = spread(len(X), KERNEL_ROWS)

    def tried(family: Family, length: float, kernel: Kernel) -> _Candidate:
        path = path_of(kernel, X, rows, part, fit_intercept)
        penalty, error = path.best()
        return _Candidate(family, length, kernel, path, penalty, error)

    found = [tried(f, t, f(t * median)) for f in _families(X) for t in _LENGTHS]
    best = min(found, key=lambda candidate: candidate.error)
    many = 1 < X.shape[1] <= len(part) / _ROWS_PER_COLUMN
    if is_sparse(X.array) or not many or best.error == 0.0:
        return best.kernel
    for _ in range(_ROUNDS):
        scales = Scales(column_lengths(best, X.array[part], rows.weights[part]))
        middle = median_scale(scales.apply(X.array[part]), weights=rows.weights[part])
        found = [
            tried(best.family, t, best.family(t * middle).transform(scales))
            for t in (best.length / 3.0, best.length, 3.0 * best.length)
        ]
        scaled = min(found, key=lambda candidate: candidate.error)
        if scaled.error >= best.error:
            break
        best = scaled
    return best.kernel


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A kernel, its best penalty and leave-one-out error; length in units of the median."""

    family: Family
    length: float
    kernel: Kernel
    path: RidgePath
    penalty: float
    error: float


def _families(X: Points) -> list[Family]:
    """Kernels by length. Sparse rows have no product kernel."""
    families: list[Family] = [
        lambda length: Gaussian(length / float(np.sqrt(2.0))),
        lambda length: Matern(1.5, length),
    ]
    if not is_sparse(X.array):
        # the median Manhattan distance is longer by this factor, for normal differences
        longer = float(np.sqrt(2.0 * X.shape[1] / np.pi))
        families.append(lambda length: LaplaceProduct(longer * length))
    return families


def column_lengths(fit: _Candidate, X: Array, weights: Array) -> Array:
    """Lengths of columns: the largest slope of a fit over the slope along each, from 1 to 100.

    Slopes are root mean squares of differences over a fifth of the column's standard deviation.
    Lengths are rounded to three digits, so that printed kernels are readable.
    """
    share = weights / weights.sum()
    coef = fit.path.coef(fit.penalty)
    size = np.sum(fit.path.targets**2, axis=0)
    coef = coef[:, size > 0.0] / np.sqrt(size[size > 0.0])
    spreads = np.sqrt(share @ (X - share @ X) ** 2)
    slopes = np.zeros(X.shape[1])
    for j in np.flatnonzero(spreads > 0.0):
        step = np.zeros(X.shape[1])
        step[j] = _STEP * spreads[j]
        up, down = (
            engine.fields(fit.kernel.program, X, X + sign * step, Dense(coef)).value
            for sign in (1.0, -1.0)
        )
        slopes[j] = np.sqrt(share @ np.sum((up - down) ** 2, axis=1)) / spreads[j]
    largest = float(slopes.max()) or 1.0
    lengths = largest / np.maximum(slopes, largest / _LONGEST)
    return np.array([float(f"{length:.3g}") for length in lengths])


def path_of(
    kernel: Kernel, X: Points, rows: MergedRows, part: Array, fit_intercept: bool
) -> RidgePath:
    """The path of penalties on some of the distinct rows."""
    whole = len(part) == len(X)
    return RidgePath.of(
        kernel,
        X[part],
        rows.targets[part],
        rows.weights[part],
        fit_intercept=fit_intercept,
        scatter=rows.scatter if whole else rows.scatter * (len(part) / len(X)),
    )


def spread(n: int, size: int) -> Array:
    """At most `size` of n row numbers, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).astype(int))
