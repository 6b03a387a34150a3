"""A few of many rows, whatever order they came in and however often they stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine import n_rows
from mercer.methods._row_keys import row_keys
from mercer.space._points import unique

_MANY_COLUMNS = 3000


def spread_rows(X: Any, weights: Array | None, size: int) -> tuple[Array, Array]:
    """Return up to `size` distinct rows of positive weight, dense, and how much each weighs.

    Evenly spaced in lexicographic order (beyond 3,000 columns in that of their keys): a row that
    stands twice is a row of weight 2, and nothing depends on the order of the rows.
    """
    raw = np.ones(n_rows(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    distinct, group = unique(X)
    mass = np.bincount(group, raw, n_rows(distinct))
    present = np.flatnonzero(mass > 0)
    if X.shape[1] > _MANY_COLUMNS:  # sparse rows of text would fill the memory if dense
        order = present[np.argsort(row_keys(distinct[present]))]
    else:
        order = present[np.lexsort(dense(distinct[present]).T[::-1])]
    chosen = order[np.unique(np.linspace(0, len(order) - 1, size).astype(int))]
    return dense(distinct[chosen]), mass[chosen]


def dense(X: Any) -> Array:
    """Rows as a dense float64 matrix."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
