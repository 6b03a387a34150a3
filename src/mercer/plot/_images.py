"""Plot rows of small images, such as inputs and outputs, and their difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer._array import Array, as_numbers
from mercer.exceptions import InputError
from mercer.plot._panels import panels, tidy
from mercer.plot._style import DIVERGING, ORANGE

_GAP = 1  # white pixels between images


def plot_images(
    rows: Mapping[str, Any],
    *,
    difference: bool = False,
    shape: tuple[int, int] | None = None,
    ax: Any = None,
) -> Any:
    """Plot rows of images, one below the other, such as noisy and denoised ones.

    All images share one grey scale: the smallest hundredth of the values is black, the largest
    hundredth white. Missing pixels, NaN, are orange.

    Parameters
    ----------
    rows : mapping of str to array_like of shape (n, pixels) or (n, height, width)
        n images for each name, in the same order.
    difference : bool, default=False
        Whether to add the row "difference": the last row minus the first, blue where it is
        positive and orange where it is negative.
    shape : pair of int, optional
        Height and width of an image; not needed for square ones.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.plot import plot_images
    >>> given = np.arange(32.0).reshape(2, 16)
    >>> axis = plot_images({"given": given, "denoised": given.round(-1)}, difference=True)
    >>> [label.get_text() for label in axis.get_yticklabels()]
    ['given', 'denoised', 'difference']
    """
    if not isinstance(rows, Mapping) or not rows:
        raise InputError("rows must be a dict such as {'given': X, 'denoised': Y}")
    images = {str(name): _as_images(some, shape, str(name)) for name, some in rows.items()}
    first, *_, last = [*images.values(), *list(images.values())[-1:]]
    if any(some.shape != first.shape for some in images.values()):
        found = ", ".join(f"{name} {some.shape}" for name, some in images.items())
        raise InputError(f"all rows must have the same number of images of one shape, got {found}")
    values = np.stack(list(images.values()))
    low, high = np.nanpercentile(values, (1.0, 99.0))  # a few extreme pixels would hide the others
    sheet = [_in_grey(np.clip((row - low) / (high - low or 1.0), 0.0, 1.0)) for row in values]
    if difference:
        images["difference"] = change = last - first
        reach = np.nanmax(np.abs(change), initial=0.0) or 1.0
        sheet.append(DIVERGING(0.5 + 0.5 * np.nan_to_num(change) / reach)[..., :3])
    picture = np.concatenate([_side_by_side(row) for row in sheet], axis=0)[_GAP:, _GAP:]
    height, width = picture.shape[:2]
    (axis,) = panels(ax, (7.4, 0.4 + 6.6 * height / width))
    tidy(axis, "")
    axis.imshow(picture, interpolation="nearest")
    tall = first.shape[1]
    middles = (tall + _GAP) * np.arange(len(images)) + 0.5 * (tall - 1)
    axis.set_yticks(middles, list(images), parse_math=False)
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return axis


def _as_images(rows: Any, shape: Any, name: str) -> Array:
    """An array of shape (n, height, width)."""
    images = as_numbers(rows, name)
    if images.ndim == 2 and images.size:
        side = round(float(np.sqrt(images.shape[1])))
        given = (side, side) if shape is None else np.ravel(shape)
        if len(given) == 2 and given[0] * given[1] == images.shape[1]:
            images = images.reshape(-1, *(int(side) for side in given))
    if images.ndim != 3 or np.isinf(images).any() or not np.isfinite(images).any():
        raise InputError(
            f"{name} must be finite images, (n, height, width) or (n, pixels) with the right "
            f"shape=(height, width); got {images.shape} and shape={shape}"
        )
    return images


def _in_grey(shares: Array) -> Array:
    """Colours of numbers between 0 and 1; NaN is orange."""
    from matplotlib.colors import to_rgb

    colours = np.repeat(shares[..., None], 3, axis=-1)
    colours[np.isnan(shares)] = to_rgb(ORANGE)
    return colours


def _side_by_side(images: Array) -> Array:
    """Images of shape (n, height, width, 3) in one row, with white above and left of each."""
    white = np.ones((len(images), images.shape[1] + _GAP, images.shape[2] + _GAP, 3))
    white[:, _GAP:, _GAP:] = images
    return np.concatenate(list(white), axis=1)
