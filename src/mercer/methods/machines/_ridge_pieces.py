"""Kernel ridge regression on rows in pieces: landmarks, or all rows by conjugate gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._certificate import FitCertificate
from mercer._chunks import Chunks
from mercer._status import Status
from mercer._threads import interruptible, map_threads, single_threaded_blas
from mercer.engine import Dense, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import Nystrom
from mercer.linalg._blocked_products import batches
from mercer.linalg._conjugate_gradients import ConjugateGradients
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.machines._ridge import (
    MergedRows,
    RidgeFit,
    balanced,
    certificate,
    worst_status,
)

_BLOCK = 8192  # rows whose features are held at once
_LEAST_SHIFT = 1e-14  # of the trace, of a preconditioner


def preconditioner_rank(n: int) -> int:
    """The number of landmarks of a preconditioner, as in `linalg.solve`."""
    return max(1, min(n, 1000, int(4 * np.sqrt(n))))


@refuses_overflow
def fit_landmarks_in_pieces(
    low: Nystrom, rows: Chunks, penalty: float, middle: Array, *, fit_intercept: bool
) -> RidgeFit:
    """Minimise over combinations of the features of landmarks.

    `rows` have the columns points, targets and weights (None for ones). One pass finds the R of a
    QR decomposition of features and targets (R factors of pieces are stacked and factored again),
    so that the condition of the problem is not squared; a second pass sums the certificate.
    `middle` should be near the targets, so that nothing cancels.
    """
    from scipy.linalg import solve_triangular

    if penalty <= 0.0:
        raise InputError(f"penalty must be > 0 for rows in pieces, got {penalty!r}")
    middle = middle if fit_intercept else np.zeros_like(middle)
    R = rows.total(_factor, low, middle, fit_intercept, add=_joined_factors, task="least squares")
    first, r = int(fit_intercept), low.rank + int(fit_intercept)
    with single_threaded_blas():
        U, s, V = interruptible(np.linalg.svd, R[first:r, first:r])
    theta = V.T @ ((s / (s**2 + penalty))[:, None] * (U.T @ R[first:r, r:]))
    centre = intercept = np.zeros_like(middle)
    if fit_intercept:  # the first column of the factor is that of ones
        centre = middle + R[0, r:] / R[0, 0]
        intercept = centre - R[0, 1:r] @ theta / R[0, 0]
    coef = solve_triangular(low.triangle, theta, lower=True, trans="T")
    r = rows.total(_residual_sums, low, theta, intercept, centre, task="certificate")
    primal = float(r["squares"].sum()) + penalty * float(np.sum(theta**2))
    # the dual point is w_i (y_i - f(x_i) - c) / penalty
    dual = 2.0 * r["targets"] - float(np.sum(r["cross"] ** 2)) / penalty - r["squares"].sum()
    off = float(np.abs(r["errors"]).max()) / penalty if fit_intercept else 0.0
    found = FitCertificate(primal, float(dual), 0.0, off, 0.0)
    return RidgeFit(np.asarray(coef), intercept, found, 1, Status.SOLVED, "landmarks")


@refuses_overflow
def fit_rows_in_pieces(
    low: Nystrom,
    rows: Chunks,
    penalty: float,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
) -> RidgeFit:
    """Minimise over all functions by conjugate gradients; `low` is the preconditioner.

    Points stay where they are. About ten vectors of n numbers for each output are kept here.
    """
    if penalty <= 0.0:
        raise InputError(f"penalty must be > 0 for rows in pieces, got {penalty!r}")
    X, kernel = rows.only(0), low.kernel
    Y = np.concatenate(rows.only(1).gathered(np.asarray, task="targets"))
    parts = rows.only(2).gathered(_or_none, task="weights")
    w = np.ones(len(Y)) if parts[0] is None else np.concatenate(parts).ravel()
    root, used = np.sqrt(w)[:, None], w > 0.0
    centre = w @ Y / w.sum() if fit_intercept else np.zeros(Y.shape[1])
    right = root * (Y - centre)
    if fit_intercept:
        right = np.column_stack([right, root])
    system = _System(kernel, X, root, penalty)
    scale = float(kernel.diag(Points(low.landmarks, kernel.domain)).max()) * float(w.max())
    cg = ConjugateGradients(
        lambda V: root * system.product(root * V) + penalty * V,
        system.preconditioner(low, rows),
        right,
        tol,
        scale + penalty,
    )
    cg.run(max_iter)
    coef = root * cg.coef
    if fit_intercept:
        coef = balanced(coef[:, :-1], coef[:, -1])
    values = system.product(coef)
    intercept = centre + w @ (Y - centre - values) / w.sum() if fit_intercept else centre
    none = np.zeros(0)
    kept = MergedRows(none, w[used], Y[used], np.zeros(Y.shape[1]), none, none, none)
    found = certificate(kept, coef[used], values[used], intercept, penalty, fit_intercept)
    n_iter, status = max(1, int(np.max(cg.n_iter))), worst_status(cg.status)
    return RidgeFit(coef, intercept, found, n_iter, status, "cg")


class _System:
    """K + penalty D^-1 on rows in pieces, scaled by D^(1/2) on both sides."""

    def __init__(self, kernel: Kernel, X: Chunks, root: Array, penalty: float) -> None:
        self.kernel, self.X, self.root, self.penalty = kernel, X, root, penalty

    def product(self, V: Array) -> Array:
        """K V, as sums over pairs of pieces."""
        sums = self.X.crossed(self.X.zip(V), _pair_product, self.kernel.program)
        return np.concatenate(sums.gathered(np.asarray, task="kernel sum"))

    def preconditioner(self, low: Nystrom, rows: Chunks) -> Any:
        """Solve with D^(1/2) L L' D^(1/2) plus a shift by the matrix inversion lemma."""
        from scipy.linalg import cho_factor, cho_solve

        r = low.rank
        weighted = replace(rows, columns=(rows.columns[0], rows.columns[2]))
        own, second = weighted.total(_scatter, low, task="preconditioner")
        lost = max(own - float(np.trace(second)), 0.0)
        shift = max(self.penalty, lost / len(self.X), _LEAST_SHIFT * own)
        if r == 0:
            return np.copy
        factor = cho_factor(second + shift * np.eye(r))

        def solve(R: Array) -> Array:
            inside = self.X.zip(self.root * R).total(_to_features, low, task="preconditioner")
            inner = cho_solve(factor, inside)
            out = self.X.gathered(_from_features, low, inner, task="preconditioner")
            return np.asarray((R - self.root * np.concatenate(out)) / shift)

        return solve


def _factor(X: Any, Y: Array, w: Array | None, low: Nystrom, middle: Array, ones: bool) -> Array:
    """R of a QR decomposition of (1,) features and targets, times the roots of the weights."""
    n, width = n_rows(X), int(ones) + low.rank + Y.shape[1]
    root = np.ones(n) if w is None else np.sqrt(np.asarray(w).ravel())

    def triangle(rows: slice) -> Array:
        L = low.map(Points(X[rows], low.kernel.domain))
        A = np.column_stack([np.ones((len(L), int(ones))), L, Y[rows] - middle])
        A *= root[rows, None]
        return np.asarray(np.linalg.qr(A, mode="r"))

    R = np.zeros((width, width))
    with single_threaded_blas():
        for batch in batches(n, width, _BLOCK // 2):
            R = _joined_factors(R, np.vstack(map_threads(triangle, batch)))
    return R


def _joined_factors(one: Array, other: Array) -> Array:
    return np.asarray(np.linalg.qr(np.vstack([one, other]), mode="r"))


def _scatter(X: Any, w: Array | None, low: Nystrom) -> tuple[float, Array]:
    """The sums of k(x, x) and of zz' over rows with features z, block by block."""
    own, second = 0.0, np.zeros((low.rank, low.rank))
    v = np.ones(n_rows(X)) if w is None else np.asarray(w).ravel()
    for part in pieces(n_rows(X), _BLOCK):
        points = Points(X[part], low.kernel.domain)
        L = low.map(points)
        own += float(v[part] @ low.kernel.diag(points))
        second += (L * v[part, None]).T @ L
    return own, second


def _residual_sums(
    X: Any, Y: Array, w: Array | None, low: Nystrom, theta: Array, intercept: Array, centre: Array
) -> dict[str, Any]:
    """Sums of the errors of a fit, and of their products with features and targets."""
    t = Y.shape[1]
    v = np.ones(len(Y)) if w is None else np.asarray(w).ravel()
    out: dict[str, Any] = {
        "squares": np.zeros(t), "errors": np.zeros(t), "targets": 0.0,
        "cross": np.zeros((low.rank, t)),
    }  # fmt: skip

    def sums(rows: slice) -> dict[str, Any]:
        L, y = low.map(Points(X[rows], low.kernel.domain)), Y[rows]
        e = y - L @ theta - intercept
        scaled = v[rows, None] * e
        return {
            "squares": np.sum(scaled * e, axis=0), "errors": scaled.sum(axis=0),
            "targets": float(np.sum(scaled * (y - centre))), "cross": L.T @ scaled,
        }  # fmt: skip

    with single_threaded_blas():
        for batch in batches(len(Y), low.rank):
            for found in map_threads(sums, batch):
                for name, change in found.items():
                    out[name] += change
    return out


def _pair_product(y: Any, x: Any, V: Array, program: Any) -> Array:
    return engine.fields(program, x, y, Dense(V)).value


def _to_features(X: Any, R: Array, low: Nystrom) -> Array:
    parts = pieces(n_rows(X), _BLOCK)
    return sum(low.map(Points(X[p], low.kernel.domain)).T @ R[p] for p in parts)  # type: ignore


def _from_features(X: Any, low: Nystrom, inner: Array) -> Array:
    parts = pieces(n_rows(X), _BLOCK)
    return np.concatenate([low.map(Points(X[p], low.kernel.domain)) @ inner for p in parts])


def _or_none(w: Array | None) -> Array | None:
    return w
