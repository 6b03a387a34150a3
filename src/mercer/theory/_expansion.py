"""Mercer's expansion of the Gaussian kernel under a Gaussian density, in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, count, islice, pairwise
from typing import Any

import numpy as np

from mercer._array import Array, as_points, frozen, is_sparse, positive_int, positive_length
from mercer.exceptions import InputError
from mercer.kernels._parameters import checked

_LARGE = 1e100  # where the recurrence takes out a factor
_MOST = 10**6  # orders; a second and 100 MB


@dataclass(frozen=True)
@checked(
    length_scale=positive_length, sigma=positive_length, n_terms=positive_int, dim=positive_int
)
class MercerExpansion:
    r"""The first terms of k(x, y) = sum_j lam_j e_j(x) e_j(y), e_j orthonormal under a density p.

    lam_j e_j(x) = int k(x, y) e_j(y) p(y) dy,  int e_i e_j p = 1 if i = j, else 0,

    for k = exp(-|x - y|^2 / (2 l^2)) and p = N(0, sigma^2 I) on R^dim. In one dimension, with
    a = 1 / (4 sigma^2), b = 1 / (2 l^2), c = sqrt(a^2 + 2ab), A = a + b + c, B = b / A,

    lam_j = sqrt(2a / A) B^j,  e_j(x) = exp(-(c - a) x^2) H_j(sqrt(2c) x) / sqrt(2^j j! sqrt(a/c));

    in more dimensions the terms are products of these, by decreasing eigenvalue. For any kernel,
    `mercer.linalg.nystrom` does this from a sample.

    Parameters
    ----------
    length_scale : float
        The length l > 0 of the kernel.
    sigma : float
        Standard deviation > 0 of the density.
    n_terms : int
        How many terms, from the largest eigenvalue down.
    dim : int
        The number of columns of the points.

    Attributes
    ----------
    eigenvalues : array of shape (n_terms,)
    orders : int array of shape (n_terms, dim)
        The orders j of the factors of each term.
    tail : float
        The sum of all eigenvalues that were left out, which is the mean under p of
        k(x, x) - sum_j lam_j e_j(x)^2.

    References
    ----------
    Sakulwongtana, Definitions 2.2.4 to 2.2.6 and Remark 32, with the density exp(-x^2 / 2) / sqrt(2
    pi).

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> terms = mc.theory.MercerExpansion(1.0, n_terms=30)
    >>> terms.eigenvalues[:3].round(4)
    array([0.618 , 0.2361, 0.0902])
    >>> X = [[-1.0], [0.0], [2.0]]
    >>> bool(np.abs(terms.kernel_values(X) - mc.Gaussian(1.0)(X)).max() < 1e-9)
    True
    """

    length_scale: float
    sigma: float = 1.0
    n_terms: int = 20
    dim: int = 1

    def __post_init__(self) -> None:
        if self.n_terms * self.dim > _MOST:
            raise InputError(
                f"n_terms * dim must be at most {_MOST}, got {self.n_terms} * {self.dim}"
            )

    @cached_property
    def orders(self) -> Array:
        """The orders of the factors: all of total order 0, then 1, ..."""
        rows = chain.from_iterable(_compositions(total, self.dim) for total in count())
        return frozen(np.array(list(islice(rows, self.n_terms)), dtype=np.intp))

    @cached_property
    def eigenvalues(self) -> Array:
        """(1 - B)^dim B^|orders|."""
        return frozen(np.exp(self._log_eigenvalues))

    @property
    def tail(self) -> float:
        """What is missing of sum_j lam_j = k(x, x) = 1, without cancellation."""
        from scipy.special import nbdtrc  # the distribution of |orders| is negative binomial

        last = int(self.orders[-1].sum())
        complete = math.comb(last + self.dim - 1, self.dim - 1)
        left_out = complete - int(np.sum(self.orders.sum(axis=1) == last))
        a, c, big = self._constants
        beyond = float(nbdtrc(last, self.dim, (a + c) / big))  # of 1 - B
        return beyond + left_out * float(self.eigenvalues[-1])

    def eigenfunctions(self, X: Any) -> Array:
        """Return e_j(x_i), shape (n, n_terms).

        |e_j(x)| <= lam_j^(-1/2), so values overflow only where eigenvalues are below 1e-616.
        """
        return self._terms(X, -0.5 * self._log_eigenvalues)

    def features(self, X: Any) -> Array:
        """Return sqrt(lam_j) e_j(x_i), shape (n, n_terms): at most 1 in size."""
        return self._terms(X, np.zeros(self.n_terms))

    def kernel_values(self, X: Any, Y: Any = None) -> Array:
        """Return sum_j lam_j e_j(x_i) e_j(y_m), the truncated kernel, shape (n, m)."""
        return self.features(X) @ self.features(X if Y is None else Y).T

    def bound(self, X: Any, Y: Any = None) -> Array:
        """Return a bound on k - `kernel_values` at each pair, by Cauchy and Schwarz.

        sqrt(r(x) r(y)) with r(x) = 1 - sum_j lam_j e_j(x)^2, whose mean under p is `tail`.
        """
        rounding = 4e-16 * self.n_terms
        left, right = (
            np.maximum(1.0 - np.sum(self.features(Z) ** 2, axis=1), 0.0) + rounding
            for Z in (X, X if Y is None else Y)
        )
        return np.asarray(np.sqrt(np.outer(left, right)))

    @property
    def _constants(self) -> tuple[float, float, float]:
        """a, c and A."""
        a, b = 0.25 / self.sigma**2, 0.5 / self.length_scale**2
        c = math.sqrt(a * (a + 2.0 * b))
        return a, c, a + b + c

    @property
    def _log_eigenvalues(self) -> Array:
        a, c, big = self._constants  # 1 - B = sqrt(2a / A) = (a + c) / A
        B = 0.5 / self.length_scale**2 / big
        ratio = math.log(B) if B < 0.5 else math.log1p(-(a + c) / big)
        first = 0.5 * math.log(2.0 * a / big)
        return np.asarray(self.dim * first + self.orders.sum(axis=1) * ratio)

    def _terms(self, X: Any, log_factor: Array) -> Array:
        """exp(log_factor_j) sqrt(lam_j) e_j(x): a product over coordinates, in log space."""
        X = as_points(X, "X")
        if is_sparse(X) or X.shape[1] != self.dim:
            raise InputError(f"X must be dense with {self.dim} columns, got shape {X.shape}")
        X = X.astype(np.float64)
        top = int(self.orders.max()) + 1
        log_size = np.zeros((len(X), self.n_terms)) + log_factor
        sign = np.ones((len(X), self.n_terms))
        for i in range(self.dim):
            values, logs = self._one_dimension(X[:, i], top)
            sign *= values[:, self.orders[:, i]]
            log_size += logs[:, self.orders[:, i]]
        with np.errstate(over="ignore"):
            return np.asarray(sign * np.exp(log_size))

    def _one_dimension(self, x: Array, top: int) -> tuple[Array, Array]:
        """sqrt(lam_j) e_j(x) for j < top as values times exp(logs).

        p_j = H_j(z) / sqrt(2^j j!) has p_(j+1) = sqrt(2 / (j+1)) z p_j - sqrt(j / (j+1)) p_(j-1),
        which is stable upwards; factors that would overflow go to the logarithm. The factor B^(j/2)
        of sqrt(lam_j) is multiplied in on the way.
        """
        a, c, big = self._constants
        z, root = math.sqrt(2.0 * c) * x, math.sqrt(0.5 / self.length_scale**2 / big)
        start = 0.25 * math.log(2.0 * a / big) + 0.25 * math.log(c / a)
        scale = start - (c - a) * x**2
        values, logs = np.empty((len(x), top)), np.empty((len(x), top))
        before, now = np.zeros_like(x), np.ones_like(x)
        for j in range(top):
            values[:, j], logs[:, j] = now, scale
            after = root * (math.sqrt(2.0 / (j + 1)) * z * now)
            after -= root**2 * math.sqrt(j / (j + 1)) * before
            before, now = now, after
            size = np.maximum(np.abs(now), np.abs(before))
            rescale = np.where((size > _LARGE) | (size < 1.0 / _LARGE), size, 1.0)
            rescale = np.where(rescale > 0.0, rescale, 1.0)
            before, now, scale = before / rescale, now / rescale, scale + np.log(rescale)
        return values, logs


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Ways to write total as an ordered sum of non-negative integers, by bars between stars."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        places = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in pairwise(places))[::-1]
