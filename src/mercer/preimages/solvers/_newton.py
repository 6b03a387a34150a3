"""Newton: Newton's method, with other steps where the Hessian is not positive definite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.exceptions import DerivativeError
from mercer.preimages._descent import IterativeSolver, steepest
from mercer.preimages._problem import Problem
from mercer.preimages._state import State

_FLAT = 1e-10  # of the largest eigenvalue: smaller ones are not divided by


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
