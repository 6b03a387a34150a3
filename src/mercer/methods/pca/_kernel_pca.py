"""Kernel PCA: the principal subspace of the features of points; landmarks (Nystrom); inverses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, Points, as_weights, instance, is_sparse, positive_int
from mercer._chunks import Chunks, sampled
from mercer._frames import Header
from mercer._progress import Callback, report, tracked
from mercer._random import as_generator
from mercer._threads import interruptible, map_threads, single_threaded_blas
from mercer.engine import dense, n_columns, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import EigenPairs, GramOperator, Nystrom
from mercer.linalg._blocked_products import batches
from mercer.linalg._eigen import operator_pairs, signs
from mercer.linalg._inputs import row_weights
from mercer.linalg._nystrom import choose_landmarks, unexplained
from mercer.methods._rows import distinct_rows
from mercer.preimages import Candidates, FittedMap, LearnedMap, LinearInverse, Solver, preimage
from mercer.space import Element, Subspace

_MANY = 10_000  # points whose Gram matrix fits in memory (800 MB) and has all eigenvalues computed
_FIRST = 32  # components that are tried first if a share of the scatter is wanted
_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-12  # of the largest eigenvalue: directions below are rounding errors
_CHOSEN_AMONG = 20_000  # rows that landmarks are chosen among


def kernel_pca(
    kernel: Kernel,
    X: Any,
    n_components: float | None = None,
    *,
    weights: Any = None,
    centred: bool = True,
    n_landmarks: int | None = None,
    rule: str = "leverage",
    method: str | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Subspace:
    """Return the affine subspace mu + span(f_1, ..., f_r) nearest to the features of X.

    With weights w that sum to one, mu = sum_i w_i k(x_i, .), and the f_l are the leading unit
    eigenvectors of the scatter sum_i weights_i (k(x_i, .) - mu) (k(x_i, .) - mu)'. Its eigenvalues
    are those of the centred Gram matrix; divided by sum(weights) they are variances.

    Parameters
    ----------
    kernel : Kernel
        Positive definite; conditionally positive definite is enough if `centred`.
    X : array_like of shape (n, d), or points of the kernel's domain
    n_components : int, float or None
        A number r >= 1; or a share in (0, 1) of the scatter; or None for every direction whose
        eigenvalue is above rounding. There are fewer if the features span fewer dimensions.
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is the same as repeating the row.
    centred : bool, default=True
        False takes the origin 0 of H in place of mu.
    n_landmarks : int, optional
        Work in the span of the features of m landmarks (Nystrom): O(n m^2) operations, n m numbers,
        and a subspace spanned by landmarks. `plane.neglected` is the scatter outside the span.
    rule : {"leverage", "uniform", "kmeans", "pivoted"}
        How landmarks are chosen, see `mercer.linalg.nystrom`.
    method : {None, "dense", "krylov"}
        The eigen-solver without landmarks, see `mercer.linalg.eigenpairs`; None chooses.
    tol, max_iter, random_state, callback
        For `krylov`; `random_state` also draws landmarks.

    Returns
    -------
    Subspace
        With `eigenvalues`, descending; `total`, the whole scatter; and `neglected`, the scatter
        outside the span of the landmarks (0 without landmarks).

    References
    ----------
    B. Scholkopf, A. Smola and K.-R. Muller, Nonlinear component analysis as a kernel eigenvalue
    problem, 1998. P. Honeine and C. Richard, A closed-form solution for the pre-image problem in
    kernel-based machines, 2011, Section 2.2, with the mean added.

    Examples
    --------
    The linear kernel gives principal components, the mean included.

    >>> import mercer as mc
    >>> X = [[1.0, 0.0], [3.0, 0.0], [2.0, 1.0], [2.0, -1.0], [5.0, 0.0]]
    >>> plane = mc.kernel_pca(mc.Linear(), X, 1)
    >>> plane.eigenvalues.round(2), round(plane.total, 2)
    (array([9.2]), 11.2)
    >>> mc.preimage(plane.project(mc.feature(mc.Linear(), [[4.0, 1.0]]))).points.round(2)
    array([[4., 0.]])
    """
    instance(kernel, Kernel, "kernel")
    check_number(n_components)
    X = kernel.points(X)
    if n_landmarks is not None:
        raw = row_weights(weights, X.array)
        scatter = LandmarkScatter.choose(kernel, X, n_landmarks, rule, random_state, raw)
        scatter.add(X, raw)
        return scatter.pca(n_components, centred=centred)[0]
    S = GramOperator(kernel, X, centred=centred, weights=weights)
    n = S.shape[0]
    if n <= _MANY:
        S = S.written()
    most = n - 1 if centred and n > 1 else n

    def pairs(k: int) -> EigenPairs:
        return operator_pairs(S, k, method, tol, max_iter, random_state, callback)

    share = isinstance(n_components, float | np.floating)
    if n_components is None and most > _MANY:
        raise InputError(
            f"all components of more than {_MANY} points need all eigenvalues; give "
            "n_components, or n_landmarks"
        )
    k = most if n_components is None else min(_FIRST if share else int(n_components), most)
    found = pairs(k)
    while share and k < most and found.values.sum() < n_components * S.trace:  # type: ignore[operator]
        k = min(4 * k, most)
        found = pairs(k)
    total = S.trace
    size = float(S.own.sum() if S.weights is None else S.weights @ S.own)
    values, vectors = kept(found.values, found.vectors, n_components, total, size)
    root = np.sqrt(1.0 if S.weights is None else S.weights[:, None])
    # coordinates of the rows up to a factor, the same for a weight of 2 and for a repeated row
    at_rows = vectors / np.where(root > 0, root, np.inf)
    coef = root * vectors * signs(at_rows) / np.sqrt(values)
    w = as_weights(weights, n)
    if centred:
        coef -= np.outer(w, coef.sum(axis=0))
    points = Points(S.points, kernel.domain, X.header)
    origin = Element(kernel, points, w if centred else np.zeros(n))
    directions = Element(kernel, points, coef)
    offset = coef.T @ S.mean if centred else np.zeros(len(values))
    return Subspace(origin, directions, eigenvalues=values, total=total, offset=offset)


@dataclass
class LandmarkScatter:
    """Sums over rows of their features in the span of the landmarks Z, and of the rows themselves.

    The coordinates of a feature in an orthonormal basis of that span are a row of L = k(X, Z) T'^-1
    with k(Z, Z) = T T'. Kernel PCA and the linear inverse need only the sums of L, L'L and L'X.
    """

    low: Nystrom = field(repr=False)
    first: Array = field(repr=False)
    second: Array = field(repr=False)
    rows: Array | None = field(repr=False)
    cross: Array | None = field(repr=False)
    mass: float = 0.0
    own: float = 0.0  # of k(x, x)
    header: Header | None = None

    @classmethod
    def choose(
        cls,
        kernel: Kernel,
        X: Any,
        n_landmarks: int,
        rule: str,
        random_state: Any,
        weights: Any = None,
    ) -> LandmarkScatter:
        """Choose landmarks among at most 20,000 distinct rows drawn at random; no sums yet.

        Rows of weight 0 are left out. The order of the rows and repetitions do not matter.
        """
        rng = as_generator(random_state)
        given = kernel.points(X)
        X = given.array
        if isinstance(X, Chunks):
            X, weights = sampled(X, weights, rng)
        X, _ = distinct_rows(X, weights)
        if n_rows(X) > _CHOSEN_AMONG:
            X = X[np.sort(rng.choice(n_rows(X), _CHOSEN_AMONG, replace=False))]
        report("landmarks")
        points = Points(X, kernel.domain)
        low = choose_landmarks(kernel, points, n_landmarks, rule=rule, random_state=rng)
        if low.rank == 0 and np.any(kernel.diag(X) < 0.0):
            raise InputError(
                "k(x, x) is not above zero at any landmark, so their features span nothing; use "
                'more landmarks, rule="pivoted", or a positive definite kernel'
            )
        r, d = low.rank, n_columns(X)
        rows, cross = (np.zeros(d), np.zeros((r, d))) if kernel.domain.is_vector else (None, None)
        return cls(low, np.zeros(r), np.zeros((r, r)), rows, cross, header=given.header)

    def add(self, X: Any, weights: Any) -> None:
        """Add rows, in memory or in pieces."""
        X = self.low.kernel.points(X).array
        if isinstance(X, Chunks):
            n = len(X.sizes)
            rows = X.each([None] * n) if weights is None else X.zip(weights)
            sums = rows.total(_moments, self.low)
        else:
            sums = _moments(X, weights, self.low)
        for name, change in sums.items():
            setattr(self, name, getattr(self, name) + change)
        if not self.mass > 0.0:
            raise InputError("weights must not all be zero")

    def pca(
        self, n_components: float | None, *, centred: bool = True
    ) -> tuple[Subspace, LinearInverse | None]:
        """Return the principal subspace, and its linear inverse if points are vectors."""
        from scipy.linalg import solve_triangular

        mean = self.first / self.mass if centred else np.zeros_like(self.first)
        scatter = self.second - self.mass * np.outer(mean, mean)
        with single_threaded_blas():
            values, vectors = interruptible(np.linalg.eigh, 0.5 * (scatter + scatter.T))
        values, vectors = values[::-1], vectors[:, ::-1]
        lost = max(self.own - float(np.trace(self.second)), 0.0)
        total = float(values.sum()) + lost
        if n_components is not None and not isinstance(n_components, float | np.floating):
            values, vectors = values[: int(n_components)], vectors[:, : int(n_components)]
        values, vectors = kept(values, vectors, n_components, total, self.own)
        vectors = vectors * signs((self.low.triangle - mean) @ vectors)  # coordinates of landmarks
        right = np.column_stack([vectors, mean])
        with single_threaded_blas():
            coef = solve_triangular(self.low.triangle.T, right, lower=False)
        kernel = self.low.kernel
        Z = Points(self.low.landmarks, kernel.domain, self.header)
        origin, directions = Element(kernel, Z, coef[:, -1]), Element(kernel, Z, coef[:, :-1])
        plane = Subspace(origin, directions, eigenvalues=values, total=total, neglected=lost)
        if self.rows is None or self.cross is None:
            return plane, None
        centre = self.rows / self.mass
        slopes = vectors.T @ (self.cross - np.outer(self.first, centre))
        return plane, LinearInverse(plane, centre, slopes / values[:, None])


def _moments(X: Any, weights: Array | None, low: Nystrom) -> dict[str, Any]:
    """The sums of `LandmarkScatter` over some rows, block by block."""
    r, d = low.rank, n_columns(X)
    w = None if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    out: dict[str, Any] = {
        "mass": 0.0,
        "own": 0.0,
        "first": np.zeros(r),
        "second": np.zeros((r, r)),
    }
    if low.kernel.domain.is_vector:
        out |= {"rows": np.zeros(d), "cross": np.zeros((r, d))}

    def sums(rows: slice) -> dict[str, Any]:
        return _block_moments(X[rows], None if w is None else w[rows], low)

    with single_threaded_blas():
        for batch in tracked(batches(n_rows(X), r), "rows"):
            for found in map_threads(sums, batch):
                for name, change in found.items():
                    out[name] += change
    return out


def _block_moments(X: Any, weights: Array | None, low: Nystrom) -> dict[str, Any]:
    """The sums over rows whose features are in the cache of one thread."""
    kernel, points = low.kernel, Points(X, low.kernel.domain)
    L = weighted = low.map(points)
    own = unexplained(kernel, points.array, L) + np.einsum("ij,ij->i", L, L)
    w = np.ones(len(L)) if weights is None else weights
    if weights is not None:  # L'L, of one array, takes half as many operations as L'(wL)
        root = np.sqrt(w)[:, None]
        L *= root
        weighted = L * root
    out: dict[str, Any] = {"mass": float(w.sum()), "own": float(w @ own)}
    out |= {"first": weighted.sum(axis=0), "second": L.T @ L}
    if kernel.domain.is_vector:
        cross = X.T @ weighted
        cross = np.asarray(cross.toarray() if is_sparse(cross) else cross).T
        out |= {"rows": np.asarray(X.T @ w).ravel(), "cross": cross}
    return out


def check_number(n_components: Any) -> None:
    """Raise unless it is None, an integer >= 1, or a share in (0, 1)."""
    if n_components is None:
        return
    if isinstance(n_components, float | np.floating):
        if not 0.0 < n_components < 1.0:
            raise InputError(
                f"a share n_components must lie in (0, 1), got {float(n_components)!r}; give an "
                "integer for a number of components"
            )
    else:
        positive_int(n_components, "n_components")


def kept(
    values: Array, vectors: Array, n_components: Any, total: float, size: float
) -> tuple[Array, Array]:
    """Return the directions above rounding, and no more than a share needs.

    `size` is the sum of k(x, x): scatter below its rounding error counts as zero. Eigenvalues were
    off by up to 0.3 eps `size` on 3 to 1,000 points, so those that are kept have three digits.
    """
    largest = float(values[0]) if len(values) else 0.0
    rounding = max(len(vectors), 1000) * _EPS * abs(size)
    if total < -rounding:
        raise InputError(
            "the eigenvalues have a negative sum, so the kernel is far from positive definite on "
            "these points; use another kernel"
        )
    if largest <= rounding:
        raise InputError(
            "all points have the same feature to rounding, so there is no direction of scatter; "
            "give at least two different points (more than n_samples = 1), a shorter length scale, "
            "or, for kernels of the inner product, points closer to the origin"
        )
    keep = values > max(_ROUNDING * largest, rounding)
    if isinstance(n_components, float | np.floating):
        before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
        keep &= before < n_components * total
    return values[keep], vectors[:, keep]


def fit_inverse(inverse: Any, plane: Subspace, X: Any, weights: Any = None) -> Solver:
    """Return the solver of an `inverse` parameter, fitted to the training rows.

    None is `LinearInverse`, or `Candidates` for points that are not vectors. A `LearnedMap` is
    fitted to the distinct rows. A solver is returned as it is.
    """
    if inverse is None:
        vector = plane.origin.kernel.domain.is_vector
        return LinearInverse.fit(plane, X, weights) if vector else Candidates()
    if isinstance(inverse, LearnedMap):
        rows = plane.origin.kernel.points(X).array
        rows, weights = sampled(rows, weights) if isinstance(rows, Chunks) else (rows, weights)
        return inverse.fit(plane, distinct_rows(rows, weights)[0])
    if not isinstance(inverse, Solver):
        raise InputError(f"inverse must be None, a solver or a LearnedMap, got {inverse!r}")
    return inverse


def reconstruct(plane: Subspace, solver: Solver, coordinates: Array, start: Any = None) -> Any:
    """Return the data points of coordinates; iterative solvers begin at `start`."""
    if isinstance(solver, LinearInverse):
        return solver.points_of(coordinates)
    if isinstance(solver, FittedMap):
        return solver.predict(coordinates)
    psi = plane.element(coordinates)
    found = preimage(psi, solver, start=start if solver.needs_start else None).points
    return dense(found) if plane.origin.kernel.domain.is_vector else found
