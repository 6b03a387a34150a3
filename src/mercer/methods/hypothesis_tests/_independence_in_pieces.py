"""The independence test of rows in pieces, on landmarks.

With K~ = FF' and L~ = GG' a permutation needs M = F' P G, and M is a sum over pairs of pieces: of
the rows of a piece of F that are paired with rows of a piece of G. Their numbers are a table with
fixed margins (the piece sizes), drawn at the client; the rows are drawn from the seeds of the two
pieces. So features stay where they are, and only small matrices are added up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, Points
from mercer._chunks import Chunks
from mercer._progress import tracked
from mercer.engine import pieces
from mercer.kernels import Kernel, Vectors
from mercer.kernels._domain import points_of
from mercer.linalg import Nystrom
from mercer.linalg._nystrom import choose_landmarks
from mercer.methods.hypothesis_tests._forms_in_pieces import (
    equal_up_to_rounding,
    hsic_in_pieces,
    in_same_pieces,
    refuse_more_than_draws,
)
from mercer.methods.hypothesis_tests._hsic import at_least_four
from mercer.methods.hypothesis_tests._kernel_grid import root_mean_squares
from mercer.methods.hypothesis_tests._resampling import Drawn
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval
from mercer.methods.hypothesis_tests._variables import kernels_of_each
from mercer.space import Element

_LANDMARKS = 128  # of all kernels of one variable together
_CHOSEN_AMONG = 2_000  # rows
_DRAWS = 100  # whose matrices M are held at once
_ROUNDING = 1e-14  # 45 eps, of sums of squares
_BLOCK = 8192  # rows whose features are computed at once


class Features(NamedTuple):
    """Coordinates of centred features on the landmarks of several kernels, then their squares."""

    lows: list[Nystrom]
    means: list[Array]

    def __call__(self, x: Any) -> Array:
        parts = [self._of(x, k) for k in range(len(self.lows))]
        squares = [np.sum(z**2, axis=1, keepdims=True) for z in parts]
        return np.hstack([*parts, *squares])

    def _of(self, x: Any, k: int) -> Array:
        low = self.lows[k]
        points = Points(x, low.kernel.domain)
        return np.concatenate([low.map(points[p]) for p in pieces(len(x), _BLOCK)]) - self.means[k]

    @property
    def starts(self) -> Array:
        """The first column of each kernel, and of the squares."""
        return np.cumsum([0, *(low.rank for low in self.lows)])

    def function(self, k: int, direction: Array) -> Element:
        """The function of one kernel with these coordinates."""
        from scipy.linalg import solve_triangular

        low = self.lows[k]
        coef = solve_triangular(low.triangle.T, direction, lower=False)
        return Element(low.kernel, Points(low.landmarks, low.kernel.domain), coef)


def hsic_test_in_pieces(
    question: str, X: Any, Y: Any, kernel: Any, n_draws: int, seed: int, rng: np.random.Generator
) -> TestResult:
    """The permutation test, with kernels projected on their landmarks for the null distribution.

    Landmarks of X and of Y are chosen among two independent samples, so that they do not depend on
    the pairing, and the p-value is exact for the projected kernels.
    """
    vectors, names = Vectors(), ("X", "Y")
    given = (points_of(vectors, Z, name).array for Z, name in zip((X, Y), names, strict=True))
    x, y = in_same_pieces(*given)
    n = len(x)
    at_least_four(n)
    refuse_more_than_draws(n)
    kernels = kernels_of_each([x, y], kernel, rng)
    x, y = (
        points_of(chosen[0].domain, Points(z, vectors), name).array
        for z, name, chosen in zip((x, y), names, kernels, strict=True)
    )
    F, G = (_features(z, chosen, rng) for z, chosen in zip((x, y), kernels, strict=True))
    statistics, first = _statistics(x, F, y, G, n_draws, rng)
    sizes = [root_mean_squares(k, z, rng) for k, z in zip(kernels, (x, y), strict=True)]
    pairs = [(kx, ky) for kx in kernels[0] for ky in kernels[1]]
    drawn = Drawn.of(statistics, np.outer(*sizes).ravel())
    kx, ky = pairs[drawn.best]
    effect = hsic_in_pieces(kx, x, ky, y, unbiased=True)[1]
    return TestResult(
        question=question,
        statistic=effect.value,
        null="permutation",
        n=(n,),
        seed=seed,
        witness=_witness(F, G, drawn.best, first),
        **drawn.fields(pairs),
        **effect_interval(effect.ratio, effect.variance, effect.unit, drawn.spread),
    )


def _features(x: Chunks, kernels: tuple[Kernel, ...], rng: np.random.Generator) -> Features:
    """Landmarks among rows drawn at random, in random order, and the means of all features."""
    index = rng.choice(len(x), min(len(x), _CHOSEN_AMONG), replace=False)
    some, size = x.rows(index), max(1, _LANDMARKS // len(kernels))
    lows = [choose_landmarks(k, some, size, rule="pivoted") for k in kernels]
    features = Features(lows, [np.zeros(low.rank) for low in lows])
    sums = x.total(_sum, features, task="features") / len(x)
    return Features(lows, np.split(sums, features.starts[1:])[: len(lows)])


def _sum(x: Any, features: Features) -> Array:
    return np.asarray(features(x).sum(axis=0))


def _tables(sizes: tuple[int, ...], at: slice, rng: np.random.Generator) -> Array:
    """How many rows of pieces i and j are paired in some draws, shape (draws, c, c).

    Draw 0 is the observed pairing.
    """
    c = len(sizes)
    out = np.zeros((at.stop - at.start, c, c), dtype=np.int64)
    for b, table in enumerate(out, start=at.start):
        if b == 0:
            table[:] = np.diag(sizes)
            continue
        left = np.array(sizes)
        for i, size in enumerate(sizes):
            table[i] = rng.multivariate_hypergeometric(left, size, method="marginals")
            left -= table[i]
    return out


def _statistics(
    x: Chunks, F: Features, y: Chunks, G: Features, n_draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Unbiased HSIC of each pair of kernels and draw, and M of the observed pairing."""
    n, starts, seed = len(x), (F.starts, G.starts), int(rng.integers(2**63))
    rows = x.mapped(_call, F).each(range(len(x.sizes)))
    columns = y.mapped(_call, G).each(range(len(y.sizes)))
    traces = [z.total(_squares, features) for z, features in ((x, F), (y, G))]
    out, first = np.empty((len(F.lows) * len(G.lows), n_draws + 1)), np.zeros((0, 0))
    for at in tracked(list(pieces(n_draws + 1, _DRAWS)), "permutations"):
        sums = rows.crossed(columns, _products, _tables(x.sizes, at, rng), at.start, seed)
        M = sums.total(np.asarray, task="permutations")
        first = M[0] if at.start == 0 else first
        for k in range(len(F.lows)):
            for j in range(len(G.lows)):
                a, b = (slice(s[i], s[i + 1]) for s, i in zip(starts, (k, j), strict=True))
                square = np.sum(M[:, a, b] ** 2, axis=(1, 2))
                meet = M[:, starts[0][-1] + k, starts[1][-1] + j]
                total = traces[0][k] * traces[1][j] / ((n - 1.0) * (n - 2.0))
                value = (square - n / (n - 2.0) * meet + total) / (n * (n - 3.0))
                out[k * len(G.lows) + j, at] = value
    bounds = np.outer(*traces).ravel() / (n * (n - 3.0))  # of |M|^2 there
    return equal_up_to_rounding(out, _ROUNDING * bounds), first


def _products(F: Array, i: int, G: Array, j: int, tables: Array, start: int, seed: int) -> Array:
    """F' P G of the rows of two pieces that are paired, for some draws."""
    out = np.zeros((len(tables), F.shape[1], G.shape[1]))
    for b, table in enumerate(tables):
        if not table[i, j]:
            continue
        if start + b == 0:  # the observed pairing
            out[b] = F.T @ G
            continue
        mine = _order(seed, (0, i, start + b), len(F), int(table[i, :j].sum()), table[i, j])
        theirs = _order(seed, (1, j, start + b), len(G), int(table[:i, j].sum()), table[i, j])
        out[b] = F[mine].T @ G[theirs]
    return out


def _order(seed: int, key: tuple[int, int, int], size: int, start: int, count: int) -> Array:
    """A part of a random order of the rows of a piece, the same in every call."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    return rng.permutation(size)[start : start + count]


def _witness(F: Features, G: Features, best: int, M: Array) -> tuple[Element, Element] | None:
    """The functions of norm one with the largest covariance, in the span of the landmarks.

    None if a kernel is zero at all of them.
    """
    k, j = divmod(best, len(G.lows))
    if not F.lows[k].rank or not G.lows[j].rank:
        return None
    a, b = slice(*F.starts[k : k + 2]), slice(*G.starts[j : j + 2])
    U, _, V = np.linalg.svd(M[a, b])
    return F.function(k, U[:, 0]), G.function(j, V[0])


def _squares(x: Any, features: Features) -> Array:
    return np.asarray(features(x)[:, features.starts[-1] :].sum(axis=0))


def _call(x: Any, features: Features) -> Array:
    return features(x)
