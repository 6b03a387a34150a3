"""Whether float32 can hold what a program computes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from mercer.engine.programs._expr import Const
from mercer.engine.programs._program import Program

_SMALLEST, _LARGEST = 1e-30, 1e30  # squared distances that float32 holds with room to spare


def profile_needs_float64(program: Program, order: int) -> bool:
    """Whether constants or derivatives of the profile leave the range of float32."""
    if _has_extreme_constants(program.profile):
        return True
    slopes = [d for pair in program.derivatives_at_zero for d in pair[: 2 if order else 1]]
    return any(math.isfinite(d) and abs(d) > 1e25 for d in slopes)


def fits_float32(program: Program, widest2: float) -> bool:
    """Whether float32 holds the constants of a profile, and squared distances of this size."""
    in_range = widest2 == 0.0 or _SMALLEST < widest2 < _LARGEST  # not NaN, where a map overflows
    return in_range and not _has_extreme_constants(program.profile)


@lru_cache(maxsize=1024)
def _has_extreme_constants(node: Any) -> bool:
    """Whether a profile has constants too large or too small for float32, such as 1 / l^2."""
    if isinstance(node, Const):
        return node.value != 0.0 and not _SMALLEST < abs(node.value) < _LARGEST
    parts = (getattr(node, name, None) for name in ("left", "right", "gate", "body", "arg"))
    return any(_has_extreme_constants(part) for part in parts if part is not None)
