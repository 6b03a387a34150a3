"""Draw functions of one or two variables: curves, shades, contour lines, and points on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.plot._panels import box, colour_bar
from mercer.plot._style import BLUE, DARK, DIVERGING, GREY, LOW_IS_DARK, ORANGE

Function = Callable[[Array], Array]
_CURVE = 500  # points of a curve
_PIXELS = 120  # along each side of a picture of the plane
_LEVELS = 14  # of equal value, or a few less: round numbers


class Rows(NamedTuple):
    """Points that are drawn together, with their name in the legend."""

    points: Array
    colour: str
    marker: str
    label: str


def on_line(f: Function, x: Array, margin: float = 0.15) -> tuple[Array, Array]:
    """A grid around the numbers x, and f there."""
    low, high = float(x.min()), float(x.max())
    spare = margin * (high - low or 1.0)
    t = np.linspace(low - spare, high + spare, _CURVE)
    return t, np.asarray(f(t[:, None]))


def on_plane(
    f: Function, low: Array, high: Array, *, count: int = _PIXELS, flip: bool = False
) -> tuple[Array, Array, Array]:
    """Two sides of a grid and f there, of shape (count, count, ...).

    With `flip` the second variable of f is on the horizontal axis.
    """
    x, y = (np.linspace(low[k], high[k], count) for k in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    values = np.asarray(f(grid[:, ::-1] if flip else grid))
    return x, y, values.reshape(count, count, *values.shape[1:])


def draw_contours(axis: Any, x: Array, y: Array, values: Array) -> None:
    """Contour lines at shares of the height of a density, the lowest near zero."""
    base = min(float(values.min()), 0.0)
    shares = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
    with np.errstate(all="ignore"):
        levels = base + (values.max() - base) * shares
    if values.max() > values.min() and np.all(np.diff(levels) > 0.0):
        axis.contour(x, y, values, levels=levels, colors=DARK, linewidths=0.5, alpha=0.7)


def draw_shades(
    axis: Any, x: Array, y: Array, values: Array, *, signed: bool, label: str = ""
) -> None:
    """Shades between round levels, the levels as lines, and a colour bar.

    With `signed` white is zero, and as many levels lie above it as below.
    """
    from matplotlib.ticker import MaxNLocator

    low, high = float(values.min()), float(values.max())
    if not high > low:
        return
    reach = max(-low, high)
    levels = MaxNLocator(_LEVELS, symmetric=signed).tick_values(-reach if signed else low, high)
    cmap = DIVERGING if signed else LOW_IS_DARK
    shown = axis.contourf(x, y, values, levels=levels, cmap=cmap, alpha=0.6)
    draw_lines(axis, x, y, values, levels)
    colour_bar(axis, shown, values, signed=signed, label=label)


def draw_lines(axis: Any, x: Array, y: Array, values: Array, levels: Any = None) -> None:
    """Thin lines of equal value."""
    style = {"colors": DARK, "linewidths": 0.4, "alpha": 0.6, "negative_linestyles": "solid"}
    if values.max() > values.min():
        axis.contour(x, y, values, levels=_LEVELS if levels is None else levels, **style)


def draw_element(axis: Any, psi: Function, rows: Sequence[Rows], columns: tuple[int, int]) -> None:
    """A function with rows of points: a curve, shades of the plane, or the colours of the rows."""
    d = rows[0].points.shape[1]
    if d == 1:
        _draw_curve(axis, psi, rows)
    elif d == 2:
        _draw_plane(axis, psi, rows, columns)
    else:
        _draw_rows(axis, psi, rows, columns)
    if any(group.label for group in rows):
        place = {"loc": "upper center", "ncols": 2, "frameon": False} if d == 1 else {}
        legend = axis.legend(fontsize=7, borderpad=0.2, edgecolor="none", **place)
        for handle in legend.legend_handles if d > 2 else ():
            handle.set_facecolor("white")


def _draw_curve(axis: Any, psi: Function, rows: Sequence[Rows]) -> None:
    """The curve, filled by sign, and ticks for the rows below it."""
    t, f = on_line(psi, np.concatenate([group.points[:, 0] for group in rows]))
    for part, colour in ((np.maximum(f, 0.0), BLUE), (np.minimum(f, 0.0), ORANGE)):
        axis.fill_between(t, part, color=colour, alpha=0.25, lw=0)
    axis.plot(t, f, color=DARK, lw=1.2)
    axis.axhline(0.0, color=GREY, lw=0.6)
    least, most = min(float(f.min()), 0.0), max(float(f.max()), 0.0)
    step = 0.07 * (most - least or 1.0)
    for k, group in enumerate(rows):
        base = least - (1.1 * k + 1.5) * step
        style = {"color": group.colour, "lw": 0.7, "label": group.label}
        axis.vlines(group.points[:, 0], base, base + step, **style)
    axis.set_ylim(least - (1.1 * len(rows) + 0.8) * step, most + 2.5 * step)  # room for a legend


def _draw_plane(axis: Any, psi: Function, rows: Sequence[Rows], columns: tuple[int, int]) -> None:
    """Shades of the same number of levels on both sides of zero, and the rows."""
    low, high = box(np.concatenate([group.points for group in rows])[:, columns], margin=0.2)
    x, y, values = on_plane(psi, low, high, flip=columns == (1, 0))
    draw_shades(axis, x, y, values, signed=True)
    _scatter(axis, rows, columns, [group.colour for group in rows])


def _draw_rows(axis: Any, psi: Function, rows: Sequence[Rows], columns: tuple[int, int]) -> None:
    """Two columns of the rows, in the colour of the value there."""
    values = [np.asarray(psi(group.points)) for group in rows]
    top = max(float(np.abs(v).max(initial=0.0)) for v in values) or 1.0
    if not np.isfinite(top):
        raise InputError("the values at the points overflow; scale the points down")
    _scatter(axis, rows, columns, [DIVERGING(0.5 + 0.5 * v / top) for v in values])


def _scatter(
    axis: Any, rows: Sequence[Rows], columns: tuple[int, int], colours: Sequence[Any]
) -> None:
    count = sum(len(group.points) for group in rows)
    size = float(np.clip(250.0 / np.sqrt(count), 6.0, 22.0))
    for group, colour in zip(rows, colours, strict=True):
        style = {"edgecolors": "#303030", "linewidths": 0.3, "label": group.label}
        axis.scatter(*group.points[:, columns].T, s=size, c=colour, marker=group.marker, **style)


def draw_marks(axis: Any, marks: Array, **style: Any) -> None:
    """White circles with a black rim."""
    given = {"marker": "o", "ls": "none", "ms": 6, "mfc": "white", "mec": "black", "mew": 0.9}
    axis.plot(*marks.T, zorder=4, clip_on=False, **(given | style))
