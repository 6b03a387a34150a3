"""Kernel ridge regression: fits with an intercept and weights, and their optimality certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._certificate import FitCertificate
from mercer._status import Status
from mercer.engine import Dense, PreparedSum, as_float64
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import solve
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
    method : str
        "cholesky", "eigen", "cg", "landmarks" or "fourier".
    sums : PreparedSum, optional
        f for many queries, if it was fitted with Fourier features.
    """

    coef: Array
    intercept: Array
    certificate: FitCertificate
    n_iter: int
    status: Status
    method: str
    sums: PreparedSum | None = None


@refuses_overflow
def fit_ridge(
    kernel: Kernel,
    X: Points,
    rows: MergedRows,
    penalty: float,
    *,
    fit_intercept: bool = True,
    method: str | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> RidgeFit:
    """Minimise sum_i w_i |y_i - f(x_i) - c|^2 + penalty |f|^2 over f and c, X the distinct rows.

    (K + penalty D^-1) a + c 1 = y and sum_i a_i = 0, D = diag(w): two solutions of one system, for
    the right-hand sides y and 1, by a `method` of `linalg.solve`: if None, Cholesky up to 10,000
    rows and conjugate gradients for more.
    At penalty 0 it is the fit of least norm among those of least error.
    """
    Y, w = rows.targets, rows.weights
    centre = w @ Y / w.sum() if fit_intercept else np.zeros(Y.shape[1])
    if penalty == 0.0:
        if len(w) > DIRECT_UP_TO:
            raise InputError(f"penalty must be > 0 for more than {DIRECT_UP_TO} rows, got 0.0")
        coef = RidgePath.of(kernel, X, Y, w, fit_intercept=fit_intercept).coef(0.0)
        n_iter, status, done = 1, Status.SOLVED, "eigen"
    else:
        right = Y - centre
        if fit_intercept:
            right = np.column_stack([right, np.ones(len(w))])
        solution = solve(
            kernel, X, right, penalty, weights=w, method=method, tol=tol, max_iter=max_iter
        )
        coef, n_iter = solution.coef, max(1, int(np.max(solution.n_iter)))
        done = solution.method
        status = worst_status(np.atleast_1d(np.array(solution.status, dtype=object)))
        if fit_intercept:
            coef = balanced(coef[:, :-1], coef[:, -1])
    values = engine.fields(
        kernel.program, as_float64(X.array), as_float64(X.array), Dense(coef)
    ).value
    intercept = centre + w @ (Y - centre - values) / w.sum() if fit_intercept else centre
    found = certificate(rows, coef, values, intercept, penalty, fit_intercept)
    return RidgeFit(coef, intercept, found, n_iter, status, done)


def worst_status(statuses: Array) -> Status:
    """The first status that is not ok, if any."""
    worst: Status = next((s for s in statuses if not s.ok), statuses[0])
    return worst


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
    scaled = penalty * alpha  # errors of the optimum: alpha^2 may underflow
    square = float(np.sum(scaled * values))  # penalty |f|^2
    centred = Y - w @ Y / w.sum() if free else Y
    dual = 2.0 * float(np.sum(scaled * centred)) - square - float(np.sum(scaled**2 / w[:, None]))
    return FitCertificate(
        primal=float(np.sum(w[:, None] * errors**2)) + square + constant,
        dual=dual + constant,
        stationarity=float(np.abs(w[:, None] * errors - scaled).max()),
        feasibility=float(np.abs(alpha.sum(axis=0)).max()) if free else 0.0,
        complementarity=0.0,
    )
