"""Plot the search for a pre-image: its path, its surrogate, and where its objective is convex."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, instance
from mercer.exceptions import InputError
from mercer.plot._functions import draw_lines, draw_marks, draw_shades, on_line, on_plane
from mercer.plot._panels import box, column_names, element_points, pair, panels, tidy
from mercer.plot._style import BLUE, DARK, GREY, ORANGE
from mercer.preimages import (
    PreImage,
    is_majorised,
    preimage_hessian,
    preimage_objective,
    surrogate,
)
from mercer.space import Element

_MARGIN = 0.2  # of the sides of the bounding box, around it
_BEYOND = 3.0  # a line goes on for this many steps on both sides


def plot_path(
    found: PreImage,
    element: Element | None = None,
    *,
    columns: tuple[Any, Any] = (0, 1),
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot the paths of pre-image searches over the objective k(x, x)/2 - psi(x).

    Starts are white circles, ends are squares, and dots are the iterates between. In one dimension
    iterates lie on the curve of the objective; in two, dark is low. With more columns two of them
    are drawn, without the objective.

    Parameters
    ----------
    found : PreImage
        The result of `preimage(..., history=True)`: one search, or a batch.
    element : Element, optional
        psi, for the objective and the points.
    columns : pair of int or str, default=(0, 1)
        Numbers or names of the columns to draw, if there are more than two.
    names : sequence of str, optional
        Names of all columns.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_path
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0, 0.0], [1.0, 0.5], [1.5, 0.0]])
    >>> back = mc.preimage(psi, mc.FixedPoint(), start=[[3.0, 1.0]], history=True)
    >>> plot_path(back, psi).get_title()
    '1 search, 1 converged'
    """
    history = instance(found, PreImage, "found").history
    if history is None:
        raise InputError("found has no path; search with preimage(..., history=True)")
    _, b, d = history.points.shape
    names = column_names(names, d, found)
    chosen = [0] if d == 1 else list(pair(columns, names))
    paths = [path[np.isfinite(path).all(axis=1)] for path in history.points.swapaxes(0, 1)]
    ends = np.asarray(found.points)[found.ok]
    around = paths if element is None else [_points_of(element, d), *(p[:1] for p in paths)]
    corners = box(np.concatenate([*around, ends])[:, chosen], margin=_MARGIN)
    (axis,) = panels(ax, (4.6, 2.8) if d == 1 else (4.6, 3.9))
    title = f"{b} search{'' if b == 1 else 'es'}, {len(ends)} converged"
    tidy(axis, title, names[chosen[0]], names[chosen[1]] if d > 1 else "objective")
    if element is not None and d <= 2:
        _draw_landscape(axis, element, corners, flip=chosen == [1, 0])
    if d == 1:  # the objective is the height
        paths = [np.c_[p, v[: len(p)]] for p, v in zip(paths, history.objective.T, strict=True)]
        ends = np.c_[ends, found.objective[found.ok]]
    else:
        paths, ends = [path[:, chosen] for path in paths], ends[:, chosen]
    for path in paths:
        axis.plot(*path.T, ".-", color=ORANGE, ms=4, lw=1.0, zorder=3)
    draw_marks(axis, np.array([path[0] for path in paths]), ms=5)
    draw_marks(axis, ends, ms=5, marker="s", mfc=ORANGE)
    axis.set_xlim(corners[0][0], corners[1][0])
    if d > 1:
        axis.set_ylim(corners[0][1], corners[1][1])
    return axis


def plot_surrogate(
    element: Element, at: Any, *, names: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Plot the objective k(x, x)/2 - psi(x) and its surrogate, the parabola that touches it at x.

    The stationary point of the parabola is the next iterate of the fixed-point iteration. If the
    parabola lies above the objective, that point is its minimum, and the objective is smaller there
    than at x; the title says whether it lies above in the plot. In more than one dimension both are
    drawn along the line through x and the next iterate, or through x along the first axis if x is
    stationary.

    Parameters
    ----------
    element : Element
        One element, of a kernel that `mercer.preimages.surrogate` takes.
    at : array_like of shape (d,)
        x.
    names : one str, optional
        The name of the column, in one dimension.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_surrogate
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, 1.0])
    >>> plot_surrogate(psi, [0.5]).get_title()
    'the surrogate lies above the objective'
    """
    Z, _ = element_points(element)
    names = column_names(names, Z.shape[1], element)
    at = as_vector(at, "at", Z.shape[1]).astype(np.float64)
    q = surrogate(element, at)
    step = q.minimiser - at
    if not np.isfinite(step).all():
        raise InputError(f"the surrogate at {at} is constant, so there is no next iterate")
    if len(at) == 1 or not step.any():  # t is the first coordinate of origin + t way
        way = np.eye(len(at))[0]
        origin, first, last = at - at[0] * way, at[0], q.minimiser[0]
        ends, across = np.r_[Z[:, 0], first, last], names[0]
    else:
        origin, way, first, last = at, step, 0.0, 1.0
        ends, across = np.array([-_BEYOND, 1.0 + _BEYOND]), "t in x + t (next iterate - x)"
    t, values = on_line(lambda t: preimage_objective(element, origin + t * way), ends)
    X = origin + t[:, None] * way
    if not np.isfinite(values).all():
        raise InputError(
            f"the objective overflows between x = {at} and the next iterate {q.minimiser}; take x "
            "nearer to the points of the element"
        )
    (axis,) = panels(ax, (4.6, 2.8))
    above = bool(is_majorised(element, at, X).all())
    words = "lies above" if above else "does not lie above"
    tidy(axis, f"the surrogate {words} the objective", across, "objective")
    axis.plot(t, values, color=DARK, lw=1.2, label="objective")
    axis.plot(t, q(X), color=BLUE, lw=1.2, ls="--", label="surrogate")
    draw_marks(axis, np.array([[first, q.value]]), label="x")
    below = float(preimage_objective(element, q.minimiser[None, :])[0])
    lowest = float(q(q.minimiser)[0])
    axis.vlines(last, *sorted((below, lowest)), color=GREY, lw=0.8, ls=":")
    axis.plot(last, lowest, "v", ms=5, color=BLUE, zorder=4)
    axis.plot(last, below, "o", ms=5, color=ORANGE, zorder=4, label="next iterate")
    room = 0.2 * (float(np.ptp(values)) or 1.0)
    axis.set_ylim(min(values.min(), lowest) - room, max(values.max(), lowest) + room)
    axis.legend(fontsize=7, borderpad=0.2, handlelength=1.6, edgecolor="none")
    return axis


def plot_convexity(
    element: Element,
    *,
    low: Any = None,
    high: Any = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot where the objective k(x, x)/2 - psi(x) of a pre-image is convex.

    Its Hessian is positive definite in the shaded region. There Newton's direction descends, and
    a stationary point is a minimum. Lines are levels of the objective, dots the points of psi.

    Parameters
    ----------
    element : Element
        One element of points in one or two dimensions, of a kernel with second derivatives.
    low, high : sequences of float, optional
        Corners of the plot; by default the bounding box of the points with a margin.
    names : sequence of str, optional
        Names of the columns.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_convexity
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0, 0.0], [3.0, 0.5]])
    >>> plot_convexity(psi, low=[-3, -3], high=[6, 4]).get_title()
    'the objective is convex in the shaded region'
    """
    Z, _ = element_points(element)
    d = Z.shape[1]
    if d > 2:
        raise InputError(f"plot_convexity needs one or two dimensions, but the element has {d}")
    names = column_names(names, d, element)
    low, high = box(Z, low, high, margin=_MARGIN)

    def least_curvature(X: Array) -> Array:
        hessians = preimage_hessian(element, X)
        cusps = np.isnan(hessians).any(axis=(1, 2))
        hessians[cusps] = 0.0
        return np.where(cusps, np.nan, np.linalg.eigvalsh(hessians)[:, 0])

    (axis,) = panels(ax, (4.6, 2.8) if d == 1 else (4.6, 3.9))
    up = names[1] if d == 2 else "objective"
    tidy(axis, "the objective is convex in the shaded region", names[0], up)
    objective = partial(preimage_objective, element)
    if d == 1:
        t, curvature = on_line(least_curvature, np.r_[low, high], 0.0)
        shaded = {"where": curvature > 0.0, "transform": axis.get_xaxis_transform()}
        axis.fill_between(t, 0.0, 1.0, color=BLUE, alpha=0.2, lw=0, **shaded)
        axis.plot(t, objective(t[:, None]), color=DARK, lw=1.2)
        axis.plot(Z[:, 0], objective(Z), ".", ms=4, color=DARK)
        axis.set_xlim(low[0], high[0])
        return axis
    x, y, curvature = on_plane(least_curvature, low, high)
    top = float(np.nanmax(curvature))
    if top > 0.0:
        axis.contourf(x, y, curvature, levels=[0.0, top], colors=[BLUE], alpha=0.25)
        axis.contour(x, y, curvature, levels=[0.0], colors=BLUE, linewidths=1.0)
    draw_lines(axis, *on_plane(objective, low, high))
    axis.plot(*Z.T, ".", ms=4, color=DARK)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return axis


def _points_of(element: Any, d: int) -> Array:
    Z, _ = element_points(element)
    if Z.shape[1] != d:
        raise InputError(f"element has points of {Z.shape[1]} columns, but found has {d}")
    return Z


def _draw_landscape(
    axis: Any, element: Element, corners: tuple[Array, Array], *, flip: bool = False
) -> None:
    """The objective as a curve, or as shades of which the dark ones are low."""
    objective = partial(preimage_objective, element)
    low, high = corners
    if len(low) == 1:
        axis.plot(*on_line(objective, np.r_[low, high], 0.0), color=DARK, lw=1.2)
        return
    landscape = on_plane(objective, low, high, flip=flip)
    draw_shades(axis, *landscape, signed=False, label="objective")
