"""Gram matrices as operators: products with vectors through the engine, without the matrix."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points, as_weights, check_flag
from mercer.engine import Dense, n_rows
from mercer.kernels import Kernel
from mercer.linalg._blocked_products import matmul
from mercer.linalg._inputs import as_columns, double_points, raw_weights


@dataclass(frozen=True, eq=False, repr=False)
class GramOperator:
    """A Gram matrix as a linear operator, weighted and centred.

    S = D^(1/2) (I - 1 w') K (I - w 1') D^(1/2), applied without being formed: K is the Gram matrix
    of the points, D = diag(weights) and w = weights / sum. Without weights D = I; without centring
    the projections are left out. Everything is computed in float64, and products are accurate to
    `options(tolerance=...)`: to rounding, by default.

    Parameters
    ----------
    kernel : Kernel
    points : array_like of shape (n, d), or other points of the kernel's domain
    centred : bool, default=False
        Subtract the (weighted) mean of the features: I - 1 w' instead of I.
    weights : array_like of shape (n,), optional
        Weights >= 0. A weight of 2 is the same as repeating the row: the nonzero eigenvalues
        agree.
    held : bool, default=False
        Keep K in memory from the first product on: n^2 numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> S = mc.linalg.GramOperator(mc.Linear(), [[1.0], [3.0]], centred=True)
    >>> S.shape, S.diag
    ((2, 2), array([1., 1.]))
    >>> S @ np.array([1.0, 0.0])
    array([ 1., -1.])
    """

    kernel: Kernel
    points: Any
    _: KW_ONLY
    centred: bool = False
    weights: Any = None
    held: bool = False

    def __post_init__(self) -> None:
        points = double_points(self.kernel, self.points)
        check_flag(self.centred, "centred")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", raw_weights(self.weights, n_rows(points)))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return n_rows(self.points), n_rows(self.points)

    @cached_property
    def own(self) -> Array:
        """k(x_i, x_i), shape (n,)."""
        return engine.diagonal(self.kernel.program, self.points).astype(np.float64)

    @cached_property
    def diag(self) -> Array:
        """The diagonal, shape (n,); k(x_i, x_i) unless centred or weighted."""
        diagonal = self.own
        if self.centred:
            diagonal = diagonal + (self._share @ self.mean - 2.0 * self.mean)
        return diagonal if self.weights is None else self.weights * diagonal

    @cached_property
    def mean(self) -> Array:
        """The mean of the features, sum_j w_j k(x_j, .), at the points; shape (n,)."""
        return self._sum(self._share[:, None])[:, 0]

    @property
    def trace(self) -> float:
        """The sum of the eigenvalues."""
        return float(self.diag.sum())

    def matmat(self, V: Any) -> Array:
        """Return S V, shape (n, b): one pass over the kernel for all columns together."""
        U, _ = as_columns(V, self.shape[0], "V")
        U = U if self._root is None else self._root[:, None] * U
        U = U - np.outer(self._share, U.sum(axis=0)) if self.centred else U
        return self._out(self._sum(U))

    def __matmul__(self, V: Any) -> Array:
        product = self.matmat(V)
        return product[:, 0] if np.ndim(V) == 1 else product

    def dense(self) -> Array:
        """Return S as a dense matrix, shape (n, n)."""
        S = self._K.copy() if "_K" in self.__dict__ else self._gram()
        if self.centred:
            self.__dict__.setdefault("mean", S @ self._share)  # `diag` and `trace` need it
        self._out(S)
        self._out(S.T)
        return S

    def written(self) -> GramOperator:
        """Return the same operator, `held`."""
        if self.held:
            return self
        return replace(self, points=Points(self.points, self.kernel.domain), held=True)

    def _gram(self) -> Array:
        K = engine.gram(self.kernel.program, self.points, self.points)
        return np.ascontiguousarray(K, dtype=np.float64)

    @cached_property
    def _K(self) -> Array:
        return self._gram()

    @cached_property
    def _share(self) -> Array:
        return as_weights(self.weights, self.shape[0])

    @cached_property
    def _root(self) -> Array | None:
        return None if self.weights is None else np.sqrt(self.weights)

    @np.errstate(over="ignore", invalid="ignore")  # of kernel values that overflow
    def _out(self, Z: Array) -> Array:
        """D^(1/2) (I - 1 w') Z, in place."""
        if self.centred:
            Z -= self._share @ Z
        if self._root is not None:
            Z *= self._root[:, None]
        return Z

    def _sum(self, U: Array) -> Array:
        """K U."""
        if self.held:
            return matmul(self._K, U)
        X = self.points
        value = engine.fields(self.kernel.program, X, X, Dense(U)).value
        return np.array(value, dtype=np.float64, copy=None)

    def __repr__(self) -> str:
        centred = "centred " if self.centred else ""
        weighted = "weighted " if self.weights is not None else ""
        return f"<{centred}{weighted}GramOperator of {self.kernel!r} on {self.shape[0]} points>"
