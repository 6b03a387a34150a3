"""Linear smoothers on a principal subspace, and leaving each row out in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mercer._array import Array
from mercer.preimages import LinearInverse

_LARGEST = 1.0 - 1e-9  # share of a row in itself: the others must have a say


@dataclass(frozen=True, eq=False)
class Smoother:
    """x -> H x, H = 1 w'/W + C diag(gain) C' diag(w): columns smoothed over rows.

    C are the coordinates of the rows in their principal subspace and gain = phi / lambda, with its
    eigenvalues lambda and the weights phi of a filter. With phi = lambda / (lambda + a) this is
    kernel ridge regression of a column on the rows. The share of row i in the smoothed value at a
    point with coordinates c is w_i (1 / W + sum_l gain_l c_l C_il).
    """

    C: Array = field(repr=False)  # (n, r)
    gain: Array = field(repr=False)  # (r,)
    w: Array = field(repr=False)  # (n,), weights of the rows
    total: float | None = None  # W; the sum of w, or larger if these are only some of the rows

    @property
    def _mean_share(self) -> float:
        return 1.0 / float(self.w.sum() if self.total is None else self.total)

    def share(self, c: Array) -> Array:
        """The share of row i at the point with coordinates c_i, for every i; shape (n,)."""
        inner = np.einsum("ij,ij->i", c * self.gain, self.C)
        return np.asarray(self.w * (self._mean_share + inner))

    @cached_property
    def leverage(self) -> Array:
        """The diagonal of H: the share of each row in itself."""
        return self.share(self.C)

    def leave_out(self, c: Array) -> Array:
        """The factor f_i = share_i(c_i) / (1 - leverage_i), shape (n,).

        Without row i the smoothed value at c_i changes by f_i times (the smoothed value at row i
        minus the value of row i): a rank-one update.
        """
        return self.share(c) / (1.0 - np.minimum(self.leverage, _LARGEST))

    def points_without(self, c: Array, rows: Array, phi: Array, inverse: LinearInverse) -> Array:
        """Data points of filtered coordinates c_i phi, row i left out of subspace and inverse."""
        gap = inverse.points_of(self.C * phi) - rows
        return np.asarray(inverse.points_of(c * phi) + self.leave_out(c)[:, None] * gap)
