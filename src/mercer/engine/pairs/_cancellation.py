"""How far an error in a squared distance moves a profile: behind the cancellation bound."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from mercer._array import Array
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._program import Program
from mercer.exceptions import DerivativeError

_TOLERANCE = {"float32": 5e-6, "float64": 2e-13}
_DECADES = np.logspace(-36.0, 0.0, 289)
_CLOSE = 1e-6
_UNDERFLOW = 750.0  # exp(-750) is 0 in float64


def cut_below(
    program: Program,
    index: int,
    dtype: str,
    error: float,
    largest: float,
    *,
    shifted: bool = False,
    order: int = 0,
) -> float:
    """The distance below which an error of `error` is too much for variable `index`.

    Too much is a change of the profile by more than a tolerance relative to the profile itself
    where it is positive (so that far weights keep their digits), else relative to the larger of
    its size there and at zero. Distances up to `largest` are looked at. For derivatives of a
    profile with a corner at zero all close distances count: which points coincide must be exact.
    """
    if error == 0.0 or not math.isfinite(error) or not math.isfinite(largest):
        return largest if error else 0.0
    cut = _scan(program, index, dtype, shifted, rounded_up(error), rounded_up(largest))
    return cut if order == 0 or program.is_smooth else max(cut, _CLOSE * largest)


def rounded_up(x: float) -> float:
    """Up to the next quarter octave, so that the cached scan serves all similar tiles."""
    return float(2.0 ** (math.ceil(4.0 * math.log2(x)) / 4.0))


@lru_cache(maxsize=4096)
def _scan(
    program: Program, index: int, dtype: str, shifted: bool, error: float, largest: float
) -> float:
    u = largest * _DECADES
    cut = 0.0
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
            cut = max(cut, float(u[min(last + 1, u.size - 1)]))
    return cut


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
