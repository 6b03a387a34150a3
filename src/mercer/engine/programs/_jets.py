"""Order-2 jets: a profile evaluated together with its gradient and Hessian in its variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._tensors import namespace
from mercer.engine.programs._expr import (
    Add,
    Const,
    Cut,
    Expr,
    Log,
    LogAddExp,
    Mul,
    Pow,
    Unary,
    Var,
    substitute,
)
from mercer.exceptions import DerivativeError


@dataclass(frozen=True)
class Jet:
    """Value, gradient and Hessian of an expression in its variables; 0 marks a structural zero.

    `third` is used by `mercer.rigor`, for intervals of one variable.
    """

    value: Any
    first: tuple[Any, ...] = ()
    second: tuple[tuple[Any, ...], ...] = ()
    third: Any = 0

    def each(self, change: Callable[[Any], Any]) -> Jet:
        """Apply one function to the value and to all derivatives that are not structural zeros."""

        def changed(a: Any) -> Any:
            return a if is_zero(a) else change(a)

        second = tuple(tuple(map(changed, row)) for row in self.second)
        return Jet(change(self.value), tuple(map(changed, self.first)), second)


def evaluate(expr: Expr, inputs: Sequence[Any], order: int = 0) -> Jet:
    """Evaluate the expression, and its derivatives in the inputs up to `order` (0, 1 or 2)."""
    return _visit(expr, inputs, order, {})


def _visit(node: Expr, inputs: Sequence[Any], order: int, memo: dict[int, Jet]) -> Jet:
    """The jet of a node, computed once. (Not a closure: a cycle would keep the tiles alive.)"""
    if id(node) not in memo:
        memo[id(node)] = _jet(node, inputs, order, memo)
    return memo[id(node)]


def _jet(node: Expr, inputs: Sequence[Any], order: int, memo: dict[int, Jet]) -> Jet:
    match node:
        case Var(index=i):
            return jet_leaf(inputs[i], order, len(inputs), i)
        case Const(value=c):
            return jet_leaf(c, order, len(inputs), None)
        case Add(left=a, right=b):
            return jet_sum(_visit(a, inputs, order, memo), _visit(b, inputs, order, memo))
        case Mul(left=a, right=b):
            left, right = _visit(a, inputs, order, memo), _visit(b, inputs, order, memo)
            return jet_product(left, right, order)
        case LogAddExp(left=a, right=b):
            left, right = _visit(a, inputs, order, memo), _visit(b, inputs, order, memo)
            return _log_add_exp(left, right, order)
        case Cut(gate=g, body=b, outside=c):
            gate = _visit(g, inputs, 0, {}).value
            return _cut(gate, _visit(b, inputs, order, memo), c)
        case Pow(arg=Add(left=Const(value=c), right=a), exponent=p) if magnifies(p):
            inner = _visit(a, inputs, order, memo)
            return jet_chain(_power_of_sum(c, inner.value, p, order), inner, order)
        case Log(arg=Add(left=Const(value=c), right=a)):
            inner = _visit(a, inputs, order, memo)
            return jet_chain(_log_of_sum(c, inner.value, order), inner, order)
        case Unary(arg=a):
            inner = _visit(a, inputs, order, memo)
            return jet_chain(node.derivatives(inner.value, order), inner, order)
    raise TypeError(f"not a profile expression: {node!r}")  # pragma: no cover


def profile_at(expr: Expr, u: Array, order: int = 0) -> tuple[Array, ...]:
    """k(u), k'(u), ... up to `order` of a profile of one variable, each of the shape of u."""
    with np.errstate(all="ignore"):
        jet = evaluate(expr, [u], order)
    parts = (jet.value, *jet.first, *(row[0] for row in jet.second))
    return tuple(np.broadcast_to(np.asarray(p, dtype=float), u.shape) for p in parts)


@lru_cache(maxsize=1024)
def derivatives_at_zero(expr: Expr, variables: int, index: int) -> tuple[float, float]:
    """First and second derivative in one variable where it is 0 and all others are not.

    The others are at an arbitrary point (0.37), not at 1, where the geometric kernel has its pole.
    NaN where the profile has no derivatives.
    """
    others: list[Expr] = [Const(0.37)] * variables
    others[index] = Var(0)
    profile = substitute(expr, others)
    try:
        _, first, second = profile_at(profile, np.array([0.0, 1e-100, 1e-200]), 2)
    except DerivativeError:
        return math.nan, math.nan
    at_zero, near, nearer = map(float, first)
    if math.isnan(at_zero):  # zero times infinity: the limit, infinite if the slope grows
        at_zero = math.copysign(math.inf, nearer) if abs(nearer) > 1.5 * abs(near) else nearer
    return at_zero, float(second[0])


def jet_leaf(value: Any, order: int, n: int, variable: int | None) -> Jet:
    first = tuple(1.0 if i == variable else 0 for i in range(n)) if order >= 1 else ()
    second = tuple((0,) * n for _ in range(n)) if order >= 2 else ()
    return Jet(value, first, second)


def is_zero(a: Any) -> bool:
    """Whether an entry of a jet is a structural zero."""
    return isinstance(a, int) and a == 0


def plus(a: Any, b: Any) -> Any:
    return b if is_zero(a) else a if is_zero(b) else a + b


def times(a: Any, b: Any) -> Any:
    return 0 if is_zero(a) or is_zero(b) else a * b


def square(a: Any) -> Any:
    """a^2 for entries of jets; for an interval it is tighter than a product."""
    return a.square() if hasattr(a, "square") else times(a, a)


def jet_sum(a: Jet, b: Jet) -> Jet:
    first = tuple(map(plus, a.first, b.first))
    second = tuple(tuple(map(plus, ra, rb)) for ra, rb in zip(a.second, b.second, strict=True))
    return Jet(a.value + b.value, first, second, plus(a.third, b.third))


def _symmetric(n: int, entry: Callable[[int, int], Any]) -> tuple[tuple[Any, ...], ...]:
    upper = {(v, w): entry(v, w) for v in range(n) for w in range(v, n)}
    return tuple(tuple(upper[min(v, w), max(v, w)] for w in range(n)) for v in range(n))


def jet_product(a: Jet, b: Jet, order: int) -> Jet:
    n = len(a.first)
    first = tuple(plus(times(a.first[v], b.value), times(a.value, b.first[v])) for v in range(n))

    def entry(v: int, w: int) -> Any:
        cross = plus(times(a.first[v], b.first[w]), times(a.first[w], b.first[v]))
        own = plus(times(a.second[v][w], b.value), times(a.value, b.second[v][w]))
        return plus(own, cross)

    third: Any = 0
    if order == 3:
        (a1,), ((a2,),), (b1,), ((b2,),) = a.first, a.second, b.first, b.second
        cross = times(3.0, plus(times(a2, b1), times(a1, b2)))
        third = plus(plus(times(a.third, b.value), times(a.value, b.third)), cross)
    return Jet(a.value * b.value, first, _symmetric(n, entry) if order >= 2 else (), third)


def jet_chain(f: tuple[Any, ...], a: Jet, order: int) -> Jet:
    """The jet of f(a), given f and its derivatives at a."""
    n = len(a.first)
    if order == 0:
        return Jet(f[0])
    first = tuple(times(f[1], d) for d in a.first)

    def entry(v: int, w: int) -> Any:
        both = square(a.first[v]) if v == w else times(a.first[v], a.first[w])
        return plus(times(f[2], both), times(f[1], a.second[v][w]))

    third: Any = 0
    if order == 3:
        (a1,), ((a2,),) = a.first, a.second
        bent = times(3.0, times(f[2], times(a1, a2)))
        third = plus(plus(times(f[3], times(square(a1), a1)), bent), times(f[1], a.third))
    return Jet(f[0], first, _symmetric(n, entry) if order >= 2 else (), third)


def _log_add_exp(a: Jet, b: Jet, order: int) -> Jet:
    xp = namespace(a.value, b.value)
    value = xp.logaddexp(a.value, b.value)
    if order == 0:
        return Jet(value)
    known = xp.where(xp.isfinite(value), value, xp.zeros_like(value))  # both may be log(0)
    p, q = xp.exp(a.value - known), xp.exp(b.value - known)
    n = len(a.first)
    first = tuple(plus(times(p, a.first[v]), times(q, b.first[v])) for v in range(n))

    def entry(v: int, w: int) -> Any:
        gap_v = plus(a.first[v], times(-1.0, b.first[v]))
        gap_w = plus(a.first[w], times(-1.0, b.first[w]))
        mean = plus(times(p, a.second[v][w]), times(q, b.second[v][w]))
        return plus(mean, times(p * q, times(gap_v, gap_w)))

    return Jet(value, first, _symmetric(n, entry) if order == 2 else ())


def _cut(gate: Any, body: Jet, outside: float) -> Jet:
    if isinstance(gate, float | int):  # the same side at all points: no array of any library
        outer = tuple(0 for _ in body.first), tuple((0,) * len(row) for row in body.second)
        return body if gate >= 0 else Jet(outside, *outer)
    xp = namespace(gate, body.value)
    inside = gate >= 0

    def keep(a: Any, other: float) -> Any:
        if is_zero(a):
            return 0
        a = a + xp.zeros_like(gate) if isinstance(a, float) else a
        return xp.where(inside, a, xp.full_like(a, other))

    first = tuple(keep(d, 0.0) for d in body.first)
    second = tuple(tuple(keep(d, 0.0) for d in row) for row in body.second)
    return Jet(keep(body.value, outside), first, second)


def magnifies(p: float) -> bool:
    """Whether a power is so large that the rounding of its base, times p, would matter."""
    return abs(p) > (64 if p == int(p) else 16)


def _power_of_sum(c: float, x: Any, p: float, order: int) -> tuple[Any, ...]:
    """(c + x)^p and its derivatives in x, accurate to a few roundings even for p = 1e16.

    The sum is rounded to v = c + x - e; the error e is known exactly (Knuth's two-sum), and
    (v + e)^p = v^p exp(p log(1 + e / v)), where e / v is at most half an eps.
    """
    xp = namespace(x)
    v, share = _sum_and_error(c, x)
    f = v**p * xp.exp(p * share)
    inverse = 1.0 / xp.where(v == 0.0, xp.ones_like(v), v)
    return (f, p * f * inverse, p * (p - 1.0) * f * inverse * inverse)[: order + 1]


def _log_of_sum(c: float, x: Any, order: int) -> tuple[Any, ...]:
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
