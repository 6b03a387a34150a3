"""Distances at which a profile matters: so close that rounding shows, so far that terms vanish."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from mercer._array import Array
from mercer.engine.pairs._distances import rowwise_distances
from mercer.engine.programs._jets import evaluate, profile_at
from mercer.engine.programs._program import Program
from mercer.exceptions import DerivativeError

_TOLERANCE = {"float32": 5e-6, "float64": 2e-13}  # relative change of k: about 40 and 1,000 eps
_DECADES = np.append(0.0, np.logspace(-36.0, 0.0, 289))  # zero, then eight distances per decade
CLOSE = 1e-6  # of the largest: above the error of squared distances, 4 eps, in float32 too
_UNDERFLOW = 750.0  # exp(-750) is 0 in float64
_SORTED_DIMENSIONS = 16  # boxes around points of more dimensions overlap
_PAIRS = 1e7  # fewer pairs are summed faster than they are sorted
_SAMPLED = 4096  # pairs that estimate a share to about one percent


def recompute_below(
    program: Program,
    index: int,
    dtype: str,
    error: float,
    largest: float,
    *,
    shifted: bool = False,
    order: int = 0,
) -> float:
    """The squared distance below which an error of `error` is too much for variable `index`.

    It is too much if it changes the profile by more than a tolerance: relative to the profile
    itself if that is positive (so that far weights keep their digits), else relative to the larger
    of its size there and at zero. Distances up to `largest` are scanned. Derivatives of a profile
    with a corner at zero need all close distances: which points coincide must be exact.
    """
    if error == 0.0 or not math.isfinite(error) or not math.isfinite(largest):
        return largest if error else 0.0
    below = _scan(program, index, dtype, shifted, rounded_up(error), rounded_up(largest))
    return below if order == 0 or program.is_smooth else max(below, CLOSE * largest)


def rounded_up(x: float) -> float:
    """Up to the next quarter of an octave, so that similar calls share a cached scan."""
    return float(2.0 ** (math.ceil(4.0 * math.log2(x)) / 4.0))


@lru_cache(maxsize=4096)
def _scan(
    program: Program, index: int, dtype: str, shifted: bool, error: float, largest: float
) -> float:
    u = largest * _DECADES
    below = 0.0
    for other in (0.0, largest):  # slopes of a sum or product are extreme at these
        inputs = [np.full_like(u, other) for _ in program.variables]
        inputs[index] = u
        with np.errstate(all="ignore"):
            change, visible = _relative_change(program, inputs, index)
            bad = (change * error > _TOLERANCE[dtype]) | np.isnan(change)
        if not shifted:
            bad &= visible
        if bad.any():
            last = int(np.flatnonzero(bad)[-1])
            # an equal pair may be measured as far apart as a few times the error
            below = max(below, float(u[min(last + 1, u.size - 1)]) + 16.0 * error)
        ends = [np.full(2, other) for _ in program.variables]
        ends[index] = np.array([0.0, error])  # a window that is smaller has no slope, but a jump
        with np.errstate(all="ignore"):
            k = np.broadcast_to(np.asarray(evaluate(program.profile, ends).value), 2)
            if abs(k[1] - k[0]) > _TOLERANCE[dtype] * abs(k[0]):
                below = max(below, 16.0 * error)
    return below


def _relative_change(program: Program, inputs: list[Array], index: int) -> tuple[Array, Array]:
    """|dk| / k per unit of u, and where k is large enough to matter at all."""
    if program.log_profile is not None:
        jet = evaluate(program.log_profile, inputs, order=1)
        slope = np.broadcast_to(jet.first[index], inputs[index].shape)
        return np.abs(slope), np.broadcast_to(jet.value > -_UNDERFLOW, slope.shape)
    try:
        jet = evaluate(program.profile, inputs, order=1)
    except DerivativeError:  # nothing is known about the slope: recompute all that are close
        return np.full_like(inputs[index], np.inf), np.ones(inputs[index].shape, dtype=bool)
    value = np.broadcast_to(jet.value, inputs[index].shape)
    scale = np.maximum(np.abs(value), abs(program.value_at_zero))
    slope = np.broadcast_to(np.abs(jet.first[index]), value.shape)
    return slope / scale, np.broadcast_to(slope > 0, value.shape)


@lru_cache(maxsize=1024)
def reach(program: Program, order: int, tolerance: float, largest: float) -> float:
    """The squared distance beyond which |k| and its derivatives stay below tolerance times k(0).

    With a tolerance of zero, where they are exactly zero in float64. Infinity if that is beyond
    `largest`. Derivatives are measured in units of the distance itself (u k', u^2 k'').
    """
    u = largest * np.logspace(-12.0, 0.0, 2401)
    parts = profile_at(program.profile, u, order)
    with np.errstate(all="ignore"):
        size = np.max([np.abs(u**i * part) for i, part in enumerate(parts)], axis=0)
    seen = np.flatnonzero(~(size <= tolerance * abs(program.value_at_zero)))
    if seen.size and seen[-1] == u.size - 1:
        return np.inf
    return float(u[seen[-1] + 1]) if seen.size else float(u[0])


def useful_cutoff(
    program: Program,
    X: Array,
    Y: Array,
    order: int,
    tolerance: float,
    n_queries: int = 0,
    corners: Callable[[], Array] | None = None,
) -> float:
    """The squared distance beyond which terms are left out; infinity if that is not worthwhile.

    It is worthwhile if enough blocks of points, sorted in space, are out of each other's reach.
    `n_queries` is the number of queries in all, if there will be more than these; `corners` returns
    those of the box of X, if they are kept.
    """
    pairs = float(len(X)) * max(len(Y), n_queries)
    if X.shape[1] > _SORTED_DIMENSIONS or pairs < _PAIRS:
        return np.inf
    largest = extent2(X if corners is None else corners(), Y)
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
