"""Raise an AssertionError that names the violated law and by how much."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


def fail(subject: Any, sentence: str) -> NoReturn:
    """Raise an AssertionError about the subject."""
    raise AssertionError(f"{subject!r}: {sentence}")


def require(condition: Any, subject: Any, sentence: str) -> None:
    """Fail unless the condition holds."""
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
        gap = np.abs(actual - expected)
    if not np.all(gap <= allowed):  # a NaN fails too
        where = np.unravel_index(int(np.nanargmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape)
        at = f" at {tuple(int(i) for i in where)}" if where else ""
        fail(
            subject,
            f"{law} fails by {float(gap[where]):.3g}{at}, {allowed:.3g} is allowed "
            f"({float(actual[where])!r} instead of {float(expected[where])!r})",
        )
