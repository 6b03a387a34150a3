"""Suprema over all distances of a profile k(u), u = r^2, and its derivatives; once per profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Expr, evaluate

_SMALLEST, _LARGEST = 1e-75, 1e75  # distances; their fourth powers are still numbers
_PER_DECADE = 40
_FLAT = 1e-9  # logarithmic slopes below this are rounding: the function has a limit
_STEP = 1e-5  # relative step of the differences that bracket the third derivative


def _profile(profile: Expr, u: Array, order: int) -> tuple[Array, ...]:
    """k, k', k'' at u."""
    with np.errstate(all="ignore"):
        jet = evaluate(profile, [u], order)
    parts = (jet.value, *jet.first, *(row[0] for row in jet.second))
    return tuple(np.broadcast_to(np.asarray(p, dtype=float), u.shape) for p in parts)


def _grid(low: float = _SMALLEST, high: float = _LARGEST, per_decade: int = _PER_DECADE) -> Array:
    count = int(math.log10(high / low) * per_decade) + 2
    return np.geomspace(low, high, count)


def _supremum(size: Callable[[Array], Array], high: float = _LARGEST) -> float:
    """sup of a function of r over (0, high]; infinite where it still grows at an end."""
    r = _grid(high=high)
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
    if high <= _SMALLEST:
        return 0.0

    def slope(r: Array) -> Array:
        return np.asarray(2.0 * r * np.abs(_profile(profile, r * r, 1)[1]))

    return _supremum(slope, min(high, _LARGEST))


@lru_cache(maxsize=256)
def largest_curvature(profile: Expr) -> float:
    """sup of |2k'| and |2k' + 4 u k''|; infinite where k or k' jumps."""

    def curvature(r: Array) -> Array:
        _, first, second = _profile(profile, r * r, 2)
        along = 2.0 * first + 4.0 * r * (r * second)
        return np.asarray(np.maximum(np.abs(2.0 * first), np.abs(along)))

    sup = _supremum(curvature)
    return math.inf if any(_jumps(profile, gate, sup) for gate in gates(profile)) else sup


@lru_cache(maxsize=256)
def largest_upward(profile: Expr) -> float:
    """sup of max(2k', 2k' + 4 u k'', 0)."""

    def upward(r: Array) -> Array:
        _, first, second = _profile(profile, r * r, 2)
        along = 2.0 * first + 4.0 * r * (r * second)
        return np.asarray(np.maximum(np.maximum(2.0 * first, along), 0.0))

    return _supremum(upward)


def gates(node: Any) -> Iterator[Expr]:
    """The gates of every cut in an expression."""
    if not isinstance(node, Expr) or not is_dataclass(node):
        return
    if hasattr(node, "gate"):
        yield node.gate
    for f in fields(node):
        yield from gates(getattr(node, f.name))


def _jumps(profile: Expr, gate: Expr, sup: float) -> bool:
    """Whether k or k' differs on the two sides of a gate, each found by bisection."""
    r = _grid()
    sign = _profile(gate, r * r, 0)[0] >= 0
    for i in np.flatnonzero(sign[1:] != sign[:-1]):
        low, high = r[i] ** 2, r[i + 1] ** 2
        for _ in range(100):
            middle = 0.5 * (low + high)
            if (_profile(gate, np.array([middle]), 0)[0][0] >= 0) == sign[i]:
                low = middle
            else:
                high = middle
        k, slope = _profile(profile, np.array([low, high]), 1)
        if abs(k[1] - k[0]) > 1e-8 * sup * low or abs(slope[1] - slope[0]) > 1e-8 * sup:
            return True
    return False


@lru_cache(maxsize=256)
def largest_derivatives(profile: Expr) -> tuple[float, float, float]:
    """sup |k'(u)|, sup |k''(u)| and sup r |k''(r^2)|."""

    def size(order: int, power: int) -> Callable[[Array], Array]:
        return lambda r: np.asarray(r**power * np.abs(_profile(profile, r * r, order)[order]))

    return _supremum(size(1, 0)), _supremum(size(2, 0)), _supremum(size(2, 1))


@lru_cache(maxsize=256)
def slope_at_zero(profile: Expr) -> float:
    """lim -2 r k'(r^2) for r -> 0, taken at 1e-75, where the next term is far below rounding."""
    r = np.geomspace(_SMALLEST, 10.0 * _SMALLEST, _PER_DECADE + 1)
    slope = -2.0 * r * _profile(profile, r * r, 1)[1]
    if _grows(r, np.abs(slope)):
        return math.inf
    return 0.0 if _grows(r[::-1], np.abs(slope)[::-1]) else float(slope[0])


@lru_cache(maxsize=256)
def largest_third(profile: Expr) -> float:
    """Upper bound on |12 k'' t + 8 k''' t^3| over t^2 <= u, for completely monotone profiles."""
    left, right = (edges := _grid())[:-1], edges[1:]
    upper, lower = _third(profile, left, right)
    if _grows(left, upper) or not math.isfinite(upper.max()):
        return math.inf
    for _ in range(4):  # cells that may still hold the supremum are cut into smaller ones
        keep = upper >= lower.max()
        cuts = np.linspace(left[keep], right[keep], 17)
        left, right = cuts[:-1].ravel(), cuts[1:].ravel()
        upper, lower = _third(profile, left, right)
        if upper.max() <= 1.001 * lower.max() or left.size > 100_000:
            break
    return float(upper.max())


def _third(profile: Expr, left: Array, right: Array) -> tuple[Array, Array]:
    """Bounds on the supremum over cells of distances: above, and below (its value at the left).

    k'' and c = -k''' decrease. With K >= k'' and c0 <= c <= c1 on a cell, 12 K t - 8 c0 t^3 has its
    largest value at t^2 = K / (2 c0) or at the end, and 8 c1 t^3 - 12 k'' t its own at the end.
    """
    K, (c1, low) = _profile(profile, left**2, 2)[2], _bracket(profile, left**2)
    K0, c0 = _profile(profile, right**2, 2)[2], _bracket(profile, right**2)[1]
    with np.errstate(all="ignore"):
        t = np.minimum(np.sqrt(K / (2.0 * c0)), right)
        rising = np.where(K > 0, 12.0 * K * t - 8.0 * c0 * t**3, 0.0)
        falling = 8.0 * c1 * right**3 - 12.0 * K0 * left
        upper = np.fmax(rising, falling)
        s = np.minimum(np.sqrt(K / (2.0 * c1)), left)
        lower = np.fmax(12.0 * K * s - 8.0 * c1 * s**3, 8.0 * low * left**3 - 12.0 * K * left)
    upper = np.where(upper == math.inf, math.inf, np.nan_to_num(upper, nan=0.0))
    return upper * (1.0 + 1e-12), np.nan_to_num(lower, nan=0.0, posinf=0.0)


def _bracket(profile: Expr, u: Array) -> tuple[Array, Array]:
    """-k'''(u) from above and below: differences of k'' to the left and to the right."""
    h = _STEP * u
    second = [_profile(profile, v, 2)[2] for v in (u - h, u, u + h)]
    slack = 1e-14 * second[0]  # rounding of k''
    with np.errstate(all="ignore"):
        above = (second[0] - second[1] + slack) / h
        below = np.maximum(second[1] - second[2] - slack, 0.0) / h
    return above, below
