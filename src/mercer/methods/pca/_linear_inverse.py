"""The way back by linear regression: data read off coordinates in a principal subspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, as_weights, is_sparse
from mercer.engine import Dense, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import check_same_columns
from mercer.space import Subspace, feature

_BLOCK = 4096  # rows whose coordinates are held at once


@dataclass(frozen=True, eq=False)
class Readout:
    """x = mean + sum_l c_l b_l: the data point of coordinates c in a principal subspace.

    The b_l are those of least squares, b_l = sum_i w_i c_il (x_i - mean) / lambda_l, since the
    coordinates of training points are uncorrelated. On a subspace that is written on the training
    points this is sum_i gamma_i x_i with the coefficients gamma of the element, which sum to one
    (the closed form without regularisation).

    Attributes
    ----------
    mean : array of shape (d,)
    slopes : array of shape (r, d)
    """

    mean: Array = field(repr=False)
    slopes: Array = field(repr=False)

    @classmethod
    def of(cls, plane: Subspace, X: Any, weights: Any = None) -> Readout:
        """Regress the rows of X on their coordinates."""
        kernel, values = plane.origin.kernel, plane.eigenvalues
        if not kernel.domain.is_vector:
            raise InputError(f"points of {kernel!r} are not vectors: use Candidates()")
        assert values is not None
        X = kernel.points(X).array
        check_same_columns(plane.origin.points, X, ("the subspace's points", "X"))
        share = as_weights(weights, n_rows(X))
        mean = np.asarray(X.T @ share, dtype=np.float64).ravel()
        own = plane.directions.points
        if isinstance(plane.directions.coef, Dense) and _same_points(own, X):
            coef = plane.directions.coef.array  # its columns are w c / lambda, and sum to zero
            slopes = np.asarray(X.T @ coef, dtype=np.float64).T - np.outer(coef.sum(axis=0), mean)
            return cls(mean, slopes)
        raw = np.ones(n_rows(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        slopes = np.zeros((plane.dim, X.shape[1]))
        for rows in pieces(n_rows(X), _BLOCK):
            C = np.asarray(plane.coordinates(feature(kernel, X[rows])), dtype=np.float64)
            C *= raw[rows, None]
            slopes += np.asarray(X[rows].T @ C, dtype=np.float64).T - np.outer(C.sum(axis=0), mean)
        return cls(mean, slopes / values[:, None])

    def __call__(self, coordinates: Array) -> Array:
        """The data points of coordinates of shape (b, r), shape (b, d)."""
        return np.asarray(self.mean + coordinates @ self.slopes)


def _same_points(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if is_sparse(a) or is_sparse(b):
        return is_sparse(a) and is_sparse(b) and a.shape == b.shape and (a != b).nnz == 0
    return a.shape == b.shape and np.array_equal(a, b)
