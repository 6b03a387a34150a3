"""Which rows of a sum must be computed again to be accurate relative to their own size.

Two things take that accuracy away: an error that is allowed relative to the largest sum
(`options(tolerance=...)`) is noise in the tails, and a row whose terms all underflow (or one that
overflows) has no digits. Noisy rows are summed again to rounding, underflowing ones in log space.
"""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.engine.sums._fields import Fields

_NOISE = 1e3  # times the bound on the error: smaller sums have fewer than three digits
_SMALLEST = {"float32": 1e-30, "float64": 1e-290}  # 1e8 and 1e18 above the smallest normal number


def noisy_rows(f: Fields, *, relative: bool) -> Array:
    """Rows that are NaN (outside of a grid), or with an element not far above its error bound.

    The second only if sums are to be accurate relative to themselves. Rows with a shift were
    computed again before, and are accurate.
    """
    if f.bound is None:
        return np.zeros(0, dtype=np.intp)
    least = _NOISE * f.bound if relative else -np.inf
    small = ~(np.abs(f.value) >= least)
    return np.flatnonzero(small.any(axis=1) & (f.shift == 0.0))


def underflowing_rows(parts: list[Array], scale: float, dtype: str) -> Array:
    """Rows that are tiny or not finite; `parts` are values and slopes.

    `scale` is the size of the coefficients. Sums may be tiny because terms cancel, too; then they
    are computed again in vain, which does no harm.
    """
    size = np.zeros(len(parts[0]))
    for part in parts:
        size = np.maximum(size, np.abs(part).reshape(len(part), -1).max(axis=1))
    return np.flatnonzero(~((size > _SMALLEST[dtype] * scale) & np.isfinite(size)))
