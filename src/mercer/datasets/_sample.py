"""What a generator returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, as_points, positive_int
from mercer.datasets._curves import Curve
from mercer.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Sample:
    """Noisy points of a curve in the plane, and what they would be without noise.

    Attributes
    ----------
    points : array of shape (n, 2)
    clean : array of shape (n, 2)
        Where each point would be if its noise were at its mean: a point of the clean curve.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.ring(5, noise=0.1, random_state=0)
    >>> sample
    <Sample of 5 points near a curve>
    >>> sample.distance([[0.0, 0.0], [3.0, 4.0]])
    array([1., 4.])
    >>> bool((sample.distance(sample.points) <= 0.1).all())
    True
    """

    points: Array
    clean: Array
    curve: Curve = field(repr=False)

    def distance(self, X: Any) -> Array:
        """Return the distance of each row of X to the clean curve, shape (m,)."""
        X = np.asarray(as_points(X), dtype=np.float64)
        if X.shape[1] != 2:
            raise InputError(f"X must have 2 columns, got {X.shape[1]}")
        return self.curve.distance(X)

    def path(self, count: int = 500) -> Array:
        """Return points along the clean curve, in order, both ends among them: to draw it."""
        return self.curve.path(positive_int(count, "count"))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"<Sample of {len(self)} points near a curve>"
