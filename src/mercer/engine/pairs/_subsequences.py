"""The gap-weighted subsequence kernel of strings, by explicit features or by recursion.

    phi_u(s) = sum over places i_1 < ... < i_p with s[i_1], ..., s[i_p] = u of decay^(i_p - i_1 + 1)

and k(s, t) = sum_u phi_u(s) phi_u(t). There are alphabet^p features; those of a block of sequences
are one matrix, and k is a product of two of them. The recursion over pairs of sequences takes
p |s| |t| steps whatever the alphabet is. The core uses the method with less work; without it, a
plain recursion runs on SciPy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads, stop_if_interrupted, thread_count
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.engine._sizes import pieces

_SMALLEST_DECAY = 1e-12  # below it the scaled sums of the core could overflow
_DIAGONAL, _PAIRS = 512, 32  # sequences of one task: milliseconds of work
_STRIP = 64  # letters of a sequence that SciPy takes at once
# Work of a feature at one letter of a sequence, in units of one multiplication inside a matrix
# product, which is the fastest there is. A pair of letters takes one unit for each letter of the
# subsequence (benchmarks/strings.py compares both methods).
_FEATURE_WORK = 7.0
_UNROLLED, _LONGER = 5, 3.0  # up to this many letters stay in registers; longer ones take more work


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
        return len(self.start) - 1

    @property
    def lengths(self) -> Array:
        return np.diff(self.start)

    @property
    def rows(self) -> Array:
        """For every letter the number of its sequence."""
        return np.repeat(np.arange(self.count), self.lengths)

    def __iter__(self) -> Iterator[Array]:
        return (self.letters[a:b] for a, b in itertools.pairwise(self.start))

    def part(self, rows: slice) -> Letters:
        start = self.start[rows.start : rows.stop + 1]
        return Letters(self.letters[start[0] : start[-1]], start - start[0], self.alphabet)


def subsequence_gram(x: Letters, y: Letters, length: int, decay: float) -> Array:
    """k(s, t) for all s of x and t of y, which share an alphabet."""
    shortest = min(int(x.lengths.max(initial=0)), int(y.lengths.max(initial=0)))
    if x.alphabet == 0 or shortest < length:
        return np.zeros((x.count, y.count))
    by_features = _use_core(length, decay) and _features_are_faster(x, y, length)
    return (_by_features if by_features else _by_pairs)(x, y, length, decay)


def subsequence_diagonal(x: Letters, length: int, decay: float) -> Array:
    """k(s, s) for every sequence of x."""
    use = _use_core(length, decay)

    def run(part: slice) -> Array:
        some = x.part(part)
        out = np.empty(some.count)
        if use:
            sequences = some.letters, some.start
            core().subsequence_diagonal(*sequences, length, decay, out, *_settings())
        else:
            out[:] = [_recursion(s, s, length, decay) for s in some]
        return out

    return np.concatenate(map_threads(run, list(pieces(x.count, _DIAGONAL))))


def _use_core(length: int, decay: float) -> bool:
    """Whether the core runs; `options(engine="blocked")` asks for Python alone."""
    return bool(core_allowed() and length <= core().MAX_LENGTH and decay >= _SMALLEST_DECAY)


def _settings() -> tuple[str, Callable[[], None]]:
    return instruction_set(), stop_if_interrupted


def _features_are_faster(x: Letters, y: Letters, length: int) -> bool:
    """Whether features take less work; in logarithms, because alphabet^p may overflow."""
    pair = length * (_LONGER if length > _UNROLLED else 1.0)
    n, m = float(len(x.letters)), float(len(y.letters))
    by_features = float(x.count) * y.count + _FEATURE_WORK * (n + m) / x.alphabet
    return math.log(by_features) + length * math.log(x.alphabet) < math.log(pair * n * m)


def _by_features(x: Letters, y: Letters, length: int, decay: float) -> Array:
    """Sum over groups of features with the same beginning, each as large as the memory allows."""
    out = np.zeros((x.count, y.count))
    for begin in _beginnings(x.alphabet, length, x.count + y.count):
        out += _features(x, length, *begin, decay) @ _features(y, length, *begin, decay).T
    return out


def _beginnings(alphabet: int, length: int, count: int) -> Iterator[tuple[tuple[int, ...], slice]]:
    """Parts of the features of `count` sequences that fit in memory.

    Each holds the subsequences that begin with given letters and then a letter of a range.
    """
    room = get_options().working_memory * 2**20 / (2 * thread_count() * 8 * count)
    given = 0
    while given < length - 1 and alphabet ** (length - given - 1) > room:
        given += 1
    together = max(1, int(room / alphabet ** (length - given - 1)))
    together = -(-alphabet // -(-alphabet // together))  # parts of about equal size
    for prefix in itertools.product(range(alphabet), repeat=given):
        yield from ((prefix, letters) for letters in pieces(alphabet, together))


def _features(
    x: Letters, length: int, prefix: tuple[int, ...], letters: slice, decay: float
) -> Array:
    """phi_u of all u with this beginning, one column each, the last letter varying slowest."""
    columns = (letters.stop - letters.start) * x.alphabet ** (length - len(prefix) - 1)
    out = np.empty((x.count, columns))
    begin = np.array(prefix, dtype=np.int32), letters.start, letters.stop
    core().subsequence_features(
        x.letters, x.start, x.alphabet, length, *begin, decay, out, *_settings()
    )
    return out


def _by_pairs(x: Letters, y: Letters, length: int, decay: float) -> Array:
    """Some rows at a time, shared among the threads."""
    out = np.empty((x.count, y.count))
    use = _use_core(length, decay)

    def run(part: slice) -> None:
        some = x.part(part)
        if use:
            pairs = some.letters, some.start, y.letters, y.start
            core().subsequence_pairs(*pairs, length, decay, out[part], *_settings())
        else:
            out[part] = [[_recursion(s, t, length, decay) for t in y] for s in some]

    map_threads(run, list(pieces(x.count, _PAIRS)))
    return out


def _recursion(s: Array, t: Array, length: int, decay: float) -> float:
    """k(s, t), strip by strip of the letters of s.

    With M_1 = [s_i = t_j], Q_k the sum of decay^(i - i' - 1 + j - j' - 1) M_k(i', j') over i' < i
    and j' < j, and M_(k+1) = M_1 Q_k: the value is decay^(2p) times the sum of M_p.
    """
    from scipy.signal import lfilter

    value, decaying = 0.0, ([0.0, 1.0], [1.0, -decay])
    carried = np.zeros((length - 1, 1, len(t)))
    for strip in pieces(len(s), _STRIP):
        match = (s[strip, None] == t) & (t >= 0)
        M = match.astype(np.float64)
        for k in range(length - 1):
            Q, carried[k] = lfilter(*decaying, M, axis=0, zi=carried[k])
            M = match * lfilter(*decaying, Q, axis=1)
        value += float(M.sum())
    return decay ** (2 * length) * value
