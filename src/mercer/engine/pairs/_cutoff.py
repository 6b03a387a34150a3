"""How far a profile reaches: beyond which distance its terms may be left out of a sum."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.pairs._distances import spatial_order
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._program import Program

_SORTED_DIMENSIONS = 16  # boxes around points of more dimensions overlap
_PAIRS = 1e7  # fewer pairs are summed faster than they are sorted


@lru_cache(maxsize=1024)
def reach(program: Program, order: int, tolerance: float, largest: float) -> float:
    """The squared distance from which on |k| and its derivatives stay below tolerance times k(0).

    With a tolerance of zero, where they are exactly zero in float64. Infinity if that is beyond
    `largest`. Derivatives are measured in units of the distance itself (u k', u^2 k'').
    """
    u = largest * np.logspace(-12.0, 0.0, 2401)
    with np.errstate(all="ignore"):
        jet = evaluate(program.profile, [u], order)
        scale = abs(float(np.ravel(evaluate(program.profile, [np.zeros(1)]).value)[0]))
        parts = [jet.value, *(u * d for d in jet.first), *(u * u * row[0] for row in jet.second)]
    size = np.max([np.abs(np.broadcast_to(p, u.shape)) for p in parts], axis=0)
    seen = np.flatnonzero(~(size <= tolerance * scale))
    if seen.size and seen[-1] == u.size - 1:
        return np.inf
    return float(u[seen[-1] + 1]) if seen.size else float(u[0])


def worth_sorting(X: Array, Y: Array, cutoff: float) -> bool:
    """Whether enough blocks of sorted points are out of reach of each other."""
    if X.shape[1] > _SORTED_DIMENSIONS or float(len(X)) * len(Y) < _PAIRS:
        return False
    return cutoff < 0.25 * extent2(X, Y)


def extent2(X: Array, Y: Array) -> float:
    """The squared diagonal of the box that holds points and queries."""
    low = np.minimum(X.min(axis=0), Y.min(axis=0)).astype(np.float64)
    high = np.maximum(X.max(axis=0), Y.max(axis=0)).astype(np.float64)
    return float(((high - low) ** 2).sum())


def sorted_in_space(X: Array, leaf: int) -> tuple[Any, Array]:
    """A permutation that puts neighbours together, and the points in that order."""
    order = spatial_order(X, leaf)
    return order, np.ascontiguousarray(X[order])
