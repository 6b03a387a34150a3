"""Proofs that a function of one variable is negative on an interval, by cutting it into cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer._array import Array

_CELLS, _HALVINGS = 10_000, 60  # that the proof may hold at once, and cuts in two


def negative_up_to(
    upper: Callable[[Array, Array], Array], value: Callable[[Array], Array], edges: Array
) -> tuple[float, float | None]:
    """Prove that a function is negative from edges[0] on, and return how far.

    Parameters
    ----------
    upper : callable
        Upper bounds of the function over cells low <= x <= high.
    value : callable
        The function at points, approximately: what is not negative there need not be tried.
    edges : array
        Of the first cells, ascending.

    Returns
    -------
    (float, float or None)
        The end of the part for which it is proved, and a point at which the function is not
        negative, if one was found.
    """
    low, high = edges[:-1], edges[1:]
    for _ in range(_HALVINGS):
        still = ~(upper(low, high) < 0)
        low, high = low[still], high[still]
        if not len(low):
            return float(edges[-1]), None
        middle = low + (high - low) / 2
        wrong = ~(value(middle) < 0)
        if wrong.any():
            return float(low.min()), float(middle[wrong].min())
        if len(low) > _CELLS:
            break
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return float(low.min()), None
