"""How wrong rounding can have made the derivatives of an element: bounds, row by row.

The engine makes sum_i a_i k_v D_v (k_v a derivative of the profile, D_v the gradient of a variable)
and its second-order kin from n products, in coordinates about the middle of the data. With
e = (n + d + 2000) eps such a sum is off by at most e times the sum of the sizes of its parts (2000
is for exp(t), whose error is that of t), and by what errors in the distances or inner products do
to the profile, which is found by moving them there and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, is_sparse
from mercer._threads import map_threads
from mercer.engine import (
    Coef,
    Distance,
    Dot,
    Gap,
    Jet,
    Norm,
    Program,
    Var,
    n_columns,
    n_rows,
    pieces,
)
from mercer.rigor._derivative_bounds import coefficient_sizes, mapped, spectral_norms
from mercer.rigor._suprema import gates, largest_derivatives
from mercer.space import Element

EPS = float(np.finfo(float).eps)
_TILE = 1 << 16  # pairs of one tile
_EXACT_BELOW = 1e-7  # of the squared radius: where slopes are infinite, closer ones are differences


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over the points at each query, shape (m,), and bounds on errors.

    Attributes
    ----------
    slope : sum of a_i k'
    rising, falling : sums of a_i k'' w_i over positive and over negative terms, with w_i = u_i for
        a squared distance and |x_i|^2 for an inner product
    slope_error, curvature_error : bounds on the errors of slope, and of rising and falling
    gradient_error, hessian_error : bounds on the errors of the engine's gradient and Hessian, in
        the Euclidean and in the spectral norm
    """

    slope: Array
    rising: Array
    falling: Array
    slope_error: Array
    curvature_error: Array
    gradient_error: Array
    hessian_error: Array


def row_sums(program: Program, X: Any, Y: Any, coef: Coef, paired: bool) -> RowSums:
    """Sum over all points, tile by tile: of one element, or of element j at query j."""
    measured = [_Measured.of(v, program, X, Y) for v in program.variables]
    n, m = n_rows(X), n_rows(Y)
    out = np.zeros((7, m))
    e = (n + n_columns(Y) + 2000) * EPS
    height = max(1, min(m, _TILE // min(n, 512)))

    def add(rows: slice) -> None:
        for columns in pieces(n, max(1, _TILE // height)):
            A = coef.tile(columns, rows if paired else slice(0, 1)).T.astype(np.float64)
            if A.any():
                A = np.broadcast_to(A, (rows.stop - rows.start, A.shape[1]))
                out[:, rows] += _tile_sums(program, measured, X, Y, A, rows, columns, e)

    map_threads(add, list(pieces(m, height)))
    return RowSums(*np.where(np.isnan(out), np.inf, out))


def supremum_errors(psi: Element, Y: Array) -> tuple[Array, Array] | None:
    """Bounds on the errors of gradient and Hessian without a pass over the points.

    For completely monotone profiles with k''(0) finite, from the largest k', k'' and r k''; None
    for others. The size of one element, or of element j at query j.
    """
    kernel = psi.kernel
    if kernel.program.kind != "radial" or not kernel.flags.completely_monotone:
        return None
    first, second, moved = largest_derivatives(kernel.program.profile)
    if not np.isfinite(second):
        return None
    (v,) = kernel.program.variables
    at = _Measured.of(v, kernel.program, psi.points, Y)
    size, radius = coefficient_sizes(psi), at.queries + at.farthest
    e, du = (n_rows(psi.points) + at.dim + 2000) * EPS, (at.dim + 8) * EPS * radius**2
    summed = e * (2.0 * first + second * (2.0 * radius) ** 2)
    hessian = size * at.norm**2 * (summed + 10.0 * du * second)
    shifted = 4.0 * du * (moved + second * np.sqrt(3.0 * du))
    gradient = size * at.norm * (e * first * 2.0 * radius + shifted)
    return gradient, hessian


@dataclass(frozen=True, eq=False)
class _Measured:
    """One variable of a program: bounds on its errors and on its derivatives in the query."""

    kind: Any
    norm: float  # of the map A
    x: Any  # A x_i, about the middle for distances
    y: Any
    points: Array  # their lengths
    queries: Array
    dim: int
    exact_near: bool

    @classmethod
    def of(cls, v: Any, program: Program, X: Any, Y: Any) -> _Measured:
        """Of the points X and queries Y."""
        sparse = is_sparse(X) or is_sparse(Y)
        middle = X.mean(axis=0) if isinstance(v, Distance) and not sparse else 0.0
        x, y = (mapped(v.maps, Z if sparse else Z - middle) for Z in (X, Y))
        norm = spectral_norms(Program((v,), Var(0)), n_columns(Y))[0]
        sizes = _lengths(x), _lengths(y)
        return cls(v, norm, x, y, *sizes, n_columns(Y), not program.is_smooth)

    @property
    def farthest(self) -> float:
        """max_i |A x_i|."""
        return float(self.points.max())

    @property
    def turns(self) -> float:
        """The second derivative of the variable itself, in the spectral norm."""
        moves = isinstance(self.kind, Distance) or getattr(self.kind, "of", "") == "row"
        return 2.0 * self.norm**2 if moves else 0.0

    def values(self, X: Any, Y: Any, rows: slice, columns: slice) -> Array:
        """The variable for all pairs of some queries and points."""
        if isinstance(self.kind, Distance) and not self.exact_near:
            product = self.y[rows] @ self.x[columns].T
            product = product.toarray() if is_sparse(product) else product
            squares = self.queries[rows, None] ** 2 + self.points[None, columns] ** 2
            return np.asarray(np.maximum(squares - 2.0 * product, 0.0))
        node = Var(0, nonnegative=not isinstance(self.kind, Dot | Gap))
        return engine.gram(Program((self.kind,), node), Y[rows], X[columns])

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
    measured: list[_Measured],
    X: Any,
    Y: Any,
    A: Array,
    rows: slice,
    columns: slice,
    e: float,
) -> Array:
    """The seven sums of one tile, shape (7, r)."""
    values = [at.values(X, Y, rows, columns) for at in measured]
    errors = [at.error(u, rows, columns) for at, u in zip(measured, values, strict=True)]
    cusp = _cusps(program, values, A.shape)
    jet = _jet(program, values, cusp)
    spread = _spread(program, values, errors, jet, cusp)
    g = range(len(measured))
    D = [measured[v].gradient(values[v], errors[v], rows, columns) for v in g]
    B = [at.parts(rows) for at in measured]
    size = np.abs(A)
    gradient, hessian = np.zeros(A.shape), np.zeros(A.shape)
    for v in g:
        first = np.abs(jet.first[v])
        gradient += e * first * B[v] + spread.first[v] * D[v]
        hessian += measured[v].turns * (e * first + spread.first[v])
        for w in g:
            second = np.abs(jet.second[v][w])
            hessian += e * second * B[v] * B[w] + spread.second[v][w] * D[v] * D[w]
    out = np.zeros((7, A.shape[0]))
    if len(measured) == 1:
        (at,), (u,) = measured, values
        weight = u if isinstance(at.kind, Distance) else at.points[None, columns] ** 2
        slope, bend = A * jet.first[0], A * jet.second[0][0] * weight
        out[0], out[1] = slope.sum(axis=1), np.maximum(bend, 0.0).sum(axis=1)
        out[2] = np.minimum(bend, 0.0).sum(axis=1)
        out[3] = (e * np.abs(slope) + size * spread.first[0]).sum(axis=1)
        if any(program.cusps):  # there is no slope
            out[3] += np.where((cusp & (A != 0)).any(axis=1), np.inf, 0.0)
        grown = weight + errors[0] if isinstance(at.kind, Distance) else weight
        out[4] = (e * np.abs(bend) + size * spread.second[0][0] * grown).sum(axis=1)
        if isinstance(at.kind, Distance):
            out[4] += (size * np.abs(jet.second[0][0]) * errors[0]).sum(axis=1)
    for i, bound in ((5, gradient), (6, hessian)):
        out[i] = (size * np.where(size > 0, bound, 0.0)).sum(axis=1)
    return out


def _cusps(program: Program, values: list[Array], shape: tuple[int, ...]) -> Array:
    """Pairs that coincide where derivatives are infinite: the engine leaves their terms out."""
    cusp = np.zeros(shape, dtype=bool)
    for v, u in zip(program.variables, values, strict=True):
        if isinstance(v, Distance) and not program.is_smooth:
            cusp |= u == 0
    return cusp


def _jet(program: Program, values: list[Array], cusp: Array) -> Jet:
    """The profile with all derivatives written out; 0 where they are infinite at a cusp."""
    with np.errstate(all="ignore"):
        jet = engine.evaluate(program.profile, values, 2)

    def full(a: Any) -> Array:
        wide = np.broadcast_to(np.asarray(a, dtype=np.float64), cusp.shape)
        return np.where(cusp & ~np.isfinite(wide), 0.0, wide)

    second = tuple(tuple(map(full, row)) for row in jet.second)
    return Jet(full(jet.value), tuple(map(full, jet.first)), second)


def _spread(
    program: Program, values: list[Array], errors: list[Array], jet: Jet, cusp: Array
) -> Jet:
    """How far the derivatives move when each variable moves by its error.

    Infinite where that may cross the edge of a window, on which there are none.
    """
    g = range(len(values))
    first = [np.zeros(cusp.shape) for _ in g]
    second = [[np.zeros(cusp.shape) for _ in g] for _ in g]
    for v in g:
        for sign in (-1.0, 1.0):
            moved = values[v] + sign * errors[v]
            if isinstance(program.variables[v], Distance | Norm):
                moved = np.maximum(moved, 0.0)
            inputs = [moved if w == v else values[w] for w in g]
            other = _jet(program, inputs, cusp)
            for gate in gates(program.profile):
                sides = [engine.evaluate(gate, at).value >= 0 for at in (values, inputs)]
                crossing = np.where(sides[0] != sides[1], np.inf, 0.0)
                first[v], second[v][v] = first[v] + crossing, second[v][v] + crossing
            for a in g:
                first[a] += np.abs(other.first[a] - jet.first[a])
                for b in g:
                    second[a][b] += np.abs(other.second[a][b] - jet.second[a][b])
    return Jet(0.0, tuple(first), tuple(map(tuple, second)))


def _lengths(Z: Any) -> Array:
    """|z| of each row."""
    squared = Z.multiply(Z).sum(axis=1) if is_sparse(Z) else np.sum(Z * Z, axis=1)
    return np.sqrt(np.asarray(squared, dtype=np.float64).reshape(-1))
