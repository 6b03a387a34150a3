"""The two-sample and k-sample test: do samples come from the same distribution?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_points, positive_int
from mercer.engine import as_float64, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._kernel_grid import kernel_grid
from mercer.methods.hypothesis_tests._quadratic_forms import Forms, Tile, quadratic_forms
from mercer.methods.hypothesis_tests._resampling import combined, p_value, seeded, shuffled
from mercer.methods.hypothesis_tests._result import TestResult

_REFERENCES = 64  # rows whose mean kernel value is subtracted, so that float32 sees what varies


class _Indicators:
    """Column b holds the weights of the rows that draw b puts into one sample, zero elsewhere."""

    def __init__(self, labels: Array, weights: Array, group: int) -> None:
        self.labels, self.weights, self.group = labels, weights.astype(np.float32), group
        self.shape = labels.shape

    def __getitem__(self, rows: slice) -> Array:
        return (self.labels[rows] == self.group) * self.weights[rows, None]


class _Centred:
    """k(x, y) - g(x) - g(y) on the pooled rows, g(x) about the mean of k(x, .) over some rows.

    Unbiased discrepancies are the same as those of k, and nothing cancels in them.
    """

    def __init__(self, kernel: Kernel, Z: Any) -> None:
        self.program, self.Z = kernel.program, Z
        n = n_rows(Z)
        some = Z[np.unique(np.linspace(0, n - 1, min(n, _REFERENCES)).astype(int))]
        self.g = engine.gram(self.program, Z, some).mean(axis=1, dtype=np.float64)
        self.g -= 0.5 * engine.gram(self.program, some, some).mean(dtype=np.float64)

    def tile(self, rows: slice, columns: slice) -> Array:
        K = engine.gram(self.program, as_float64(self.Z[rows]), as_float64(self.Z[columns]))
        K -= self.g[rows, None]
        K -= self.g[columns]
        return K

    @property
    def diagonal(self) -> Array:
        return engine.diagonal(self.program, self.Z) - 2.0 * self.g


@dataclass(frozen=True)
class _Samples:
    """Pooled rows, their weights and the sample of each row: column 0 observed, others drawn."""

    weights: Array
    labels: Array
    n_samples: int

    def sums(self, values: Array) -> Array:
        """Sums of values over each sample, for each draw: shape (n_samples, n_draws)."""
        return np.stack([values @ (self.labels == g) for g in range(self.n_samples)])

    def discrepancies(self, kernels: list[_Centred]) -> tuple[Array, list[Forms]]:
        """The unbiased statistic of each kernel and draw, and the sums of the observed samples.

        sum_{g < h} W_g W_h MMD^2(g, h) / sum_{g < h} W_g W_h, W_g the weight of sample g; of two
        samples simply their MMD^2. It needs sums within samples only, since all pairs are fixed.
        """
        v = self.weights
        W, squares = self.sums(v), self.sums(v**2)
        observed = (self.labels[:, :1] == np.arange(self.n_samples)) * v[:, None]
        tiles = [k.tile for k in kernels]
        groups = range(self.n_samples if self.n_samples > 2 else 1)
        forms = [
            quadratic_forms(tiles, len(v), _Indicators(self.labels, v, g), observed) for g in groups
        ]
        total_weight = v.sum()
        factors = W * (total_weight - W) / (W**2 - squares) + 1.0
        pairs = 0.5 * (total_weight**2 - (W**2).sum(axis=0))
        out = []
        for k in range(len(kernels)):
            rows = forms[0][k].products.sum(axis=1) * v
            within = np.stack([f[k].values for f in forms])
            if self.n_samples == 2:  # what is not within sample 0 or between
                within = np.stack([within[0], rows.sum() - 2.0 * self.sums(rows)[0] + within[0]])
            out.append(((factors * within).sum(axis=0) - rows.sum()) / pairs)
        return np.array(out), forms[0]

    def effect(self, kernel: _Centred, forms: Forms) -> tuple[float, float, float]:
        """The observed discrepancy over the variance within samples, its variance, and the latter.

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
        influence -= (own @ (share @ (own * influence[:, None])))
        return ratio, float((share**2) @ influence**2), within


def mmd_test(
    X: Any,
    Y: Any,
    *more: Any,
    kernel: Kernel | None = None,
    weights: Any = None,
    blocks: Any = None,
    n_permutations: int = 2000,
    random_state: Any = None,
) -> TestResult:
    """Test whether samples come from the same distribution, by their mean embeddings.
    """
    seed, rng = seeded(random_state)
    samples = [X, Y, *more]
    if kernel is None:
        arrays = [as_points(S, "X") for S in samples]
        Z = np.concatenate(arrays)
        kernels = kernel_grid(Z, rng)
    else:
        kernels = (kernel,)
        arrays = [kernel.points(S, "X").array for S in samples]
        Z = np.concatenate(arrays)
    sizes = tuple(n_rows(a) for a in arrays)
    label = np.repeat(np.arange(len(sizes)), sizes).astype(np.int8)
    draws = shuffled(label, positive_int(n_permutations, "n_permutations"), rng, blocks)
    drawn = _Samples(np.ones(len(label)), draws, len(sizes))
    centred = [_Centred(k, Z) for k in kernels]
    statistics, forms = drawn.discrepancies(centred)
    scales = statistics.std(axis=1)
    norms = np.array([k.norm for k in centred])
    total = combined(statistics, norms)
    best = int(np.argmax(statistics[:, 0] / np.maximum(scales, 1e-300)))
    p = p_value(total)
    ratio, variance, within = drawn.effect(centred[best], forms[best])
    sd = np.sqrt(variance + (scales[best] / within)**2)
    order = [best] + [i for i in range(len(kernels)) if i != best]
    return TestResult("q", float(statistics[best, 0]), p, (p, p), "permutation", tuple(kernels[i] for i in order), sizes, n_permutations, seed, ratio, (ratio - 1.96 * sd, ratio + 1.96 * sd), None, total[1:])
