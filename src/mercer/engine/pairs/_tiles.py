"""Tiles of a program: its variables between points and queries, and its profile of them."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._tensors import namespace
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.engine._sizes import as_float64, dense, tile_dtype
from mercer.engine.pairs._coordinates import comparable, coordinate_sums, rowwise_sums
from mercer.engine.pairs._distance_limits import recompute_below
from mercer.engine.pairs._distances import Distances, differences, middle, squared_norms
from mercer.engine.programs._expr import Expr
from mercer.engine.programs._jets import Jet, evaluate, is_zero, plus, times
from mercer.engine.programs._maps import Columns, Maps, apply_all
from mercer.engine.programs._program import (
    Block,
    Coordinates,
    Distance,
    Dot,
    Gap,
    Norm,
    Own,
    Program,
    Variable,
    maps_of,
)
from mercer.exceptions import InputError

_TURNS = 1e12  # beyond it fewer than four digits of an angle are left


def mapped_points(v: Variable, X: Any, Y: Any) -> tuple[Any, Any]:
    """Points and queries as variable v measures them."""
    maps = maps_of(v)
    if maps and tile_dtype(X, Y) == np.float64:  # float32 beside float64 is mapped in float64
        X, Y = as_float64(X), as_float64(Y)
    if isinstance(v, Coordinates):
        return comparable(apply_all(maps, X), apply_all(maps, Y) if Y is not X else None)
    if not maps:
        return X, Y
    centre = None if is_sparse(Y) else centre_before_maps(v, X)
    x = mapped(maps, X, centre)
    y = x if Y is X else mapped(maps, Y, centre)
    if centre is not None and isinstance(v, Gap) and v.period is not None:
        for Z in (x, y):
            if np.abs(Z).max(initial=0.0) > _TURNS * v.period:
                raise InputError(
                    f"points are more than {_TURNS:g} periods apart behind the kernel's map, so "
                    "their angles are lost in rounding; rescale them"
                )
    return x, y


def centre_before_maps(v: Variable, X: Any) -> Array | None:
    """The point that is subtracted before the maps of a distance or a gap; None for no point.

    A map rounds, and its rounding errors should not depend on where the origin is.
    """
    maps = maps_of(v)
    # selecting columns does not round, and gaps of columns are exact as they are
    rounds = isinstance(v, Gap) and not all(isinstance(step, Columns) for step in maps)
    if not (isinstance(v, Distance) or rounds) or not maps or is_sparse(X):
        return None
    if not all(step.is_linear for step in maps):
        return None
    return middle(X)


def mapped(maps: Maps, Z: Any, centre: Array | None) -> Any:
    """Points after subtracting `centre` (None: nothing) and applying the maps."""
    return apply_all(maps, Z if centre is None else (Z - centre).astype(Z.dtype))


class Pairs:
    """Points X (columns of a tile) and queries Y (rows of a tile) as a program sees them."""

    def __init__(
        self, program: Program, X: Any, Y: Any, *, order: int = 0, shifted: bool = False
    ) -> None:
        self.program, self.X, self.Y = program, X, Y
        self.dtype = tile_dtype(X, Y)
        self._mapped: dict[Variable, tuple[Any, Any]] = {}
        self._distances: dict[int, Distances] = {}
        for i, v in enumerate(program.variables):
            if isinstance(v, Distance):
                name = str(self.dtype)
                rule = partial(recompute_below, program, i, name, shifted=shifted, order=order)
                self._distances[i] = Distances(*self.mapped(v), self.dtype, rule)
        self._profile = _compiled_profile(program)

    def mapped(self, v: Variable) -> tuple[Any, Any]:
        """Points and queries as variable v measures them."""
        if v not in self._mapped:
            self._mapped[v] = mapped_points(v, self.X, self.Y)
        return self._mapped[v]

    def tile(self, rows: slice, columns: slice) -> list[Any]:
        """The variables of some queries and points, each broadcastable to (rows, columns)."""
        return [self._variable(i, v, rows, columns) for i, v in enumerate(self.program.variables)]

    @property
    def one_pass(self) -> bool:
        """Whether one pass of the core turns a tile of products or sums into kernel values."""
        if self._profile is None:
            return False
        (v,) = self.program.variables
        if isinstance(v, Distance):
            return self._distances[0].plain
        return all(not is_sparse(Z) and Z.dtype == self.dtype for Z in self.mapped(v))

    def values(
        self, rows: slice | Array, columns: slice | Array, out: Array | None = None
    ) -> Array:
        """The profile on a tile, where one pass is enough; in `out` if that is given."""
        (v,) = self.program.variables
        norms: list[Array] = []
        if isinstance(v, Distance):
            tile, *norms = self._distances[0].products(rows, columns, out)
        else:
            X, Y = self.mapped(v)
            if isinstance(v, Coordinates):
                tile = coordinate_sums(v.kind, Y[rows], X[columns], out)
            else:
                tile = np.matmul(Y[rows], X[columns].T, out=out)
        self._profile.values(tile, *norms)
        return np.asarray(tile)

    def _variable(self, i: int, v: Variable, rows: slice, columns: slice) -> Any:
        X, Y = self.mapped(v)
        match v:
            case Distance():
                return self._distances[i].tile(rows, columns)
            case Dot():
                t = Y[rows] @ X[columns].T
                return np.asarray(t.toarray() if is_sparse(t) else t, dtype=self.dtype)
            case Coordinates(kind=kind):
                return coordinate_sums(kind, Y[rows], X[columns])
            case Gap(period=period):
                return wrapped(_column(Y[rows])[:, None] - _column(X[columns]), period)
            case Block(function=f):
                return np.asarray(f(Y[rows], X[columns]))
            case Norm(of="row") | Own(of="row"):
                return _of_one_point(v, Y[rows], self.dtype)[:, None]
            case Norm() | Own():
                return _of_one_point(v, X[columns], self.dtype)[None, :]

    @cached_property
    def centres(self) -> list[Any]:
        """For each variable the point from which coordinates are measured.

        For distances it is the middle of the data, so that products of coordinates do not cancel.
        Inner products need the true origin.
        """
        out: list[Any] = []
        for v in self.program.variables:
            X, Y = self.mapped(v)
            centred = isinstance(v, Distance) and not is_sparse(X) and not is_sparse(Y)
            out.append(middle(X) if centred else 0.0)
        return out


def rowwise_variables(program: Program, X: Any, Y: Any) -> list[Any]:
    """The variables of the pairs (x_j, y_j), row by row, each of shape (m,)."""
    dtype = tile_dtype(X, Y)
    out: list[Any] = []
    for v in program.variables:
        if isinstance(v, Distance):
            out.append(squared_norms(rowwise_gaps(v, X, Y)).astype(dtype))
            continue
        x, y = mapped_points(v, X, Y)
        match v:
            case Dot():
                out.append(_rowwise_dots(y, x).astype(dtype))
            case Coordinates(kind=kind):
                out.append(rowwise_sums(kind, y, x).astype(dtype))
            case Gap(period=period):
                out.append(wrapped(_column(y) - _column(x), period))
            case Block(function=f):
                pairs = (f(y[j : j + 1], x[j : j + 1]) for j in range(len(y)))
                out.append(np.array([np.asarray(value)[0, 0] for value in pairs], np.float64))
            case Norm(of=of) | Own(of=of):
                out.append(_of_one_point(v, y if of == "row" else x, dtype))
    return out


def rowwise_gaps(v: Distance, X: Any, Y: Any) -> Any:
    """y_j - x_j row by row, as v measures them; from differences, so that nothing cancels."""
    if not (is_sparse(X) or is_sparse(Y)) and all(step.is_linear for step in v.maps):
        return apply_all(v.maps, np.subtract(Y, X, dtype=np.float64))
    x, y = mapped_points(v, X, Y)
    return differences(y, x)


def wrapped(gap: Array, period: float | None) -> Array:
    """A difference minus the nearest multiple of the period, in [-period/2, period/2].

    Exact: a remainder has no rounding, and neither has the difference of two numbers that are
    within a factor of two.
    """
    if period is None:
        return gap
    rest = np.fmod(gap, period)
    far = np.abs(rest) > 0.5 * period
    return np.asarray(np.where(far, rest - np.copysign(period, rest), rest))


def _column(Z: Any) -> Array:
    return dense(Z)[:, 0]


def _compiled_profile(program: Program) -> Any:
    """The profile as one pass of the core over a tile of products or sums; None if impossible."""
    one = program.runs_on_core or isinstance((*program.variables, None)[0], Coordinates)
    if not one or program.tape is None or not core_allowed():
        return None
    return core().Profile(list(program.tape[0]), program.tape[1], instruction_set())


def _of_one_point(v: Norm | Own, Z: Any, dtype: Any) -> Array:
    """A variable of the points alone or of the queries alone, shape (len(Z),)."""
    match v:
        case Norm():
            return squared_norms(Z).astype(dtype)
        case Own(variable=Coordinates(kind=kind)):
            return rowwise_sums(kind, Z, Z).astype(dtype)
        case Own(variable=Block(diagonal=f)):
            return np.asarray(f(Z))
    raise AssertionError(v)  # pragma: no cover


def _rowwise_dots(Y: Any, X: Any) -> Array:
    if is_sparse(Y) or is_sparse(X):
        products = Y.multiply(X) if is_sparse(Y) else X.multiply(Y)
        return np.asarray(products.sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", Y, X, dtype=np.float64))


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
    xp = namespace(jet.value)
    first = list(jet.first)
    second = [list(row) for row in jet.second]
    at_cusp: Array | None = None
    for v, kind in enumerate(program.variables):
        # smooth gaps change to first order and keep their terms
        if not (isinstance(kind, Distance) or (isinstance(kind, Gap) and program.cusps[v])):
            continue
        coincide = xp.broadcast_to(inputs[v] == 0, jet.value.shape)
        if not xp.any(coincide):
            continue
        if program.cusps[v]:
            first[v] = xp.where(coincide, xp.zeros_like(first[v]), first[v])
            at_cusp = coincide if at_cusp is None else at_cusp | coincide
        elif not is_zero(first[v]) and xp.any(xp.isnan(first[v])):  # zero times infinity
            limit = program.derivatives_at_zero[v][0]
            if len(first) > 1:  # depends on the others; a gradient does not need it
                limit = np.nan if second else 0.0
            unknown = coincide & xp.isnan(first[v])
            first[v] = xp.where(unknown, xp.full_like(first[v], limit), first[v])
        for w in range(len(first) if second else 0):
            if not is_zero(second[v][w]):
                safe = xp.where(coincide, xp.zeros_like(second[v][w]), second[v][w])
                second[v][w] = second[w][v] = safe
    return Jet(jet.value, tuple(first), tuple(map(tuple, second))), at_cusp


def _weighted(w: Array, slope: Any) -> Any:
    if is_zero(slope):
        return 0
    with np.errstate(invalid="ignore"):
        return np.where(w > 0, w * slope, w.dtype.type(0))
