"""Aligned sums: query j against one point x_j only, the cheap case of a batch of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine._tiling import n_columns, n_rows
from mercer.engine.pairs._variables import aligned, mapped_points, tile_dtype
from mercer.engine.pairs._weights import from_log, log_jet, scaled, tile_jet, without_cusps
from mercer.engine.programs._fields import Fields, Moments, gradient_of, hessian_of
from mercer.engine.programs._log_shift import finite
from mercer.engine.programs._program import Distance, Program


def diagonal(program: Program, X: Any) -> Array:
    """k(x_i, x_i), shape (n,)."""
    single = program.diagonal
    jet = tile_jet(single, aligned(single, X, X), 0, (n_rows(X),), tile_dtype(X, X))
    return np.array(jet.value)  # never a view of a broadcast number


def aligned_fields(
    program: Program, X: Any, Y: Any, value: Array, order: int, shifted: bool
) -> Fields:
    """Element j is value[j] k(x_j, .), taken at query j: one kernel value per query."""
    inputs = aligned(program, X, Y)
    m = n_rows(Y)
    shift = np.zeros(m)
    if shifted and program.log_profile is not None:
        log = log_jet(program, inputs, order, (m,), tile_dtype(X, Y))
        shift = np.asarray(log.value, dtype=np.float64)
        jet = from_log(log, finite(shift))
    else:
        jet = tile_jet(program, inputs, order, (m,), tile_dtype(X, Y))
    jet, at_cusp = without_cusps(program, jet, inputs)
    factor = value.astype(jet.value.dtype)
    weights = scaled(jet, factor)
    if order == 0:
        return Fields(weights.value, None, None, (), None, shift)
    cusp = None
    if any(program.cusps):
        cusp = np.zeros_like(factor) if at_cusp is None else np.where(at_cusp, factor, 0)
    return _derivatives(program, X, Y, weights, cusp, shift, order)


def _derivatives(
    program: Program, X: Any, Y: Any, weights: Any, cusp: Array | None, shift: Array, order: int
) -> Fields:
    """Gradients and Hessians about each query's own point, so that nothing cancels.

    For distances z_i = 0 and z = y - x; inner products and norms need the true coordinates.
    """
    points, queries = [], []
    for v in program.variables:
        x, y = map(_dense, mapped_points(v, X, Y))
        about = x if isinstance(v, Distance) else 0.0
        points.append(x - about)
        queries.append(y - about)
    moments = _moments(weights, points)
    dim, dtype = n_columns(Y), tile_dtype(X, Y)
    gradient = gradient_of(program, moments, queries, dim).astype(dtype)
    hessian = hessian_of(program, moments, queries, dim).astype(dtype) if order == 2 else None
    slopes = tuple(
        np.zeros(n_rows(Y)) if isinstance(w, int) else np.asarray(w, dtype=np.float64)
        for w in weights.first
    )
    return Fields(weights.value, gradient, hessian, slopes, cusp, shift)


def _dense(Z: Any) -> Array:
    return np.asarray(Z.toarray() if is_sparse(Z) else Z, dtype=np.float64)


def _moments(weights: Any, points: list[Array]) -> Moments:
    """Moments with a single point per query."""
    moments: Moments = {("value",): np.asarray(weights.value, dtype=np.float64)}
    for v, W in enumerate(weights.first):
        if not isinstance(W, int):
            moments[("sum", v)] = W.astype(np.float64)
            moments[("first", v)] = W[:, None] * points[v]
    for v, row in enumerate(weights.second):
        for w in range(v, len(row)):
            if not isinstance(row[w], int):
                W = row[w].astype(np.float64)
                moments[("sum", v, w)] = W
                moments[("left", v, w)] = W[:, None] * points[v]
                moments[("right", v, w)] = W[:, None] * points[w]
                outer = points[v][:, :, None] * points[w][:, None, :]
                moments[("second", v, w)] = W[:, None, None] * outer
    return moments
