"""Failures that name the violated law and by how much; comparison with central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from mercer._array import Array

_TRUST = 1e-4  # relative difference of two step sizes up to which differences are used


def fail(subject: Any, sentence: str) -> NoReturn:
    raise AssertionError(f"{subject!r}: {sentence}")


def require(condition: Any, subject: Any, sentence: str) -> None:
    if not condition:
        fail(subject, sentence)


def agree(
    subject: Any, law: str, actual: Any, expected: Any, *, tol: float, size: float | None = None
) -> None:
    """Fail unless two arrays are equal up to `tol` times `size`, by default that of `expected`."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.shape != expected.shape:
        fail(subject, f"{law} fails: shape {actual.shape} instead of {expected.shape}")
    if actual.size == 0:
        return
    allowed = tol * (float(np.abs(expected).max()) if size is None else size)
    with np.errstate(invalid="ignore"):
        gap = np.where(actual == expected, 0.0, np.abs(actual - expected))  # infinities may agree
    if not np.all(gap <= allowed):  # a NaN fails too
        where = np.unravel_index(int(np.nanargmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape)
        at = f" at {tuple(int(i) for i in where)}" if where else ""
        fail(
            subject,
            f"{law} fails by {float(gap[where]):.3g}{at}, {allowed:.3g} is allowed "
            f"({float(actual[where])!r} instead of {float(expected[where])!r})",
        )


def agree_with_differences(
    subject: Any,
    law: str,
    actual: Array,
    f: Callable[[Array], Array],
    X: Array,
    length: float,
    size: float = 0.0,
    cusps: Any = False,
) -> None:
    """Fail unless `actual` is the derivative of f with respect to each row of X.

    Differences with three step sizes are compared first. Near a kink or a jump they disagree (two
    might agree by chance, if the larger step has twice as many jumps), and the derivative is not
    checked; this may happen at a minority of points only. NaN is allowed for a matrix of
    derivatives (the last two axes) if some of them do not exist. `size` is the size of the terms
    of f, if they are larger than its values. `cusps` are rows, or pairs, where a derivative need
    not exist, even if the kink is too small beside other terms for differences to show it.
    """
    h = 1e-3 * length

    def central(h: float) -> Array:
        steps = h * np.eye(X.shape[1])
        return np.stack([(f(X + step) - f(X - step)) / (2.0 * h) for step in steps], axis=-1)

    coarse, fine, finest = central(h), central(0.5 * h), central(0.1 * h)
    unit = (float(np.abs(f(X)).max()) + size) / length
    worst = np.maximum(np.abs(coarse - fine), np.abs(finest - fine))
    settled = worst <= _TRUST * (np.abs(fine) + unit)
    pair = (-1, -2)
    own = _TRUST * np.abs(fine).max(pair, keepdims=True)  # others may be much larger
    smooth = worst.max(pair, keepdims=True) <= own
    missing = np.isnan(actual).all(axis=pair, keepdims=True)
    cusps = np.asarray(cusps)
    missing &= ~smooth | cusps.reshape(cusps.shape + (1,) * (missing.ndim - cusps.ndim))
    known = settled[~np.broadcast_to(missing, settled.shape)]
    if missing.mean() > 0.5 or known.mean() < 0.7:
        known_share = f"differences are accurate for only {known.mean():.0%} of the others"
        fail(subject, f"{law} cannot be checked: {missing.mean():.0%} do not exist, {known_share}")
    kept = settled & ~missing
    # Beside a cusp |x - y|^p, terms that cancel in the limit leave differences of order h^p. For
    # p < 0.8 the smaller step then changes more, and the limit is up to 100 such changes away
    # (64 for p = 0.01). Elsewhere differences err by h or h^2, at most twice the change.
    changes = np.abs(fine - coarse), np.abs(finest - fine)
    doubt = np.where(changes[1] > changes[0], 100.0 * changes[1], 2.0 * changes[0])[kept]
    expected = ((4.0 * fine - coarse) / 3.0)[kept]
    actual = np.asarray(actual, dtype=np.float64)
    rounding = 1e-2 * float(np.abs(actual).max(initial=0.0, where=np.isfinite(actual)))
    largest, actual = float(np.abs(expected).max()) + 1e-3 * unit + rounding, actual[kept]
    nearest = np.clip(actual, expected - doubt, expected + doubt)
    nearest = np.where(np.isnan(actual), expected, nearest)
    agree(subject, law, actual, nearest, tol=1e-6, size=largest)
