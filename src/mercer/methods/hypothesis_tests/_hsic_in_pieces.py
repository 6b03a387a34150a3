"""The Hilbert-Schmidt independence criterion of rows in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._chunks import Chunks
from mercer.engine import as_float64, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._hsic_permutations import Effect, standardised
from mercer.space import mean_embedding

_TILE = 1024  # rows and columns of the kernel matrices that are held at once


def in_same_pieces(x: Any, y: Any) -> tuple[Chunks, Chunks]:
    """Both samples in the pieces of the one that has pieces, of X if both have."""
    if not isinstance(x, Chunks):
        return in_same_pieces(y, x)[::-1]
    if isinstance(y, Chunks) and y.sizes != x.sizes:
        y = type(x).mapped(y, _block, tail=y.tail, dtype=y.dtype).collected()
    if len(y) != len(x):
        raise InputError(f"X has {len(x)} rows, but Y has {len(y)}: they must be paired")
    tail, dtype = y.shape[1:], y.dtype
    both = x.zip(y, name="Y").only(1)
    return x, both.mapped(_block, tail=tail, dtype=dtype)


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
    sums = rows.crossed(rows, _of_pair, *programs)
    xy, xx, yy = np.concatenate(sums.gathered(_block, task="kernel sums")).T
    diagonals = rows.gathered(_diagonals, *programs, task="diagonal")
    p, q = np.concatenate(diagonals).T
    if not unbiased:
        value = float((xy + p * q).sum()) / n**2
        return value, Effect(value, 0.0, 0.0, 0.0)
    # `standardised` takes sums over all j, the diagonal included
    effect = standardised(xy + p * q, xx + p * p, yy + q * q, p, q)
    return effect.value, effect


def _means(kernel: Kernel, x: Chunks) -> Array:
    """What makes k(x, y) - g(x) - g(y) the kernel of features minus their mean."""
    means = mean_embedding(
        kernel, Points(x.mapped(_float64, tail=x.tail, dtype=float), kernel.domain)
    )
    program = kernel.program
    rows = means.points.zip(means.coef.chunks)
    found = means.points.crossed(rows, _mean_values, program)
    g = np.concatenate(found.gathered(_block, task="means"))
    return np.asarray(g - 0.5 * g.mean())


def _mean_values(y: Any, x: Any, a: Array, program: Any) -> Array:
    return engine.fields(program, x, y, engine.Dense(a)).value[:, 0]


def _of_pair(*blocks: Any) -> Array:
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


def _float64(x: Any) -> Array:
    return np.asarray(x, dtype=np.float64)


def _block(x: Any) -> Any:
    return x
