"""Check mixing and spectral measures: masses, transforms and draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.exceptions import UnavailableError
from mercer.kernels import Flags, Kernel, MixingMeasure, SpectralMeasure
from mercer.testing._claims import profile_values
from mercer.testing._lattice import cloud, dimensions, natural_scale
from mercer.testing._report import agree, fail, require

_DRAWS = 4000
_SIGMAS = 6.0  # standard errors; a correct sampler fails about once in 10^9 tests
_STEP = 0.01
_LOG_T = np.arange(-600.0, 600.0, _STEP)  # covers the range of float64


def check_measures(
    kernel: Kernel, claims: Flags, dims: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Check the measures that the kernel has."""
    try:
        mixing = kernel.mixing_measure()
    except UnavailableError:
        pass
    else:
        _check_mixing(kernel, mixing, rng)
    for d in dimensions(kernel, tuple(d for d in dims if d <= 3)):
        try:
            spectral = kernel.spectral_measure(d)
        except UnavailableError:
            return
        _check_spectral(kernel, spectral, d, claims, rng)


def _check_mixing(kernel: Kernel, mu: MixingMeasure, rng: np.random.Generator) -> None:
    """k(u) = int exp(-u t) dmu(t), by quadrature over the density and by draws."""
    dims = dimensions(kernel, range(1, 65))[:1]
    unit = natural_scale(kernel, dims[0]) ** 2 if dims else 1.0
    u = unit * np.array([0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0])
    profile = profile_values(kernel, u)
    agree(kernel, "mass of the mixing measure = k(0)", mu.mass, profile[0], tol=1e-12)
    t = mu.sample(_DRAWS, rng)
    require(t.shape == (_DRAWS,), kernel, f"draws of the mixing measure have shape {t.shape}")
    require(np.all(t >= 0), kernel, "draws of the mixing measure must be >= 0")
    law = "the draws of the mixing measure"
    _agree_on_average(kernel, law, np.exp(-np.outer(t, u)), profile, mu.mass, 1.0)
    try:
        density = mu.density(np.exp(_LOG_T))
    except UnavailableError:
        return
    require(np.all(density >= 0), kernel, "the density of the mixing measure must be >= 0")
    weights = density * np.exp(_LOG_T) * _STEP
    terms = np.array([weights * np.exp(-v * np.exp(_LOG_T)) for v in u])
    integral, coarse = terms.sum(axis=1), 2.0 * terms[:, ::2].sum(axis=1)
    if np.all(np.abs(integral - coarse) <= 1e-9 * mu.mass):  # else the grid is too coarse
        law = "the Laplace transform of the mixing density"
        agree(kernel, law, integral, profile, tol=1e-8)
    low, high = np.quantile(t, [0.25, 0.75])
    inside = (t >= low) & (t <= high)
    ratios = np.where(inside, mu.mass / (mu.density(np.where(inside, t, low)) * (high - low)), 0.0)
    law = "the mixing density against its draws"
    _agree_on_average(kernel, law, ratios[:, None], np.ones(1), 1.0)


def _check_spectral(
    kernel: Kernel, measure: SpectralMeasure, d: int, claims: Flags, rng: np.random.Generator
) -> None:
    """Random Fourier features reproduce the kernel, and draws follow the density.

    The density is positive if and only if the kernel is characteristic.
    """
    X = cloud(kernel, d, rng)
    law = "mass of the spectral measure = k(x, x)"
    agree(kernel, law, measure.mass, kernel.diag(X)[0], tol=1e-12)
    w = measure.sample(_DRAWS, rng)
    require(w.shape == (_DRAWS, d), kernel, f"frequencies have shape {w.shape} in {d} dimensions")
    cosines = np.cos(w @ (X - X[0]).T)
    law = f"random Fourier features in {d} dimensions"
    _agree_on_average(kernel, law, cosines, kernel(X[:1], X)[0], measure.mass, 1.0)
    try:
        density = measure.density(w) / measure.mass
    except UnavailableError:
        return
    require(np.all(density > 0), kernel, f"the spectral density in {d} dimensions is 0 at a draw")
    law = f"the spectral density in {d} dimensions against its draws"
    for width in (0.5, 0.2):  # E[g(w) / density(w)] = 1 for any density g, here narrower normals
        s = width * np.median(np.abs(w), axis=0)
        log_g = -0.5 * np.sum((w / s) ** 2 + np.log(2.0 * np.pi * s**2), axis=1)
        _agree_on_average(kernel, law, (np.exp(log_g) / density)[:, None], np.ones(1), 1.0)
    positive = claims.characteristic is not None and bool(np.all(measure.density(3.0 * w) > 0))
    if claims.characteristic and not positive:
        fail(kernel, "claims to be characteristic, but its spectral density has zeros")
    if claims.characteristic is False and positive:
        fail(kernel, "claims not to be characteristic, but its spectral density is positive")


def _agree_on_average(
    kernel: Kernel, law: str, draws: Array, expected: Any, mass: float, bound: float | None = None
) -> None:
    """The mean of the rows is `expected`, up to the standard error; rows are at most `bound`."""
    error = draws.std(axis=0) / np.sqrt(draws.shape[0])
    gap = np.abs(mass * draws.mean(axis=0) - expected)
    largest = float(np.abs(draws).max()) if bound is None else bound
    rare = 7.0 * largest / draws.shape[0]  # Bernstein's term
    allowed = mass * (_SIGMAS * error + rare)
    if not np.all(gap <= allowed):
        i = int(np.argmax(gap / allowed))
        fail(kernel, f"{law}: off by {gap[i]:.3g}, chance allows {allowed[i]:.3g}")
