"""Weyl's inequalities: whether a Hessian is positive definite, from sums alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, instance, is_sparse
from mercer.engine import Dense, Program, apply_all, as_float64, profile_at
from mercer.exceptions import DerivativeError, InputError
from mercer.rigor._rounding import RowSums, row_sums
from mercer.space import Element


@dataclass(frozen=True, eq=False)
class WeylTest:
    """Result of `weyl_test`: both sides of Weyl's inequalities, one per point.

    The Hessian is at least 2 (slope - rising) and its smallest eigenvalue at most
    2 (slope - falling); without the factor 2 for kernels of the inner product.

    Attributes
    ----------
    slope : array of shape (m,)
        -sum a_i k'(u_i); f'(|x|^2) for kernels of the inner product.
    rising, falling : arrays of shape (m,)
        2 sum a_i k''(u_i) u_i over its positive and over its negative terms; sum a_i f''_i |x_i|^2
        over its positive terms, and NaN, for kernels of the inner product.
    trace : array of shape (m,)
        The trace of the Hessian.
    rounding : array of shape (m,)
        A bound on the rounding errors of slope - rising and slope - falling; infinite at a cusp.
    dim : int
        d, the number of columns.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [0.5]], [0.5, 0.5])
    >>> test = mc.preimages.weyl_test(psi, [[0.25], [2.0]])
    >>> test.is_positive_definite
    array([ True, False])
    """

    slope: Array
    rising: Array
    falling: Array
    trace: Array
    rounding: Array
    dim: int

    @property
    def is_positive_definite(self) -> Array:
        """Whether the Hessian is proved to be positive definite."""
        return np.asarray(self.rising + self.rounding < self.slope)

    @property
    def has_negative_eigenvalue(self) -> Array:
        """Whether it is proved to have a negative eigenvalue, by Weyl or by its negative trace."""
        by_trace = self.trace < -2.0 * (self.dim + 2) * self.rounding
        return np.asarray((self.slope + self.rounding < self.falling) | by_trace)


def weyl_test(psi: Element, X: Any) -> WeylTest:
    """Test by sums alone whether the Hessian of k(x, x)/2 - psi(x) is positive definite.

    For a radial kernel it is -2 sum a_i (k' I + 2 k'' (x - x_i)(x - x_i)'), so that (Weyl)

        2 sum_{a > 0} a_i k'' u_i < -sum a_i k'   proves it positive definite,
        -sum a_i k' < 2 sum_{a < 0} a_i k'' u_i   proves a negative eigenvalue.

    No Hessian is formed, so it costs the same in any dimension. With a map A, k(Ax, Ay), the
    statement is about Ax.

    Parameters
    ----------
    psi : Element
        One element, or a batch of m.
    X : array_like of shape (m, d)
        Points; one per element of a batch.

    Returns
    -------
    WeylTest

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning, 2024,
    Lemmas 12 and 13, Theorems 14, 15 and 24. Theorem 23 there never applies, and is replaced by
    the trace.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0]], [-1.0])
    >>> mc.preimages.weyl_test(psi, [[0.0]]).has_negative_eigenvalue
    array([ True])
    """
    psi, X = prepared(psi, X)
    if psi.kernel.program.kind not in ("radial", "dot"):
        raise DerivativeError(
            f"Weyl's inequalities need a profile of one distance or inner product, and "
            f"{psi.kernel!r} has none; use certify"
        )
    return weyl_of_sums(psi.kernel.program, X, all_sums(psi, X))


def prepared(psi: Element, X: Any) -> tuple[Element, Array]:
    """Everything in float64, dense queries, one per element of a batch."""
    X = as_float64(instance(psi, Element, "psi").queries(X))
    X = X.toarray() if is_sparse(X) else X
    if psi.batch is not None and psi.batch != len(X):
        raise InputError(
            f"one point per element is needed: {psi.batch} elements, {len(X)} points; for one "
            f"element at many points index the batch"
        )
    return Element(psi.kernel, as_float64(psi.points), psi.coef, psi.batch), X


def all_sums(psi: Element, X: Array) -> RowSums:
    """Sums over the points; errors of k(x, x)/2 included."""
    program = psi.kernel.program
    sums = row_sums(program, psi.points, X, psi.coef, paired=psi.batch is not None)
    if program.is_translation_invariant:
        return sums
    own = _diagonal_sums(program, X)
    return sums._replace(
        gradient_error=sums.gradient_error + own.gradient_error,
        hessian_error=sums.hessian_error + own.hessian_error,
    )


def _diagonal_sums(program: Program, X: Array) -> RowSums:
    """Those of k(x, x)/2, which is a sum over one arbitrary point."""
    return row_sums(program.diagonal, X[:1], X, Dense(np.full((1, 1), 0.5)), paired=False)


def weyl_of_sums(program: Program, X: Array, sums: RowSums) -> WeylTest:
    """The inequalities from sums over the points."""
    z = apply_all(program.maps, X)
    dim = int(z.shape[1])
    rounding = sums.slope_error + 2.0 * sums.curvature_error
    if program.kind == "radial":
        slope, rising, falling = -sums.slope, 2.0 * sums.rising, 2.0 * sums.falling
        trace = 2.0 * dim * slope - 2.0 * (rising + falling)
        return WeylTest(slope, rising, falling, trace, rounding, dim)
    t = np.sum(z * z, axis=1)
    _, first, second = profile_at(program.profile, t, 2)
    own = _diagonal_sums(program, X)
    bend = 2.0 * second * t
    rising = sums.rising + np.maximum(-bend, 0.0)
    trace = dim * first + bend - sums.rising - sums.falling
    # the sums behind `own` are f'/2 and f'' |x|^2 / 2 at the query
    rounding = sums.curvature_error + 2.0 * own.slope_error + 4.0 * own.hessian_error
    return WeylTest(np.array(first), rising, np.full(len(X), np.nan), trace, rounding, dim)
