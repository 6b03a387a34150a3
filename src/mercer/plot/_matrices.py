"""Plot matrices as heat maps: Gram matrices with their eigenvalues, weights, coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points, check_same_columns, instance, is_sparse
from mercer._threads import single_threaded_blas
from mercer.engine import n_rows, profile_at
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.plot._panels import (
    as_names,
    colour_bar,
    draw_eigenvalues,
    element_points,
    kernel_title,
    panels,
    tidy,
)
from mercer.plot._style import DIVERGING
from mercer.space import Element

_WRITTEN = 9  # up to this many points, values are written into the matrix
_BELOW = 12  # up to this many points, columns have names, too
_LONGEST = 22  # characters of a point that serves as its own name
_LARGEST = 1e300  # of a value: differences of values must not overflow


def plot_gram(kernel: Kernel, points: Any, *, labels: Any = None, ax: Any = None) -> Any:
    """Draw the Gram matrix of a kernel on some points, and its eigenvalues.

    It suits all kinds of points, such as strings, sets, labels or rows of a table. The left panel
    shows k(x_i, x_j), with numbers for up to nine points. The right panel shows the eigenvalues
    divided by n: the 25 largest in absolute value, without those that are only rounding error.
    Negative ones have open markers.

    Parameters
    ----------
    kernel : Kernel
    points : at least two points that the kernel accepts
    labels : sequence of str, optional
        Names of the points, one per row. By default up to twelve points with short texts are named
        by these; others are numbered from 0.
    ax : two matplotlib Axes, optional

    Returns
    -------
    array of two Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_gram
    >>> left, right = plot_gram(mc.Spectrum(2), ["banana", "ananas", "bandana"])
    >>> [label.get_text() for label in left.get_yticklabels()]
    ['banana', 'ananas', 'bandana']
    """
    instance(kernel, Kernel, "kernel")
    points = kernel.points(points, "points").array
    n = n_rows(points)
    if n < 2:
        raise InputError("points must be at least two, got 1")
    names = _default_names(points, n) if labels is None else as_names(labels, n, "labels")
    K = np.asarray(kernel(points), dtype=np.float64)
    if not np.abs(K).max() < _LARGEST:
        raise InputError(f"values of {kernel!r} overflow at these points; scale them down")
    height = float(np.clip(1.3 + 0.32 * n, 2.6, 4.4))
    drawn = panels(ax, (7.4, height), (1.6, 1.0), kernel_title(kernel))
    tidy(drawn[0], "k(xᵢ, xⱼ)")
    _draw_matrix(drawn[0], K, names)
    if names is not None:
        _name_columns(drawn[0], names)
    with single_threaded_blas():
        draw_eigenvalues(drawn[1], K)
    return drawn


def plot_weights(
    element: Element, points: Any = None, *, labels: Any = None, ax: Any = None
) -> Any:
    """Draw the weights of one step of mean shift, or of the fixed-point iteration.

    Row i has W_ij = a_j k'(|y_i - x_j|^2) / sum_l a_l k'(|y_i - x_l|^2): the step from y_i goes to
    sum_j W_ij x_j. Rows sum to one; rows of points so far off that all weights underflow are zero.

    Parameters
    ----------
    element : Element
        sum_j a_j k(x_j, .), one element of a radial kernel, such as a density.
    points : array_like of shape (m, d), optional
        y_1, ..., y_m; by default the points of the element.
    labels : sequence of str, optional
        Names of the rows.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_weights
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [4.0]])
    >>> plot_weights(psi).images[0].get_array().round(2).data
    array([[0.62, 0.38, 0.  ],
           [0.37, 0.62, 0.01],
           [0.  , 0.01, 0.99]])
    """
    Z, coef = element_points(element)
    program = element.kernel.program
    if program.kind != "radial" or program.maps:
        raise InputError(f"weights need a kernel of the distance without a map: {element.kernel!r}")
    Y = Z if points is None else as_dense_points(points, "points")
    check_same_columns(Z, Y, ("element", "points"))
    names = None if labels is None else as_names(labels, len(Y), "labels")
    u = np.sum((Y[:, None] - Z) ** 2, axis=2)
    W = coef * profile_at(program.profile, u, 1)[1]
    if not np.isfinite(W).all():
        raise InputError("a point of a kernel with a cusp has an infinite weight for itself")
    total = W.sum(axis=1, keepdims=True)
    W = np.divide(W, total, out=np.zeros_like(W), where=total != 0.0)
    (axis,) = panels(ax, (4.6, 3.9))
    tidy(axis, "weights of the next step", "to point", "from point")
    _draw_matrix(axis, W, names)
    return axis


def plot_coefficients(element: Element, *, labels: Any = None, ax: Any = None) -> Any:
    """Draw the coefficients of an element, or of a batch: a row for each point.

    Parameters
    ----------
    element : Element
        Such as the directions of kernel PCA, or the functions of a machine for several classes.
    labels : sequence of str, optional
        Names of the points.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_coefficients
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [1.0]], [[1.0, 0.5], [-1.0, 0.0]])
    >>> plot_coefficients(psi).images[0].get_array().data
    array([[ 1. ,  0.5],
           [-1. ,  0. ]])
    """
    instance(element, Element, "element")
    coef = np.asarray(element.coef.tile(slice(None), slice(None)), dtype=np.float64)
    names = None if labels is None else as_names(labels, len(coef), "labels")
    (axis,) = panels(ax, (3.4, 3.9))
    tidy(axis, "coefficients", "element", "" if names else "point")
    _draw_matrix(axis, coef, names)
    axis.set_xticks(range(coef.shape[1]) if coef.shape[1] <= _BELOW else [])
    return axis


def _default_names(points: Any, n: int) -> list[str] | None:
    """The text of points, if they are few and their texts are short."""
    is_table = getattr(getattr(points, "dtype", None), "names", None) is not None
    if n > _BELOW or is_table or is_sparse(points):
        return None
    names = [_text(points[i]) for i in range(n)]
    return names if max(map(len, names)) <= _LONGEST else None


def _text(point: Any) -> str:
    """The text of a point, with two digits for numbers."""
    if isinstance(point, str):
        return point
    if isinstance(point, frozenset):
        return "{" + ", ".join(sorted(map(str, point))) + "}"
    if isinstance(point, np.ndarray | tuple):
        return ", ".join(_text(part) for part in point)
    return f"{point:.2g}" if isinstance(point, float | np.floating) else str(point)


def _draw_matrix(axis: Any, K: Array, names: list[str] | None) -> None:
    """Draw K with zero in white, positive values in blue and negative ones in orange."""
    n, reach = len(K), float(np.abs(K).max()) or 1.0
    square = K.shape[0] == K.shape[1]
    shown = axis.imshow(
        K, cmap=DIVERGING, vmin=-reach, vmax=reach, aspect="equal" if square else "auto"
    )
    axis.spines[:].set_visible(False)
    if names is not None:
        axis.tick_params(length=0)
        axis.set_yticks(range(n), names, fontsize=8 if n <= 20 else 6, parse_math=False)
    if max(K.shape) <= _WRITTEN:
        whole = np.array_equal(K, np.rint(K))  # else three digits of the largest value
        digits = 0 if whole else int(np.clip(2 - np.floor(np.log10(reach)), 0, 2))
        for (i, j), value in np.ndenumerate(K):
            dark = np.mean(shown.cmap(shown.norm(value))[:3]) < 0.55
            text = f"{round(float(value), digits) + 0.0:.{digits}f}"  # + 0.0: no minus zero
            text = text if reach < 1e6 else f"{value:.0e}"
            axis.text(j, i, text, ha="center", va="center", fontsize=7.5,
                      color="white" if dark else "black")  # fmt: skip
    else:
        colour_bar(axis, shown, K, signed=True)


def _name_columns(axis: Any, names: list[str]) -> None:
    """Write names under the columns if there are few, slanted if they are long."""
    if len(names) > _BELOW:
        axis.set_xticks([])
        return
    slanted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    style = slanted if max(map(len, names)) > 3 else {}
    axis.set_xticks(range(len(names)), names, fontsize=8, parse_math=False, **style)
