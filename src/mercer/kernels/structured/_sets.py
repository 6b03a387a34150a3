"""The Jaccard kernel of finite sets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mercer._array import Array, real
from mercer.exceptions import InputError
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._precomputed import OfBlocks
from mercer.kernels.structured._domains import Sets
from mercer.kernels.structured._feature_counts import Counts, inner_products


@dataclass(frozen=True)
class Jaccard(OfBlocks):
    """Jaccard kernel k(A, B) = |A n B| / |A u B| of finite sets.

    Points are sets, or lists, tuples or arrays of hashable elements, in which repetitions do not
    count. k is positive definite: it is the probability that a random order of all elements puts
    the same one first in A and in B. Source: Rudi and Gaillard 2021, section 2, where two empty
    sets are left undefined.

    Parameters
    ----------
    empty : {1, 0}, default=1
        The value of k for two empty sets, which the formula leaves open: 1 makes k(A, A) = 1 for
        all sets, 0 gives the empty set the feature zero. Either way k(A, B) = 0 if just one is
        empty.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Jaccard()([{"tea", "milk"}, {"milk"}, set()])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    empty: float = 1.0

    flags = Flags(Definiteness.POSITIVE)

    def __post_init__(self) -> None:
        empty = real(self.empty, "empty")
        if empty not in (0.0, 1.0):
            raise InputError(f"empty must be 1 or 0, got {empty!r}")
        object.__setattr__(self, "empty", empty)

    domain = Sets()

    def _block(self, X: Any, Y: Any = None) -> Array:
        if Y is None:
            return np.where(_sizes(X) > 0, 1.0, self.empty)
        sizes_x, sizes_y = _sizes(X), _sizes(Y)
        number = {element: i for i, element in enumerate(frozenset().union(*Y))}
        common = inner_products(
            _counts(X, sizes_x, number), _counts(Y, sizes_y, number), len(number)
        )
        union = sizes_x[:, None] + sizes_y[None, :] - common
        return np.asarray(np.where(union > 0, common / np.maximum(union, 1.0), self.empty))


def _sizes(X: Any) -> Array:
    return np.fromiter(map(len, X), dtype=np.int64, count=len(X))


def _counts(X: Any, sizes: Array, number: dict[Hashable, int]) -> Counts:
    """The elements that have a number."""
    found = [number.get(element, -1) for element in chain.from_iterable(X)]
    things = np.array(found, dtype=np.int64)
    known = things >= 0
    return Counts(np.repeat(np.arange(len(X)), sizes)[known], things[known], len(X))
