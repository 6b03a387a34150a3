"""The spectrum kernel: strings or other sequences compared by their substrings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, positive_int
from mercer.engine.pairs._subsequences import Letters
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._parameters import checked
from mercer.kernels._precomputed import OfBlocks
from mercer.kernels.structured._domains import Sequences
from mercer.kernels.structured._feature_counts import Counts, inner_products, squared_norms
from mercer.kernels.structured._token_codes import encoded

_LARGEST = 1 << 62


@dataclass(frozen=True)
@checked(length=positive_int)
class Spectrum(OfBlocks):
    """Spectrum kernel k(s, t) = sum_u c_u(s) c_u(t), c_u(s) how often u occurs in s.

    The sum is over all u of p letters; occurrences have no gaps, and may overlap.
    Points are strings, bytes, or lists or tuples of hashable tokens such as words. A sequence of
    fewer than p letters has the feature zero. All lengths up to p are a sum of kernels.

    Parameters
    ----------
    length : int, default=3
        The number of letters p >= 1.

    See Also
    --------
    Subsequences : letters with gaps between them count as well.

    References
    ----------
    C. Leslie, E. Eskin and W. S. Noble, The spectrum kernel: a string kernel for SVM protein
    classification (2002).

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Spectrum(2)(["banana", "ananas"], ["ana", "bat"])
    array([[4., 1.],
           [4., 0.]])
    >>> words = [s.split() for s in ("the cat sat", "on the cat mat")]
    >>> (mc.Spectrum(1) + mc.Spectrum(2))(words)
    array([[5., 3.],
           [3., 7.]])
    """

    length: int = 3

    flags = Flags(Definiteness.POSITIVE)
    domain = Sequences()

    def _block(self, X: Any, Y: Any = None) -> Array:
        counts, size = _counts(encoded(X) if Y is None else encoded(X, Y), self.length)
        return squared_norms(counts[0]) if Y is None else inner_products(counts[0], counts[1], size)


def _counts(blocks: list[Letters], length: int) -> tuple[list[Counts], int]:
    """Parts of `length` letters as numbers below a size, the same for equal parts of all blocks."""
    alphabet = max(1, blocks[0].alphabet)
    letters = np.concatenate([b.letters for b in blocks]).astype(np.int64)
    cut = np.cumsum([0] + [b.count for b in blocks])
    rows = np.concatenate([b.rows + first for b, first in zip(blocks, cut, strict=False)])
    last = max(0, len(letters) - length + 1)
    whole = rows[:last] == rows[length - 1 :]  # begins and ends in the same sequence
    things, size = np.zeros(last, dtype=np.int64), 1
    for i in range(length):
        here = letters[i : last + i]
        if size * alphabet >= _LARGEST:  # numbers of what occurs instead of all that could
            known, things = np.unique(things, return_inverse=True)
            size = len(known)
        whole = whole & (here >= 0)
        things, size = things * alphabet + here, size * alphabet
    rows, things = rows[:last][whole], things[whole]
    ends = np.searchsorted(rows, cut)
    parts = zip(ends, ends[1:], cut, cut[1:], strict=False)
    return [Counts(rows[a:b] - i, things[a:b], int(j - i)) for a, b, i, j in parts], size
