"""Plot the result of a test: the null distribution with the statistic, and the witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.exceptions import InputError
from mercer.methods import TestResult
from mercer.plot._panels import BLUE, GREY, ORANGE, box, column_names, pair, panels, tidy
from mercer.space import Element

_CURVE = 500  # points of a curve
_PIXELS = 120  # along each side of a picture of the plane


def plot_null(result: TestResult, *, bins: int = 40, ax: Any = None) -> Any:
    """Plot the null distribution of a test, and the statistic that was observed.

    Draws at least as large as the observed statistic are orange: their share, the observed
    statistic among them, is the p-value.

    Parameters
    ----------
    result : TestResult
    bins : int, default=40
        Bars of the histogram: enough for its shape, few enough for 2,000 draws.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_null
    >>> X = [[0.0], [0.2], [0.3], [0.5]]
    >>> result = mc.mmd_test(X, [[1.0], [1.2], [1.3], [1.6]], n_permutations=99, random_state=0)
    >>> plot_null(result).get_title()
    'p = 0.04 (permutation)'
    """
    if not isinstance(result, TestResult):
        raise InputError(f"result must be what a test returned, got {result!r}")
    values = result.null_statistics
    if not len(values):
        raise InputError(
            f"the null distribution of this test is a formula ({result.null}) without draws; test "
            "with null='permutation' to draw it"
        )
    (axis,) = panels(ax, (4.6, 2.8))
    observed, drawn = float(values[0]), values[1:]
    low, high = float(values.min()), float(values.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    width = (high - low) / bins
    first = low + (observed - low) % width - width  # the observed statistic is between two bars
    edges = np.arange(first, high + width, width)
    above = drawn >= observed
    heights = [np.histogram(part, edges)[0] for part in (drawn[~above], drawn[above])]
    for height, colour, bottom in zip(heights, (GREY, ORANGE), (0, heights[0]), strict=True):
        axis.bar(edges[:-1], height, width, bottom, align="edge", color=colour, alpha=0.55, lw=0)
    axis.axvline(observed, color=ORANGE, lw=1.4)
    many = len(result.kernels)
    what = f"statistic, {many} kernels combined" if many > 1 else "statistic"
    tidy(axis, f"p = {result.pvalue:.4g} ({result.null})", what, f"draws (of {len(drawn):,})")
    axis.set_ylim(0.0, 1.15 * float(np.add(*heights).max()))  # room for the word
    side = "right" if observed > 0.5 * (low + high) else "left"
    axis.annotate("observed", (observed, 1.0), (-4 if side == "right" else 4, -1), ha=side,
                  va="top", xycoords=("data", "axes fraction"), textcoords="offset points",
                  fontsize=7.5, color=ORANGE)  # fmt: skip
    return axis


def plot_witness(
    found: Any,
    *,
    columns: tuple[Any, Any] = (0, 1),
    names: Sequence[str] | None = None,
    labels: tuple[str, str] = ("first sample", "second sample"),
    ax: Any = None,
) -> Any:
    """Plot where two samples differ: the witness of a two-sample test, and both samples.

    The witness is positive (blue) where the first sample outweighs the second and negative
    (orange) where the second does. In one dimension it is a curve, with a tick for each row; in
    two, shades with lines of equal value. With more columns it has no picture in the plane: then
    two columns of the rows are drawn, and each row has the colour of the witness there.

    Parameters
    ----------
    found : TestResult or Element
        The result of `mmd_test` for two samples, or of `witness`.
    columns : pair of int or str, default=(0, 1)
        Numbers or names of the columns to draw, if there are more than two.
    names : sequence of str, optional
        Names of all columns.
    labels : pair of str
        Names of the samples, for the legend.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_witness
    >>> f = mc.methods.witness(mc.Gaussian(0.5), [[0.0], [0.2], [0.3]], [[1.0], [1.2]])
    >>> plot_witness(f, names=["age"]).get_xlabel()
    'age'
    """
    psi = found.witness if isinstance(found, TestResult) else found
    if not isinstance(psi, Element) or psi.batch is not None:
        raise InputError(
            "found must be the result of mmd_test with two samples, or of witness; got "
            f"{type(found).__name__} with the witness {type(psi).__name__}"
        )
    Z, weights = psi.points, psi.coef.tile(slice(None), slice(None))[:, 0]
    if is_sparse(Z) or not isinstance(Z, np.ndarray) or Z.ndim != 2 or Z.dtype.kind not in "fiu":
        raise InputError("the samples are not dense arrays of numbers, so they cannot be drawn")
    Z = np.asarray(Z, dtype=np.float64)
    samples = Z[weights > 0], Z[weights < 0]
    if not (len(samples[0]) and len(samples[1])):
        raise InputError(
            "found has a single sample, or two that are the same rows: nothing differs"
        )
    d = Z.shape[1]
    names = column_names(names, d)
    if len(labels) != 2 or isinstance(labels, str):
        raise InputError(f"labels must be two names of samples, got {labels!r}")
    i, j = (0, 0) if d == 1 else pair(columns, names)
    (axis,) = panels(ax, (4.6, 2.8) if d == 1 else (4.6, 3.9))
    if d == 1:
        tidy(axis, "witness", names[0], "first minus second, smoothed")
        _draw_line(axis, psi, samples, labels)
        return axis
    title = "witness" if d == 2 else f"witness at the rows: 2 of {d} columns"
    tidy(axis, title, names[i], names[j])
    if d == 2:
        _draw_plane(axis, psi, Z, flip=(i, j) == (1, 0))
        colours: list[Any] = [BLUE, ORANGE]
    else:
        values = [np.asarray(psi(S)) for S in samples]
        top = max(float(np.abs(v).max(initial=0.0)) for v in values) or 1.0
        colours = [_colour_map()(0.5 + 0.5 * v / top) for v in values]
    size = float(np.clip(250.0 / np.sqrt(len(Z)), 6.0, 22.0))
    for S, colour, label, marker in zip(samples, colours, labels, "o^", strict=True):
        axis.scatter(*S[:, [i, j]].T, s=size, c=colour, marker=marker, label=label,
                     edgecolors="#303030", linewidths=0.3)  # fmt: skip
    legend = axis.legend(fontsize=7, handletextpad=0.1, borderpad=0.2, edgecolor="none")
    for handle in legend.legend_handles if d > 2 else ():
        handle.set_facecolor("white")
    return axis


def _draw_line(axis: Any, psi: Element, samples: tuple[Array, Array], labels: Any) -> None:
    """The curve of the witness, filled, and ticks for the rows of both samples below it."""
    rows = np.concatenate(samples)
    low, high = float(rows.min()), float(rows.max())
    margin = 0.15 * (high - low or 1.0)
    t = np.linspace(low - margin, high + margin, _CURVE)
    f = np.asarray(psi(t[:, None]))
    for part, colour in ((np.maximum(f, 0.0), BLUE), (np.minimum(f, 0.0), ORANGE)):
        axis.fill_between(t, part, color=colour, alpha=0.25, lw=0)
    axis.plot(t, f, color="#404040", lw=1.2)
    axis.axhline(0.0, color=GREY, lw=0.6)
    least, most = min(float(f.min()), 0.0), max(float(f.max()), 0.0)
    step = 0.07 * (most - least or 1.0)
    for k, (S, colour) in enumerate(zip(samples, (BLUE, ORANGE), strict=True)):
        base = least - (1.1 * k + 1.5) * step
        axis.vlines(S[:, 0], base, base + step, color=colour, lw=0.7, label=labels[k])
    axis.set_ylim(least - 3.0 * step, most + step)
    axis.legend(fontsize=7, borderpad=0.2, handlelength=1.0, edgecolor="none")


def _draw_plane(axis: Any, psi: Element, Z: Array, *, flip: bool) -> None:
    """Shades and lines of equal value of the witness, the same number on both sides of zero."""
    low, high = box(Z)
    x, y = (np.linspace(low[k], high[k], _PIXELS) for k in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    f = np.asarray(psi(grid)).reshape(_PIXELS, _PIXELS)
    top = float(np.abs(f).max())
    if top == 0.0:
        return
    planes = (y, x, f.T) if flip else (x, y, f)
    levels = top * np.linspace(-1.0, 1.0, 12)
    axis.contourf(*planes, levels=levels, cmap=_colour_map(), alpha=0.45)
    axis.contour(*planes, levels=levels, colors="#404040", linewidths=0.4, alpha=0.6)


def _colour_map() -> Any:
    """From orange over white to blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("witness", [ORANGE, "white", BLUE])
