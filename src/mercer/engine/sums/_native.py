"""The native engine: sums and Gram matrices by the compiled core, for profiles of one variable.

The core sums weights against a matrix of coefficients. Gradients and Hessians are such sums too,
against coefficients times coordinates. Points are packed with their coefficients, part by part;
threads then work through tiles of queries.
"""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads, thread_count
from mercer.engine._compiled import core, instruction_set
from mercer.engine._sizes import as_float64, contiguous, n_columns, pieces, tile_dtype
from mercer.engine.pairs._distance_limits import recompute_below, useful_cutoff
from mercer.engine.pairs._distances import bound_on_error, middle, sorted_in_space, squared_norms
from mercer.engine.pairs._tiles import centre_before_maps, mapped
from mercer.engine.programs._coef import Coef, Dense
from mercer.engine.programs._program import Distance, Program
from mercer.engine.sums._derivatives import Moments, cancelling_rows, with_one
from mercer.engine.sums._fields import Fields, from_moments
from mercer.engine.sums._pairwise import by_differences

INNER_PRODUCT, PRODUCT_FORM, DIFFERENCES = 0, 1, 2  # how pairs are measured, as in native/task.hpp
_DIRECT = 4  # dimensions up to which differences cost no more than the product form
_WORK = 4e9  # elementary steps of one task: well under a second, so that interrupts are noticed
_SMALL_WORK = 1e6  # elementary steps that are done sooner than a second thread has started
_PART = 1 << 17  # points packed together; with few queries, threads work on different parts
_PANELS, _TILE = 48, 480  # tiles of queries are whole panels of every instruction set
_LEAF = 64  # sorted points come in leaves of this size: blocks of the core are multiples
_COINCIDE = 3  # the kind of weight that is 1 where point and query coincide, else 0
_KEPT = 3.0  # packed points are kept up to this multiple of `working_memory`


class Placed(NamedTuple):
    """Points and queries as the program measures them, and the form of their distance."""

    points: Array
    queries: Array
    form: int


class CorePoints:
    """Points as a program measures them, in the layout that the core reads."""

    def __init__(self, program: Program, X: Any, dtype: Any) -> None:
        self.program, self.X, self.dtype = program, X, dtype
        self._variable = variable = program.variables[0]
        self._maps = program.maps
        self._origin = centre_before_maps(variable, X) if self._maps else None
        self.points = self._mapped(X)

    def _mapped(self, Z: Any) -> Array:
        if self._maps:
            Z = as_float64(Z) if self.dtype == np.float64 else Z
            Z = mapped(self._maps, Z, self._origin)
        return contiguous(Z, dtype=self.dtype)

    def placed(self, Y: Any, order: int = 0) -> Placed:
        """Add queries, and choose the fastest form of the distance that is accurate enough."""
        x = self.points
        y = x if Y is self.X else self._mapped(Y)
        if not isinstance(self._variable, Distance):
            return Placed(x, y, INNER_PRODUCT)
        if x.shape[1] <= _DIRECT:
            return Placed(x, y, DIFFERENCES)
        centre, centred = self._centred
        yc = y - centre
        radius2 = float(squared_norms(yc).max())
        error = bound_on_error(radius2, self.dtype)
        if recompute_below(self.program, 0, str(self.dtype), error, radius2, order=order) > 0:
            return Placed(x, y, DIFFERENCES)
        yc = centred if y is x else yc.astype(self.dtype, copy=False)
        return Placed(centred, yc, PRODUCT_FORM)

    def corners(self, form: int) -> Array:
        """The smallest and the largest coordinates of the points, in that form."""
        return self._corners - self._centred[0] if form == PRODUCT_FORM else self._corners

    @cached_property
    def _corners(self) -> Array:
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)])

    @cached_property
    def _centred(self) -> tuple[Array, Array]:
        centre = middle(self.points)
        return centre, (self.points - centre).astype(self.dtype, copy=False)


def compiled_program(program: Program, points: Array, form: int) -> Any:
    """Points in the core, with the profile that is summed over them."""
    assert program.tape is not None
    steps, result = program.tape
    kind = core().Program32 if points.dtype == np.float32 else core().Program64
    return kind(points, list(steps), result, form, instruction_set())


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m)."""
    points, queries, form = CorePoints(program, X, tile_dtype(X, Y)).placed(Y)
    n, m = len(points), len(queries)
    compiled = compiled_program(program, points, form)
    out = np.empty((n, m), dtype=points.dtype)
    rows = int(_WORK / 8 / (m * (points.shape[1] + 16))) // (8 * compiled.group)
    rows = min(max(rows, 1), 8) * 8 * compiled.group
    if rows >= n or float(n) * m * (points.shape[1] + 16) < _SMALL_WORK:
        compiled.gram(queries, out, 0, n)
    else:
        parts = list(pieces(n, rows))
        map_threads(lambda p: compiled.gram(queries, out, p.start, p.stop), parts)
    return out


def gram_block(
    program: Program, placed: Placed, rows: slice | Array, columns: slice | Array
) -> Array:
    """Some rows and columns of the Gram matrix of placed points."""
    points, queries = placed.points[rows], placed.queries[columns]
    out = np.empty((len(points), len(queries)), dtype=points.dtype)
    compiled_program(program, points, placed.form).gram(queries, out, 0, len(points))
    return out


class NativeSum:
    """Elements with coefficients A on points X: their values and derivatives at any queries.

    With `keep`, packed points are kept for the next call. `n_queries` is the approximate number of
    queries in all: if there are many, it pays to sort the points.
    """

    def __init__(
        self, program: Program, X: Any, A: Array, keep: bool = False, n_queries: int = 0
    ) -> None:
        self.program, self.X, self.A = program, X, A
        self.keep, self.n_queries = keep, n_queries
        self._points: dict[Any, CorePoints] = {}
        self._packed: dict[Any, _Packed] = {}

    def __call__(self, Y: Any, order: int = 0, pairs: Coef | None = None) -> Fields:
        """Every element at every query, unshifted.

        With `pairs`, which has a coefficient for each point and query, the terms are multiplied by
        these.
        """
        dtype = tile_dtype(self.X, Y)
        if dtype not in self._points:
            self._points[dtype] = CorePoints(self.program, self.X, dtype)
        placed = self._points[dtype].placed(Y, order)
        tolerance, queries, cutoff, bound = get_options().tolerance, placed.queries, np.inf, None
        if placed.form != INNER_PRODUCT and pairs is None:
            corners = partial(self._points[dtype].corners, placed.form)
            sizes = order, tolerance, self.n_queries
            cutoff = useful_cutoff(self.program, placed.points, queries, *sizes, corners)
        key = dtype, placed.form, order, cutoff
        if key not in self._packed:
            self._packed[key] = _Packed(self, placed, order, cutoff)
        packed = self._packed[key]
        if cutoff == np.inf:
            sums = packed.sums(queries, pairs)
        else:
            query_order, queries = sorted_in_space(queries, _PANELS)
            sums = packed.sums(queries)
            for kind, total in sums.items():
                sums[kind] = np.empty_like(total)
                sums[kind][query_order] = total
            if tolerance > 0.0:
                at_zero = abs(self.program.value_at_zero)
                bound = tolerance * at_zero * np.abs(self.A).sum(axis=0, dtype=np.float64)
        moments = _moments(sums, self.A.shape[1], placed.points.shape[1])
        centred = [np.asarray(placed.queries - packed.about, dtype=np.float64)] if order else []
        f = from_moments(self.program, moments, centred, n_columns(Y), order, dtype, bound=bound)
        rows = cancelling_rows(self.program, moments, centred)
        if rows.size:
            coef = Dense(self.A) if pairs is None else pairs
            by_differences(f, rows, self.program, self.X, Y, coef, order, pairs is not None)
        return f


class _Packed:
    """Points in the core, with the coefficients of sums and derivatives up to some order.

    They are sorted in space if those beyond a `cutoff` are to be left out.
    """

    def __init__(self, of: NativeSum, placed: Placed, order: int, cutoff: float) -> None:
        self.program, self.form, self.order, self.cutoff = of.program, placed.form, order, cutoff
        points, A = placed.points, of.A
        if cutoff < np.inf:
            point_order, points = sorted_in_space(points, _LEAF)
            A = A[point_order]
        self.points, self.A = points, A
        self.has_cusps = order > 0 and any(of.program.cusps)
        b, p = A.shape[1], points.shape[1]
        columns = {0: b, 1: b * (1 + p), 2: b * (1 + p + p * (p + 1) // 2)}
        # of the coefficients of each kind of weight: the profile, its derivatives, coincidence
        self.columns = {k: columns[k] for k in range(order + 1)}
        if self.has_cusps:
            self.columns[_COINCIDE] = b
        self.width = sum(self.columns.values()) + p  # numbers packed for each point
        # coordinates are measured from here
        self.about: Any = 0.0
        if order and placed.form != INNER_PRODUCT:
            self.about = middle(points)
        room = _KEPT * get_options().working_memory * 2**20
        self.keeps = of.keep and 8.0 * self.width * len(points) <= room
        self.kept: dict[tuple[int, int], Any] = {}

    def part(self, part: slice) -> Any:
        """Some of the points in the compiled core, ready for any queries."""
        key = part.start, part.stop
        if key in self.kept:
            return self.kept[key]
        compiled = compiled_program(self.program, self.points[part], self.form)
        a = self.A[part].astype(self.points.dtype, copy=False)
        compiled.set_coef(0, contiguous(a))
        variable = self.program.variables[0]
        for kind in range(1, self.order + 1):
            z = (self.points[part] - self.about).astype(a.dtype, copy=False)
            compiled.set_coef(kind, _times_coordinates(a, with_one(variable, z, a.dtype), kind))
        if self.has_cusps:
            compiled.set_coef(_COINCIDE, contiguous(a))
        compiled.set_corners(self.program.cusps[0], not self.program.is_smooth)
        if self.cutoff < np.inf:
            compiled.set_boxes(self.points[part], self.cutoff)
        if self.keeps:
            self.kept[key] = compiled
        return compiled

    def sums(self, queries: Array, pairs: Coef | None = None) -> dict[int, Array]:
        """Sums of each kind of weight against its coefficients, in float64.

        As many parts of the points are packed at a time as the memory allows. With few tiles of
        queries the threads share the parts.
        """
        n, m = len(self.points), len(queries)
        if n <= _PART and float(n) * m * self.width < _SMALL_WORK:
            every = slice(0, n)
            sums = self._tile(every, self.part(every), queries, slice(0, m), pairs)
            return dict(zip(self.columns, sums, strict=True))
        threads = thread_count()
        per_point = self.width + (0 if pairs is None else _TILE * threads)
        room = int(get_options().working_memory * 2**20 / (2 * 8 * per_point)) // _LEAF * _LEAF
        parts = list(pieces(n, _PART if self.keeps else min(max(_LEAF, room), _PART)))
        # queries of one task: whole panels, a limited amount of work, and work for every thread
        panels = min(
            int(_WORK / ((self.width + 16.0) * min(n, _PART))) // _PANELS,
            -(-m // (threads * _PANELS)),
        )
        tiles = list(pieces(m, min(_TILE, max(1, panels) * _PANELS)))
        totals = {kind: np.zeros((m, c)) for kind, c in self.columns.items()}

        def run(job: tuple[slice, list[tuple[slice, Any]]]) -> list[Array]:
            tile, (first, *others) = job
            sums = self._tile(*first, queries, tile, pairs)
            for other in others:
                for total, part in zip(sums, self._tile(*other, queries, tile, pairs), strict=True):
                    total += part
            return sums

        together = len(parts) if self.keeps else max(1, room // _PART)
        for group in pieces(len(parts), together):
            packs = list(zip(parts[group], map_threads(self.part, parts[group]), strict=True))
            shares = [packs] if len(tiles) > threads else [[pack] for pack in packs]
            jobs = [(tile, share) for tile in tiles for share in shares]
            for (tile, _), sums in zip(jobs, map_threads(run, jobs), strict=True):
                for total, part in zip(totals.values(), sums, strict=True):
                    total[tile] += part
        return totals

    def _tile(
        self, part: slice, compiled: Any, queries: Array, tile: slice, pairs: Coef | None
    ) -> list[Array]:
        """The sums over some points at some queries."""
        out = [np.empty((tile.stop - tile.start, c)) for c in self.columns.values()]
        each = None
        if pairs is not None:
            each = pairs.tile(part, tile)
            missing = -each.shape[1] % compiled.panel  # to whole panels of queries
            each = np.pad(each, ((0, 0), (0, missing))) if missing else each
            each = contiguous(each, dtype=queries.dtype)
        compiled.sums(queries[tile], out, each)
        return out


_upper = lru_cache(maxsize=64)(np.triu_indices)


def _times_coordinates(a: Array, c: Array, degree: int) -> Array:
    """For each element a c, or for degree 2 the distinct entries of a c c'."""
    if degree == 2:
        rows, columns = _upper(c.shape[1])
        c = c[:, rows] * c[:, columns]
    return contiguous((a[:, :, None] * c[:, None, :]).reshape(len(a), -1))


def _moments(sums: dict[int, Array], batch: int, p: int) -> Moments:
    """The sums of the core, under the names from which derivatives are computed."""
    out: Moments = {("value",): sums[0]}
    if 1 in sums:
        out[("first", 0)] = sums[1].reshape(-1, batch, 1 + p)
    if _COINCIDE in sums:
        out[("cusp",)] = sums[_COINCIDE]
    if 2 in sums:
        second = sums[2].reshape(len(sums[2]), batch, -1)
        rows, columns = _upper(1 + p)
        outer = np.empty((len(second), batch, 1 + p, 1 + p))
        outer[:, :, rows, columns] = outer[:, :, columns, rows] = second
        out[("second", 0, 0)] = outer
    return out
