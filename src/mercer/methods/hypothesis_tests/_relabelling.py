"""Unbiased discrepancies of samples for many relabellings of their rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer.engine import as_float64, n_rows
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._quadratic_forms import Forms, Tile, quadratic_forms

_REFERENCES = 64  # rows whose mean kernel value is subtracted from a kernel


class CentredKernel:
    """k(x, y) - g(x) - g(y) on some rows, where g(x) is about the mean of k(x, .) over them.

    Unbiased discrepancies of rows of equal weight are the same as those of k, and nothing cancels
    in their sums. Where weights differ, g is zero.
    """

    def __init__(self, kernel: Kernel, Z: Any, *, centred: bool = True) -> None:
        self.program, self.Z, self.g = kernel.program, Z, np.zeros(n_rows(Z))
        if not centred:
            return
        n = n_rows(Z)
        some = as_float64(Z[np.unique(np.linspace(0, n - 1, min(n, _REFERENCES)).astype(int))])
        self.g = engine.gram(self.program, as_float64(Z), some).mean(axis=1)
        self.g -= 0.5 * engine.gram(self.program, some, some).mean()

    def tile(self, rows: slice | Array, columns: slice | Array) -> Array:
        """Values at rows and columns: slices, or numbers of rows."""
        K = engine.gram(self.program, as_float64(self.Z[rows]), as_float64(self.Z[columns]))
        K -= self.g[rows, None]
        K -= self.g[columns]
        return K

    @property
    def diagonal(self) -> Array:
        return np.asarray(engine.diagonal(self.program, as_float64(self.Z)) - 2.0 * self.g)


@dataclass(frozen=True)
class Relabelled:
    """Weighted rows of several samples, and the sample of each row in each draw.

    Attributes
    ----------
    weights : array of shape (n,)
    labels : array of int, shape (n, n_draws)
        Column 0 is what was observed.
    n_samples : int
    """

    weights: Array
    labels: Array
    n_samples: int

    def sums(self, values: Array) -> Array:
        """Sums of values over each sample in each draw, shape (n_samples, n_draws)."""
        return np.stack([values @ (self.labels == g) for g in range(self.n_samples)])

    def discrepancies(self, kernels: list[CentredKernel]) -> tuple[Array, list[Forms]]:
        """The statistic of each kernel and draw, and the sums that `effect` needs.

        sum_{g < h} W_g W_h MMD^2(g, h) / sum_{g < h} W_g W_h with unbiased MMD^2, W_g the weight of
        sample g; for two samples that is their MMD^2. It needs sums within the samples only,
        because the sum over all pairs is the same in each draw.
        """
        v = self.weights
        W, squares, total = self.sums(v), self.sums(v**2), float(v.sum())
        observed = (self.labels[:, :1] == np.arange(self.n_samples)) * v[:, None]
        tiles: list[Tile] = [k.tile for k in kernels]
        first, *others = (
            quadratic_forms(tiles, len(v), _Members(self.labels, v, g), observed)
            for g in range(self.n_samples if self.n_samples > 2 else 1)
        )
        factors = W * (total - W) / (W**2 - squares) + 1.0
        pairs = 0.5 * (total**2 - (W**2).sum(axis=0))
        statistics = []
        for k, forms in enumerate(first):
            rows = forms.products.sum(axis=1) * v  # of all pairs
            if self.n_samples == 2:  # the second is what is neither within the first nor between
                second = rows.sum() - 2.0 * self.sums(rows)[0] + forms.values
                within = np.stack([forms.values, second])
            else:
                within = np.stack([forms.values, *(other[k].values for other in others)])
            statistics.append(((factors * within).sum(axis=0) - rows.sum()) / pairs)
        return np.array(statistics), first

    def effect(self, kernel: CentredKernel, forms: Forms) -> tuple[float, float, float]:
        """The observed statistic over the variance within samples, its variance, and the latter.

        Both are means over pairs of rows; the variance is that of their influence functions.
        """
        v, label = self.weights, self.labels[:, 0]
        own = label[:, None] == np.arange(self.n_samples)
        W = v @ own
        means = forms.products / (W - own * v[:, None])  # of the kernel, from a row to each sample
        to_own = means[own]
        between = (to_own[:, None] - means) @ W * W[label] * 2.0 / (v.sum() ** 2 - (W**2).sum())
        part, diagonal = W[label] / v.sum(), kernel.diagonal
        share = v / W[label]
        within = float(share @ (part * (diagonal - to_own)))
        if within <= 0.0:
            return 0.0, 0.0, 0.0
        ratio = float(share @ between) / within
        influence = (2.0 * between - ratio * part * (diagonal - 2.0 * to_own)) / within
        influence -= own @ (share @ (own * influence[:, None]))
        return ratio, float(share**2 @ influence**2), within


class _Members:
    """Column b holds the weights of the rows that draw b puts into one sample, zero elsewhere."""

    def __init__(self, labels: Array, weights: Array, group: int) -> None:
        exact = np.ptp(weights) > 0  # such kernels are not centred
        self.weights = weights if exact else weights.astype(np.float32)
        self.labels, self.group = labels, group
        self.shape = labels.shape

    def __getitem__(self, rows: slice) -> Array:
        return np.asarray((self.labels[rows] == self.group) * self.weights[rows, None])
