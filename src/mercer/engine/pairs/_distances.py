"""Squared distances between two sets of points, tile by tile, without losing digits.

|x - y|^2 = |x|^2 + |y|^2 - 2 <x, y> is one matrix product, but it loses digits if the distance is
small compared with the norms. So points are centred, and a *cancellation bound* decides what else
is needed: if rho is the radius of the queries, the product form is off by about 4 eps rho^2, which
changes the profile by |k'| times that. Distances at which this exceeds the tolerance are recomputed
from differences. If that would be many of them, the queries are sorted in space, and each tile of
neighbours is centred on its own mean, so that rho is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse

DIRECT_DIMENSIONS = 3  # up to here differences are as fast as the product form
_ENTRIES = 1 << 18  # coordinates that are recomputed at once: 2 MiB
_BOUND = 4.0  # times eps rho^2: two norms and a product of norms up to rho^2 each, rounded
_MANY = 1e-3  # of rho^2: more distances than that below are not recomputed one by one

RecomputeRule = Callable[[float, float], float]
"""rule(error, largest): squared distances below it must not have that error."""


class Distances:
    """Tiles of |row - column|^2, rows from Y (queries) and columns from X (points).

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), dense or CSR
    dtype : the type of the tiles, float32 or float64
    rule : see `RecomputeRule`
    """

    def __init__(self, X: Any, Y: Any, dtype: Any, rule: RecomputeRule) -> None:
        self.X, self.Y, self.dtype, self.rule = X, Y, np.dtype(dtype), rule
        self.sparse = is_sparse(X) or is_sparse(Y)
        self.local = False
        self.direct = not self.sparse and X.shape[1] <= DIRECT_DIMENSIONS
        self.working: np.dtype[Any] = self.dtype
        self.recompute_below = 0.0
        if not self.direct:
            self._centre()

    def _centre(self) -> None:
        """Centre once on the mean of the points and see whether the bound holds."""
        centre = 0.0 if self.sparse else np.mean(self.X, axis=0, dtype=np.float64)
        self.working = np.dtype(np.float64) if self.sparse else self.dtype
        self._prepare(centre)
        if self.recompute_below > 0.0 and self.working == np.float32:
            self.working = np.dtype(np.float64)
            self._prepare(centre)
        if not self.sparse and self.recompute_below > _MANY * self.radius2 > 0.0:
            self.local = True

    def _prepare(self, centre: Any) -> None:
        self.Xc = _centred(self.X, centre, self.working)
        self.Yc = self.Xc if self.Y is self.X else _centred(self.Y, centre, self.working)
        self.radius2 = float(self.Yc.norms.max())
        self.recompute_below = self._below(self.radius2)

    def _below(self, radius2: float) -> float:
        """Distances below this are recomputed; beyond radius^2 the error is relative to them."""
        error = bound_on_error(radius2, self.working)
        return min(self.rule(error, radius2), radius2) if radius2 > 0.0 else 0.0

    def order(self, tile_rows: int) -> Array | None:
        """The order in which queries must be cut into tiles; None for the order they have."""
        return spatial_order(self.Y, tile_rows) if self.local else None

    def tile(self, rows: Any, columns: slice) -> Array:
        """The squared distances of some queries to some points."""
        if self.direct:
            return _differences(self.Y[rows], self.X[columns], self.dtype)
        if self.local:
            return self._local_tile(rows, columns)
        u = _product_form(self.Yc.part(rows), self.Xc.part(columns))
        self._recompute(u, rows, columns, self.recompute_below)
        return u.astype(self.dtype, copy=False)

    @property
    def plain(self) -> bool:
        """Whether a tile is the product form about one centre and nothing else."""
        return not (self.direct or self.local or self.sparse) and self.recompute_below <= 0.0

    def products(self, rows: Any, columns: slice, out: Any = None) -> tuple[Array, Array, Array]:
        """Inner products of a tile about the centre, and the squared norms of rows and columns."""
        Y, X = self.Yc.part(rows), self.Xc.part(columns)
        return np.matmul(Y.points, X.points.T, out=out), Y.norms, X.norms

    def _local_tile(self, rows: Any, columns: slice) -> Array:
        centre = np.mean(self.Y[rows], axis=0, dtype=np.float64)
        Y = _centred(self.Y[rows], centre, self.working)
        u = _product_form(Y, _centred(self.X[columns], centre, self.working))
        self._recompute(u, rows, columns, self._below(float(Y.norms.max())))
        return u.astype(self.dtype, copy=False)

    def _recompute(self, u: Array, rows: Any, columns: slice, below: float) -> None:
        if below <= 0.0:
            return
        r, c = np.nonzero(u < below)
        Y, X = self.Y[rows], self.X[columns]
        chunk = max(1, _ENTRIES // X.shape[1])
        for start in range(0, r.size, chunk):
            i, j = r[start : start + chunk], c[start : start + chunk]
            u[i, j] = rowwise_distances(Y[i], X[j])


def bound_on_error(radius2: float, dtype: Any) -> float:
    """A bound on the error of squared distances in product form, for queries of this radius."""
    return _BOUND * float(np.finfo(dtype).eps) * radius2


def rowwise_distances(Y: Any, X: Any) -> Array:
    """|y_j - x_j|^2 row by row, from differences, in float64."""
    if is_sparse(Y) or is_sparse(X):
        gap = Y - X
        if is_sparse(gap):
            return np.asarray(gap.multiply(gap).sum(axis=1), dtype=np.float64).ravel()
        gap = np.asarray(gap)
    else:
        gap = np.subtract(Y, X, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", gap, gap))


def squared_norms(X: Any) -> Array:
    """|x_i|^2 in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def spatial_order(Y: Array, leaf: int) -> Array:
    """A permutation that puts neighbours together: halve along the widest axis down to leaves."""
    order = np.arange(Y.shape[0])
    pending = [(0, Y.shape[0])]
    while pending:
        start, stop = pending.pop()
        if stop - start <= leaf:
            continue
        part = Y[order[start:stop]]
        axis = int(np.argmax(part.max(axis=0) - part.min(axis=0)))
        # cut at a multiple of the leaf size, so that tiles and leaves coincide
        half = leaf * max(1, round((stop - start) / (2 * leaf)))
        order[start:stop] = order[start:stop][np.argpartition(part[:, axis], half - 1)]
        pending += [(start, start + half), (start + half, stop)]
    return order


@dataclass(frozen=True)
class _Centred:
    """Centred points and their squared norms, in the working type."""

    points: Any
    norms: Array

    def part(self, rows: Any) -> _Centred:
        return _Centred(self.points[rows], self.norms[rows])


def _centred(X: Any, centre: Any, dtype: Any) -> _Centred:
    points = X.astype(dtype) if is_sparse(X) else np.subtract(X, centre, dtype=dtype)
    return _Centred(points, squared_norms(points).astype(dtype, copy=False))


def _product_form(Y: _Centred, X: _Centred) -> Array:
    u = Y.points @ X.points.T
    u = u.toarray() if is_sparse(u) else np.asarray(u)
    u *= -2.0
    u += Y.norms[:, None]
    u += X.norms
    return np.asarray(np.maximum(u, 0.0, out=u))


def _differences(Y: Array, X: Array, dtype: Any) -> Array:
    """Squared distances by coordinates; differences of float32 are exact enough in float32."""
    gap = np.subtract(Y[:, :1], X[:, 0], dtype=dtype)
    u = np.square(gap, out=gap)
    for k in range(1, X.shape[1]):
        gap = np.subtract(Y[:, k, None], X[:, k], dtype=dtype)
        u += np.square(gap, out=gap)
    return np.asarray(u)
