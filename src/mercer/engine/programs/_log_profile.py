"""Profiles in log space: log k(u) as an expression, finite even where k(u) underflows.

Symbolic, not numeric: log(exp(a)) is a, the log of a product is a sum of logs, the log of a sum is
`LogAddExp`. Defined for profiles that are positive by their form; None for all others.
"""

from __future__ import annotations

import math
from functools import lru_cache

from mercer.engine.programs._expr import (
    Add,
    Const,
    Cut,
    Exp,
    Expr,
    Log,
    LogAddExp,
    LogMatern,
    Matern,
    Mul,
    Pow,
    Unary,
    Var,
    add,
    function,
    multiply,
)


@lru_cache(maxsize=1024)
def log_expr(expr: Expr) -> Expr | None:
    """The logarithm of the expression, or None where it is not positive by its form."""
    match expr:
        case Const(value=c):
            return Const(math.log(c)) if c > 0 else None
        case Exp(arg=a):
            return a
        case Matern(arg=a, nu=nu):
            return LogMatern(a, nu)
        case Pow(arg=a, exponent=p):
            inner = log_expr(a)
            return None if inner is None else multiply(Const(p), inner)
        case Mul(left=a, right=b):
            la, lb = log_expr(a), log_expr(b)
            return None if la is None or lb is None else add(la, lb)
        case Add(left=a, right=b):
            if _tame(expr):
                return function(Log(expr)) if _positive(expr) else None
            la, lb = log_expr(a), log_expr(b)
            return None if la is None or lb is None else LogAddExp(la, lb)
        case Cut(gate=g, body=b, outside=outside):
            inner = log_expr(b) if outside == 0.0 else None
            return None if inner is None else Cut(g, inner, -math.inf)
    return None


def _tame(expr: Expr) -> bool:
    """No exponential inside: the sum can be formed without underflow."""
    match expr:
        case Add(left=a, right=b) | Mul(left=a, right=b):
            return _tame(a) and _tame(b)
        case Pow(arg=a, exponent=p):
            return _tame(a) and p >= 0
        case Unary():
            return False
    return True


def _positive(expr: Expr) -> bool:
    match expr:
        case Const(value=c):
            return c > 0
        case Exp() | Matern():
            return True
        case Add(left=a, right=b):
            return (_positive(a) and is_nonnegative(b)) or (is_nonnegative(a) and _positive(b))
        case Mul(left=a, right=b):
            return _positive(a) and _positive(b)
        case Pow(arg=a):
            return _positive(a)
    return False


def is_nonnegative(expr: Expr) -> bool:
    """Whether the expression is >= 0 by its form."""
    match expr:
        case Const(value=c):
            return c >= 0
        case Var(nonnegative=flag):
            return flag
        case Add(left=a, right=b) | Mul(left=a, right=b):
            return is_nonnegative(a) and is_nonnegative(b)
        case Pow(arg=a):
            return is_nonnegative(a)
    return _positive(expr)
