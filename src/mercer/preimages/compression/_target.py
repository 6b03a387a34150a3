"""The element that is compressed, its projections on spans of features, and their gradients.

For points Z with W = k(Z, Z) and F = psi(Z), the projection of psi on the span of the features of Z
has the coefficients B = W^-1 F, and its squared norm is what Z explains of psi,

    E(Z) = tr(F' W^-1 F),        |psi - P psi|^2 = |psi|^2 - E(Z),
    dE / dz_i = 2 sum_l B_il grad r_l(z_i),        r = psi - P psi.

For a batch everything is summed over its elements.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array, frozen
from mercer.engine import Coef, Dense, LowRank, Stacked, n_rows
from mercer.exceptions import InputError
from mercer.space import Element

_RIDGE = 1e-12  # on the scaled W while points move: keeps coefficients finite where points meet
DEPENDENT = 1e-13  # of k(z, z): a feature whose distance to the others is smaller is left out
_INDEFINITE = 1e-6  # of k(z, z): values below minus this are not rounding
_EPS = float(np.finfo(np.float64).eps)
_CANDIDATES = 1 << 24  # values of a batch at candidates that are held at once
_TRIED = 4096  # candidates, where there are more points


class Fit(NamedTuple):
    """Points that are independent to rounding, the coefficients of the projection, its gain."""

    points: Any
    coef: Array  # (r, b)
    explained: Array  # (b,), of the returned coefficients


class ExplainedNorm(NamedTuple):
    """E at some points, with a small ridge, and its gradient in them."""

    points: Array
    value: float
    gradient: Array  # (m, d)
    weight: Array  # (m,): sum_l B_il^2, the size of each coefficient


class Target:
    """The element to be approximated: a batch with distinct points in float64.

    `compact` is equivalent: sum_l |P psi_l|^2 is that of `psi` for every projection P, with no more
    elements than the rank of the coefficients. Both are divided by `scale`, so that no square
    overflows; `squared` are |psi_l|^2, `total` their sum.
    """

    def __init__(self, psi: Element) -> None:
        self.kernel, self.program = psi.kernel, psi.kernel.program
        self.points = engine.as_float64(psi.points)
        norms = np.atleast_1d(Element(psi.kernel, self.points, psi.coef, psi.batch).norm())
        if np.isnan(norms).any():
            raise InputError(
                f"psi has no norm, because {psi.kernel!r} is not positive definite on its points: "
                "there is no projection to compress it to"
            )
        self.scale = float(np.exp2(np.floor(np.log2(norms.max())))) if norms.any() else 1.0
        coef = psi.coef.scale(1.0 / self.scale)
        self.psi = Element(psi.kernel, self.points, coef, coef.shape[1])
        coef = _compact(coef)
        self.compact = Element(psi.kernel, self.points, coef, coef.shape[1])
        self.squared = (norms / self.scale) ** 2
        self.total = float(self.squared.sum())

    def candidates(self, n_points: int, rng: np.random.Generator) -> Array:
        """The rows among which points are chosen: all, or a random sample if there are many."""
        n = n_rows(self.points)
        most = max(4 * n_points, min(_TRIED, _CANDIDATES // self.compact.coef.shape[1]))
        return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))

    def values(self, Z: Any) -> Array:
        """The values of `compact` at Z, shape (m, b)."""
        return np.asarray(self.compact.fields(Z).value, dtype=np.float64)

    def gram(self, Z: Any) -> tuple[Array, Array]:
        """W scaled to a unit diagonal, and the roots of its diagonal."""
        W = np.asarray(engine.gram(self.program, Z, Z), dtype=np.float64)
        if not np.isfinite(W).all():
            raise InputError("kernel values overflow at the points; scale the data down")
        length = np.sqrt(np.maximum(W.diagonal(), 0.0))
        length[length == 0.0] = 1.0
        return W / length[:, None] / length, length

    def fit(self, Z: Any) -> Fit:
        """Project psi on the features of Z; those that depend on others are left out."""
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dpstrf

        W, length = self.gram(Z)
        T, order, rank, _ = dpstrf(W, tol=max(DEPENDENT, len(W) * _EPS), lower=1)
        kept = np.asarray(order[:rank] - 1, dtype=np.intp)
        T = np.tril(T[:rank, :rank])
        L = solve_triangular(T, W[kept], lower=True)
        self.check_definite(W.diagonal() - np.einsum("ij,ij->j", L, L), np.ones(len(W)))
        kept, place = np.sort(kept), np.argsort(np.argsort(kept))
        W, length, Z = W[np.ix_(kept, kept)], length[kept], Z[kept]
        F = np.asarray(self.psi.fields(Z).value, dtype=np.float64) / length[:, None]
        coef, rest = np.zeros_like(F), F
        for _ in range(2):  # again on the residual, because W may be nearly singular
            y = solve_triangular(T, rest[place], lower=True)
            coef[place] += solve_triangular(T, y, lower=True, trans=1)
            rest = F - W @ coef
        explained = np.einsum("jl,jl->l", coef, F + rest)  # 2 b'F - b'W b
        return Fit(Z, coef / length[:, None], explained)

    def ridge_coef(self, W: Array, F: Array) -> tuple[Array, Array]:
        """The root T of the scaled W with its ridge, and its solution for scaled values F."""
        from scipy.linalg import cho_solve
        from scipy.linalg.lapack import dpotrf

        T, info = dpotrf(W + _ridge(len(W)) * np.eye(len(W)), lower=1)
        if info:
            raise InputError(f"{self.kernel!r} is not positive definite on the points it met")
        return T, cho_solve((T, True), F)

    def explained(self, Z: Array) -> ExplainedNorm:
        """E and its gradient at Z."""
        W, length = self.gram(Z)
        scaled = self.values(Z) / length[:, None]
        B = self.ridge_coef(W, scaled)[1]
        value = float(np.einsum("jl,jl->", B, scaled))
        B /= length[:, None]
        mine = Element(self.kernel, Z, Dense(B), B.shape[1])
        gradient = 2.0 * (_combined_gradients(self.compact, Z, B) - _combined_gradients(mine, Z, B))
        weight = np.einsum("jl,jl->j", B, B)
        if not self.program.is_translation_invariant:
            # the ridge is scaled by k(z, z), which moves with z
            own = engine.fields(self.program.diagonal, Z[:1], Z, Dense(np.ones((1, 1))), order=1)
            gradient -= _ridge(len(Z)) * weight[:, None] * np.asarray(own.gradient)[:, 0]
        return ExplainedNorm(Z, value, gradient, weight)

    def check_definite(self, left: Array, own: Array) -> None:
        """Raise if a squared residual of features is negative beyond rounding."""
        if np.any(left < -_INDEFINITE * np.abs(own)) or np.any(own < 0):
            raise self.indefinite

    @property
    def indefinite(self) -> InputError:
        """The error for kernels that are not positive definite on the points."""
        return InputError(
            f"{self.kernel!r} is not positive definite on the points of psi: there is no "
            "projection to compress it to"
        )


def _ridge(size: int) -> float:
    return max(_RIDGE, 8 * size * _EPS)


def _combined_gradients(phi: Element, Z: Array, B: Array) -> Array:
    """sum_l B_il grad phi_l(z_i), shape (m, d): one combination is differentiated at each point."""
    if B.shape[1] == 1:
        return np.asarray(B * np.asarray(phi.fields(Z, order=1).gradient)[:, 0])
    coef = phi.coef
    coef = LowRank(coef.array, B.T) if isinstance(coef, Dense) else coef.combine(B.T)
    combined = Element(phi.kernel, phi.points, coef, len(Z))
    return np.asarray(combined.fields(Z, order=1, paired=True).gradient)


def merged(psi: Element) -> Element:
    """psi with equal points merged; products of thin matrices are kept as such."""
    psi = Element(psi.kernel, psi.support, _single_product(psi.coef), psi.batch)
    try:
        return psi.merge()
    except TypeError:  # objects that cannot be compared
        return psi


def _single_product(coef: Coef) -> Coef:
    """Stacked products of thin matrices as one product, where that is thinner."""
    from scipy.linalg import block_diag

    if not isinstance(coef, Stacked) or not all(isinstance(p, LowRank) for p in coef.parts):
        return coef
    parts = [p for p in coef.parts if isinstance(p, LowRank)]
    if sum(p.left.shape[1] for p in parts) >= coef.shape[1]:
        return coef
    return LowRank(block_diag(*(p.left for p in parts)), np.vstack([p.right for p in parts]))


def _compact(coef: Coef) -> Coef:
    """Coefficients C with C C' = A A' and fewer columns, if A has more than its rank.

    By A' = Q R: A A' = R' R.
    """
    n, b = coef.shape
    if isinstance(coef, LowRank) and coef.left.shape[1] < b:
        return Dense(frozen(coef.left @ _r_factor(coef.right).T))
    if isinstance(coef, Dense) and n < b:
        return Dense(frozen(_r_factor(coef.array).T))
    return coef


def _r_factor(A: Array) -> Array:
    return np.asarray(np.linalg.qr(np.asarray(A, dtype=np.float64).T, mode="r"))
