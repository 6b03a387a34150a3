"""How much noise in the data moves the features of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Points
from mercer.engine import Distance
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods._rows import spread_rows

_ROWS = 200  # over which a kernel's metric is averaged: its error is then a few percent


def feature_noise(kernel: Kernel, X: Any, noise: float, *, weights: Any = None) -> float:
    """Return what noise adds to the scatter of the features, per direction in which they move.

    To first order a step e moves the feature of x by sum_j e_j d k(x, .) / dx_j. So noise of
    variance s^2 adds s^2 d^2 k / dx_j dy_j at x = y, per coordinate and point. This is averaged
    over coordinates, and summed over rows: n s^2 / l^2 for a Gaussian, n s^2 for the linear kernel.
    It is the strength of `Tikhonov` that suits the noise. Kernels with a cusp have no such
    derivative; for them features of rows with simulated noise are compared.

    Parameters
    ----------
    kernel : Kernel
        On vectors, with derivatives.
    X : array_like or CSR matrix of shape (n, d)
    noise : float
        The standard deviation s of the noise.
    weights : array_like of shape (n,), optional
        A weight of 2 is the same as repeating the row.

    Returns
    -------
    float
        In units of the eigenvalues of the Gram matrix.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.methods.feature_noise(mc.Gaussian(2.0), [[0.0], [1.0], [3.0]], 0.1), 4)
    0.0075
    """
    X = kernel.points(X).array
    mass = float(X.shape[0]) if weights is None else float(np.sum(weights))
    Z, share = spread_rows(X, weights, _ROWS)
    if not kernel.program.has_derivatives:
        raise InputError(
            f"{kernel!r} has no derivatives, so the noise cannot be carried to its features; give "
            "the filter's strength"
        )
    if kernel.program.is_smooth:
        if all(isinstance(v, Distance) for v in kernel.program.variables):  # the same everywhere
            Z, share = Z[:1], share[:1]
        points = Points(Z, kernel.domain)
        own = (kernel.mixed_derivative(points[i : i + 1])[0, 0] for i in range(len(Z)))
        moved = [float(np.trace(derivative)) for derivative in own]
        return float(mass * noise**2 * np.average(moved, weights=share) / Z.shape[1])
    points = Points(Z, kernel.domain)
    shifted = kernel.points(Z + noise * np.random.default_rng(0).standard_normal(Z.shape))
    cross = [kernel(points[i : i + 1], shifted[i : i + 1])[0, 0] for i in range(len(Z))]
    squared = kernel.diag(points) + kernel.diag(shifted) - 2.0 * np.array(cross)
    return float(mass * np.average(squared, weights=share) / Z.shape[1])
