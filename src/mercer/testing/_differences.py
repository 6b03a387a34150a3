"""Compare derivatives with central differences, where these are accurate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.testing._report import agree, fail

_TRUST = 1e-4  # relative difference of two step sizes up to which differences are used


def _central(f: Callable[[Array], Array], X: Array, h: float) -> Array:
    """(f(X + h e_k) - f(X - h e_k)) / 2h for every coordinate k, along a new last axis."""
    steps = h * np.eye(X.shape[1])
    return np.stack([(f(X + step) - f(X - step)) / (2.0 * h) for step in steps], axis=-1)


def agree_with_differences(
    subject: Any,
    law: str,
    actual: Array,
    f: Callable[[Array], Array],
    X: Array,
    length: float,
    size: float = 0.0,
) -> None:
    """Fail unless `actual` is the derivative of f with respect to each row of X.

    Differences with two step sizes are compared first. Near a kink or a jump they disagree, and
    the derivative is not checked; this may happen at a minority of points only. NaN is allowed for
    a matrix of derivatives (the last two axes) if some of them do not exist. `size` is the size of
    the terms of f, if they are larger than its values.
    """
    h = 1e-3 * length
    coarse, fine = _central(f, X, h), _central(f, X, 0.5 * h)
    unit = (float(np.abs(f(X)).max()) + size) / length
    settled = np.abs(coarse - fine) <= _TRUST * (np.abs(fine) + unit)
    pair = (-1, -2)
    missing = np.isnan(actual).all(axis=pair, keepdims=True) & ~settled.all(pair, keepdims=True)
    known = settled[~np.broadcast_to(missing, settled.shape)]
    if missing.mean() > 0.5 or known.mean() < 0.7:
        fail(
            subject,
            f"{law} cannot be checked: {missing.mean():.0%} do not exist, and differences are "
            f"accurate for only {known.mean():.0%} of the others",
        )
    kept = settled & ~missing
    expected, doubt = ((4.0 * fine - coarse) / 3.0)[kept], 2.0 * np.abs(fine - coarse)[kept]
    largest = float(np.abs(expected).max()) + 1e-3 * unit
    actual = np.asarray(actual, dtype=np.float64)[kept]
    nearest = np.clip(actual, expected - doubt, expected + doubt)
    nearest = np.where(np.isnan(actual), expected, nearest)
    agree(subject, law, actual, nearest, tol=1e-6, size=largest)
