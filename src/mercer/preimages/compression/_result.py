"""Compressed: the result of compress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer._status import Status
from mercer.engine import n_rows
from mercer.space import Element


@dataclass(frozen=True, eq=False, repr=False)
class Compressed:
    """An element with few points in place of one with many.

    Attributes
    ----------
    element : Element
        sum_j b_j k(z_j, .), the orthogonal projection of psi on the span of the features of its
        points z_j; a batch where psi is one. Points have the type of those of psi.
    error : float, or array of shape (b,)
        |psi - element|, the distance in feature space, per element. An error below about 1e-8 of
        sum_i |a_i| sqrt(k(x_i, x_i)) is rounding where the points are new ones: kernel values are
        known to 1e-16, and the error is the square root of a sum of them.
    relative_error : float, or array of shape (b,)
        error / |psi|; 0 where psi is zero.
    status : Status
    n_iter : int
        Joint moves of points that the search took; 0 where points were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> small = mc.compress(mc.mean_embedding(mc.Gaussian(1.0), X), 8)
    >>> small.element
    <Element of Gaussian(length_scale=1.0) on 8 points in 2 dimensions>
    >>> bool(small.relative_error < 0.05), small.status.name
    (True, 'N_POINTS')
    """

    element: Element
    error: Any
    relative_error: Any
    status: Status
    n_iter: int = 0

    @property
    def ok(self) -> bool:
        """Whether the result is what was asked for."""
        return self.status.ok

    def __repr__(self) -> str:
        worst = max(self.relative_error) if self.element.batch is not None else self.relative_error
        points = n_rows(self.element.points)
        return f"<Compressed to {points} points: relative error {worst:.2g}, {self.status.name}>"
