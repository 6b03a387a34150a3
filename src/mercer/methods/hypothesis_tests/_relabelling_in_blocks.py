"""Discrepancies of samples within blocks of rows, for many relabellings within blocks at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads
from mercer.engine import pieces
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._mmd import witness
from mercer.methods.hypothesis_tests._relabelling import CentredKernel, Discrepancies, forms_of
from mercer.methods.hypothesis_tests._resampling import Blocks
from mercer.space import Element

_TILE = 1024  # rows and columns of the kernel matrix of a block that are held at once

_NO_FREEDOM = 1e-6  # rounding of a number of rows


@dataclass(frozen=True)
class RelabelledInBlocks:
    """Weighted rows of several samples, in blocks within which samples are compared.

    With the weights v_i, the weight W_b of block b and the share P_gb of it that is in sample g,
    let u_i = v_i (1_g(i) - P_gb) and c_g = sum_b W_b P_gb (1 - P_gb). Then

        d_g = sum_i u_i k(x_i, .) / c_g

    is the mean embedding of sample g in a block, less that of the other samples there, as a mean
    over blocks weighted by W_b P_gb (1 - P_gb). Differences between blocks are not in it.

    Attributes
    ----------
    weights : array of shape (n,)
        Of mean 1.
    observed : array of int, shape (n,)
        The sample of each row.
    n_samples : int
    blocks : Blocks
    """

    weights: Array
    observed: Array
    n_samples: int
    blocks: Blocks

    def discrepancies(self, kernels: list[CentredKernel], draws: Iterable[Array]) -> Discrepancies:
        """The statistics of draws, whose labels have shape (n_draws, n), some draws at a time.

        sum_g s_g |d_g|^2, less its mean over the draws that were not observed; s_g sum to 1 for two
        samples, and give the statistic without blocks if there is one block.
        """
        watched = self.vectors(self.observed[None]).whole
        diagonals = np.stack([k.diagonal for k in kernels], axis=1)
        products: list[Array] = []
        parts = []
        for labels in draws:
            u = self.vectors(labels, 1 if self.n_samples == 2 else None)
            forms = forms_of(kernels, u, len(labels), watched[:, :0] if products else watched)
            products = products or [f.products for f in forms]
            own = u.own_pairs(diagonals)
            values = np.stack([f.values for f in forms]).reshape(len(forms), *own.shape[1:])
            errors = np.stack([f.errors + np.zeros(values[0].size) for f in forms])
            scale = u.scale
            both = ((values + own) * scale, errors.reshape(values.shape) * scale)
            parts.append([part.sum(axis=1) for part in both])
        found, bounds = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        count = found.shape[1]
        found = (found - found.mean(axis=1, keepdims=True)) * (count / (count - 1))
        return Discrepancies(found, bounds * (count / (count - 1)), products)

    def vectors(self, labels: Array, groups: int | None = None) -> _Vectors:
        return _Vectors(self, labels, groups or self.n_samples)

    def effect(
        self, kernel: CentredKernel, products: Array, size: float
    ) -> tuple[float, float, float]:
        """The statistic over the variance within samples and blocks, its variance, and the latter.

        The former variance is that of the residuals of features from the means of blocks and the
        differences of samples, fitted by least squares, so it is known in blocks of pairs too.
        """
        v, blocks = self.weights, self.blocks
        u = self.vectors(self.observed[None])
        U, scale = u.whole, u.scale[:, 0]
        mass = blocks.sums(v)

        def block_means(values: Array) -> Array:
            return np.asarray(((blocks.sums((values.T * v).T).T / mass).T)[blocks.index])

        KU = products + kernel.diagonal[:, None] * U
        S = U / v[:, None]
        G = np.linalg.pinv(S.T @ U, hermitian=True)
        # degrees of freedom: rows less blocks and samples, for equal weights
        free = float(v.sum() - (blocks.sums(v**2) / mass).sum() - np.trace(G @ (U.T @ U)))
        beta, own = KU @ G, self._in_own_block(kernel)
        fitted = own + np.vecdot(S, beta)
        norms = block_means(own) + 2.0 * np.vecdot(S, block_means(beta))
        norms += np.vecdot(S @ (G @ (U.T @ KU) @ G), S)
        squares = kernel.diagonal - 2.0 * fitted + norms  # of the residuals
        within = float(v @ squares) / free if free > _NO_FREEDOM else 0.0
        if within <= 0.0 or not scale.any():
            return 0.0, 0.0, 0.0
        ratio = float(size) / within
        residuals = KU - block_means(KU) - S @ (G @ (U.T @ KU))
        influence = 2.0 * (U * residuals) @ scale - ratio * v * (squares - within) / free
        wider = (blocks.sizes / np.maximum(blocks.sizes - 1, 1))[blocks.index]
        return ratio, float(wider @ (influence / within) ** 2), within

    def _in_own_block(self, kernel: CentredKernel) -> Array:
        """The mean of the kernel from each row to the rows of its block."""
        out, v = kernel.diagonal.copy(), self.weights

        def fill(rows: Array) -> None:
            parts = list(pieces(len(rows), _TILE))
            for at in parts:
                sums = [kernel.tile(rows[at], rows[b]) @ v[rows[b]] for b in parts]
                out[rows[at]] = sum(sums) / v[rows].sum()

        map_threads(fill, [rows for rows in self.blocks.rows if len(rows) > 1])
        return out


class _Vectors:
    """Vectors u of the first samples for draws of labels, and the factors of their forms.

    In float64: sums of u over a block vanish, which those of numbers in float32 would not.
    """

    def __init__(self, of: RelabelledInBlocks, labels: Array, groups: int) -> None:
        self.of, self.labels, self.groups = of, labels, groups
        alike = np.ptp(of.weights) == 0  # then the shares are those of any draw
        some = labels[:1] if alike else labels
        self.mass = of.blocks.sums(of.weights)
        self.W = np.stack(
            [
                np.stack([(some[:, rows] == g) @ of.weights[rows] for rows in of.blocks.rows], 1)
                for g in range(of.n_samples)
            ]
        )
        self.keep = 8.0 * groups * labels.size <= get_options().working_memory * 2**20

    @property
    def scale(self) -> Array:
        """s_g / c_g^2 of each sample and draw, zero if no block has rows of several samples."""
        c = (self.W * (1.0 - self.W / self.mass)).sum(axis=2)
        least = 1e-9 * self.mass.sum()  # rounding
        if self.groups < self.of.n_samples:  # the two samples of two
            share, other = 1.0, c[0]
        else:
            share = 2.0 * (1.0 - self.W.sum(axis=2) / self.mass.sum())
            other = c.sum(axis=0)
        c = c[: self.groups]
        return np.asarray(np.where(c > least, share / np.maximum(c * other, least**2), 0.0))

    @cached_property
    def kept(self) -> Array:
        return self.of_draws(slice(None), slice(None))

    @property
    def whole(self) -> Array:
        """The vectors of all samples for a single draw, shape (n, n_samples)."""
        return self.of_draws(slice(None), slice(None)).T

    def __call__(self, rows: slice) -> Array:
        return self.kept[:, rows] if self.keep else self.of_draws(slice(None), rows)

    def of_draws(self, draws: slice, rows: slice) -> Array:
        """The vectors of some draws at some rows, those of the first sample first."""
        b, v, parts = self.of.blocks.index[rows], self.of.weights[rows], []
        for g in range(self.groups):
            share = self.W[g] / self.mass
            share = share if len(share) == 1 else share[draws]
            parts.append(((self.labels[draws, rows] == g) - share[:, b]) * v)
        return np.concatenate(parts)

    def own_pairs(self, diagonals: Array) -> Array:
        """sum_i u_i^2 K_ii of each kernel (columns), sample and draw."""
        blocks = list(pieces(len(diagonals), _TILE))
        parts = map_threads(lambda rows: self(rows) ** 2 @ diagonals[rows], blocks)
        total: Any = sum(parts)
        return np.asarray(total.T.reshape(diagonals.shape[1], self.groups, -1))


def witness_in_blocks(
    kernel: Kernel, samples: list[Any], weights: list[Array], blocks: Blocks | None
) -> Element | None:
    """The difference d of two samples; None if no block has rows of both."""
    if blocks is None:
        return witness(kernel, *samples, weights=weights)
    parts = np.split(blocks.index, [len(weights[0])])
    W, V = (np.bincount(b, w, len(blocks.sizes)) for b, w in zip(parts, weights, strict=True))
    c = W * V / (W + V)
    if not c.any():
        return None
    scaled = [
        w * (c / np.where(M > 0, M, 1.0))[b] for w, M, b in zip(weights, (W, V), parts, strict=True)
    ]
    return witness(kernel, *samples, weights=scaled)
