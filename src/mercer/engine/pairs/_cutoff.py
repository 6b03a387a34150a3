"""Cutoffs: the distance beyond which the terms of a sum may be left out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.pairs._cancellation import rounded_up
from mercer.engine.pairs._distances import rowwise_distances, spatial_order
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._program import Program

_SORTED_DIMENSIONS = 16  # boxes around points of more dimensions overlap
_PAIRS = 1e7  # fewer pairs are summed faster than they are sorted
_SAMPLED = 4096  # pairs that estimate a share to about one percent


@lru_cache(maxsize=1024)
def reach(program: Program, order: int, tolerance: float, largest: float) -> float:
    """The squared distance beyond which |k| and its derivatives stay below tolerance times k(0).

    With a tolerance of zero, where they are exactly zero in float64. Infinity if that is beyond
    `largest`. Derivatives are measured in units of the distance itself (u k', u^2 k'').
    """
    u = largest * np.logspace(-12.0, 0.0, 2401)
    with np.errstate(all="ignore"):
        jet = evaluate(program.profile, [u], order)
        parts = [jet.value, *(u * d for d in jet.first), *(u * u * row[0] for row in jet.second)]
    size = np.max([np.abs(np.broadcast_to(p, u.shape)) for p in parts], axis=0)
    seen = np.flatnonzero(~(size <= tolerance * abs(program.value_at_zero)))
    if seen.size and seen[-1] == u.size - 1:
        return np.inf
    return float(u[seen[-1] + 1]) if seen.size else float(u[0])


def useful_cutoff(
    program: Program, X: Array, Y: Array, order: int, tolerance: float, n_queries: int = 0
) -> float:
    """The squared distance beyond which terms are left out; infinity if that is not worth while.

    It is where enough blocks of points, sorted in space, are out of each other's reach. `n_queries`
    is the number of queries in all, if there will be more than these.
    """
    pairs = float(len(X)) * max(len(Y), n_queries)
    if X.shape[1] > _SORTED_DIMENSIONS or pairs < _PAIRS:
        return np.inf
    largest = extent2(X, Y)
    if largest == 0.0:
        return np.inf
    cutoff = reach(program, order, tolerance, rounded_up(largest))
    return cutoff if cutoff < 0.25 * largest else np.inf


def share_in_reach(X: Array, Y: Array, cutoff: float) -> float:
    """The share of pairs that a cutoff leaves, from a sample; blocks reach twice as far."""
    if cutoff == np.inf:
        return 1.0
    rng = np.random.default_rng(0)
    x, y = X[rng.integers(0, len(X), _SAMPLED)], Y[rng.integers(0, len(Y), _SAMPLED)]
    inside = rowwise_distances(y, x) < 4.0 * cutoff
    return max(float(np.mean(inside)), 1.0 / _SAMPLED)


def extent2(X: Array, Y: Array) -> float:
    """The squared diagonal of the box that holds the points and the queries."""
    low = np.minimum(X.min(axis=0), Y.min(axis=0)).astype(np.float64)
    high = np.maximum(X.max(axis=0), Y.max(axis=0)).astype(np.float64)
    return float(((high - low) ** 2).sum())


def sorted_in_space(X: Array, leaf: int) -> tuple[Any, Array]:
    """A permutation that puts neighbours together, and the points in that order."""
    order = spatial_order(X, leaf)
    return order, np.ascontiguousarray(X[order])
