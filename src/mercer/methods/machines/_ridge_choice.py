"""The kernel and the penalty of ridge regression, chosen by leave-one-out errors."""

from __future__ import annotations

import numpy as np

from mercer._array import Array, Points, is_sparse
from mercer.kernels import Gaussian, Kernel, LaplaceProduct, Matern
from mercer.methods.machines._ridge import MergedRows
from mercer.methods.machines._ridge_path import RidgePath

KERNEL_ROWS = 1_000
PENALTY_ROWS = 3_000
_SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the median distance


def candidate_kernels(X: Points, median: float) -> list[Kernel]:
    """Gaussian, Matern 3/2 and Laplace product kernels of five length scales each.

    Lengths are in units of the median distance between rows; that of the Manhattan distance is
    sqrt(2 d / pi) times as long for normal differences. Sparse rows have no product kernel.
    """
    kernels: list[Kernel] = [Gaussian(t * median / np.sqrt(2.0)) for t in _SCALES]
    kernels += [Matern(1.5, t * median) for t in _SCALES]
    if not is_sparse(X.array):
        longer = median * float(np.sqrt(2.0 * X.shape[1] / np.pi))
        kernels += [LaplaceProduct(t * longer) for t in _SCALES]
    return kernels


def choose_kernel(X: Points, rows: MergedRows, median: float, *, fit_intercept: bool) -> Kernel:
    """The candidate of smallest leave-one-out error, each with its own best penalty.

    Errors are those of at most 1,000 of the distinct rows X, evenly spaced in their order.
    """
    part = spread(len(X), KERNEL_ROWS)
    kernels = candidate_kernels(X, median)
    errors = [path_of(k, X, rows, part, fit_intercept).best()[1] for k in kernels]
    return kernels[int(np.argmin(errors))]


def path_of(
    kernel: Kernel, X: Points, rows: MergedRows, part: Array, fit_intercept: bool
) -> RidgePath:
    """The path of penalties on some of the distinct rows."""
    whole = len(part) == len(X)
    return RidgePath.of(
        kernel,
        X[part],
        rows.targets[part],
        rows.weights[part],
        fit_intercept=fit_intercept,
        scatter=rows.scatter if whole else rows.scatter * (len(part) / len(X)),
    )


def spread(n: int, size: int) -> Array:
    """At most `size` of n row numbers, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).astype(int))
