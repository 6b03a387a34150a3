"""ClosedForm: the closed-form pre-image of Honeine and Richard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, instance, is_sparse, non_negative, positive
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.kernels._parameters import checked
from mercer.linalg._dense import all_pairs
from mercer.preimages._problem import Problem
from mercer.preimages._solver import Solver, SolverResult
from mercer.space import Element

_MANY = 10_000  # points whose Gram matrix is still factorised: 800 MB, minutes
_NEGATIVE = 1e-8  # an eigenvalue below minus this share of the largest is not rounding


@dataclass(frozen=True)
@checked(penalty=non_negative, tol=positive)
class ClosedForm(Solver):
    """Closed form x = X^+ (P - penalty K^+) g, a linear map of the coefficients.

    X holds the points as rows, P = XX' their inner products, K their Gram matrix, g the
    coefficients of the element. A linear map of feature space is fitted that keeps the inner
    products of the points, |P - K A'A K|^2 / 2 + penalty tr(A'A K), and x is the point whose inner
    products with the points agree best, in least squares, with those of the image of the element.
    No iterations, no start, and a batch is one matrix product.

    It is an approximation: nothing is minimised in feature space. Since X^+ P = X', the pre-image
    is X'g - penalty X^+ K^+ g. With penalty 0 it is the combination X'g of the points: exact for
    the linear kernel, and a good start for other solvers where the coefficients sum to one.

    Parameters
    ----------
    penalty : float, default=0.0
        Weight >= 0 of the regulariser. Above 0 the Gram matrix is factorised (n^2 memory and n^3
        time once, up to 10,000 points), and the kernel must be positive definite.
    positive_part : bool, default=False
        False is the published formula, in which P - penalty K^+ may have negative eigenvalues that
        no real map can produce. True takes the true minimiser of the fit, its positive part (on
        the range of K).
    tol : float, default=1e-12
        Eigenvalues of K below tol times the largest count as zero.

    References
    ----------
    P. Honeine and C. Richard, A closed-form solution for the pre-image problem in kernel-based
    machines, 2011, equations (6) to (9). Equation (9) inverts P, which is singular with more points
    than dimensions; the least-squares solution (8) is used, with truncated pseudo-inverses.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [0.5, 0.25, 0.25])
    >>> mc.preimage(psi, mc.ClosedForm()).points
    array([[0.25, 0.5 ]])
    >>> mc.preimage(psi, mc.ClosedForm(penalty=0.1)).points.round(4)
    array([[0.2584, 0.4907]])
    """

    penalty: float = 0.0
    positive_part: bool = False
    tol: float = 1e-12

    def solve(self, problem: Problem, start: Any) -> SolverResult:
        """x_j = M g_j for every element, by one product."""
        M = self.weights(problem.psi)
        x = np.ascontiguousarray(problem.psi.coef.weigh(M).T)
        return SolverResult.computed(problem.constraint.project(x, np.arange(problem.batch)))

    def weights(self, psi: Element) -> Array:
        """M' of shape (n, d), where x = M g for coefficients g."""
        psi = instance(psi, Element, "psi")
        X = dense_points(psi.kernel, psi.support, "ClosedForm")
        if self.penalty == 0.0:
            return X
        name = "ClosedForm with a penalty"
        check_few(len(X), name, "use penalty=0.0, which needs none, or FixedPoint()")
        with single_threaded_blas():  # multithreaded factorisations stall on a busy machine
            values, vectors = gram_eigenpairs(psi.kernel, X, name)
            keep = values > self.tol * values[-1]
            return self._regularised(X, values[keep], vectors[:, keep])

    def _regularised(self, X: Array, d: Array, V: Array) -> Array:
        """The weights with a penalty, K = V diag(d) V'."""
        inverse = np.linalg.pinv(X, rcond=max(X.shape) * np.finfo(np.float64).eps).T
        if not self.positive_part:
            return np.asarray(X - self.penalty * V @ ((V.T @ inverse) / d[:, None]))
        root = V.T @ X  # on the range of K, P is root root'
        values, U = np.linalg.eigh(root @ root.T - np.diag(self.penalty / d))
        W = V @ U[:, values > 0]
        return np.asarray((W * values[values > 0]) @ (W.T @ inverse))


def dense_points(kernel: Kernel, X: Any, name: str) -> Array:
    """Points of a kernel as a float64 matrix, for the solver called `name`."""
    if not kernel.domain.is_vector:
        raise InputError(f"{name} needs points that are vectors; for {kernel!r} use Candidates()")
    points = kernel.points(X).array
    if is_sparse(points):
        raise InputError(f"{name} needs dense points; use X.toarray()")
    return np.asarray(points, dtype=np.float64)


def gram_eigenpairs(kernel: Kernel, X: Array, name: str) -> tuple[Array, Array]:
    """Eigenvalues, increasing, and eigenvectors of a positive definite Gram matrix."""
    values, vectors = all_pairs(np.asarray(kernel(X), dtype=np.float64))
    if values[0] < -_NEGATIVE * max(float(values[-1]), 0.0):
        raise InputError(
            f"{name} needs a positive definite kernel, but the Gram matrix of {kernel!r} has the "
            f"eigenvalue {values[0]:.3g}"
        )
    return values, vectors


def check_few(n: int, name: str, cure: str) -> None:
    if n > _MANY:
        raise InputError(
            f"{name} needs the eigenvalues of the {n} x {n} Gram matrix, at most {_MANY} points; "
            f"{cure}"
        )
