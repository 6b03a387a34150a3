"""Profiles as expressions: what `profile(u)` builds, evaluated with its first two derivatives.

A kernel states its profile once, in ordinary arithmetic. When it is called with a `Var`, the
arithmetic is recorded as a small tree, and the tree is what every engine runs: on arrays of any
array-API library, on order-2 jets for derivatives, in log space (`_log_profile`), and as the tape
of the compiled core. All nodes are values: immutable, comparable, hashable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mercer._tensors import namespace
from mercer.exceptions import DerivativeError, InputError


class Expr(NDArrayOperatorsMixin):
    """A node of a profile; arithmetic on nodes, and NumPy's exp, log, sqrt..., build new nodes."""

    __ne__ = object.__ne__  # nodes are compared, not recorded

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        build = _UFUNCS.get(ufunc.__name__)
        in_place = kwargs.pop("out", (self,))[0] is self  # u += 1 makes a new node
        if build is None or method != "__call__" or kwargs or not in_place:
            return NotImplemented
        return build(*(as_expr(i) for i in inputs))


@dataclass(frozen=True)
class Var(Expr):
    """Variable number `index` of a program; `nonnegative` for squared distances and norms."""

    index: int
    nonnegative: bool = False


@dataclass(frozen=True)
class Const(Expr):
    """A number."""

    value: float


@dataclass(frozen=True)
class Binary(Expr):
    """A function of two nodes."""

    left: Expr
    right: Expr


class Add(Binary):
    """The sum."""


class Mul(Binary):
    """The product."""


class LogAddExp(Binary):
    """log(exp(left) + exp(right)), without overflow: the sum of two profiles in log space."""


@dataclass(frozen=True)
class Cut(Expr):
    """`body` if `gate` >= 0, else `outside`; derivatives are those of the chosen side."""

    gate: Expr
    body: Expr
    outside: float = 0.0


@dataclass(frozen=True)
class Unary(Expr):
    """A function of one node, with its first two derivatives."""

    arg: Expr

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        """Return (f(x), f'(x), f''(x)) up to the given order."""
        raise NotImplementedError  # pragma: no cover


@dataclass(frozen=True)
class Exp(Unary):
    """The exponential."""

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        f = namespace(x).exp(x)
        return (f, f, f)[: order + 1]


@dataclass(frozen=True)
class Log(Unary):
    """The natural logarithm."""

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        f = namespace(x).log(x)
        if order == 0:
            return (f,)
        inverse = 1.0 / x
        return (f, inverse, -inverse * inverse)[: order + 1]


@dataclass(frozen=True)
class Tanh(Unary):
    """The hyperbolic tangent."""

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        xp = namespace(x)
        f = xp.tanh(x)
        if order == 0:
            return (f,)
        e = xp.exp(-2.0 * xp.abs(x))
        first = 4.0 * e / ((1.0 + e) * (1.0 + e))  # 1 - f^2 would cancel where |f| is near 1
        return (f, first, -2.0 * f * first)[: order + 1]


@dataclass(frozen=True)
class Pow(Unary):
    """A constant power; whole powers by multiplication, so that any sign is allowed."""

    exponent: float

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        p = self.exponent
        chain: tuple[Any, ...] = (_power_of(x, p),)
        if order >= 1:
            chain += (p * _power_of(x, p - 1.0),)
        if order >= 2:
            chain += (p * (p - 1.0) * _power_of(x, p - 2.0),)
        return chain


@dataclass(frozen=True)
class Matern(Unary):
    """Matern profile of w = z^2 for nu = 3/2 or 5/2, by the recursion M_nu' ~ -M_(nu-1).

    (1 + z) e^-z and (1 + z + z^2/3) e^-z. The chain rule through z = sqrt(w) would give inf - inf
    at w = 0, where the derivatives are finite (the second of nu = 3/2 is not).
    """

    nu: float

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        xp = namespace(x)
        z = xp.sqrt(x)
        e = xp.exp(-z)
        if self.nu == 1.5:
            chain = ((1.0 + z) * e, -0.5 * e)
            return chain[: order + 1] if order < 2 else (*chain, 0.25 * e / z)
        chain = ((1.0 + z + x / 3.0) * e, (-1.0 / 6.0) * (1.0 + z) * e)
        return chain[: order + 1] if order < 2 else (*chain, e / 12.0)


@dataclass(frozen=True)
class LogMatern(Unary):
    """The logarithm of `Matern`, finite where the profile itself underflows."""

    nu: float

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        xp = namespace(x)
        z = xp.sqrt(x)
        if self.nu == 1.5:
            q = 1.0 + z
            ratios = (-0.5 / q, 0.25 / (z * q) if order == 2 else 0.0)  # k'/k and k''/k
        else:
            q = 1.0 + z + x / 3.0
            ratios = (-(1.0 + z) / (6.0 * q), 1.0 / (12.0 * q))
        value = xp.log(q) - z
        return (value, ratios[0], ratios[1] - ratios[0] * ratios[0])[: order + 1]


@dataclass(frozen=True)
class Opaque(Unary):
    """A user's profile that could not be recorded: a function of arrays, and its derivatives."""

    function: Callable[[Any], Any]
    slopes: Callable[[Any], tuple[Any, Any]] | None = None

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        if order == 0:
            return (self.function(x),)
        if self.slopes is None:
            raise DerivativeError(
                "this profile uses functions mercer cannot differentiate; write it with "
                "arithmetic, exp, log, sqrt and powers, or add a method profile_derivatives(u) "
                "that returns (k'(u), k''(u))"
            )
        return (self.function(x), *self.slopes(x))[: order + 1]


def _power_of(x: Any, p: float) -> Any:
    """x ** p, by multiplication or square roots where those are exact or faster."""
    if p == 0.0:
        return 1.0
    if p < 0.0:
        return 1.0 / _power_of(x, -p)
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


def as_expr(value: Any) -> Expr:
    return value if isinstance(value, Expr) else Const(float(value))


def add(a: Expr, b: Expr) -> Expr:
    """a + b, constants folded and kept on the left."""
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(a.value + b.value)
    if isinstance(b, Const):
        a, b = b, a
    if isinstance(a, Const) and a.value == 0.0:
        return b
    if isinstance(a, Const) and isinstance(b, Add) and isinstance(b.left, Const):
        return add(Const(a.value + b.left.value), b.right)
    return Add(a, b)


def multiply(a: Expr, b: Expr) -> Expr:
    """a * b, constants folded and kept on the left."""
    if isinstance(a, Const) and isinstance(b, Const):
        product = a.value * b.value
        if math.isinf(product) and math.isfinite(a.value) and math.isfinite(b.value):
            raise InputError(
                f"constants of the kernel overflow: {a.value:g} times {b.value:g}; rescale it"
            )
        return Const(product)
    if isinstance(b, Const):
        a, b = b, a
    if isinstance(a, Const) and a.value == 1.0:
        return b
    if isinstance(a, Const) and isinstance(b, Mul) and isinstance(b.left, Const):
        return multiply(multiply(a, b.left), b.right)
    if isinstance(b, Mul) and isinstance(b.left, Const):
        return multiply(b.left, multiply(a, b.right))
    if isinstance(a, Mul) and isinstance(a.left, Const):
        return multiply(a.left, multiply(a.right, b))
    if isinstance(a, Exp) and isinstance(b, Exp):  # the factors alone might overflow or underflow
        return function(Exp(add(a.arg, b.arg)))
    return Mul(a, b)


def negative(a: Expr) -> Expr:
    return multiply(Const(-1.0), a)


def power(a: Expr, p: float) -> Expr:
    if p == 0.0:
        return Const(1.0)
    if isinstance(a, Exp):
        return Exp(multiply(Const(p), a.arg))
    if isinstance(a, Mul) and isinstance(a.left, Const) and a.left.value > 0:
        return multiply(power(a.left, p), power(a.right, p))
    return a if p == 1.0 else function(Pow(a, p))


def function(node: Unary) -> Expr:
    """A function of one node; its value if that is a constant."""
    if not isinstance(node.arg, Const):
        return node
    with np.errstate(all="ignore"):
        return Const(float(node.derivatives(np.asarray(node.arg.value), 0)[0]))


def cut(gate: Any, body: Any) -> Any:
    """`body` if `gate` >= 0, else 0; for expressions and for arrays."""
    if isinstance(gate, Expr):
        return Cut(gate, as_expr(body))
    xp = namespace(gate)
    return xp.where(gate >= 0, body, xp.zeros_like(gate))


def matern(w: Any, nu: float) -> Any:
    """The Matern profile of w = z^2 for nu = 3/2 or 5/2; for expressions and for arrays."""
    return Matern(w, nu) if isinstance(w, Expr) else Matern(Var(0), nu).derivatives(w, 0)[0]


def substitute(expr: Expr, replacements: Sequence[Expr]) -> Expr:
    """The expression with variable number i replaced by `replacements[i]`."""
    match expr:
        case Var(index=i):
            return replacements[i]
        case Const():
            return expr
        case Add(left=a, right=b):
            return add(substitute(a, replacements), substitute(b, replacements))
        case Mul(left=a, right=b):
            return multiply(substitute(a, replacements), substitute(b, replacements))
        case Cut(gate=g, body=b, outside=c):
            return Cut(substitute(g, replacements), substitute(b, replacements), c)
        case Pow(arg=a, exponent=p):
            return power(substitute(a, replacements), p)
        case Unary(arg=a):
            return function(replace(expr, arg=substitute(a, replacements)))
    raise TypeError(f"not a profile expression: {expr!r}")  # pragma: no cover


_UFUNCS: dict[str, Callable[..., Expr]] = {
    "add": add,
    "multiply": multiply,
    "subtract": lambda a, b: add(a, negative(b)),
    "divide": lambda a, b: multiply(a, power(b, -1.0)),
    "negative": negative,
    "exp": lambda a: function(Exp(a)),
    "log": lambda a: function(Log(a)),
    "sqrt": lambda a: power(a, 0.5),
    "square": lambda a: power(a, 2.0),
    "tanh": lambda a: function(Tanh(a)),
    "reciprocal": lambda a: power(a, -1.0),
    "power": lambda a, p: power(a, p.value) if isinstance(p, Const) else np.exp(p * np.log(a)),
    "maximum": lambda a, b: b + Cut(a - b, a - b),
}
