"""GradientDescent, Newton and LBFGS: descent by first and second derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, positive, positive_int
from mercer.exceptions import DerivativeError, InputError
from mercer.kernels._parameters import checked
from mercer.linalg._dense import saddle_free_steps
from mercer.preimages._driver import State, row_norms, row_products
from mercer.preimages._problem import Problem
from mercer.preimages._solver import IterativeSolver, steepest
from mercer.rigor import lipschitz

_FAR = 40.0  # logarithm: pairs from places whose values differ by more are of no use
_FLAT = 1e-10  # of the largest eigenvalue: smaller ones are not divided by


@dataclass(frozen=True)
class GradientDescent(IterativeSolver):
    """Gradient descent x <- x - gradient / L, with L the Lipschitz constant of the gradient.

    Such a step never raises the objective, so it is not checked. It is slow, and meant for teaching
    and comparison. Needs a smooth radial kernel. Honeine (2024, see `preimage`), section 3.2.

    Parameters
    ----------
    tol : float
        The gradient at which a search has converged, as for `FixedPoint`.
    max_iter : int
        >= 1, the largest number of steps.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0]])
    >>> mc.preimage(psi, mc.GradientDescent(), start=[[0.0]]).points.round(6)
    array([[0.5]])
    """

    guarded = False

    def memory(self, problem: Problem) -> Any:
        """The step length of each element."""
        L = np.atleast_1d(np.asarray(lipschitz(problem.psi), dtype=float))
        if not np.isfinite(L).all():
            raise InputError(
                "the gradient of this element has no known finite Lipschitz constant; use LBFGS()"
            )
        return 1.0 / np.where(L > 0, L, np.inf)

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """-gradient / L, in true units."""
        return np.asarray(-state.gradient * (memory[owners] * np.exp(state.shift))[:, None])


@dataclass(frozen=True)
class Newton(IterativeSolver):
    """Newton's method: x <- x - H^(-1) gradient where the Hessian H is positive definite.

    Elsewhere the fixed-point step is taken (radial and inner-product kernels), or eigenvalues are
    replaced by their absolute values. Steps are no longer than one and a half times the kernel's
    own length, so that a search ends in the valley in which it started. Exact on piecewise-linear
    profiles (Epanechnikov), where it is the fixed point. It forms a d x d matrix per row, so it
    suits few dimensions. Honeine (2024, see `preimage`), equation (18), and Theorem 16 for
    Epanechnikov (away from the edge of its window).

    Parameters
    ----------
    tol : float
        The gradient at which a search has converged, as for `FixedPoint`.
    max_iter : int
        >= 1, the largest number of steps.

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
        step, values = saddle_free_steps(state.gradient, H, _FLAT)
        step = problem.shortened(step, state.points, 1.5 * problem.length)
        bent = values[:, 0] <= _FLAT * np.abs(values).max(axis=1)
        bent |= ~np.isfinite(step).all(axis=1)
        if state.stiffness is not None and bent.any():
            step[bent] = steepest(problem, state[bent])
        return np.asarray(step)


@dataclass(frozen=True)
@checked(tol=positive, max_iter=positive_int, pairs=positive_int)
class LBFGS(IterativeSolver):
    """Limited-memory BFGS, started with the fixed-point step as inverse Hessian.

    Needs first derivatives only. Where the kernel has a fixed-point step, the first step is that
    step, and the later ones accelerate it.

    Parameters
    ----------
    tol, max_iter
        As for `FixedPoint`.
    pairs : int
        Number of steps that are remembered.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0) + mc.Linear()
    >>> psi = mc.Element(k, [[0.0, 1.0], [1.0, 1.0]], [0.5, 0.5])
    >>> mc.preimage(psi, mc.LBFGS(), start=[[1.0, 0.0]]).points.round(6)
    array([[0.5, 1. ]])
    """

    pairs: int = 8

    def memory(self, problem: Problem) -> Any:
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
        unit = np.exp(np.clip(old.shift - new.shift, -_FAR, _FAR))  # units of gradients
        for pair in memory:
            pair.change *= unit[:, None]
            pair.inverse /= unit
        s, y = new.points - old.points, new.gradient - unit[:, None] * old.gradient
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
    """H_0 q: the usual scaling by the newest pair; without one, the fixed-point step's length."""
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
