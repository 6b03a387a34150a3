"""Double loops: Gram matrices, sums, derivatives and moments by definition, one pair at a time.

Everything here is plain float64 arithmetic on Python numbers, without a clever idea in it: that
is its worth. A kernel is a function k(x, y) of two sequences of numbers, written with operators
and the `exp`, `log` and `sqrt` of this module; its derivatives in y come from hyper-dual numbers,
which carry f, f' and f'' through the arithmetic exactly (no step size).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Kernel = Callable[[Sequence[Any], Sequence[Any]], Any]


@dataclass(slots=True)
class Hyper:
    """f + a e + b e' + c e e' with e^2 = e'^2 = 0: a number with derivatives in two directions."""

    f: float
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0

    def chain(self, f: float, df: float, ddf: float) -> Hyper:
        """A function of this number, given its value and first two derivatives here."""
        return Hyper(f, df * self.a, df * self.b, df * self.c + ddf * self.a * self.b)

    def __add__(self, other: Any) -> Hyper:
        o = _hyper(other)
        return Hyper(self.f + o.f, self.a + o.a, self.b + o.b, self.c + o.c)

    def __mul__(self, other: Any) -> Hyper:
        o = _hyper(other)
        cross = self.f * o.c + self.a * o.b + self.b * o.a + self.c * o.f
        return Hyper(self.f * o.f, self.f * o.a + self.a * o.f, self.f * o.b + self.b * o.f, cross)

    def __pow__(self, p: float) -> Hyper:
        first = p * self.f ** (p - 1) if p != 0 else 0.0
        second = p * (p - 1) * self.f ** (p - 2) if p not in (0, 1) else 0.0
        return self.chain(self.f**p, first, second)

    def __neg__(self) -> Hyper:
        return self * -1.0

    def __sub__(self, other: Any) -> Hyper:
        return self + (-1.0) * other

    def __rsub__(self, other: Any) -> Hyper:
        return -self + other

    def __truediv__(self, other: Any) -> Hyper:
        return self * _hyper(other) ** -1.0

    def __rtruediv__(self, other: Any) -> Hyper:
        return self**-1.0 * other

    __radd__ = __add__
    __rmul__ = __mul__


def _hyper(x: Any) -> Hyper:
    return x if isinstance(x, Hyper) else Hyper(float(x))


def exp(x: Any) -> Any:
    """The exponential."""
    if not isinstance(x, Hyper):
        return math.exp(x)
    e = math.exp(x.f)
    return x.chain(e, e, e)


def log(x: Any) -> Any:
    """The natural logarithm."""
    if not isinstance(x, Hyper):
        return math.log(x)
    return x.chain(math.log(x.f), 1.0 / x.f, -1.0 / x.f**2)


def sqrt(x: Any) -> Any:
    """The square root; only its value exists at zero."""
    return x**0.5


def dot(x: Sequence[Any], y: Sequence[Any]) -> Any:
    """<x, y>."""
    return sum((p * q for p, q in zip(x, y, strict=True)), start=0.0)


def squared_distance(x: Sequence[Any], y: Sequence[Any]) -> Any:
    """|x - y|^2."""
    return sum(((p - q) * (p - q) for p, q in zip(x, y, strict=True)), start=0.0)


def mapped(k: Kernel, A: Any) -> Kernel:
    """k(Ax, Ay) for a matrix A."""
    rows = rows_of(A)

    def image(x: Sequence[Any]) -> list[Any]:
        return [dot(row, x) for row in rows]

    return lambda x, y: k(image(x), image(y))


def rows_of(X: Any) -> list[list[float]]:
    """Points as lists of Python floats; float32 becomes float64 without a change."""
    return np.asarray(X, dtype=np.float64).tolist()


def gram(k: Kernel, X: Any, Y: Any = None) -> np.ndarray:
    """k(x_i, y_j), shape (n, m)."""
    X = rows_of(X)
    Y = X if Y is None else rows_of(Y)
    return np.array([[float(k(x, y)) for y in Y] for x in X])


def values(k: Kernel, X: Any, Y: Any) -> np.ndarray:
    """k(x_i, y_j) with the query first, shape (m, n): the terms of a sum at y_j."""
    return gram(k, X, Y).T


def gradients(k: Kernel, X: Any, Y: Any) -> np.ndarray:
    """The gradient of k(x_i, y_j) in y_j, shape (m, n, d)."""
    X, Y = rows_of(X), rows_of(Y)
    d = range(len(Y[0]))
    return np.array([[[_hyper(k(x, _seed(y, p, p))).a for p in d] for x in X] for y in Y])


def hessians(k: Kernel, X: Any, Y: Any) -> np.ndarray:
    """The second derivative of k(x_i, y_j) in y_j, shape (m, n, d, d)."""
    X, Y = rows_of(X), rows_of(Y)
    d = range(len(Y[0]))
    out = np.zeros((len(Y), len(X), len(d), len(d)))
    for j, y in enumerate(Y):
        for i, x in enumerate(X):
            for p in d:
                for q in range(p + 1):
                    out[j, i, p, q] = out[j, i, q, p] = _hyper(k(x, _seed(y, p, q))).c
    return out


def mixed_derivatives(k: Kernel, X: Any, Y: Any) -> np.ndarray:
    """d^2 k(x_i, y_j) / dx_i dy_j', shape (n, m, d, d)."""
    X, Y = rows_of(X), rows_of(Y)
    d = range(len(Y[0]))

    def entry(x: Sequence[float], y: Sequence[float], p: int, q: int) -> float:
        first = [Hyper(v, a=float(r == p)) for r, v in enumerate(x)]
        second = [Hyper(v, b=float(r == q)) for r, v in enumerate(y)]
        return _hyper(k(first, second)).c

    return np.array([[[[entry(x, y, p, q) for q in d] for p in d] for y in Y] for x in X])


def _seed(y: Sequence[float], p: int, q: int) -> list[Hyper]:
    return [Hyper(v, float(i == p), float(i == q)) for i, v in enumerate(y)]


def sums(terms: np.ndarray, A: Any) -> np.ndarray:
    """sum_i A[i, l] terms[j, i], shape (m, b, ...): every element at every query."""
    A = np.asarray(A, dtype=np.float64)
    out = np.zeros((terms.shape[0], A.shape[1], *terms.shape[2:]))
    for j in range(terms.shape[0]):
        for i in range(A.shape[0]):
            for l in range(A.shape[1]):  # noqa: E741
                out[j, l] += A[i, l] * terms[j, i]
    return out


def paired_sums(terms: np.ndarray, A: Any) -> np.ndarray:
    """sum_i A[i, j] terms[j, i], shape (m, ...): element j at query j."""
    A = np.asarray(A, dtype=np.float64)
    out = np.zeros((terms.shape[0], *terms.shape[2:]))
    for j in range(terms.shape[0]):
        for i in range(A.shape[0]):
            out[j] += A[i, j] * terms[j, i]
    return out


def inner(k: Kernel, X: Any, A: Any, Y: Any, B: Any) -> np.ndarray:
    """<psi_l, phi_r> = sum_ij A[i, l] B[j, r] k(x_i, y_j), shape (b, b')."""
    K = gram(k, X, Y)
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    out = np.zeros((A.shape[1], B.shape[1]))
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            for l in range(A.shape[1]):  # noqa: E741
                for r in range(B.shape[1]):
                    out[l, r] += A[i, l] * B[j, r] * K[i, j]
    return out


def moments(weight: Callable[[float], float], X: Any, A: Any, Y: Any) -> tuple[np.ndarray, ...]:
    """Sums of w, w (x - y) and w (x - y)(x - y)' with w = A[i, j] weight(|x_i - y_j|^2).

    A has one column for all queries, or one for each.
    """
    X, Y = rows_of(X), rows_of(Y)
    A = np.asarray(A, dtype=np.float64)
    d = len(Y[0])
    zeroth, first, second = np.zeros(len(Y)), np.zeros((len(Y), d)), np.zeros((len(Y), d, d))
    for j, y in enumerate(Y):
        for i, x in enumerate(X):
            w = A[i, j if A.shape[1] > 1 else 0] * weight(squared_distance(x, y))
            zeroth[j] += w
            for p in range(d):
                first[j, p] += w * (x[p] - y[p])
                for q in range(d):
                    second[j, p, q] += w * (x[p] - y[p]) * (x[q] - y[q])
    return zeroth, first, second


def highest(log_k: Kernel, X: Any, Y: Any) -> np.ndarray:
    """max_i log k(x_i, y_j), shape (m,): what a log-shift takes out."""
    return values(log_k, X, Y).max(axis=1)


def shifted(log_k: Kernel, high: float) -> Kernel:
    """The kernel exp(log k - high), which does not underflow where log k is near `high`."""
    return lambda x, y: exp(log_k(x, y) - high)
