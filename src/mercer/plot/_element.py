"""Plot elements of a kernel's space as functions, and the witness of two samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer._array import as_dense_points, check_same_columns
from mercer.exceptions import InputError
from mercer.methods import TestResult
from mercer.plot._functions import Rows, draw_element, draw_marks
from mercer.plot._panels import (
    column_names,
    element_points,
    kernel_name,
    pair,
    panels,
    tidy,
)
from mercer.plot._style import BLUE, ORANGE
from mercer.space import Element


def plot_element(
    element: Element,
    points: Any = None,
    *,
    columns: tuple[Any, Any] = (0, 1),
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot an element psi = sum_i a_i k(x_i, .) as a function, and its points.

    Blue is positive, orange negative, for values and for coefficients. In one dimension psi is a
    curve, with a tick for each point; in two, shades with lines of equal value. With more columns
    psi cannot be drawn in the plane: then two columns of the points are drawn, and each point has
    the colour of psi there.

    Parameters
    ----------
    element : Element
        One element; index a batch.
    points : array_like of shape (m, d), optional
        Points to mark with white circles, such as pre-images.
    columns : pair of int or str, default=(0, 1)
        Numbers or names of the columns to draw, if there are more than two.
    names : sequence of str, optional
        Names of all columns; by default those of the frame `points`, or of the element.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_element
    >>> psi = mc.Element(mc.Gaussian(0.5), [[0.0, 0.0], [1.0, 0.5]], [1.0, -0.5])
    >>> plot_element(psi, mc.preimage(psi).points).get_title()
    'ψ(x), Gaussian(length_scale=0.5)'
    """
    Z, coef = element_points(element)
    d = Z.shape[1]
    names = column_names(names, d, points, element)
    marks = np.empty((0, d)) if points is None else as_dense_points(points, "points")
    check_same_columns(Z, marks, ("element", "points"))
    chosen = (0, 0) if d == 1 else pair(columns, names)
    up, down = Z[coef > 0], Z[coef < 0]
    both = len(up) > 0 and len(down) > 0
    rows = [Rows(up, BLUE, "o", "coefficient > 0"), Rows(down, ORANGE, "^", "coefficient < 0")]
    rows = rows if both else [Rows(Z, ORANGE if len(down) else BLUE, "o", "")]
    (axis,) = panels(ax, (4.6, 2.8) if d == 1 else (4.6, 3.9))
    where = "" if d <= 2 else f"at the points: 2 of {d} columns, "
    title = f"ψ(x), {where}{kernel_name(element.kernel)}"
    tidy(axis, title, names[chosen[0]], names[chosen[1]] if d > 1 else "ψ(x)")
    draw_element(axis, element, rows, chosen)
    if len(marks):
        draw_marks(axis, np.c_[marks, element(marks)] if d == 1 else marks[:, chosen])
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
    (orange) where the second does. It is drawn as `plot_element` draws it.

    Parameters
    ----------
    found : TestResult or Element
        The result of `mmd_test` for two samples, or of `witness`.
    columns : pair of int or str, default=(0, 1)
        Numbers or names of the columns to draw, if there are more than two.
    names : sequence of str, optional
        Names of all columns; by default those of the first sample, if it was a frame.
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
    Z, weights = element_points(psi, "found")
    samples = Z[weights > 0], Z[weights < 0]
    if not (len(samples[0]) and len(samples[1])):
        raise InputError(
            "found has a single sample, or two that are the same rows: nothing differs"
        )
    d = Z.shape[1]
    names = column_names(names, d, psi)
    if len(labels) != 2 or isinstance(labels, str):
        raise InputError(f"labels must be two names of samples, got {labels!r}")
    chosen = (0, 0) if d == 1 else pair(columns, names)
    (axis,) = panels(ax, (4.6, 2.8) if d == 1 else (4.6, 3.9))
    title = "witness" if d <= 2 else f"witness at the rows: 2 of {d} columns"
    up = names[chosen[1]] if d > 1 else "first minus second, smoothed"
    tidy(axis, title, names[chosen[0]], up)
    looks = zip(samples, (BLUE, ORANGE), "o^", labels, strict=True)
    draw_element(axis, psi, [Rows(*look) for look in looks], chosen)
    return axis
