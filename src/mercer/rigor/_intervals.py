"""Interval arithmetic on recorded profiles, rounded outward: ranges of k, k' and k'' over boxes.

An interval is a pair of arrays. NaN stands for a bound that is not known (0 times infinity) and is
passed on as such; `known` turns it into an infinite bound at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.engine.programs._expr import (
    Add,
    Const,
    Cut,
    Exp,
    Expr,
    Log,
    Matern,
    Mul,
    Pow,
    Unary,
    Var,
    add,
    exp,
    log,
    multiply,
    power,
)
from mercer.exceptions import InputError

# Sums, products and NumPy's exp, log and powers are within 4 units in the last place.
_EPS = 8.0 * float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)


def down(x: Any) -> Any:
    """A little less than x, by more than the error of one operation."""
    return x * (1.0 - np.copysign(_EPS, x)) - _TINY


def up(x: Any) -> Any:
    """A little more than x."""
    return x * (1.0 + np.copysign(_EPS, x)) + _TINY


@dataclass(frozen=True)
class Interval:
    """All numbers between two bounds, arrays of equal shape."""

    lo: Any
    hi: Any

    def __add__(self, other: Any) -> Interval:
        o = as_interval(other)
        lo, hi = self.lo + o.lo, self.hi + o.hi  # sums do not underflow
        lo, hi = lo * (1.0 - np.copysign(_EPS, lo)), hi * (1.0 + np.copysign(_EPS, hi))
        return Interval(lo, hi)

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __mul__(self, other: Any) -> Interval:
        o = as_interval(other)
        if self.is_nonnegative:
            if o.is_nonnegative:
                return Interval(np.maximum(down(self.lo * o.lo), 0.0), up(self.hi * o.hi))
            return _times_nonnegative(o, self)
        if o.is_nonnegative:
            return _times_nonnegative(self, o)
        if np.all(self.hi <= 0):
            return -_times_nonnegative(o, -self)
        if np.all(o.hi <= 0):
            return -_times_nonnegative(self, -o)
        a, b, c, d = self.lo * o.lo, self.lo * o.hi, self.hi * o.lo, self.hi * o.hi
        lowest = np.minimum(np.minimum(a, b), np.minimum(c, d))
        highest = np.maximum(np.maximum(a, b), np.maximum(c, d))
        return Interval(down(lowest), up(highest))

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def is_nonnegative(self) -> bool:
        """Whether no number in it is negative."""
        return bool(np.all(self.lo >= 0))

    @property
    def size(self) -> Any:
        """The largest absolute value."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    def square(self) -> Interval:
        """x^2 for x in the interval."""
        a, b = self.lo * self.lo, self.hi * self.hi
        straddles = (self.lo < 0) & (self.hi > 0)
        lowest = np.where(straddles, 0.0, np.maximum(down(np.minimum(a, b)), 0.0))
        return Interval(lowest, up(np.maximum(a, b)))

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(np.minimum(self.lo, other.lo), np.maximum(self.hi, other.hi))

    def known(self) -> Interval:
        """With infinite bounds where none is known."""
        lo = np.where(np.isnan(self.lo), -np.inf, self.lo)
        return Interval(lo, np.where(np.isnan(self.hi), np.inf, self.hi))

    def where(self, mask: Any, other: float = 0.0) -> Interval:
        """Kept where the mask is true, a number elsewhere."""
        return Interval(np.where(mask, self.lo, other), np.where(mask, self.hi, other))

    def __getitem__(self, index: Any) -> Interval:
        return Interval(self.lo[index], self.hi[index])


def as_interval(value: Any) -> Interval:
    """An interval as it is, an exact number or array as a thin one."""
    return value if isinstance(value, Interval) else Interval(value, value)


def _times_nonnegative(a: Interval, b: Interval) -> Interval:
    """The product where b >= 0."""
    lowest = a.lo * np.where(a.lo < 0, b.hi, b.lo)
    return Interval(down(lowest), up(a.hi * np.where(a.hi < 0, b.lo, b.hi)))


@dataclass(frozen=True)
class IntervalJet:
    """Ranges of an expression and of its derivatives in its variables; 0 is a structural zero."""

    value: Any
    first: tuple[Any, ...] = ()
    second: tuple[tuple[Any, ...], ...] = ()


def enclose(
    expr: Expr, inputs: Sequence[Interval], order: int = 0, gate: Expr | None = None
) -> IntervalJet:
    """Ranges of a profile, and of its derivatives up to `order`, over intervals of its variables.

    Every value that the profile takes for variables inside `inputs` (and with `gate` >= 0, where
    one is given) lies in the result, rounding included. Derivatives are of each smooth piece;
    across a kink they cover both sides, and across a jump, or where they are infinite, they are
    infinite or NaN.
    """
    jet = _visit(expr, inputs, order, gate)
    least = None if gate is None else _excess(expr, gate)
    if least is None:
        return jet
    low = np.maximum(jet.value.lo, down(least) if least else 0.0)
    return IntervalJet(Interval(low, np.maximum(jet.value.hi, low)), jet.first, jet.second)


def _visit(expr: Expr, inputs: Sequence[Interval], order: int, gate: Expr | None) -> IntervalJet:
    match expr:
        case Var(index=i):
            return _constant(inputs[i], order, len(inputs), i)
        case Const(value=c):
            return _constant(Interval(np.asarray(c), np.asarray(c)), order, len(inputs), None)
        case Add(left=a, right=b):
            return _sum(enclose(a, inputs, order, gate), enclose(b, inputs, order, gate))
        case Mul(left=a, right=b):
            left, right = enclose(a, inputs, order, gate), enclose(b, inputs, order, gate)
            return _product(left, right, order)
        case Cut():
            return _cut(expr, inputs, order)
        case Unary(arg=a):
            inner = enclose(a, inputs, order, gate)
            return _chain(_ranges(expr, inner.value, order), inner, order)
    raise InputError(f"no interval arithmetic for {type(expr).__name__} in a profile")


def _constant(value: Any, order: int, count: int, seed: int | None) -> IntervalJet:
    first = tuple(1.0 if i == seed else 0 for i in range(count)) if order else ()
    second = tuple((0,) * count for _ in range(count)) if order == 2 else ()
    return IntervalJet(value, first, second)


def _is_zero(a: Any) -> bool:
    return isinstance(a, int) and a == 0


def plus(a: Any, b: Any) -> Any:
    """a + b, where 0 is left out."""
    return b if _is_zero(a) else a if _is_zero(b) else a + b


def times(a: Any, b: Any) -> Any:
    """a b, where 0 wins over anything."""
    return 0 if _is_zero(a) or _is_zero(b) else a * b


def _table(count: int, entry: Callable[[int, int], Any]) -> tuple[tuple[Any, ...], ...]:
    upper = {(v, w): entry(v, w) for v in range(count) for w in range(v, count)}
    return tuple(tuple(upper[min(v, w), max(v, w)] for w in range(count)) for v in range(count))


def _sum(a: IntervalJet, b: IntervalJet) -> IntervalJet:
    first = tuple(map(plus, a.first, b.first))
    second = tuple(tuple(map(plus, p, q)) for p, q in zip(a.second, b.second, strict=True))
    return IntervalJet(a.value + b.value, first, second)


def _product(a: IntervalJet, b: IntervalJet, order: int) -> IntervalJet:
    n = len(a.first)
    first = tuple(plus(times(a.first[v], b.value), times(a.value, b.first[v])) for v in range(n))

    def entry(v: int, w: int) -> Any:
        cross = plus(times(a.first[v], b.first[w]), times(a.first[w], b.first[v]))
        own = plus(times(a.second[v][w], b.value), times(a.value, b.second[v][w]))
        return plus(own, cross)

    return IntervalJet(a.value * b.value, first, _table(n, entry) if order == 2 else ())


def _chain(f: tuple[Any, ...], a: IntervalJet, order: int) -> IntervalJet:
    n = len(a.first)
    first = tuple(times(f[1], d) for d in a.first) if order else ()

    def entry(v: int, w: int) -> Any:
        if v == w and isinstance(a.first[v], Interval):
            squared: Any = a.first[v].square()
        else:
            squared = times(a.first[v], a.first[w])
        return plus(times(f[2], squared), times(f[1], a.second[v][w]))

    return IntervalJet(f[0], first, _table(n, entry) if order == 2 else ())


def _ranges(node: Unary, x: Interval, order: int) -> tuple[Any, ...]:
    """Ranges of f, f' and f'' over an interval; each of them is monotone, or a power."""
    match node:
        case Exp():
            f = Interval(np.maximum(down(np.exp(x.lo)), 0.0), up(np.exp(x.hi)))
            return (f, f, f)[: order + 1]
        case Log():
            f = Interval(down(np.log(np.maximum(x.lo, 0.0))), up(np.log(x.hi)))
            return (f, _power(x, -1.0), -_power(x, -2.0))[: order + 1]
        case Pow(exponent=p):
            found = [_power(x, p)]
            if order:
                found.append(times(p, _power(x, p - 1.0)))
            if order == 2:
                found.append(times(p * (p - 1.0) or 0, _power(x, p - 2.0)))
            return tuple(found)
        case Matern():
            return _matern(node, x, order)
    raise InputError(
        "the profile of this kernel could not be recorded, so its range over a box is not known; "
        "write it with arithmetic, exp, log, sqrt and powers"
    )


def _power(x: Interval, p: float) -> Any:
    """x^p; 1.0 for p = 0. Of a negative number only for whole p."""
    if p == 0.0:
        return 1.0
    whole = p == int(p)
    low, high = (x.lo, x.hi) if whole else (np.maximum(x.lo, 0.0), np.maximum(x.hi, 0.0))
    a, b = np.asarray(low) ** p, np.asarray(high) ** p
    straddles = (low < 0) & (high > 0)
    if p > 0:
        lowest, highest = np.minimum(a, b), np.maximum(a, b)
        if whole and int(p) % 2 == 0:
            lowest = np.where(straddles, 0.0, lowest)
    else:
        from_below = (low < 0) & (high == 0) & whole
        lowest, highest = np.minimum(a, b), np.maximum(a, b)
        lowest = np.where(straddles | from_below, -np.inf, lowest)
        highest = np.where(straddles | from_below, np.inf, highest)
    lowest = down(lowest)
    nonnegative = not whole or int(p) % 2 == 0 or low >= 0
    return Interval(np.where(nonnegative, np.maximum(lowest, 0.0), lowest), up(highest))


def _matern(node: Matern, x: Interval, order: int) -> tuple[Interval, ...]:
    """f and f'' fall, f' rises, and all of them tend to zero."""
    low = np.maximum(x.lo, 0.0)
    near = [np.where(np.isinf(low), 0.0, f) for f in node.derivatives(low, order)]
    far = [np.where(np.isinf(x.hi), 0.0, f) for f in node.derivatives(x.hi, order)]
    found = [Interval(np.maximum(down(far[0]), 0.0), up(near[0]))]
    if order:
        found.append(Interval(down(near[1]), np.minimum(up(far[1]), 0.0)))
    if order == 2:
        found.append(Interval(np.maximum(down(far[2]), 0.0), up(near[2])))
    return tuple(found)


def _cut(node: Cut, inputs: Sequence[Interval], order: int) -> IntervalJet:
    gate = enclose(node.gate, inputs).value
    body = enclose(node.body, inputs, order, node.gate)
    inside, outside = gate.lo >= 0, gate.hi < 0
    continuous = node.outside == 0.0 and _vanishes_with(node.body, node.gate)
    rise = 0.0 if continuous else np.inf

    def pieced(a: Any, other: float, across: float) -> Any:
        """The body inside, a number outside, the hull of both (or everything) between."""
        if _is_zero(a) and across == 0.0:
            return 0
        a = as_interval(a) if isinstance(a, Interval) else Interval(float(a), float(a))
        lo = np.where(inside, a.lo, np.where(outside, other, np.minimum(a.lo, other) - across))
        return Interval(
            lo, np.where(inside, a.hi, np.where(outside, other, np.maximum(a.hi, other) + across))
        )

    first = tuple(pieced(d, 0.0, rise) for d in body.first)
    second = tuple(tuple(pieced(d, 0.0, np.inf) for d in row) for row in body.second)
    return IntervalJet(pieced(body.value, node.outside, 0.0), first, second)


def _excess(expr: Expr, gate: Expr) -> float | None:
    """The number c with expr = gate + c, if their forms show one."""
    if expr == gate:
        return 0.0
    match expr, gate:
        case Add(left=Const(value=a), right=x), Add(left=Const(value=b), right=y) if x == y:
            return a - b
    return None


def _vanishes_with(body: Expr, gate: Expr) -> bool:
    """Whether the body is zero where the gate is, by its form."""
    match body:
        case Mul(left=a, right=b):
            return _vanishes_with(a, gate) or _vanishes_with(b, gate)
        case Pow(arg=a, exponent=p):
            return p > 0 and _vanishes_with(a, gate)
    return body == gate


def in_distance(expr: Expr) -> Expr:
    """The profile as an expression of r = sqrt(u), roots of u taken: smooth at a cusp."""
    match expr:
        case Var(index=i):
            return Pow(Var(i, nonnegative=True), 2.0)
        case Add(left=a, right=b):
            return add(in_distance(a), in_distance(b))
        case Mul(left=a, right=b):
            return multiply(in_distance(a), in_distance(b))
        case Cut(gate=g, body=b, outside=c):
            return Cut(in_distance(g), in_distance(b), c)
        case Exp(arg=a):
            return exp(in_distance(a))
        case Log(arg=a):
            return log(in_distance(a))
        case Pow(arg=a, exponent=p):
            return _root(in_distance(a), p)
        case Matern(arg=a, nu=nu):
            z = _root(in_distance(a), 0.5)
            poly = 1.0 + z if nu == 1.5 else 1.0 + z + z**2 / 3.0
            return poly * exp(-z)
    return expr


def _root(a: Expr, p: float) -> Expr:
    match a:
        case Mul(left=Const(value=c), right=b) if c > 0:
            return multiply(Const(math.pow(c, p)), _root(b, p))
        case Pow(arg=Var() as r, exponent=q):
            return power(r, q * p)
    return power(a, p)
