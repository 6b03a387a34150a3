"""Row by row: k(x_j, y_j) with derivatives, for a batch of features, and the diagonal k(x, x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine._sizes import dense, n_columns, n_rows, tile_dtype
from mercer.engine.pairs._profile_tiles import from_log, tile_jet, without_cusps
from mercer.engine.pairs._tiles import mapped_points, rowwise_variables
from mercer.engine.programs._jets import is_zero
from mercer.engine.programs._program import Distance, Program
from mercer.engine.sums._derivatives import Moments
from mercer.engine.sums._fields import Fields, finite, from_moments


def diagonal(program: Program, X: Any) -> Array:
    """k(x_i, x_i), shape (n,)."""
    single = program.diagonal
    jet = tile_jet(
        single.profile, rowwise_variables(single, X, X), 0, (n_rows(X),), tile_dtype(X, X)
    )
    return np.array(jet.value)  # a copy: the value may be one number, broadcast


def rowwise_fields(
    program: Program, X: Any, Y: Any, coef: Array, order: int, shifted: bool
) -> Fields:
    """Element j is coef[j] k(x_j, .), taken at query j: one kernel value per query."""
    inputs = rowwise_variables(program, X, Y)
    m, dtype = n_rows(Y), tile_dtype(X, Y)
    shift = np.zeros(m)
    if shifted and program.log_profile is not None:
        log = tile_jet(program.log_profile, inputs, order, (m,), dtype)
        shift = np.asarray(log.value, dtype=np.float64)
        jet = from_log(log, finite(shift))
    else:
        jet = tile_jet(program.profile, inputs, order, (m,), dtype)
    jet, at_cusp = without_cusps(program, jet, inputs)
    coef = coef.astype(jet.value.dtype)
    points, queries = _about_the_points(program, X, Y) if order else ([], [])
    moments = _moments(jet.each(lambda a: a * coef), points)
    if order:
        moments[("cusp",)] = np.where(at_cusp, coef, 0) if at_cusp is not None else 0 * coef
    moments = {key: array[:, None] for key, array in moments.items()}  # one element
    f = from_moments(program, moments, queries, n_columns(Y), order, dtype, shift)
    return f.only_element()


def _about_the_points(program: Program, X: Any, Y: Any) -> tuple[list[Array], list[Array]]:
    """Points and queries of each variable about each query's own point, so that nothing cancels.

    For distances z_i = 0 and z = y - x; inner products and norms need the true coordinates.
    """
    points, queries = [], []
    for v in program.variables:
        x, y = map(dense, mapped_points(v, X, Y))
        about = x if isinstance(v, Distance) else 0.0
        points.append(x - about)
        queries.append(y - about)
    return points, queries


def _moments(weights: Any, points: list[Array]) -> Moments:
    """Moments with a single point per query."""
    moments: Moments = {("value",): np.asarray(weights.value, dtype=np.float64)}
    for v, W in enumerate(weights.first):
        if not is_zero(W):
            moments[("sum", v)] = W.astype(np.float64)
            moments[("first", v)] = W[:, None] * points[v]
    for v, row in enumerate(weights.second):
        for w in range(v, len(row)):
            if not is_zero(row[w]):
                W = row[w].astype(np.float64)
                moments[("sum", v, w)] = W
                moments[("left", v, w)] = W[:, None] * points[v]
                moments[("right", v, w)] = W[:, None] * points[w]
                outer = points[v][:, :, None] * points[w][:, None, :]
                moments[("second", v, w)] = W[:, None, None] * outer
    return moments
