"""float32: when its sums must be computed in float64 to be accurate in float32."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import is_sparse
from mercer.engine.pairs._cancellation import recompute_below
from mercer.engine.pairs._distances import bound_on_error, squared_norms
from mercer.engine.pairs._tiles import mapped_points
from mercer.engine.programs._expr import Const
from mercer.engine.programs._program import Distance, Program

_SMALLEST, _LARGEST = 1e-30, 1e30  # squared distances that float32 holds with room to spare


def needs_float64(program: Program, X: Any, Y: Any, order: int) -> bool:
    """Whether these float32 points need float64 sums.

    Because their squared distances, or constants or derivatives of the profile, leave the range of
    float32; or because derivatives are sums of coordinates that would cancel (clusters far apart).
    """
    if getattr(X, "dtype", None) != np.float32 or getattr(Y, "dtype", None) != np.float32:
        return False
    if _has_extreme_constants(program.profile):
        return True
    if any(_extreme(d) for pair in program.derivatives_at_zero for d in pair[: 2 if order else 1]):
        return True
    return any(
        _distance_needs_float64(program, i, X, Y, order)
        for i, v in enumerate(program.variables)
        if isinstance(v, Distance)
    )


def _distance_needs_float64(program: Program, index: int, X: Any, Y: Any, order: int) -> bool:
    if is_sparse(X) or is_sparse(Y):
        return order > 0
    x, y = mapped_points(program.variables[index], X, Y)
    centre = x.mean(axis=0, dtype=np.float64)
    radius2 = float(squared_norms(y - centre).max())
    widest2 = max(radius2, float(squared_norms(x - centre).max()))
    if widest2 > 0.0 and not _SMALLEST < widest2 < _LARGEST:
        return True
    error = bound_on_error(radius2, np.float32)
    return (
        order > 0 and radius2 > 0 and recompute_below(program, index, "float32", error, radius2) > 0
    )


@lru_cache(maxsize=1024)
def _has_extreme_constants(node: Any) -> bool:
    """Whether a profile has constants too large or too small for float32, such as 1 / l^2."""
    if isinstance(node, Const):
        return node.value != 0.0 and not _SMALLEST < abs(node.value) < _LARGEST
    parts = (getattr(node, name, None) for name in ("left", "right", "gate", "body", "arg"))
    return any(_has_extreme_constants(part) for part in parts if part is not None)


def _extreme(d: float) -> bool:
    return np.isfinite(d) and abs(d) > 1e25
