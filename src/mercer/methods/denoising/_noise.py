"""Noise: its level in data (what cannot be predicted), and how far it moves features."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, Points, as_points, as_weights, is_sparse, non_negative
from mercer._threads import interruptible, single_threaded_blas
from mercer.engine import Distance
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel, Vectors, median_scale
from mercer.linalg._inputs import check_kernel, raw_weights
from mercer.methods._rows import spread_rows
from mercer.methods.pca._kernel_pca import kernel_pca
from mercer.methods.pca._smoother import Smoother
from mercer.preimages import LinearInverse
from mercer.space import feature

_QUIET = 0.02  # the share of columns that are taken to hold hardly anything but noise
_MANY_COLUMNS = 3000  # beyond, columns are not regressed on each other: a cube of their number
_ROWS = 150  # on which smoothers are tried: a second at most
_SCALES = (1 / 32, 1 / 8, 1 / 2, 2.0)  # squared length scales, of the median squared distance
_STRENGTHS = 10.0 ** -np.arange(0.5, 4.1, 0.5)  # of the largest eigenvalue
_STEP = 1e-4  # of the spread of the data: the step of a directional derivative
_LEAST = 0.1  # smoothers that take out less than this share of the noise say little about it
_SMALL = 1e-70  # beyond, squares of lengths leave the range of kernels
_EPS = float(np.finfo(np.float64).eps)
_METRIC_COLUMNS = 1000  # whose mixed derivatives are written out, 8 MB
_METRIC_ROWS = 200  # over which a kernel's metric is averaged: its error is then a few percent


def noise_level(X: Any, *, weights: Any = None) -> float:
    """Return an estimate of the standard deviation of noise that is the same in all columns.

    Independent noise of variance s^2 cannot be predicted, so the error of every prediction bounds
    s^2 from above. The smallest of three bounds is taken:

    - the quietest columns: the 2 % quantile of the variances of columns, over the same quantile
      for pure noise of variance 1;
    - the same for the residual variances of each column after linear regression on all others, if
      there are a third more rows than columns (the best bound for images and spectra);
    - smoothers: s^2 <= |D(x) - x|^2 / |J|^2 for kernel smoothers D of several widths fitted without
      x, with the Jacobian J of D(x) - x (the best bound for curves in few dimensions).

    The usual estimate, from small eigenvalues of the covariance, is far too large if the signal has
    many weak components. In data without structure all variation counts as noise. The estimate is
    0 if there are fewer than two rows or no column varies.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (n, d)
        Columns of different units must be scaled first. Constant columns are left out.
    weights : array_like of shape (n,), optional
        Weights >= 0: how often each row is repeated, or shares if they sum to less than the number
        of rows.

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
    extent = float(abs(X).max())
    if extent > 0.0 and not _SMALL < extent < 1.0 / _SMALL:
        return extent * noise_level(X / extent, weights=weights)
    # the number of rows that the weights count; for shares the effective sample size
    effective = 1.0 / float(np.sum(w**2))
    if weights is not None and float(np.sum(weights)) >= np.count_nonzero(w):
        effective = float(np.sum(weights))
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
        bounds.append(_smoother_bound(*spread_rows(X, weights, _ROWS)))
    if not is_sparse(X) and 1 < d <= min(0.75 * effective, _MANY_COLUMNS):
        residual = _residual_variances(np.asarray(X, dtype=np.float64)[:, varying], w)
        if residual is not None:
            free = effective - d
            bounds.append(_quantile(residual * effective / free, free))
    return float(np.sqrt(max(min(bounds), 0.0)))


def _quantile(variances: Array, freedom: float) -> float:
    """The low quantile of the variances over that of chi-square / freedom."""
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
    """Residual variances of each column regressed on all others: 1 over the diagonal of C^-1.

    None if columns depend on each other exactly; their noise is not independent then.
    """
    Z = np.sqrt(w)[:, None] * (X - w @ X)
    Z /= np.linalg.norm(Z, axis=0)
    scale = np.asarray(w @ (X - w @ X) ** 2)
    with single_threaded_blas():
        s, V = interruptible(np.linalg.eigh, Z.T @ Z)
    if s[0] <= len(s) * 100.0 * _EPS * s[-1]:
        return None
    return np.asarray(scale / ((V**2) @ (1.0 / s)))


def _smoother_bound(X: Array, weights: Array) -> float:
    """Return a bound on the variance of noise, the smallest over some kernel smoothers.

    Let r(x) = D(x) - x for a smoother D that was fitted without x. If D is linear near x and r has
    the Jacobian J, then E|r|^2 = bias^2 + s^2 |J|^2 per entry, so s^2 <= |r|^2 / |J|^2: tight if
    the smoother has no bias. |J|^2 is estimated along one direction of random signs, and clipped
    to [(div r)^2, -div r], where it lies for every smoother that shrinks.
    """
    rows = Points(X, Vectors())
    try:
        length = median_scale(rows, weights=weights)
    except InputError:  # all rows are equal
        return np.inf
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=X.shape)
    step = _STEP * length / np.sqrt(X.shape[1])
    moved = X + step * signs
    best = np.inf
    with single_threaded_blas():  # small matrices, which threads only slow down
        for scale in _SCALES:
            kernel = Gaussian(float(np.sqrt(scale)) * length)
            plane = kernel_pca(kernel, rows, weights=weights)
            inverse = LinearInverse.fit(plane, rows, weights)
            C = np.asarray(plane.coordinates(feature(kernel, rows)))
            nearby = np.asarray(plane.coordinates(feature(kernel, Points(moved, Vectors()))))
            values = np.asarray(plane.eigenvalues)
            for strength in _STRENGTHS:
                phi = values / (values + strength * values[0])
                smoother = Smoother(C, phi / values, weights)
                here = smoother.points_without(C, X, phi, inverse) - X
                J = (smoother.points_without(nearby, X, phi, inverse) - moved - here) / step
                taken = -float(np.mean(signs * J))  # -div r, per entry
                if taken >= _LEAST:
                    size = float(np.clip(np.mean(J**2), taken**2, max(taken, taken**2)))
                    best = min(best, float(np.mean(here**2)) / size)
    return best


def feature_noise(kernel: Kernel, X: Any, noise: float, *, weights: Any = None) -> float:
    """Return what noise adds to the scatter of the features, per direction in which they move.

    To first order a step e moves the feature of x by sum_j e_j d k(x, .) / dx_j. So noise of
    variance s^2 adds s^2 d^2 k / dx_j dy_j at x = y, per coordinate and point. This is averaged
    over coordinates, and summed over rows: n s^2 / l^2 for a Gaussian, n s^2 for the linear kernel.
    It is the strength of `Tikhonov` that suits the noise, in units of the eigenvalues. Kernels with
    a cusp have no such derivative; for them features of rows with simulated noise are compared.

    Parameters
    ----------
    kernel : Kernel
        On vectors, with derivatives.
    X : array_like or CSR matrix of shape (n, d)
    noise : float
        The standard deviation s of the noise.
    weights : array_like of shape (n,), optional
        A weight of 2 is the same as repeating the row.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.methods.feature_noise(mc.Gaussian(2.0), [[0.0], [1.0], [3.0]], 0.1), 4)
    0.0075
    """
    check_kernel(kernel)
    X = kernel.points(X).array
    variance = non_negative(noise, "noise") * noise
    weights = raw_weights(weights, X.shape[0])
    mass = float(X.shape[0]) if weights is None else float(weights.sum())
    Z, share = spread_rows(X, weights, _METRIC_ROWS)
    if not kernel.program.has_derivatives:
        raise InputError(
            f"{kernel!r} has no derivatives, so the noise cannot be carried to its features; give "
            "the filter's strength"
        )
    rng = np.random.default_rng(0)
    if kernel.program.is_smooth:
        if all(isinstance(v, Distance) for v in kernel.program.variables):  # the same everywhere
            Z, share = Z[:1], share[:1]
        step = 1e-4 * min(noise, float(np.abs(Z).max()) or noise)
        moved = [_trace_of_metric(kernel, z, step, rng) for z in Z[:, None]]
        return float(mass * variance * np.average(moved, weights=share) / Z.shape[1])
    points = Points(Z, kernel.domain)
    shifted = kernel.points(Z + noise * rng.standard_normal(Z.shape))
    cross = [kernel(points[i : i + 1], shifted[i : i + 1])[0, 0] for i in range(len(Z))]
    squared = kernel.diag(points) + kernel.diag(shifted) - 2.0 * np.array(cross)
    return float(mass * np.average(squared, weights=share) / Z.shape[1])


def _trace_of_metric(kernel: Kernel, x: Array, step: float, rng: np.random.Generator) -> float:
    """The sum of d^2 k / dx_j dy_j over the coordinates, at x = y.

    For many columns it is estimated by the curvature along a direction of random signs, from a
    difference of gradients; that is exact for functions of the distance.
    """
    point = Points(x, kernel.domain)
    if x.size <= _METRIC_COLUMNS:
        return float(np.trace(kernel.mixed_derivative(point)[0, 0]))
    signs = rng.choice([-1.0, 1.0], size=x.shape)
    near = Points(np.vstack([x + step * signs, x - step * signs]), kernel.domain)
    forth, back = kernel.gradient(point, near)[0] @ signs[0]
    return float(forth - back) / (2.0 * step) if step > 0.0 else 0.0
