"""The kernels that a test combines if none is given: bandwidths from small to large."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer.engine import Distance, Program, Var, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel, Laplace

_SQUARED_DISTANCE = Program((Distance(),), Var(0, nonnegative=True))
_ROWS = 1000  # whose distances set the bandwidths
N_BANDWIDTHS = 10


def kernel_grid(X: Any, rng: np.random.Generator) -> tuple[Kernel, ...]:
    """Gaussian and Laplace kernels at ten bandwidths each, spaced geometrically.

    From half the 5 % quantile to twice the 95 % quantile of the distances between rows that differ,
    on at most 1,000 rows. The rows are drawn at random, so the grid does not depend on the order of
    the rows, and permutation tests with it stay exact.
    """
    low, high = distance_quantiles(X, (0.05, 0.95), rng)
    scales = np.geomspace(0.5 * low, 2.0 * high, N_BANDWIDTHS).tolist()
    return (*(Gaussian(s) for s in scales), *(Laplace(s) for s in scales))


def distance_quantiles(X: Any, levels: tuple[float, ...], rng: np.random.Generator) -> Array:
    """Quantiles of the distances between rows that differ, on a random sample of rows."""
    n = n_rows(X)
    rows = X if n <= _ROWS else X[np.sort(rng.choice(n, _ROWS, replace=False))]
    u = engine.gram(_SQUARED_DISTANCE, rows, rows)
    u = u[np.triu_indices(len(u), 1)]
    if not (u > 0).any():
        raise InputError("all points are equal: there is no distance to choose a bandwidth by")
    return np.sqrt(np.quantile(u[u > 0], levels))
