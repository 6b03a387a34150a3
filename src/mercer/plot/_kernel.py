"""A kernel at a glance: its values, its spectrum, and functions drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer._errors import InputError, UnavailableError
from mercer._random import as_generator
from mercer.kernels import Kernel, SpectralMeasure

_COLOURS = ("#1b4965", "#ca6702", "#5a8f69", "#9b2226", "#6d597a")
_POINTS = 241
_SHOWN = 25  # eigenvalues or atoms


def plot_kernel(
    kernel: Kernel, x: Any = None, *, n_samples: int = 4, random_state: Any = 0, axes: Any = None
) -> Any:
    """Draw a kernel on the line in three panels.

    Left: k(x_0, x) for a few x_0. Middle: the spectral density or, for kernels on the circle, the
    atoms of the spectral measure; for kernels that are not stationary the eigenvalues of the
    kernel under the uniform law on x. Right: functions drawn from the Gaussian process with
    covariance k, which a kernel that is not positive definite has not.

    Parameters
    ----------
    kernel : Kernel
        On points of one column.
    x : array_like of shape (n,), optional
        Where to draw; by default an interval that shows the kernel.
    n_samples : int, default=4
    random_state : int, Generator, RandomState or None, default=0
        Draws the functions.
    axes : three matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_kernel
    >>> figure = plot_kernel(mc.Matern(1.5, 0.5))
    >>> [axis.get_title() for axis in figure.axes]
    ['k(x₀, x)', 'spectral density', 'functions']
    """
    from matplotlib.figure import Figure

    grid = _grid(kernel) if x is None else np.asarray(x, dtype=np.float64).ravel()
    if axes is None:
        axes = Figure(figsize=(10.0, 2.5), layout="constrained").subplots(1, 3)
    left, middle, right = axes
    K = kernel(grid[:, None])
    _draw_values(left, grid, K)
    _draw_spectrum(middle, kernel, K)
    _draw_functions(right, grid, K, n_samples, as_generator(random_state))
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.title.set_fontsize(9)
    return left.figure


def _grid(kernel: Kernel) -> Array:
    """An interval of the domain: all of a circle, else a few units, where they are allowed."""
    period = getattr(kernel.domain, "period", None)
    tried = [(-0.5 * period, 0.5 * period)] if period else []
    tried += [(-3.0, 3.0), (0.01, 3.0), (-0.95, 0.95), (-0.3, 0.3)]
    for low, high in tried:
        x = np.linspace(low, high, _POINTS)
        try:
            kernel.points(x[:, None])
        except InputError:
            x = x + 1e-3 * (high - low)  # not at the origin, where cosines have no direction
            try:
                kernel.points(x[:, None])
            except InputError:
                continue
        return x
    raise InputError(f"{kernel!r} takes no points on the line that were tried; give x")


def _draw_values(axis: Any, x: Array, K: Array) -> None:
    axis.set_title("k(x₀, x)")
    chosen = (len(x) // 2, len(x) // 5, len(x) - 1 - len(x) // 12)
    for i, colour in zip(chosen, _COLOURS[:3], strict=True):
        axis.plot(x, K[i], color=colour, lw=1.4)
        axis.plot(x[i], K[i, i], "o", ms=3, color=colour)


def _draw_spectrum(axis: Any, kernel: Kernel, K: Array) -> None:
    try:
        measure = kernel.spectral_measure(1)
    except UnavailableError:
        _draw_eigenvalues(axis, K)
        return
    atoms = getattr(measure, "atoms", None)
    if atoms is not None:
        axis.set_title("spectral measure")
        w, mass = atoms(_SHOWN)
        axis.vlines(w, 0.0, mass, color=_COLOURS[0], lw=1.5)
        axis.plot(w, mass, "o", ms=3, color=_COLOURS[0])
        axis.set_ylim(bottom=0)
        return
    _draw_density(axis, measure)


def _draw_density(axis: Any, measure: SpectralMeasure) -> None:
    axis.set_title("spectral density")
    reach = float(np.quantile(np.abs(measure.sample(2000, 0)), 0.9))
    w = np.linspace(-1.6 * reach, 1.6 * reach, 2 * _POINTS)
    axis.plot(w, measure.density(w[:, None]), color=_COLOURS[0], lw=1.4)
    axis.set_ylim(bottom=0)


def _draw_eigenvalues(axis: Any, K: Array) -> None:
    """Those of the integral operator under the uniform law, by the rectangle rule."""
    axis.set_title("eigenvalues")
    values = np.linalg.eigvalsh(K)[::-1] / len(K)
    size = np.abs(values[:_SHOWN])
    order = np.arange(1, len(size) + 1)
    kept = size > 1e-13 * size.max()  # the rest is rounding
    for sign, colour in ((1, _COLOURS[0]), (-1, _COLOURS[3])):
        shown = kept & (np.sign(values[:_SHOWN]) == sign)
        axis.semilogy(order[shown], size[shown], "o", ms=3, color=colour)
    lowest = values[-1]
    if lowest < -1e-8 * values[0]:
        axis.text(0.97, 0.9, f"smallest: {lowest:.2g}", ha="right", fontsize=8, color=_COLOURS[3],
                  transform=axis.transAxes)  # fmt: skip


def _draw_functions(axis: Any, x: Array, K: Array, count: int, rng: np.random.Generator) -> None:
    axis.set_title("functions")
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    if values[0] < -1e-8 * values[-1]:
        axis.text(0.5, 0.5, "not positive definite:\nno such process", ha="center", va="center",
                  fontsize=8, color="0.4", transform=axis.transAxes)  # fmt: skip
        axis.set_xticks([])
        axis.set_yticks([])
        return
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    for i in range(count):
        draw = root @ rng.standard_normal(len(x))
        axis.plot(x, draw, color=_COLOURS[i % len(_COLOURS)], lw=1.2)
