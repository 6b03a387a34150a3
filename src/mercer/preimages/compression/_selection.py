"""Selection of points: forward by matching pursuit or pivots, backward by elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer.engine import n_rows
from mercer.preimages.compression._target import DEPENDENT, Target

_AFRESH = 16  # eliminations between two factorisations
_NOISE = 1e-28  # of |psi|^2: a gain that is rounding
_EPS = float(np.finfo(np.float64).eps)


def forward(target: Target, rows: Array, count: int, *, by_error: bool) -> Array:
    """Rows taken one by one, by a pivoted Cholesky factorisation of their Gram matrix.

    With d_i the rest of k(x_i, x_i) and r the rest of psi, `by_error` takes the row that lowers the
    error most, argmax sum_l r_l(x_i)^2 / d_i (orthogonal matching pursuit). Otherwise the row is
    taken that is approximated worst, weighted by its coefficients, argmax |a_i|^2 d_i.
    """
    X = target.points[rows]
    own = np.asarray(engine.diagonal(target.program, X), dtype=np.float64)
    left, L = own.copy(), np.empty((rows.size, min(count, rows.size)), order="F")
    R = target.values(X) if by_error else np.empty((rows.size, 0))
    weight = target.weight[rows] ** 2
    chosen: list[int] = []
    for j in range(L.shape[1]):
        free = left > (DEPENDENT + j * _EPS) * np.abs(own)
        free[chosen] = False
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.einsum("il,il->i", R, R) / left if by_error else weight * left
        score = np.where(free, score, -np.inf)
        p = int(np.argmax(score))
        if not score[p] > (_NOISE * target.total if by_error else 0.0):
            break
        column = np.asarray(engine.gram(target.program, X, X[p : p + 1])[:, 0], dtype=np.float64)
        column = (column - L[:, :j] @ L[p, :j]) / np.sqrt(left[p])
        L[:, j] = column
        left -= column**2
        left[p] = 0.0
        target.check_definite(left, own)
        R -= np.outer(column, R[p] / column[p])
        chosen.append(p)
    return rows[chosen]


def backward(target: Target, Z: Any, n_points: int, squared_error: float = 0.0) -> Array:
    """Which of the points Z to keep, after dropping one by one the one whose loss is least.

    Without point i the squared error grows by |B_i|^2 / (W^-1)_ii, all other coefficients solved
    again. Points are dropped until `n_points` are left, and then as long as the error squared stays
    within `squared_error`; at least one is kept.
    """
    kept = np.arange(n_rows(Z))
    W, length = target.gram(Z)
    F = target.values(Z) / length[:, None]
    P, B, error = _inverse(target, W, F)
    age = 0
    while kept.size > 1:
        loss = np.einsum("jl,jl->j", B, B) / P.diagonal()
        i = int(np.argmin(loss))
        if kept.size <= n_points and error + loss[i] > squared_error:
            break
        rest = np.arange(kept.size) != i
        kept, age = kept[rest], age + 1
        if age % _AFRESH == 0:
            P, B, error = _inverse(target, W[np.ix_(kept, kept)], F[kept])
            continue
        column = P[rest, i] / P[i, i]
        error += float(loss[i])
        B = B[rest] - np.outer(column, B[i])
        P = P[np.ix_(rest, rest)] - np.outer(column, P[i, rest])
    return kept


def _inverse(target: Target, W: Array, F: Array) -> tuple[Array, Array, float]:
    """(W + ridge)^-1, the coefficients of the projection, and the squared error."""
    from scipy.linalg import cho_solve

    T, B = target.ridge_coef(W, F)
    explained = float(np.einsum("jl,jl->", B, F))
    return cho_solve((T, True), np.eye(len(W))), B, max(target.total - explained, 0.0)
