"""Kernels of strings and other sequences: the spectrum kernel and gap-weighted subsequences."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mercer._array import Array, positive, positive_int
from mercer.engine.pairs._subsequences import Letters, subsequence_diagonal, subsequence_gram
from mercer.exceptions import InputError
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._parameters import checked
from mercer.kernels._precomputed import OfBlocks
from mercer.kernels.structured._domains import Sequences
from mercer.kernels.structured._sets import Counts, inner_products, squared_norms

_LARGEST = 1 << 62


@dataclass(frozen=True)
@checked(length=positive_int)
class Spectrum(OfBlocks):
    """Spectrum kernel k(s, t) = sum_u c_u(s) c_u(t), c_u(s) the number of times u occurs in s.

    The sum is over all u of p letters; occurrences have no gaps, and may overlap.
    Points are strings, bytes, or lists or tuples of hashable tokens such as words. A sequence of
    fewer than p letters has the feature zero. To use all lengths up to p, add kernels.
    `Subsequences` also counts letters with gaps between them. Source: C. Leslie, E. Eskin and W. S.
    Noble, The spectrum kernel: a string kernel for SVM protein classification (2002).

    Parameters
    ----------
    length : int, default=3
        The number of letters p >= 1.

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
        if Y is None:
            (x,), size = _counts(_encoded(X), self.length)
            return squared_norms(x, size)
        (x, y), size = _counts(_encoded(X, Y), self.length)
        return inner_products(x, y, size)


def _decay(value: Any, name: str) -> float:
    decay = positive(value, name)
    if decay > 1.0:
        raise InputError(f"{name} must be <= 1, got {decay!r}")
    return decay


@dataclass(frozen=True)
@checked(length=positive_int, decay=_decay)
class Subsequences(OfBlocks):
    """Gap-weighted subsequence kernel k(s, t) = sum_u phi_u(s) phi_u(t) over all u of p letters.

    phi_u(s) is the sum of d^(i_p - i_1 + 1) over all places i_1 < ... < i_p at which u occurs in s:
    a subsequence counts less the longer the stretch it is spread over. Points are strings, bytes,
    or lists or tuples of hashable tokens such as words. A sequence of fewer than p letters has the
    feature zero.

    Values grow with the length of the sequences, at most to C(n, p) C(m, p) d^(2p); most uses need
    `Normalised(Subsequences(...))`. For small alphabets and long sequences the features are
    computed and multiplied; otherwise a recursion runs over pairs, in p |s| |t| steps. Source: H.
    Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini and C. Watkins, Text classification using
    string kernels (2002).

    Parameters
    ----------
    length : int, default=3
        The number of letters p >= 1.
    decay : float, default=0.5
        0 < d <= 1; at 1 gaps cost nothing.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Subsequences(2, decay=0.5)
    >>> k(["cat", "car", "bat"])
    array([[0.140625, 0.0625  , 0.0625  ],
           [0.0625  , 0.140625, 0.      ],
           [0.0625  , 0.      , 0.140625]])
    >>> k = mc.kernels.Normalised(k)
    >>> k(["science is organized knowledge"], ["wisdom is organized life"]).round(3)
    array([[0.58]])
    """

    length: int = 3
    decay: float = 0.5

    flags = Flags(Definiteness.POSITIVE)
    domain = Sequences()

    def _block(self, X: Any, Y: Any = None) -> Array:
        blocks = (X,) if Y is None else (X, Y)
        if any(self.length > max(map(len, block)) for block in blocks):
            return np.zeros([len(block) for block in blocks])
        if Y is None:
            return subsequence_diagonal(_encoded(X)[0], self.length, self.decay)
        x, y = _encoded(X, Y)
        return subsequence_gram(x, y, self.length, self.decay)


def _counts(blocks: list[Letters], length: int) -> tuple[list[Counts], int]:
    """Parts of `length` letters as numbers below a size; equal parts share a number."""
    letters = np.concatenate([b.letters for b in blocks]).astype(np.int64)
    cut = np.cumsum([0] + [b.count for b in blocks])
    rows = np.concatenate([b.rows + first for b, first in zip(blocks, cut, strict=False)])
    last = max(0, len(letters) - length + 1)
    unknown = np.append(0, np.cumsum(letters < 0))
    whole = rows[:last] == rows[length - 1 :]  # begins and ends in the same sequence
    whole &= unknown[:last] == unknown[length : length + last]
    things, size = _numbered(np.maximum(letters, 0), max(1, blocks[0].alphabet), length)
    rows, things = rows[:last][whole], things[whole]
    ends = np.searchsorted(rows, cut)
    parts = zip(ends, ends[1:], cut, cut[1:], strict=False)
    return [Counts(rows[a:b] - i, things[a:b], int(j - i)) for a, b, i, j in parts], size


def _numbered(letters: Array, alphabet: int, length: int) -> tuple[Array, int]:
    """The number of the part of `length` letters at each place, and a bound on these numbers.

    Parts of 2m letters are pairs of parts of m letters, so each binary digit of `length` is a step
    that doubles the parts ("d"), and for ones another that adds a letter ("+"): parts of 50,000
    letters take 22 steps.
    """
    if length > len(letters):
        return np.empty(0, dtype=np.int64), 1
    things, size, done = letters, alphabet, 1
    for step in f"{length:b}"[1:].replace("0", "d").replace("1", "d+"):
        if size * (size if step == "d" else alphabet) >= _LARGEST:
            known, things = np.unique(things, return_inverse=True)  # only what occurs
            size = len(known)
        if step == "d":
            things, size, done = things[:-done] * size + things[done:], size * size, 2 * done
        else:
            things, size, done = things[:-1] * alphabet + letters[done:], size * alphabet, done + 1
    return things, size


def _encoded(*blocks: Any) -> list[Letters]:
    """Number the tokens that occur in every block; others match nothing and become -1.

    Only tokens count, so "ab" and ("a", "b") are the same sequence. Strings are converted to code
    points at once; only sequences of other objects need a loop in Python.
    """
    codes = _codes(blocks)
    size = max((int(c.max()) for c in codes if c.size), default=-1) + 1
    shared = np.ones(size, dtype=bool)
    for c in codes:
        seen = np.zeros(size, dtype=bool)
        seen[c] = True
        shared &= seen
    number = np.full(size, -1, dtype=np.int32)
    alphabet = int(np.count_nonzero(shared))
    number[shared] = np.arange(alphabet, dtype=np.int32)
    starts = (np.cumsum([0, *map(len, block)], dtype=np.int64) for block in blocks)
    return [Letters(number[c], start, alphabet) for c, start in zip(codes, starts, strict=True)]


def _codes(blocks: tuple[Any, ...]) -> list[Array]:
    if all(isinstance(s, str) for s in chain(*blocks)):
        texts = ("".join(block).encode("utf-32-le", "surrogatepass") for block in blocks)
        return [np.frombuffer(text, dtype=np.uint32) for text in texts]
    if all(isinstance(s, bytes) for s in chain(*blocks)):
        return [np.frombuffer(b"".join(block), dtype=np.uint8) for block in blocks]
    number: dict[Hashable, int] = {}
    return [
        np.array([number.setdefault(t, len(number)) for s in block for t in s], dtype=np.intp)
        for block in blocks
    ]
