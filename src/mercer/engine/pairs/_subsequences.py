"""The gap-weighted subsequence kernel of strings, by explicit features or by recursion.

    phi_u(s) = sum over places i_1 < ... < i_p with s[i_1], ..., s[i_p] = u of decay^(i_p - i_1 + 1)

and k(s, t) = sum_u phi_u(s) phi_u(t). There are alphabet^p features; those of a block of sequences
are one matrix, and k is a product of two of them. The recursion over pairs of sequences takes
p |s| |t| steps whatever the alphabet is. The way with less work is taken. The compiled core does
both; NumPy does if it is missing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads, thread_count
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.engine._tiling import pieces

_SMALLEST_DECAY = 1e-12  # below it the scaled sums of the core could overflow
_DIAGONAL, _PAIRS = 512, 32  # sequences of one task: milliseconds of work
_STRIP = 64  # letters of a sequence that NumPy takes at once
# Work in units of one multiplication inside a matrix product, which is the fastest there is: of a
# feature at one letter of a sequence, and of a pair of letters for each letter of the subsequence
# (benchmarks/strings.py compares both ways).
_NATIVE_WORK, _NUMPY_WORK = (7.0, 1.0), (90.0, 110.0)
_UNROLLED, _LONGER = 5, 3.0  # up to so many letters stay in registers; longer ones take more work


@dataclass(frozen=True)
class Letters:
    """Sequences one after another, as numbers 0, ..., alphabet - 1; -1 matches nothing.

    Sequence i is letters[start[i]:start[i + 1]].
    """

    letters: Array
    start: Array
    alphabet: int

    @property
    def count(self) -> int:
        """The number of sequences."""
        return len(self.start) - 1

    @property
    def lengths(self) -> Array:
        """The length of each sequence."""
        return np.diff(self.start)

    @property
    def rows(self) -> Array:
        """For every letter the number of its sequence."""
        return np.repeat(np.arange(self.count), self.lengths)

    def take(self, index: Array) -> Letters:
        """Some of the sequences."""
        lengths = self.lengths[index]
        start = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.start[index] - start[:-1], lengths) + np.arange(start[-1])
        return Letters(self.letters[places], start, self.alphabet)

    def part(self, rows: slice) -> Letters:
        """Neighbouring sequences."""
        start = self.start[rows.start : rows.stop + 1]
        return Letters(self.letters[start[0] : start[-1]], start - start[0], self.alphabet)

    def padded(self) -> Array:
        """A matrix with one column per sequence, -1 beyond its end."""
        out = np.full((int(self.lengths.max(initial=0)), self.count), -1, dtype=np.int32)
        rows = self.rows
        out[np.arange(len(rows)) - self.start[rows], rows] = self.letters
        return out


def subsequence_gram(x: Letters, y: Letters, length: int, decay: float) -> Array:
    """k(s, t) for all s of x and t of y, which share an alphabet."""
    shortest = min(int(x.lengths.max(initial=0)), int(y.lengths.max(initial=0)))
    if x.alphabet == 0 or shortest < length:
        return np.zeros((x.count, y.count))
    run = _by_features if _features_are_faster(x, y, length, decay) else _by_pairs
    return run(x, y, length, decay)


def subsequence_diagonal(x: Letters, length: int, decay: float) -> Array:
    """k(s, s) for every sequence of x."""
    use = _use_core(length, decay)

    def run(part: slice) -> Array:
        some = x.part(part)
        if not use:
            return _diagonal_numpy(some, length, decay)
        out = np.empty(some.count)
        core().subsequence_diagonal(some.letters, some.start, length, decay, out, instruction_set())
        return out

    return np.concatenate(map_threads(run, list(pieces(x.count, _DIAGONAL))))


def _use_core(length: int, decay: float) -> bool:
    """Whether the core runs; `options(engine="blocked")` asks for NumPy alone."""
    return bool(core_allowed() and length <= core().MAX_LENGTH and decay >= _SMALLEST_DECAY)


def _features_are_faster(x: Letters, y: Letters, length: int, decay: float) -> bool:
    """Whether features take less work; in logarithms, because alphabet^p may overflow."""
    native = _use_core(length, decay)
    feature, pair = _NATIVE_WORK if native else _NUMPY_WORK
    pair *= length * (_LONGER if native and length > _UNROLLED else 1.0)
    n, m = float(len(x.letters)), float(len(y.letters))
    by_features = float(x.count) * y.count + feature * (n + m) / x.alphabet
    return math.log(by_features) + length * math.log(x.alphabet) < math.log(pair * n * m)


# --- explicit features ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Begin:
    """Subsequences that begin with given letters and then one of first, ..., last - 1."""

    prefix: tuple[int, ...]
    first: int
    last: int


def _by_features(x: Letters, y: Letters, length: int, decay: float) -> Array:
    """Sum over groups of features with the same beginning, each as large as the memory allows.

    Sequences that lack a letter of the beginning have none of these features, and are left out.
    """
    out = np.zeros((x.count, y.count))
    has_x, has_y = _has(x), _has(y)
    for begin in _beginnings(x.alphabet, length, x.count + y.count):
        rows, columns = _with(has_x, begin), _with(has_y, begin)
        left, right = (
            _features(z if len(own) == z.count else z.take(own), length, begin, decay)
            for z, own in ((x, rows), (y, columns))
        )
        if len(rows) == x.count and len(columns) == y.count:
            out += left @ right.T
        else:
            out[np.ix_(rows, columns)] += left @ right.T
    return out


def _beginnings(alphabet: int, length: int, count: int) -> Iterator[_Begin]:
    """Beginnings that split the features of `count` sequences into parts that fit in memory."""
    room = get_options().working_memory * 2**20 / (2 * thread_count() * 8 * count)
    given = 0
    while given < length - 1 and alphabet ** (length - given - 1) > room:
        given += 1
    together = max(1, int(room / alphabet ** (length - given - 1)))
    together = -(-alphabet // -(-alphabet // together))  # parts of about equal size
    for prefix in itertools.product(range(alphabet), repeat=given):
        yield from (_Begin(prefix, s.start, s.stop) for s in pieces(alphabet, together))


def _has(x: Letters) -> Array:
    """Which sequence has which letter."""
    out = np.zeros((x.count, x.alphabet + 1), dtype=bool)  # the last column is for -1
    out[x.rows, x.letters] = True
    return out


def _with(has: Array, begin: _Begin) -> Array:
    """The sequences that have the letters of a beginning."""
    some = has[:, begin.first : begin.last].any(axis=1)
    return np.flatnonzero(has[:, begin.prefix].all(axis=1) & some)


def _features(x: Letters, length: int, begin: _Begin, decay: float) -> Array:
    """phi_u of all u with this beginning, one column each, the last letter varying slowest."""
    if not _use_core(length, decay):
        return _features_numpy(x, length, begin, decay)
    given, size = len(begin.prefix), begin.last - begin.first
    out = np.empty((x.count, size * x.alphabet ** (length - given - 1)))
    prefix = np.array(begin.prefix, dtype=np.int32)
    sequences = x.letters, x.start, x.alphabet
    core().subsequence_features(
        *sequences, length, prefix, begin.first, begin.last, decay, out, instruction_set()
    )
    return out


def _features_numpy(x: Letters, length: int, begin: _Begin, decay: float) -> Array:
    """The same in NumPy: each letter continues the subsequences that are open, which decay."""
    n, given, size = x.count, len(begin.prefix), begin.last - begin.first
    begun = np.zeros((given + 1, n))  # weights of the first letters of the prefix
    begun[0] = 1.0
    # of given + 1, given + 2, ..., length letters
    open_ = [np.zeros((n, size * x.alphabet**k)) for k in range(length - given)]
    for c in x.padded():
        known = np.flatnonzero(c >= 0)
        for k in range(length - given - 1, 0, -1):
            blocks = open_[k].reshape(n, x.alphabet, -1)
            blocks[known, c[known]] += decay * open_[k - 1][known]
            open_[k - 1] *= decay
        inside = np.flatnonzero((c >= begin.first) & (c < begin.last))
        open_[0][inside, c[inside] - begin.first] += decay * begun[given, inside]
        for k in range(given, 0, -1):
            begun[k] = decay * (begun[k] + np.where(c == begin.prefix[k - 1], begun[k - 1], 0.0))
    return open_[-1]


# --- recursion over pairs -------------------------------------------------------------------------


def _by_pairs(x: Letters, y: Letters, length: int, decay: float) -> Array:
    """Some rows at a time, shared among the threads."""
    out = np.empty((x.count, y.count))
    use = _use_core(length, decay)

    def run(part: slice) -> None:
        some = x.part(part)
        if use:
            pairs = some.letters, some.start, y.letters, y.start
            core().subsequence_pairs(*pairs, length, decay, out[part], instruction_set())
        else:
            _rows_numpy(some, y, length, decay, out[part])

    map_threads(run, list(pieces(x.count, _PAIRS)))
    return out


def _rows_numpy(x: Letters, y: Letters, length: int, decay: float, out: Array) -> None:
    columns = y.padded()
    for i in range(x.count):
        row = x.letters[x.start[i] : x.start[i + 1], None]
        for part in pieces(y.count, _lanes(len(columns))):
            out[i, part] = _pairs_numpy(row, columns[:, part], length, decay)


def _diagonal_numpy(x: Letters, length: int, decay: float) -> Array:
    padded, out = x.padded(), np.empty(x.count)
    for part in pieces(x.count, _lanes(len(padded))):
        out[part] = _pairs_numpy(padded[:, part], padded[:, part], length, decay)
    return out


def _lanes(places: int) -> int:
    """Pairs that NumPy takes at once."""
    room = get_options().working_memory * 2**20 / (4 * thread_count())
    return max(1, min(64, int(room / (8 * _STRIP * max(1, places)))))


def _pairs_numpy(S: Any, T: Any, length: int, decay: float) -> Array:
    """k of column l of S with column l of T, strip by strip of the places of S.

    With M_1 = [s_i = t_j], Q_k the sum of decay^(i - i' - 1 + j - j' - 1) M_k(i', j') over i' < i
    and j' < j, and M_(k+1) = M_1 Q_k: the value is decay^(2p) times the sum of M_p.
    """
    places, pairs = T.shape
    carried = np.zeros((length - 1, places, pairs))
    value = np.zeros(pairs)
    for strip in pieces(len(S), _STRIP):
        s = S[strip][:, None, :]
        match = ((s == T) & (s >= 0)).astype(np.float64)
        M = match
        for k in range(length - 1):
            Q = np.concatenate([carried[k : k + 1], M])
            for i in range(1, len(Q)):
                Q[i] += decay * Q[i - 1]
            carried[k] = Q[-1]
            for j in range(1, places):
                Q[:, j] += decay * Q[:, j - 1]
            M = np.zeros_like(match)
            M[:, 1:] = match[:, 1:] * Q[:-1, :-1]
        value += M.sum(axis=(0, 1))
    return np.asarray(decay ** (2 * length) * value)
