"""Signed differences of one coordinate, on the line or wrapped onto a circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse


def gaps(Y: Any, X: Any, period: float | None) -> Array:
    """y_j - x_i for all queries and points, shape (m, n), in float64."""
    return wrapped(_column(Y)[:, None] - _column(X)[None, :], period)


def rowwise_gaps(Y: Any, X: Any, period: float | None) -> Array:
    """y_j - x_j, shape (m,), in float64."""
    return wrapped(_column(Y) - _column(X), period)


def wrapped(gap: Array, period: float | None) -> Array:
    """The difference minus the nearest multiple of the period, in [-period/2, period/2].

    Exact: a remainder has no rounding, and neither has the difference of two numbers that are
    within a factor of two.
    """
    if period is None:
        return gap
    rest = np.fmod(gap, period)
    half = 0.5 * period
    return np.asarray(np.where(np.abs(rest) > half, rest - np.copysign(period, rest), rest))


def _column(Z: Any) -> Array:
    dense = Z.toarray() if is_sparse(Z) else Z
    return np.asarray(dense, dtype=np.float64)[:, 0]
