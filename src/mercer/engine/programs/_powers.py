"""Powers and logarithms of arrays, accurate for large exponents too."""

from __future__ import annotations

from typing import Any

from mercer._array import namespace


def magnifies(p: float) -> bool:
    """Whether a power is so large that the rounding of its base, times p, would matter."""
    return abs(p) > (64 if p == int(p) else 16)


def power_of_sum(c: float, x: Any, p: float, order: int) -> tuple[Any, ...]:
    """(c + x)^p and its derivatives in x, right to a few roundings even for p = 1e16.

    The sum is rounded to v = c + x - e; the error e is known exactly (Knuth's two-sum), and
    (v + e)^p = v^p exp(p log(1 + e / v)), where e / v is at most half an eps.
    """
    xp = namespace(x)
    v, share = _sum_and_error(c, x)
    f = v**p * xp.exp(p * share)
    inverse = 1.0 / xp.where(v == 0.0, xp.ones_like(v), v)
    return (f, p * f * inverse, p * (p - 1.0) * f * inverse * inverse)[: order + 1]


def log_of_sum(c: float, x: Any, order: int) -> tuple[Any, ...]:
    """log(c + x) and its derivatives in x, with all digits where c + x is near 1."""
    v, share = _sum_and_error(c, x)
    inverse = 1.0 / v
    return (namespace(x).log(v) + share, inverse, -inverse * inverse)[: order + 1]


def _sum_and_error(c: float, x: Any) -> tuple[Any, Any]:
    """v = c + x as rounded, and the error of the rounding as a share of v."""
    xp = namespace(x)
    v = c + x
    part = v - c
    error = (c - (v - part)) + (x - part)
    usable = xp.isfinite(error) & (v != 0.0)
    return v, xp.where(usable, error, xp.zeros_like(v)) / xp.where(usable, v, xp.ones_like(v))


def power_of(x: Any, p: float) -> Any:
    """x ** p, by multiplication or square roots where those are exact or faster."""
    if p == 0.0:
        return 1.0
    if p < 0.0:
        return 1.0 / power_of(x, -p)
    if p == int(p) and p <= 64:
        result, base, n = None, x, int(p)
        while n:
            if n & 1:
                result = base if result is None else result * base
            n >>= 1
            base = base * base if n else base
        return result
    if p == 0.5:
        return namespace(x).sqrt(x)
    if p == 1.5:
        return x * namespace(x).sqrt(x)
    return x**p
