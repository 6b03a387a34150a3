"""Finite-rank operators between two spaces: tensor products and covariance operators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array, as_weights, instance, real
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.space._element import Element
from mercer.space._features import feature
from mercer.space._points import checked_points

_BLOCK = 1024  # rank-one terms whose inner products are held at once


@dataclass(frozen=True, eq=False)
class _Term:
    """sum_j w_j left_j (x) right_j over two batches of equal size."""

    left: Element
    right: Element
    weights: Array


@dataclass(frozen=True, eq=False, repr=False)
class Operator:
    """An operator of finite rank from one space to another, sum_j w_j u_j (x) v_j.

    (u (x) v) psi = <v, psi> u. Operators add, scale, transpose, act on elements and have a
    Hilbert-Schmidt inner product. Create them with `tensor` and `covariance`.

    Parameters
    ----------
    terms : tuple
        The weights w and batches u and v of each term.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> u, v = mc.Element(k, [[0.0]], [2.0]), mc.Element(k, [[1.0]], [3.0])
    >>> float(mc.space.tensor(u, v).norm())
    6.0
    """

    terms: tuple[_Term, ...]

    def __call__(self, psi: Element) -> Element:
        """Return the image of an element, or of each element of a batch."""
        parts = []
        for t in self.terms:
            products = np.asarray(t.right.inner(psi))  # (terms,) or (terms, b)
            weights = t.weights if products.ndim == 1 else t.weights[:, None]
            parts.append(t.left.combine(weights * products))
        return sum(parts[1:], parts[0])

    @property
    def T(self) -> Operator:
        """The adjoint, sum_j w_j v_j (x) u_j."""
        return Operator(tuple(_Term(t.right, t.left, t.weights) for t in self.terms))

    def inner(self, other: Operator) -> float:
        """Return the Hilbert-Schmidt inner product, from <u (x) v, a (x) b> = <u, a> <v, b>."""
        terms = instance(other, Operator, "other").terms
        with np.errstate(over="ignore", invalid="ignore"):
            found = sum(_term_inner(s, t) for s in self.terms for t in terms)
        if not np.isfinite(found):
            raise InputError("the inner product overflows; scale the operators down")
        return found

    def norm(self) -> float:
        """Return the Hilbert-Schmidt norm."""
        units = [_unit(t) for t in self.terms]  # so that no product overflows or underflows
        size = max(factor for _, factor in units)
        if size == np.inf:
            raise InputError("the norm overflows; scale the operator down")
        if size == 0.0:
            return 0.0
        scaled = Operator(tuple(replace(t, weights=t.weights * (f / size)) for t, f in units))
        return size * float(np.sqrt(max(scaled.inner(scaled), 0.0)))

    def bilinear(self, f: Element, g: Element) -> Any:
        """Return <f, A g>; for a covariance operator the covariance of f(x) and g(y)."""
        return instance(f, Element, "f").inner(self(g))

    def __add__(self, other: Any) -> Operator:
        if not isinstance(other, Operator):
            return NotImplemented
        self.terms[0].left._same_space(other.terms[0].left)
        self.terms[0].right._same_space(other.terms[0].right)
        return Operator(self.terms + other.terms)

    def __sub__(self, other: Any) -> Operator:
        return self + (-1.0) * other if isinstance(other, Operator) else NotImplemented

    def __mul__(self, factor: Any) -> Operator:
        c = real(factor, "the factor")
        return Operator(tuple(_Term(t.left, t.right, c * t.weights) for t in self.terms))

    __rmul__ = __mul__
    __array_ufunc__ = None

    def __repr__(self) -> str:
        rank = sum(t.weights.size for t in self.terms)
        spaces = f"{self.terms[0].right.kernel!r} to {self.terms[0].left.kernel!r}"
        return f"<Operator from the space of {spaces}, a sum of {rank} tensor products>"


def tensor(u: Element, v: Element) -> Operator:
    """Return u (x) v, the operator psi -> <v, psi> u; of two batches, the sum over pairs.

    Parameters
    ----------
    u, v : Element
        Elements, or batches of equal size. They may live in different spaces.

    Examples
    --------
    >>> import mercer as mc
    >>> k, l = mc.Gaussian(1.0), mc.Linear()
    >>> A = mc.space.tensor(mc.Element(k, [[0.0]], [1.0]), mc.Element(l, [[2.0]], [1.0]))
    >>> float(A(mc.Element(l, [[3.0]], [1.0]))([[0.0]])[0])
    6.0
    """
    u, v = _as_batch(instance(u, Element, "u")), _as_batch(instance(v, Element, "v"))
    if len(u) != len(v):
        raise InputError(f"batches of {len(u)} and {len(v)} elements do not pair up")
    return Operator((_Term(u, v, np.ones(len(u))),))


def covariance(
    kernel_x: Kernel, X: Any, kernel_y: Kernel, Y: Any, *, weights: Any = None, centred: bool = True
) -> Operator:
    """Return the empirical covariance operator of two paired samples.

    C = sum_i w_i k(x_i, .) (x) l(y_i, .) - mu_x (x) mu_y, so that <f, C g> is the sample covariance
    of f(x_i) and g(y_i).

    Parameters
    ----------
    kernel_x, kernel_y : Kernel
    X, Y : n points each, row i of one paired with row i of the other
    weights : array_like of shape (n,), optional
        Weights >= 0, scaled to sum to one.
    centred : bool, default=True
        Subtract the product of the means.

    Examples
    --------
    >>> import mercer as mc
    >>> l = mc.Linear()
    >>> C = mc.covariance(l, [[1.0], [3.0]], l, [[2.0], [6.0]])
    >>> e = mc.Element(l, [[1.0]], [1.0])
    >>> float(C.bilinear(e, e))
    2.0
    """
    u = feature(kernel_x, checked_points(kernel_x, X, tensors=False))
    v = feature(kernel_y, checked_points(kernel_y, Y, "Y", tensors=False))
    n = len(u)
    if len(v) != n:
        raise InputError(f"X has {n} points, but Y has {len(v)}: they must be paired")
    w = as_weights(weights, n)
    mean = Operator((_Term(u, v, w),))
    if not centred:
        return mean
    return mean - tensor(u.combine(w), v.combine(w))


def _as_batch(psi: Element) -> Element:
    return psi if psi.batch is not None else Element(psi.kernel, psi.support, psi.coef, 1)


def _unit(t: _Term) -> tuple[_Term, float]:
    """A term scaled so that its largest elements and weights are about 1, and the factor."""
    sizes = [float(np.nan_to_num(psi.norm()).max()) for psi in (t.left, t.right)]
    sizes.append(float(np.abs(t.weights).max()))
    u, v, w = (max(size, 1e-300) for size in sizes)
    with np.errstate(over="ignore"):
        return _Term(t.left / u, t.right / v, t.weights / w), float(np.prod(sizes))


def _term_inner(s: _Term, t: _Term) -> float:
    """sum_jl w_j w_l <u_j, a_l> <v_j, b_l>, block by block."""
    total = 0.0
    for rows in pieces(s.weights.size, _BLOCK):
        for columns in pieces(t.weights.size, _BLOCK):
            left = np.asarray(s.left[rows].inner(t.left[columns]))
            right = np.asarray(s.right[rows].inner(t.right[columns]))
            total += float(s.weights[rows] @ (left * right) @ t.weights[columns])
    return total
