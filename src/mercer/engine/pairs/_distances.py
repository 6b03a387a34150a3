"""Squared distances between two sets of points, tile by tile, without losing digits.

|x - y|^2 = |x|^2 + |y|^2 - 2 <x, y> is one matrix product, but it loses digits if the distance is
small compared with the norms. So points are centred, and a *cancellation bound* decides what else
is needed: if rho is the radius of the queries, the product form is off by about 4 eps rho^2, which
changes the profile by |k'| times that. Distances at which this exceeds the tolerance are recomputed
from differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.engine._sizes import contiguous, pieces

_DIRECT_DIMENSIONS = 3  # up to here differences are as fast as the product form
_ENTRIES = 1 << 18  # coordinates that are recomputed at once: 2 MiB
_BOUND = 4.0  # times eps rho^2: two norms and a product of norms up to rho^2 each, rounded
_MOST_COLUMNS = 1 << 13  # of such a tile: its points are copied, which should take some MiB
_BY_DIFFERENCES = 2  # the form of the distance, as in native/task.hpp
_SAMPLE = 255  # points whose median is the centre; any point among them would do
_MANY = 0.25  # of a tile: more distances than that are recomputed all together

RecomputeRule = Callable[[float, float], float]
"""rule(error, largest): squared distances below it must not have that error."""


class Distances:
    """Tiles of |row - column|^2, rows from Y (queries) and columns from X, dense or CSR."""

    def __init__(self, X: Any, Y: Any, dtype: Any, rule: RecomputeRule) -> None:
        self.X, self.Y, self.dtype = X, Y, np.dtype(dtype)
        self.sparse = is_sparse(X) or is_sparse(Y)
        self.direct = not self.sparse and X.shape[1] <= _DIRECT_DIMENSIONS
        self.recompute_below = 0.0
        if self.direct:
            return
        centre = 0.0 if self.sparse else middle(X)
        narrow = self.dtype == np.float32 and not self.sparse
        for working in [np.float32, np.float64] if narrow else [np.float64]:
            x = _centred(X, centre, working)
            self.Xc, self.x_norms = x
            self.Yc, self.y_norms = x if Y is X else _centred(Y, centre, working)
            radius2 = float(self.y_norms.max())
            # beyond radius^2 the error is relative to the distance
            self.recompute_below = min(rule(bound_on_error(radius2, working), radius2), radius2)
            if self.recompute_below <= 0.0:
                break

    @property
    def plain(self) -> bool:
        """Whether a tile is the product form and nothing else."""
        one_type = not self.direct and self.Xc.dtype == self.dtype
        return one_type and not self.sparse and self.recompute_below <= 0.0

    def tile(self, rows: slice, columns: slice) -> Array:
        if self.direct:
            return _differences(self.Y[rows], self.X[columns], self.dtype)
        u, y_norms, x_norms = self.products(rows, columns)
        u = u.toarray() if is_sparse(u) else np.asarray(u)
        u *= -2.0
        u += y_norms[:, None]
        u += x_norms
        np.maximum(u, 0.0, out=u)
        if self.recompute_below > 0.0:
            Y, X = self.Y[rows], self.X[columns]
            r, c = np.nonzero(u < self.recompute_below)
            if r.size > _MANY * u.size and not self.sparse and X.shape[1] <= _MOST_COLUMNS:
                u = _differences(Y, X, np.float64)
            else:
                for some in pieces(r.size, max(1, _ENTRIES // X.shape[1])):
                    u[r[some], c[some]] = rowwise_distances(Y[r[some]], X[c[some]])
        return np.asarray(u, dtype=self.dtype)

    def products(
        self, rows: slice | Array, columns: slice | Array, out: Any = None
    ) -> tuple[Any, Array, Array]:
        """Inner products of a tile about the centre, and the squared norms of rows and columns."""
        Y, X = self.Yc[rows], self.Xc[columns]
        products = Y @ X.T if out is None else np.matmul(Y, X.T, out=out)
        return products, self.y_norms[rows], self.x_norms[columns]


def middle(X: Array) -> Array:
    """A point in the middle of the data: medians of a sample, which a few outliers do not move."""
    sample = X[:: max(1, len(X) // _SAMPLE)]
    chosen = np.sort(sample, axis=0) if len(sample) > 2 else sample  # faster than np.partition
    return np.asarray(chosen[len(sample) // 2], dtype=np.float64)


def bound_on_error(radius2: float, dtype: Any) -> float:
    """A bound on the error of squared distances in product form, for queries of this radius."""
    return _BOUND * float(np.finfo(dtype).eps) * radius2


def rowwise_distances(Y: Any, X: Any) -> Array:
    """|y_j - x_j|^2 row by row, from differences, in float64."""
    return squared_norms(differences(Y, X))


def differences(Y: Any, X: Any) -> Any:
    return Y - X if is_sparse(Y) or is_sparse(X) else np.subtract(Y, X, dtype=np.float64)


def squared_norms(X: Any) -> Array:
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def sorted_in_space(Y: Array, leaf: int) -> tuple[Array, Array]:
    """A permutation that puts neighbours together, and the points in that order.

    Points are halved along the widest axis, down to leaves.
    """
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
    return order, contiguous(Y[order])


def _centred(X: Any, centre: Any, dtype: Any) -> tuple[Any, Array]:
    points = X.astype(dtype) if is_sparse(X) else np.subtract(X, centre, dtype=dtype)
    return points, squared_norms(points).astype(dtype, copy=False)


def _differences(Y: Array, X: Array, dtype: Any) -> Array:
    """Squared distances by coordinates; a few of float32 are exact enough in float32."""
    if X.shape[1] > _DIRECT_DIMENSIONS and core_allowed():
        rows, columns = (contiguous(Z, dtype=np.float64) for Z in (Y, X))
        u = np.empty((len(Y), len(X)))
        points = core().Program64(rows, [], 0, _BY_DIFFERENCES, instruction_set())
        points.gram(columns, u, 0, len(Y))
        return u
    gap = np.subtract(Y[:, :1], X[:, 0], dtype=dtype)
    u = np.square(gap, out=gap)
    for k in range(1, X.shape[1]):
        gap = np.subtract(Y[:, k, None], X[:, k], dtype=dtype)
        u += np.square(gap, out=gap)
    return np.asarray(u)
