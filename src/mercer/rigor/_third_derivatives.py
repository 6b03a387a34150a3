"""Bounds on the third derivative of a radial kernel over ranges of distances, with proof."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Expr
from mercer.exceptions import InputError
from mercer.rigor._intervals import Interval, as_interval, down, up
from mercer.rigor._profile_enclosure import enclose, enclose_in_distance


def third_derivative_bounds(profile: Expr, near: Any, far: Any) -> Array:
    """Bound how fast the Hessian of z -> k(|z|^2) changes while near <= |z| <= far.

    The result is an upper bound, rounding included, on the third derivative along any unit vector,
    at any z in the shell: |12 k''(u) s + 8 k'''(u) s^3| over s^2 <= u = |z|^2. It is a Lipschitz
    constant of the Hessian on the shell. Infinite where the profile has a cusp, a kink or a jump in
    the shell, or could not be recorded.

    Near distance zero the derivatives in u may be infinite although those in r are not. With
    q(r) = k(r^2) and no cusp, the third derivative at distance r is

        3 c (1 - c^2) Q / 2 + c^3 q'''(r),   |c| <= 1,

    where Q is a mean of q''' over [0, r]; so it is at most the largest |q'''| on [0, r].
    """
    near, far = np.broadcast_arrays(np.asarray(near, float), np.asarray(far, float))
    try:
        return np.minimum(_by_square(profile, near, far), _from_zero(profile, far))
    except InputError:  # not recorded
        return np.full(near.shape, np.inf)


def _by_square(profile: Expr, near: Array, far: Array) -> Array:
    """From ranges of k'' and k''' over u."""
    with np.errstate(all="ignore"):
        u = Interval(np.maximum(down(near * near), 0.0), up(far * far))
        jet = enclose(profile, [u], 3)
        second, third = (as_interval(x).known() for x in (jet.second[0][0], jet.third))
        rise = _largest(12.0 * second.hi, 8.0 * third.hi, far)
        fall = _largest(-12.0 * second.lo, -8.0 * third.lo, far)
        return _padded(np.maximum(rise, fall), near.shape)


def _largest(a: Any, b: Any, end: Array) -> Any:
    """The largest a s + b s^3 over 0 <= s <= end."""
    inside = np.sqrt(np.maximum(-a / (3.0 * b), 0.0))
    s = np.where((a > 0) & (b < 0) & (inside < end), inside, end)
    return np.maximum(a * s + b * s**3, 0.0) * (1.0 + 1e-12)


def _from_zero(profile: Expr, far: Array) -> Array:
    """From the range of q''' over [0, far]; infinite with a cusp, where q'(0) is not 0."""
    zero = np.zeros_like(far)
    slope = as_interval(enclose(profile, [Interval(zero, up(far * far))], 1).first[0]).known()
    third = as_interval(enclose_in_distance(profile, Interval(zero, far), 3).third).known()
    smooth = np.isfinite(slope.size)  # so q'(r) = 2 r k'(r^2) tends to 0
    return _padded(np.where(smooth, third.size, np.inf), far.shape)


def _padded(bound: Any, shape: tuple[int, ...]) -> Array:
    return np.array(np.broadcast_to(np.where(np.isnan(bound), np.inf, bound), shape), dtype=float)
