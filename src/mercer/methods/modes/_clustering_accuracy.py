"""The share of points that a clustering gets right, with a confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, real
from mercer.exceptions import InputError


@dataclass(frozen=True)
class Accuracy:
    """Result of `clustering_accuracy`: the share of points whose cluster matches their class.

    Attributes
    ----------
    correct, total : int
    interval : tuple of two floats
        Exact confidence interval for the share (Clopper and Pearson).
    confidence : float
    matching : tuple of pairs
        (label, class) of each matched cluster, in the order of the labels.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.methods.clustering_accuracy([0, 0, 1, 1], [5, 5, 5, 7])
    >>> found.accuracy, found.matching
    (0.75, ((5, 0), (7, 1)))
    """

    correct: int
    total: int
    interval: tuple[float, float]
    confidence: float
    matching: tuple[tuple[Any, Any], ...]

    @property
    def accuracy(self) -> float:
        """Correct / total."""
        return self.correct / self.total

    def __float__(self) -> float:
        return self.accuracy


def clustering_accuracy(truth: Any, labels: Any, *, confidence: float = 0.95) -> Accuracy:
    """Return the accuracy of clusters under the best one-to-one matching with classes.

    accuracy = max over matchings m of  #{i: m(label_i) = class_i} / n

    with an exact confidence interval for the success rate (Clopper and Pearson). The interval
    treats the matching as given, so it is optimistic if there are few points.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The classes: numbers or strings.
    labels : array_like of shape (n,)
        The clusters. -1 means no cluster (noise) and matches nothing.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    Accuracy

    References
    ----------
    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits illustrated in the
    case of the binomial, Biometrika 26, 1934.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.methods.clustering_accuracy(["a", "a", "b", "b", "b"], [1, 1, 0, 0, -1])
    >>> found.correct, found.total
    (4, 5)
    >>> [round(end, 4) for end in found.interval]
    [0.2836, 0.9949]
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.stats import binomtest
    from scipy.stats.contingency import crosstab

    share = real(confidence, "confidence")
    if not 0.0 < share < 1.0:
        raise InputError(f"confidence must be between 0 and 1, got {share!r}")
    truth, labels = _checked(truth, "truth"), _checked(labels, "labels")
    if len(truth) != len(labels):
        raise InputError(f"truth has {len(truth)} entries, but labels has {len(labels)}")
    (clusters, classes), table = crosstab(labels, truth)
    kept = np.flatnonzero([c.dtype.kind not in "if" or c != -1 for c in clusters])
    rows, columns = linear_sum_assignment(table[kept], maximize=True)
    hits = table[kept][rows, columns]
    matching = tuple(
        (clusters[kept[r]].item(), classes[c].item())
        for r, c, hit in zip(rows, columns, hits, strict=True)
        if hit
    )
    correct, total = int(hits.sum()), len(truth)
    interval = binomtest(correct, total).proportion_ci(share)
    ends = float(interval.low), float(interval.high)
    return Accuracy(correct, total, ends, share, matching)


def _checked(values: Any, name: str) -> Array:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise InputError(f"{name} must be a vector of at least one entry, got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"{name} has entries that are not finite; use -1 for a point without a label"
        )
    if array.dtype.kind == "O":
        if not all(isinstance(value, str) for value in array):
            raise InputError(f"{name} must hold either numbers or strings")
        array = array.astype(str)  # such as a pandas column
    return array
