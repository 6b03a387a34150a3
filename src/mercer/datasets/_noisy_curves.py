"""Noisy curves in the plane, from Honeine and Richard (2011) and Honeine (2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, as_points, non_negative, positive_int
from mercer._random import as_generator
from mercer.datasets._curves import Circle, Curve, Parabola, Sine, Spiral, Square
from mercer.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Sample:
    """Noisy points near a curve in the plane, and the points without noise.

    Attributes
    ----------
    points : array of shape (n, 2)
    clean : array of shape (n, 2)
        Each point with its noise replaced by the mean of the noise: a point of the clean curve.

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
        """Return points along the clean curve from end to end, for plotting."""
        return self.curve.at(
            np.linspace(self.curve.low, self.curve.high, positive_int(count, "count"))
        )

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
    nu, rng, square = non_negative(noise, "noise"), as_generator(random_state), Square()
    t = _parameters(square, n_samples, rng)
    moved = rng.uniform(-nu, nu, len(t))[:, None] * square.normal(t)
    return Sample(square.at(t) + moved, square.at(t), square)


def ring(n_samples: int = 500, noise: float = 0.1, *, random_state: Any = None) -> Sample:
    """Draw points on the unit circle, with uniform noise in [-nu, nu] along the normal.

    The parameters are those of `frame`. After P. Honeine, "Pre-image problem in kernel methods:
    theory", 2024, Figure 3, which does not state its noise.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.ring(noise=0.2, random_state=0)
    >>> bool((sample.distance(sample.points) <= 0.2).all())
    True
    """
    nu, rng, circle = non_negative(noise, "noise"), as_generator(random_state), Circle()
    clean = circle.at(_parameters(circle, n_samples, rng))
    return Sample(clean * (1.0 + rng.uniform(-nu, nu, (len(clean), 1))), clean, circle)


def banana(n_samples: int = 300, noise: float = 0.2, *, random_state: Any = None) -> Sample:
    """Draw points (x, x^2 + xi): x is uniform in [-1, 1], xi normal with standard deviation nu.

    The parameters are those of `frame`. Honeine and Richard (2011, Table 2) train on 300 points
    and denoise 200 others.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.banana(random_state=0)
    >>> bool((sample.clean[:, 1] == sample.points[:, 0] ** 2).all())
    True
    """
    nu, rng, parabola = non_negative(noise, "noise"), as_generator(random_state), Parabola()
    clean = parabola.at(_parameters(parabola, n_samples, rng))
    points = clean.copy()
    points[:, 1] += rng.normal(scale=nu, size=len(points))
    return Sample(points, clean, parabola)


def spiral(n_samples: int = 70, noise: float = 0.3, *, random_state: Any = None) -> Sample:
    """Draw points r (cos t, sin t) with r = 0.07 t + xi: t uniform in [0, 6 pi], xi in [0, nu].

    The mean nu/2 of this noise cannot be told from the curve, so the clean curve includes it:
    r = 0.07 t + nu/2.

    The parameters are those of `frame`. Honeine and Richard (2011, Table 2) train on 70 points
    and denoise 250 others.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.spiral(random_state=0)
    >>> bool((sample.distance(sample.points) <= 0.15).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    curve = Spiral(nu / 2)
    t = _parameters(curve, n_samples, rng)
    moved = rng.uniform(-nu / 2, nu / 2, len(t))[:, None] * Circle().at(t)
    return Sample(curve.at(t) + moved, curve.at(t), curve)


def sine(n_samples: int = 420, noise: float = 0.5, *, random_state: Any = None) -> Sample:
    """Draw points (t, 0.8 sin 2t) + xi: t is uniform in [0, 2 pi], xi in [0, nu]^2.

    The mean (nu/2, nu/2) of this noise cannot be told from the curve, so the clean curve includes
    it: (t, 0.8 sin 2t) + (nu/2, nu/2).

    The parameters are those of `frame`. Honeine and Richard (2011, Table 2) train on 420 points
    and denoise 330 others.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.sine(random_state=0)
    >>> bool((abs(sample.points - sample.clean) <= 0.25).all())
    True
    """
    nu, rng = non_negative(noise, "noise"), as_generator(random_state)
    curve = Sine(nu / 2)
    clean = curve.at(_parameters(curve, n_samples, rng))
    return Sample(clean + rng.uniform(-nu / 2, nu / 2, clean.shape), clean, curve)


def _parameters(curve: Curve, n_samples: int, rng: np.random.Generator) -> Array:
    """Draw uniform parameters of a curve."""
    return rng.uniform(curve.low, curve.high, positive_int(n_samples, "n_samples"))
