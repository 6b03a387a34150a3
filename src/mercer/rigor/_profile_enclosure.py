"""Ranges of a recorded profile and of its derivatives over intervals of its variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
    function,
    multiply,
    power,
)
from mercer.engine.programs._jets import (
    Jet,
    is_zero,
    jet_chain,
    jet_leaf,
    jet_product,
    jet_sum,
    times,
)
from mercer.exceptions import InputError
from mercer.rigor._intervals import Interval, as_interval, down, up

ZERO = Interval(np.zeros(1), np.zeros(1))


@dataclass(frozen=True)
class _Scope:
    """Where to enclose: ranges of the variables, the order, and how exact constants are."""

    inputs: Sequence[Interval]
    order: int
    rounded: bool = False  # constants are only known to a relative error of 8 eps


def enclose(expr: Expr, inputs: Sequence[Interval], order: int = 0) -> Jet:
    """Enclose a profile and its derivatives over intervals of its variables, rounding included.

    Derivatives are those of each smooth piece. Across a kink they cover both sides. Across a jump,
    and where they are infinite, their bounds are infinite or NaN. The third derivative (order 3)
    is available for profiles of one variable.
    """
    with np.errstate(all="ignore"):
        return _enclose(expr, _Scope(inputs, order))


def profile_ranges(profile: Expr, u: Interval, order: int = 0) -> list[Interval]:
    """Ranges of k, k', ... of a profile of one variable; infinite where they are not known."""
    return _listed(enclose(profile, [u], order), order, u)


def profile_ranges_in_distance(profile: Expr, r: Interval, order: int = 0) -> list[Interval]:
    """Ranges of q(r) = k(r^2) and its derivatives in r, which are finite at a cusp."""
    with np.errstate(all="ignore"):
        return _listed(_enclose(in_distance(profile), _Scope([r], order, rounded=True)), order, r)


def _listed(jet: Jet, order: int, over: Interval) -> list[Interval]:
    parts = (jet.value, *jet.first, *(row[0] for row in jet.second), jet.third)
    return [as_interval(x).known().broadcast(np.shape(over.lo)) for x in parts[: order + 1]]


def _enclose(expr: Expr, scope: _Scope, gate: Expr | None = None) -> Jet:
    """Enclose where `gate` >= 0, which is a lower bound of an expression like gate + c."""
    jet = _visit(expr, scope, gate)
    least = None if gate is None else _excess(expr, gate)
    if least is None:
        return jet
    low = np.maximum(jet.value.lo, down(least) if least else 0.0)
    return replace(jet, value=Interval(low, np.maximum(jet.value.hi, low)))


def _visit(expr: Expr, scope: _Scope, gate: Expr | None) -> Jet:
    match expr:
        case Var(index=i):
            return jet_leaf(scope.inputs[i], scope.order, len(scope.inputs), i)
        case Const(value=c):
            value = np.asarray(c)
            exact = not scope.rounded or c == 0.0
            ends = Interval(value, value) if exact else Interval(down(value), up(value))
            return jet_leaf(ends, scope.order, len(scope.inputs), None)
        case Add(left=a, right=b):
            return jet_sum(_enclose(a, scope, gate), _enclose(b, scope, gate))
        case Mul(left=a, right=b):
            return jet_product(_enclose(a, scope, gate), _enclose(b, scope, gate), scope.order)
        case Cut():
            return _cut(expr, scope)
        case Unary(arg=a):
            inner = _enclose(a, scope, gate)
            return jet_chain(_ranges(expr, inner.value, scope.order), inner, scope.order)
    raise InputError(f"no interval arithmetic for {type(expr).__name__} in a profile")


def _ranges(node: Unary, x: Interval, order: int) -> tuple[Any, ...]:
    """Ranges of f and its first derivatives over an interval; each is monotone, or a power."""
    match node:
        case Exp():
            return (_exp(x),) * (order + 1)
        case Log():
            f = Interval(down(np.log(np.maximum(x.lo, 0.0))), up(np.log(x.hi)))
            slopes = [times(c, _power(x, -float(i))) for i, c in ((1, 1.0), (2, -1.0), (3, 2.0))]
            return (f, *slopes[:order])
        case Pow(exponent=p):
            found, factor = [], 1.0
            for i in range(order + 1):
                found.append(times(factor or 0, _power(x, p - i, exact=p - i + i == p)))
                factor *= p - i
            return tuple(found)
        case Matern():
            return _matern(node, x)[: order + 1]
    raise InputError(
        "the profile of this kernel could not be recorded, so its range over a box is not known; "
        "write it with arithmetic, exp, log, sqrt and powers"
    )


def _exp(x: Interval) -> Interval:
    return Interval(np.maximum(down(np.exp(x.lo)), 0.0), up(np.exp(x.hi)))


def _power(x: Interval, p: float, exact: bool = True) -> Any:
    """x^p; 1.0 for p = 0. Powers of negative numbers exist only for integer p.

    `exact`: whether p is the exponent that was asked for, not a rounded one.
    """
    if p == 0.0:
        return 1.0
    whole = p == int(p)
    low, high = (x.lo, x.hi) if whole else (np.maximum(x.lo, 0.0), np.maximum(x.hi, 0.0))
    a, b = np.asarray(low) ** p, np.asarray(high) ** p
    straddles = (low < 0) & (high > 0)
    lowest, highest = np.minimum(a, b), np.maximum(a, b)
    if p < 0:
        pole = straddles | ((low < 0) & (high == 0) & whole)
        lowest, highest = np.where(pole, -np.inf, lowest), np.where(pole, np.inf, highest)
    elif whole and int(p) % 2 == 0:
        lowest = np.where(straddles, 0.0, lowest)
    if not exact:  # x^(p (1 + e)) = x^p x^(p e)
        off = 1.0 + float(np.finfo(float).eps) * np.fmax(
            *(np.abs(np.log(np.maximum(v, 0.0)) * p) for v in (low, high))
        )
        lowest, highest = lowest / off, highest * off
    lowest = down(lowest)
    nonnegative = not whole or int(p) % 2 == 0 or low >= 0
    return Interval(np.where(nonnegative, np.maximum(lowest, 0.0), lowest), up(highest))


def _matern(node: Matern, x: Interval) -> tuple[Any, ...]:
    """The Matern profile of w = z^2 and three derivatives, whose sizes fall with z to zero."""
    z = _power(Interval(np.maximum(x.lo, 0.0), np.maximum(x.hi, 0.0)), 0.5)
    # beyond 700 exp(-z) is too small for a relative bound, and the sizes at 700 are bounds
    ends = np.minimum(z.lo, 700.0), z.hi
    near, far = (_matern_sizes(node.nu, Interval(end, end)) for end in ends)
    sizes = [
        Interval(np.fmax(b.lo, 0.0), np.where(np.isinf(z.lo), 0.0, a.hi))
        for a, b in zip(near, far, strict=True)
    ]
    return sizes[0], -sizes[1], sizes[2], -sizes[3]


def _matern_sizes(nu: float, z: Interval) -> tuple[Any, ...]:
    """Sizes of M and its derivatives in w = z^2, each 1/(2z) times the fall of the previous one."""
    fall, inverse = _exp(-z), _power(z, -1.0)
    bend = fall * inverse
    if nu == 1.5:
        third = bend * (inverse + inverse.square())
        return (1.0 + z) * fall, 0.5 * fall, 0.25 * bend, 0.125 * third
    head = 1.0 + z + (1.0 / 3.0) * z.square()
    return head * fall, (1.0 / 6.0) * ((1.0 + z) * fall), (1.0 / 12.0) * fall, (1.0 / 24.0) * bend


def _cut(node: Cut, scope: _Scope) -> Jet:
    gate = _enclose(node.gate, replace(scope, order=0)).value
    body = _enclose(node.body, scope, node.gate)
    inside, outside = gate.lo >= 0, gate.hi < 0
    continuous = node.outside == 0.0 and _vanishes_with(node.body, node.gate)
    rise = 0.0 if continuous else np.inf

    def pieced(a: Any, other: float, across: float) -> Any:
        """The body inside, a number outside, the hull of both (or everything) between."""
        if is_zero(a) and across == 0.0:
            return 0
        a = as_interval(a)
        low = np.where(outside, other, np.minimum(a.lo, other) - across)
        high = np.where(outside, other, np.maximum(a.hi, other) + across)
        return Interval(np.where(inside, a.lo, low), np.where(inside, a.hi, high))

    first = tuple(pieced(d, 0.0, rise) for d in body.first)
    second = tuple(tuple(pieced(d, 0.0, np.inf) for d in row) for row in body.second)
    third = pieced(body.third, 0.0, np.inf) if scope.order == 3 else 0
    return Jet(pieced(body.value, node.outside, 0.0), first, second, third)


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
    return bool(body == gate)


@lru_cache(maxsize=256)
def in_distance(expr: Expr) -> Expr:
    """The profile as an expression of r = sqrt(u), roots of u taken; its constants are rounded."""
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
            return function(Exp(in_distance(a)))
        case Log(arg=a):
            return function(Log(in_distance(a)))
        case Pow(arg=a, exponent=p):
            return _root(in_distance(a), p)
        case Matern(arg=a, nu=nu):
            z = _root(in_distance(a), 0.5)
            poly = 1.0 + z if nu == 1.5 else 1.0 + z + z**2 / 3.0
            return multiply(poly, function(Exp(-z)))
    return expr


def _root(a: Expr, p: float) -> Expr:
    match a:
        case Mul(left=Const(value=c), right=b) if c > 0:
            return multiply(Const(math.pow(c, p)), _root(b, p))
        case Pow(arg=Var() as r, exponent=q):
            return power(r, q * p)
    return power(a, p)
