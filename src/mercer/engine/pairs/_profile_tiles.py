"""The profile of a program on a tile, with derivatives, in log space, and without cusps."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.programs._expr import Expr
from mercer.engine.programs._jets import Jet, evaluate, is_zero, plus, times
from mercer.engine.programs._program import Distance, Gap, Program


def tile_jet(expr: Expr, inputs: list[Any], order: int, shape: tuple[int, ...], dtype: Any) -> Jet:
    """A profile (or its logarithm) on a tile, as arrays of the given shape and type."""

    def full(a: Any) -> Array:
        a = np.asarray(a, dtype=dtype)
        return a if a.shape == shape else np.broadcast_to(a, shape)

    with np.errstate(all="ignore"):
        return evaluate(expr, inputs, order).each(full)


def from_log(log: Jet, shift: Array) -> Jet:
    """Derivatives of k exp(-shift) from those of L = log k: k' = k L', k'' = k (L'' + L'L')."""
    with np.errstate(invalid="ignore"):
        w = np.exp(log.value - shift.astype(log.value.dtype))
    g = range(len(log.first))
    # a weight of zero has derivatives of zero, whatever the slope of its logarithm
    first = tuple(_weighted(w, log.first[v]) for v in g)
    second = tuple(
        tuple(_weighted(w, plus(log.second[v][u], times(log.first[v], log.first[u]))) for u in g)
        for v in g
        if log.second
    )
    return Jet(w, first, second)


def without_cusps(program: Program, jet: Jet, inputs: list[Any]) -> tuple[Jet, Array | None]:
    """Leave out the terms of points that coincide with the query if slopes are infinite there.

    At such a point the distance does not change to first order, so second-derivative terms vanish.
    An infinite first derivative is a cusp, which the second result marks.
    """
    if not jet.first or program.is_smooth:
        return jet, None
    first = list(jet.first)
    second = [list(row) for row in jet.second]
    at_cusp: Array | None = None
    for v, kind in enumerate(program.variables):
        # smooth gaps change to first order and keep their terms
        if not (isinstance(kind, Distance) or (isinstance(kind, Gap) and program.cusps[v])):
            continue
        coincide = np.broadcast_to(inputs[v] == 0, jet.value.shape)
        if not coincide.any():
            continue
        if program.cusps[v]:
            first[v] = np.where(coincide, 0.0, first[v]).astype(jet.value.dtype)
            at_cusp = coincide if at_cusp is None else at_cusp | coincide
        for w in range(len(first) if second else 0):
            if not is_zero(second[v][w]):
                safe = np.where(coincide, 0.0, second[v][w]).astype(jet.value.dtype)
                second[v][w] = second[w][v] = safe
    return Jet(jet.value, tuple(first), tuple(map(tuple, second))), at_cusp


def _weighted(w: Array, slope: Any) -> Any:
    if is_zero(slope):
        return 0
    with np.errstate(invalid="ignore"):
        return np.where(w > 0, w * slope, w.dtype.type(0))
