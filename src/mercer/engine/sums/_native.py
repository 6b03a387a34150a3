"""The native engine: sums and Gram matrices by the compiled core, for profiles of one variable.

Points and coefficients are packed once; threads then work through tiles of queries. Everything that
needs more than sums against a matrix (gradients, Hessians) is such a sum against coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads, thread_count
from mercer.engine._compiled import core, instruction_set
from mercer.engine._tiling import n_columns, n_rows, pieces
from mercer.engine.pairs._cancellation import cut_below, rounded_up
from mercer.engine.pairs._cutoff import extent2, reach, sorted_in_space, worth_sorting
from mercer.engine.pairs._distances import aligned_distances, bound_on_error, squared_norms
from mercer.engine.pairs._variables import mapped_points, tile_dtype
from mercer.engine.programs._coef import Coef
from mercer.engine.programs._fields import Fields, Moments, gradient_of, hessian_of
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._program import Distance, Program
from mercer.engine.programs._tape import tape

_DIRECT = 4  # dimensions up to which differences cost no more than the product form
_WORK = 4e9  # elementary steps of one task: a fraction of a second
_PARTS = 1 << 17  # points summed apart when there are few queries
_FEW_QUERIES = 512
PANELS, _TILE = 48, 480  # tiles of queries are whole panels of every instruction set
_LEAF = 64  # sorted points come in leaves of this size: blocks of the core are multiples
_SAMPLED = 4096  # pairs from which the share within reach is estimated
_COINCIDE = 3  # the kind of weight that is 1 where point and query coincide, else 0


@dataclass(frozen=True)
class Prepared:
    """Points and queries where the program measures them, ready for the core."""

    points: Array
    queries: Array
    form: int  # 0 inner product, 1 product form of the distance, 2 differences
    cutoff: float = np.inf  # squared distance beyond which terms are left out
    point_order: Array | None = None  # sorted in space where a cutoff makes that worth while
    query_order: Array | None = None


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m)."""
    ready = prepare(program, X, Y)
    compiled = _compiled(program, ready.points, ready.form)
    out = np.empty((n_rows(X), n_rows(Y)), dtype=ready.points.dtype)
    per_row = n_rows(Y) * (ready.points.shape[1] + 16)
    rows = max(1, int(_WORK / 8 / per_row) // (8 * compiled.group)) * 8 * compiled.group
    parts = list(pieces(n_rows(X), min(rows, 64 * compiled.group)))
    map_threads(lambda p: compiled.gram(ready.queries, out, p.start, p.stop), parts)
    return out


def fields(program: Program, X: Any, Y: Any, A: Array, *, order: int = 0) -> Fields:
    """Every element at every query, as the blocked engine gives it, unshifted."""
    ready = _sorted(program, prepare(program, X, Y, order), order)
    A = A if ready.point_order is None else A[ready.point_order]
    return _fields(program, Y, ready, A, None, order)


def paired_fields(program: Program, X: Any, Y: Any, coef: Coef, *, order: int = 0) -> Fields:
    """Element j at query j, unshifted: the coefficients are those of pairs, made tile by tile."""
    ready = prepare(program, X, Y, order)
    ones = np.ones((n_rows(X), 1), dtype=ready.points.dtype)
    f = _fields(program, Y, ready, ones, coef, order)

    def only(array: Any) -> Any:
        return None if array is None else array[:, 0]

    slopes = tuple(s[:, 0] for s in f.slopes)
    return Fields(only(f.value), only(f.gradient), only(f.hessian), slopes, only(f.cusp), f.shift)


def _fields(
    program: Program, Y: Any, ready: Prepared, A: Array, pairs: Coef | None, order: int
) -> Fields:
    about = middle_of(program, ready.points)
    weighed = weigher(program, ready.points, A, order, about)
    sums = _sums(program, ready, weighed, pairs)
    bound = left_out_bound(program, ready, A)
    return assembled(program, ready, A.shape[1], sums, order, n_columns(Y), about, bound)


def middle_of(program: Program, points: Array) -> Any:
    """What coordinates are measured from, so that they are small."""
    return points.mean(axis=0, dtype=np.float64) if program.kind == "radial" else 0.0


def weigher(
    program: Program, points: Array, A: Array, order: int, about: Any
) -> Callable[[slice], dict[int, Array]]:
    """Coefficients of some points for each kind of weight."""
    dtype = points.dtype

    def weighed(part: slice) -> dict[int, Array]:
        a = A[part].astype(dtype, copy=False)
        if order == 0:
            return {0: a}
        z = (points[part] - about).astype(dtype, copy=False)
        kinds = {0: a, 1: _features(a, z, 1)}
        if order == 2:
            kinds[2] = _features(a, z, 2)
        return kinds | ({_COINCIDE: a} if any(program.cusps) else {})

    return weighed


def assembled(
    program: Program,
    ready: Prepared,
    batch: int,
    sums: dict[int, Array],
    order: int,
    dim: int,
    about: Any,
    bound: Array | None,
) -> Fields:
    """Values and derivatives from sums over the points."""
    dtype, p = ready.points.dtype, ready.points.shape[1]
    shift = np.zeros(len(ready.queries))
    value = sums[0].astype(dtype, copy=False)
    if order == 0:
        return Fields(value, None, None, (), None, shift, bound)
    queries = [unsorted(np.asarray(ready.queries - about, np.float64), ready.query_order)]
    moments = [_moments(sums, b, batch, p) for b in range(batch)]
    gradient = np.stack([gradient_of(program, part, queries, dim) for part in moments], axis=1)
    hessian = None
    if order == 2:
        each = [hessian_of(program, part, queries, dim) for part in moments]
        hessian = np.stack(each, axis=1).astype(dtype, copy=False)
    slope = np.stack([part[("sum", 0)] for part in moments], axis=1)
    cusp = sums[_COINCIDE].astype(dtype, copy=False) if _COINCIDE in sums else None
    return Fields(value, gradient.astype(dtype, copy=False), hessian, (slope,), cusp, shift, bound)


def moment_sums(
    program: Program, X: Any, Y: Any, coef: Coef, *, derivative: int, scatter: bool
) -> tuple[Array, Any]:
    """Sums of weights, weighted coordinates and (for a scatter) their products, (m, columns).

    Coordinates are about the point that comes second. Weights are a_i times a derivative of the
    profile: of one element, or of element j at query j.
    """
    ready = prepare(program, X, Y, max(1, derivative))
    dtype = ready.points.dtype
    about = np.mean(X, axis=0, dtype=np.float64)
    single = coef.shape[1] == 1

    def weighed(part: slice) -> dict[int, Array]:
        rows = part.stop - part.start
        a = coef.tile(part, slice(None)) if single else np.ones((rows, 1))
        z = (X[part] - about).astype(dtype, copy=False)
        return {derivative: _features(a.astype(dtype, copy=False), z, 2 if scatter else 1)}

    sums = _sums(program, ready, weighed, None if single else coef)
    return sums[derivative], about


def prepare(program: Program, X: Any, Y: Any, order: int = 0) -> Prepared:
    """Map and centre, and choose the form of the distance that is accurate enough."""
    (variable,) = program.variables
    dtype = tile_dtype(X, Y)
    x, y = mapped_points(variable, X, Y)
    same = y is x
    x = contiguous(x, dtype)
    y = x if same else contiguous(y, dtype)
    if not isinstance(variable, Distance):
        return Prepared(x, y, 0)
    if x.shape[1] <= _DIRECT:
        return Prepared(x, y, 2)
    centre = x.mean(axis=0, dtype=np.float64)
    radius2 = float(squared_norms(y - centre).max())
    error = bound_on_error(radius2, dtype)
    if radius2 and cut_below(program, 0, str(dtype), error, radius2, order=order) > 0.0:
        return Prepared(x, y, 2)
    xc = (x - centre).astype(dtype)
    return Prepared(xc, xc if same else (y - centre).astype(dtype), 1)


def _sorted(program: Program, ready: Prepared, order: int) -> Prepared:
    """Put neighbours together where that lets whole blocks of points be left out."""
    x, y = ready.points, ready.queries
    if ready.form == 0:
        return ready
    largest = extent2(x, y)
    if largest == 0.0:
        return ready
    cutoff = reach(program, order, get_options().tolerance, rounded_up(largest))
    if not worth_sorting(x, y, cutoff):
        return ready
    points, x = sorted_in_space(x, _LEAF)
    queries, y = sorted_in_space(y, PANELS)
    return Prepared(x, y, ready.form, cutoff, points, queries)


def left_out_bound(program: Program, ready: Prepared, A: Array) -> Array | None:
    """What leaving out far points may change; None if nothing but zeros was left out."""
    tolerance = get_options().tolerance
    if tolerance == 0.0 or not ready.cutoff < np.inf:
        return None
    at_zero = abs(float(np.ravel(evaluate(program.profile, [np.zeros(1)]).value)[0]))
    return np.asarray(tolerance * at_zero * np.abs(A).sum(axis=0, dtype=np.float64))


def contiguous(X: Any, dtype: Any) -> Array:
    return np.ascontiguousarray(X, dtype=dtype)


def _compiled(program: Program, points: Array, form: int) -> Any:
    lowered = tape(program.profile)
    assert lowered is not None
    steps, result = lowered
    kind = core().Program32 if points.dtype == np.float32 else core().Program64
    return kind(points, list(steps), result, form, instruction_set())


def _sums(
    program: Program,
    ready: Prepared,
    weighed: Callable[[slice], dict[int, Array]],
    pairs: Coef | None,
) -> dict[int, Array]:
    """Sums of each kind of weight against its coefficients, in float64.

    Points are packed part by part, as many at a time as the memory allows; with few queries the
    parts are what the threads share.
    """
    n, m, dtype = n_rows(ready.points), n_rows(ready.queries), ready.points.dtype
    columns = {kind: A.shape[1] for kind, A in weighed(slice(0, 1)).items()}
    width = sum(columns.values()) + ready.points.shape[1]
    width += 0 if pairs is None else _TILE * thread_count()
    fits = int(get_options().working_memory * 2**20 / (2 * 8 * width)) // _LEAF * _LEAF
    size = min(max(_LEAF, fits), _PARTS if m <= _FEW_QUERIES else n)
    tiles = list(pieces(m, tile_rows(sum(columns.values()) + ready.points.shape[1] + 16, size)))
    totals = {kind: np.zeros((m, c)) for kind, c in columns.items()}
    rounds = thread_count() if m <= _FEW_QUERIES else 1

    def pack(part: slice) -> tuple[slice, Any]:
        return part, pack_points(program, ready, weighed, part)

    def run(job: tuple[tuple[slice, Any], slice]) -> list[Array]:
        (part, compiled), tile = job
        out = [np.empty((tile.stop - tile.start, c)) for c in columns.values()]
        each = None if pairs is None else _padded(pairs.tile(part, tile), compiled.panel, dtype)
        compiled.sums(ready.queries[tile], out, each)
        return out

    parts = list(pieces(n, size))
    for group in pieces(len(parts), rounds):
        packed = map_threads(pack, parts[group])
        jobs = [(compiled, tile) for compiled in packed for tile in tiles]
        for (_, tile), out in zip(jobs, map_threads(run, jobs), strict=True):
            for total, part in zip(totals.values(), out, strict=True):
                total[tile] += part
    return {kind: unsorted(total, ready.query_order) for kind, total in totals.items()}


def pack_points(
    program: Program, ready: Prepared, weighed: Callable[[slice], dict[int, Array]], part: slice
) -> Any:
    """Some points with their coefficients, ready for any queries."""
    compiled = _compiled(program, ready.points[part], ready.form)
    for kind, A in weighed(part).items():
        compiled.set_coef(kind, np.ascontiguousarray(A))
    compiled.set_corners(program.cusps[0], not program.is_smooth)
    if ready.cutoff < np.inf:
        compiled.set_boxes(ready.points[part], ready.cutoff)
    return compiled


def _padded(A: Array, panel: int, dtype: Any) -> Array:
    """The coefficients of pairs with whole panels of queries."""
    missing = -A.shape[1] % panel
    A = np.pad(A, ((0, 0), (0, missing))) if missing else A
    return np.ascontiguousarray(A, dtype=dtype)


def tile_rows(width: int, points: int) -> int:
    """Queries of one task: whole panels, and a fraction of a second of work."""
    rows = int(_WORK / (float(width) * points)) // PANELS * PANELS
    return min(_TILE, max(PANELS, rows))


def unsorted(total: Array, order: Array | None) -> Array:
    if order is None:
        return total
    out = np.empty_like(total)
    out[order] = total
    return out


def _features(a: Array, z: Array, order: int) -> Array:
    """For each element a and a z, and for order 2 the distinct entries of a z z'."""
    blocks = [a[:, :, None], a[:, :, None] * z[:, None, :]]
    if order == 2:
        rows, columns = np.triu_indices(z.shape[1])
        blocks.append(a[:, :, None] * (z[:, rows] * z[:, columns])[:, None, :])
    return np.concatenate(blocks, axis=2).reshape(len(a), -1)


def _moments(sums: dict[int, Array], b: int, batch: int, p: int) -> Moments:
    """What the sums say about element b, in the form `_fields` reads."""
    first = sums[1].reshape(len(sums[1]), batch, -1)[:, b]
    out: Moments = {("value",): sums[0][:, b], ("sum", 0): first[:, 0], ("first", 0): first[:, 1:]}
    if 2 in sums:
        second = sums[2].reshape(len(sums[2]), batch, -1)[:, b]
        rows, columns = np.triu_indices(p)
        outer = np.empty((len(second), p, p))
        outer[:, rows, columns] = second[:, 1 + p :]
        outer[:, columns, rows] = second[:, 1 + p :]
        out[("sum", 0, 0)] = second[:, 0]
        out[("left", 0, 0)] = second[:, 1 : 1 + p]
        out[("second", 0, 0)] = outer
    return out


def seconds_needed(program: Program, X: Any, Y: Any, batch: int, order: int) -> float:
    """A rough forecast of the time `fields` takes, from measurements on two cores."""
    dim = n_columns(X)
    columns = batch * sum(dim**t for t in range(order + 1))
    pairs = float(n_rows(X)) * n_rows(Y) * share_in_reach(program, X, Y, order)
    return float(pairs * 1e-9 * (0.6 + 0.1 * columns) * (1 + order))


def share_in_reach(program: Program, X: Any, Y: Any, order: int) -> float:
    """The share of pairs that a cutoff leaves, from a sample; blocks reach twice as far."""
    x, y = mapped_points(program.variables[0], X, Y)
    largest = extent2(x, y)
    if largest == 0.0:
        return 1.0
    cutoff = reach(program, order, get_options().tolerance, rounded_up(largest))
    if not worth_sorting(x, y, cutoff):
        return 1.0
    rng = np.random.default_rng(0)
    pairs = aligned_distances(
        y[rng.integers(0, len(y), _SAMPLED)], x[rng.integers(0, len(x), _SAMPLED)]
    )
    return max(float(np.mean(pairs < 4.0 * cutoff)), 1.0 / _SAMPLED)
