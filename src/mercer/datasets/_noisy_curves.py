"""Noisy curves in the plane, from Honeine and Richard (2011) and Honeine (2024)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points, non_negative, positive_int
from mercer._random import as_generator
from mercer.exceptions import InputError

_GRID = 4096  # starting points of the search for the nearest point of a curve
_MOST = 1 << 30  # points of a sample
_TRISECTIONS = 75  # shrink an interval of the grid to rounding: (2/3)^75 = 6e-14


@dataclass(frozen=True, eq=False)
class Curve:
    """The curve c(t), low <= t <= high, and the distance to it where there is a formula."""

    at: Callable[[Array], Array]  # c(t), shape (m, 2)
    low: float
    high: float
    formula: Callable[[Array], Array] | None = None

    def draw(self, n_samples: int, rng: np.random.Generator) -> Array:
        if positive_int(n_samples, "n_samples") > _MOST:
            raise InputError(f"n_samples must be at most {_MOST}, got {n_samples}")
        return rng.uniform(self.low, self.high, n_samples)

    def distance(self, X: Array) -> Array:
        """The distance of each point to the curve: on a grid, refined around its nearest point."""
        from scipy.spatial import cKDTree

        if self.formula is not None:
            return self.formula(X)
        grid = np.linspace(self.low, self.high, _GRID)
        nearest = cKDTree(self.at(grid)).query(X)[1]
        low, high = grid[np.maximum(nearest - 1, 0)], grid[np.minimum(nearest + 1, _GRID - 1)]
        for _ in range(_TRISECTIONS):
            third = (high - low) / 3.0
            left, right = (
                np.linalg.norm(self.at(t) - X, axis=1) for t in (low + third, high - third)
            )
            low, high = (
                np.where(left > right, low + third, low),
                np.where(left > right, high, high - third),
            )
        return np.asarray(np.linalg.norm(self.at(0.5 * (low + high)) - X, axis=1))


@dataclass(frozen=True, eq=False)
class Sample:
    """Noisy points near a curve in the plane, and the clean points.

    Attributes
    ----------
    points : array of shape (n, 2)
    clean : array of shape (n, 2)
        Each point with its noise replaced by the mean of the noise: a point of the clean curve.
    curve : object
        The clean curve; see `distance` and `path`.

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
        X = as_dense_points(X)
        if X.shape[1] != 2:
            raise InputError(f"X must have 2 columns, got {X.shape[1]}")
        return self.curve.distance(X)

    def path(self, count: int = 500) -> Array:
        """Return points along the clean curve from end to end, for plotting."""
        t = np.linspace(self.curve.low, self.curve.high, positive_int(count, "count"))
        return self.curve.at(t)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"<Sample of {len(self)} points near a curve>"


def frame(n_samples: int = 350, noise: float = 0.1, *, random_state: Any = None) -> Sample:
    """Draw points on a square of side 2, with uniform noise in [-nu, nu] along the normal.

    Parameters
    ----------
    n_samples : int
        The reference trains on 350 points and denoises 850 others.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Sample

    References
    ----------
    P. Honeine and C. Richard, "A closed-form solution for the pre-image problem in kernel-based
    machines", 2011, Table 2.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.frame(random_state=0)
    >>> bool((abs(sample.clean).max(axis=1) == 1.0).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    square = Curve(_square, 0.0, 8.0, _to_square)
    t = square.draw(n_samples, rng)
    normals = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])  # of the four sides
    moved = rng.uniform(-nu, nu, len(t))[:, None] * normals[np.minimum(t // 2.0, 3.0).astype(int)]
    return Sample(square.at(t) + moved, square.at(t), square)


def ring(n_samples: int = 500, noise: float = 0.1, *, random_state: Any = None) -> Sample:
    """Draw points on the unit circle, with uniform noise in [-nu, nu] along the normal.

    After P. Honeine, "Theoretical insights on the pre-image resolution in machine learning", 2024,
    Figure 3, which does not state its noise.

    Parameters
    ----------
    n_samples : int
        n >= 1.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.ring(noise=0.2, random_state=0)
    >>> bool((sample.distance(sample.points) <= 0.2).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    circle = Curve(_circle, 0.0, 2.0 * np.pi, _to_circle)
    clean = circle.at(circle.draw(n_samples, rng))
    return Sample(clean * (1.0 + rng.uniform(-nu, nu, (len(clean), 1))), clean, circle)


def banana(n_samples: int = 300, noise: float = 0.2, *, random_state: Any = None) -> Sample:
    """Draw points (x, x^2 + xi): x is uniform in [-1, 1], xi normal with standard deviation nu.

    Honeine and Richard (2011, Table 2) train on 300 points and denoise 200 others.

    Parameters
    ----------
    n_samples : int
        n >= 1.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.banana(random_state=0)
    >>> bool((sample.clean[:, 1] == sample.points[:, 0] ** 2).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    parabola = Curve(_parabola, -1.0, 1.0)
    clean = parabola.at(parabola.draw(n_samples, rng))
    points = clean.copy()
    points[:, 1] += rng.normal(scale=nu, size=len(points))
    return Sample(points, clean, parabola)


def spiral(n_samples: int = 70, noise: float = 0.3, *, random_state: Any = None) -> Sample:
    """Draw points r (cos t, sin t) with r = 0.07 t + xi: t uniform in [0, 6 pi], xi in [0, nu].

    The mean nu/2 of this noise cannot be separated from the curve, so the clean curve includes it:
    r = 0.07 t + nu/2.

    Honeine and Richard (2011, Table 2) train on 70 points and denoise 250 others.

    Parameters
    ----------
    n_samples : int
        n >= 1.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.spiral(random_state=0)
    >>> bool((sample.distance(sample.points) <= 0.15).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    curve = Curve(partial(_spiral, shift=nu / 2), 0.0, 6.0 * np.pi)
    t = curve.draw(n_samples, rng)
    moved = rng.uniform(-nu / 2, nu / 2, len(t))[:, None] * _circle(t)
    return Sample(curve.at(t) + moved, curve.at(t), curve)


def sine(n_samples: int = 420, noise: float = 0.5, *, random_state: Any = None) -> Sample:
    """Draw points (t, 0.8 sin 2t) + xi: t is uniform in [0, 2 pi], xi in [0, nu]^2.

    The mean (nu/2, nu/2) of this noise cannot be separated from the curve, so the clean curve
    includes it: (t, 0.8 sin 2t) + (nu/2, nu/2).

    Honeine and Richard (2011, Table 2) train on 420 points and denoise 330 others.

    Parameters
    ----------
    n_samples : int
        n >= 1.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.sine(random_state=0)
    >>> bool((abs(sample.points - sample.clean) <= 0.25).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    curve = Curve(partial(_sine, shift=nu / 2), 0.0, 2.0 * np.pi)
    clean = curve.at(curve.draw(n_samples, rng))
    return Sample(clean + rng.uniform(-nu / 2, nu / 2, clean.shape), clean, curve)


# --- the curves ---------------------------------------------------------------------------------


def _square(t: Array) -> Array:
    """The boundary of [-1, 1]^2; t is the length along it from (-1, -1), counterclockwise.

    Both coordinates are the same clipped triangle wave, one side apart.
    """
    shifted = np.column_stack([t + 1.0, t - 1.0])
    return -np.clip(np.abs(np.mod(shifted, 8.0) - 4.0) - 2.0, -1.0, 1.0)


def _to_square(X: Array) -> Array:
    """Inside, the distance to the nearest side; outside, to the nearest point of the square."""
    over = np.abs(X) - 1.0
    outside = np.linalg.norm(np.maximum(over, 0.0), axis=1)
    return np.asarray(outside + np.maximum(-over.max(axis=1), 0.0))


def _circle(t: Array) -> Array:
    return np.column_stack([np.cos(t), np.sin(t)])


def _to_circle(X: Array) -> Array:
    return np.asarray(np.abs(np.linalg.norm(X, axis=1) - 1.0))


def _parabola(t: Array) -> Array:
    return np.column_stack([t, t**2])


def _spiral(t: Array, shift: float) -> Array:
    return (0.07 * t + shift)[:, None] * _circle(t)


def _sine(t: Array, shift: float) -> Array:
    return np.column_stack([t, 0.8 * np.sin(2.0 * t)]) + shift
