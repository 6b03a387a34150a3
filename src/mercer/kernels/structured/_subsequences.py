"""The gap-weighted subsequence kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer._array import Array, positive, positive_int
from mercer.engine.pairs._subsequences import subsequence_diagonal, subsequence_gram
from mercer.exceptions import InputError
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._precomputed import OfBlocks
from mercer.kernels.structured._domains import Sequences
from mercer.kernels.structured._token_codes import encoded


@dataclass(frozen=True)
class Subsequences(OfBlocks):
    """Gap-weighted subsequence kernel k(s, t) = sum_u phi_u(s) phi_u(t) over all u of p letters.

    phi_u(s) is the sum of d^(i_p - i_1 + 1) over all places i_1 < ... < i_p at which s reads u: a
    subsequence counts less the longer the stretch it is spread over. Points are strings, bytes, or
    lists or tuples of hashable tokens such as words. A sequence of fewer than p letters has the
    feature zero.

    Values grow with the length of the sequences, at most to C(n, p) C(m, p) d^(2p); `Normalised`
    takes that out, and is how the kernel is mostly used.

    Parameters
    ----------
    length : int, default=3
        The number of letters p >= 1.
    decay : float, default=0.5
        0 < d <= 1; at 1 gaps cost nothing.

    See Also
    --------
    Spectrum : letters without gaps.

    Notes
    -----
    With few letters and long sequences the features are computed and multiplied; otherwise the
    recursion of Lodhi et al. runs over pairs, in p |s| |t| steps.

    References
    ----------
    H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini and C. Watkins, Text classification using
    string kernels (2002).

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", positive_int(self.length, "length"))
        decay = positive(self.decay, "decay")
        if decay > 1.0:
            raise InputError(f"decay must be <= 1, got {decay!r}")
        object.__setattr__(self, "decay", decay)

    domain = Sequences()

    def _block(self, X: Any, Y: Any = None) -> Array:
        if Y is None:
            return subsequence_diagonal(encoded(X)[0], self.length, self.decay)
        x, y = encoded(X, Y)
        return subsequence_gram(x, y, self.length, self.decay)
