"""FixedPoint and MM: fixed-point iterations, made monotone by a safeguard or by a majorant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Dense, Expr, profile_at
from mercer.exceptions import DerivativeError, InputError
from mercer.preimages._driver import State, row_norms
from mercer.preimages._problem import Problem
from mercer.preimages._solver import IterativeSolver, steepest
from mercer.rigor import upward_curvature
from mercer.space import Element


@dataclass(frozen=True)
class FixedPoint(IterativeSolver):
    r"""Fixed-point iteration x <- sum_i a_i k'(u_i) x_i / sum_i a_i k'(u_i), with a safeguard.

    For kernels of the inner product the step is sum_i a_i f'(<x, x_i>) x_i / f'(\|x\|^2). Weights
    are formed in log space, so that the step is right where every kernel value underflows.

    With coefficients of both signs the published iteration may climb, cycle, or divide by zero. The
    safeguarded one moves along -gradient / \|denominator\|, which is the same step where that is
    downhill, and shortens it where the objective would not fall: it is monotone for any signs.
    Honeine (2024, see `preimage`), equations (15), (16) and (B.5), which Theorem 27 wrongly calls
    monotone.

    Parameters
    ----------
    tol : float
        A search has converged when its gradient is at most tol times a bound that holds everywhere
        (`gradient_bound`, for radial kernels), or times the size of its two parts (for others).
    max_iter : int
    safeguard : bool
        False gives the published iteration, to reproduce published results.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [5.0]])
    >>> mc.preimage(psi, mc.FixedPoint(), start=[[2.0]]).points.round(6)
    array([[0.500136]])
    """

    safeguard: bool = True

    @property
    def guarded(self) -> bool:  # type: ignore[override]
        return self.safeguard

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        if state.stiffness is None:
            raise DerivativeError(
                "FixedPoint needs a kernel of one squared distance or inner product, and the "
                "Nearest problem; use LBFGS for any differentiable kernel"
            )
        if self.safeguard:
            return steepest(problem, state)
        return problem.fixed_point_step(state)


@dataclass(frozen=True)
class MM(IterativeSolver):
    r"""Majorise-minimise: repeatedly minimise a majorant that touches the objective at x.

    Radial kernels with a convex profile: terms with a_i > 0 lie below their tangent parabolas,
    those with a_i < 0 have curvature at most c, the supremum of the largest Hessian eigenvalue of
    the kernel (2 exp(-3/2) / s^2 for the Gaussian), so

        x <- x - gradient / (-2 sum_{a_i > 0} a_i k'(u_i) + c sum_{a_i < 0} \|a_i\|).

    Without negative coefficients this is the fixed point. Kernels of the inner product with a
    convex profile f and a_i >= 0: with b = sum_i a_i f'(<x, x_i>) x_i,

        x <- s b / \|b\|,   s f'(s^2) = \|b\|.

    Honeine (2024, see `preimage`), Theorem 18. The steps for coefficients of both signs and for
    inner products replace Theorem 27, which does not hold.

    Parameters
    ----------
    tol : float
        The gradient at which a search has converged, as for `FixedPoint`.
    max_iter : int
        >= 1, the largest number of steps.

    Examples
    --------
    The published iteration x <- 1/x never ends here.

    >>> import mercer as mc
    >>> psi = mc.Element(mc.Polynomial(2, offset=0.0), [[1.0]], [1.0])
    >>> mc.preimage(psi, mc.MM(), start=[[2.0]]).points.round(8)
    array([[1.]])
    """

    guarded = False

    def memory(self, problem: Problem) -> Any:
        """Check the conditions of the theorem."""
        kind = problem.program.kind
        if kind not in ("radial", "dot") or any(problem.program.cusps):
            raise InputError(
                "MM needs a smooth kernel of one squared distance or inner product; use FixedPoint"
            )
        if problem.program.maps:
            raise InputError("MM needs a kernel without maps of its points; use FixedPoint")
        if kind == "radial" and not problem.kernel.flags.convex_profile:
            raise InputError("MM needs a convex profile, and this one is not known to be convex")

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        A = problem.psi.coef.columns(owners).tile(slice(None), slice(None))
        if problem.program.kind == "dot":
            if (A < 0).any():
                raise InputError("MM with an inner product needs coefficients >= 0; use LBFGS")
            return _dot_step(problem, state)
        plus = Element(problem.kernel, problem.psi.points, Dense(np.maximum(A, 0.0)), len(owners))
        f = plus.fields(state.points, order=1, paired=True)
        bend = upward_curvature(problem.program)
        weight = -2.0 * f.slopes[0] + bend * np.maximum(-A, 0.0).sum(axis=0)
        step = -state.gradient * (np.exp(state.shift) / weight)[:, None]
        return np.where(weight[:, None] > 0, step, 0.0)


def _dot_step(problem: Problem, state: State) -> Array:
    """b = f'(|x|^2) x - gradient, then the length that solves s f'(s^2) = |b|."""
    x, profile = state.points, problem.program.profile
    b = profile_at(profile, np.sum(x**2, axis=1), 1)[1][:, None] * x - state.gradient
    norm = row_norms(b)
    unit = np.nan_to_num(b / norm[:, None])
    return np.asarray(unit * _solve_length(profile, norm)[:, None] - x)


def _solve_length(profile: Expr, c: Array) -> Array:
    """s >= 0 with s f'(s^2) = c, for f convex and increasing: the left side increases with s."""
    from scipy.optimize.elementwise import bracket_root, find_root

    def excess(s: Array, c: Array) -> Array:
        return s * profile_at(profile, s**2, 1)[1] - c

    bracket = bracket_root(excess, 0.0, 1.0, xmin=0.0, args=(c,)).bracket
    return np.asarray(find_root(excess, bracket, args=(c,)).x)
