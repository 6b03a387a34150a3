"""Weights of one tile: the profile and its derivatives, log-shifted on request, safe at cusps."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.programs._expr import Expr
from mercer.engine.programs._jets import Jet, evaluate
from mercer.engine.programs._program import Distance, Gap, Program


def tile_jet(
    program: Program, inputs: list[Any], order: int, shape: tuple[int, ...], dtype: Any
) -> Jet:
    """The profile on a tile, written out to `shape` in the given type."""
    return _written_out(_quiet(program.profile, inputs, order), shape, dtype)


def log_jet(
    program: Program, inputs: list[Any], order: int, shape: tuple[int, ...], dtype: Any
) -> Jet:
    """The log-profile on a tile, written out to `shape` in the given type."""
    assert program.log_profile is not None
    return _written_out(_quiet(program.log_profile, inputs, order), shape, dtype)


def _quiet(expr: Expr, inputs: list[Any], order: int) -> Jet:
    with np.errstate(all="ignore"):
        return evaluate(expr, inputs, order)


def from_log(log: Jet, shift: Array) -> Jet:
    """Derivatives of k exp(-shift) from those of L = log k: k' = k L', k'' = k (L'' + L'L')."""
    with np.errstate(invalid="ignore"):
        w = np.exp(log.value - shift.astype(log.value.dtype))
    g = range(len(log.first))
    # where the weight is zero its derivatives are, whatever the slope of the logarithm
    first = tuple(_weighted(w, log.first[v]) for v in g)
    second = tuple(tuple(_weighted(w, _second(log, v, u)) for u in g) for v in g if log.second)
    return Jet(w, first, second)


def without_cusps(program: Program, jet: Jet, inputs: list[Any]) -> tuple[Jet, Array | None]:
    """Leave out the terms of points that coincide with the query where slopes are infinite.

    There the point does not move the distance to first order, so second-derivative terms vanish;
    an infinite first derivative is a cusp, which the second result marks.
    """
    if not jet.first or program.is_smooth:
        return jet, None
    first = list(jet.first)
    second = [list(row) for row in jet.second]
    at_cusp: Array | None = None
    for v in _corners(program):
        coincide = np.broadcast_to(inputs[v] == 0, jet.value.shape)
        if not coincide.any():
            continue
        if program.cusps[v]:
            first[v] = np.where(coincide, 0.0, first[v]).astype(jet.value.dtype)
            at_cusp = coincide if at_cusp is None else at_cusp | coincide
        for w in range(len(first) if second else 0):
            if not isinstance(second[v][w], int):
                safe = np.where(coincide, 0.0, second[v][w]).astype(jet.value.dtype)
                second[v][w] = second[w][v] = safe
    return Jet(jet.value, tuple(first), tuple(map(tuple, second))), at_cusp


def scaled(jet: Jet, factor: Array) -> Jet:
    """Every entry times a coefficient."""

    def times(a: Any) -> Any:
        return a if isinstance(a, int) else a * factor

    second = tuple(tuple(times(a) for a in row) for row in jet.second)
    return Jet(jet.value * factor, tuple(map(times, jet.first)), second)


def _corners(program: Program) -> list[int]:
    """Distances, and gaps with a kink: a gap moves to first order, so others keep their terms."""
    return [
        i
        for i, v in enumerate(program.variables)
        if isinstance(v, Distance) or (isinstance(v, Gap) and program.cusps[i])
    ]


def _second(log: Jet, v: int, w: int) -> Any:
    a, b, c = log.second[v][w], log.first[v], log.first[w]
    product = 0 if isinstance(b, int) or isinstance(c, int) else b * c
    if isinstance(a, int):
        return product
    return a if isinstance(product, int) else a + product


def _weighted(w: Array, slope: Any) -> Any:
    if isinstance(slope, int):
        return 0
    with np.errstate(invalid="ignore"):
        return np.where(w > 0, w * slope, w.dtype.type(0))


def _written_out(jet: Jet, shape: tuple[int, ...], dtype: Any) -> Jet:
    def full(a: Any) -> Any:
        if isinstance(a, int):
            return 0
        a = np.asarray(a, dtype=dtype)
        return a if a.shape == shape else np.broadcast_to(a, shape)

    value = jet.value if not isinstance(jet.value, int) else float(jet.value)
    second = tuple(tuple(full(a) for a in row) for row in jet.second)
    return Jet(full(value), tuple(map(full, jet.first)), second)
