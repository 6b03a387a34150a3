"""Methods of compression: greedy pre-images, and pruning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, positive, positive_int
from mercer._progress import Callback, report
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels._parameters import checked
from mercer.preimages.compression._refinement import refine_points
from mercer.preimages.compression._target import DEPENDENT, Target

_LEAST_POOL = 16
_FREE = 1e-11  # of k(x, x): candidates that depend on the points so far are not taken
_COMPLETE = 1e-15  # of |psi|^2: what is left is rounding
_AFRESH = 16  # eliminations between two factorisations
_NOISE = 1e-28  # of |psi|^2: a gain that is rounding
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is asked for."""

    target: Target
    n_points: int
    tol: float  # 0 where none is given
    rng: np.random.Generator
    callback: Callback | None


@dataclass(frozen=True, eq=False)
class ChosenPoints:
    """The points a method ends with; `own` where they are points of the element."""

    points: Any
    own: bool
    n_iter: int = 0
    stopped: bool = False


class Compressor(ABC):
    """A method of `compress`: it chooses points; their coefficients are those of the projection.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    >>> greedy = mc.compress(psi, 8, method=mc.preimages.Greedy())
    >>> bool(greedy.error < mc.compress(psi, 8, method=mc.preimages.Pruning()).error)
    True
    """

    @abstractmethod
    def choose(self, task: Task) -> ChosenPoints:
        """Return at most `task.n_points` points."""


@dataclass(frozen=True)
@checked(max_iter=positive_int)
class Greedy(Compressor):
    """Pre-images of the residual: points are added one by one, and moved to lower the error.

    With the residual r = psi - P psi of the points so far, the next one starts at the point x of
    psi that lowers the error most, argmax_x sum_l r_l(x)^2 / |k(x, .) - P k(x, .)|^2, and climbs
    from there. Then all points climb together: |P_z psi|^2 is maximised over all points z at once,
    coefficients eliminated (variable projection), by L-BFGS. The error never grows with the number
    of points. Needs derivatives and vectors.

    Parameters
    ----------
    max_iter : int
        Steps after each addition.

    References
    ----------
    Schoelkopf et al. (1999), Input space versus feature space in kernel-based methods, section VI
    (reduced sets); Golub, Pereyra (1973) for variable projection.

    Examples
    --------
    Two points for a uniform distribution: none of them is one of the sample.

    >>> import numpy as np
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), np.linspace(-1.0, 1.0, 50)[:, None])
    >>> small = mc.compress(psi, 2, method=mc.preimages.Greedy())
    >>> np.sort(small.element.points[:, 0]).round(2)
    array([-0.55,  0.55])
    """

    max_iter: int = 30

    def choose(self, task: Task) -> ChosenPoints:
        target = task.target
        engine.require_derivatives(target.program)
        if not target.kernel.domain.is_vector:
            raise InputError("Greedy needs points that are vectors; use Pruning()")
        X = engine.dense(target.points[target.candidates(task.n_points, task.rng)])
        values = target.values(X)
        own = np.asarray(engine.diagonal(target.program, X), dtype=np.float64)
        Z = np.empty((0, X.shape[1]))
        steps, explained = 0, 0.0
        for m in range(task.n_points):
            score = _gains(target, X, values, own, Z)
            p = int(np.argmax(score))
            if not score[p] > _COMPLETE * target.total:
                break
            Z, value, taken = refine_points(target, np.vstack([Z, X[p]]), self.max_iter)
            steps += taken
            explained = max(explained, value)
            error = float(np.sqrt(max(1.0 - explained / target.total, 0.0)))
            if report("compression", m + 1, error, callback=task.callback):
                return ChosenPoints(Z, False, steps, True)
            if error <= task.tol:
                break
        return ChosenPoints(Z, False, steps)


@dataclass(frozen=True)
@checked(pool=positive)
class Pruning(Compressor):
    """Points of the element itself, chosen forwards and then pruned backwards.

    First points are taken one by one, each time the one that lowers the error most (orthogonal
    matching pursuit), until there are `pool` times as many as asked for. Then they are dropped one
    by one, each time the one without which the error grows least. If that ends worse than the first
    points that were taken, those are used. Of more than 4,096 points (fewer for large batches) as
    many are looked at, drawn at random.

    Parameters
    ----------
    pool : float
        >= 1; 1 for no pruning.

    References
    ----------
    Burges (1996), Simplified support vector decision rules; Schoelkopf et al. (1999), section VI.A.

    Examples
    --------
    >>> import mercer as mc
    >>> def common(A, B):
    ...     return [[float(len(set(a) & set(b))) for b in B] for a in A]
    >>> k = mc.kernels.FromFunction(common, on=mc.kernels.Objects())
    >>> psi = mc.mean_embedding(k, ["ab", "a", "b", "abc", "c"])
    >>> small = mc.compress(psi, 2, method=mc.preimages.Pruning())
    >>> len(small.element.points), bool(small.error < 1e-7)
    (2, True)
    """

    pool: float = 2.0

    def __post_init__(self) -> None:
        if self.pool < 1.0:
            raise InputError(f"pool must be >= 1, got {self.pool!r}")

    def choose(self, task: Task) -> ChosenPoints:
        target = task.target
        size = int(self.pool * task.n_points)
        if self.pool > 1.0:
            size = max(size, task.n_points + _LEAST_POOL)
        rows = forward(target, target.candidates(size, task.rng), size)
        pruned = rows[backward(target, target.points[rows], task.n_points)]
        fits = [(r, target.fit(target.points[r])) for r in (rows[: task.n_points], pruned)]
        best = max(fits, key=lambda pair: pair[1].explained.sum())[0]
        return ChosenPoints(target.points[np.sort(best)], True)


def _gains(target: Target, X: Array, values: Array, own: Array, Z: Array) -> Array:
    """What each candidate would explain beyond the points Z, all coefficients solved again."""
    from scipy.linalg import solve_triangular

    left, rest = own, values
    if len(Z):
        W, length = target.gram(Z)
        T, B = target.ridge_coef(W, target.values(Z) / length[:, None])
        C = np.asarray(engine.gram(target.program, Z, X), dtype=np.float64) / length[:, None]
        V = solve_triangular(T, C, lower=True)
        left, rest = own - np.einsum("ji,ji->i", V, V), values - C.T @ B
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.einsum("il,il->i", rest, rest) / left
    return np.where(left > _FREE * np.abs(own), gain, -np.inf)


def forward(target: Target, rows: Array, count: int) -> Array:
    """Rows taken one by one, each time the one that lowers the error most (matching pursuit).

    With d_i the rest of k(x_i, x_i) and r the rest of psi that is argmax sum_l r_l(x_i)^2 / d_i,
    from a pivoted Cholesky factorisation of the Gram matrix.
    """
    X = target.points[rows]
    own = np.asarray(engine.diagonal(target.program, X), dtype=np.float64)
    left, L = own.copy(), np.empty((rows.size, min(count, rows.size)), order="F")
    R = target.values(X)
    chosen: list[int] = []
    for j in range(L.shape[1]):
        free = left > (DEPENDENT + j * _EPS) * np.abs(own)
        free[chosen] = False
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(free, np.einsum("il,il->i", R, R) / left, -np.inf)
        p = int(np.argmax(score))
        if not score[p] > _NOISE * target.total:
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

    Without point i the squared error grows by |B_i|^2 / (W^-1)_ii. Points are dropped until
    `n_points` are left, and then as long as the error squared stays within `squared_error`.
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
