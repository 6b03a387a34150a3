"""Features k(x, .) and mean embeddings: the elements that points are mapped to."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import engine
from mercer._array import as_weights, frozen, refuse_pieces
from mercer._chunks import Chunks
from mercer._tensors import is_tensor, namespace
from mercer.engine import Dense, SingleFeatures
from mercer.kernels import Kernel
from mercer.space._chunked import mean_weights
from mercer.space._element import Element
from mercer.space._points import checked_points


def feature(kernel: Kernel, X: Any) -> Element:
    """Return the batch of features k(x_j, .), one for each row of X.

    Beyond the points it stores one number per element.

    Parameters
    ----------
    kernel : Kernel
        k.
    X : array_like of shape (n, d), or other points of the kernel's domain
        The x_j.

    Examples
    --------
    >>> import mercer as mc
    >>> phi = mc.feature(mc.Gaussian(1.0), [[0.0], [1.0], [5.0]])
    >>> len(phi), phi.norm()
    (3, array([1., 1., 1.]))
    """
    points = checked_points(kernel, X)
    refuse_pieces(points.array)
    array, n = points.array, len(points)
    if is_tensor(array):
        xp, where = namespace(array), array.device
        ones = xp.ones(n, dtype=array.dtype, device=where)
        return Element(kernel, points, SingleFeatures(xp.arange(n, device=where), ones, n), n)
    dtype = engine.tile_dtype(array, array)
    coef = SingleFeatures(np.arange(n), np.ones(n, dtype=dtype), n)
    return Element(kernel, points, coef, n)


def mean_embedding(kernel: Kernel, X: Any, *, weights: Any = None) -> Element:
    """Return the mean of features, mu = sum_i w_i k(x_i, .) with weights that sum to one.

    Parameters
    ----------
    kernel : Kernel
        k.
    X : array_like of shape (n, d), or other points of the kernel's domain
        The sample.
    weights : array_like of shape (n,), optional
        >= 0, scaled to sum to one; equal by default.

    Examples
    --------
    The distance of two mean embeddings is the maximum mean discrepancy of the samples.

    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> P, Q = [[0.0], [1.0]], [[4.0], [5.0]]
    >>> witness = mc.mean_embedding(k, P) - mc.mean_embedding(k, Q)
    >>> round(float(witness.norm()), 4)
    1.2652
    """
    points = checked_points(kernel, X)
    if isinstance(points.array, Chunks):
        return Element(kernel, points, mean_weights(points.array, weights), None)
    n = len(points)
    if weights is None and not is_tensor(points.array):  # one number, however many points
        return Element(kernel, points, Dense(np.broadcast_to(1.0 / n, (n, 1))), None)
    w = as_weights(weights, n, like=points.array)[:, None]
    return Element(kernel, points, Dense(w if is_tensor(w) else frozen(w)), None)
