"""Null distributions of MMD and HSIC by formula: weighted chi-squares and gamma distributions.

The weights are eigenvalues of centred Gram matrices over the number of rows. Leading eigenvalues
are enough: the sum and the sum of squares of all of them are known from the matrix, and the error
bound accounts for the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._progress import tracked
from mercer.engine import n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel
from mercer.linalg import GramOperator, eigenpairs
from mercer.linalg._inputs import OVERFLOW
from mercer.methods.hypothesis_tests._chi_square_mixture import (
    Remainder,
    Tail,
    weighted_chi_square_tail,
)

_ALL = 1_500  # rows up to which all eigenvalues are found
_LEADING = 200  # of more rows
_TILE = 1024
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)  # of the largest kernel value
_NEGATIVE = 1e-6  # of the largest eigenvalue: beyond that a negative one is no rounding
_NEGLIGIBLE = (
    1e-9  # third moment of the eigenvalues that moments replace, over that of a normal distribution
)


class Spectrum(NamedTuple):
    """Eigenvalues of a covariance operator: the leading ones, and moments of the others."""

    values: Array  # descending
    rest: Remainder

    @property
    def trace(self) -> float:
        return float(self.values.sum()) + self.rest.sum

    @property
    def squares(self) -> float:
        return float(self.values @ self.values) + self.rest.squares

    @classmethod
    def of(
        cls, values: Array, trace: float = 0.0, squares: float = 0.0, largest: float = 0.0
    ) -> Spectrum:
        """The values that matter; `largest` bounds those that are not given, 0 if all are."""
        values = np.sort(np.maximum(values, 0.0))[::-1]
        left = max(squares - float(values @ values), 0.0) if largest > 0 else 0.0
        trace = trace if left > 0 else float(values.sum())
        after = np.append(np.cumsum((values**2)[::-1])[::-1], 0.0) + left
        bound = np.maximum(np.append(values, 0.0), largest)
        cubes, small = bound * after, _NEGLIGIBLE * float(after[0]) ** 1.5
        keep = int(np.argmax(cubes <= max(small, float(cubes[-1]))))
        values, F, most = values[:keep], float(after[keep]), float(bound[keep])
        T = max(trace - float(values.sum()), F / most) if F > 0 else 0.0
        return cls(values, Remainder(float(T), F, most if F > 0 else 0.0))

    def tail(self, q: float) -> Tail:
        """P(sum_l lambda_l z_l^2 > q)."""
        return weighted_chi_square_tail(self.values, q, remainder=self.rest)

    def product(self, other: Spectrum) -> Spectrum:
        """All lambda_i mu_j; the largest of them are listed."""
        both = np.multiply.outer(self.values[:_LEADING], other.values[:_LEADING]).ravel()
        both = np.sort(both)[::-1]
        outside = max(_next(self, _LEADING) * other.largest, self.largest * _next(other, _LEADING))
        both = both[both >= outside]
        more = float(both[10 * _LEADING]) if len(both) > 10 * _LEADING else 0.0
        return Spectrum.of(
            both[: 10 * _LEADING],
            self.trace * other.trace,
            self.squares * other.squares,
            max(outside, more),
        )

    @property
    def largest(self) -> float:
        return max(float(self.values.max(initial=0.0)), self.rest.largest)


def _next(spectrum: Spectrum, index: int) -> float:
    """A bound on the eigenvalues from this one on."""
    values = spectrum.values
    return float(values[index]) if index < len(values) else spectrum.rest.largest


def spectrum(kernel: Kernel, Z: Any) -> Spectrum:
    """Eigenvalues of H K H / n on the rows of Z (checked points): all up to 1,500 rows."""
    n = n_rows(Z)
    points = Points(Z, kernel.domain)
    if kernel.flags.definiteness is Definiteness.INDEFINITE:
        raise _negative_eigenvalues(kernel)
    S = GramOperator(kernel, points, centred=True)
    if n <= _ALL:
        values = np.linalg.eigvalsh(S.dense()) / n
        if not np.abs(values).max() <= 1e100:
            raise InputError(OVERFLOW)  # third powers would
        size = max(float(np.abs(S.own).max()), float(values.max()))  # k(x, x) may be 0
        rounding = _ROUNDING * size
        if values[0] < -max(rounding, _NEGATIVE * values[-1]):
            raise _negative_eigenvalues(kernel)
        return Spectrum.of(np.where(values > rounding, values, 0.0))
    moments = CentredMoments.of(kernel, Z)
    if moments.squares == 0.0:
        return Spectrum.of(np.zeros(0))
    pairs = eigenpairs(kernel, points, _LEADING, centred=True, random_state=0)
    values = pairs.values / n
    negative = min(float(values[-1]), moments.trace - float(values.sum()))
    if negative < -_NEGATIVE * float(values[0]):
        raise _negative_eigenvalues(kernel)
    return Spectrum.of(values, moments.trace, moments.squares, float(values[-1]))


def _negative_eigenvalues(kernel: Kernel) -> InputError:
    return InputError(
        f"{kernel!r} has negative eigenvalues, so its null distribution is not known; "
        "test with null='permutation', or take a positive definite kernel"
    )


class CentredMoments(NamedTuple):
    """Sums of a centred Gram matrix: sum_i K_ii / n, sum_ij K_ij^2 / n^2, and off the diagonal."""

    trace: float
    squares: float
    off_diagonal: float  # mean of K_ij^2 over i != j

    @classmethod
    def of(cls, kernel: Kernel, Z: Any) -> CentredMoments:
        S = GramOperator(kernel, Points(Z, kernel.domain), centred=True)
        n, squares = n_rows(Z), 0.0
        for a, b, K in _tiles(S):
            squares += (1.0 if a == b else 2.0) * float(np.sum(K**2))
        if np.sqrt(squares) / n <= _rounding(S):  # equal features
            return cls(0.0, 0.0, 0.0)
        own = float(S.diag @ S.diag)
        return cls(S.trace / n, squares / n**2, max(squares - own, 0.0) / (n * (n - 1)))


def _rounding(S: GramOperator) -> float:
    """What a centred Gram matrix, and the mean of its diagonal, may have instead of zeros."""
    size = max(float(np.abs(S.own).max()), float(np.abs(S.mean).max()))
    return _ROUNDING * float(np.sqrt(len(S.own))) * size  # means are sums of n numbers


def _tiles(S: GramOperator) -> Any:
    """Tiles of the upper half of a centred Gram matrix."""
    program, Z, mean = S.kernel.program, S.points, S.mean
    level = float(mean.mean())
    blocks = list(pieces(n_rows(Z), _TILE))
    for i, a in enumerate(tracked(blocks, "moments")):
        for b in blocks[i:]:
            K = engine.gram(program, Z[a], Z[b])
            yield a, b, K - mean[a, None] - mean[b] + level


def mmd_tail(
    kernel: Kernel, Z: Any, sizes: tuple[int, int], statistic: float, null: str
) -> tuple[Tail, float]:
    """P(unbiased MMD^2 of these sample sizes > statistic) under the null, and its deviation.

    MMD^2 is about (1/m + 1/n) sum_l lambda_l (z_l^2 - 1), with the eigenvalues of the pooled
    rows; "gamma" is a gamma distribution with the same mean and variance as this sum.
    If all features are equal, the probability is 1.
    """
    if kernel.flags.definiteness is Definiteness.INDEFINITE:
        raise _negative_eigenvalues(kernel)
    factor = 1.0 / sizes[0] + 1.0 / sizes[1]
    terms = spectrum(kernel, Z) if null == "spectral" else CentredMoments.of(kernel, Z)
    T, F = terms.trace, terms.squares if isinstance(terms, Spectrum) else terms.off_diagonal
    if F <= 0.0:
        return Tail(1.0, 0.0), 0.0
    if T <= 0.0:
        raise _negative_eigenvalues(kernel)
    q, sd = statistic / factor + T, factor * float(np.sqrt(2.0 * F))
    if isinstance(terms, Spectrum):
        return terms.tail(q), sd
    return weighted_chi_square_tail([F / T], q, degrees=[T**2 / F]), sd


def hsic_tail(
    kernel_x: Kernel, X: Any, kernel_y: Kernel, Y: Any, q: float, null: str
) -> tuple[Tail, float]:
    """P(n HSIC_b > q) under independence, and the standard deviation of n HSIC_b.

    By chi-squares weighted with the products lambda_i mu_j of eigenvalues, or a gamma distribution.
    If a variable is constant, the probability is 1.
    """
    if null == "gamma":
        if 0.0 in [_trace(k, Z) for k, Z in ((kernel_x, X), (kernel_y, Y))]:
            return Tail(1.0, 0.0), 0.0
        shape, scale = hsic_gamma(kernel_x, X, kernel_y, Y)
        tail = weighted_chi_square_tail([0.5 * scale], q, degrees=[2.0 * shape])
        return tail, float(np.sqrt(shape)) * scale
    terms = spectrum(kernel_x, X).product(spectrum(kernel_y, Y))
    if terms.squares <= 0.0:  # a constant variable
        return Tail(1.0, 0.0), 0.0
    return terms.tail(q), float(np.sqrt(2.0 * terms.squares))


def _trace(kernel: Kernel, Z: Any) -> float:
    """The mean of the diagonal of a centred Gram matrix, 0 if that is rounding."""
    S = GramOperator(kernel, Points(Z, kernel.domain), centred=True)
    trace, rounding = float(S.own.mean() - S.mean.mean()), _rounding(S)
    if kernel.flags.definiteness is Definiteness.INDEFINITE or trace < -rounding:
        raise _negative_eigenvalues(kernel)
    return trace if trace > rounding else 0.0


def hsic_gamma(kernel_x: Kernel, X: Any, kernel_y: Kernel, Y: Any) -> tuple[float, float]:
    """Shape E^2 / V and scale n V / E of the gamma approximation of n HSIC_b under independence.

    E = (mean k_ii - m_x)(mean l_ii - m_y) / n, with means m off the diagonal, and V is
    2 (n - 4)(n - 5) / (n (n - 1)(n - 2)(n - 3)) times the mean of (K~_ij L~_ij)^2 over i != j.
    """
    n = n_rows(X)
    if n < 6:
        raise InputError(f"the gamma approximation needs at least six rows, got {n}")
    operators = [
        GramOperator(k, Points(Z, k.domain), centred=True)
        for k, Z in ((kernel_x, X), (kernel_y, Y))
    ]
    mean = 1.0 / n
    for S in operators:
        own = float(S.own.mean())
        mean *= own - (n * float(S.mean.mean()) - own) / (n - 1)
    total = 0.0
    for (a, b, K), (_, _, L) in zip(*(_tiles(S) for S in operators), strict=True):
        products = (K * L) ** 2
        if a == b:
            np.fill_diagonal(products, 0.0)
        total += (1.0 if a == b else 2.0) * float(products.sum())
    variance = 2.0 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * total / (n * (n - 1))
    if mean <= 0.0 or variance <= 0.0:
        raise InputError("a kernel is constant on the rows, so there is no dependence to test")
    return mean**2 / variance, n * variance / mean
