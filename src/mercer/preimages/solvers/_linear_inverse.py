"""Pre-images by linear regression of the data on coordinates in a principal subspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, as_weights, check_same_columns, is_sparse
from mercer.engine import Dense, n_rows, pieces
from mercer.exceptions import InputError
from mercer.preimages._problem import Problem
from mercer.preimages._result import SolverResult
from mercer.preimages._solver import Solver
from mercer.space import Subspace, feature

_BLOCK = 4096  # rows whose coordinates are held at once


@dataclass(frozen=True, eq=False)
class LinearInverse(Solver):
    """x = mean + sum_l c_l b_l: the data point of coordinates c in a principal subspace.

    The b_l are those of least squares, b_l = sum_i w_i c_il (x_i - mean) / lambda_l, since the
    coordinates of the training points are uncorrelated. On a subspace that is written on the
    training points this is sum_i gamma_i x_i with the coefficients gamma of the element, which sum
    to one: the closed form of Honeine and Richard (2011) without regularisation.

    Attributes
    ----------
    plane : Subspace
        Where coordinates are taken. Elements outside it are projected onto it.
    mean : array of shape (d,)
    slopes : array of shape (r, d)
        The b_l.

    See Also
    --------
    LearnedMap : a regression that is not linear.

    References
    ----------
    P. Honeine and C. Richard, A closed-form solution for the pre-image problem in kernel-based
    machines, 2011.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.preimages import LinearInverse
    >>> k, X = mc.Gaussian(1.0), [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
    >>> plane = mc.kernel_pca(k, X)
    >>> way_back = LinearInverse.fit(plane, X)
    >>> mc.preimage(plane.project(mc.feature(k, [[1.0, 1.0]])), way_back).points.round(6)
    array([[1., 1.]])
    """

    plane: Subspace = field(repr=False)
    mean: Array = field(repr=False)
    slopes: Array = field(repr=False)

    @classmethod
    def fit(cls, plane: Subspace, X: Any, weights: Any = None) -> LinearInverse:
        """Regress the rows of X on their coordinates.

        Parameters
        ----------
        plane : Subspace
            From `kernel_pca`, with its eigenvalues.
        X : array_like or CSR matrix of shape (n, d)
            The rows from which the subspace was found.
        weights : array_like of shape (n,), optional
            The weights with which it was found.
        """
        kernel, values = plane.origin.kernel, plane.eigenvalues
        if not kernel.domain.is_vector:
            raise InputError(f"points of {kernel!r} are not vectors: use Candidates()")
        if values is None:
            raise InputError("the subspace has no eigenvalues; take one from kernel_pca")
        points = kernel.points(X)
        X = points.array
        check_same_columns(plane.origin.points, X, ("the subspace's points", "X"))
        mean = np.asarray(X.T @ as_weights(weights, n_rows(X)), dtype=np.float64).ravel()
        own = plane.directions
        if isinstance(own.coef, Dense) and _same_points(own.points, X):
            coef = own.coef.array  # its columns are w c / lambda, and sum to zero
            slopes = np.asarray(X.T @ coef, dtype=np.float64).T - np.outer(coef.sum(axis=0), mean)
            return cls(plane, mean, slopes)
        raw = np.ones(n_rows(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        slopes = np.zeros((plane.dim, X.shape[1]))
        for rows in pieces(n_rows(X), _BLOCK):
            C = np.asarray(plane.coordinates(feature(kernel, points[rows])), dtype=np.float64)
            C *= raw[rows, None]
            slopes += np.asarray(X[rows].T @ C, dtype=np.float64).T - np.outer(C.sum(axis=0), mean)
        return cls(plane, mean, slopes / values[:, None])

    def predict(self, coordinates: Any) -> Array:
        """Return the data points of coordinates of shape (b, r), shape (b, d)."""
        return np.asarray(self.mean + coordinates @ self.slopes)

    def solve(self, problem: Problem, start: Any) -> SolverResult:
        return found_by_regression(self.plane, self.predict, self.mean.size, problem)


def found_by_regression(plane: Subspace, predict: Any, dim: int, problem: Problem) -> SolverResult:
    """Return the data points that a regression on coordinates in a subspace predicts."""
    if problem.dim != dim:
        raise InputError(f"the map was fitted to {dim} features, the elements have {problem.dim}")
    x = predict(plane.coordinates(problem.psi))
    return SolverResult.computed(problem.constraint.project(x, np.arange(problem.batch)))


def _same_points(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if is_sparse(a) or is_sparse(b):
        return is_sparse(a) and is_sparse(b) and a.shape == b.shape and (a != b).nnz == 0
    return a.shape == b.shape and np.array_equal(a, b)
