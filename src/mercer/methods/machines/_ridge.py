"""Kernel ridge regression: fits with an intercept and weights, and their optimality certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._certificate import FitCertificate
from mercer._status import Status
from mercer.engine import Dense, as_float64
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import GramOperator, Nystrom, solve
from mercer.linalg._dense import EPS, invert
from mercer.linalg._inputs import refuses_overflow
from mercer.linalg._solve import DIRECT_UP_TO
from mercer.methods._rows import distinct_index, row_keys
from mercer.methods.machines._ridge_path import RidgePath


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Distinct rows with the weighted means of their targets.

    A fit to them is the fit to all rows, because sum_j w_j |y_j - p|^2 over equal rows is
    (sum_j w_j) |mean - p|^2 plus a constant. So a weight of 2 is the same as repeating the row.

    Attributes
    ----------
    index, weights : arrays of shape (m,)
        One row number and the total weight of each distinct row of positive weight.
    targets : array of shape (m, t)
        Weighted means.
    scatter : array of shape (t,)
        The constant.
    rows, group, deviations : arrays of shape (n',), (n',) and (n', t)
        Numbers of the original rows of positive weight, the distinct row that each equals, and
        targets minus `targets` of that row.
    """

    index: Array
    weights: Array
    targets: Array
    scatter: Array
    rows: Array
    group: Array
    deviations: Array


def merged_rows(X: Any, Y: Array, weights: Array | None = None) -> MergedRows:
    """Merge the equal rows of X with targets Y, shape (n, t)."""
    index, mass = distinct_index(X, weights)
    w = np.ones(len(Y)) if weights is None else weights
    rows, keys = np.flatnonzero(w > 0.0), row_keys(X)
    order = np.argsort(keys[index])
    group = order[np.searchsorted(keys[index], keys[rows], sorter=order)]
    first = Y[index][group]  # sums of differences: nothing cancels if targets are far from zero
    change = np.zeros((len(mass), Y.shape[1]))
    np.add.at(change, group, w[rows, None] * (Y[rows] - first))
    targets = Y[index] + change / mass[:, None]
    deviations = Y[rows] - targets[group]
    return MergedRows(index, mass, targets, w[rows] @ deviations**2, rows, group, deviations)


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """f = sum_i coef_i k(z_i, .) plus an intercept for each output, and how optimal it is.

    Attributes
    ----------
    coef : array of shape (m, t)
        Of the rows, or of the landmarks.
    intercept : array of shape (t,)
    certificate : FitCertificate
        Of the sum of squared errors plus penalty |f|^2, all outputs together.
    n_iter : int
        Iterations; 1 for a direct solution.
    status : Status
    """

    coef: Array
    intercept: Array
    certificate: FitCertificate
    n_iter: int
    status: Status


@refuses_overflow
def fit_ridge(
    kernel: Kernel,
    X: Points,
    rows: MergedRows,
    penalty: float,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> RidgeFit:
    """Minimise sum_i w_i |y_i - f(x_i) - c|^2 + penalty |f|^2 over f and c, X the distinct rows.

    (K + penalty D^-1) a + c 1 = y and sum_i a_i = 0, D = diag(w): two solutions of one system, for
    the right-hand sides y and 1. Cholesky up to 10,000 rows, conjugate gradients for more.
    At penalty 0 it is the fit of least norm among those of least error.
    """
    Y, w = rows.targets, rows.weights
    centre = w @ Y / w.sum() if fit_intercept else np.zeros(Y.shape[1])
    if penalty == 0.0:
        if len(w) > DIRECT_UP_TO:
            raise InputError(f"penalty must be > 0 for more than {DIRECT_UP_TO} rows, got 0.0")
        coef = RidgePath.of(kernel, X, Y, w, fit_intercept=fit_intercept).coef(0.0)
        n_iter, status = 1, Status.SOLVED
    else:
        right = Y - centre
        if fit_intercept:
            right = np.column_stack([right, np.ones(len(w))])
        solution = solve(kernel, X, right, penalty, weights=w, tol=tol, max_iter=max_iter)
        coef, n_iter = solution.coef, max(1, int(np.max(solution.n_iter)))
        statuses = solution.status if isinstance(solution.status, tuple) else (solution.status,)
        status = next((s for s in statuses if not s.ok), statuses[0])
        if fit_intercept:
            coef = balanced(coef[:, :-1], coef[:, -1])
    values = engine.fields(
        kernel.program, as_float64(X.array), as_float64(X.array), Dense(coef)
    ).value
    intercept = centre + w @ (Y - centre - values) / w.sum() if fit_intercept else centre
    found = certificate(rows, coef, values, intercept, penalty, fit_intercept)
    return RidgeFit(coef, intercept, found, n_iter, status)


def fit_ridge_landmarks(
    low: Nystrom, path: RidgePath, rows: MergedRows, penalty: float
) -> RidgeFit:
    """Minimise the same over combinations f of the features of landmarks; `path` is of them."""
    from scipy.linalg import solve_triangular

    alpha, Y, w = path.coef(penalty), rows.targets, rows.weights
    theta = low.factor.T @ alpha
    values = low.factor @ theta
    intercept = np.zeros(Y.shape[1])
    if path.fit_intercept:
        intercept = w @ (Y - values) / w.sum()
    coef = solve_triangular(low.triangle, theta, lower=True, trans="T")
    found = certificate(rows, alpha, values, intercept, penalty, path.fit_intercept)
    return RidgeFit(np.asarray(coef), intercept, found, 1, Status.SOLVED)


def balanced(A: Array, ones: Array) -> Array:
    """A - ones c with c such that columns have sum zero; `ones` solves the system for 1."""
    A = A - np.outer(ones, A.sum(axis=0) / ones.sum())
    return np.asarray(A - A.mean(axis=0))  # what rounding left


def certificate(
    rows: MergedRows, alpha: Array, values: Array, intercept: Array, penalty: float, free: bool
) -> FitCertificate:
    """Objectives at f = sum_i alpha_i k(x_i, .), whose values at the rows are given.

    The dual objective is penalty (2 <alpha, y> - |f|^2 - penalty <alpha, D^-1 alpha>), for alpha of
    sum zero if the intercept is `free`: completing the square shows that no f has a smaller primal.
    """
    Y, w, constant = rows.targets, rows.weights, float(rows.scatter.sum())
    errors = Y - values - intercept
    square = float(np.sum(alpha * values))
    centred = Y - w @ Y / w.sum() if free else Y
    dual = 2.0 * float(np.sum(alpha * centred)) - square
    dual -= penalty * float(np.sum(alpha**2 / w[:, None]))
    return FitCertificate(
        primal=float(np.sum(w[:, None] * errors**2)) + penalty * square + constant,
        dual=penalty * dual + constant,
        stationarity=float(np.abs(w[:, None] * errors - penalty * alpha).max()),
        feasibility=float(np.abs(alpha.sum(axis=0)).max()) if free else 0.0,
        complementarity=0.0,
    )


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
