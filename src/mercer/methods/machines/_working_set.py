"""Small quadratic problems with bounds and fixed sums: the working sets of the dual solver."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer._array import Array
from mercer.engine._compiled import core, core_allowed, instruction_set

_STEPS = 20  # per variable, before a Newton step
_NEWTON_STEPS = 10  # the rest is left to later working sets
_RIDGE = 1e-13  # of the mean diagonal: makes a singular kernel matrix regular
_FLAT = 1e-12  # smallest curvature, in directions in which the kernel matrix is singular


def solve_working_set(
    M: Array, gradient: Array, b: Array, lower: Array, upper: Array, start: Array, tol: float
) -> None:
    """Minimise b'Mb / 2 + l'b over few variables, in place, to a violation of about `tol`.

    Like `minimise_working_set`, with occasional Newton steps if that takes long.
    """
    most = _STEPS * len(b)
    for _ in range(_NEWTON_STEPS):
        if minimise_working_set(M, gradient, b, lower, upper, start, tol, most) < most:
            return
        _newton_step(M, gradient, b, lower, upper, start)


def minimise_working_set(
    M: Array,
    gradient: Array,
    b: Array,
    lower: Array,
    upper: Array,
    start: Array,
    tol: float,
    max_steps: int,
) -> int:
    """Minimise b'Mb / 2 + l'b over few variables, in place; return the number of steps.

    `gradient` is Mb + l. Group k, whose sum of b is kept, are the variables start[k] up to
    start[k + 1]; without groups variables move one at a time. The pair that moves is found by
    second-order selection (Fan, Chen, Lin, Working set selection using second order information
    for training support vector machines, JMLR 6, 2005).
    """
    if core_allowed():
        isa = instruction_set()
        steps: int = core().minimise_working_set(
            M, gradient, b, lower, upper, start, tol, max_steps, isa
        )
        return steps
    for step in range(max_steps):
        moves = (
            _pair(M, gradient, b, lower, upper, start, tol)
            if len(start)
            else _single(M, gradient, b, lower, upper, tol)
        )
        if moves is None:
            return step
        for i, t in moves:
            b[i] = np.clip(b[i] + t, lower[i], upper[i])
            gradient += t * M[i]
    return max_steps


def _newton_step(M: Array, g: Array, b: Array, lower: Array, upper: Array, start: Array) -> None:
    """Move all variables between their bounds towards their joint minimum, up to a bound.

    If the kernel matrix is ill-conditioned, steps of pairs are short, and this one gets further.
    """
    free = np.flatnonzero((b > lower) & (b < upper))
    A = np.array([(free >= first) & (free < last) for first, last in pairwise(start)], dtype=float)
    A = A.reshape(-1, len(free))
    A = A[A.any(axis=1)]
    H = M[np.ix_(free, free)]
    H = H + _RIDGE * np.trace(H) / max(len(free), 1) * np.eye(len(free))
    system = np.block([[H, A.T], [A, np.zeros((len(A), len(A)))]])
    try:
        d = np.linalg.solve(system, np.concatenate([-g[free], np.zeros(len(A))]))[: len(free)]
    except np.linalg.LinAlgError:
        return
    room = np.where(d > 0.0, upper[free] - b[free], b[free] - lower[free])
    moves = d != 0.0
    t = float(np.min(room[moves] / np.abs(d[moves]), initial=1.0))
    b[free] = np.clip(b[free] + t * d, lower[free], upper[free])
    g += t * (M[:, free] @ d)


def _pair(
    M: Array, g: Array, b: Array, lower: Array, upper: Array, start: Array, tol: float
) -> list[tuple[int, float]] | None:
    """Two variables of a group that move by t and -t."""
    rises, falls = np.where(b < upper, g, np.inf), np.where(b > lower, g, -np.inf)
    groups = [slice(*ends) for ends in pairwise(start)]
    gaps = [falls[s].max(initial=-np.inf) - rises[s].min(initial=np.inf) for s in groups]
    group = groups[int(np.argmax(gaps))]
    if not max(gaps) > tol:
        return None
    i = group.start + int(np.argmin(rises[group]))
    slopes = np.where(b[group] > lower[group], g[group] - g[i], 0.0)
    curvature = np.maximum(M[i, i] + np.diagonal(M)[group] - 2.0 * M[i, group], _FLAT)
    gains = np.maximum(slopes, 0.0) ** 2 / curvature
    k = int(np.argmax(gains))
    j, t = group.start + k, float(slopes[k] / curvature[k])
    t = min(t, float(upper[i] - b[i]), float(b[j] - lower[j]))
    return [(i, t), (j, -t)]


def _single(
    M: Array, g: Array, b: Array, lower: Array, upper: Array, tol: float
) -> list[tuple[int, float]] | None:
    """The variable whose move lowers the objective most."""
    full = -g / np.maximum(np.diagonal(M), _FLAT)
    t = np.clip(full, lower - b, upper - b)
    gains = np.where(np.abs(g) > tol, -t * g - 0.5 * t**2 * np.maximum(np.diagonal(M), _FLAT), 0.0)
    i = int(np.argmax(gains))
    return [(i, float(t[i]))] if gains[i] > 0.0 else None
