"""Plot a kernel of one variable: values, spectrum and random functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer._array import Array, as_points, as_vector, instance, plain, positive_int
from mercer._frames import names_of
from mercer._random import as_generator
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Kernel, SpectralMeasure
from mercer.kernels._circle import period_of
from mercer.plot._panels import (
    NEGATIVE,
    SHOWN,
    draw_eigenvalues,
    kernel_title,
    log_scale,
    panels,
    tidy,
)
from mercer.plot._spectra import Parts, parts
from mercer.plot._style import BLUE, COLOURS, ORANGE

_POINTS = 241  # odd, so that the middle of the interval is one of them
_DRAWS = 40_000  # for the histogram of a spectral measure without a closed density
_FLOOR = 1e-5  # of the largest density; smaller values are not shown


def plot_kernel(
    kernel: Kernel, x: Any = None, *, n_samples: int = 4, random_state: Any = 0, ax: Any = None
) -> Any:
    """Plot a kernel of one variable in three panels.

    - Left: k(x₀, x) for three x₀; a dot marks x = x₀.
    - Middle: the density and the atoms of the spectral measure at frequencies >= 0, on a
      logarithmic scale, or a histogram of draws if there is no closed form. For kernels without a
      spectral measure: the eigenvalues of the Gram matrix on x, divided by n, as in `plot_gram`.
    - Right: random functions from the Gaussian process with covariance k on x. For a kernel that is
      only conditionally positive definite, functions are zero at the middle x₀. For an indefinite
      kernel there is no such process, and the panel says so.

    The title of a new figure states the definiteness that the kernel claims.

    Parameters
    ----------
    kernel : Kernel
        A kernel on points of one column; use `plot_gram` for others.
    x : array_like of shape (n,) or (n, 1), optional
        The points, n >= 2; by default 241 points of an interval that suits the kernel: a full
        period, the ball on which it is defined, a few length scales, or [-3, 3].
    n_samples : int, default=4
        The number of random functions.
    random_state : int, Generator, RandomState or None, default=0
        For the random functions.
    ax : three matplotlib Axes, optional

    Returns
    -------
    array of three Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_kernel
    >>> [axis.get_title() for axis in plot_kernel(mc.Matern(1.5, 0.5))]
    ['k(x₀, x)', 'spectral density', 'functions']
    """
    n_samples, rng = positive_int(n_samples, "n_samples"), as_generator(random_state)
    instance(kernel, Kernel, "kernel")
    if not kernel.domain.is_vector:
        raise InputError(
            f"points of {kernel!r} are not numbers on a line; draw its Gram matrix with "
            "plot_gram(kernel, points)"
        )
    grid, K = _gram_on_grid(kernel) if x is None else _gram_on_points(kernel, x)
    name = (names_of(x) or [str(getattr(x, "name", None) or "x")])[0]  # of a frame or a series
    drawn = panels(ax, (7.4, 2.35), (1, 1, 1), kernel_title(kernel))
    with single_threaded_blas():  # the matrices are too small for threads
        _draw_values(drawn[0], grid, K, name)
        _draw_spectrum(drawn[1], kernel, K)
        _draw_functions(drawn[2], grid, K, n_samples, rng, name)
    return drawn


def _gram_on_points(kernel: Kernel, x: Any) -> tuple[Array, Array]:
    """Sort the given points, and compute their Gram matrix."""
    x = plain(x, "x")
    points = as_points(x if getattr(x, "ndim", 1) == 2 else as_vector(x, "x")[:, None], "x")
    if points.shape[1] != 1 or points.shape[0] < 2:
        raise InputError(
            f"x must be at least two points on the line, got shape {points.shape}; along a curve "
            "draw kernel.transform(Features(curve)), or use plot_gram(kernel, points)"
        )
    grid = np.sort(points[:, 0].astype(np.float64))
    K = np.asarray(kernel(grid[:, None]), dtype=np.float64)
    if not np.isfinite(K).all():
        raise InputError(f"{kernel!r} is not finite on x; choose a shorter interval")
    return grid, K


def _gram_on_grid(kernel: Kernel) -> tuple[Array, Array]:
    """Find an interval that the kernel accepts; return its points and their Gram matrix."""
    for low, high in _intervals(kernel):
        x = np.linspace(low, high, _POINTS)
        for shift in (0.0, 0.5 * (x[1] - x[0])):  # the second avoids 0, where Cosine is undefined
            try:
                with np.errstate(all="ignore"):  # a user's function may fail there
                    K = np.asarray(kernel((x + shift)[:, None]), dtype=np.float64)
            except InputError:
                continue
            if np.isfinite(K).all():
                return x + shift, K
    raise InputError(
        f"{kernel!r} accepts none of the intervals that were tried; give x, or use "
        "plot_gram(kernel, points)"
    )


def _intervals(kernel: Kernel) -> list[tuple[float, float]]:
    """Intervals to try, best first."""
    period, radius = period_of(kernel), getattr(kernel.domain, "radius", None)
    if period is not None:
        return [(-0.5 * period, 0.5 * period)]
    if radius is not None:
        return [(-0.95 * radius, 0.95 * radius)]
    half = _half_width(kernel)
    return [(-half, half), (0.0, 3.0), (-0.95, 0.95), (-0.3, 0.3)]


def _half_width(kernel: Kernel) -> float:
    """Three times the distance at which a radial kernel is exp(-1/2) k(0), rounded; else 3."""
    if kernel.program.kind != "radial" or not kernel.program.has_derivatives:
        return 3.0
    r = np.append(0.0, np.logspace(-9.0, 9.0, 7201))
    try:
        values = kernel(np.zeros((1, 1)), r[:, None])[0]
    except InputError:  # not a kernel of one column
        return 3.0
    fallen = np.flatnonzero(values <= math.exp(-0.5) * values[0])
    if values[0] <= 0.0 or not fallen.size or fallen[0] == 0:  # 5e-324 has no digits
        return 3.0
    reach = 3.0 * float(r[fallen[0]])
    unit = 10.0 ** math.floor(math.log10(reach))
    return unit * math.ceil(reach / unit - 0.1)


def _draw_values(axis: Any, x: Array, K: Array, name: str) -> None:
    tidy(axis, "k(x₀, x)", name)
    n = len(x)
    for i, colour in zip((n // 2, n // 5, n - 1 - n // 12), COLOURS[:3], strict=True):
        axis.plot(x, K[i], color=colour, lw=1.3)
        axis.plot(x[i], K[i, i], "o", ms=4, color=colour)


def _draw_spectrum(axis: Any, kernel: Kernel, K: Array) -> None:
    try:
        measure = kernel.spectral_measure(1)
    except UnavailableError:
        draw_eigenvalues(axis, K)
        return
    try:
        _draw_parts(axis, measure, parts(measure))
    except UnavailableError:
        _draw_sampled(axis, measure)


def _largest_frequency(measure: SpectralMeasure) -> float:
    """A frequency below which nearly all of the mass lies."""
    return 2.0 * float(np.quantile(np.abs(measure.sample(4000, 0)), 0.95)) or 1.0


def _draw_parts(axis: Any, measure: SpectralMeasure, found: Parts) -> None:
    """Draw the density and the atoms at frequencies >= 0; the measure is symmetric."""
    heights = []
    kept = (found.w >= 0) & (found.m > _FLOOR * np.max(found.m, initial=0.0))
    w, mass = found.w[kept][:SHOWN], found.m[kept][:SHOWN]
    if found.density is not None:
        reach = _largest_frequency(measure)
        v = (np.arange(482) + 0.5) * (reach / 482)  # not 0, where the density may be infinite
        density = found.density(v)
        axis.plot(v, density, color=BLUE, lw=1.3)
        axis.set_xlim(-0.03 * reach if w.size else 0.0, reach)
        heights += [density]
        w, mass = w[w <= reach], mass[w <= reach]
    if w.size:
        colour = BLUE if found.density is None else ORANGE
        axis.vlines(w, 1e-300, mass, color=colour, lw=1.2)
        axis.plot(w, mass, "o", ms=3.5, color=colour, clip_on=False)
        heights += [mass]
    both = "spectral density, and an atom" if w.size == 1 else "spectral density, and atoms"
    titles = {(True, False): "spectral density", (False, True): "spectral measure: atoms"}
    tidy(axis, titles.get((found.density is not None, w.size > 0), both), "frequency")
    log_scale(axis, np.concatenate(heights), _FLOOR)


def _draw_sampled(axis: Any, measure: SpectralMeasure) -> None:
    """Draw a histogram of draws, scaled to the mass of the frequencies >= 0."""
    reach = _largest_frequency(measure)
    draws = np.abs(measure.sample(_DRAWS, 0)[:, 0])
    counts, edges = np.histogram(draws, bins=50, range=(0.0, reach))
    height = 0.5 * measure.mass * counts / (_DRAWS * (edges[1] - edges[0]))
    axis.stairs(height, edges, color=BLUE, fill=True, alpha=0.6)
    axis.set_xlim(0.0, reach)
    tidy(axis, "spectral measure, sampled", "frequency")


def _draw_functions(
    axis: Any, x: Array, K: Array, count: int, rng: np.random.Generator, name: str
) -> None:
    middle = len(x) // 2
    pinned = K - K[:, middle, None] - K[middle] + K[middle, middle]
    for covariance, title in ((K, "functions"), (pinned, "functions, zero at one x₀")):
        root = _root(covariance, float(np.abs(K).max()))
        if root is not None:
            tidy(axis, title, name)
            for i, draw in enumerate((root @ rng.standard_normal((len(x), count))).T):
                axis.plot(x, draw, color=COLOURS[i % len(COLOURS)], lw=1.1)
            if covariance is pinned:
                axis.plot(x[middle], 0.0, "o", ms=4, color="k")
            return
    tidy(axis, "functions")
    axis.spines[:].set_visible(False)
    axis.set(xticks=[], yticks=[])
    axis.text(0.5, 0.5, "not positive definite:\nno process has\nthis covariance", ha="center",
              va="center", fontsize=8, color=ORANGE, transform=axis.transAxes)  # fmt: skip


def _root(K: Array, size: float) -> Array | None:
    """The symmetric square root of K, or None if K is not positive semidefinite.

    Unlike other roots it does not depend on the signs of computed eigenvectors.
    """
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    if values[0] < -NEGATIVE * max(values[-1], size):
        return None
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)
