"""Plot modes, their points and basins, and the number of modes by bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points, positive_int
from mercer._words import counted
from mercer.exceptions import InputError
from mercer.methods import Modes, mean_shift
from mercer.methods.modes._scale_space import ScaleSpace
from mercer.plot._functions import draw_contours, draw_marks, on_line, on_plane
from mercer.plot._panels import box, column_names, log_ticks, pair, panels, tidy
from mercer.plot._style import BLUE, COLOURS, DARK, GREY, MARKERS, ORANGE
from mercer.space import Element

_NUMBERED = 20  # up to this many modes are numbered
_PALE = 0.42  # opacity of basins


def plot_modes(
    found: Any,
    X: Any = None,
    *,
    density: Any = None,
    columns: tuple[Any, Any] = (0, 1),
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot points, coloured by mode, and the modes.

    Points without a mode are small and grey. Modes are circles, numbered if they are few. In one
    dimension points are ticks, and modes are stems whose height is the density, if it is known.

    Parameters
    ----------
    found : Modes or MeanShift
        The result of `mean_shift`, or a fitted estimator.
    X : array_like of shape (m, d), optional
        The starts, or the rows of `fit`; a fitted `MeanShift` remembers its rows.
    density : Element or Density, optional
        Draw its curve, or in two dimensions its contours, too; by default that of a `MeanShift`.
    columns : pair of int or str, default=(0, 1)
        Numbers or names of the columns to draw, if there are more than two.
    names : sequence of str, optional
        Names of all columns; by default those of the frame X, or of the frame that was fitted.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_modes
    >>> X = [[0.0, 0.0], [1.0, 0.5], [5.0, 5.0]]
    >>> ax = plot_modes(mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), X)), X)
    >>> ax.get_title()
    '2 modes'
    """
    modes, labels, heights = _parts(found)
    d = modes.shape[1]
    names = column_names(names, d, X, found)
    own: Any = getattr(found, "density_", None)
    density = own if density is None else density
    if X is None and own is None:
        raise InputError("X is missing: give the starts, in the order of the labels")
    X = as_dense_points(own.points if X is None else X)
    if X.shape != (len(labels), d):
        raise InputError(
            f"X must be the starts that were labelled, shape {(len(labels), d)}, got {X.shape}"
        )
    batch = getattr(density, "batch", None)
    if (density is not None and not callable(density)) or batch is not None:
        raise InputError(f"density must be an Element or a Density, not a batch, got {density!r}")
    i, j = (0, 0) if d == 1 else pair(columns, names)
    (axis,) = panels(ax, (4.6, 2.8) if d == 1 else (4.6, 3.9))
    without = int(np.sum(labels < 0))
    free = f", {counted(without, 'point')} without" if without else ""
    tidy(axis, counted(len(modes), "mode") + free, names[i], names[j] if d > 1 else "")
    if d == 1:
        _draw_line(axis, X[:, 0], labels, modes[:, 0], heights, density)
        if heights is None and density is own:
            axis.set_yticks([])  # the density is unknown, or known up to a factor
        return axis
    _draw_points(axis, X[:, [i, j]], labels)
    if density is not None and d == 2:
        low, high = box(X[:, [i, j]])
        draw_contours(axis, *on_plane(density, low, high, flip=(i, j) == (1, 0)))
    _draw_modes(axis, modes[:, [i, j]])
    return axis


def plot_basins(
    density: Any,
    *,
    low: Any = None,
    high: Any = None,
    resolution: int = 160,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot the basins of attraction of the modes of a density in the plane.

    Mean shift runs from every pixel. Pixels that end at the same mode have the same colour, and
    adjacent basins have different colours. White pixels end at no mode: the density is zero there,
    or the model dropped their cluster. Lines are contours of the density, dots its points, circles
    its modes.

    Parameters
    ----------
    density : Element, Density or fitted estimator
        A density of points in the plane, as for `mean_shift`. A fitted `MeanShift` is drawn with
        its own clusters, by its `predict`.
    low, high : pairs of float, optional
        Corners of the plot; by default the bounding box of the points with a margin.
    resolution : int, default=160
        Pixels along each side.
    names : two str, optional
        Names of the axes; by default those of the columns of the frame that was fitted.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_basins
    >>> model = mc.MeanShift(bandwidth=1.0).fit([[0.0, 0.0], [1.0, 0.5], [5.0, 5.0]])
    >>> plot_basins(model, resolution=20).get_title()
    '2 modes and their basins'
    """
    resolution = positive_int(resolution, "resolution")
    model, density = density, getattr(density, "density_", density)
    elements = getattr(density, "elements", (density,))
    if not all(isinstance(element, Element) for element in elements):
        raise InputError(
            f"density must be an Element, a Density or a fitted MeanShift, got {density!r}"
        )
    X = np.concatenate([as_dense_points(e.points, "points") for e in elements])
    if X.shape[1] != 2:
        raise InputError(
            f"plot_basins needs two dimensions, but the density has {X.shape[1]}; use plot_modes"
        )
    names = column_names(names, 2, model, *elements)
    low, high = box(X, low, high)
    ticks = (np.arange(resolution) + 0.5) / resolution
    across, up = (low[k] + ticks * (high[k] - low[k]) for k in range(2))
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    if hasattr(model, "cluster_centers_"):
        plain = copy(model)
        vars(plain).pop("feature_names_in_", None)  # else `predict` wants a frame
        modes, labels = np.asarray(model.cluster_centers_), plain.predict(grid)
    else:
        found = mean_shift(density, grid)
        modes, labels = found.points, found.labels
    (axis,) = panels(ax, (4.6, 3.9))
    extent = (low[0], high[0], low[1], high[1])
    image = _basin_image(labels.reshape(resolution, resolution), len(modes))
    axis.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="nearest")
    draw_contours(axis, *on_plane(density, low, high, count=resolution))
    axis.plot(*X.T, ".", ms=2.8, color="#303030", alpha=0.6, mew=0)
    _draw_modes(axis, modes)
    axis.set(xlim=extent[:2], ylim=extent[2:])
    whose = "its basin" if len(modes) == 1 else "their basins"
    tidy(axis, f"{counted(len(modes), 'mode')} and {whose}", *names)
    return axis


def plot_scale_space(space: ScaleSpace, *, ax: Any = None) -> Any:
    """Plot the number of modes against the bandwidth, on logarithmic axes.

    The longest plateau with more than one mode is shaded, and its middle is marked.

    Parameters
    ----------
    space : ScaleSpace
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_scale_space
    >>> space = mc.methods.scale_space([[0.0], [0.1], [5.0], [5.1]], [0.01, 0.1, 1.0, 2.0, 4.0])
    >>> plot_scale_space(space).get_title()
    '2 modes from 0.03162 to 2.828; in the middle 0.2991'
    """
    if not isinstance(space, ScaleSpace):
        raise InputError(f"space must be a result of scale_space, got {space!r}")
    (axis,) = panels(ax, (4.6, 2.9))
    p = space.longest
    axis.axvspan(p.low, p.high, color=ORANGE, alpha=0.15, lw=0)
    axis.axvline(p.middle, color=ORANGE, lw=1.1, ls="--")
    axis.plot(space.bandwidths, space.n_modes, color=BLUE, lw=1.0, drawstyle="steps-mid")
    axis.plot(space.bandwidths, space.n_modes, "o", ms=3.5, color=BLUE)
    axis.set(xscale="log", yscale="log")
    log_ticks(axis.xaxis)
    most = 1.25 * max(2.0, float(space.n_modes.max()))
    steps = (1, 2, 3, 4, 5, 7) if most < 10 else (1, 2, 5) if most < 200 else (1,)
    ticks = [s * 10**k for k in range(9) for s in steps if s * 10**k <= most]
    axis.set_ylim(0.8, most)
    axis.set_yticks(ticks, [f"{t:,}" for t in ticks])
    axis.yaxis.set_minor_formatter("")
    found = f"{counted(p.n_modes, 'mode')} from {p.low:.4g} to {p.high:.4g}"
    tidy(axis, f"{found}; in the middle {p.middle:.4g}", "bandwidth", "number of modes")
    return axis


def _draw_points(axis: Any, X: Array, labels: Array) -> None:
    size = float(np.clip(60.0 / np.sqrt(len(X)), 1.5, 4.5))
    free = labels < 0
    axis.plot(*X[free].T, ".", ms=0.8 * size, color=GREY, zorder=1)
    for k in range(int(labels.max(initial=-1)) + 1):
        marker = MARKERS[k // len(COLOURS) % len(MARKERS)]
        axis.plot(*X[labels == k].T, marker, ms=size, color=COLOURS[k % len(COLOURS)],
                  mew=0, alpha=0.75, zorder=2)  # fmt: skip


def _draw_modes(axis: Any, modes: Array) -> None:
    many = len(modes) > _NUMBERED
    draw_marks(axis, modes, ms=4 if many else 9)
    for k, (x, y) in enumerate(() if many else modes):
        axis.text(x, y, str(k), ha="center", va="center_baseline", fontsize=6.5, zorder=5)


def _draw_line(
    axis: Any, x: Array, labels: Array, modes: Array, heights: Array | None, density: Any
) -> None:
    """Draw ticks for the points, the curve of the density, and a stem for each mode."""
    if density is not None:
        axis.plot(*on_line(density, x), color=DARK, lw=1.2)
        heights = np.asarray(density(modes[:, None]))
    axis.set_ylabel("" if heights is None else "density", fontsize=8)
    heights = np.ones(len(modes)) if heights is None else heights
    top = float(heights.max(initial=0.0)) or 1.0
    colours = np.array([*COLOURS, GREY])
    for k, (mode, height) in enumerate(zip(modes, heights, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        axis.vlines(mode, 0.0, height, color=colour, lw=1.2)
        axis.plot(mode, height, "o", ms=5, color=colour)
    kinds = np.where(labels < 0, len(COLOURS), labels % len(COLOURS))
    axis.vlines(x, -0.1 * top, -0.03 * top, color=colours[kinds], lw=0.7)
    axis.set_ylim(-0.13 * top, 1.1 * top)


def _basin_image(labels: Array, count: int) -> Array:
    """An image in pale colours; adjacent basins have different ones."""
    from matplotlib.colors import to_rgb

    touching = np.zeros((count + 1, count + 1), dtype=bool)  # the last is no basin
    for a, b in ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:])):
        touching[a, b] = touching[b, a] = True
    chosen = np.full(count, -1)
    for k in range(count):
        taken = set(chosen[:k][touching[k, :k]])
        free = [c for c in (k, *range(len(COLOURS))) if c < len(COLOURS) and c not in taken]
        chosen[k] = free[0] if free else 0
    palette = np.array([*(to_rgb(c) for c in COLOURS), (1.0, 1.0, 1.0)])
    palette = 1.0 - _PALE * (1.0 - palette)
    return np.asarray(palette[np.append(chosen, len(COLOURS))[labels]])  # -1 is the last: white


def _parts(found: Any) -> tuple[Array, Array, Array | None]:
    """Modes, labels, and the densities at the modes if they are known."""
    if isinstance(found, Modes):
        return found.points, found.labels, found.density
    if not (hasattr(found, "cluster_centers_") and hasattr(found, "labels_")):
        raise InputError(
            f"found must be a result of mean_shift or a fitted MeanShift, got {found!r}"
        )
    return np.asarray(found.cluster_centers_, dtype=np.float64), np.asarray(found.labels_), None
