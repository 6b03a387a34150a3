"""Compression methods: points are chosen greedily, and optionally moved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, positive, positive_int
from mercer._progress import Callback
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels._parameters import checked
from mercer.preimages.compression._refinement import move_points
from mercer.preimages.compression._target import DEPENDENT, Target

_LEAST_POOL = 16
_AFRESH = 16  # eliminations between two factorisations
_NOISE = 1e-28  # of |psi|^2: a gain that is rounding
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Task:
    """What to compress, and into how many points."""

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
    """Base of the methods of `compress`, which choose points; coefficients are a projection.

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
    """Choose points of the element greedily, then move them to reduce the error.

    All points move together: |P_z psi|^2 is maximised over all points z at once, with coefficients
    eliminated (variable projection), by L-BFGS. The error is never above that of `Pruning`. With a
    tolerance, the number of points needed is found by bisection, each time dropping points and
    moving the others. Needs derivatives and vectors.

    Parameters
    ----------
    max_iter : int
        Maximum number of steps each time the points are moved. Beyond the default of 100 little is
        left to gain.

    References
    ----------
    Schoelkopf et al. (1999), Input space versus feature space in kernel-based methods, section VI
    (reduced sets); Golub, Pereyra (1973) for variable projection.

    Examples
    --------
    Two points for a uniform distribution; neither is in the sample.

    >>> import numpy as np
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), np.linspace(-1.0, 1.0, 50)[:, None])
    >>> small = mc.compress(psi, 2, method=mc.preimages.Greedy())
    >>> np.sort(small.element.points[:, 0]).round(2)
    array([-0.55,  0.55])
    """

    max_iter: int = 100

    def choose(self, task: Task) -> ChosenPoints:
        target = task.target
        engine.require_derivatives(target.program)
        if not target.kernel.domain.is_vector:
            raise InputError("Greedy needs points that are vectors; use Pruning()")
        moved = move_points(
            target, engine.dense(Pruning().choose(task).points), self.max_iter, task.callback
        )
        steps, enough, too_few = moved.n_iter, task.tol**2 * target.total, 0
        while not moved.stopped and moved.error <= enough and len(moved.points) - too_few > 1:
            count = (len(moved.points) + too_few) // 2
            kept = backward(target, moved.points, count, enough)
            fewer = move_points(target, moved.points[kept], self.max_iter, task.callback)
            steps += fewer.n_iter
            if fewer.stopped or fewer.error <= enough:
                moved = fewer
            else:
                too_few = kept.size
        return ChosenPoints(moved.points, False, steps, moved.stopped)


@dataclass(frozen=True)
@checked(pool=positive)
class Pruning(Compressor):
    """Choose points of the element by forward selection and backward elimination.

    First, points are added one by one, each time the one that lowers the error most (orthogonal
    matching pursuit), until there are `pool` times as many as requested (at least 16 more). Then
    they are dropped one by one, each time the one without which the error grows least. If the
    result is worse than the points that were added first, those are used. If there are more than
    about 4,096 points (fewer for large batches), a random sample of that size is searched.

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
        target, most, enough = task.target, task.n_points, task.tol**2 * task.target.total
        size = self._size(most)
        rows: list[int] = []
        for row, error in forward(target, target.candidates(size, task.rng), size):
            rows.append(row)
            if error <= enough:  # fewer points will do, and so will a smaller pool
                size = min(size, self._size(len(rows)))
            if len(rows) == size:
                break
        if not rows:  # k(x, x) = 0 at all points, but psi is not zero
            raise target.indefinite
        chosen = np.array(rows)
        pruned = chosen[backward(target, target.points[chosen], most)]
        fits = [(r, target.fit(target.points[r])) for r in (chosen[:most], pruned)]
        best = max(fits, key=lambda pair: pair[1].explained.sum())[0]
        return ChosenPoints(target.points[np.sort(best)], True)

    def _size(self, n_points: int) -> int:
        """The size of the pool from which that many points are kept."""
        size = int(self.pool * n_points)
        return size if self.pool == 1.0 else max(size, n_points + _LEAST_POOL)


def forward(target: Target, rows: Array, count: int) -> Iterator[tuple[int, float]]:
    """At most `count` rows one by one, each the one that lowers the error most (matching pursuit).

    With each comes the squared error after it. With d_i the residual of k(x_i, x_i) and r that of
    psi, it is argmax sum_l r_l(x_i)^2 / d_i, from a pivoted Cholesky factorisation.
    """
    X = target.points[rows]
    own = np.asarray(engine.diagonal(target.program, X), dtype=np.float64)
    left, L = own.copy(), np.empty((rows.size, min(count, rows.size)), order="F")
    R, error = target.values(X), target.total
    free = np.ones(rows.size, dtype=bool)
    for j in range(L.shape[1]):
        free &= left > (DEPENDENT + j * _EPS) * np.abs(own)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(free, np.einsum("il,il->i", R, R) / left, -np.inf)
        p = int(np.argmax(score))
        if not score[p] > _NOISE * target.total:
            return
        column = np.asarray(engine.gram(target.program, X, X[p : p + 1])[:, 0], dtype=np.float64)
        column = (column - L[:, :j] @ L[p, :j]) / np.sqrt(left[p])
        L[:, j] = column
        left -= column**2
        left[p], free[p] = 0.0, False
        target.check_definite(left, own)
        R -= np.outer(column, R[p] / column[p])
        error -= float(score[p])
        yield int(rows[p]), error


def backward(target: Target, Z: Any, n_points: int, squared_error: float = 0.0) -> Array:
    """Which of the points Z to keep: each time the point whose loss is least is dropped.

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
