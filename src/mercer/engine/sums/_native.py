"""The native engine: sums and Gram matrices by the compiled core, for profiles of one variable.

The core sums weights against a matrix of coefficients. Gradients and Hessians are such sums too,
against coefficients times coordinates. Points are packed with their coefficients, part by part;
threads then work through tiles of queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads, thread_count
from mercer.engine._compiled import compiled_program
from mercer.engine._points import n_columns, tile_dtype
from mercer.engine._tiling import pieces
from mercer.engine.pairs._cancellation import recompute_below
from mercer.engine.pairs._cutoff import bounding_box, sorted_in_space, useful_cutoff
from mercer.engine.pairs._distances import bound_on_error, squared_norms
from mercer.engine.pairs._tiles import centre_before_maps, mapped
from mercer.engine.programs._coef import Coef
from mercer.engine.programs._program import Distance, Program
from mercer.engine.sums._derivatives import Moments
from mercer.engine.sums._fields import Fields, from_moments

INNER_PRODUCT, PRODUCT_FORM, DIFFERENCES = 0, 1, 2  # how pairs are measured, as in native/task.hpp
_DIRECT = 4  # dimensions up to which differences cost no more than the product form
_WORK = 4e9  # elementary steps of one task: well under a second, so that interrupts are noticed
_SMALL_WORK = 1e6  # elementary steps that are done sooner than a second thread has started
_PART = 1 << 17  # points packed together; with few queries, threads work on different parts
_PANELS, _TILE = 48, 480  # tiles of queries are whole panels of every instruction set
_LEAF = 64  # sorted points come in leaves of this size: blocks of the core are multiples
_COINCIDE = 3  # the kind of weight that is 1 where point and query coincide, else 0
_KEPT = 3.0  # packed points are kept up to this multiple of `working_memory`


@dataclass(frozen=True)
class Placed:
    """Points and queries where the program measures them, and the form of their distance."""

    points: Array
    queries: Array
    form: int


class CorePoints:
    """Points where a program measures them, as the core reads them."""

    def __init__(self, program: Program, X: Any, dtype: Any) -> None:
        self.program, self.X, self.dtype = program, X, dtype
        variable: Any = program.variables[0]
        self._is_distance, self._maps = isinstance(variable, Distance), variable.maps
        self._origin = centre_before_maps(variable, X) if variable.maps else None
        x = mapped(self._maps, X, self._origin) if self._maps else X
        self.points = np.ascontiguousarray(x, dtype=dtype)

    def placed(self, Y: Any, order: int = 0) -> Placed:
        """Add queries, and choose the fastest form of the distance that is accurate enough."""
        x = self.points
        y = x
        if Y is not self.X:
            y = mapped(self._maps, Y, self._origin) if self._maps else Y
            y = np.ascontiguousarray(y, dtype=self.dtype)
        if not self._is_distance:
            return Placed(x, y, INNER_PRODUCT)
        if x.shape[1] <= _DIRECT:
            return Placed(x, y, DIFFERENCES)
        centre, centred = self._centred
        yc = y - centre
        radius2 = float(squared_norms(yc).max())
        error = bound_on_error(radius2, self.dtype)
        if (
            radius2
            and recompute_below(self.program, 0, str(self.dtype), error, radius2, order=order) > 0
        ):
            return Placed(x, y, DIFFERENCES)
        yc = centred if y is x else yc.astype(self.dtype, copy=False)
        return Placed(centred, yc, PRODUCT_FORM)

    def box(self, form: int) -> tuple[Array, Array]:
        """The smallest and the largest coordinates of the points, in that form."""
        low, high = self._box
        shift = self._centred[0] if form == PRODUCT_FORM else 0.0
        return low - shift, high - shift

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        return bounding_box(self.points)

    @cached_property
    def _centred(self) -> tuple[Array, Array]:
        centre = self.points.mean(axis=0, dtype=np.float64)
        return centre, (self.points - centre).astype(self.dtype, copy=False)


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m)."""
    placed = CorePoints(program, X, tile_dtype(X, Y)).placed(Y)
    n, m = len(placed.points), len(placed.queries)
    compiled = compiled_program(program, placed.points, placed.form)
    out = np.empty((n, m), dtype=placed.points.dtype)
    per_row = m * (placed.points.shape[1] + 16)
    rows = max(1, int(_WORK / 8 / per_row) // (8 * compiled.group)) * 8 * compiled.group
    rows = min(rows, 64 * compiled.group)
    if rows >= n:
        compiled.gram(placed.queries, out, 0, n)
        return out
    parts = list(pieces(n, rows))
    map_threads(lambda p: compiled.gram(placed.queries, out, p.start, p.stop), parts)
    return out


class NativeSum:
    """Elements with coefficients A on points X: their values and derivatives at any queries.

    Parameters
    ----------
    program : Program
        Of one squared distance or inner product, known to the core.
    X : array of shape (n, d)
    A : array of shape (n, b)
    keep : bool
        Whether to keep packed points for the next call.
    n_queries : int
        About how many queries there will be in all: many make it worth while to sort the points.
    """

    def __init__(
        self, program: Program, X: Any, A: Array, *, keep: bool = False, n_queries: int = 0
    ) -> None:
        self.program, self.X, self.A = program, X, A
        self.keep, self.n_queries = keep, n_queries
        self._points: dict[Any, CorePoints] = {}
        self._weighted: dict[Any, _Weighted] = {}

    def __call__(self, Y: Any, order: int = 0) -> Fields:
        """Every element at every query, unshifted."""
        dtype = tile_dtype(self.X, Y)
        if dtype not in self._points:
            self._points[dtype] = CorePoints(self.program, self.X, dtype)
        placed = self._points[dtype].placed(Y, order)
        tolerance, y, query_order = get_options().tolerance, placed.queries, None
        cutoff = np.inf
        if placed.form != INNER_PRODUCT:
            box = self._points[dtype].box(placed.form)
            many = self.n_queries
            cutoff = useful_cutoff(self.program, placed.points, y, order, tolerance, many, box)
        weighted = self._in_order(placed, order, cutoff)
        if cutoff < np.inf:
            query_order, y = sorted_in_space(y, _PANELS)
        sums = _sums(weighted, y)
        if query_order is not None:
            sums = {kind: _unsorted(total, query_order) for kind, total in sums.items()}
        bound = None
        if tolerance > 0.0 and cutoff < np.inf:
            at_zero = abs(self.program.value_at_zero)
            bound = tolerance * at_zero * np.abs(self.A).sum(axis=0, dtype=np.float64)
        batch = self.A.shape[1]
        return _assembled(weighted, sums, placed.queries, batch, order, n_columns(Y), bound)

    def _in_order(self, placed: Placed, order: int, cutoff: float) -> _Weighted:
        """The points with their coefficients, sorted in space if some are to be left out."""
        key = placed.points.dtype, placed.form, order, cutoff
        if key not in self._weighted:
            points, A = placed.points, self.A
            if cutoff < np.inf:
                point_order, points = sorted_in_space(points, _LEAF)
                A = A[point_order]
            about = _middle(self.program, points)
            made = _weighted(self.program, points, placed.form, A, order, about, cutoff)
            if not self.keep:
                return made
            self._weighted[key] = made
            made.keep_packs()
        return self._weighted[key]


def paired_fields(program: Program, X: Any, Y: Any, coef: Coef, *, order: int = 0) -> Fields:
    """Element j at query j, unshifted: coefficients of pairs are made tile by tile."""
    placed = CorePoints(program, X, tile_dtype(X, Y)).placed(Y, order)
    points, about = placed.points, _middle(program, placed.points)
    ones = np.ones((len(points), 1), dtype=points.dtype)
    weighted = _weighted(program, points, placed.form, ones, order, about)
    sums = _sums(weighted, placed.queries, coef)
    f = _assembled(weighted, sums, placed.queries, 1, order, n_columns(Y), None)
    return f.only_element()


@dataclass(frozen=True)
class _Weighted:
    """Points with coefficients for each kind of weight (0, 1, 2: derivative of the profile)."""

    program: Program
    points: Array
    form: int
    weights: Callable[[slice], dict[int, Array]]
    columns: dict[int, int]  # of the coefficients of each kind of weight
    about: Any  # coordinates are measured from here
    cutoff: float = np.inf  # squared distance beyond which terms are left out
    kept: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Numbers packed for each point."""
        return sum(self.columns.values()) + int(self.points.shape[1])

    def keep_packs(self) -> None:
        """Pack all the points now, unless that takes too much memory."""
        if 8.0 * self.width * len(self.points) <= _KEPT * get_options().working_memory * 2**20:
            parts = list(pieces(len(self.points), _PART))
            for part, compiled in zip(parts, map_threads(self.packed, parts), strict=True):
                self.kept[part.start, part.stop] = compiled

    def packed(self, part: slice) -> Any:
        """Some of the points in the compiled core, ready for any queries."""
        if (part.start, part.stop) in self.kept:
            return self.kept[part.start, part.stop]
        compiled = compiled_program(self.program, self.points[part], self.form)
        for kind, A in self.weights(part).items():
            compiled.set_coef(kind, np.ascontiguousarray(A))
        compiled.set_corners(self.program.cusps[0], not self.program.is_smooth)
        if self.cutoff < np.inf:
            compiled.set_boxes(self.points[part], self.cutoff)
        return compiled


def _weighted(
    program: Program,
    points: Array,
    form: int,
    A: Array,
    order: int,
    about: Any,
    cutoff: float = np.inf,
) -> _Weighted:
    """Points with coefficients, and coefficients times coordinates, for sums of this order."""
    dtype, has_cusps, b, p = points.dtype, any(program.cusps), A.shape[1], points.shape[1]

    def weights(part: slice) -> dict[int, Array]:
        a = A[part].astype(dtype, copy=False)
        if order == 0:
            return {0: a}
        z = (points[part] - about).astype(dtype, copy=False)
        kinds = {0: a} | {k: _times_coordinates(a, z, k) for k in range(1, order + 1)}
        return kinds | ({_COINCIDE: a} if has_cusps else {})

    columns = {0: b, 1: b * (1 + p), 2: b * (1 + p + p * (p + 1) // 2), _COINCIDE: b}
    kinds = [*range(order + 1), *([_COINCIDE] if order and has_cusps else [])]
    return _Weighted(program, points, form, weights, {k: columns[k] for k in kinds}, about, cutoff)


def _times_coordinates(a: Array, z: Array, degree: int) -> Array:
    """For each element a and a z, and for degree 2 the distinct entries of a z z'."""
    blocks = [a[:, :, None], a[:, :, None] * z[:, None, :]]
    if degree == 2:
        rows, columns = np.triu_indices(z.shape[1])
        blocks.append(a[:, :, None] * (z[:, rows] * z[:, columns])[:, None, :])
    return np.concatenate(blocks, axis=2).reshape(len(a), -1)


def _sums(weighted: _Weighted, queries: Array, pairs: Coef | None = None) -> dict[int, Array]:
    """Sums of each kind of weight against its coefficients, in float64.

    As many parts of the points are packed at a time as the memory allows. With few tiles of queries
    the threads share the parts.
    """
    n, m, columns = len(weighted.points), len(queries), weighted.columns

    def one(part: slice, compiled: Any, tile: slice) -> list[Array]:
        out = [np.empty((tile.stop - tile.start, c)) for c in columns.values()]
        each = None
        if pairs is not None:
            each = _padded(pairs.tile(part, tile), compiled.panel, queries.dtype)
        compiled.sums(queries[tile], out, each)
        return out

    if n <= _PART and float(n) * m * weighted.width < _SMALL_WORK:
        every = slice(0, n)
        sums = one(every, weighted.packed(every), slice(0, m))
        return dict(zip(columns, sums, strict=True))
    threads = thread_count()
    per_point = weighted.width + (0 if pairs is None else _TILE * threads)
    room = int(get_options().working_memory * 2**20 / (2 * 8 * per_point)) // _LEAF * _LEAF
    parts = list(pieces(n, _PART if weighted.kept else min(max(_LEAF, room), _PART)))
    tiles = list(pieces(m, _tile_rows(weighted.width + 16, min(n, _PART), m, threads)))
    totals = {kind: np.zeros((m, c)) for kind, c in columns.items()}

    def run(job: tuple[slice, list[tuple[slice, Any]]]) -> list[Array]:
        tile, (first, *others) = job
        sums = one(*first, tile)
        for pack in others:
            for total, part in zip(sums, one(*pack, tile), strict=True):
                total += part
        return sums

    together = len(parts) if weighted.kept else max(1, room // _PART)
    for group in pieces(len(parts), together):
        packs = list(zip(parts[group], map_threads(weighted.packed, parts[group]), strict=True))
        shares = [packs] if len(tiles) > threads else [[pack] for pack in packs]
        jobs = [(tile, share) for tile in tiles for share in shares]
        for (tile, _), sums in zip(jobs, map_threads(run, jobs), strict=True):
            for total, part in zip(totals.values(), sums, strict=True):
                total[tile] += part
    return totals


def _tile_rows(width: int, points: int, m: int, threads: int) -> int:
    """Queries of one task: whole panels, a limited amount of work, and work for every thread."""
    rows = int(_WORK / (float(width) * points)) // _PANELS * _PANELS
    rows = min(rows, -(-m // (threads * _PANELS)) * _PANELS)
    return min(_TILE, max(_PANELS, rows))


def _padded(A: Array, panel: int, dtype: Any) -> Array:
    """The coefficients of pairs with whole panels of queries."""
    missing = -A.shape[1] % panel
    A = np.pad(A, ((0, 0), (0, missing))) if missing else A
    return np.ascontiguousarray(A, dtype=dtype)


def _middle(program: Program, points: Array) -> Any:
    """The point from which coordinates are measured: their mean; 0 for inner products."""
    return points.mean(axis=0, dtype=np.float64) if program.kind == "radial" else 0.0


def _unsorted(total: Array, order: Array) -> Array:
    out = np.empty_like(total)
    out[order] = total
    return out


def _assembled(
    weighted: _Weighted,
    sums: dict[int, Array],
    queries: Array,
    batch: int,
    order: int,
    dim: int,
    bound: Array | None,
) -> Fields:
    """Values and derivatives from sums over the points."""
    p, dtype, shift = weighted.points.shape[1], queries.dtype, np.zeros(len(queries))
    if order == 0:
        moments: list[Moments] = [{("value",): sums[0]}]
        return from_moments(weighted.program, moments, [], dim, 0, dtype, shift, bound)
    moments = [_moments_of_element(sums, b, batch, p) for b in range(batch)]
    centred = [np.asarray(queries - weighted.about, dtype=np.float64)]
    return from_moments(weighted.program, moments, centred, dim, order, dtype, shift, bound)


def _moments_of_element(sums: dict[int, Array], b: int, batch: int, p: int) -> Moments:
    first = sums[1].reshape(len(sums[1]), batch, -1)[:, b]
    out: Moments = {("value",): sums[0][:, b], ("sum", 0): first[:, 0], ("first", 0): first[:, 1:]}
    if _COINCIDE in sums:
        out[("cusp",)] = sums[_COINCIDE][:, b]
    if 2 in sums:
        second = sums[2].reshape(len(sums[2]), batch, -1)[:, b]
        out[("sum", 0, 0)] = second[:, 0]
        out[("left", 0, 0)] = second[:, 1 : 1 + p]
        rows, columns = np.triu_indices(p)
        outer = np.empty((len(second), p, p))
        outer[:, rows, columns] = outer[:, columns, rows] = second[:, 1 + p :]
        out[("second", 0, 0)] = outer
    return out
