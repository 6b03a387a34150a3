"""Bernoulli polynomials of even degree, which sum the series of m^(-2s) cos(2 pi m t)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mercer._array import Array, frozen


@lru_cache(maxsize=64)
def bernoulli(s: int) -> Array:
    """Coefficients in y = x^2, highest first, of (-1)^(s-1) (2 pi)^(2s) / (2s)! B_2s(1/2 + x).

    About 1/2 the terms alternate like those of a cosine, and hardly cancel for |x| <= 1/2.
    B_n(1/2 + x) = sum_k binom(n, k) B_k(1/2) x^(n-k), and B_k(1/2) = (2^(1-k) - 1) B_k.
    """
    n = 2 * s
    numbers = _numbers(n)
    scale = (-1) ** (s - 1) * (2.0 * math.pi) ** n
    exact = [
        Fraction(math.comb(n, k), math.factorial(n)) * (Fraction(2, 2**k) - 1) * numbers[k]
        for k in range(0, n + 1, 2)
    ]
    return frozen(np.array([scale * float(a) for a in exact]))


def _numbers(n: int) -> list[Fraction]:
    """B_0, ..., B_n, from sum_{j <= m} binom(m + 1, j) B_j = 0."""
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        total = sum((math.comb(m + 1, j) * b for j, b in enumerate(numbers)), Fraction(0))
        numbers.append(-total / (m + 1))
    return numbers
