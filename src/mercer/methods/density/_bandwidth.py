"""Bandwidths for kernel densities: normal-reference rules and the leave-one-out likelihood."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_dense_points, instance, one_of
from mercer._progress import report
from mercer.engine import Dense, Program, apply_all, evaluate
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import distinct_rows
from mercer.methods.density._normaliser import log_normaliser, log_radial_integral, radial_parts

BANDWIDTH_RULES = ("silverman", "scott", "modes", "likelihood")
_LEAF = 64  # rows whose leave-one-out sums are computed pair by pair
_NORMAL_QUARTILES = 1.349  # interquartile range of a normal distribution, in standard deviations
_DOUBLINGS = 60  # of the first guess, which is off by more only on degenerate data


def density_scale(
    X: Any, *, rule: str = "silverman", kernel: Kernel | None = None, weights: Any = None
) -> float:
    """Return a bandwidth h for a kernel density of X.

    With n points in d dimensions of spread s, the first three are optimal for normal data:

        "silverman"    h = s (4 / ((d + 2) n))^(1/(d+4)), for the density itself
        "scott"        h = s n^(-1/(d+4)), the same without the constant
        "modes"        h = s (4 / ((d + 4) n))^(1/(d+6)), for the gradient of the density
        "likelihood"   the h with the largest leave-one-out likelihood

    A mode is a zero of the gradient, and the gradient needs a larger h than the density.

    Parameters
    ----------
    X : array_like of shape (n, d)
        At least two different rows. Constant columns carry no information and are left out; d
        counts the others.
    rule : {"silverman", "scott", "modes", "likelihood"}
    kernel : Kernel, optional
        As for `kernel_density`; Gaussian by default. The first three rules give it the standard
        deviation (as a density, along each axis) that a Gaussian would have.
    weights : array_like of shape (n,), optional
        Numbers of rows >= 0: a weight of 2 is the same as repeating the row, and n is their sum.

    Returns
    -------
    float
        The `length_scale` for kernels that have one; for others the factor h of k(x / h, y / h).

    See Also
    --------
    median_scale : for kernels that are not densities.

    Notes
    -----
    s is the root mean square over columns of min(standard deviation, interquartile range / 1.349),
    so that a few outliers do not matter; if the quartiles coincide, it is the deviation alone.
    For "likelihood" all rows equal to a row are left out with it: otherwise the likelihood would
    grow without bound as h goes to zero. It takes about 25 sums over all pairs. An outlier makes h
    larger, because a kernel has to reach it.

    References
    ----------
    J. E. Chacon, T. Duong, M. P. Wand, Asymptotics for general multivariate kernel density
    derivative estimators, Statistica Sinica 21, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> rules = ("silverman", "modes", "likelihood")
    >>> [round(mc.methods.density_scale(X, rule=r), 3) for r in rules]
    [0.312, 0.395, 0.394]
    """
    one_of(rule, BANDWIDTH_RULES, "rule")
    kernel = Gaussian() if kernel is None else kernel
    instance(kernel, Kernel, "kernel")
    X, w = _counted_rows(X, weights)
    varying = X[:, np.ptp(X, axis=0) > 0.0]
    if not any(getattr(v, "maps", ()) for v in kernel.program.variables):
        X = varying  # others have to see all columns
    length = float(getattr(kernel, "length_scale", 1.0))
    if rule == "likelihood":
        extent = float(np.max(np.ptp(X, axis=0)))  # squares of very small lengths underflow
        return length * extent * _most_likely(kernel, X / extent, w)
    return length * normal_scale(varying, w, rule) / kernel_deviation(kernel, X.shape[1])


def normal_scale(X: Array, w: Array, rule: str) -> float:
    """The length scale of a Gaussian by a reference rule."""
    n, d = float(w.sum()), X.shape[1]
    spreads = column_spreads(X, w)
    s = float(np.linalg.norm(spreads / spreads.max()) * spreads.max()) / math.sqrt(d)
    base, power = {
        "modes": (4.0 / ((d + 4) * n), 1.0 / (d + 6)),
        "silverman": (4.0 / ((d + 2) * n), 1.0 / (d + 4)),
        "scott": (1.0 / n, 1.0 / (d + 4)),
    }[rule]
    return s * math.pow(base, power)


def kernel_deviation(kernel: Kernel, dim: int) -> float:
    """Standard deviation of a radial kernel as a density in R^dim, along an axis on average.

    E|x|^2 / d = Z_(d+2) / (2 pi Z_d), because the squared radius adds a factor u to the integrand.
    """
    total = log_normaliser(kernel, dim)
    variance = 0.0
    for part in radial_parts(kernel, dim):
        try:
            more = log_radial_integral(part.kernel, dim + 2)
        except InputError:
            raise InputError(
                f"{kernel!r} has no finite variance in {dim} dimensions, which this rule needs; "
                "use rule='likelihood'"
            ) from None
        less = log_radial_integral(part.kernel, dim)
        R = part.metric
        inverse = 1.0 / R if R.ndim == 1 else np.linalg.inv(R)
        stretch = float(np.sum(inverse**2)) / dim
        share = math.exp(part.log_integral - total)
        variance += share * stretch * math.exp(more - less) / (2.0 * math.pi)
    return math.sqrt(variance)


def column_spreads(X: Array, w: Array) -> Array:
    """min(standard deviation, interquartile range / 1.349) of each column; zero if constant."""
    n = float(w.sum())
    extent = np.ptp(X, axis=0)
    gap = (X - (w @ X) / n) / np.where(extent > 0.0, extent, 1.0)  # tiny squares would underflow
    deviation: Array = np.where(extent > 0.0, extent * np.sqrt((w @ gap**2) / (n - 1.0)), 0.0)
    low, high = np.quantile(X, (0.25, 0.75), axis=0, weights=w, method="inverted_cdf")
    robust = (high - low) / _NORMAL_QUARTILES
    return np.where(robust > 0, np.minimum(robust, deviation), deviation)


def _counted_rows(X: Any, weights: Any) -> tuple[Array, Array]:
    """Distinct rows in float64, and how often each occurs."""
    X = as_dense_points(X)
    rows, w = distinct_rows(X, raw_weights(weights, len(X)))
    if len(rows) < 2:
        raise InputError(
            f"a length scale needs at least two different rows, got {len(rows)} (n_samples = "
            f"{len(X)}); give it as a number"
        )
    check_counts(w)
    return rows, w


def check_counts(w: Array) -> None:
    if not w.sum() > 1.0:
        raise InputError(
            f"weights are numbers of rows here, so their sum must be > 1, got {float(w.sum())!r}; "
            "multiply them by the number of rows they represent"
        )


def _most_likely(kernel: Kernel, X: Array, w: Array) -> float:
    """The factor f of k(x / f) with the largest leave-one-out likelihood."""
    from scipy.optimize import minimize_scalar

    likelihood = partial(leave_one_out_likelihood, kernel, X, w)
    values: dict[int, float] = {}

    def at(k: int) -> float:
        if k not in values:
            values[k] = likelihood(start + k * math.log(2.0))
        return values[k]

    try:
        width = kernel_deviation(kernel, X.shape[1])
    except InputError:  # heavy tails
        width = 1.0
    rows = w * (len(w) / w.sum())  # the likelihood does not change with the sum of the weights
    start = math.log(normal_scale(X, rows, "silverman") / width)
    best = 0
    for _ in range(_DOUBLINGS):  # until it is better than two neighbours on each side
        around = [best + step for step in (-2, -1, 0, 1, 2)]
        found = max(around, key=at)
        if found == best and at(best) > -np.inf:
            break
        best = found if at(found) > -np.inf else best + 2  # no point is in the window of another
    else:
        raise InputError(
            "the leave-one-out likelihood has no maximum over the length scale; give it as a number"
        )
    middle, half = start + best * math.log(2.0), math.log(2.0)
    with np.errstate(invalid="ignore", over="ignore"):  # it may be -inf for windows
        result = minimize_scalar(
            lambda log: -likelihood(log),
            bounds=(middle - half, middle + half),
            method="bounded",
            options={"xatol": 1e-5},
        )
    return math.exp(float(result.x) if -result.fun >= at(best) else middle)


def leave_one_out_likelihood(kernel: Kernel, X: Array, w: Array, log_factor: float) -> float:
    """The mean leave-one-out log-likelihood of distinct rows with k(x / f), log f given.

    sum_i w_i log(sum_(j != i) w_j k(x_i / f, x_j / f) / (Z f^d (n - w_i))) / n
    """
    report("likelihood of a bandwidth")
    n, d = float(w.sum()), X.shape[1]
    log_Z = log_normaliser(kernel, d) + d * log_factor  # raises unless k is a density
    scaled = (X - X.mean(axis=0)) / math.exp(log_factor)
    sums = _log_sums_of_others(kernel.program, scaled, w)
    return float((w / n) @ (sums - np.log(n - w)) - log_Z)


def _log_sums_of_others(program: Program, X: Array, w: Array) -> Array:
    """log sum_(j != i) w_j k(x_i, x_j): one half against the other, and so on in each half.

    No term is ever subtracted, so nothing cancels.
    """
    out = np.full(len(X), -np.inf)
    spans = [(0, len(X))]
    while spans:
        low, high = spans.pop()
        middle, rows = (low + high) // 2, slice(low, high)
        if high - low <= _LEAF:
            out[rows] = np.logaddexp(out[rows], _log_sums(program, X[rows], w[rows]))
            continue
        spans += [(low, middle), (middle, high)]
        left, right = slice(low, middle), slice(middle, high)
        for points, queries in ((left, right), (right, left)):
            coef = Dense(w[points, None])
            part = engine.fields(program, X[points], X[queries], coef, shifted=True)
            with np.errstate(divide="ignore"):
                log = np.log(part.value[:, 0]) + part.shift
            out[queries] = np.logaddexp(out[queries], log)
    return out


def _log_sums(program: Program, X: Array, w: Array) -> Array:
    """log sum_(j != i) w_j k(x_i, x_j) of a few rows, pair by pair."""
    images = [apply_all(v.maps, X) for v in program.variables]  # type: ignore[union-attr]
    distances = [np.sum((Z[:, None] - Z[None]) ** 2, axis=2) for Z in images]
    with np.errstate(all="ignore"):
        if program.log_profile is not None:
            log = evaluate(program.log_profile, distances).value
        else:
            log = np.log(evaluate(program.profile, distances).value)
    log = np.array(np.broadcast_to(log, (w.size, w.size))) + np.log(w)
    np.fill_diagonal(log, -np.inf)
    return np.asarray(np.logaddexp.reduce(log, axis=1))
