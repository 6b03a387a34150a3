"""The slope f' of the profile of an inner-product kernel, and the equation s f'(s^2) = c."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Program, evaluate


def slope(program: Program, t: Array) -> Array:
    """f'(t)."""
    first: Any = evaluate(program.profile, [t], 1).first[0]
    return np.broadcast_to(np.asarray(first, dtype=float), t.shape)


def solve_length(program: Program, c: Array) -> Array:
    """s >= 0 with s f'(s^2) = c, for f convex and increasing: the left side increases with s."""
    low, high = np.zeros_like(c), np.ones_like(c)
    for _ in range(1100):  # doubling: beyond this s^2 overflows
        short = high * slope(program, high**2) < c
        if not short.any():
            break
        high = np.where(short, 2.0 * high, high)
    for _ in range(200):  # bisection down to neighbouring numbers
        middle = 0.5 * (low + high)
        short = middle * slope(program, middle**2) < c
        low, high = np.where(short, middle, low), np.where(short, high, middle)
        if (high - low <= np.spacing(high)).all():
            break
    return high
