"""Pre-images of elements on tensors: solved in NumPy, differentiated implicitly.

A pre-image x solves grad_x J(x, theta) = 0, with J the objective and theta the points and
coefficients of the element. So dx = -H^-1 d(grad_x J), with H the Hessian of J in x: gradients of x
need one sum and one linear system, however many steps the search took.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer._config import get_options
from mercer._tensors import (
    host,
    is_torch,
    is_tracked,
    namespace,
    with_implicit_gradient,
)
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import OpenBall
from mercer.preimages._constraint import as_constraint
from mercer.preimages._objective import Collinear, Nearest, Objective
from mercer.preimages._problem import Problem
from mercer.preimages._result import PreImage
from mercer.space import Element

_STATIONARY = 1e-4  # lengths of the kernel: after a longer Newton step x is not a critical point
_DEFINITE = 1e-9  # of the largest curvature; below it x is not determined
_HESSIANS = 8  # arrays of the size of the Hessians that are held at once
_BORDER = 1e-3  # of the radius of an open ball: nearer to the sphere x may be held by it


def on_host(psi: Element) -> Element:
    """The same element in NumPy, without its gradient history."""
    coef = psi.coef.rebuilt([host(a) for a in psi.coef.arrays])
    return Element(psi.kernel, host(psi.points), coef, psi.batch)


def with_tensors(
    found: PreImage, psi: Element, objective: Objective | None, region: Any, fixed: Any
) -> PreImage:
    """The result with its points as a tensor, which has a derivative if torch tracks one."""
    xp, X = namespace(psi.points), psi.points
    points = xp.asarray(np.array(found.points), dtype=X.dtype, device=X.device)
    if not is_tracked(X, *psi.coef.arrays):
        return replace(found, points=points)
    radial = psi.kernel.program.is_translation_invariant
    exact = isinstance(objective, Nearest) or (isinstance(objective, Collinear) and radial)
    if region is not None or not (objective is None or exact):
        raise InputError(
            "gradients of a pre-image are known for the objective Nearest() (and Collinear() with "
            "radial kernels) without a region; detach the element: coef.detach(), points.detach()"
        )
    count = points.shape[0]
    if psi.coef.shape[1] != count:  # one element for all rows of `fixed`
        psi = psi.combine(xp.ones((1, count), dtype=X.dtype, device=X.device))
    free = np.ones((count, X.shape[1]), dtype=bool)
    if fixed is not None:
        free &= np.isnan(np.broadcast_to(np.asarray(fixed, dtype=float), free.shape))
    f = engine.fields(psi.kernel.program, X, points, psi.coef, order=1, paired=True)
    gradient: Any = f.gradient
    assert is_torch(gradient)
    solve = partial(_solve_hessian, np.array(found.points), found.ok, on_host(psi), free)
    known = with_implicit_gradient(points, -gradient, solve, X, *psi.coef.arrays)
    return replace(found, points=known)


def _solve_hessian(points: Array, ok: Array, psi: Element, free: Array, g: Array) -> Array:
    """H^-1 g over the free coordinates, zero elsewhere; NaN where the row has no derivative.

    A row has one if its search ended as it should, at a critical point without a cusp, where the
    Hessian is positive definite. Rows where g is zero are not looked at.
    """
    count, dim = free.shape
    batch = Element(psi.kernel, engine.as_float64(psi.points), psi.coef, count)
    problem = Problem(batch, Nearest(), as_constraint(None, None, count, dim))
    out = np.zeros((count, dim))
    rows = np.flatnonzero((g != 0.0).any(axis=1))
    size = max(1, int(get_options().working_memory * 2**20 / (8 * _HESSIANS * dim**2)))
    for some in pieces(len(rows), size):
        at = rows[some]
        out[at] = _newton_steps(problem, at, np.asarray(points[at], float), ok[at], free[at], g[at])
    return out


def _newton_steps(
    problem: Problem, rows: Array, x: Array, ok: Array, free: Array, g: Array
) -> Array:
    """The same for some rows, with their Hessians in memory."""
    with np.errstate(all="ignore"):
        state = problem.at(x, rows, 2)
        scale = np.exp(state.shift)[:, None]
        gradient = np.where(free, state.gradient * scale, 0.0)
        assert state.hessian is not None
        both = free[:, :, None] & free[:, None, :]
        H = np.where(both, state.hessian * scale[:, :, None], 0.0)
    good = ok & np.isfinite(H).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1)
    if state.cusp is not None:
        good &= np.asarray(state.cusp) == 0
    domain = problem.kernel.domain
    if isinstance(domain, OpenBall):
        good &= np.linalg.norm(x, axis=1) < (1.0 - _BORDER) * domain.radius
    out = np.full(x.shape, np.nan)
    length = problem.length if np.isfinite(problem.length) else problem.spread
    for j in np.flatnonzero(good):
        curvature, V = np.linalg.eigh(H[j][np.ix_(free[j], free[j])])
        if curvature.size and not curvature[0] > _DEFINITE * curvature[-1]:
            continue
        newton = V @ ((V.T @ gradient[j][free[j]]) / curvature)
        if np.linalg.norm(newton) <= _STATIONARY * length:
            out[j] = 0.0
            out[j][free[j]] = V @ ((V.T @ g[j][free[j]]) / curvature)
    return out
