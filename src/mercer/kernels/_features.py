"""Explicit feature maps: k(x, y) = <phi(x), phi(y)>, and any other kernel of phi(x) and phi(y)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from mercer._array import Array, as_points, is_sparse, non_negative, positive, positive_int
from mercer.engine import Map
from mercer.exceptions import InputError
from mercer.kernels._domain import Domain
from mercer.kernels._parameters import an_instance, callable_function, checked, optional

_LARGEST_MAP = 1_000_000  # monomials; beyond this the kernel itself is cheaper


@dataclass(frozen=True)
@checked(function=callable_function, on=optional(an_instance(Domain)))
class Features(Map):
    """Map points by a function: x -> phi(x).

    `Linear().transform(Features(phi))` is the kernel <phi(x), phi(y)>; any other kernel can be
    applied to phi as well, and stays positive definite. Sums run at the speed of the kernel on the
    features. There are no derivatives in x: pre-images are found among `Candidates`. `Monomials`
    are the features of polynomial kernels. Source: Sakulwongtana, Definition 2.1.6; Rudi and
    Gaillard 2021, Examples 1 to 4.

    Parameters
    ----------
    function : callable
        Takes n points, returns a real matrix of shape (n, p); each row may depend only on its own
        point.
    on : Domain, optional
        The domain; by default rows of a numeric matrix. `Objects()` accepts anything.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> def moments(X):
    ...     return np.hstack([X, X**2])
    >>> k = mc.Linear().transform(mc.kernels.Features(moments))
    >>> k([[1.0], [2.0]], [[3.0]])
    array([[12.],
           [42.]])
    >>> def letters(words):
    ...     return [[word.count(c) for c in "abc"] for word in words]
    >>> counts = mc.kernels.Features(letters, on=mc.kernels.Objects())
    >>> mc.Gaussian(1.0).transform(counts)(["aab", "aba"])
    array([[1., 1.],
           [1., 1.]])
    """

    function: Callable[[Any], Any]
    on: Domain | None = None

    def apply(self, X: Any) -> Any:
        """The features of the points, checked; float32 points have float32 features."""
        F = as_points(self.function(X), "the matrix of features")
        if F.shape[0] != X.shape[0]:
            raise InputError(
                f"the feature map returned {F.shape[0]} rows for {X.shape[0]} points; it must "
                "return one row per point"
            )
        return F.astype(np.float32) if X.dtype == np.float32 else F.astype(np.float64)


@dataclass(frozen=True)
@checked(degree=positive_int, scale=positive, offset=non_negative)
class Monomials(Map):
    """Map x to the weighted monomials whose inner product is (<x, y> / s + c)^p.

    With x_0 = sqrt(s c), the features are sqrt(p! / (a_0! ... a_d!)) s^(-p/2) x_0^a_0 ... x_d^a_d
    over all exponents that add up to p: C(d + p - 1, p) of them for c = 0, C(d + p, p) otherwise.
    Monomials without the multinomial weights do not reproduce the kernel. Source: Rudi and Gaillard
    2021, Example 3, which leaves the weights out.

    Parameters
    ----------
    degree : int
        p >= 1.
    scale : float
        s > 0.
    offset : float
        c >= 0; at 0 only monomials of degree p appear.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Monomials(2, offset=0.0).apply([[1.0, 3.0]]).round(4)
    array([[1.    , 4.2426, 9.    ]])
    >>> k = mc.Linear().transform(mc.kernels.Monomials(2))
    >>> k([[1.0]], [[2.0]]), mc.Polynomial(2)([[1.0]], [[2.0]])
    (array([[9.]]), array([[9.]]))
    """

    degree: int
    scale: float = 1.0
    offset: float = 1.0

    def apply(self, X: Any) -> Array:
        """The features, shape (n, number of monomials)."""
        X = as_points(X)
        if is_sparse(X):
            raise InputError(
                "monomials of sparse points are dense; use X.toarray(), or the kernel Polynomial"
            )
        if self.offset > 0:
            constant = np.full((X.shape[0], 1), math.sqrt(self.offset * self.scale), dtype=X.dtype)
            X = np.hstack([constant, X])
        chosen, weights = _exponents(X.shape[1], self.degree)
        F: Array = X[:, chosen[:, 0]]
        for factor in chosen.T[1:]:
            F *= X[:, factor]
        F *= (weights * self.scale ** (-0.5 * self.degree)).astype(X.dtype)
        return F


@lru_cache(maxsize=8)
def _exponents(variables: int, degree: int) -> tuple[Array, Array]:
    """For each monomial, its variables and the square root of its multinomial weight."""
    count = math.comb(variables + degree - 1, degree)
    if count > _LARGEST_MAP:
        raise InputError(
            f"there are {count} monomials of degree {degree} in {variables} variables; use the "
            "kernel Polynomial, which needs none of them"
        )
    chosen = np.array(list(combinations_with_replacement(range(variables), degree)), dtype=np.intp)
    shares = [
        math.prod(math.factorial(a) for a in Counter(row).values()) for row in chosen.tolist()
    ]
    return chosen, np.sqrt([float(math.factorial(degree) // share) for share in shares])
