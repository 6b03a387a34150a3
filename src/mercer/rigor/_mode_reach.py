"""How far from all points a mode can be, and boxes that touch put together."""

from __future__ import annotations

import math

import numpy as np

from mercer._array import Array
from mercer.engine import Const, Expr, Var
from mercer.engine.programs._expr import Add, Matern, Mul
from mercer.engine.programs._log_profile import log_expr
from mercer.exceptions import InputError
from mercer.rigor._intervals import Interval, as_interval, enclose, plus, times, up

_GRID = 1200


def far_reach(profile: Expr, dim: int, widest: float) -> float:
    """U such that d k'(u) + 2 u k''(u) > 0 for U < u <= widest; infinite where none is proved.

    Twice this, summed over the points, is the trace of the Hessian, which is <= 0 at a mode: so no
    mode is farther than sqrt(U) from all points. For a Gaussian U = d s^2.
    """
    match profile:
        case Add(left=Const(), right=inner) | Add(left=inner, right=Const()):
            return far_reach(inner, dim, widest)
        case Add(left=a, right=b):
            return max(far_reach(a, dim, widest), far_reach(b, dim, widest))
        case Mul(left=Const(value=c), right=inner) if c > 0:
            return far_reach(inner, dim, widest)
        case Matern(arg=Mul(left=Const(value=c), right=Var()), nu=nu):
            # -2 u k'' / k' is z for nu = 3/2 and z^2 / (1 + z) for nu = 5/2
            z = float(dim) if nu == 1.5 else (dim + math.sqrt(dim * dim + 4.0 * dim)) / 2.0
            return z * z / c * (1 + 1e-12)
    return _by_logarithm(profile, dim, widest)


def _by_logarithm(profile: Expr, dim: int, widest: float) -> float:
    """With k = exp(L) the sum is k (d L' + 2 u (L'' + L'^2)), which does not underflow."""
    edges = widest * np.logspace(-12.0, 0.0, _GRID + 1)
    u = Interval(edges[:-1], edges[1:])
    log_profile = log_expr(profile)
    try:
        if log_profile is None:
            raise InputError("no logarithm")
        jet = enclose(log_profile, [u], 2)
        first, second = jet.first[0], jet.second[0][0]
        squared = first.square() if isinstance(first, Interval) else times(first, first)
        second = plus(second, squared)
    except InputError:
        jet = enclose(profile, [u], 2)
        first, second = jet.first[0], jet.second[0][0]
    trace = as_interval(plus(times(float(dim), first), times(2.0 * u, second))).known()
    bad = np.flatnonzero(~(np.broadcast_to(trace.lo, (_GRID,)) > 0))
    if not len(bad):
        return float(up(edges[0]))
    return float(up(edges[bad[-1] + 1])) if bad[-1] + 1 < _GRID else math.inf


def put_together(low: Array, high: Array, scale: Array) -> tuple[Array, Array]:
    """The hulls of groups of small boxes that touch, or nearly do."""
    if len(low) < 2:
        return low, high
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    width = float(((high - low) * scale).max())
    tree = cKDTree((low + (high - low) / 2) * scale)
    i, j = tree.query_pairs(1.01 * width, p=np.inf, output_type="ndarray").T
    graph = coo_array((np.ones(len(i)), (i, j)), shape=(len(low), len(low)))
    count, group = connected_components(graph, directed=False)
    lows = np.full((count, low.shape[1]), np.inf)
    highs = -lows
    np.minimum.at(lows, group, low)
    np.maximum.at(highs, group, high)
    return lows, highs
