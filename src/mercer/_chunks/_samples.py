"""Samples and weights of rows in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array, as_numbers, as_vector
from mercer._chunks._base import Chunks
from mercer.exceptions import InputError

SAMPLE_ROWS = 20_000  # kernels, scales and landmarks are chosen from this many (or all)


def sampled(
    X: Chunks, weights: Chunks | None = None, rng: np.random.Generator | None = None
) -> tuple[Array, Array | None]:
    """Return at most 20,000 rows drawn at random, in their original order, and their weights.

    Rows of weight 0 are left out. Without a generator the same rows are drawn in each call.
    """
    if weights is not None:
        sizes = tuple(weights.gathered(_count_used, task="weights"))
        both = X.only(0).zip(weights)
        X, weights = (replace(both.mapped(_used, i), sizes=sizes) for i in (0, 1))
        if not len(X):
            raise InputError("weights must not all be zero")
    n, index = len(X), np.arange(min(len(X), SAMPLE_ROWS))
    if n > SAMPLE_ROWS:
        rng = np.random.default_rng(0) if rng is None else rng
        index = np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
    return X.rows(index), None if weights is None else weights.rows(index)[:, 0]


def weights_in_pieces(X: Chunks, weights: Any, name: str = "weights") -> Chunks:
    """Return weights >= 0 of rows in pieces, shape (n, 1), checked when they are read."""
    given = X.zip(weights, name=name).only(len(X.columns))
    return given.mapped(_weights, f"a chunk of {name}", tail=(1,), dtype=np.float64)


def targets_in_pieces(X: Chunks, y: Any) -> tuple[Chunks, bool]:
    """Return finite targets of rows in pieces, shape (n, outputs), and whether they were (n,)."""
    given = X.zip(y).only(len(X.columns))
    shape = given.gathered(np.shape, task="targets")[0]
    if len(shape) not in (1, 2) or 0 in shape:
        raise InputError(f"y must have shape (n,) or (n, outputs), got pieces of shape {shape}")
    tail = (shape[1] if len(shape) == 2 else 1,)
    return given.mapped(_targets, tail=tail, dtype=np.float64), len(shape) == 1


def _count_used(w: Array) -> int:
    return int(np.count_nonzero(w))


def _used(x: Any, w: Array, column: int) -> Any:
    """One of the two columns in rows of positive weight."""
    return (x, w)[column][w[:, 0] > 0.0]


def _weights(w: Any, name: str) -> Array:
    column = as_numbers(w, name)
    vector = as_vector(column.reshape(-1) if column.shape[1:] == (1,) else column, name)
    if np.any(vector < 0.0):
        raise InputError(f"{name} must be >= 0, got {float(vector.min())!r}")
    return np.asarray(vector, dtype=np.float64)[:, None]


def _targets(y: Any) -> Array:
    numbers = as_numbers(y, "y")
    as_vector(numbers.reshape(-1), "a chunk of y")
    return numbers.reshape(len(numbers), -1)
