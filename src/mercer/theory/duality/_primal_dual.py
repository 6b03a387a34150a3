"""A problem and its dual, both solved: two values, a point, multipliers and the dual function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array

# Relative to the size of a constraint: clarabel solves to 1e-8, and multipliers of this accuracy
# must count as feasible for the dual.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class PrimalDual:
    """A problem and its dual, each solved without looking at the other.

    Weak duality is `gap >= 0` up to rounding; strong duality is `gap == 0`.

    Attributes
    ----------
    primal : float
        p*, the smallest value of f0.
    dual : float
        d*, the largest value of g.
    x : ndarray
        Where p* is attained.
    multipliers : tuple of ndarray
        Where d* is attained.
    g : callable
        The dual function in closed form: `g(*multipliers)`. It is -inf outside its domain, which
        is checked to a relative 1e-6.
    """

    primal: float
    dual: float
    x: Array
    multipliers: tuple[Array, ...]
    g: Callable[..., float]

    @property
    def gap(self) -> float:
        """p* - d*."""
        return self.primal - self.dual


def both(primal: Any, x: Any, g: Callable[..., float], *multipliers: Any) -> PrimalDual:
    """The pair, with d* from the closed form."""
    found = tuple(np.asarray(m) for m in multipliers)
    return PrimalDual(float(primal), g(*found), np.asarray(x), found, g)


def where(value: Any, *sizes: tuple[Any, Any]) -> float:
    """The value if each excess is at most the tolerance times (1 + its scale), else -inf."""
    inside = all(
        np.max(excess, initial=0.0) <= _TOLERANCE * (1.0 + np.max(np.abs(scale), initial=0.0))
        for excess, scale in sizes
    )
    return float(value) if inside else -np.inf
