"""The two-dimensional sets of Honeine and Richard (2011) and Honeine (2024)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, non_negative, positive_int
from mercer._random import as_generator
from mercer.datasets._curves import Circle, Curve, Parabola, Sine, Spiral, Square
from mercer.datasets._sample import Sample


def frame(n_samples: int = 350, noise: float = 0.1, *, random_state: Any = None) -> Sample:
    """Draw points of a square of side 2, moved along its normal by a uniform number of [-nu, nu].

    Parameters
    ----------
    n_samples : int
        350 in the source, and 850 more to denoise.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Sample

    References
    ----------
    SPEC X1, X4.

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
    """Draw points of the unit circle, moved along its normal by a uniform number of [-nu, nu].

    Parameters
    ----------
    n_samples : int
    noise : float
        nu >= 0. The source does not state its noise.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Sample

    References
    ----------
    SPEC X1.

    Examples
    --------
    >>> from mercer import datasets
    >>> sample = datasets.ring(noise=0.2, random_state=0)
    >>> bool((sample.distance(sample.points) <= 0.2).all())
    True
    """
    nu, rng, circle = non_negative(noise, "noise"), as_generator(random_state), Circle()
    t = _parameters(circle, n_samples, rng)
    clean = circle.at(t)
    return Sample(clean * (1.0 + rng.uniform(-nu, nu, len(t)))[:, None], clean, circle)


def banana(n_samples: int = 300, noise: float = 0.2, *, random_state: Any = None) -> Sample:
    """Draw (x, x^2 + xi), a noisy parabola: x uniform in [-1, 1], xi normal of deviation nu.

    Parameters
    ----------
    n_samples : int
        300 in the source, and 200 more to denoise.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Sample

    References
    ----------
    SPEC X1, X4.

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
    """Draw r (cos t, sin t) with r = 0.07 t + xi: t uniform in [0, 6 pi], xi in [0, nu].

    The noise of the source has mean nu/2, which nothing in the points tells from the curve; so it
    counts as part of it, and the clean curve is r = 0.07 t + nu/2.

    Parameters
    ----------
    n_samples : int
        70 in the source, and 250 more to denoise.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Sample

    References
    ----------
    SPEC X1, X4.

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
    unit = np.column_stack([np.cos(t), np.sin(t)])
    moved = rng.uniform(-nu / 2, nu / 2, len(t))[:, None] * unit
    return Sample(curve.at(t) + moved, curve.at(t), curve)


def sine(n_samples: int = 420, noise: float = 0.5, *, random_state: Any = None) -> Sample:
    """Draw (t, 0.8 sin 2t) + xi: t uniform in [0, 2 pi], xi in [0, nu]^2.

    The noise of the source has mean (nu/2, nu/2), which nothing in the points tells from the curve;
    so it counts as part of it, and the clean curve is (t, 0.8 sin 2t) + (nu/2, nu/2).

    Parameters
    ----------
    n_samples : int
        420 in the source, and 330 more to denoise.
    noise : float
        nu >= 0.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Sample

    References
    ----------
    SPEC X4.

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
    moved = rng.uniform(-nu / 2, nu / 2, clean.shape)
    return Sample(clean + moved, clean, curve)


def _parameters(curve: Curve, n_samples: int, rng: np.random.Generator) -> Array:
    """Uniform parameters of the curve."""
    return rng.uniform(curve.low, curve.high, positive_int(n_samples, "n_samples"))
