"""Ridge regression from features back to data, with penalties chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._threads import interruptible, map_threads, single_threaded_blas
from mercer.engine import n_rows, pieces

_BLOCK = 4096  # rows whose features are held twice
_GROUP = 4  # blocks whose moments are held at once
_PENALTIES = np.logspace(-12.0, 2.0, 29)  # of the largest eigenvalue
_EPS = float(np.finfo(np.float64).eps)


def fit_ridge_inverse(features: Callable[[slice], Array], X: Any) -> tuple[Array, Array, Array]:
    """Regress points on their features, B = (S + p I)^-1 C with S = Z'Z, C = Z'X, columns centred.

    Each column takes the penalty of a grid with the smallest generalised cross-validation score, n
    times the residual over the square of the degrees of freedom that are left. In the eigenbasis of
    S, with eigenvalues e_j and a = V'C, the residual of a column is the part outside the span of
    the features plus sum_j (a_j^2 / e_j) (p / (e_j + p))^2, and n - 1 - r + sum_j p / (e_j + p)
    degrees of freedom are left. So a penalty costs r operations per column.

    `features` returns those of a slice of rows, shape (b, r). Returns the intercept, B and the
    penalty of each column (0 if features do not vary), with x = intercept + B'z.
    """
    n = n_rows(X)
    first = features(slice(0, min(n, _BLOCK)))
    if n < first.shape[1]:
        # n coordinates Q'z in the span of the training features
        Z = features(slice(0, n))
        mean = Z.mean(axis=0, dtype=np.float64)
        with single_threaded_blas():
            Q, R = interruptible(np.linalg.qr, (Z - mean).T)
        intercept, coef, penalty = fit_ridge_inverse(lambda rows: R.T[rows], X)
        return intercept - mean @ (Q @ coef), Q @ coef, penalty
    mean_z, mean_x, S, C, squares = _moments(features, first.mean(axis=0, dtype=np.float64), X)
    rounding = n * (10.0 * float(np.finfo(first.dtype).eps)) ** 2 * float(mean_z @ mean_z)
    with single_threaded_blas():  # BLAS threads would wait for each other on a busy machine
        values, V = interruptible(np.linalg.eigh, S)
        floor = max(len(S) * _EPS * values[-1], rounding)
        r = min(int(np.sum(values > floor)), n - 1)
        if r == 0:  # one point, or features that are the same everywhere
            return mean_x, np.zeros(C.shape), np.zeros(mean_x.size)
        e, V = values[-r:], V[:, -r:]
        a = V.T @ C
        explained = a**2 / e[:, None]
        outside = np.maximum(squares - explained.sum(axis=0), 0.0) if r < n - 1 else 0.0
        penalties = _PENALTIES * e[-1]
        left = penalties[:, None] / (e + penalties[:, None])
        score = (outside + left**2 @ explained) / ((n - 1 - r) + left.sum(axis=1))[:, None] ** 2
        penalty = penalties[score.argmin(axis=0)]
        coef = V @ (a / (e[:, None] + penalty))
        return mean_x - mean_z @ coef, coef, penalty


def _moments(features: Callable[[slice], Array], shift: Array, X: Any) -> tuple[Array, ...]:
    """Means of z and x; Z'Z, Z'X and the diagonal of X'X of centred columns, in one pass.

    Features are shifted by an estimate of their means first, so that large means do not cancel.
    """
    n, dense = n_rows(X), not is_sparse(X)
    parts = list(pieces(n, _BLOCK))
    mean_x = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    r, d = shift.size, mean_x.size
    S, C, squares, drift = np.zeros((r, r)), np.zeros((r, d)), np.zeros(d), np.zeros(r)

    def block(rows: slice) -> tuple[Array, Array, Array, Array]:
        Z, Y = features(rows) - shift, X[rows]
        if dense:
            Y = Y - mean_x
            return Z.T @ Z, Z.T @ Y, np.einsum("ij,ij->j", Y, Y), Z.sum(axis=0)
        own = np.asarray(Y.multiply(Y).sum(axis=0, dtype=np.float64)).ravel()
        return Z.T @ Z, np.asarray(Y.T @ Z).T, own, Z.sum(axis=0)

    for group in pieces(len(parts), _GROUP):
        for sums in map_threads(block, parts[group]):
            for total, part in zip((S, C, squares, drift), sums, strict=True):
                total += part
    if not dense:  # centred only here, to stay sparse
        C -= np.outer(drift, mean_x)
        squares -= n * mean_x**2
    return shift + drift / n, mean_x, S - np.outer(drift, drift / n), C, squares
