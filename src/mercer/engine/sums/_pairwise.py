"""Kernels pair by pair: k(x_j, y_j) with derivatives, the diagonal, and dense derivatives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._tensors import eye_like, is_tensor, no_autocast, recomputed
from mercer._threads import map_threads
from mercer.engine._sizes import (
    as_float32,
    as_float64,
    dense,
    n_columns,
    n_rows,
    pieces,
    tile_dtype,
)
from mercer.engine.pairs._tiles import (
    Pairs,
    from_log,
    mapped_points,
    rowwise_gaps,
    rowwise_variables,
    tile_jet,
    without_cusps,
)
from mercer.engine.programs._coef import Coef
from mercer.engine.programs._jets import Jet, is_zero, plus
from mercer.engine.programs._maps import pull_all, pull_both
from mercer.engine.programs._program import Distance, Dot, Gap, Norm, Program, Variable, maps_of
from mercer.engine.sums import _tensor_sums
from mercer.engine.sums._choice import needs_float64
from mercer.engine.sums._derivatives import Moments, direction, with_one
from mercer.engine.sums._fields import Fields, factor, finite, from_moments, total
from mercer.exceptions import DerivativeError

_ENTRIES = 1 << 20  # of an array of derivatives of pairs: 8 MiB


@np.errstate(all="ignore")  # overflows are seen in the result
def diagonal(program: Program, X: Any) -> Array:
    """k(x_i, x_i), shape (n,)."""
    if is_tensor(X):
        return _tensor_sums.diagonal(program, X)  # type: ignore[no-any-return]
    single, shape, dtype = program.diagonal, (n_rows(X),), tile_dtype(X, X)
    if not single.variables:
        return np.full(shape, single.value_at_zero, dtype)
    inputs = rowwise_variables(single, X, X)
    return np.array(tile_jet(single.profile, inputs, 0, shape, dtype).value)


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
        if isinstance(v, Distance):
            y = dense(rowwise_gaps(v, X, Y))
            x = np.zeros_like(y)
        else:
            x, y = map(dense, mapped_points(v, X, Y))
        points.append(with_one(v, x, np.float64))
        queries.append(y)
    return points, queries


def by_differences(
    f: Fields,
    rows: Array,
    program: Program,
    X: Any,
    Y: Any,
    coef: Coef,
    order: int,
    paired: bool = False,
    shifted: bool = False,
) -> None:
    """Compute some rows of a sum again pair by pair: slow, but nothing cancels."""
    n, batch = n_rows(X), 1 if paired else coef.shape[1]
    size = max(1, _ENTRIES // max(1, n_columns(X) ** order, batch))  # pairs at a time
    for some in pieces(len(rows), max(1, size // n)):
        queries = rows[some]
        parts = []
        for points in pieces(n, size):
            index = np.arange(points.start, points.stop)
            x, y = X[np.tile(index, len(queries))], Y[np.repeat(queries, len(index))]
            pairs = rowwise_fields(program, x, y, np.ones(n_rows(x)), order, shifted)
            a = coef.tile(points, queries if paired else slice(None)).astype(np.float64)
            parts.append(_summed(pairs, a.T[:, None] if paired else a.T[None], len(queries)))
        f.put(queries, total(parts))


def _summed(pairs: Fields, a: Array, m: int) -> Fields:
    """Sums over the points p of each of m queries, with coefficients of shape (m or 1, b, p)."""
    shift = pairs.shift.reshape(m, -1)
    high = shift.max(axis=1)
    weights = a * factor(shift, high[:, None])[:, None]

    def over_points(by: Array, part: Array) -> Array:
        sums = by @ part.reshape(*shift.shape, -1)
        return sums.reshape(*sums.shape[:2], *part.shape[1:])

    cusp = None if pairs.cusp is None else over_points(a, pairs.cusp)
    return replace(pairs.each(partial(over_points, weights)), cusp=cusp, shift=high)


def _moments(weights: Any, points: list[Array]) -> Moments:
    """Moments with a single point per query."""
    moments: Moments = {("value",): np.asarray(weights.value, dtype=np.float64)}
    for v, W in enumerate(weights.first):
        if not is_zero(W):
            moments[("first", v)] = W[:, None] * points[v]
    for v, row in enumerate(weights.second):
        for w in range(v, len(row)):
            if not is_zero(row[w]):
                outer = points[v][:, :, None] * points[w][:, None, :]
                moments[("second", v, w)] = row[w][:, None, None] * outer
    return moments


def require_derivatives(program: Program) -> None:
    """Raise unless the kernel has derivatives in its arguments."""
    if not program.has_derivatives:
        raise DerivativeError(
            "this kernel is known by its values only (a function of blocks or of coordinates, a "
            "feature map, or a precomputed matrix), so it has no derivatives; use a kernel with a "
            "profile"
        )


@np.errstate(all="ignore")
def pairwise_derivative(program: Program, X: Any, Y: Any, *, mixed: bool = False) -> Array:
    """d k(x_i, y_j) / d x_i, shape (n, m, d); `mixed` d^2 k / d x_i d y_j', shape (n, m, d, d)."""
    require_derivatives(program)
    order = 2 if mixed else 1
    if is_tensor(X):
        with no_autocast(X):
            return _of_tensors(program, X, Y, order)  # type: ignore[no-any-return]
    if needs_float64(program, Y, X, order):
        wide = pairwise_derivative(program, as_float64(X), as_float64(Y), mixed=mixed)
        return as_float32(wide)
    pairs = Pairs(program, Y, X, order=order)
    n, m, dim = n_rows(X), n_rows(Y), n_columns(X)
    out = np.zeros((n, m, dim, dim) if mixed else (n, m, dim), dtype=pairs.dtype)

    def job(rows: slice) -> None:
        inputs = pairs.tile(rows, slice(0, m))
        jet = tile_jet(program.profile, inputs, order, (rows.stop - rows.start, m), pairs.dtype)
        jet, at_cusp = without_cusps(program, jet, inputs)
        mapped = (pairs.mapped(v) for v in program.variables)
        points = [(dense(own[rows]), dense(other)) for other, own in mapped]
        part = _of_tile(program, jet, points, order, dim)
        if not is_zero(part):
            out[rows] += part
        if mixed and at_cusp is not None:
            out[rows][at_cusp] = np.nan  # the derivative does not exist there

    per_row = max(1, m * dim * (dim if mixed else 1))
    map_threads(job, list(pieces(n, max(1, (1 << 18) // per_row))))
    return out


def _of_tensors(program: Program, X: Any, Y: Any, order: int) -> Any:
    """The same for tensors, some rows at a time."""
    pairs, dim = _tensor_sums.pairs_of(program, Y, X, order), n_columns(X)
    xp, count, m = pairs.xp, len(program.variables), n_rows(Y)

    def tile(*arrays: Any) -> Any:
        columns, own = arrays[:count], arrays[count:]
        shape = (n_rows(own[0]), m)
        jet, at_cusp = pairs.jet(pairs.tile(list(columns), list(own)), shape)
        part = _of_tile(program, jet, list(zip(own, columns, strict=True)), order, dim)
        if order == 2 and at_cusp is not None:
            unknown = xp.broadcast_to(at_cusp, shape)[..., None, None]
            part = xp.where(unknown, xp.full_like(part, np.nan), part)
        return part

    if not count:
        return xp.zeros((n_rows(X), m) + (dim,) * order, dtype=X.dtype, device=X.device)
    rows = pieces(n_rows(X), max(1, (1 << 18) // max(1, m * dim**order)))
    parts = [recomputed(tile, *pairs.points, *(x[some, :] for x in pairs.queries)) for some in rows]
    return xp.astype(xp.concat(parts, axis=0), X.dtype, copy=False)


def _of_tile(
    program: Program, jet: Jet, points: list[tuple[Any, Any]], order: int, dim: int
) -> Any:
    """Derivatives of the pairs of a tile; `points[v]` are its rows x and columns y for v."""
    out: Any = 0
    directions = [_directions(v, *z) for v, z in zip(program.variables, points, strict=True)]
    for v, kind in enumerate(program.variables):
        first, by_x = jet.first[v], directions[v][0]
        if is_zero(first):
            continue
        if order == 1:
            out = plus(out, pull_all(maps_of(kind), first[..., None] * by_x, dim))
            continue
        curvature = {Distance: -2.0, Dot: 1.0}.get(type(kind), 0.0)
        identity = curvature * first[..., None, None] * eye_like(points[v][0])
        out = plus(out, pull_both(maps_of(kind), maps_of(kind), identity, dim))
        for w, other in enumerate(program.variables):
            if not is_zero(jet.second[v][w]):
                outer = by_x[..., :, None] * directions[w][1][..., None, :]
                part = jet.second[v][w][..., None, None] * outer
                out = plus(out, pull_both(maps_of(kind), maps_of(other), part, dim))
    return out


def _directions(v: Variable, x: Any, y: Any) -> tuple[Any, Any]:
    """d v / d z_x and d v / d z_y for every pair, shape (rows, m, p)."""
    row, column = x[:, None, :], y[None, :, :]
    alpha, beta, gamma = direction(v)
    by_x = alpha * row + beta * column + gamma
    match v:
        case Distance() | Gap():
            by_y = -by_x
        case Dot():
            by_y = row + 0.0 * column
        case Norm(of="column"):
            by_y = 2.0 * column + 0.0 * row
        case _:
            by_y = 0.0 * by_x
    return by_x + 0.0 * column, by_y
