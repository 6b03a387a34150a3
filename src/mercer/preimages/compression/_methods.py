"""Methods of compression: greedy pre-images, pruning, landmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, positive, positive_int
from mercer._progress import Callback, Step
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.linalg import nystrom
from mercer.preimages.compression._refinement import refine_points
from mercer.preimages.compression._selection import backward, forward
from mercer.preimages.compression._target import Target, dense

_LEAST_POOL = 16
_FREE = 1e-11  # of k(x, x): candidates that depend on the points so far are not taken
_COMPLETE = 1e-15  # of |psi|^2: what is left is rounding
_RULES = ("pivoted", "leverage", "kmeans", "uniform")


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
    >>> from mercer.preimages import Greedy, Landmarks, Pruning
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    >>> errors = [mc.compress(psi, 8, method=m()).error for m in (Greedy, Pruning, Landmarks)]
    >>> bool(errors[0] < errors[1] < errors[2])
    True
    """

    @abstractmethod
    def choose(self, task: Task) -> ChosenPoints:
        """Return at most `task.n_points` points."""


@dataclass(frozen=True)
class Greedy(Compressor):
    """Pre-images of what is left: points are added one by one, and moved to where they serve best.

    With r = psi - P psi what the points so far leave, the next one starts at the point x of psi
    that lowers the error most, argmax_x sum_l r_l(x)^2 / |k(x, .) - P k(x, .)|^2 (of either sign,
    since coefficients are free), and climbs from there. With `refine` all points climb together
    after each addition: the search maximises |P_z psi|^2 over all points z at once, coefficients
    eliminated (variable projection), by L-BFGS. The points for m + 1 continue those for m, so the
    error never grows with the number of points.

    Needs derivatives and vectors. Each step takes n m kernel values and gradients, m the number of
    points so far.

    Parameters
    ----------
    refine : bool
        Move all points after each addition, not just the new one.
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
    >>> round(float(small.relative_error), 4)
    0.0173
    """

    refine: bool = True
    max_iter: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "refine", bool(self.refine))
        object.__setattr__(self, "max_iter", positive_int(self.max_iter, "max_iter"))

    def choose(self, task: Task) -> ChosenPoints:
        target = task.target
        engine.require_derivatives(target.program)
        if not target.kernel.domain.is_vector:
            raise InputError("Greedy needs points that are vectors; use Pruning() or Landmarks()")
        X = dense(target.points[target.candidates(task.n_points, task.rng)])
        values = target.values(X)
        own = np.asarray(engine.diagonal(target.program, X), dtype=np.float64)
        Z = np.empty((0, X.shape[1]))
        steps, explained = 0, 0.0
        for m in range(task.n_points):
            score = _gains(target, X, values, own, Z)
            p = int(np.argmax(score))
            if not score[p] > _COMPLETE * target.total:
                break
            free = slice(0 if self.refine else m, None)
            Z, value, taken = refine_points(target, np.vstack([Z, X[p]]), self.max_iter, free)
            steps += taken
            explained = max(explained, value)
            error = float(np.sqrt(max(1.0 - explained / target.total, 0.0)))
            if task.callback is not None and task.callback(Step(m + 1, error)):
                return ChosenPoints(Z, False, steps, True)
            if error <= task.tol:
                break
        return ChosenPoints(Z, False, steps)


@dataclass(frozen=True)
class Pruning(Compressor):
    """Points of the element itself, chosen forwards and then pruned backwards.

    First points are taken one by one, each time the one that lowers the error most (orthogonal
    matching pursuit), until there are `pool` times as many as asked for, or all. Then they are
    dropped one by one, each time the one without which the error grows least, all coefficients
    solved again: by |B_i|^2 / (W^-1)_ii. If that ends worse than the first points that were taken,
    those are used. Works for every positive definite kernel. Of more than 4,096 points (fewer for
    large batches) as many are looked at, drawn at random.

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
        object.__setattr__(self, "pool", positive(self.pool, "pool"))
        if self.pool < 1.0:
            raise InputError(f"pool must be >= 1, got {self.pool!r}")

    def choose(self, task: Task) -> ChosenPoints:
        target = task.target
        size = int(self.pool * task.n_points)
        if self.pool > 1.0:
            size = max(size, task.n_points + _LEAST_POOL)
        rows = forward(target, target.candidates(size, task.rng), size, by_error=True)
        pruned = rows[backward(target, target.points[rows], task.n_points)]
        fits = [(r, target.fit(target.points[r])) for r in (rows[: task.n_points], pruned)]
        best = max(fits, key=lambda pair: pair[1].explained.sum())[0]
        return ChosenPoints(target.points[np.sort(best)], True)


@dataclass(frozen=True)
class Landmarks(Compressor):
    """Points that represent all points of the element, chosen without looking at its values.

    Cheaper than `Pruning`, because psi is not evaluated before it is projected.

    Parameters
    ----------
    rule : {"pivoted", "leverage", "kmeans", "uniform"}
        Pivots of a Cholesky factorisation weighed by the size of the coefficients, max |a_i|^2 d_i;
        or as in `linalg.nystrom`: points drawn by leverage scores, centres of k-means (dense
        vectors only), points drawn uniformly.

    References
    ----------
    C. Williams and M. Seeger, Using the Nystrom method to speed up kernel machines, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    >>> small = mc.compress(psi, 40, method=mc.preimages.Landmarks("leverage"), random_state=0)
    >>> bool(small.relative_error < 0.1)
    True
    """

    rule: str = "pivoted"

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise InputError(f"rule must be one of {', '.join(_RULES)}, got {self.rule!r}")

    def choose(self, task: Task) -> ChosenPoints:
        target, m = task.target, task.n_points
        if self.rule == "pivoted":
            rows = forward(target, np.arange(n_rows(target.points)), m, by_error=False)
            return ChosenPoints(target.points[np.sort(rows)], True)
        low = nystrom(target.kernel, target.points, m, rule=self.rule, random_state=task.rng)
        return ChosenPoints(low.landmarks, low.index is not None)


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
