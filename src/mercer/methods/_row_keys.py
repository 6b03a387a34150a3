"""A number for each row, the same for equal rows: to know rows again without keeping them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine import n_rows
from mercer.space._points import number_keys


def row_keys(X: Any) -> Array:
    """Return one 64-bit number per row, shape (n,).

    Equal rows have equal numbers, whether dense or sparse, float32 or float64, in any process;
    different rows have different ones but for an accident of probability 2^-64 per pair.
    """
    if is_sparse(X) or X.dtype.kind in "fiub":
        return number_keys(X)
    return np.array([_number(_text(x).encode()) for x in X.tolist()], dtype=np.uint64)


def distinct_rows(X: Any, weights: Array | None = None) -> Array:
    """Row numbers of distinct rows of positive weight, in an order that is that of their keys."""
    rows = np.arange(n_rows(X)) if weights is None else np.flatnonzero(np.asarray(weights) > 0)
    return np.asarray(rows[np.unique(row_keys(X[rows]), return_index=True)[1]])


def _text(x: Any) -> str:
    """The text of an object; of a set with its members in order."""
    return repr(sorted(map(repr, x))) if isinstance(x, set | frozenset) else repr(x)


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")
