"""How much noise is in the data, where nobody says: from what columns cannot tell of each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_points, as_weights, is_sparse
from mercer._threads import single_threaded_blas
from mercer.engine import Distance
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods._rows import spread_rows
from mercer.methods.denoising._noise_smoother import smooth_bound

_QUIET = 0.02  # the share of columns that are taken to hold hardly anything but noise
_MANY_COLUMNS = 3000  # beyond, columns are not regressed on each other: a cube of their number
_SMOOTHED = 150  # rows that smoothers are tried on
_PROBES = 200  # rows on which the metric of a kernel is averaged
_EPS = float(np.finfo(np.float64).eps)


def noise_level(X: Any, *, weights: Any = None) -> float:
    """Return an estimate of the standard deviation of noise that is alike in all columns.

    Independent noise of variance s^2 cannot be predicted, so everything that predicts bounds s^2
    from above. The smallest of three bounds is taken:

    - the quietest columns: the lowest fiftieth of the variances, over what chance makes of it;
    - the same of the residual variances of each column after a linear regression on all others,
      where rows outnumber columns by a third (this is what tells in images and spectra);
    - smoothers: s^2 <= |D(x) - x|^2 / |J|^2 for kernel smoothers D of several widths that do not
      know x, with the Jacobian J of D(x) - x (this is what tells on curves in few dimensions).

    Eigenvalues of the covariance, the usual source, are far too large where the signal has a long
    tail. In data without structure everything is noise, and what comes back is of its size.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (n, d)
        In one unit: columns of different units must be scaled first. Constant columns hold no noise
        and are left out.
    weights : array_like of shape (n,), optional
        Weights >= 0: numbers of times that rows stand, or, where they sum to less than the number
        of rows, shares.

    Returns
    -------
    float
        The standard deviation s >= 0: 0 where fewer than two rows or no column vary.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import noise_level
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(size=(400, 1))
    >>> clean = np.hstack([np.sin(0.2 * j * t) for j in range(60)])
    >>> round(noise_level(clean + 0.1 * rng.normal(size=clean.shape)), 2)
    0.1
    """
    X = as_points(X)
    w = as_weights(weights, X.shape[0])
    effective = _effective_rows(weights, w)
    if X.shape[0] < 2 or effective <= 1.0 + 1e-9:
        return 0.0
    mean, variance = _column_moments(X, w)
    varying = variance > 1e-20 * (mean**2 + variance.max(initial=0.0))
    if not varying.any():
        return 0.0
    unbiased = effective / (effective - 1.0)
    bounds = [_quantile(unbiased * variance[varying], effective - 1.0)]
    d = int(varying.sum())
    if X.shape[1] <= _MANY_COLUMNS:
        bounds.append(smooth_bound(*spread_rows(X, weights, _SMOOTHED)))
    if not is_sparse(X) and 1 < d <= min(0.75 * effective, _MANY_COLUMNS):
        residual = _residual_variances(np.asarray(X, dtype=np.float64)[:, varying], w)
        if residual is not None:
            free = effective - d
            bounds.append(_quantile(residual * effective / free, free))
    return float(np.sqrt(max(min(bounds), 0.0)))


def _effective_rows(weights: Any, share: Array) -> float:
    """The number of rows that weights stand for; for shares, that of equal ones as good."""
    if weights is not None and float(np.sum(weights)) >= np.count_nonzero(share):
        return float(np.sum(weights))
    return 1.0 / float(np.sum(share**2))


def _quantile(variances: Array, freedom: float) -> float:
    """The low quantile of the variances over that of chi-square / freedom: 1 for pure noise."""
    from scipy.special import gammaincinv

    expected = 2.0 * float(gammaincinv(0.5 * freedom, _QUIET)) / freedom
    return float(np.quantile(variances, _QUIET)) / expected


def _column_moments(X: Any, w: Array) -> tuple[Array, Array]:
    if is_sparse(X):
        mean = np.asarray(X.T @ w, dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).T @ w, dtype=np.float64).ravel()
        return mean, np.maximum(square - mean**2, 0.0)
    X = np.asarray(X, dtype=np.float64)
    mean = w @ X
    return mean, np.asarray(w @ (X - mean) ** 2)


def _residual_variances(X: Array, w: Array) -> Array | None:
    """What a regression of each column on all others leaves: one over the diagonal of C^-1.

    None where columns depend on each other exactly: there noise is not independent.
    """
    Z = np.sqrt(w)[:, None] * (X - w @ X)
    Z /= np.linalg.norm(Z, axis=0)
    scale = np.asarray(w @ (X - w @ X) ** 2)
    with single_threaded_blas():
        s, V = np.linalg.eigh(Z.T @ Z)
    if s[0] <= len(s) * 100.0 * _EPS * s[-1]:
        return None
    return np.asarray(scale / ((V**2) @ (1.0 / s)))


def noise_energy(kernel: Kernel, X: Any, sigma: float, weights: Any = None) -> float:
    """Return what noise adds to the scatter of the features along each direction that it moves.

    To first order a step e moves the feature of x by sum_j e_j d k(x, .) / dx_j, so noise of
    variance s^2 adds s^2 times the metric d^2 k / dx_j dy_j at x = y per coordinate and point, here
    averaged over coordinates and rows: s^2 / l^2 for a Gaussian, s^2 for the linear kernel. Kernels
    with a cusp have no metric, and are asked how far noise moves their features.
    """
    X = kernel.points(X).array
    mass = float(X.shape[0]) if weights is None else float(np.sum(weights))
    Z, share = spread_rows(X, weights, _PROBES)
    if not kernel.program.has_derivatives:
        raise InputError(
            f"{kernel!r} has no derivatives, so the noise cannot be carried to its features; give "
            "the filter's strength"
        )
    if kernel.program.is_smooth:
        stationary = all(isinstance(v, Distance) for v in kernel.program.variables)
        rows_needed = range(1) if stationary else range(len(Z))
        metric = [float(np.trace(kernel.mixed_derivative(Z[i : i + 1])[0, 0])) for i in rows_needed]
        average = metric[0] if stationary else float(np.average(metric, weights=share))
        return float(mass * sigma**2 * average / Z.shape[1])
    moved = Z + sigma * np.random.default_rng(0).standard_normal(Z.shape)
    cross = np.array([kernel(Z[i : i + 1], moved[i : i + 1])[0, 0] for i in range(len(Z))])
    energy = kernel.diag(Z) + kernel.diag(moved) - 2.0 * cross
    return float(mass * np.average(energy, weights=share) / Z.shape[1])
