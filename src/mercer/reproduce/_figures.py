"""Figures of the experiments: a grid of axes without pyplot, and images of digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mercer._array import Array
from mercer.plot._panels import tidy

WIDTH = 7.0  # inches


def axes_grid(
    rows: int, columns: int, height: float, *, frame: bool = True, **options: Any
) -> tuple[Figure, Array]:
    """A figure with rows x columns axes, `height` inches high in all."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.ravel():
        tidy(axis, "")
        if not frame:
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
    return figure, axes


def digit_sheet(images: dict[str, Array], side: int, low: float, high: float) -> Figure:
    """Rows of digits with the same grey scale, with the name of each row at its left."""
    columns = len(next(iter(images.values())))
    figure, axes = axes_grid(len(images), columns, 0.62 * len(images) + 0.1, frame=False)
    for line, (name, rows) in zip(axes, images.items(), strict=True):
        line[0].set_ylabel(name, fontsize=8, rotation=0, ha="right", va="center")
        for axis, pixels in zip(line, rows, strict=True):
            shown = np.where(np.isfinite(pixels), pixels, low).reshape(side, side)
            axis.imshow(shown, cmap="gray_r", vmin=low, vmax=high, interpolation="nearest")
    return figure
