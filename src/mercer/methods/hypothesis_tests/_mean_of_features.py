"""Is the mean of n features zero? Sign flips and wild bootstrap of sum_{i != j} <f_i, f_j>.

Paired samples have f_i = k(x_i, .) - k(y_i, .); goodness of fit has Stein features. Under the null
hypothesis a feature and its negative are equally likely (sign flips, exact for pairs), or signs
imitate the law of the sum (wild bootstrap).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer._array import Array
from mercer.methods.hypothesis_tests._quadratic_forms import Tile, quadratic_forms


class MeanOfFeatures(NamedTuple):
    """For each matrix of inner products <f_i, f_j>, its statistics and how large they are."""

    statistics: Array  # (n_matrices, n_draws): mean over i != j of w_i w_j <f_i, f_j>
    rows: Array  # (n_matrices, n): mean over j != i of <f_i, f_j>


def mean_of_features(tiles: Sequence[Tile], weights: Array) -> MeanOfFeatures:
    """Return the statistics for each row of weights, of shape (n_draws, n), row 0 ones."""
    n = weights.shape[1]
    forms = quadratic_forms(
        tiles, lambda rows: weights[:, rows].astype(np.float32, copy=False), np.ones((n, 1))
    )
    statistics = np.array([f.values for f in forms]) / (n * (n - 1))
    rows = np.array([f.products[:, 0] for f in forms]) / (n - 1)
    return MeanOfFeatures(statistics, rows)


def standardised_mean(rows: Array, diagonal: Array) -> tuple[float, float, float]:
    """|mean f|^2 over the variance of the features, its variance, and the latter.

    `rows` are the means of <f_i, f_j> over j != i and `diagonal` is |f_i|^2.
    """
    size, within = float(rows.mean()), float((diagonal - rows).mean())
    if within <= 0.0:
        return 0.0, 0.0, 0.0
    ratio = size / within
    influence = (2.0 * rows - ratio * (diagonal - 2.0 * rows)) / within
    return ratio, float(influence.var()) / len(rows), within
