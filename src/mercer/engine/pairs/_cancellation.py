"""Cancellation: the distances at which rounding errors would change the profile too much."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from mercer._array import Array
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._program import Program
from mercer.exceptions import DerivativeError

_TOLERANCE = {"float32": 5e-6, "float64": 2e-13}  # relative change of k: about 40 and 1,000 eps
_DECADES = np.logspace(-36.0, 0.0, 289)  # eight distances per decade, down to rounding and below
_CLOSE = 1e-6  # of the largest: above the error of squared distances, 4 eps, in float32 too
_UNDERFLOW = 750.0  # exp(-750) is 0 in float64


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
    return below if order == 0 or program.is_smooth else max(below, _CLOSE * largest)


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
            below = max(below, float(u[min(last + 1, u.size - 1)]))
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
    zero = evaluate(program.profile, [np.zeros(1) for _ in inputs]).value
    scale = np.maximum(np.abs(value), np.abs(np.asarray(zero)))
    slope = np.broadcast_to(np.abs(jet.first[index]), value.shape)
    return slope / scale, np.broadcast_to(slope > 0, value.shape)
