"""Unbiased discrepancies of samples for many relabellings of their rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer._config import get_options
from mercer.engine import as_float64, n_rows, pieces
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._quadratic_forms import Forms, quadratic_forms

_REFERENCES = 64  # rows whose mean kernel value is subtracted from a kernel
_VARIES = 30.0  # a larger range of g, in units of the kernel that is left, costs digits of float32
_ENTRIES = 1 << 21  # of a boolean matrix that is converted at once


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """k(x, y) - g(x) - g(y) on the rows of Z; g is an array, or a number."""

    program: engine.Program
    Z: Any
    g: Any = 0.0

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


def precise(kernel: Kernel, Z: Any, *, equal_weights: bool = True) -> CentredKernel:
    """The kernel less about its means, so that nothing cancels in sums in float32.

    Unbiased discrepancies do not change: g is a number, or for rows of equal weight about the mean
    of k(x, .), if a number is not precise enough.
    """
    n = n_rows(Z)
    some = as_float64(Z[np.unique(np.linspace(0, n - 1, min(n, _REFERENCES)).astype(int))])
    K = engine.gram(kernel.program, some, some)
    g, means = 0.5 * float(K.mean()), K.mean(axis=1)
    left = K - means[:, None] - means + 2.0 * g
    if equal_weights and np.ptp(means) > _VARIES * float(np.sqrt(np.mean(left**2))):
        every = engine.gram(kernel.program, as_float64(Z), some).mean(axis=1)
        return CentredKernel(kernel.program, Z, every - g)
    return CentredKernel(kernel.program, Z, g)


@dataclass(frozen=True)
class Relabelled:
    """Weighted rows of several samples, and the sample of each row in each draw.

    Attributes
    ----------
    weights : array of shape (n,)
    labels : array of int, shape (n_draws, n)
        Row 0 is what was observed.
    n_samples : int
    """

    weights: Array
    labels: Array
    n_samples: int

    def sums(self, values: Array) -> Array:
        """Sums of values (n, c) over each sample in each draw, shape (c, n_samples, n_draws)."""
        out = np.zeros((values.shape[1], self.n_samples, len(self.labels)))
        for at in pieces(len(values), max(1, _ENTRIES // len(self.labels))):
            for g in range(self.n_samples):
                out[:, g] += ((self.labels[:, at] == g) @ values[at]).T
        return out

    def discrepancies(self, kernels: list[CentredKernel]) -> tuple[Array, list[Forms]]:
        """The statistic of each kernel and draw, and the sums that `effect` needs.

        sum_{g < h} W_g W_h MMD^2(g, h) / sum_{g < h} W_g W_h with unbiased MMD^2, W_g the weight of
        sample g; for two samples that is their MMD^2. It needs sums within the samples only,
        because the sum over all pairs is the same in each draw.
        """
        v = self.weights
        (W, squares), total = self.sums(np.stack([v, v**2], axis=1)), float(v.sum())
        observed = (self.labels[0][:, None] == np.arange(self.n_samples)) * v[:, None]
        members = _Members(self, v)
        forms = quadratic_forms([k.tile for k in kernels], members, observed)
        rows = np.stack([f.products.sum(axis=1) * v for f in forms], axis=1)  # of all pairs
        by_sample, every = self.sums(rows), rows.sum(axis=0)[:, None]
        factors = W * (total - W) / (W**2 - squares) + 1.0
        pairs = 0.5 * (total**2 - (W**2).sum(axis=0))
        # w = u + p v, and the forms are those of u
        within = np.stack([f.values.reshape(members.groups, -1) for f in forms])
        p = members.p[:, None]
        within += 2.0 * p * by_sample[:, : members.groups] - p**2 * every[:, None]
        if members.groups == 1:  # the second is what is neither within the first nor between
            second = every - 2.0 * by_sample[:, 0] + within[:, 0]
            within = np.stack([within[:, 0], second], axis=1)
        return ((factors * within).sum(axis=1) - every) / pairs, forms

    def effect(self, kernel: CentredKernel, forms: Forms) -> tuple[float, float, float]:
        """The observed statistic over the variance within samples, its variance, and the latter.

        Both are means over pairs of rows; the variance is that of their influence functions.
        """
        v, label = self.weights, self.labels[0]
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
    """Vectors u = v (1_g - p): the weights v of the rows in sample g, less the share p of all.

    Their sums are nearly zero, so nothing cancels. Of two samples the first is enough.
    """

    def __init__(self, drawn: Relabelled, v: Array) -> None:
        exact = np.ptp(v) > 0  # such kernels are not centred
        self.labels, self.v = drawn.labels, None if not exact else v
        self.groups = drawn.n_samples if drawn.n_samples > 2 else 1
        shares = [np.mean(drawn.labels[0] == g) for g in range(self.groups)]
        self.p = np.round(np.array(shares) * 2**20) / 2**20  # exact in float32
        self.kept = None
        if 4.0 * self.groups * drawn.labels.size <= get_options().working_memory * 2**20:
            self.kept = self._at(slice(None))

    def __call__(self, rows: slice) -> Array:
        return self._at(rows) if self.kept is None else np.asarray(self.kept[:, rows])

    def _at(self, rows: slice) -> Array:
        parts = [
            np.subtract(self.labels[:, rows] == g, p, dtype=np.float32)
            for g, p in enumerate(self.p)
        ]
        U = parts[0] if self.groups == 1 else np.concatenate(parts)
        return np.asarray(U if self.v is None else U * self.v[rows])
