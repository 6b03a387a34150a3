"""Scale space: the number of modes of a kernel density as a function of the bandwidth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, Points, as_vector, frozen, positive_int
from mercer._progress import Callback, check_callback, report
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel
from mercer.methods.density._density import weights_of, with_bandwidth
from mercer.methods.modes._ascent import find_modes
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._mean_shift import mean_shift
from mercer.space import Element, mean_embedding
from mercer.space._points import checked_points, unique

_FACTOR = math.sqrt(2.0)  # between bandwidths tried while looking for the largest
_STEPS = 60  # of that search: nine orders of magnitude
_FEWEST = 256  # starts, if there are that many points


class Plateau(NamedTuple):
    """A range of bandwidths with the same number of modes.

    Attributes
    ----------
    low, high : float
        The ends of the range.
    n_modes : int
        The number of modes.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.scale_space([[0.0], [1.0]], [0.1, 0.2, 0.4, 0.8]).plateaus[0].n_modes
    2
    """

    low: float
    high: float
    n_modes: int

    @property
    def length(self) -> float:
        """log(high / low)."""
        return math.log(self.high / self.low)

    @property
    def middle(self) -> float:
        """sqrt(low high)."""
        return math.sqrt(self.low) * math.sqrt(self.high)


@dataclass(frozen=True, eq=False)
class ScaleSpace:
    """The number of modes of a density at each of some bandwidths.

    Attributes
    ----------
    bandwidths : array of shape (b,)
        Ascending.
    n_modes : array of int, shape (b,)

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 0.3, (40, 1)) for m in (0.0, 3.0, 6.0)])
    >>> space = mc.methods.scale_space(X)
    >>> space.plateaus[-2].n_modes, int(space.n_modes[-1])
    (3, 1)
    """

    bandwidths: Array = field(repr=False)
    n_modes: Array = field(repr=False)

    @cached_property
    def plateaus(self) -> tuple[Plateau, ...]:
        """Ranges of bandwidths with the same number of modes, ascending.

        Where the number changes between two bandwidths, the border is their geometric mean.
        """
        h, n = self.bandwidths, self.n_modes
        last = np.append(np.flatnonzero(np.diff(n)), len(n) - 1)
        borders = np.sqrt(h[last[:-1]]) * np.sqrt(h[last[:-1] + 1])
        edges = [float(h[0]), *borders.tolist(), float(h[-1])]
        return tuple(
            Plateau(low, high, int(n[i]))
            for low, high, i in zip(edges[:-1], edges[1:], last, strict=True)
        )

    @property
    def longest(self) -> Plateau:
        """The longest plateau in log bandwidth with more than one mode.

        Among equally long ones, the one at the largest bandwidths; if there is none, the one with
        one mode.
        """
        several = [p for p in self.plateaus if p.n_modes > 1]
        return max(several or self.plateaus, key=lambda p: (round(p.length, 9), p.low))

    @property
    def best(self) -> float:
        """The bandwidth in the (geometric) middle of the longest plateau."""
        return self.longest.middle

    def table(self) -> dict[str, Array]:
        """Columns for a data frame: `pandas.DataFrame(space.table())`."""
        return {"bandwidth": self.bandwidths, "n_modes": self.n_modes}

    def __repr__(self) -> str:
        low, high, n = self.longest
        return (
            f"<ScaleSpace of {len(self.bandwidths)} bandwidths from {self.bandwidths[0]:.4g} to "
            f"{self.bandwidths[-1]:.4g}: {n} modes from {low:.4g} to {high:.4g}>"
        )


def scale_space(
    X: Any,
    bandwidths: Any = None,
    *,
    kernel: Kernel | None = None,
    n_bandwidths: int = 25,
    weights: Any = None,
    max_starts: int = 2000,
    callback: Callback | None = None,
) -> ScaleSpace:
    """Count the modes of the kernel density of X at each of some bandwidths.

    A number of modes that stays the same over a wide range of bandwidths says something about the
    data. `best` of the result is the middle of the widest such range.

    Parameters
    ----------
    X : array_like of shape (n, d)
    bandwidths : array_like of shape (b,), optional
        Length scales > 0. By default a geometric sequence of `n_bandwidths`, from the median
        distance of nearest neighbours over sqrt(d) to where only one mode is left.
    kernel : Kernel, optional
        As for `mean_shift`; Gaussian by default. A bandwidth is its `length_scale`; for kernels
        without one, the factor h of k(x / h, y / h).
    n_bandwidths : int, default=25
        The number of bandwidths if none are given; at least 2.
    weights : array_like of shape (n,), optional
        Weights >= 0; equal by default.
    max_starts : int, default=2000
        If there are more points, evenly spaced ones are starts. Once there are few modes, starts
        are those modes and four times as many points. Modes that no start reaches are not counted.
    callback : callable, optional
        Called with a `Step` after each bandwidth: its number, and the share of bandwidths left.
        Return True to stop; the result then holds the bandwidths done so far.

    Returns
    -------
    ScaleSpace

    See Also
    --------
    mean_shift : the modes themselves.
    density_scale : bandwidths by quicker rules.

    Notes
    -----
    In one dimension and with a Gaussian kernel, modes can only vanish as the bandwidth grows. In
    more dimensions, and for other kernels, new ones may appear. Far below the distance of nearest
    neighbours every point is a mode. That plateau says nothing: do not give bandwidths inside it.

    References
    ----------
    B. W. Silverman, Using kernel density estimates to investigate multimodality, 1981.

    Examples
    --------
    >>> import mercer as mc
    >>> space = mc.methods.scale_space([[0.0], [0.1], [5.0], [5.1]], [0.01, 0.1, 1.0, 2.0, 4.0])
    >>> space.n_modes
    array([4, 2, 2, 2, 1])
    >>> round(space.best, 3)
    0.299
    """
    kernel = Gaussian() if kernel is None else kernel
    count = positive_int(n_bandwidths, "n_bandwidths")
    check_callback(callback)
    counter = _ModeCounter(kernel, X, weights, positive_int(max_starts, "max_starts"))
    if bandwidths is None:
        if count < 2:
            raise InputError(f"n_bandwidths must be >= 2, got {count}; give bandwidths instead")
        h = np.geomspace(*counter.range(), count)
    else:
        h = np.unique(as_vector(bandwidths, "bandwidths").astype(np.float64))
        if not len(h) or h[0] <= 0.0:
            raise InputError("bandwidths must not be empty, and each > 0")
    n_modes: list[int] = []
    starts = counter.starts
    for i, bandwidth in enumerate(h.tolist()):
        modes = counter.modes(bandwidth, starts)
        n_modes.append(len(modes))
        starts = np.concatenate([modes, _thinned(counter.starts, max(_FEWEST, 4 * len(modes)))])
        done, n = i + 1, len(h)
        if report("bandwidths", done, 1.0 - done / n, total=n, callback=callback):
            break
    return ScaleSpace(frozen(h[: len(n_modes)]), frozen(np.array(n_modes)))


def _thinned(rows: Array, most: int) -> Array:
    """Evenly spaced rows, no more than `most`."""
    return rows[:: -(-len(rows) // most)]


class _ModeCounter:
    """Modes of one sample at any bandwidth."""

    def __init__(self, kernel: Kernel, X: Any, weights: Any, max_starts: int) -> None:
        mean = mean_embedding(kernel, checked_points(kernel, X, tensors=False), weights=weights)
        target = DensitySum.of(mean)
        self.kernel, self.forth = kernel, target.forth
        self.unit = 1.0 if hasattr(kernel, "length_scale") else target.length
        w = weights_of(mean)
        self.X, group = unique(np.asarray(mean.points[w > 0], dtype=np.float64))
        self.w = np.bincount(group, w[w > 0], len(self.X))
        self.starts = _thinned(self.X, max_starts)

    def modes(self, bandwidth: float, starts: Array) -> Array:
        kernel = with_bandwidth(self.kernel, bandwidth, self.X.shape[1])
        density = Element(kernel, Points(self.X, kernel.domain), self.w)
        target = DensitySum.of(density, len(starts))
        if kernel.program.is_smooth and target.has_few_columns:
            return find_modes(target, starts)
        return mean_shift(density, starts, eigenvalues=False).points

    def range(self) -> tuple[float, float]:
        """From the median distance of nearest neighbours per axis to where one mode is left."""
        from scipy.spatial import cKDTree

        if len(self.X) < 2:
            raise InputError(
                "X has only one distinct point, so no range of bandwidths can be chosen; give "
                "bandwidths"
            )
        Z = self.forth(self.X)
        nearest = cKDTree(Z).query(self.forth(self.starts), 2)[0][:, 1]
        low = float(np.median(nearest)) / math.sqrt(Z.shape[1]) / self.unit
        gap = np.linalg.norm(Z - self.w @ Z / self.w.sum(), axis=1)
        high = math.sqrt(float(self.w @ gap**2 / self.w.sum())) / self.unit
        return low, max(self._one_mode_from(high), 2.0 * low)

    def _one_mode_from(self, h: float) -> float:
        """A bandwidth with one mode, such that one a little smaller has several."""
        some = _thinned(self.starts, _FEWEST)
        for _ in range(_STEPS):  # up: heavy tails, or outliers far away
            if len(self.modes(h, some)) == 1:
                break
            h *= _FACTOR
        for _ in range(_STEPS):
            if len(self.modes(h / _FACTOR, some)) > 1:
                break
            h /= _FACTOR
        return h * _FACTOR  # so that the last plateau shows
