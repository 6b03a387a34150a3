"""Sums over all pairs of rows in pieces: quadratic forms in random vectors, MMD, KSD and HSIC.

Nothing of size n x draws exists anywhere: each pair of pieces draws its part of the vectors again
from the seeds of its two pieces, and returns a number or two for each draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array, Points, is_sparse
from mercer._chunks import Chunks
from mercer.engine import Dense, Program, as_float64, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._hsic_permutations import Effect, standardised
from mercer.methods.hypothesis_tests._quadratic_forms import _scaled
from mercer.methods.hypothesis_tests._resampling import random_subset
from mercer.space import mean_embedding

_TILE = 1024  # rows and columns of a kernel matrix that is held at once
_DRAWS = 256  # that are made at once, from one generator
_EXACT = 8  # draws that are summed in float64 too, to measure rounding; few, for speed
_MOST_ROWS = 10**9  # of NumPy's hypergeometric distributions


class Forms(NamedTuple):
    """Sums over i != j for each kernel; the first two for each draw w, in columns."""

    values: Array  # w_i K_ij w_j
    linear: Array  # w_i K_ij
    total: Array  # K_ij
    absolute: Array  # |K_ij|
    exact: Array  # w_i K_ij w_j of the first draws, in float64 throughout

    @property
    def rounding(self) -> Array:
        """The largest error of the first draws, the observed one among them."""
        errors = np.abs(self.values[:, : self.exact.shape[1]] - self.exact).max(axis=1)
        return np.asarray(errors + np.finfo(np.float64).eps * self.absolute)


@dataclass(frozen=True, eq=False)
class Draws:
    """Random vectors on rows in pieces, the observed one first.

    Signs of n terms; or, with `counts`, which rows are in the first of two samples, minus the share
    of such rows. Piece i of draw b has counts[b, i] of them, all sets equally likely: with counts
    from the multivariate hypergeometric distribution this is a random relabelling of all rows.
    """

    seed: int
    n_draws: int
    counts: Array | None = None
    share: float = 0.0

    @property
    def parts(self) -> list[slice]:
        """The draws that are made at once."""
        return list(pieces(self.n_draws + 1, _DRAWS))

    def vectors(self, at: slice, piece: int, size: int) -> Array:
        """Some draws on the rows of one piece, shape (draws, size), in float32."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(piece, at.start)))
        if self.counts is None:
            signs = rng.integers(0, 2, size=(at.stop - at.start, size), dtype=np.int8)
            vectors = (2 * signs - 1).astype(np.float32)
            if at.start == 0:
                vectors[0] = 1.0
            return vectors
        sets = [random_subset(size, int(c), rng) for c in self.counts[at, piece]]
        vectors = np.array(sets, dtype=np.float32)
        if at.start == 0:  # a piece is of one of the two samples
            vectors[0] = float(self.counts[0, piece] > 0)
        vectors -= np.float32(self.share)
        return vectors


def relabellings(sizes: tuple[int, ...], first: int, seed: int, n_draws: int) -> Draws:
    """The relabellings of two samples, of which the first has the first pieces."""
    stops = np.cumsum(sizes)
    m, n = int(stops[first - 1]), int(stops[-1])
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(len(sizes), 0)))
    refuse_more_than_draws(n)
    drawn = rng.multivariate_hypergeometric(sizes, m, size=n_draws, method="marginals")
    observed = np.where(np.arange(len(sizes)) < first, sizes, 0)
    share = round(m / n * 2**20) / 2**20  # exact in float32
    return Draws(seed, n_draws, np.vstack([observed, drawn]), share)


def refuse_more_than_draws(n: int) -> None:
    """Raise for more rows than NumPy shares out among pieces at random."""
    if n >= _MOST_ROWS:
        raise InputError(
            f"random permutations of rows in pieces need fewer than 10**9 rows, got {n}; test a "
            "sample of them"
        )


def forms_in_pieces(
    rows: Chunks, programs: Sequence[Program], draws: Draws, references: Any = None
) -> Forms:
    """Quadratic forms of several kernels in random vectors.

    K is k(x_i, x_j), or with references k(x_i, x_j) - g(x_i) - g(x_j), where g is the mean of
    k(x, .) over the references less half its mean. Products run in float32, sums of tiles in
    float64.
    """
    numbered = rows.only(0).each(range(len(rows.sizes)))
    sums = numbered.crossed(numbered, _of_pair, programs, draws, references, half=True)
    return Forms(*sums.total(tuple, task="permutations"))


def equal_up_to_rounding(statistics: Array, rounding: Array) -> Array:
    """Statistics, made equal for kernels (rows) whose spread over draws is no more than rounding.

    Errors of the observed draw differ from those of others, because its labels are equal within a
    piece: the test would detect them. Rounding to a few bits makes the new spread exactly zero.
    """
    still = statistics.std(axis=1) <= rounding
    mantissa, exponent = np.frexp(statistics.mean(axis=1, keepdims=True))
    means = np.ldexp(np.round(mantissa * 2**24) / 2**24, exponent)
    return np.where(still[:, None], means, statistics)


def row_sums(rows: Chunks, program: Program, vectors: Array) -> tuple[Array, Array]:
    """sum_{j != i} k(x_i, x_j) v_j for each row and column of v, and k(x_i, x_i)."""
    whole = rows.only(0)
    sums = whole.crossed(whole.zip(vectors), _row_sums, program)
    diagonal = np.concatenate(whole.gathered(_diagonal, program, task="diagonal"))
    found = np.concatenate(sums.gathered(np.asarray, task="kernel sum"))
    return found - diagonal[:, None] * vectors, diagonal


def within_in_pieces(kernel: Kernel, x: Chunks, weights: Any, *, unbiased: bool) -> float:
    """The mean of k(x_i, x_j), with weights; over i != j if unbiased."""
    mean = mean_embedding(kernel, Points(x, kernel.domain), weights=weights)
    total = float(mean.inner(mean))
    if not unbiased:
        return total
    rows = mean.points.zip(mean.coef.chunks)
    used, squares, own = rows.total(_own_pairs, kernel.program, task="diagonal")
    if used < 2:
        raise InputError("the unbiased estimator needs two rows with positive weight in a sample")
    return float((total - own) / (1.0 - squares))


def _of_pair(
    x: Any, i: int, y: Any, j: int, programs: Sequence[Program], draws: Draws, references: Any
) -> Forms:
    count, width = len(programs), draws.n_draws + 1
    shapes: list[Any] = [(count, width), (count, width), count, count, (count, min(_EXACT, width))]
    out = Forms(*map(np.zeros, shapes))
    x, y = as_float64(x), as_float64(y)
    shifts = [(_shifts(p, x, references), _shifts(p, y, references)) for p in programs]
    for at in draws.parts:
        U = draws.vectors(at, i, n_rows(x))
        V = U if i == j else draws.vectors(at, j, n_rows(y))
        for rows in pieces(n_rows(x), _TILE):
            for columns in pieces(n_rows(y), _TILE, rows.start if i == j else 0):
                same = i == j and rows.start == columns.start
                for k, (program, (g, h)) in enumerate(zip(programs, shifts, strict=True)):
                    K = engine.gram(program, x[rows], y[columns]) - g[rows, None] - h[columns]
                    tile = K, U[:, rows], V[:, columns], same
                    for sums, part in zip(out[:2], _of_tile(*tile), strict=True):
                        sums[k, at] += part
                    if at.start == 0:
                        for sums, part in zip(out[2:], _once_of_tile(*tile), strict=True):
                            sums[k] += part
    return out


def _shifts(program: Program, x: Any, references: Any) -> Array:
    """g(x) of `forms_in_pieces` for each row; zero without references."""
    if references is None:
        return np.zeros(n_rows(x))
    tiles = (engine.gram(program, x[rows], references) for rows in pieces(n_rows(x), _TILE))
    half = 0.5 * float(engine.gram(program, references, references).mean())
    return np.concatenate([K.mean(axis=1) for K in tiles]) - half


def _of_tile(K: Array, U: Array, V: Array, same: bool) -> tuple[Array, Array]:
    """The contributions of a tile and its mirror image; `same` is a tile on the diagonal."""
    if same:
        np.fill_diagonal(K, 0.0)
    times = 1.0 if same else 2.0
    K32, size = _scaled(K, U.dtype)
    linear = U @ K.sum(axis=1)
    if not same:
        linear += V @ K.sum(axis=0)
    return times * size * np.vecdot(U @ K32, V), linear


def _once_of_tile(K: Array, U: Array, V: Array, same: bool) -> tuple[Any, ...]:
    """The same for what does not depend on draws, and for the first draws in float64."""
    times = 1.0 if same else 2.0
    first, second = (W[:_EXACT].astype(np.float64) for W in (U, V))
    exact = np.vecdot(first @ K, second)
    return times * float(K.sum()), times * float(np.abs(K).sum()), times * exact


def _row_sums(y: Any, x: Any, v: Array, program: Program) -> Array:
    return engine.fields(program, as_float64(x), as_float64(y), Dense(v)).value


def _diagonal(x: Any, program: Program) -> Array:
    return np.asarray(engine.diagonal(program, as_float64(x)), dtype=np.float64)


def _own_pairs(x: Any, w: Array, program: Any) -> tuple[int, float, float]:
    v = w[:, 0]
    own = engine.diagonal(program, as_float64(x))
    return int(np.count_nonzero(v)), float(v @ v), float(v**2 @ own)


def in_same_pieces(x: Any, y: Any) -> tuple[Chunks, Chunks]:
    """Both samples in the pieces of the one that has pieces, of X if both have."""
    if not isinstance(x, Chunks):
        return in_same_pieces(y, x)[::-1]
    if is_sparse(y):
        raise InputError("a variable beside one in pieces must be dense; use its toarray()")
    if len(y) != len(x):
        raise InputError(f"X has {len(x)} rows, but Y has {len(y)}: they must be paired")
    tail, dtype = y.shape[1:], y.dtype
    both = x.zip(y, name="Y").only(1)
    return x, both.mapped(np.asarray, tail=tail, dtype=dtype)


def hsic_in_pieces(
    kernel_x: Kernel, x: Any, kernel_y: Kernel, y: Any, *, unbiased: bool
) -> tuple[float, Effect]:
    """The criterion, and the effect size from the unbiased one.

    Sums over pairs of pieces of the centred kernels and their products. A few numbers for each row
    come to this process, not the rows.
    """
    x, y = in_same_pieces(x, y)
    n = len(x)
    parts = [(kernel_x, x), (kernel_y, y)]
    shifts = [_means(kernel, z) for kernel, z in parts]
    rows = x.zip(y, *shifts).each(range(len(x.sizes)))
    programs = kernel_x.program, kernel_y.program
    sums = rows.crossed(rows, _products_of_pair, *programs)
    xy, xx, yy = np.concatenate(sums.gathered(np.asarray, task="kernel sums")).T
    diagonals = rows.gathered(_diagonals, *programs, task="diagonal")
    p, q = np.concatenate(diagonals).T
    if not unbiased:
        value = float((xy + p * q).sum()) / n**2
        return value, Effect(value, 0.0, 0.0, 0.0)
    # `standardised` takes sums over all j, the diagonal included
    effect = standardised(xy + p * q, xx + p * p, yy + q * q, p, q)
    return effect.value, effect


def _means(kernel: Kernel, x: Chunks) -> Array:
    """g such that k(x, y) - g(x) - g(y) is the kernel of the features minus their mean."""
    n = len(x)
    sums = x.crossed(x.zip(np.ones((n, 1))), _row_sums, kernel.program)
    g = np.concatenate(sums.gathered(np.asarray, task="means"))[:, 0] / n  # exact for equal rows
    return np.asarray(g - 0.5 * g.mean())


def _products_of_pair(*blocks: Any) -> Array:
    """Sums over j != i of the products of both centred kernels, and of their squares."""
    x, y, g, h, i, x2, y2, g2, h2, j, kx, ky = blocks
    x, y, x2, y2 = map(as_float64, (x, y, x2, y2))
    out = np.zeros((n_rows(x), 3))
    for rows in pieces(n_rows(x), _TILE):
        for columns in pieces(n_rows(x2), _TILE):
            K = engine.gram(kx, x[rows], x2[columns]) - g[rows, None] - g2[columns]
            L = engine.gram(ky, y[rows], y2[columns]) - h[rows, None] - h2[columns]
            if i == j and rows.start == columns.start:
                np.fill_diagonal(K, 0.0)
                np.fill_diagonal(L, 0.0)
            out[rows, 0] += np.einsum("ij,ij->i", K, L)
            out[rows, 1] += np.einsum("ij,ij->i", K, K)
            out[rows, 2] += np.einsum("ij,ij->i", L, L)
    return out


def _diagonals(x: Any, y: Any, g: Array, h: Array, _: int, kx: Any, ky: Any) -> Array:
    p = engine.diagonal(kx, as_float64(x)) - 2.0 * g
    q = engine.diagonal(ky, as_float64(y)) - 2.0 * h
    return np.column_stack([p, q])
