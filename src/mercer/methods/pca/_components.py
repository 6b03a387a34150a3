"""Principal components: how many are kept, and their signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, positive_int
from mercer.exceptions import InputError

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-12  # of the largest eigenvalue: directions below are rounding errors


def check_number(n_components: Any) -> None:
    """Raise unless it is None, an integer >= 1, or a share in (0, 1)."""
    if n_components is None:
        return
    if isinstance(n_components, float | np.floating):
        if not 0.0 < n_components < 1.0:
            raise InputError(
                f"a share n_components must lie in (0, 1), got {float(n_components)!r}; give an "
                "integer for a number of components"
            )
    else:
        positive_int(n_components, "n_components")


def kept(
    values: Array, vectors: Array, n_components: Any, total: float, size: float
) -> tuple[Array, Array]:
    """Return the directions above rounding, and no more than a share needs.

    `size` is the sum of k(x, x): scatter below its rounding error counts as zero.
    """
    largest = float(values[0]) if len(values) else 0.0
    if largest <= max(len(vectors), 16) * _EPS * size:
        raise InputError(
            "all points have the same feature to rounding, so there is no direction of scatter; "
            "give at least two different points (more than n_samples = 1), or, for kernels of the "
            "inner product, points closer to the origin"
        )
    keep = values > _ROUNDING * largest
    if isinstance(n_components, float | np.floating):
        before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
        keep &= before < n_components * total
    return values[keep], vectors[:, keep]


def signs(coordinates: Array) -> Array:
    """Return 1 or -1 for each column, such that its largest entry in size becomes positive."""
    size = np.abs(coordinates)
    # the first of several that are equal to rounding
    largest = np.argmax(size >= size.max(axis=0) * (1.0 - 1e-9), axis=0)
    entry = coordinates[largest, np.arange(coordinates.shape[1])]
    return np.where(entry < 0, -1.0, 1.0)
