"""Unbiased discrepancies of samples for many relabellings of their rows at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer._config import get_options, options
from mercer._threads import map_threads
from mercer.engine import NativeForms, SpectralForms, as_float64, n_rows, pieces
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._quadratic_forms import Forms, quadratic_forms
from mercer.methods.hypothesis_tests._resampling import Blocks

_REFERENCES = 64  # rows whose mean kernel value is subtracted from a kernel
_VARIES = 30.0  # a larger range of g, in units of the kernel that is left, costs digits of float32
_VISIBLE = 0.05  # share of a kernel that varies: errors of float32 values are about 3e-7 of it
_ENTRIES = 1 << 18  # of a boolean matrix that is converted at once: 2 MiB in float64
_TILE = 1024  # rows and columns of the kernel matrix of a block that are held at once
_ROUNDING = 1e-14  # of the largest kernel value: spread of statistics of rows equal in each block
_NO_FREEDOM = 1e-6  # rounding of a number of rows


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """k(x, y) - g(x) - g(y) on the rows of Z; g is an array, or a number.

    With `forms`, sums over all pairs come from that, and g is zero.
    """

    program: engine.Program
    Z: Any
    g: Any = 0.0
    forms: NativeForms | SpectralForms | None = None

    def tile(self, rows: slice | Array, columns: slice | Array) -> Array:
        """Values at rows and columns: slices, or numbers of rows."""
        K = engine.gram(self.program, as_float64(self.Z[rows]), as_float64(self.Z[columns]))
        if np.ndim(self.g) == 0:
            K -= 2.0 * self.g
            return K
        K -= self.g[rows, None]
        K -= self.g[columns]
        return K

    @property
    def diagonal(self) -> Array:
        return np.asarray(engine.diagonal(self.program, as_float64(self.Z)) - 2.0 * self.g)


def precise(
    kernel: Kernel, Z: Any, *, equal_weights: bool = True, forms: bool = False, core: bool = True
) -> CentredKernel:
    """The kernel minus approximate means, so that little cancels in sums in float32.

    Unbiased discrepancies do not change: g is a number, or for rows of equal weight about the mean
    of k(x, .), if a number is not precise enough. With `forms`, sums are done by frequencies or by
    the compiled core where that is less work; by the core only if the kernel varies so much that
    it needs no centring, and not without `core`.
    """
    program = kernel.program
    by_frequencies = engine.spectral_forms(program, Z) if forms else None
    if by_frequencies is not None:
        return CentredKernel(program, Z, forms=by_frequencies)
    n = n_rows(Z)
    some = as_float64(Z[np.unique(np.linspace(0, n - 1, min(n, _REFERENCES)).astype(int))])
    K = engine.gram(program, some, some)
    g, means = 0.5 * float(K.mean()), K.mean(axis=1)
    left = K - means[:, None] - means + 2.0 * g
    if equal_weights and np.ptp(means) > _VARIES * float(np.sqrt(np.mean(left**2))):
        every = engine.gram(program, as_float64(Z), some).mean(axis=1)
        return CentredKernel(program, Z, every - g)
    others = ~np.eye(len(K), dtype=bool)
    if forms and core and np.mean(left[others] ** 2) > _VISIBLE**2 * np.mean(K[others] ** 2):
        by_core = engine.native_forms(program, Z)
        if by_core is not None:
            return CentredKernel(program, Z, forms=by_core)
    return CentredKernel(program, Z, g)


class Discrepancies(NamedTuple):
    """The statistic of each kernel and draw, bounds on their errors, and sums for `effect`."""

    statistics: Array  # (n_kernels, n_draws)
    errors: Array  # beyond rounding
    products: list[Array]  # of each kernel: sums over each observed sample from every row


@dataclass(frozen=True)
class Relabelled:
    """Weighted rows of several samples.

    Attributes
    ----------
    weights : array of shape (n,)
    observed : array of int, shape (n,)
        The sample of each row.
    n_samples : int
    """

    weights: Array
    observed: Array
    n_samples: int

    @property
    def own(self) -> Array:
        """Whether a row is in a sample, shape (n, n_samples)."""
        return np.asarray(self.observed[:, None] == np.arange(self.n_samples))

    def discrepancies(self, kernels: list[CentredKernel], draws: Iterable[Array]) -> Discrepancies:
        """The statistics of draws, whose labels have shape (n_draws, n), some draws at a time.

        sum_{g < h} W_g W_h MMD^2(g, h) / sum_{g < h} W_g W_h with unbiased MMD^2, W_g the weight of
        sample g; for two samples that is their MMD^2. It needs sums within the samples only,
        because the sum over all pairs is the same in each draw.
        """
        watched = self.own * self.weights[:, None]
        products: list[Array] = []
        parts = []
        for labels in draws:
            members = _Members(self, labels)
            forms = forms_of(kernels, members, len(labels), watched[:, :0] if products else watched)
            products = products or [f.products for f in forms]
            parts.append(self._from_forms(forms, products, members))
        statistics, errors = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        return Discrepancies(statistics, errors, products)

    def _from_forms(
        self, forms: list[Forms], products: list[Array], members: _Members
    ) -> tuple[Array, Array]:
        """Statistics and bounds on their errors from the forms of all kernels."""
        v, total = self.weights, float(self.weights.sum())
        rows = np.stack([P.sum(axis=1) * v for P in products], axis=1)  # of all pairs
        by_sample = members.sums(np.concatenate([v[:, None], v[:, None] ** 2, rows], axis=1))
        W, squares, by_sample = by_sample[0], by_sample[1], by_sample[2:]
        every = rows.sum(axis=0)[:, None]
        factors = W * (total - W) / (W**2 - squares) + 1.0
        pairs = 0.5 * (total**2 - (W**2).sum(axis=0))
        # w = u + p v, and the forms are those of u
        within = np.stack([f.values.reshape(members.groups, -1) for f in forms])
        p = members.p[:, None]
        within += 2.0 * p * by_sample[:, : members.groups] - p**2 * every[:, None]
        if members.groups == 1:  # the second is what is neither within the first nor between
            second = every - 2.0 * by_sample[:, 0] + within[:, 0]
            within = np.stack([within[:, 0], second], axis=1)
        statistics = ((factors * within).sum(axis=1) - every) / pairs
        both = factors.sum(axis=0)
        linear = 2.0 * np.abs(p[0] * both - factors[1]) * self.n_samples * total
        errors = np.stack([(both * f.errors + linear * f.row_error) / pairs for f in forms])
        return statistics, errors

    def effect(self, diagonal: Array, products: Array) -> tuple[float, float, float]:
        """The ratio of the observed statistic to the variance within samples, and two more.

        These are the variance of the ratio, from influence functions, and the variance within
        samples. Statistic and variance within samples are means over pairs of rows. `diagonal` has
        the kernel values k(x_i, x_i).
        """
        v, label, own = self.weights, self.observed, self.own
        W = v @ own
        means = products / (W - own * v[:, None])  # of the kernel, from a row to each sample
        to_own = means[own]
        between = (to_own[:, None] - means) @ W * W[label] * 2.0 / (v.sum() ** 2 - (W**2).sum())
        part = W[label] / v.sum()
        share = v / W[label]
        within = float(share @ (part * (diagonal - to_own)))
        if within <= 0.0:
            return 0.0, 0.0, 0.0
        ratio = float(share @ between) / within
        influence = (2.0 * between - ratio * part * (diagonal - 2.0 * to_own)) / within
        influence -= own @ (share @ (own * influence[:, None]))
        return ratio, float(share**2 @ influence**2), within


class _Members:
    """Vectors u = v (1_g - p): the weights v of the rows in sample g, less the share p of all.

    Their sums are nearly zero, so nothing cancels. Of two samples the first is enough. They are
    kept if there is memory.
    """

    def __init__(self, of: Relabelled, labels: Array) -> None:
        exact = np.ptp(of.weights) > 0  # such kernels are not centred
        self.labels, self.v, self.n_samples = labels, of.weights if exact else None, of.n_samples
        self.groups = of.n_samples if of.n_samples > 2 else 1
        shares = of.own.mean(axis=0)[: self.groups]
        self.p = np.round(shares * 2**20) / 2**20  # exact in float32
        self.keep = 4.0 * self.groups * labels.size <= get_options().working_memory * 2**20

    @cached_property
    def kept(self) -> Array:
        return self.of_draws(slice(None), slice(None))

    def __call__(self, rows: slice) -> Array:
        return self.kept[:, rows] if self.keep else self.of_draws(slice(None), rows)

    def of_draws(self, draws: slice, rows: slice) -> Array:
        """The vectors of some draws at some rows, those of the first group first."""
        parts = [
            np.subtract(self.labels[draws, rows] == g, p, dtype=np.float32)
            for g, p in enumerate(self.p)
        ]
        U = parts[0] if self.groups == 1 else np.concatenate(parts)
        return np.asarray(U if self.v is None else U * self.v[rows])

    def sums(self, values: Array) -> Array:
        """Sums of values (n, c) over each sample in each draw, shape (c, n_samples, n_draws)."""
        out = np.zeros((values.shape[1], self.n_samples, len(self.labels)))

        def job(g: int, at: slice) -> Array:
            return np.asarray((self.labels[:, at] == g).astype(np.float64) @ values[at]).T

        parts = list(pieces(len(values), max(1, _ENTRIES // len(self.labels))))
        for g in range(self.n_samples - 1):
            out[:, g] = sum(map_threads(partial(job, g), parts))
        out[:, -1] = values.sum(axis=0)[:, None] - out.sum(axis=1)
        return out


def forms_of(
    kernels: list[CentredKernel], members: Any, n_draws: int, watched: Array
) -> list[Forms]:
    """The forms of all kernels, those without `forms` by products of tiles."""
    tiles = [k.tile for k in kernels if k.forms is None]
    tiled = iter(quadratic_forms(tiles, members, watched) if tiles else [])
    whole = partial(members.of_draws, rows=slice(None))
    return [
        next(tiled) if k.forms is None else Forms(*k.forms(whole, n_draws, watched))
        for k in kernels
    ]


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
        samples, and with one block they weight samples as the statistic without blocks does.
        """
        watched = _BlockVectors(self, self.observed[None], self.n_samples).whole
        diagonals = np.stack([k.diagonal for k in kernels], axis=1)
        products: list[Array] = []
        parts, groups = [], 1 if self.n_samples == 2 else self.n_samples
        for labels in draws:
            u = _BlockVectors(self, labels, groups)
            forms = forms_of(kernels, u, len(labels), watched[:, :0] if products else watched)
            products = products or [f.products for f in forms]
            own = u.own_pairs(diagonals)
            values = np.stack([f.values for f in forms]).reshape(len(forms), *own.shape[1:])
            errors = np.stack([f.errors + np.zeros(values[0].size) for f in forms])
            both = (values + own) * u.scale, errors.reshape(values.shape) * u.scale
            parts.append([part.sum(axis=1) for part in both])
        found, bounds = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        count = found.shape[1]
        found = (found - found.mean(axis=1, keepdims=True)) * (count / (count - 1))
        found[found.std(axis=1) <= _ROUNDING * np.abs(diagonals).max(axis=0)] = 0.0
        return Discrepancies(found, bounds * (count / (count - 1)), products)

    def effect(
        self, kernel: CentredKernel, products: Array, size: float
    ) -> tuple[float, float, float]:
        """The statistic over the variance within samples and blocks, its variance, and the latter.

        The former variance is that of the residuals of features from the means of blocks and the
        differences of samples, fitted by least squares, so it is known in blocks of pairs too.
        """
        v, blocks = self.weights, self.blocks
        u = _BlockVectors(self, self.observed[None], self.n_samples)
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
        norms = block_means(own) + 2.0 * np.vecdot(S, block_means(beta))
        norms += np.vecdot(S @ (G @ (U.T @ KU) @ G), S)
        squares = kernel.diagonal - 2.0 * (own + np.vecdot(S, beta)) + norms  # of the residuals
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

        chosen = get_options().engine
        with options(engine=None if chosen == "spectral" else chosen):
            map_threads(fill, [rows for rows in self.blocks.rows if len(rows) > 1])
        return out


class _BlockVectors:
    """Vectors u of the first samples for draws of labels, and the factors of their forms.

    In float64: sums of u over a block vanish, which those of numbers in float32 would not.
    """

    def __init__(self, of: RelabelledInBlocks, labels: Array, groups: int) -> None:
        self.of, self.labels, self.groups = of, labels, groups
        some = labels if np.ptp(of.weights) else labels[:1]  # whose shares are those of any draw
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
