"""Uncertainty of ridge regression: variances, leave-one-out residuals, jackknife+ intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array, Points
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import GramOperator, Nystrom, solve
from mercer.linalg._dense import EPS, invert
from mercer.linalg._inputs import refuses_overflow
from mercer.linalg._solve import DIRECT_UP_TO
from mercer.methods.machines._ridge_landmarks import LandmarkSolution


def smoothing_weights(
    kernel: Kernel, X: Points, weights: Array, penalty: float, K: Array, *, fit_intercept: bool
) -> tuple[Array, Array]:
    """How predictions at new points y_j depend on the targets, given K = k(X, Y) of shape (m, q).

    Returns H of shape (m, q), so that predictions are H' targets, and e of shape (q,), so that
    k(y, y) - <K, H> + e is the variance at y of a Gaussian process with this kernel, a constant of
    unknown value if there is an intercept, and noise of variance penalty / w_i.
    """
    right = np.column_stack([K, np.ones(len(K))]) if fit_intercept else K
    A = solve(kernel, X, right, penalty, weights=weights).coef
    if not fit_intercept:
        return A, np.zeros(K.shape[1])
    A, ones = A[:, :-1], A[:, -1]
    missing = (1.0 - A.sum(axis=0)) / ones.sum()
    return np.asarray(A + np.outer(ones, missing)), np.asarray(missing)


def left_out(
    kernel: Kernel, X: Points, coef: Array, mass: Array, penalty: float, *, fit_intercept: bool
) -> Array:
    """y_i minus the prediction without row i, a_i / G_ii for a = G y; shape (m, t)."""
    diagonal = inverse_diagonal(kernel, X, mass, penalty, fit_intercept=fit_intercept)[:, None]
    unknown = np.full(coef.shape, np.inf)  # other rows do not determine a prediction
    return np.asarray(np.divide(coef, diagonal, out=unknown, where=diagonal > 0.0))


@refuses_overflow
def inverse_diagonal(
    kernel: Kernel, X: Points, weights: Array, penalty: float, *, fit_intercept: bool
) -> Array:
    """The diagonal of G, a = G y: entries of (K + penalty D^-1)^-1, less the intercept's part.

    The leave-one-out residual of row i is a_i / G_ii. One Cholesky factor, inverted in place.
    """
    if len(X) > DIRECT_UP_TO:
        raise InputError(
            f"leave-one-out residuals need a matrix of all rows, here {len(X)}, and are computed "
            f"for up to {DIRECT_UP_TO}; use n_landmarks"
        )
    S = GramOperator(kernel, X, weights=weights).dense()
    S[np.diag_indices(len(S))] += penalty
    if not invert(S):
        raise InputError("the kernel matrix is singular to rounding; use a larger penalty")
    diagonal = S.diagonal().copy()
    if fit_intercept:
        root = np.sqrt(weights)
        along = S @ root
        left = diagonal - along**2 / (root @ along)
        diagonal = np.where(left > 8.0 * EPS * diagonal, left, 0.0)  # rounding of five operations
    return np.asarray(weights * diagonal)


@dataclass(frozen=True, eq=False)
class LandmarkVariance:
    """Variances at new points of a fit to landmarks, whose features z(x) have the mean m.

    With F = D^(1/2) (Z - 1 m') for an intercept (m = 0 without) and W = sum_i w_i, it is

        k(x, x) - |z(x)|^2 + penalty ((z(x) - m)' (F'F + penalty I)^-1 (z(x) - m) + 1 / W)

    the variance of a linear model of the features, and the part of the kernel that the features
    miss. M. Seeger, C. Williams, N. Lawrence, Fast forward selection to speed up sparse Gaussian
    process regression, 2003.

    Attributes
    ----------
    triangle, factor : arrays of shape (r, r)
        T with z(x) = T^-1 k(landmarks, x); lower L with L L' = F'F + penalty I.
    mean : array of shape (r,)
    penalty, unknown : float
        The penalty, at least the rounding of F'F, and the variance penalty / W of the intercept.
    scale : array of shape (t,)
        The size s^2 of the process for each output, from the leave-one-out residuals.
    """

    triangle: Array
    factor: Array
    mean: Array
    penalty: float
    unknown: float
    scale: Array

    @classmethod
    def of(cls, low: Nystrom, solution: LandmarkSolution) -> LandmarkVariance:
        """From landmarks and the fit to them."""
        w, penalty, S = solution.weights, solution.penalty, solution.second.copy()
        # at least the rounding of S; any number, if all features are equal (1 keeps |z - m|^2)
        ridge = max(penalty, len(w) * EPS * float(np.trace(S))) or 1.0
        S[np.diag_indices(len(S))] += ridge
        with np.errstate(invalid="ignore"):  # a single row has an infinite residual
            scale = np.mean(solution.coef * solution.leave_one_out, axis=0)
        scale = np.where(np.isnan(scale), np.inf, scale)
        unknown = penalty / float(w.sum()) if solution.fit_intercept else 0.0
        with single_threaded_blas():
            L = np.linalg.cholesky(S)
        return cls(low.triangle, L, solution.mean, ridge, unknown, scale)

    def variance(self, K: Array, own: Array) -> Array:
        """For K = k(landmarks, Y) of shape (r, q) and own = k(y, y); shape (q,)."""
        from scipy.linalg import solve_triangular

        z = solve_triangular(self.triangle, K, lower=True)
        inside = solve_triangular(self.factor, z - self.mean[:, None], lower=True)
        outside = np.maximum(own - np.sum(z**2, axis=0), 0.0)
        return np.asarray(outside + self.penalty * np.sum(inside**2, axis=0) + self.unknown)


def jackknife_plus(
    values: Array,
    H: Array,
    loo: Array,
    residuals: Array,
    group: Array,
    weights: Array,
    share: float,
) -> Array:
    """Ends of intervals at q points for t outputs, shape (q, t, 2).

    values, shape (q, t), are predictions; H, shape (m, q), their weights on the m distinct rows,
    with leave-one-out residuals loo, shape (m, t). The n rows belong to the distinct row `group`,
    and have leave-one-out `residuals`, shape (n, t), and weights.
    """
    sizes, ends = np.abs(residuals), np.empty((*values.shape, 2))
    known = np.where(np.isfinite(loo), loo, 0.0)  # others have intervals of infinite size
    for j, value in enumerate(values):
        centre = (value - H[:, [j]] * known)[group]  # without each row and its copies
        ends[j, :, 0] = -_quantile(sizes - centre, weights, share)
        ends[j, :, 1] = _quantile(centre + sizes, weights, share)
    return ends


def _quantile(values: Array, weights: Array, coverage: float) -> Array:
    """For each column, the smallest value with weight >= coverage (W + 1) up to it."""
    order = np.argsort(values, axis=0)
    mass = np.cumsum(weights[order], axis=0)
    wanted = coverage * (float(weights.sum()) + 1.0) * (1.0 - 1e-12)  # rounding of the sums
    at = np.argmax(mass >= wanted, axis=0)
    columns = np.arange(values.shape[1])
    found = values[order[at, columns], columns]
    return np.where(mass[-1] >= wanted, found, np.inf)
