"""Characteristic and universal kernels, and counterexamples for kernels that are not.

A kernel is split into terms k_1 + k_2 + ..., each a function of some combinations Mx of the
coordinates times a polynomial of x of some degree m. If Mv = 0, the difference of order m + 1 along
v annihilates the term. Differences convolved with each other annihilate all terms, and their
positive and negative parts are two distributions with equal embeddings. Conversely, the
spectral measure of a stationary term has the row space of M as its support.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array, frozen, instance, positive_int
from mercer.engine import Const, Distance, Dot, Expr, Norm, Var
from mercer.engine.programs._expr import Add, Mul, Pow
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Kernel, NegativeDistance, Product, Sum, Transformed

_MOST_COLUMNS = 10_000  # for which matrices are decomposed
_MOST_POINTS = 100_000  # in a witness
_MOST_FACTORS = 8  # 2^8 points in a witness
_LARGEST_DEGREE = 10_000  # a witness has more points than that


@dataclass(frozen=True, eq=False)
class Witness:
    """Two distributions on finitely many points with equal embeddings.

    Attributes
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
        Their points.
    X_weights, Y_weights : arrays of shape (n,) and (m,)
        Their weights, which sum to one.

    Examples
    --------
    >>> import mercer as mc
    >>> w = mc.theory.is_characteristic(mc.Linear(), 1).witness
    >>> w.X.ravel().round(6), w.Y.ravel().round(6)
    (array([ 1., -1.]), array([0.]))
    """

    X: Array
    X_weights: Array
    Y: Array
    Y_weights: Array


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether a kernel has a property, why, and a counterexample if it does not.

    Attributes
    ----------
    holds : bool or None
        None if it is not known.
    reason : str
    witness : Witness or None
        Two distributions with equal embeddings; None if the property holds, is not known, or no
        finite example can be given.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.is_universal(mc.Gaussian(1.0), 3).holds
    True
    """

    holds: bool | None
    reason: str
    witness: Witness | None = None


def is_characteristic(kernel: Kernel, dim: int) -> Separation:
    """Whether different distributions on R^dim always have different mean embeddings.

    A stationary kernel is characteristic exactly if the support of its spectral measure is the
    whole space. True is based on that support, or on `Flags.characteristic`. False comes with a
    `Witness` for polynomials and for kernels, or sums of kernels, that do not depend on some
    direction; it comes without one for kernels whose flag is False and for spectral densities that
    vanish on an interval, where every witness has infinitely many points. Source: Sakulwongtana,
    Definition 2.5.8 and Corollaries 2.5.2 and 2.5.3.

    Parameters
    ----------
    kernel : Kernel
        A kernel on vectors; sums, products and transforms are taken apart.
    dim : int
        The number of columns of the points.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0).transform(mc.Columns([0]))
    >>> found = mc.theory.is_characteristic(k, 2)
    >>> found.holds
    False
    >>> P = mc.mean_embedding(k, found.witness.X, weights=found.witness.X_weights)
    >>> Q = mc.mean_embedding(k, found.witness.Y, weights=found.witness.Y_weights)
    >>> float(P.distance(Q))
    0.0
    """
    decided = _by_terms(kernel, positive_int(dim, "dim"))
    if decided is not None:
        return decided
    flags = kernel.flags
    if flags.characteristic is not None:
        return _by_flag(kernel, flags.characteristic)
    if isinstance(kernel, NegativeDistance) and kernel.p < 2.0:
        return Separation(
            True,
            "its distances are energy distances, which are zero for equal distributions only "
            f"(among those with a moment of order {kernel.p:g})",
        )
    if flags.is_positive_definite is not True:
        return Separation(None, "it is not known to be positive definite")
    band = _empty_band(kernel, dim)
    if band is not None:
        return Separation(False, f"its spectral density is zero from frequency {band:.4g} on")
    if flags.universal:
        return Separation(
            None,
            "it is universal, so it separates distributions on every compact set; those with "
            "heavy tails may have no embedding",
        )
    return _by_flag(kernel, None)


def is_universal(kernel: Kernel, dim: int) -> Separation:
    """Whether elements approximate every continuous function on every compact set to any accuracy.

    Decided as in `is_characteristic`, with the same references. Two distributions with equal
    embeddings are a witness here, too: the integral against their difference is zero for all
    elements, and not for all continuous functions.

    Parameters
    ----------
    kernel : Kernel
        A kernel on vectors.
    dim : int
        The number of columns of the points, >= 1.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.is_universal(mc.Polynomial(3), 2).reason
    'its elements are polynomials, of degree at most 3'
    """
    decided = _by_terms(kernel, positive_int(dim, "dim"))
    return decided or _by_flag(kernel, kernel.flags.universal)


def _by_flag(kernel: Kernel, claim: bool | None) -> Separation:
    if claim is None:
        return Separation(None, "neither its spectral measure nor its flags decide it")
    return Separation(claim, f"{type(kernel).__name__} states it in its flags")


@dataclass(frozen=True, eq=False)
class _Term:
    """Functions f(Mx) p(x), p a polynomial; `spectral` if Lambda fills the row space of M."""

    matrix: Array
    degree: int
    spectral: bool

    def __mul__(self, other: _Term) -> _Term:
        matrix = np.vstack([self.matrix, other.matrix])
        return _Term(matrix, self.degree + other.degree, self.spectral and other.spectral)


def _by_terms(kernel: Kernel, dim: int) -> Separation | None:
    """What the structure of the kernel implies, for both properties alike."""
    instance(kernel, Kernel, "kernel")
    if not kernel.domain.is_vector:
        raise InputError(f"{kernel!r} has points that are not vectors")
    if dim > _MOST_COLUMNS:
        raise InputError(f"dim must be at most {_MOST_COLUMNS}, got {dim}")
    terms = _terms(kernel, dim)
    blind = [_null_direction(t.matrix, dim) for t in terms]
    full = [t for t, v in zip(terms, blind, strict=True) if v is None]
    if any(t.spectral for t in full) and kernel.flags.is_positive_definite:
        return Separation(True, f"its spectral measure has all of R^{dim} as its support")
    if full or len(terms) > _MOST_FACTORS:
        return None
    if max(t.degree for t in terms) > _LARGEST_DEGREE:
        return Separation(False, _reason(terms))
    witness = _witness(kernel, terms, [v for v in blind if v is not None], dim)
    return None if witness is None else Separation(False, _reason(terms), witness)


def _reason(terms: list[_Term]) -> str:
    degree = max(t.degree for t in terms)
    if not any(t.matrix.any() for t in terms):
        return f"its elements are polynomials, of degree at most {degree}"
    if len(terms) == 1 and degree == 0:
        return "it is blind to a direction of the points"
    return "each of its terms is a polynomial along some direction, to which it is blind otherwise"


def _terms(kernel: Kernel, dim: int) -> list[_Term]:
    if isinstance(kernel, Sum):
        return _terms(kernel.left, dim) + _terms(kernel.right, dim)
    if isinstance(kernel, Product):
        right = _terms(kernel.right, dim)
        return [a * b for a in _terms(kernel.left, dim) for b in right]
    if isinstance(kernel, Transformed):
        kernel.point_map.check(dim, "a point")
        inner = kernel.point_map.out_dim(dim)
        A = kernel.point_map.pull(np.eye(inner), dim)
        return [_Term(t.matrix @ A, t.degree, t.spectral) for t in _terms(kernel.kernel, inner)]
    of = {Dot: 1, Distance: 2, Norm: 2}
    degrees = [of.get(type(v)) for v in kernel.program.variables]
    degree = _degree(kernel.program.profile, degrees)
    if degree is not None:
        return [_Term(np.zeros((1, dim)), degree, spectral=degree == 0)]
    return [_Term(np.eye(dim), 0, _fills_spectrum(kernel))]


def _degree(expr: Expr, of: list[int | None]) -> int | None:
    """The degree of a profile as a polynomial of x, None if its form shows none."""
    match expr:
        case Const():
            return 0
        case Var(index=i):
            return of[i]
        case Add(left=a, right=b) | Mul(left=a, right=b):
            left, right = _degree(a, of), _degree(b, of)
            if left is None or right is None:
                return None
            return max(left, right) if isinstance(expr, Add) else left + right
        case Pow(arg=a, exponent=p) if 0 <= p <= 2**53 and p == int(p):
            inner = _degree(a, of)
            return None if inner is None else int(p) * inner
    return None


def _fills_spectrum(kernel: Kernel) -> bool:
    """A positive definite profile of |x - y| whose spectral measure has full support."""
    flags = kernel.flags
    if kernel.program.variables != (Distance(),) or not flags.is_positive_definite:
        return False
    # a mixture of Gaussians that is not constant (degree 0) contains one of positive width
    return bool(flags.characteristic or flags.completely_monotone)


def _null_direction(M: Array, dim: int) -> Array | None:
    """A unit vector v with Mv = 0, or None; rows and columns are brought to one scale first."""
    M = M / np.maximum(np.abs(M).max(axis=1, keepdims=True), 1e-300)
    scale = np.abs(M).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    _, sizes, V = np.linalg.svd(M / scale)
    if np.sum(sizes > 1e-12 * sizes.max(initial=0.0)) == dim:
        return None
    v: Array = V[-1] / scale
    v = np.where(np.abs(v) > 1e-14 * np.abs(v).max(), v, 0.0)
    return np.asarray(np.abs(v) if np.count_nonzero(v) == 1 else v) / float(np.linalg.norm(v))


def _witness(
    kernel: Kernel, terms: list[_Term], directions: list[Array], dim: int
) -> Witness | None:
    """The parts of a signed measure that annihilates every term, where the kernel accepts them."""
    common = _null_direction(np.vstack([t.matrix for t in terms]), dim)
    if common is not None:
        factors = [(common, max(t.degree for t in terms))]
    else:
        factors = [(v, t.degree) for v, t in zip(directions, terms, strict=True)]
    if np.prod([degree + 2.0 for _, degree in factors]) > _MOST_POINTS:
        return None
    points, weights = np.zeros((1, dim)), np.ones(1)
    for v, degree in factors:
        nodes, signed = _difference(degree)
        points = (points[:, None, :] + nodes[:, None] * v).reshape(-1, dim)
        weights = np.outer(weights, signed).ravel()
    for scale in 0.5 ** np.arange(30):
        for shift in (0.0, 2.0 * len(factors)):
            placed = scale * (points + shift)
            try:
                kernel.points(placed)
            except InputError:
                continue
            parts = ((frozen(placed[s]), np.abs(weights[s])) for s in (weights > 0, weights < 0))
            (X, p), (Y, q) = parts
            return Witness(X, frozen(p / p.sum()), Y, frozen(q / q.sum()))
    return None


def _difference(degree: int) -> tuple[Array, Array]:
    """Nodes and signed weights that annihilate polynomials up to a degree, in [-1, 1].

    The extrema of Chebyshev's polynomial T_(degree + 1): the weights of a divided difference there
    alternate, and are equal but for halves at the ends.
    """
    n = degree + 1
    i = np.arange(n + 1)
    nodes = np.sin(0.5 * np.pi * (n - 2 * i) / n)  # cos(pi i / n), exactly symmetric
    weights = np.where((i == 0) | (i == n), 0.5, 1.0) / n
    return nodes, 2.0 * weights * (-1.0) ** i


def _empty_band(kernel: Kernel, dim: int) -> float | None:
    """A frequency from which the spectral density is zero, though it was not small before."""
    if any(v != Distance() for v in kernel.program.variables):
        return None
    w = np.zeros((641, dim))
    w[:, 0] = 2.0 ** (np.arange(-320, 321) / 16.0)
    try:
        with np.errstate(all="ignore"):
            density = kernel.spectral_measure(dim).density(w)
    except UnavailableError:
        return None
    positive = np.flatnonzero(density > 0)
    if positive.size == 0 or positive[-1] > 600 or not np.isfinite(density).all():
        return None
    last = int(positive[-1])
    ended = density[last] > 1e-200 * density.max()  # ended, not underflowed
    return float(w[last + 1, 0]) if ended else None
