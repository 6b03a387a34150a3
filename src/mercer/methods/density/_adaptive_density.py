"""Adaptive kernel densities: narrow kernels where points are dense, wide ones elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, non_negative, positive_int
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel, Scales
from mercer.methods.density._density import Density, weights_of
from mercer.space import Element, mean_embedding


def adaptive_density(
    kernel: Kernel,
    X: Any,
    *,
    weights: Any = None,
    sensitivity: float = 0.5,
    n_groups: int = 32,
    factors: Any = None,
) -> Density:
    """Return a density with narrow kernels where points are dense and wide ones elsewhere.

    The kernel of point i is stretched by lambda_i = (p(x_i) / g)^-a, where p is the density of
    the kernel itself, g its geometric mean over the points, and a the sensitivity. The factors are
    rounded to `n_groups` values in a geometric sequence, so the density is a sum of that many
    elements.

    Parameters
    ----------
    kernel : Kernel
        As for `kernel_density`. lambda_i multiplies its `length_scale`; kernels without one are
        taken at x / lambda_i.
    X : array_like of shape (n, d)
    weights : array_like of shape (n,), optional
        Weights >= 0, scaled to sum to one; points of weight zero are left out.
    sensitivity : float
        a >= 0. 0 is one kernel for all points, 1/2 the choice of Abramson.
    n_groups : int
        Factors are not rounded if there are no more different ones than this.
    factors : array_like of shape (n,), optional
        The lambda_i > 0 themselves, for example from another density p.

    References
    ----------
    I. S. Abramson, On bandwidth variation in kernel estimates, Annals of Statistics 10, 1982.

    Examples
    --------
    >>> import mercer as mc
    >>> X = [[0.0], [0.1], [0.2], [5.0]]
    >>> f = mc.methods.adaptive_density(mc.Gaussian(0.5), X)
    >>> [round(e.kernel.length_scale, 3) for e in f.elements]
    [0.434, 0.439, 0.748]
    """
    a, n_groups = non_negative(sensitivity, "sensitivity"), positive_int(n_groups, "n_groups")
    mean = mean_embedding(kernel, X, weights=weights)
    used = np.flatnonzero(weights_of(mean) > 0)
    points, w = mean.support[used], weights_of(mean)[used]
    if factors is None and a == 0.0:
        logs = np.zeros(len(w))
    elif factors is None:
        logs = np.asarray(Density(mean).log(points), dtype=np.float64)
        logs = -a * (logs - float(w @ logs) / float(w.sum()))
    else:
        given = as_vector(factors, "factors", n_rows(mean.points)).astype(np.float64)[used]
        if np.any(given <= 0):
            raise InputError(f"factors must be > 0, got {float(given.min())!r}")
        logs = np.log(given)
    values, group = _rounded(logs, n_groups)
    return Density(
        tuple(
            Element(stretched(kernel, math.exp(v), mean.points.shape[1]), points[rows], w[rows])
            for g, v in enumerate(values)
            if (rows := np.flatnonzero(group == g)).size
        )
    )


def stretched(kernel: Kernel, factor: float, dim: int) -> Kernel:
    """The kernel k(x / factor, y / factor), by its length scale if it has one."""
    if factor == 1.0:
        return kernel
    if "length_scale" in kernel.get_params(deep=False):
        return kernel.replace(length_scale=factor * kernel.length_scale)  # type: ignore[attr-defined]
    return kernel.transform(Scales(np.full(dim, factor)))


def _rounded(logs: Array, count: int) -> tuple[Array, Array]:
    """Up to `count` values, and the nearest of them for each of the logarithms."""
    values, group = np.unique(logs, return_inverse=True)
    if values.size <= count:
        return values, group.reshape(-1)
    if count == 1:
        return np.array([0.5 * (values[0] + values[-1])]), np.zeros(logs.size, dtype=np.intp)
    even = np.linspace(values[0], values[-1], count)
    return even, np.rint((logs - even[0]) / (even[1] - even[0])).astype(np.intp)
