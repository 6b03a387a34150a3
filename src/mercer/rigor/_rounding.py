"""Bounds on the rounding errors of the gradient and Hessian of an element, row by row.

The engine computes sums such as sum_i a_i k_v D_v (k_v a derivative of the profile, D_v the
gradient of a variable) from n products, in coordinates about the middle of the data. Two errors add
up. The sum itself is off by at most (n + d + 100) eps times the sum of the sizes of its parts. Each
k_v is off by no more than the width of an interval that encloses it while the variable moves by its
own error: interval arithmetic widens every operation by more than its rounding error, so the
interval holds both the exact value and the one that the engine computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array, is_sparse
from mercer._threads import map_threads
from mercer.engine import Distance, Dot, Gap, Norm, Program, Var, apply_all, n_rows
from mercer.engine.pairs._distances import squared_norms
from mercer.rigor._derivative_bounds import spectral_norms
from mercer.rigor._intervals import EPS, Interval, as_interval, up
from mercer.rigor._profile_enclosure import ZERO, enclose, profile_ranges
from mercer.rigor._suprema import evaluation_error
from mercer.space import Element

_TINY = float(np.finfo(float).tiny)
_TILE = 1 << 15  # pairs of one tile
_SUM = 100  # rounding errors of one term beside those of its profile: maps, products, centring
_EXACT_BELOW = 1e-7  # of the squared radius: where slopes are infinite, closer ones use differences


class RowSums(NamedTuple):
    """Sums over the points at each query, shape (m,), and bounds on errors.

    Terms are weighed with w_i = u_i for a squared distance and |x_i|^2 for an inner product.
    Gradients are measured in the Euclidean, Hessians in the spectral norm.
    """

    slope: Array  # sum of a_i k'
    rising: Array  # sum of a_i k'' w_i over positive terms
    falling: Array  # the same over negative terms
    slope_error: Array  # of slope
    curvature_error: Array  # of rising and of falling
    gradient_error: Array  # of the engine's gradient
    hessian_error: Array  # of the engine's Hessian


def row_sums(program: Program, X: Any, Y: Any, coef: engine.Coef, paired: bool) -> RowSums:
    """Sum over all points, tile by tile: of one element, or of element j at query j."""
    measured = [_VariableErrors.of(v, program, X, Y) for v in program.variables]
    n, m = n_rows(X), n_rows(Y)
    out = np.zeros((7, m))
    e = (n + engine.n_columns(Y) + _SUM) * EPS
    height = max(1, min(m, _TILE // min(n, 512)))

    def add(rows: slice) -> None:
        for columns in engine.pieces(n, max(1, _TILE // height)):
            A = coef.tile(columns, rows if paired else slice(0, 1)).T.astype(np.float64)
            if A.any():
                A = np.broadcast_to(A, (rows.stop - rows.start, A.shape[1]))
                with np.errstate(all="ignore"):
                    out[:, rows] += _tile_sums(program, measured, A, rows, columns, e)

    map_threads(add, list(engine.pieces(m, height)))
    parts = np.max([at.parts(slice(None))[:, 0] for at in measured], axis=0, initial=0.0)
    out[5:] += 8 * n * _TINY * (1.0 + parts) ** np.array([[1], [2]])  # terms that underflow
    out[3:] = up(out[3:])
    return RowSums(*np.where(np.isnan(out), np.inf, out))


def supremum_errors(psi: Element, Y: Array) -> tuple[Array, Array] | None:
    """Bounds on the errors of gradient and Hessian without a pass over the points.

    For completely monotone profiles with k''(0) finite; None for others. k' and k'' are largest at
    zero, and k''(u) <= 8 k(0) / u^2, so r k'' <= (8 k(0))^(1/4) k''(0)^(3/4). The bounds are those
    of one element at all queries, or of element j at query j.
    """
    program = psi.kernel.program
    if program.kind != "radial" or not psi.kernel.flags.completely_monotone:
        return None
    k, first, second = _sizes_at_zero(program.profile)
    c = evaluation_error(program.profile)
    if not np.isfinite(c * second * k):
        return None
    moved = (8.0 * k) ** 0.25 * second**0.75
    (v,) = program.variables
    at = _VariableErrors.of(v, program, psi.points, Y)
    n, radius = n_rows(psi.points), at.queries + at.farthest
    size = psi.coef.sizes + n * _TINY
    e, du = (n + at.dim + _SUM + c) * EPS, (at.dim + 8) * EPS * radius**2 + _TINY
    summed = e * (2.0 * first + second * (2.0 * radius) ** 2)
    hessian = size * at.norm**2 * (summed + 10.0 * du * second)
    shifted = 4.0 * du * (moved + second * np.sqrt(3.0 * du))
    gradient = size * at.norm * (e * first * 2.0 * radius + shifted)
    return up(gradient) + n * _TINY, up(hessian) + n * _TINY


@lru_cache(maxsize=256)
def _sizes_at_zero(profile: engine.Expr) -> list[float]:
    """Upper bounds on |k(0)|, |k'(0)| and |k''(0)|."""
    return [float(x.size[0]) for x in profile_ranges(profile, ZERO, 2)]


@dataclass(frozen=True, eq=False)
class _VariableErrors:
    """One variable of a program: bounds on its errors and on its derivatives in the query."""

    kind: Any
    norm: float  # of the map A
    X: Any  # the points and queries
    Y: Any
    x: Any  # A x_i, about the middle for distances
    y: Any
    points: Array  # their lengths
    queries: Array
    dim: int
    exact_near: bool

    @classmethod
    def of(cls, v: Any, program: Program, X: Any, Y: Any) -> _VariableErrors:
        sparse = is_sparse(X) or is_sparse(Y)
        middle = X.mean(axis=0) if isinstance(v, Distance) and not sparse else 0.0
        x, y = (apply_all(v.maps, Z if sparse else Z - middle) for Z in (X, Y))
        norm = spectral_norms(Program((v,), Var(0)), engine.n_columns(Y))[0]
        sizes = np.sqrt(squared_norms(x)), np.sqrt(squared_norms(y))
        return cls(v, norm, X, Y, x, y, *sizes, engine.n_columns(Y), not program.is_smooth)

    @property
    def farthest(self) -> float:
        """max_i |A x_i|."""
        return float(self.points.max())

    @property
    def turns(self) -> float:
        """The second derivative of the variable itself, in the spectral norm."""
        moves = isinstance(self.kind, Distance) or getattr(self.kind, "of", "") == "row"
        return 2.0 * self.norm**2 if moves else 0.0

    def values(self, rows: slice, columns: slice) -> Array:
        """The variable for all pairs of some queries and points."""
        if isinstance(self.kind, Distance) and not self.exact_near:
            product = self.y[rows] @ self.x[columns].T
            product = product.toarray() if is_sparse(product) else product
            squares = self.queries[rows, None] ** 2 + self.points[None, columns] ** 2
            return np.asarray(np.maximum(squares - 2.0 * product, 0.0))
        node = Var(0, nonnegative=not isinstance(self.kind, Dot | Gap))
        return engine.gram(Program((self.kind,), node), self.Y[rows], self.X[columns])

    def parts(self, rows: slice) -> Array:
        """A bound on the coordinates that make up its gradient, shape (r, 1)."""
        y = self.queries[rows, None]
        match self.kind:
            case Distance():
                return np.asarray(2.0 * self.norm * (y + self.farthest))
            case Dot():
                return np.full_like(y, self.norm * self.farthest)
            case Gap():
                return np.full_like(y, self.norm)
        return 2.0 * self.norm * y if self.kind.of == "row" else np.zeros_like(y)

    def gradient(self, value: Array, error: Array, rows: slice, columns: slice) -> Array:
        """A bound on its gradient in the query, broadcastable to (r, c)."""
        match self.kind:
            case Distance():
                return np.asarray(2.0 * self.norm * np.sqrt(value + error))
            case Dot():
                return self.norm * self.points[None, columns]
        return self.parts(rows)

    def error(self, value: Array, rows: slice, columns: slice) -> Array:
        """A bound on its error, here and in the engine together, broadcastable to (r, c)."""
        y, x = self.queries[rows, None], self.points[None, columns]
        f = 2 * (self.dim + 8) * EPS
        match self.kind:
            case Distance():
                radius2 = (y + self.farthest) ** 2
                near = self.exact_near & (value < _EXACT_BELOW * radius2)
                return np.asarray(f * np.where(near, value, radius2))
            case Dot():
                return np.asarray(f * y * x)
            case Gap():
                return np.asarray(f * (y + x))
        return np.asarray(f * (y * y if self.kind.of == "row" else x * x))


def _tile_sums(
    program: Program,
    measured: list[_VariableErrors],
    A: Array,
    rows: slice,
    columns: slice,
    e: float,
) -> Array:
    """The seven sums of one tile, shape (7, r)."""
    values = [at.values(rows, columns) for at in measured]
    errors = [at.error(u, rows, columns) for at, u in zip(measured, values, strict=True)]
    cusp = _cusps(program, values, A.shape)
    first, second = _derivative_ranges(program, values, errors, cusp)
    g = range(len(measured))
    D = [measured[v].gradient(values[v], errors[v], rows, columns) for v in g]
    B = [at.parts(rows) for at in measured]
    size = np.abs(A)
    gradient, hessian = np.zeros(A.shape), np.zeros(A.shape)
    for v in g:
        wide = first[v].hi - first[v].lo
        gradient += e * first[v].size * B[v] + wide * D[v]
        hessian += measured[v].turns * (e * first[v].size + wide)
        for w in g:
            k = second[v][w]
            hessian += e * k.size * B[v] * B[w] + (k.hi - k.lo) * D[v] * D[w]
    out = np.zeros((7, A.shape[0]))
    if len(measured) == 1:
        radial = isinstance(measured[0].kind, Distance)
        weight = values[0] if radial else measured[0].points[None, columns] ** 2
        off = errors[0] if radial else e * weight
        out[:5] = _one_variable(A, first[0], second[0][0], weight, off, e)
        if any(program.cusps):  # there is no slope
            out[3] += np.where((cusp & (A != 0)).any(axis=1), np.inf, 0.0)
    for i, bound in ((5, gradient), (6, hessian)):
        out[i] = (size * np.where(size > 0, bound, 0.0)).sum(axis=1)
    return out


def _one_variable(
    A: Array, first: Interval, second: Interval, weight: Array, off: Array, e: float
) -> tuple[Array, ...]:
    """Slope, rising, falling and their errors, for a program of one variable."""
    size = np.abs(A)
    slope, k2 = A * _middle(first), _middle(second)
    bend = A * k2 * weight
    slope_error = size * (first.hi - first.lo) + e * np.abs(slope)
    bend_error = size * ((second.hi - second.lo) * (weight + off) + np.abs(k2) * off)
    bend_error += e * np.abs(bend)
    parts = (slope, np.maximum(bend, 0.0), np.minimum(bend, 0.0), slope_error, bend_error)
    return tuple(np.where(size > 0, part, 0.0).sum(axis=1) for part in parts)


def _middle(x: Interval) -> Array:
    """The middle of an interval; 0 where it is not bounded (its width is infinite there)."""
    middle = x.lo + (x.hi - x.lo) / 2
    return np.asarray(np.where(np.isfinite(middle), middle, 0.0))


def _cusps(program: Program, values: list[Array], shape: tuple[int, ...]) -> Array:
    """Pairs that coincide where derivatives are infinite: the engine leaves their terms out."""
    cusp = np.zeros(shape, dtype=bool)
    for v, u in zip(program.variables, values, strict=True):
        if isinstance(v, Distance) and not program.is_smooth:
            cusp |= u == 0
    return cusp


def _derivative_ranges(
    program: Program, values: list[Array], errors: list[Array], cusp: Array
) -> tuple[list[Interval], list[list[Interval]]]:
    """Ranges of the first and second derivatives of the profile while variables move by errors.

    Not bounded where a variable may cross the edge of a window; 0 where they are infinite at a
    cusp, which the engine leaves out.
    """
    inputs = []
    for v, u, off in zip(program.variables, values, errors, strict=True):
        low = np.maximum(u - off, 0.0) if isinstance(v, Distance | Norm) else u - off
        inputs.append(Interval(low, u + off))
    jet = enclose(program.profile, inputs, 2)

    def full(x: Any) -> Interval:
        x = as_interval(x).known().broadcast(cusp.shape)
        left_out = cusp & ~(np.isfinite(x.lo) & np.isfinite(x.hi))
        return Interval(np.where(left_out, 0.0, x.lo), np.where(left_out, 0.0, x.hi))

    return [full(x) for x in jet.first], [[full(x) for x in row] for row in jet.second]
