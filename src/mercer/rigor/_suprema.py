"""Suprema of a profile k(u), u = r^2, and its derivatives: over all distances, or over ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Const, Expr, Var, profile_at
from mercer.engine.programs._expr import Add, Cut, Exp, Matern, Mul, Pow, Unary
from mercer.exceptions import InputError
from mercer.rigor._intervals import Interval, as_interval, down, up
from mercer.rigor._profile_enclosure import ZERO, profile_ranges, profile_ranges_in_distance

# Distances: fourth powers are still finite, and the smallest is a hundredth of the shortest length
# of a kernel, so that functions have their limits there.
_SMALLEST, _LARGEST = 1e-77, 1e75
_PER_DECADE = 40
_FLAT = 1e-9  # logarithmic slopes below this are rounding: the function has a limit
_ROUNDS, _CELLS = 6, 100_000  # of the search for the largest third derivative


def _grid(low: float = _SMALLEST, high: float = _LARGEST) -> Array:
    count = int(math.log10(high / low) * _PER_DECADE) + 2
    return np.geomspace(low, high, count)


@np.errstate(over="ignore")
def _supremum(size: Callable[[Array], Array], high: float = _LARGEST) -> float:
    """sup of a function of r over (0, high]; infinite where it still grows at an end."""
    r = _grid(min(_SMALLEST, 0.01 * high), high)
    y = np.nan_to_num(size(r), nan=0.0, posinf=math.inf)
    if _grows(r, y) or (high == _LARGEST and _grows(r[::-1], y[::-1])):
        return math.inf
    best = float(y.max())
    for i in np.argsort(y)[-5:]:  # zoom in on the five highest
        low, top = r[max(i - 1, 0)], r[min(i + 1, len(r) - 1)]
        for _ in range(7):
            z = np.linspace(low, top, 101)
            v = np.nan_to_num(size(z), nan=0.0)
            j = int(np.argmax(v))
            best = max(best, float(v[j]))
            low, top = z[max(j - 1, 0)], z[min(j + 1, 100)]
    return best


def _grows(r: Array, y: Array) -> bool:
    """Whether y has no limit towards the first r: it is a power that grows."""
    a, b = y[0], y[_PER_DECADE]
    if a <= 0 or b <= 0 or not math.isfinite(a):
        return bool(a > 0 and not math.isfinite(a))
    return math.log(a / b) / abs(math.log(r[_PER_DECADE] / r[0])) > _FLAT


@lru_cache(maxsize=256)
def largest_slope(profile: Expr, high: float) -> float:
    """sup of 2 r |k'(r^2)| over r <= high."""
    if high == 0.0:
        return 0.0
    end = min(max(high, 1e-100), _LARGEST)  # the square of 1e-100 does not underflow
    return _supremum(lambda r: 2.0 * r * np.abs(profile_at(profile, r * r, 1)[1]), end)


def _eigenvalues(profile: Expr, r: Array) -> tuple[Array, Array]:
    """2 k' and 2 k' + 4 u k'', the eigenvalues of the Hessian at distance r."""
    _, first, second = profile_at(profile, r * r, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        return 2.0 * first, 2.0 * first + 4.0 * r * (r * second)


@lru_cache(maxsize=256)
def largest_curvature(profile: Expr) -> float:
    """sup of |2k'| and |2k' + 4 u k''|; infinite where k or k' jumps."""
    sup = _supremum(lambda r: np.abs(_eigenvalues(profile, r)).max(axis=0))
    cuts = (e for e in nodes(profile) if isinstance(e, Cut))
    return math.inf if any(_jumps(profile, e.gate, sup) for e in cuts) else sup


@lru_cache(maxsize=256)
def largest_upward(profile: Expr) -> float:
    """sup of max(2k', 2k' + 4 u k'', 0)."""
    return _supremum(lambda r: np.maximum(np.maximum(*_eigenvalues(profile, r)), 0.0))


def nodes(expr: Expr) -> Iterator[Expr]:
    yield expr
    for name in ("left", "right", "arg", "gate", "body"):
        if isinstance(part := getattr(expr, name, None), Expr):
            yield from nodes(part)


def _jumps(profile: Expr, gate: Expr, sup: float) -> bool:
    """Whether k or k' differs on the two sides of a gate."""
    from scipy.optimize.elementwise import find_root

    def height(r: Array) -> Array:
        return profile_at(gate, r * r)[0]

    r = _grid()
    inside = height(r) >= 0
    at = np.flatnonzero(inside[1:] != inside[:-1])
    edges = find_root(height, (r[at], r[at + 1])).x ** 2
    before, after = (profile_at(profile, edges * side, 1) for side in (1 - 1e-13, 1 + 1e-13))
    jump, kink = (np.abs(a - b) for a, b in zip(before, after, strict=True))
    return bool(np.any((jump > 1e-8 * sup * edges) | (kink > 1e-8 * sup)))


@lru_cache(maxsize=256)
def slope_at_zero(profile: Expr) -> float:
    """lim -2 r k'(r^2) for r -> 0, taken at 1e-100, which is tiny but has a nonzero square."""
    r = np.geomspace(1e-100, 1e-99, _PER_DECADE + 1)
    slope = -2.0 * r * profile_at(profile, r * r, 1)[1]
    if _grows(r, np.abs(slope)):
        return math.inf
    return 0.0 if _grows(r[::-1], np.abs(slope)[::-1]) else float(slope[0])


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
        second, third = profile_ranges(profile, u, 3)[2:]
        rise = _largest(12.0 * second.hi, 8.0 * third.hi, far)
        fall = _largest(-12.0 * second.lo, -8.0 * third.lo, far)
        bound = np.maximum(rise, fall)
    return np.where(np.isnan(bound), np.inf, bound)


def _largest(a: Any, b: Any, end: Array) -> Any:
    """The largest a s + b s^3 over 0 <= s <= end."""
    inside = np.sqrt(np.maximum(-a / (3.0 * b), 0.0))
    s = np.where((a > 0) & (b < 0) & (inside < end), inside, end)
    return np.maximum(a * s + b * s**3, 0.0) * (1.0 + 1e-12)


def _from_zero(profile: Expr, far: Array) -> Array:
    """From the range of q''' over [0, far]; infinite with a cusp, where q'(0) is not 0."""
    zero = np.zeros_like(far)
    slope = profile_ranges(profile, Interval(zero, up(far * far)), 1)[1]
    third = profile_ranges_in_distance(profile, Interval(zero, far), 3)[3]
    smooth = np.isfinite(slope.size)  # so q'(r) = 2 r k'(r^2) tends to 0
    return np.where(smooth, third.size, np.inf)


@lru_cache(maxsize=256)
def largest_third(profile: Expr) -> float:
    """Upper bound on |12 k'' t + 8 k''' t^3| over t^2 <= u, for completely monotone profiles.

    At distances above R it is at most 480 k(0) / R^3: k(u / 2) is a Taylor series about u without
    negative terms, so k''(u) <= 8 k(0) / u^2 and |k'''(u)| <= 48 k(0) / u^3.
    """
    edges = np.concatenate([[0.0], _grid()])
    left, right = edges[:-1], edges[1:]
    top = profile_ranges(profile, ZERO)[0].size
    lower = done = 0.0

    def bounds() -> Array:
        with np.errstate(divide="ignore", over="ignore"):
            tail = 481.0 * top / left**3
        return np.asarray(np.minimum(third_derivative_bounds(profile, left, right), tail))

    upper = bounds()
    for _ in range(_ROUNDS):  # cells that may still hold the supremum are cut into smaller ones
        if not math.isfinite(upper.max()):
            return math.inf
        middle = as_interval(left + (right - left) / 2)
        third = profile_ranges_in_distance(profile, middle, 3)[3].size
        lower = max(lower, float(np.max(third, initial=0.0, where=np.isfinite(third))))
        keep = upper > 1.001 * lower
        done = max(done, float(upper[~keep].max(initial=0.0)))
        if not keep.any() or left.size > _CELLS:
            break
        cuts = np.linspace(left[keep], right[keep], 17)
        left, right = cuts[:-1].ravel(), cuts[1:].ravel()
        upper = bounds()
    return max(done, float(upper.max()), 481.0 * float(top[0]) / _LARGEST / _LARGEST / _LARGEST)


_Signed = tuple[int, float]  # a sign (0: identically zero) and a relative error in units of eps
_LARGEST_EXPONENT = 745.0  # of exp, beyond which it underflows or overflows


@lru_cache(maxsize=256)
def evaluation_error(profile: Expr) -> float:
    """c such that k, k' and k'' are evaluated at u with a relative error of at most c eps.

    By running the error through the expression; infinite where terms of different signs are added,
    and for functions that are not known. The error of exp(t) is that of t, times |t| <= 745, and a
    power multiplies relative errors by its exponent.
    """
    try:
        return max(error for _, error in _errors(profile))
    except InputError:
        return math.inf


def _errors(expr: Expr) -> tuple[_Signed, _Signed, _Signed]:
    match expr:
        case Var():
            return (1, 0.0), (1, 0.0), (0, 0.0)
        case Const(value=c):
            return (int(np.sign(c)), 1.0), (0, 0.0), (0, 0.0)
        case Add(left=a, right=b):
            x, y = _errors(a), _errors(b)
            return _added(x[0], y[0]), _added(x[1], y[1]), _added(x[2], y[2])
        case Mul(left=a, right=b):
            x, y = _errors(a), _errors(b)
            first = _added(_times(x[1], y[0]), _times(x[0], y[1]))
            second = _added(_added(_times(x[2], y[0]), _times(x[1], y[1])), _times(x[0], y[2]))
            return _times(x[0], y[0]), first, second
        case Unary(arg=a):
            x = _errors(a)
            f = _function_errors(expr, x[0])
            bend = _added(_times(f[2], _times(x[1], x[1])), _times(f[1], x[2]))
            return f[0], _times(f[1], x[1]), bend
    raise InputError("no error analysis for this expression")


def _function_errors(node: Unary, x: _Signed) -> tuple[_Signed, _Signed, _Signed]:
    sign, error = x
    match node:
        case Exp():
            found = (1, _LARGEST_EXPONENT * error + 8.0)
            return found, found, found
        case Pow(exponent=p) if sign > 0:
            own = 8.0 if p == int(p) and abs(p) <= 4 else 4.0 * _LARGEST_EXPONENT
            return (
                (1, abs(p) * error + own),
                (int(np.sign(p)), abs(p - 1.0) * error + own + 2.0),
                (int(np.sign(p * (p - 1.0))), abs(p - 2.0) * error + own + 4.0),
            )
        case Matern() if sign > 0:
            own = _LARGEST_EXPONENT * (error + 4.0) + 16.0
            return (1, own), (-1, own), (1, own)
    raise InputError("no error analysis for this function")


def _added(a: _Signed, b: _Signed) -> _Signed:
    if a[0] * b[0] < 0:
        raise InputError("terms of different signs may cancel")
    return (a[0] or b[0], max(a[1] * abs(a[0]), b[1] * abs(b[0])) + 1.0)


def _times(a: _Signed, b: _Signed) -> _Signed:
    return (a[0] * b[0], a[1] + b[1] + 1.0)
