"""Distances: pre-images by multidimensional scaling (Kwok and Tsang), and Procrustes alignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points, positive, positive_int
from mercer._threads import map_threads
from mercer.engine import Expr, apply_all, column_rank, pieces, profile_at
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.kernels._parameters import checked, optional
from mercer.linalg._inputs import require_definite
from mercer.preimages._problem import Problem
from mercer.preimages._solver import Solver, SolverResult
from mercer.preimages.solvers._closed_form import dense_points
from mercer.space import Element

_VALUES = 1 << 20  # values of a batch, or coordinates of neighbours, that are held at once
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
@checked(neighbors=optional(positive_int), tol=positive)
class Distances(Solver):
    """Find the point whose distances to the points of psi match those in feature space.

    For a radial kernel k(x, y) = p(|x - y|^2), the feature of x is as far from the features of the
    points as psi is if and only if

        p(|x - x_i|^2) = psi(x_i) + (p(0) - |psi|^2) / 2   for every i.

    The squared distances d_i^2 that solve this come from inverting the profile, and x from them by
    classical multidimensional scaling: with the mean m of the points, the decomposition W S V' of
    the centred points (as rows) and d0_i = |x_i - m|,

        x = m + V S^-1 W' (d0^2 - d^2) / 2.

    If psi is the feature of a point in the affine hull of the points this is that point; otherwise
    an approximation. A value above p(0) gives the distance 0. For other values that give no
    distance (outside the range of the profile), the largest known distance of that element is used.

    Parameters
    ----------
    neighbors : int or None, default=10
        How many of the nearest points are used for each element. None uses all of them, which is
        often much worse: far distances say little about x.
    tol : float, default=1e-8
        Directions in which the points spread less than tol times the widest are left out, because
        small errors of distances would become large errors of x.

    Notes
    -----
    Needs a radial positive definite kernel whose profile decreases strictly, and that depends on
    all coordinates.

    References
    ----------
    J. T. Kwok and I. W. Tsang, The pre-image problem in kernel methods, IEEE Transactions on Neural
    Networks 15, 2004. Here the profile is inverted numerically, which works for any radial kernel.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> plane = mc.kernel_pca(k, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> psi = plane.project(mc.feature(k, [[0.4, 0.3]]))
    >>> mc.preimage(psi, mc.Distances()).points.round(2)
    array([[0.4 , 0.31]])
    """

    neighbors: int | None = 10
    tol: float = 1e-8

    def solve(self, problem: Problem, start: Any) -> SolverResult:
        psi = problem.psi
        X = dense_points(psi.kernel, psi.support, "Distances")
        profile = InverseProfile.of(psi.kernel)
        seen, back = _mapped_points(psi.kernel, X)
        norm = np.asarray(psi.norm(), dtype=float)
        if np.isnan(norm).any():
            raise InputError(
                "Distances needs elements with a norm: the kernel is not positive definite here"
            )
        offset = 0.5 * (profile.top - norm**2)  # what is added to psi(x_i)
        count = min(self.neighbors or len(X), len(X))
        value, index = _nearest(psi, count)
        u = profile(value + offset[:, None])
        far = np.max(np.where(np.isnan(u), 0.0, u), axis=1, keepdims=True)
        u = np.where(np.isnan(u), far, u)

        def scaled(part: slice) -> Array:
            return _points_from_distances(seen[index[part]], u[part], self.tol)

        parts = pieces(len(psi), max(1, min(256, _VALUES // (count * seen.shape[1]))))
        x = np.concatenate(map_threads(scaled, list(parts)))
        x = x if back is None else x @ back
        return SolverResult.computed(problem.constraint.project(x, np.arange(problem.batch)))


@dataclass(frozen=True, eq=False)
class InverseProfile:
    """The inverse of a strictly decreasing profile p, on a table that is refined to rounding."""

    profile: Expr
    top: float  # p(0)
    floor: float  # values at or below are too near the limit of p, or beyond it, to be inverted
    grid: Array = field(repr=False)
    values: Array = field(repr=False)

    @classmethod
    def of(cls, kernel: Kernel) -> InverseProfile:
        """Tabulate the profile of a radial kernel over all distances, or raise."""
        if kernel.program.kind != "radial" or not kernel.program.has_derivatives:
            raise InputError(
                f"Distances needs a radial kernel, a profile of one distance; {kernel!r} is not: "
                "use another solver"
            )
        require_definite(kernel, "Distances")
        profile = kernel.program.profile
        grid = np.concatenate([[0.0], 2.0 ** np.arange(-300.0, 300.0, 0.125)])
        (values,) = profile_at(profile, grid)
        finite = np.isfinite(values)
        last = len(grid) if finite.all() else int(np.argmin(finite))
        grid, values = grid[:last], values[:last]
        slack = 8.0 * _EPS * abs(values[0])
        if values[0] - values[-1] <= slack or (np.diff(values) > slack).any():
            raise InputError(
                f"the profile of {kernel!r} does not decrease strictly, so distances cannot be "
                "read off it; use another solver"
            )
        values = np.minimum.accumulate(values)
        return cls(profile, float(values[0]), float(values[-1] + slack), grid, values)

    def __call__(self, t: Array) -> Array:
        """The squared distances u with p(u) = t; 0 for t >= p(0), NaN beyond the range."""
        from scipy.optimize.elementwise import find_root

        out = np.where(t >= self.top, 0.0, np.nan)
        inside = (t < self.top) & (t > self.floor)
        wanted = t[inside]
        # the last entry of the table that is still above t, and the next
        low = np.searchsorted(-self.values, -wanted, side="left") - 1
        a, b = self.grid[low], self.grid[low + 1]
        if wanted.size:
            found = find_root(self._excess, (a, b), args=(wanted,), tolerances={"xrtol": _EPS})
            out[inside] = found.x
        return out

    def _excess(self, u: Array, t: Array) -> Array:
        return profile_at(self.profile, u)[0] - t


def _mapped_points(kernel: Kernel, X: Array) -> tuple[Array, Array | None]:
    """The points Ax that the kernel measures, and the matrix that maps back; None if A = I."""
    maps = kernel.program.maps
    if not maps:
        return X, None
    seen, unit = apply_all(maps, X), apply_all(maps, np.eye(X.shape[1]))
    if column_rank(unit.T) < X.shape[1]:
        raise InputError(
            f"{kernel!r} does not see all coordinates, so no distance determines them; use a "
            "solver with a start, or coordinates that are fixed"
        )
    length = np.linalg.norm(unit, axis=1, keepdims=True)  # columns may have different units
    return seen, np.linalg.pinv(unit / length) / length.T


def _nearest(psi: Element, count: int) -> tuple[Array, Array]:
    """The `count` largest values psi(x_i) per element, and where: shapes (b, count)."""
    b = len(psi)
    best, where = np.empty((b, 0)), np.empty((b, 0), dtype=np.intp)
    for rows in pieces(len(psi.points), max(16, _VALUES // b)):
        value = np.asarray(psi.fields(psi.points[rows]).value, dtype=float).T
        index = np.broadcast_to(np.arange(rows.start, rows.stop), value.shape)
        best = np.concatenate([best, value], axis=1)
        where = np.concatenate([where, index], axis=1)
        if best.shape[1] > count:
            top = np.argpartition(-best, count - 1, axis=1)[:, :count]
            best = np.take_along_axis(best, top, axis=1)
            where = np.take_along_axis(where, top, axis=1)
    return best, where


def _points_from_distances(Y: Array, u: Array, tol: float) -> Array:
    """x from squared distances u (b, k) to neighbours Y (b, k, p)."""
    mean = Y.mean(axis=1)
    gap = Y - mean[:, None]
    left, s, right = np.linalg.svd(gap, full_matrices=False)
    with np.errstate(divide="ignore"):
        inverse = np.where(s > tol * s.max(axis=1, keepdims=True), 1.0 / s, 0.0)
    along = np.einsum("bkr,bk->br", left, np.sum(gap**2, axis=2) - u)
    return np.asarray(mean + 0.5 * np.einsum("br,brp->bp", inverse * along, right))


@dataclass(frozen=True, eq=False)
class Alignment:
    """The map x -> scale x R + shift of rows that `procrustes` found.

    Attributes
    ----------
    rotation : ndarray of shape (d, d)
        R, orthogonal.
    shift : ndarray of shape (d,)
        The shift.
    scale : float
        The scale.
    residual : float
        The root of the sum of squared distances that remain.

    Examples
    --------
    >>> import mercer as mc
    >>> A, B = [[0.0, 0.0], [1.0, 0.0]], [[2.0, 1.0], [4.0, 1.0]]
    >>> fit = mc.preimages.procrustes(A, B, scale=True)
    >>> fit.apply([[0.5, 0.0]]).round(12)
    array([[3., 1.]])
    """

    rotation: Array
    shift: Array
    scale: float
    residual: float

    def apply(self, X: Any) -> Array:
        """Move the rows of X."""
        X = as_dense_points(X, "X")
        if X.shape[1] != self.shift.size:
            raise InputError(f"X has {X.shape[1]} features, the alignment {self.shift.size}")
        return np.asarray(self.scale * (X @ self.rotation) + self.shift)


def procrustes(A: Any, B: Any, *, scale: bool = False) -> Alignment:
    """Procrustes alignment: the R, c and t that minimise sum_i |c a_i R + t - b_i|^2.

    R is a rotation or a reflection: with centred points and A'B = U S V', R = U V' and
    c = tr(S) / |A|^2. Points known only by their distances, such as an embedding, are determined up
    to such a motion.

    Parameters
    ----------
    A, B : array_like of shape (n, d)
        Row i of A is matched with row i of B.
    scale : bool, default=False
        Whether to scale too; otherwise c = 1.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> import mercer as mc
    >>> A = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    >>> B = [[5.0, 5.0], [5.0, 6.0], [3.0, 5.0]]
    >>> fit = mc.preimages.procrustes(A, B)
    >>> fit.apply(A).round(12), round(fit.residual, 12)
    (array([[5., 5.],
           [5., 6.],
           [3., 5.]]), 0.0)
    """
    from scipy.linalg import orthogonal_procrustes

    A, B = as_dense_points(A, "A"), as_dense_points(B, "B")
    if A.shape != B.shape:
        raise InputError(f"A and B must have the same shape, got {A.shape} and {B.shape}")
    a, b = A.mean(axis=0), B.mean(axis=0)
    R, total = orthogonal_procrustes(A - a, B - b)
    size = float(np.sum((A - a) ** 2))
    c = float(total) / size if scale and size > 0 else 1.0
    left = c * ((A - a) @ R) - (B - b)
    return Alignment(R, b - c * (a @ R), c, float(np.linalg.norm(left)))
