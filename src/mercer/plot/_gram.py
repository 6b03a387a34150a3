"""The Gram matrix of any points, with their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._threads import single_threaded_blas
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.plot._panels import draw_eigenvalues, given_axes, new_axes

_WRITTEN = 9  # points up to which values are written into the matrix
_BELOW = 12  # points up to which names stand under the columns, too
_LONGEST = 22  # letters of a point that is its own name


def plot_gram(kernel: Kernel, points: Any, labels: Any = None, *, axes: Any = None) -> Any:
    """Draw the Gram matrix of a kernel on some points, and its eigenvalues.

    For kernels whose points are not numbers: strings, sets, rows of labels, rows of a table. Left:
    k(x_i, x_j), with the values written out for up to nine points. Right: the eigenvalues over n,
    the largest 25 in size, negative ones open, those that are rounding left out.

    Parameters
    ----------
    kernel : Kernel
    points : whatever the kernel takes
        n >= 2 points.
    labels : sequence of str, optional
        Names of the points, written at every row. By default up to twelve points that read short
        are their own names; others are counted from 0.
    axes : two matplotlib axes, optional
        Where to draw; by default a new figure, outside of pyplot.

    Returns
    -------
    matplotlib Figure

    See Also
    --------
    plot_kernel : kernels of points on the line.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_gram
    >>> figure = plot_gram(mc.Spectrum(2), ["banana", "ananas", "bandana"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['banana', 'ananas', 'bandana']
    """
    points = kernel.points(points, "points").array
    n = n_rows(points)
    if n < 2:
        raise InputError("points must be at least two for a picture, got 1")
    names = _names(points, n) if labels is None else _given(labels, n)
    K = np.asarray(kernel(points), dtype=np.float64)
    height = float(np.clip(1.3 + 0.32 * n, 2.6, 4.4))
    chosen = new_axes(kernel, (7.4, height), (1.6, 1.0)) if axes is None else given_axes(axes, 2)
    _draw_matrix(chosen[0], K, names)
    with single_threaded_blas():
        draw_eigenvalues(chosen[1], K)
    return chosen[0].figure


def _given(labels: Any, n: int) -> list[str]:
    if isinstance(labels, str) or not hasattr(labels, "__len__") or len(labels) != n:
        found = f"{len(labels)} of them" if hasattr(labels, "__len__") else type(labels).__name__
        found = "one string" if isinstance(labels, str) else found
        raise InputError(f"labels must be a list of {n} names, one per point, got {found}")
    return [str(label) for label in labels]


def _names(points: Any, n: int) -> list[str] | None:
    """What points read like, where they are few and short; else nothing but their numbers."""
    is_table = getattr(getattr(points, "dtype", None), "names", None) is not None
    if n > _BELOW or is_table or is_sparse(points):
        return None
    names = [_text(points[i]) for i in range(n)]
    return names if max(map(len, names)) <= _LONGEST else None


def _text(point: Any) -> str:
    """Strings as they are, collections by their members, numbers to two digits."""
    if isinstance(point, str):
        return point
    if isinstance(point, frozenset):
        return "{" + ", ".join(sorted(map(str, point))) + "}"
    if isinstance(point, np.ndarray | tuple):
        return ", ".join(_text(part) for part in point)
    return f"{point:.2g}" if isinstance(point, float | np.floating) else str(point)


def _draw_matrix(axis: Any, K: Array, names: list[str] | None) -> None:
    """Zero is white; positive values are blue, negative ones red."""
    n, reach = len(K), float(np.abs(K).max()) or 1.0
    low, colours = (-reach, "RdBu") if K.min() < 0 else (0.0, "Blues")
    shown = axis.imshow(K, cmap=colours, vmin=low, vmax=reach)
    axis.set_title("k(xᵢ, xⱼ)", fontsize=9)
    axis.spines[:].set_visible(False)
    axis.tick_params(labelsize=7.5)
    if names is not None:
        _write_names(axis, names)
    if n <= _WRITTEN:
        digits = _decimals(K, reach)
        for (i, j), value in np.ndenumerate(K):
            dark = np.mean(shown.cmap(shown.norm(value))[:3]) < 0.55
            text = f"{round(float(value), digits) + 0.0:.{digits}f}"  # + 0.0: no minus zero
            axis.text(j, i, text, ha="center", va="center", fontsize=7.5,
                      color="white" if dark else "black")  # fmt: skip
    else:
        bar = axis.figure.colorbar(shown, ax=axis, fraction=0.05, pad=0.02)
        bar.ax.tick_params(labelsize=7.5)
        bar.outline.set_visible(False)


def _write_names(axis: Any, names: list[str]) -> None:
    """At every row, and where there are few under every column."""
    n = len(names)
    axis.tick_params(length=0)
    axis.set_yticks(range(n), names, fontsize=8 if n <= 20 else 6, parse_math=False)
    if n > _BELOW:
        axis.set_xticks([])
    elif max(map(len, names)) > 3:
        slanted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
        axis.set_xticks(range(n), names, fontsize=8, parse_math=False, **slanted)
    else:
        axis.set_xticks(range(n), names, fontsize=8, parse_math=False)


def _decimals(K: Array, reach: float) -> int:
    """Places after the point: none for counts, else three figures of the largest value."""
    if np.array_equal(K, np.rint(K)):
        return 0
    return int(np.clip(2 - np.floor(np.log10(reach)), 0, 2))
