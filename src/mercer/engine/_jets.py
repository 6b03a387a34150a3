"""Order-2 jets: a profile evaluated together with its gradient and Hessian in its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import namespace
from mercer.engine._expr import Add, Const, Cut, Expr, LogAddExp, Mul, Unary, Var


@dataclass(frozen=True)
class Jet:
    """Value, gradient and Hessian of an expression in its variables; 0 marks a structural zero."""

    value: Any
    first: tuple[Any, ...] = ()
    second: tuple[tuple[Any, ...], ...] = ()


def evaluate(expr: Expr, inputs: Sequence[Any], order: int = 0) -> Jet:
    """Evaluate the expression, and its derivatives in the inputs up to `order` (0, 1 or 2)."""
    memo: dict[int, Jet] = {}

    def visit(node: Expr) -> Jet:
        if id(node) not in memo:
            memo[id(node)] = jet(node)
        return memo[id(node)]

    def jet(node: Expr) -> Jet:
        match node:
            case Var(index=i):
                return _jet_of(inputs[i], order, len(inputs), i)
            case Const(value=c):
                return _jet_of(c, order, len(inputs), None)
            case Add(left=a, right=b):
                return _combine(visit(a), visit(b), _plus, order)
            case Mul(left=a, right=b):
                return _product(visit(a), visit(b), order)
            case LogAddExp(left=a, right=b):
                return _log_add_exp(visit(a), visit(b), order)
            case Cut(gate=g, body=b, outside=c):
                return _cut(visit(g).value, visit(b), c, order)
            case Unary(arg=a):
                inner = visit(a)
                return _chain(node.derivatives(inner.value, order), inner, order)
        raise TypeError(f"not a profile expression: {node!r}")  # pragma: no cover

    return visit(expr)


@lru_cache(maxsize=1024)
def at_zero(expr: Expr, variables: int) -> Jet:
    """The jet at u = 0, in float64: is the profile smooth there?"""
    with np.errstate(all="ignore"):
        return evaluate(expr, [np.zeros(1) for _ in range(variables)], order=2)


def _jet_of(value: Any, order: int, n: int, seed: int | None) -> Jet:
    first = tuple(1.0 if i == seed else 0 for i in range(n)) if order >= 1 else ()
    second = tuple((0,) * n for _ in range(n)) if order == 2 else ()
    return Jet(value, first, second)


def _is_zero(a: Any) -> bool:
    return isinstance(a, int) and a == 0


def _plus(a: Any, b: Any) -> Any:
    return b if _is_zero(a) else a if _is_zero(b) else a + b


def _times(a: Any, b: Any) -> Any:
    return 0 if _is_zero(a) or _is_zero(b) else a * b


def _combine(a: Jet, b: Jet, f: Callable[[Any, Any], Any], order: int) -> Jet:
    first = tuple(map(f, a.first, b.first))
    second = tuple(tuple(map(f, ra, rb)) for ra, rb in zip(a.second, b.second, strict=True))
    return Jet(f(a.value, b.value), first, second)


def _symmetric(n: int, entry: Callable[[int, int], Any]) -> tuple[tuple[Any, ...], ...]:
    upper = {(v, w): entry(v, w) for v in range(n) for w in range(v, n)}
    return tuple(tuple(upper[min(v, w), max(v, w)] for w in range(n)) for v in range(n))


def _product(a: Jet, b: Jet, order: int) -> Jet:
    n = len(a.first)
    first = tuple(
        _plus(_times(a.first[v], b.value), _times(a.value, b.first[v])) for v in range(n)
    )

    def entry(v: int, w: int) -> Any:
        cross = _plus(_times(a.first[v], b.first[w]), _times(a.first[w], b.first[v]))
        own = _plus(_times(a.second[v][w], b.value), _times(a.value, b.second[v][w]))
        return _plus(own, cross)

    return Jet(a.value * b.value, first, _symmetric(n, entry) if order == 2 else ())


def _chain(f: tuple[Any, ...], a: Jet, order: int) -> Jet:
    n = len(a.first)
    if order == 0:
        return Jet(f[0])
    first = tuple(_times(f[1], d) for d in a.first)

    def entry(v: int, w: int) -> Any:
        return _plus(
            _times(f[2], _times(a.first[v], a.first[w])), _times(f[1], a.second[v][w])
        )

    return Jet(f[0], first, _symmetric(n, entry) if order == 2 else ())


def _log_add_exp(a: Jet, b: Jet, order: int) -> Jet:
    xp = namespace(a.value, b.value)
    high = xp.maximum(a.value, b.value)
    p, q = xp.exp(a.value - high), xp.exp(b.value - high)
    total = p + q
    value = high + xp.log(total)
    if order == 0:
        return Jet(value)
    p, q = p / total, q / total
    n = len(a.first)
    first = tuple(_plus(_times(p, a.first[v]), _times(q, b.first[v])) for v in range(n))

    def entry(v: int, w: int) -> Any:
        gap_v = _plus(a.first[v], _times(-1.0, b.first[v]))
        gap_w = _plus(a.first[w], _times(-1.0, b.first[w]))
        mean = _plus(_times(p, a.second[v][w]), _times(q, b.second[v][w]))
        return _plus(mean, _times(p * q, _times(gap_v, gap_w)))

    return Jet(value, first, _symmetric(n, entry) if order == 2 else ())


def _cut(gate: Any, body: Jet, outside: float, order: int) -> Jet:
    xp = namespace(gate, body.value)
    inside = gate >= 0

    def keep(a: Any, other: float) -> Any:
        if _is_zero(a):
            return 0
        a = a + xp.zeros_like(gate) if isinstance(a, float) else a
        return xp.where(inside, a, xp.full_like(a, other))

    first = tuple(keep(d, 0.0) for d in body.first)
    second = tuple(tuple(keep(d, 0.0) for d in row) for row in body.second)
    return Jet(keep(body.value, outside), first, second)
