"""compress: approximate an element by one with far fewer points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, frozen, instance, is_sparse, non_negative, positive_int
from mercer._progress import Callback, check_callback
from mercer._random import as_generator
from mercer._status import Status
from mercer.engine import Dense, n_rows
from mercer.exceptions import InputError
from mercer.linalg._inputs import require_definite
from mercer.preimages.compression._methods import (
    ChosenPoints,
    Compressor,
    Greedy,
    Pruning,
    Task,
    backward,
)
from mercer.preimages.compression._target import Fit, Target, merged
from mercer.space import Element

_VALUES = 1 << 24  # coefficients that are stored densely to be subtracted
_NEAR = 1e-10  # of |psi|^2: below it the squared error is a difference of nearly equal numbers


@dataclass(frozen=True, eq=False, repr=False)
class Compressed:
    """The result of `compress`: an element with few points, and its error.

    Attributes
    ----------
    element : Element
        sum_j b_j k(z_j, .); a batch if psi is one. Points have the type of those of psi.
    error : float, or array of shape (b,)
        |psi - element|, the distance in feature space, per element. If the points are not those of
        psi, an error below about 1e-8 of sum_i |a_i| sqrt(k(x_i, x_i)) is rounding.
    relative_error : float, or array of shape (b,)
        error / |psi|; 0 where psi is zero.
    status : Status
    n_iter : int
        Number of joint moves of the points; 0 if points were only chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> small = mc.compress(mc.mean_embedding(mc.Gaussian(1.0), X), 8)
    >>> small.element
    <Element of Gaussian(length_scale=1.0) on 8 points in 2 dimensions>
    >>> bool(small.relative_error < 0.05), small.status.name
    (True, 'N_POINTS')
    """

    element: Element
    error: Any
    relative_error: Any
    status: Status
    n_iter: int = 0

    @property
    def ok(self) -> bool:
        """Whether the result is as requested."""
        return self.status.ok

    def __repr__(self) -> str:
        worst = np.max(self.relative_error)
        points = n_rows(self.element.points)
        return f"<Compressed to {points} points: relative error {worst:.2g}, {self.status.name}>"


def compress(
    psi: Element,
    n_points: int,
    *,
    method: Compressor | None = None,
    tol: float | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Compressed:
    r"""Approximate psi by psi' = sum_j b_j k(z_j, .) with few points: min \|psi - psi'\|.

    The coefficients are the best ones for the points: psi' is the orthogonal projection of psi on
    the span of their features, b = K_zz^-1 psi(z). Features that depend linearly on the others to
    rounding are left out. A batch gets one set of points, to reduce sum_l \|psi_l - psi'_l\|^2.

    Values change by \|psi(x) - psi'(x)\| <= `error` sqrt(k(x, x)) at most. So for a kernel with
    k(x, x) = 1, `compress(psi, len(psi.points), tol=delta / psi.norm())` uses as few points as are
    needed to change no prediction by more than delta.

    Parameters
    ----------
    psi : Element
        One element or a batch, of a positive definite kernel.
    n_points : int
        The largest number of points. If psi has no more distinct ones, it is returned with equal
        points merged, error 0.
    method : Compressor, optional
        `Greedy` moves points to where the error is smaller; `Pruning` chooses among those of psi,
        and accepts any kernel. By default `Greedy` for dense vectors and kernels with derivatives,
        else `Pruning`.
    tol : float, optional
        >= 0; use no more points than are needed for
        (sum_l \|psi_l - psi'_l\|^2)^(1/2) <= tol (sum_l \|psi_l\|^2)^(1/2).
    random_state : int, Generator, RandomState or None
        Draws the candidates if psi has more than about 4,096 points.
    callback : callable, optional
        Called with a `linalg.Step` after each step of `Greedy`; True stops.

    Returns
    -------
    Compressed

    Examples
    --------
    A density of 500 points compressed to 10, for evaluation fifty times as fast:

    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    >>> small = mc.compress(psi, 10)
    >>> small.element, bool(small.relative_error < 0.05)
    (<Element of Gaussian(length_scale=1.0) on 10 points in 2 dimensions>, True)

    As few points as are needed for an error of one percent:

    >>> small = mc.compress(psi, 100, tol=0.01)
    >>> small.status.name, len(small.element.points) < 20
    ('CONVERGED', True)
    """
    instance(psi, Element, "psi")
    check_callback(callback)
    most = positive_int(n_points, "n_points")
    level = 0.0 if tol is None else min(non_negative(tol, "tol"), 1.0)  # 1 is the error of zero
    if method is not None and not isinstance(method, Compressor):
        raise InputError(f"method must be a value such as Greedy() or Pruning(), got {method!r}")
    rng = as_generator(random_state)
    short = merged(psi)
    if n_rows(short.points) <= most and not level:
        return _exact(short)
    require_definite(psi.kernel, "compress")
    target = Target(short)
    if target.total == 0.0:
        coef = Dense(frozen(np.zeros((1, short.coef.shape[1]))))  # zero times any feature
        return _exact(Element(psi.kernel, short.support[:1], coef, psi.batch))
    task = Task(target, min(most, n_rows(short.points)), level, rng, callback)
    if method is None:
        vectors = psi.kernel.domain.is_vector and not is_sparse(psi.points)
        method = Greedy() if vectors and psi.kernel.program.has_derivatives else Pruning()
    chosen = method.choose(task)
    result = _refit(short, task, chosen, tol is not None)
    if result.status is Status.MAX_RANK and n_rows(short.points) <= most:
        return _exact(short)
    return result


def _refit(psi: Element, task: Task, chosen: ChosenPoints, has_tol: bool) -> Compressed:
    """Round the points to the type of psi's, prune them to tol, solve, and measure the error."""
    target, scale, Z = task.target, task.target.scale, chosen.points
    single = getattr(psi.points, "dtype", None) == np.float32
    if single:
        Z = Z.astype(np.float32)
    fit = target.fit(engine.as_float64(Z))
    if task.tol and not chosen.stopped:
        kept = backward(target, fit.points, n_rows(fit.points), task.tol**2 * target.total)
        if kept.size < n_rows(fit.points):
            pruned = target.fit(fit.points[kept])
            left = 1.0 - float(pruned.explained.sum()) / target.total
            fit = pruned if left <= task.tol**2 else fit
    points = fit.points.astype(np.float32) if single else fit.points
    if isinstance(points, np.ndarray):
        points = frozen(points)
    coef = Dense(frozen(scale * fit.coef))
    element = Element(psi.kernel, points, coef, psi.batch, psi.header)
    error = _errors(target, fit, chosen.own)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(target.squared > 0, error / np.sqrt(target.squared), 0.0)
    total = float(np.sqrt(np.sum(error**2) / target.total))
    if chosen.stopped:
        status = Status.STOPPED
    elif has_tol:
        status = Status.CONVERGED if total <= task.tol else Status.MAX_RANK
    else:
        status = Status.N_POINTS if n_rows(points) == task.n_points else Status.COMPLETE
    errors = _shaped(scale * error, psi), _shaped(relative, psi)
    return Compressed(element, *errors, status, chosen.n_iter)


def _errors(target: Target, fit: Fit, own: bool) -> Array:
    """|psi_l - psi'_l|, from |psi|^2 - (2 b'F - b'W b).

    Where that cancels and the points are psi's own, coefficients are subtracted point by point
    instead, and the norm of what is left is taken.
    """
    squared = target.squared - fit.explained
    error: Array = np.sqrt(np.maximum(squared, 0.0))
    close = np.flatnonzero(squared <= _NEAR * target.squared)
    if own and close.size and close.size * n_rows(target.points) <= _VALUES:
        mine = Element(target.kernel, fit.points, Dense(fit.coef[:, close]), close.size)
        exact = np.asarray(merged(target.psi[close] - mine).norm(), dtype=np.float64)
        error[close] = np.where(np.isnan(exact), error[close], exact)
    return error


def _exact(psi: Element) -> Compressed:
    zeros = _shaped(np.zeros(psi.coef.shape[1]), psi)
    return Compressed(psi, zeros, zeros, Status.COMPLETE)


def _shaped(array: Array, psi: Element) -> Any:
    return array if psi.batch is not None else array[0]
