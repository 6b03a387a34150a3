"""Kernel PCA on landmarks (Nystrom), from sums over rows that can be added batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array, Points, is_sparse
from mercer._random import as_generator
from mercer._threads import single_threaded_blas
from mercer.engine import n_columns, n_rows, pieces
from mercer.kernels import Kernel
from mercer.linalg import Nystrom, nystrom
from mercer.methods._rows import distinct_rows
from mercer.methods.pca._components import kept, signs
from mercer.preimages import LinearInverse
from mercer.space import Element, Subspace

_CHOSEN_AMONG = 20_000  # rows that landmarks are chosen among
_BLOCK = 8192  # rows whose features are held at once


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

    @classmethod
    def choose(
        cls,
        kernel: Kernel,
        X: Any,
        n_landmarks: int,
        rule: str,
        random_state: Any,
        weights: Array | None = None,
    ) -> LandmarkScatter:
        """Choose landmarks among at most 20,000 distinct rows drawn at random; no sums yet.

        Rows of weight 0 are left out. The order of the rows and repetitions do not matter.
        """
        rng = as_generator(random_state)
        X = kernel.points(X).array
        X, _ = distinct_rows(X, weights)
        if n_rows(X) > _CHOSEN_AMONG:
            X = X[np.sort(rng.choice(n_rows(X), _CHOSEN_AMONG, replace=False))]
        low = nystrom(kernel, Points(X, kernel.domain), n_landmarks, rule=rule, random_state=rng)
        r, d = low.rank, n_columns(X)
        low = replace(low, factor=np.empty((0, r)))  # features of the rows are not needed any more
        moments = (np.zeros(d), np.zeros((r, d))) if kernel.domain.is_vector else (None, None)
        return cls(low, np.zeros(r), np.zeros((r, r)), *moments)

    def add(self, X: Any, weights: Array | None) -> None:
        """Add rows to the sums."""
        kernel = self.low.kernel
        points = kernel.points(X)
        X = points.array
        w = np.ones(n_rows(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        for part in pieces(n_rows(X), _BLOCK):
            L, v = self.low.map(points[part]), w[part]
            weighted = L * v[:, None]
            self.mass += float(v.sum())
            self.first += v @ L
            self.second += weighted.T @ L
            self.own += float(v @ kernel.diag(points[part]))
            if self.rows is not None and self.cross is not None:
                self.rows += np.asarray(X[part].T @ v).ravel()
                cross = X[part].T @ weighted
                self.cross += np.asarray(cross.toarray() if is_sparse(cross) else cross).T

    def pca(
        self, n_components: float | None, *, centred: bool = True
    ) -> tuple[Subspace, LinearInverse | None]:
        """Return the principal subspace, and its linear inverse if points are vectors."""
        from scipy.linalg import solve_triangular

        mean = self.first / self.mass if centred else np.zeros_like(self.first)
        scatter = self.second - self.mass * np.outer(mean, mean)
        with single_threaded_blas():
            values, vectors = np.linalg.eigh(0.5 * (scatter + scatter.T))
        values, vectors = values[::-1], vectors[:, ::-1]
        lost = max(self.own - float(np.trace(self.second)), 0.0)
        total = float(values.sum()) + lost
        if n_components is not None and not isinstance(n_components, float | np.floating):
            values, vectors = values[: int(n_components)], vectors[:, : int(n_components)]
        values, vectors = kept(values, vectors, n_components, total, self.own)
        vectors = vectors * signs((self.low.triangle - mean) @ vectors)  # coordinates of landmarks
        coef = solve_triangular(self.low.triangle.T, np.column_stack([vectors, mean]), lower=False)
        kernel = self.low.kernel
        Z = Points(self.low.landmarks, kernel.domain)
        origin, directions = Element(kernel, Z, coef[:, -1]), Element(kernel, Z, coef[:, :-1])
        plane = Subspace(origin, directions, eigenvalues=values, total=total, neglected=lost)
        if self.rows is None or self.cross is None:
            return plane, None
        centre = self.rows / self.mass
        slopes = vectors.T @ (self.cross - np.outer(self.first, centre))
        return plane, LinearInverse(plane, centre, slopes / values[:, None])
