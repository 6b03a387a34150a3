"""Image segmentation: mean shift of the pixels in space and colour together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_points,
    frozen,
    non_negative,
    one_of,
    positive,
    positive_int,
    positive_length,
)
from mercer._progress import Callback, check_callback
from mercer.exceptions import InputError
from mercer.kernels import Epanechnikov, Gaussian, Kernel
from mercer.methods.modes._ascent import Ascent
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.segmentation._regions import joined_regions, without_small_regions
from mercer.space import mean_embedding


@dataclass(frozen=True, eq=False)
class Segments:
    """The regions of an image, the largest first.

    Attributes
    ----------
    labels : array of int, shape (h, w)
        The region of each pixel.
    colours : array of shape (k, channels)
        The mean colour of each region, in the units of `filtered`.
    sizes : array of int, shape (k,)
        Numbers of pixels.
    filtered : array of shape (h, w) or (h, w, channels)
        The image with each pixel in the colour of its mode: smooth inside regions, sharp at edges.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> image = np.zeros((8, 8))
    >>> image[:, 5:] = 1.0
    >>> found = mc.methods.segment(image, spatial=2.0)
    >>> found.n_segments, found.sizes, found.colours.ravel()
    (2, array([40, 24]), array([0., 1.]))
    """

    labels: Array = field(repr=False)
    colours: Array
    sizes: Array
    filtered: Array = field(repr=False)

    @property
    def n_segments(self) -> int:
        """The number k of regions."""
        return len(self.sizes)

    def painted(self) -> Array:
        """The image with every region in its mean colour; shape as `filtered`."""
        return np.asarray(self.colours[self.labels].reshape(self.filtered.shape))

    def edges(self) -> Array:
        """Pixels with another region to the right or below, bool, shape (h, w)."""
        out = np.zeros(self.labels.shape, dtype=bool)
        out[:, :-1] |= self.labels[:, :-1] != self.labels[:, 1:]
        out[:-1] |= self.labels[:-1] != self.labels[1:]
        return out

    def __repr__(self) -> str:
        height, width = self.labels.shape
        return f"<Segments: {self.n_segments} regions of {width} x {height} pixels>"


def segment(
    image: Any,
    spatial: float = 8.0,
    colour: float = 0.15,
    *,
    kernel: str = "epanechnikov",
    join: float = 0.25,
    min_size: int = 20,
    tol: float = 1e-2,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Segments:
    """Divide an image into regions by mean shift of its pixels, in space and colour together.

    A pixel is the point z = (row / spatial, column / spatial, values / colour). Mean shift climbs
    from each to a mode of the density of all pixels. Neighbouring pixels are in one region if the
    colours of their modes differ by at most `join` times `colour`. Finally, regions of fewer than
    `min_size` pixels are merged, smallest first, into the neighbour with the nearest mean colour.

    Parameters
    ----------
    image : array_like of shape (h, w) or (h, w, channels)
        Unsigned integers are divided by the largest value of their type, which gives [0, 1].
        Floating-point values are used as they are.
    spatial : float, default=8.0
        Radius of the window in pixels, > 0.
    colour : float, default=0.15
        Radius of the window in values, > 0. The window is an ellipsoid with these two radii.
    kernel : {"epanechnikov", "gaussian"}, default="epanechnikov"
        Epanechnikov windows |z| <= 1, or Gaussians of the same variance, which reach farther and
        take several times longer.
    join : float, default=0.25
        Largest difference between the colours of modes, >= 0, in units of `colour`. Without it
        there would be too many regions: noise gives uniform areas many modes.
    min_size : int, default=20
        1 keeps all regions.
    tol : float, default=1e-2
        Pixels stop when their step is shorter than this, in kernel lengths.
    max_iter : int, default=100
        The largest number of steps. Pixels that still move then stop where they are.
    callback : callable, optional
        Called with a `Step` before each iteration; return True to stop all pixels.

    Returns
    -------
    Segments

    See Also
    --------
    mean_shift : the same ascent for any points.

    Notes
    -----
    Colours are compared by their values: convert the image first, for example to CIELAB, for
    perceptual distances. The time grows with the number of pixels in a window.

    References
    ----------
    D. Comaniciu and P. Meer, Mean shift: a robust approach toward feature space analysis,
    2002, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rows, columns = np.indices((40, 40))
    >>> disc = (rows - 20.0) ** 2 + (columns - 20.0) ** 2 < 100.0
    >>> noisy = disc + 0.1 * np.random.default_rng(0).normal(size=disc.shape)
    >>> found = mc.methods.segment(noisy, spatial=6.0, colour=0.5)
    >>> found.n_segments, int((found.labels != disc).sum())
    (2, 0)
    """
    spatial, colour = positive_length(spatial, "spatial"), positive_length(colour, "colour")
    join, tol = non_negative(join, "join"), positive(tol, "tol")
    min_size, max_iter = positive_int(min_size, "min_size"), positive_int(max_iter, "max_iter")
    one_of(kernel, ("epanechnikov", "gaussian"), "kernel")
    check_callback(callback)
    values, shape = _pixels(image)
    rows, columns = (axis.ravel() for axis in np.indices(shape[:2], dtype=np.float64))
    Z = np.column_stack([rows / spatial, columns / spatial, values / colour])
    window: Kernel = Epanechnikov(1.0)
    if kernel == "gaussian":  # the window |z| <= 1 has variance 1 / (d + 4) along each axis
        window = Gaussian((Z.shape[1] + 4.0) ** -0.5)
    # modes are joined along the image, so neither basins nor merging are needed
    density = DensitySum.of(mean_embedding(window, Z))
    ascent = Ascent(density, tol, max_iter, plain=True)
    ends = ascent.run(Z, callback).points
    regions = joined_regions(ends[:, 2:], shape[:2], join)
    labels, colours, counts = without_small_regions(regions, values, min_size)
    filtered = (ends[:, 2:] * colour).reshape(shape)
    return Segments(*(frozen(a) for a in (labels, colours, counts, filtered)))


def _pixels(image: Any) -> tuple[Array, tuple[int, ...]]:
    """Values in float64, shape (h w, channels), and the shape of the image."""
    given = np.asarray(image)
    if given.ndim not in (2, 3) or given.size == 0:
        raise InputError(
            f"image must have shape (h, w) or (h, w, channels) and not be empty, got {given.shape}"
        )
    if given.dtype.kind not in "buf":
        raise InputError(
            f"image must hold unsigned integers or floating-point numbers, got {given.dtype}; "
            "use image.astype(np.uint8), or divide by the largest value"
        )
    values = as_points(
        given.reshape(given.shape[0] * given.shape[1], -1).astype(np.float64), "image"
    )
    if given.dtype.kind == "u":
        values = values / np.iinfo(given.dtype).max
    return values, given.shape
