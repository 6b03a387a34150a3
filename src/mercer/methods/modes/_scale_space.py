"""The number of modes against the bandwidth, and where it stays the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, Points, as_vector, frozen, is_sparse, positive_int
from mercer._progress import Callback, Step
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel
from mercer.methods.density._adaptive_density import stretched
from mercer.methods.density._density import weights_of
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._mean_shift import mean_shift
from mercer.methods.modes._mode_search import find_modes
from mercer.space import Element, mean_embedding
from mercer.space._points import unique

_WALK = math.sqrt(2.0)  # the factor by which the largest bandwidth is looked for
_STEPS = 60
_FEWEST = 256  # starts, where there are so many points


class Plateau(NamedTuple):
    """Bandwidths from low to high with one number of modes.

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
    """How many modes a density has at each of some bandwidths.

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
        """Runs of bandwidths with one number of modes, ascending.

        Between two neighbouring bandwidths with different numbers the border is their geometric
        mean.
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
        """The plateau with more than one mode that is longest in log bandwidth.

        Of equally long ones that with the fewest modes. Where there is none, that with one mode.
        """
        several = [p for p in self.plateaus if p.n_modes > 1]
        return max(several or self.plateaus, key=lambda p: (round(p.length, 9), p.low))

    @property
    def best(self) -> float:
        """The geometric middle of the longest plateau."""
        return self.longest.middle

    def table(self) -> dict[str, Array]:
        """One column for each property, as `pandas.DataFrame(space.table())` likes it."""
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

    A number of modes that stays the same over a wide range of bandwidths says more about the data
    than one that does not: `best` of the result is in the middle of the widest.

    Parameters
    ----------
    X : array_like of shape (n, d)
    bandwidths : array_like of shape (b,), optional
        Length scales > 0; by default `n_bandwidths` in a geometric sequence, from the median
        distance of nearest neighbours over sqrt(d) to where one mode is left.
    kernel : Kernel, optional
        As for `mean_shift`; Gaussian by default. A bandwidth is its `length_scale`, or for kernels
        without one the factor h of k(x / h, y / h).
    n_bandwidths : int, default=25
        How many, if none are given; at least 2.
    weights : array_like of shape (n,), optional
        Weights >= 0; equal by default.
    max_starts : int, default=2000
        Of more points every so-manieth is a start; once modes are few, four times as many points
        are, and the modes at the bandwidth before. Modes that no start reaches are not counted.
    callback : callable, optional
        Called after each bandwidth with a `Step`: its number, and the share of the bandwidths
        left. Stops by returning True; then only the bandwidths done are in the result.

    Returns
    -------
    ScaleSpace

    See Also
    --------
    mean_shift : the modes themselves.
    density_scale : bandwidths by rules that need no search.

    Notes
    -----
    On the line, and with a Gaussian kernel, modes can only vanish as the bandwidth grows. In more
    dimensions, and for other kernels, a new one may appear: the count need not fall at every step.
    Far below the distance of nearest neighbours every point is a mode of its own, however small the
    bandwidth is: that plateau says nothing, and bandwidths that are given should not be in it.

    References
    ----------
    SPEC F4. B. W. Silverman, Using kernel density estimates to investigate multimodality, 1981.

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
    counter = _Counter.of(kernel, X, weights, positive_int(max_starts, "max_starts"))
    if bandwidths is None:
        if count < 2:
            raise InputError(f"n_bandwidths must be >= 2, got {count}; give bandwidths instead")
        h = np.geomspace(*counter.range(), count)
    else:
        h = np.unique(as_vector(bandwidths, "bandwidths").astype(np.float64))
        if not len(h) or h[0] <= 0.0:
            raise InputError("bandwidths must be > 0, and at least one")
    n_modes: list[int] = []
    starts = counter.starts
    for i, bandwidth in enumerate(h.tolist()):
        modes = counter.modes(bandwidth, starts)
        n_modes.append(len(modes))
        starts = np.concatenate([modes, thinned(counter.starts, max(_FEWEST, 4 * len(modes)))])
        if callback is not None and callback(Step(i + 1, 1.0 - (i + 1) / len(h))) is True:
            break
    return ScaleSpace(frozen(h[: len(n_modes)]), frozen(np.array(n_modes)))


def thinned(rows: Array, most: int) -> Array:
    """Every so-manieth row, so that there are no more than `most`."""
    return rows[:: -(-len(rows) // most)]


@dataclass(frozen=True, eq=False)
class _Counter:
    """Modes of one sample at any bandwidth."""

    kernel: Kernel
    length: float  # of the kernel as it was given
    X: Array  # distinct points
    w: Array
    starts: Array

    @classmethod
    def of(cls, kernel: Kernel, X: Any, weights: Any, max_starts: int) -> _Counter:
        mean = mean_embedding(kernel, X, weights=weights)
        if is_sparse(mean.points):
            raise InputError("mean shift needs dense points; use X.toarray()")
        w = weights_of(mean)
        rows, group = unique(np.asarray(mean.points[w > 0], dtype=np.float64))
        length = float(getattr(kernel, "length_scale", 1.0))
        w = np.bincount(group, w[w > 0], len(rows))
        return cls(kernel, length, rows, w, thinned(rows, max_starts))

    def modes(self, bandwidth: float, starts: Array) -> Array:
        """Those that starts reach."""
        kernel = stretched(self.kernel, bandwidth / self.length, self.X.shape[1])
        density = Element(kernel, Points(self.X, kernel.domain), self.w)
        if not kernel.program.is_smooth:
            return mean_shift(density, starts).points
        return find_modes(DensitySum.of(density, len(starts)), starts)

    def range(self) -> tuple[float, float]:
        """The median distance of nearest neighbours per axis, and where one mode is left."""
        from scipy.spatial import cKDTree

        if len(self.X) < 2:
            raise InputError(
                "X has one distinct point, so there is no range of bandwidths to look at; give "
                "bandwidths"
            )
        nearest = cKDTree(self.X).query(self.starts, 2)[0][:, 1]
        low = float(np.median(nearest)) / math.sqrt(self.X.shape[1])
        gap = self.X - self.w @ self.X / self.w.sum()
        high = math.sqrt(float(self.w @ np.einsum("ij,ij->i", gap, gap) / self.w.sum()))
        return low, max(self._one_mode_from(high), 2.0 * low)

    def _one_mode_from(self, h: float) -> float:
        """A bandwidth with one mode, such that one a little smaller has several."""
        some = thinned(self.starts, _FEWEST)
        for _ in range(_STEPS):  # up, where a profile has heavy tails or there are far outliers
            if len(self.modes(h, some)) == 1:
                break
            h *= _WALK
        for _ in range(_STEPS):
            if len(self.modes(h / _WALK, some)) > 1:
                break
            h /= _WALK
        return h * _WALK  # so that the last plateau is seen
