"""GradientDescent, Newton and LBFGS: descent by first and second derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, positive_int
from mercer.exceptions import DerivativeError, InputError
from mercer.preimages._descent import IterativeSolver, steepest
from mercer.preimages._problem import Problem
from mercer.preimages._state import State, row_norms, row_products
from mercer.rigor import lipschitz

_FAR = 40.0  # logarithm: pairs from places whose values differ by more are of no use
_FLAT = 1e-10  # of the largest eigenvalue: smaller ones are not divided by


@dataclass(frozen=True)
class GradientDescent(IterativeSolver):
    """x <- x - t gradient, with t = 1/L or by a line search.

    With L the Lipschitz constant of the gradient (`lipschitz`), 1/L descends without a look at the
    objective. The line search starts from twice the step that worked last. Honeine (2024, see
    `preimage`), section 3.2.

    Parameters
    ----------
    tol, max_iter
        As for `FixedPoint`.
    line_search : bool

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0]])
    >>> mc.preimage(psi, mc.GradientDescent(), start=[[0.0]]).points.round(6)
    array([[0.5]])
    """

    line_search: bool = True

    @property
    def guarded(self) -> bool:  # type: ignore[override]
        return self.line_search

    def memory(self, problem: Problem, rows: int) -> Any:
        """The step length of each row."""
        L = np.atleast_1d(np.asarray(lipschitz(problem.psi), dtype=float))
        known = np.isfinite(L) & (L > 0)
        if not self.line_search and not known.all():
            raise InputError(
                "the gradient of this element has no known finite Lipschitz constant; use "
                "GradientDescent(line_search=True)"
            )
        step = np.where(known, 1.0 / np.where(known, L, 1.0), 1.0)
        return np.tile(step, rows // problem.batch)

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """-t gradient, in true units."""
        scale = memory * np.exp(state.shift)
        if self.line_search:
            # in the tails true gradients are nothing: keep the step of the fixed point instead
            scale = np.where(np.abs(state.shift) > 1.0, memory, scale)
        return np.asarray(-state.gradient * scale[:, None])

    def learn(self, memory: Any, rows: Array, old: State, new: State) -> None:
        """Twice what worked, half where nothing did."""
        if not self.line_search:
            return
        length = row_norms(new.points - old.points)
        norm = row_norms(old.gradient)
        used = length / norm
        fine = rows & np.isfinite(used) & (used > 0)
        memory[fine] = 2.0 * used[fine]
        memory[~rows] *= 0.5

    def keep(self, memory: Any, rows: Array) -> Any:
        return memory[rows]


@dataclass(frozen=True)
class Newton(IterativeSolver):
    """x <- x - H^(-1) gradient where the Hessian H is positive definite.

    Elsewhere the fixed-point step is taken (radial and inner-product kernels), or eigenvalues are
    replaced by their absolute values. Steps are no longer than one and a half times the kernel's
    own length, so that a search ends in the valley in which it started. Exact on piecewise-linear
    profiles (Epanechnikov), where it is the fixed point. A d x d matrix per row: for few
    dimensions. Honeine (2024, see `preimage`), equation (18), and Theorem 16 for Epanechnikov (away
    from the edge of its window). `tol` and `max_iter` are as for `FixedPoint`.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [5.0]])
    >>> back = mc.preimage(psi, mc.Newton(), start=[[2.0]])
    >>> back.points.round(6), bool(back.gradient_norm[0] < 1e-10)
    (array([[0.500136]]), True)
    """

    order = 2

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        if state.hessian is None:
            raise DerivativeError("Newton needs second derivatives; use LBFGS for this problem")
        if problem.constraint.region is not None:
            return steepest(problem, state)
        H = np.where(np.isfinite(state.hessian), state.hessian, 0.0)
        values, vectors = np.linalg.eigh(H)
        top = np.abs(values).max(axis=1, keepdims=True)
        floor = np.maximum(_FLAT * top, np.finfo(float).tiny)
        along = np.einsum("mij,mi->mj", vectors, state.gradient) / np.maximum(np.abs(values), floor)
        step = -np.einsum("mij,mj->mi", vectors, along)
        step = problem.shortened(step, state.points, 1.5 * problem.length)
        bent = (values[:, 0] <= floor[:, 0]) | ~np.isfinite(step).all(axis=1)
        if state.stiffness is not None and bent.any():
            step[bent] = steepest(problem, state[bent])
        return np.asarray(step)


@dataclass(frozen=True)
class LBFGS(IterativeSolver):
    """Limited-memory BFGS with the fixed-point step as its first guess of the inverse Hessian.

    Needs first derivatives only. Where the kernel has a fixed-point step, the first step is that
    step, and the later ones accelerate it.

    Parameters
    ----------
    tol, max_iter
        As for `FixedPoint`.
    pairs : int
        Steps that are remembered.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0) + mc.Linear()
    >>> psi = mc.Element(k, [[0.0, 1.0], [1.0, 1.0]], [0.5, 0.5])
    >>> mc.preimage(psi, mc.LBFGS(), start=[[1.0, 0.0]]).points.round(6)
    array([[0.5, 1. ]])
    """

    pairs: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pairs", positive_int(self.pairs, "pairs"))

    def memory(self, problem: Problem, rows: int) -> Any:
        return []

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """The two-loop recursion."""
        if problem.constraint.region is not None:
            return steepest(problem, state)
        q = np.array(state.gradient)
        alphas = []
        for pair in memory:  # newest first
            alphas.append(pair.inverse * row_products(pair.step, q))
            q -= alphas[-1][:, None] * pair.change
        r = _initial(problem, state, memory, q)
        for pair, alpha in zip(reversed(memory), reversed(alphas), strict=True):
            r += (alpha - pair.inverse * row_products(pair.change, r))[:, None] * pair.step
        return np.negative(r, out=r)

    def learn(self, memory: Any, rows: Array, old: State, new: State) -> None:
        """Remember a step if the gradient grew along it; forget all after a failure."""
        unit = np.exp(np.clip(old.shift - new.shift, -_FAR, _FAR))  # gradients are in exp(shift)
        same = bool((unit == 1.0).all())
        if not same:
            for pair in memory:
                pair.change *= unit[:, None]
                pair.inverse /= unit
        s = new.points - old.points
        y = new.gradient - (old.gradient if same else unit[:, None] * old.gradient)
        product, size = row_products(s, y), row_norms(s) * row_norms(y)
        near = np.abs(old.shift - new.shift) < _FAR
        good = rows & near & (product > 1e-12 * size) & (product > 0)
        for pair in memory:
            pair.inverse[~good] = 0.0
        inverse = np.where(good, 1.0 / np.where(good, product, 1.0), 0.0)
        memory.insert(0, _Pair(s, y, inverse))
        del memory[self.pairs :]

    def keep(self, memory: Any, rows: Array) -> Any:
        return [_Pair(p.step[rows], p.change[rows], p.inverse[rows]) for p in memory]


@dataclass
class _Pair:
    """A step of every row and the change of the gradient along it; unused where inverse is 0."""

    step: Array
    change: Array
    inverse: Array  # 1 / <step, change>


def _initial(problem: Problem, state: State, memory: list[_Pair], q: Array) -> Array:
    """H_0 q: the usual scaling by the newest pair, the length of the fixed-point step without."""
    scale = np.zeros(len(q))
    used = np.zeros(len(q), dtype=bool)
    if memory:
        used = memory[0].inverse != 0
        change = row_norms(memory[0].change)
        scale = np.where(used, 1.0 / (memory[0].inverse * change) / change, 0.0)
    if not used.all():
        rows = state[~used]
        ratio = row_norms(steepest(problem, rows)) / rows.local_norm
        scale[~used] = np.nan_to_num(ratio, posinf=0.0)
    q *= scale[:, None]
    return q
