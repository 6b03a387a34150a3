"""Moments and ranges of the columns of rows in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer._chunks import Chunks

Moments = tuple[float, Array, Array]
"""The weight of rows, their weighted mean, and the sum of squared deviations from it."""


def column_moments(X: Chunks, weights: Chunks | None = None) -> Moments:
    """Return the weight of all rows, and the mean and the variance of each column."""
    mass, mean, squares = _weighted(X, weights).total(_moments, add=_joined, task="moments")
    return mass, mean, squares / mass


def column_ranges(X: Chunks, weights: Chunks | None = None) -> tuple[Array, Array]:
    """Return the smallest and the largest entry of each column, of rows of positive weight."""
    low, high = _weighted(X, weights).total(_range, add=_widest, task="ranges")
    return low, high


def _weighted(X: Chunks, weights: Chunks | None) -> Chunks:
    return X.each([None] * len(X.sizes)) if weights is None else X.zip(weights)


def _moments(X: Any, w: Array | None) -> Moments:
    X = np.asarray(X, dtype=np.float64)
    w = np.ones(len(X)) if w is None else w[:, 0]
    mass = float(w.sum())
    mean = w @ X / mass if mass > 0.0 else np.zeros(X.shape[1])
    return mass, mean, w @ (X - mean) ** 2


def _joined(a: Moments, b: Moments) -> Moments:
    """Chan, Golub, LeVeque: nothing cancels, however far the rows are from the origin."""
    mass = a[0] + b[0]
    share = b[0] / mass if mass > 0.0 else 0.0
    gap = b[1] - a[1]
    return mass, a[1] + share * gap, a[2] + b[2] + a[0] * share * gap**2


def _range(X: Any, w: Array | None) -> tuple[Array, Array]:
    X = X if w is None else X[w[:, 0] > 0.0]
    return X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)


def _widest(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])
