"""Curves in the plane, and the distance of points to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer._array import Array

_GRID = 4096  # starting points of the search for the nearest point of a curve
_BISECTIONS = 50  # halve an interval of the grid to rounding


class Curve(ABC):
    """A curve c(t) for t in [low, high]."""

    low = 0.0
    high: float

    @abstractmethod
    def at(self, t: Array) -> Array:
        """c(t), shape (m, 2)."""

    @abstractmethod
    def distance(self, X: Array) -> Array:
        """The distance of each point to the curve, shape (m,)."""


class Square(Curve):
    """The boundary of [-1, 1]^2; t is the length along it from (-1, -1), counterclockwise."""

    high = 8.0

    def at(self, t: Array) -> Array:
        """Both coordinates are the same clipped triangle wave, one side apart."""
        shifted = np.column_stack([t + 1.0, t - 1.0])
        return -np.clip(np.abs(np.mod(shifted, 8.0) - 4.0) - 2.0, -1.0, 1.0)

    def normal(self, t: Array) -> Array:
        """The outward unit normal of each side."""
        sides = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        return np.asarray(sides[np.minimum(t // 2.0, 3.0).astype(int)])

    def distance(self, X: Array) -> Array:
        """Inside, the distance to the nearest side; outside, to the nearest point of the square."""
        over = np.abs(X) - 1.0
        outside = np.linalg.norm(np.maximum(over, 0.0), axis=1)
        return np.asarray(outside + np.maximum(-over.max(axis=1), 0.0))


class Circle(Curve):
    """The unit circle; t is the angle."""

    high = 2.0 * np.pi

    def at(self, t: Array) -> Array:
        return np.column_stack([np.cos(t), np.sin(t)])

    def distance(self, X: Array) -> Array:
        return np.asarray(np.abs(np.linalg.norm(X, axis=1) - 1.0))


class Smooth(Curve):
    """A smooth curve; distances are found by a search on a grid, refined by bisection."""

    @abstractmethod
    def velocity(self, t: Array) -> Array:
        """c'(t), shape (m, 2)."""

    def distance(self, X: Array) -> Array:
        """Bisect <c(t) - x, c'(t)> around the nearest point of the grid."""
        from scipy.spatial import cKDTree

        grid = np.linspace(self.low, self.high, _GRID)
        nearest = cKDTree(self.at(grid)).query(X)[1]
        low, high = grid[np.maximum(nearest - 1, 0)], grid[np.minimum(nearest + 1, _GRID - 1)]
        for _ in range(_BISECTIONS):
            t = 0.5 * (low + high)
            past = np.sum((self.at(t) - X) * self.velocity(t), axis=1) > 0
            low, high = np.where(past, low, t), np.where(past, t, high)
        return np.asarray(np.linalg.norm(self.at(0.5 * (low + high)) - X, axis=1))


class Parabola(Smooth):
    """(t, t^2) for |t| <= 1."""

    low, high = -1.0, 1.0

    def at(self, t: Array) -> Array:
        return np.column_stack([t, t**2])

    def velocity(self, t: Array) -> Array:
        return np.column_stack([np.ones_like(t), 2.0 * t])


@dataclass(frozen=True)
class Spiral(Smooth):
    """r (cos t, sin t) with r = 0.07 t + shift, three turns."""

    shift: float
    high = 6.0 * np.pi

    def at(self, t: Array) -> Array:
        r = 0.07 * t + self.shift
        return np.column_stack([r * np.cos(t), r * np.sin(t)])

    def velocity(self, t: Array) -> Array:
        """r' (cos t, sin t) + r (-sin t, cos t)."""
        r, c, s = 0.07 * t + self.shift, np.cos(t), np.sin(t)
        return np.column_stack([0.07 * c - r * s, 0.07 * s + r * c])


@dataclass(frozen=True)
class Sine(Smooth):
    """(t, 0.8 sin 2t) + (shift, shift), two periods."""

    shift: float
    high = 2.0 * np.pi

    def at(self, t: Array) -> Array:
        return np.column_stack([t, 0.8 * np.sin(2.0 * t)]) + self.shift

    def velocity(self, t: Array) -> Array:
        return np.column_stack([np.ones_like(t), 1.6 * np.cos(2.0 * t)])
