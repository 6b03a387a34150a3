"""Kernel ridge regression on the features of landmarks: its solution for one penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer._status import Status
from mercer._threads import map_threads, single_threaded_blas
from mercer.linalg import Nystrom
from mercer.linalg._blocked_products import batches, matmul, transposed_matmul
from mercer.linalg._dense import EPS, solve_rows
from mercer.methods.machines._ridge import MergedRows, RidgeFit, certificate
from mercer.methods.machines._ridge_path import RidgePath, leave_one_out, weighted_targets

# Of the trace of F'F: normal equations with a smaller penalty may lose more than half of the digits
_LEAST_PENALTY = 1e-7


@dataclass(frozen=True, eq=False)
class LandmarkSolution:
    """The minimum of sum_i w_i |y_i - theta'z_i - c|^2 + penalty |theta|^2, z_i features of rows.

    Attributes
    ----------
    penalty : float
    weights : array of shape (m,)
    fit_intercept : bool
    coef : array of shape (m, t)
        a with theta = sum_i a_i z_i.
    leave_one_out : array of shape (m, t)
        y_i minus the prediction without row i and its copies.
    mean : array of shape (r,)
        The weighted mean m of the features; 0 without an intercept.
    second : array of shape (r, r)
        sum_i w_i (z_i - m) (z_i - m)'.
    """

    penalty: float
    weights: Array
    fit_intercept: bool
    coef: Array
    leave_one_out: Array
    mean: Array
    second: Array

    @classmethod
    def of(
        cls,
        low: Nystrom,
        rows: MergedRows,
        penalty: float,
        path: RidgePath | None,
        *,
        fit_intercept: bool,
    ) -> LandmarkSolution:
        """The solution at a penalty that is given, or was chosen on the path of the features."""
        Z, Y, w = low.factor, rows.targets, rows.weights
        mean = np.zeros(low.rank)
        if fit_intercept:
            mean = transposed_matmul(Z, w[:, None])[:, 0] / w.sum()
        if path is None:
            with single_threaded_blas():  # threads are for blocks
                found = _by_normal_equations(Z, Y, w, penalty, mean, fit_intercept)
            if found is not None:
                return found
            path = RidgePath.of_features(Z, Y, w, fit_intercept=fit_intercept, scatter=rows.scatter)
        V, loo = path.directions, path.leave_one_out(penalty)
        assert V is not None
        second = V * path.values @ V.T
        return cls(penalty, w, fit_intercept, path.coef(penalty), loo, mean, second)


def _by_normal_equations(
    Z: Array, Y: Array, w: Array, penalty: float, mean: Array, fit_intercept: bool
) -> LandmarkSolution | None:
    """The solution by L L' = F'F + penalty I; None if the penalty is too small for that.

    With F = D^(1/2) (Z - 1 m'), t = D^(1/2) (y - mean) and theta = (L L')^-1 F't, the matrix P of
    `RidgePath` has

        P t = (t - F theta) / penalty,   P_ii = (1 - w_i / W - |L^-1 f_i|^2) / penalty

    2 n r^2 operations, against 6 n r^2 of a singular value decomposition.
    """
    from scipy.linalg import cho_solve

    targets, root, r = weighted_targets(Y, w, fit_intercept), np.sqrt(w)[:, None], Z.shape[1]

    def features(part: slice) -> Array:
        F = Z[part] - mean
        F *= root[part]
        return F

    def moments(part: slice) -> tuple[Array, Array]:
        F = features(part)
        return F.T @ F, F.T @ targets[part]

    second, right = np.zeros((r, r)), np.zeros((r, targets.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for batch in batches(*Z.shape):
            for S, b in map_threads(moments, batch):
                second += S
                right += b
    if not penalty > _LEAST_PENALTY * float(np.trace(second)):  # or NaN
        return None
    L = np.linalg.cholesky(second + penalty * np.eye(r))
    theta = cho_solve((L, True), right)
    rest, kept = np.empty_like(targets), np.empty(len(w))  # t - F theta, P_ii penalty

    def residuals(part: slice) -> Array:
        F = features(part)
        rest[part] = targets[part] - F @ theta
        gradient = F.T @ rest[part]
        solve_rows(L, F)
        kept[part] = 1.0 - np.einsum("ij,ij->i", F, F)
        return gradient

    gradient = -penalty * theta
    for batch in batches(*Z.shape):
        gradient += sum(map_threads(residuals, batch))
    change = cho_solve((L, True), gradient)  # what rounding left
    rest -= root * (matmul(Z, change) - mean @ change)
    kept -= fit_intercept * w / w.sum()
    kept = np.where(kept > 8.0 * EPS, kept, 0.0)  # rounding of the operations
    loo = leave_one_out(rest / root, kept[:, None])
    return LandmarkSolution(penalty, w, fit_intercept, root * rest / penalty, loo, mean, second)


def fit_ridge_landmarks(low: Nystrom, solution: LandmarkSolution, rows: MergedRows) -> RidgeFit:
    """The fit with its certificate, a combination f of the features of landmarks."""
    from scipy.linalg import solve_triangular

    Y, w, alpha = rows.targets, rows.weights, solution.coef
    theta = transposed_matmul(low.factor, alpha)
    values = matmul(low.factor, theta)
    intercept = np.zeros(Y.shape[1])
    if solution.fit_intercept:
        intercept = w @ (Y - values) / w.sum()
    coef = solve_triangular(low.triangle, theta, lower=True, trans="T")
    found = certificate(rows, alpha, values, intercept, solution.penalty, solution.fit_intercept)
    return RidgeFit(np.asarray(coef), intercept, found, 1, Status.SOLVED, "landmarks")
