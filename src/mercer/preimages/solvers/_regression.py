"""LinearInverse and LearnedMap: pre-images by regression of data on coordinates in a subspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_points,
    as_weights,
    check_same_columns,
    instance,
    positive,
)
from mercer._threads import map_threads, single_threaded_blas
from mercer.engine import Dense, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel, median_scale
from mercer.kernels._parameters import an_instance, checked, optional
from mercer.preimages._problem import Problem
from mercer.preimages._solver import Solver, SolverResult
from mercer.preimages.solvers._closed_form import check_few, dense_points, gram_eigenpairs
from mercer.space import Element, Subspace, feature
from mercer.space._points import equal_points

_BLOCK = 4096  # rows whose coordinates are held at once
_GRID = 10.0 ** np.arange(2.0, -12.5, -0.5)  # penalties that are tried, as shares of the largest


@dataclass(frozen=True, eq=False)
class LinearInverse(Solver):
    """Linear map from coordinates in a principal subspace to data: x = mean + sum_l c_l b_l.

    The b_l are those of least squares, b_l = sum_i w_i c_il (x_i - mean) / lambda_l, since the
    coordinates of the training points are uncorrelated. On a subspace expanded in the training
    points this is sum_i gamma_i x_i with the coefficients gamma of the element: `ClosedForm`
    without penalty.

    Attributes
    ----------
    plane : Subspace
        Where coordinates are taken. Elements outside it are projected onto it.
    mean : array of shape (d,)
    slopes : array of shape (r, d)
        The b_l.

    Examples
    --------
    >>> import mercer as mc
    >>> k, X = mc.Gaussian(1.0), [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
    >>> plane = mc.kernel_pca(k, X)
    >>> way_back = mc.preimages.LinearInverse.fit(plane, X)
    >>> mc.preimage(plane.project(mc.feature(k, [[1.0, 1.0]])), way_back).points.round(6)
    array([[1., 1.]])
    """

    plane: Subspace = field(repr=False)
    mean: Array = field(repr=False)
    slopes: Array = field(repr=False)

    @classmethod
    def fit(cls, plane: Subspace, X: Any, weights: Any = None) -> LinearInverse:
        """Regress the rows of X on their coordinates in a subspace from `kernel_pca`.

        X and `weights` are those from which the subspace was found.
        """
        kernel, values = instance(plane, Subspace, "plane").origin.kernel, plane.eigenvalues
        if not kernel.domain.is_vector:
            raise InputError(f"points of {kernel!r} are not vectors: use Candidates()")
        if values is None:
            raise InputError("the subspace has no eigenvalues; take one from kernel_pca")
        points = kernel.points(X)
        X = points.array
        check_same_columns(plane.origin.points, X, ("the subspace's points", "X"))
        mean = np.asarray(X.T @ as_weights(weights, n_rows(X)), dtype=np.float64).ravel()
        own = plane.directions
        if isinstance(own.coef, Dense) and equal_points(own.points, X):
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
        C = as_points(coordinates, "coordinates")
        if C.shape[1] != len(self.slopes):
            raise InputError(f"coordinates must have {len(self.slopes)} columns, got {C.shape[1]}")
        return self.points_of(C)

    def points_of(self, C: Array) -> Array:
        """`predict` for coordinates that were computed, so that they need no check."""
        return np.asarray(self.mean + C @ self.slopes)

    def solve(self, problem: Problem, start: Any) -> SolverResult:
        return _solve_by_regression(self.plane, self.points_of, self.mean.size, problem)


@dataclass(frozen=True)
@checked(kernel=optional(an_instance(Kernel)), penalty=optional(positive))
class LearnedMap:
    """Learn the pre-images of one subspace by kernel ridge regression.

    With C the coordinates of the features of training points X in a subspace and l a kernel on
    coordinates, the pre-image of an element with coordinates c is

        x = m + sum_i l(c, c_i) w_i,   w = (L + penalty I)^-1 (X - m),   L_ij = l(c_i, c_j),

    with an intercept m that is not penalised, so that shifted data give shifted pre-images. The
    length scale of l belongs to the subspace, not to the data. The result is a regression;
    nothing is minimised in feature space.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel l; None means a Gaussian whose length scale is the median distance of C.
    penalty : float or None
        Added to the diagonal of L (so the loss is a sum of squares, not a mean). None takes the one
        with the smallest leave-one-out error on a logarithmic grid: with G = (L + penalty I)^-1 and
        g = G1, the error at a point left out is w_i / (G_ii - g_i^2 / 1'G1). Noise in the training
        data that the coordinates reflect reappears in the pre-images; a larger penalty, fewer
        coordinates or clean training points remove it.

    References
    ----------
    G. Bakir, J. Weston and B. Scholkopf, Learning to find pre-images, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> t = np.linspace(0.0, np.pi, 40)
    >>> plane = mc.kernel_pca(k, np.column_stack([np.cos(t), np.sin(t)]), 4)
    >>> way_back = mc.LearnedMap().fit(plane)
    >>> psi = plane.project(mc.feature(k, [[0.7, 0.8]]))
    >>> mc.preimage(psi, way_back).points.round(2)
    array([[0.66, 0.76]])
    """

    kernel: Kernel | None = None
    penalty: float | None = None

    def fit(self, plane: Subspace, points: Any = None) -> FittedMap:
        """Learn the map from a subspace back to the data, at most 10,000 points.

        By default these are the distinct points in which the subspace is expanded.
        """
        measured = instance(plane, Subspace, "plane").origin.kernel
        given = plane.directions.support if points is None else points
        X = dense_points(measured, given, "a learned map")
        X = np.unique(X, axis=0) if points is None else X
        check_few(len(X), "a learned map", "pass a sample of them as `points`")
        C = np.asarray(plane.coordinates(feature(measured, X)), dtype=np.float64)
        kernel = self.kernel
        if kernel is None:
            same = np.array_equal(C.min(axis=0), C.max(axis=0))
            kernel = Gaussian(1.0 if same else median_scale(C))
        middle = X.mean(axis=0)
        with single_threaded_blas():  # threads are for the grid
            ridge = _Ridge(kernel, C, X - middle)
        penalty = ridge.best_penalty() if self.penalty is None else self.penalty
        intercept, weights, error = ridge.fit(penalty)
        fitted = Element(kernel, C, weights)
        return FittedMap(plane, kernel, penalty, error, fitted, middle + intercept)


@dataclass(frozen=True, eq=False)
class FittedMap(Solver):
    """A map from a subspace to the data, fitted by `LearnedMap`; a solver for `preimage`.

    Attributes
    ----------
    plane : Subspace
        Where coordinates are taken. Elements outside it are projected onto it.
    kernel : Kernel
        The kernel on coordinates.
    penalty : float
    loo_error : float
        Root of the mean squared leave-one-out error; NaN if there is only one training point.
    map : Element
        The batch of d functions of the coordinates, one per column of the data.
    intercept : array of shape (d,)

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Linear()
    >>> plane = mc.Subspace.span(mc.mean_embedding(k, [[1.0], [2.0]]), mc.feature(k, [[1.0]]))
    >>> way_back = mc.LearnedMap(mc.Linear(), penalty=1e-9).fit(plane, [[0.0], [1.0], [5.0]])
    >>> way_back.predict([[2.0]]).round(6)
    array([[3.5]])
    """

    plane: Subspace
    kernel: Kernel
    penalty: float
    loo_error: float
    map: Element = field(repr=False)
    intercept: Array = field(repr=False)

    def predict(self, coordinates: Any) -> Array:
        """Return the data points of coordinates of shape (b, r), shape (b, d)."""
        return np.asarray(self.intercept + self.map(coordinates))

    def solve(self, problem: Problem, start: Any) -> SolverResult:
        return _solve_by_regression(self.plane, self.predict, self.intercept.size, problem)


def _solve_by_regression(plane: Subspace, predict: Any, dim: int, problem: Problem) -> SolverResult:
    if problem.dim != dim:
        raise InputError(f"the map was fitted to {dim} features, the elements have {problem.dim}")
    x = predict(plane.coordinates(problem.psi))
    return SolverResult.computed(problem.constraint.project(x, np.arange(problem.batch)))


class _Ridge:
    """Ridge regression with an intercept, for every penalty from one eigendecomposition."""

    def __init__(self, kernel: Kernel, C: Array, Y: Array) -> None:
        values, V = gram_eigenpairs(kernel, C, "a learned map")
        self.values = np.maximum(values, 0.0)  # increasing
        self.vectors, self.targets, self.ones = V, V.T @ Y, V.sum(axis=0)

    def fit(self, penalty: float) -> tuple[Array, Array, float]:
        """The intercept m = 1'GY / 1'G1, the weights G(Y - 1m), the leave-one-out error."""
        G = 1.0 / (self.values + penalty)
        total = G @ self.ones**2
        m = (G * self.ones) @ self.targets / total
        weights = self.vectors @ (G[:, None] * (self.targets - np.outer(self.ones, m)))
        if len(weights) == 1:
            return m, weights, float("nan")
        diagonal = self.vectors**2 @ G - (self.vectors @ (G * self.ones)) ** 2 / total
        error = np.sqrt(np.mean(np.sum(weights**2, axis=1) / diagonal**2))
        return m, weights, float(error)

    def best_penalty(self) -> float:
        """The penalty of the grid with the smallest error; the largest one at ties."""
        top = max(float(self.values[-1]), np.finfo(np.float64).tiny)
        grid = [float(share * top) for share in _GRID]
        errors = map_threads(lambda penalty: self.fit(penalty)[2], grid)
        return grid[int(np.argmin(errors))]
