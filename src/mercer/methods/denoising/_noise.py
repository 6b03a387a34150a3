"""Estimates of the noise level, where data allow them, and of how far noise moves features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array, Points, as_points, as_weights, instance, is_sparse, non_negative
from mercer._threads import interruptible, single_threaded_blas
from mercer.engine import dense
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import spread_rows

_FEWEST = 5  # columns or directions of pure noise; fewer are equal by chance
_MANY = 20  # directions; fewer must be half of all (in tables, a fifth may be nearly equal)
_FEWEST_ROWS = 50  # with fewer, tests accept nearly everything
_LEVEL = 0.01  # of the tests that columns or directions are equal
_CLEARLY = 1e-6  # of the test that some vary more: at 0.01, one table of pure signal in a hundred
_SLACK = 1.5  # correlation of quiet columns: those of images see a little of the image
_MANY_COLUMNS = 3000  # beyond, no eigenvalues: a cube of their number
_SMALL = 1e-70  # beyond, squares of lengths leave the range of kernels
_EPS = float(np.finfo(np.float64).eps)
_METRIC_COLUMNS = 1000  # whose matrix of mixed derivatives is computed, 8 MB
_METRIC_ROWS = 200  # over which a kernel's metric is averaged: its error is then a few percent


@dataclass(frozen=True)
class NoiseLevel:
    """An estimate of the standard deviation of noise, which may be unknown.

    Attributes
    ----------
    sd : float
        The estimate; 0 if unknown.
    error : float
        Its standard error, for normal noise; infinity if unknown.
    n_directions : int
        Columns or directions that hold nothing but noise.
    source : str
        "columns", "directions" or "unknown".

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.noise_level([[0.0, 1.0], [1.0, 2.0], [2.0, 2.5]])
    NoiseLevel(sd=0.0, error=inf, n_directions=0, source='unknown')
    """

    sd: float = 0.0
    error: float = np.inf
    n_directions: int = 0
    source: str = "unknown"


def noise_level(X: Any, *, weights: Any = None) -> NoiseLevel:
    """Estimate the standard deviation s of noise that is the same and independent in all columns.

    What cannot be predicted need not be noise. Noise can be identified where it occurs alone, in a
    part of the data that varies equally in all directions, and less than the rest:

    - columns: the columns of least variance, as many as have the same variance (Bartlett's test),
      if they are uncorrelated; the background of images;
    - directions: the smallest eigenvalues of the covariance, as many as are equal (Bartlett's test
      of sphericity), if there are a third more rows than columns; few factors behind many columns.

    There must be five such columns, or half of the directions (or 20), and others that clearly vary
    more. In most tables neither is found. Then the level is unknown, and the estimate 0.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (n, d)
        Columns of different units must be scaled first. Constant columns are left out.
    weights : array_like of shape (n,), optional
        Weights >= 0: how often each row is repeated, or shares if they sum to less than the number
        of rows.

    References
    ----------
    M. S. Bartlett, Tests of significance in factor analysis, 1950.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import noise_level
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 20))
    >>> level = noise_level(clean + 0.1 * rng.normal(size=clean.shape))
    >>> round(level.sd, 2), level.source
    (0.1, 'directions')
    >>> noise_level(rng.normal(size=(400, 20))).source  # all of it may be signal
    'unknown'
    """
    X = as_points(X)
    w = as_weights(weights, X.shape[0])
    extent = float(abs(X).max())
    if extent > 0.0 and not _SMALL < extent < 1.0 / _SMALL:
        level = noise_level(X / extent, weights=weights)
        return replace(level, sd=extent * level.sd, error=extent * level.error)
    # the number of rows that the weights count; for shares the effective sample size
    n = 1.0 / float(np.sum(w**2))
    if weights is not None and float(np.sum(weights)) >= np.count_nonzero(w):
        n = float(np.sum(weights))
    mean, variance = _column_moments(X, w)
    varying = np.flatnonzero(variance > 1e-20 * (mean**2 + variance.max(initial=0.0)))
    order = varying[np.argsort(variance[varying], kind="stable")]
    d = len(order)
    if n < _FEWEST_ROWS or d <= _FEWEST:
        return NoiseLevel()
    root, k = np.sqrt(w)[:, None], np.arange(1, d + 1)
    m = _n_equal(variance[order], n - 1.0, k - 1)
    if _FEWEST <= m < d:
        quiet = root * (dense(X[:, order[:m]]) - mean[order[:m]])
        if _uncorrelated(quiet, n):
            return _level(float(np.mean(variance[order[:m]])) * n / (n - 1.0), n, m, "columns")
    if d <= min(0.75 * n, _MANY_COLUMNS):
        Z = root * (dense(X[:, order]) - mean[order])
        with single_threaded_blas():
            e = interruptible(np.linalg.eigvalsh, Z.T @ Z)
        m = 0
        if e[0] > d * _EPS * e[-1]:  # else columns depend on each other exactly
            factor = n - 1.0 - (d - k) - (2.0 * k**2 + k + 2.0) / (6.0 * k)
            m = _n_equal(e, factor, (k - 1) * (k + 2) / 2)
        if max(_FEWEST, min(0.5 * d, _MANY)) <= m < d:
            return _level(float(np.mean(e[:m])) * n / (n - 1.0 - (d - m)), n, m, "directions")
    return NoiseLevel()


def _level(variance: float, n: float, m: int, source: str) -> NoiseLevel:
    sd = float(np.sqrt(variance))
    return NoiseLevel(sd, sd / float(np.sqrt(2.0 * n * m)), m, source)


def _n_equal(v: Array, factor: Array | float, freedom: Array) -> int:
    """How many of the variances v, ascending, are equal: the most that Bartlett's test accepts.

    `factor` and `freedom` are those of the test on the first 1, 2, ... of them. 0 unless all of
    them together are clearly unequal.
    """
    from scipy.special import chdtrc

    k = np.arange(1, len(v) + 1)
    statistic = factor * (k * np.log(np.cumsum(v) / k) - np.cumsum(np.log(v)))
    p = chdtrc(np.maximum(freedom, 1), np.maximum(statistic, 0.0))
    return int(k[p > _LEVEL].max(initial=0)) if p[-1] < _CLEARLY else 0


def _uncorrelated(Z: Array, n: float) -> bool:
    """Whether the largest eigenvalue of Z'Z is about that of pure noise (Marchenko and Pastur).

    If there are few columns, a single correlated pair must not hide in the slack.
    """
    rows, m = Z.shape
    with single_threaded_blas():
        G = Z @ Z.T if m > rows else Z.T @ Z
        largest = float(interruptible(np.linalg.eigvalsh, G)[-1])
    edge = (1.0 + np.sqrt(m / n)) ** 2 * float(np.sum(Z**2)) / m
    slack = 1.0 + (_SLACK - 1.0) * min(1.0, m / _MANY)
    return bool(largest <= slack * edge)


def _column_moments(X: Any, w: Array) -> tuple[Array, Array]:
    if is_sparse(X):
        mean = np.asarray(X.T @ w, dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).T @ w, dtype=np.float64).ravel()
        return mean, np.maximum(square - mean**2, 0.0)
    X = np.asarray(X, dtype=np.float64)
    mean = w @ X
    return mean, np.asarray(w @ (X - mean) ** 2)


def feature_noise(kernel: Kernel, X: Any, noise: float, *, weights: Any = None) -> float:
    """Return the scatter that noise adds to the features, per direction.

    To first order a step e moves the feature of x by sum_j e_j d k(x, .) / dx_j. So noise of
    variance s^2 adds s^2 d^2 k / dx_j dy_j at x = y, per coordinate and point. This is averaged
    over coordinates, and summed over rows: n s^2 / l^2 for a Gaussian, n s^2 for the linear kernel.
    It is the strength of `Tikhonov` that suits the noise, in units of the eigenvalues. Kernels with
    a cusp have no such derivative; for them the features of rows with and without simulated noise
    are compared.

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
    instance(kernel, Kernel, "kernel")
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
        if kernel.program.is_translation_invariant:  # the same everywhere
            Z, share = Z[:1], share[:1]
        step = 1e-4 * min(noise, float(np.abs(Z).max()) or noise)
        moved = [_trace_of_metric(kernel, z, step, rng) for z in Z[:, None]]
        with np.errstate(over="ignore", invalid="ignore"):
            strength = mass * variance * np.average(moved, weights=share) / Z.shape[1]
        if not np.isfinite(strength):
            raise InputError(
                f"noise {noise!r} overflows in the features of {kernel!r}; scale the data down"
            )
        return float(strength)
    points = Points(Z, kernel.domain)
    shifted = kernel.points(Z + noise * rng.standard_normal(Z.shape))
    cross = [kernel(points[i : i + 1], shifted[i : i + 1])[0, 0] for i in range(len(Z))]
    with np.errstate(over="ignore", invalid="ignore"):
        squared = kernel.diag(points) + kernel.diag(shifted) - 2.0 * np.array(cross)
    if not np.isfinite(squared).all():
        raise InputError(f"values of {kernel!r} overflow at these rows; scale them down")
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
