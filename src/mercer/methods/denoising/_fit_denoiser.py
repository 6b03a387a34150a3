"""From a principal subspace to a denoiser: filter, way back and trust, given or chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array, non_negative
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.methods._rows import distinct_rows
from mercer.methods.denoising._denoiser import Denoiser, stein_risk
from mercer.methods.denoising._noise_level import noise_energy, noise_level
from mercer.methods.pca._filters import Filter, Tikhonov, Truncation
from mercer.methods.pca._linear_inverse import Readout
from mercer.preimages import Candidates, FittedMap, LearnedMap
from mercer.preimages._solver import Solver
from mercer.space import Subspace

_FEW_ROWS = 50  # on which the trust in an iterative way back is measured


def fit_denoiser(
    plane: Subspace,
    X: Any,
    *,
    weights: Any = None,
    filter: Filter | None = None,  # noqa: A002
    noise: Any = "auto",
    trust: Any = "auto",
    inverse: Any = None,
    mass: float | None = None,
) -> tuple[Denoiser, float | None]:
    """Return a denoiser on a principal subspace, and the noise it was made for.

    Parameters
    ----------
    plane : Subspace
        From `kernel_pca`.
    X, weights
        The rows it was found from, or, where those were too many, some of them.
    filter : Filter or None
        None is `Tikhonov()`, and `Truncation()` for kernels without derivatives.
    noise : float or "auto"
        The standard deviation of the noise; "auto" estimates it from X.
    trust : float or "auto"
        The share of the change that is kept; "auto" minimises Stein's estimate of the error.
    inverse : Solver, LearnedMap, Readout or None
        The way back; None is the regression on coordinates.
    mass : float, optional
        The weight of all rows, where X holds only some.

    Returns
    -------
    Denoiser
    float or None
        The standard deviation of the noise; None for points that are not vectors.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.methods import fit_denoiser
    >>> rng = np.random.default_rng(0)
    >>> line = np.outer(rng.normal(size=200), [1.0, 2.0, -1.0, 0.5])
    >>> noisy = line + 0.3 * rng.normal(size=line.shape)
    >>> plane = mc.kernel_pca(mc.Linear(), noisy)
    >>> denoiser, noise = fit_denoiser(plane, noisy)
    >>> bool(np.mean((denoiser(noisy) - line) ** 2) < 0.5 * np.mean((noisy - line) ** 2))
    True
    """
    check_choices(noise, trust)
    plain, sigma = untrusted_denoiser(
        plane, X, weights=weights, filter=filter, noise=noise, inverse=inverse, mass=mass
    )
    return trusted(plain, X, weights=weights, noise=noise, sigma=sigma, trust=trust, mass=mass)


def untrusted_denoiser(
    plane: Subspace,
    X: Any,
    *,
    weights: Any = None,
    filter: Filter | None = None,  # noqa: A002
    noise: Any = "auto",
    inverse: Any = None,
    mass: float | None = None,
) -> tuple[Denoiser, float | None]:
    """The denoiser with a trust of 1, and the noise where the filter had to know it."""
    kernel, values = plane.origin.kernel, plane.eigenvalues
    if values is None:
        raise InputError("the subspace has no eigenvalues; take one from kernel_pca")
    X = kernel.points(X).array
    vector = kernel.domain.is_vector
    if filter is None:
        filter = Tikhonov() if vector and kernel.program.has_derivatives else Truncation()  # noqa: A001
    rows = float(n_rows(X)) if weights is None else float(np.sum(weights))
    sigma = energy = None
    if filter.needs_noise:
        if not vector:
            raise InputError(f"{filter!r} needs a strength: its points have no noise in columns")
        sigma = _noise(noise, X, weights)
        energy = noise_energy(kernel, X, sigma, weights) * (1.0 if mass is None else mass / rows)
    way_back = _way_back(inverse, plane, X, weights)
    return Denoiser(plane, filter.weights(values, energy), way_back, 1.0), sigma


def trusted(
    plain: Denoiser,
    X: Any,
    *,
    weights: Any = None,
    noise: Any = "auto",
    sigma: float | None = None,
    trust: Any = "auto",
    mass: float | None = None,
) -> tuple[Denoiser, float | None]:
    """The denoiser with the trust that it deserves, and the noise (`sigma` if that is known)."""
    kernel = plain.plane.origin.kernel
    X = kernel.points(X).array
    if sigma is None and kernel.domain.is_vector:
        sigma = _noise(noise, X, weights)
    return replace(plain, trust=_trust(trust, plain, X, weights, sigma, mass)), sigma


def check_choices(noise: Any, trust: Any) -> None:
    """Raise unless each is "auto" or a number in its range."""
    if isinstance(noise, str):
        if noise != "auto":
            raise InputError(f"noise must be a number >= 0 or 'auto', got {noise!r}")
    else:
        non_negative(noise, "noise")
    if isinstance(trust, str):
        if trust != "auto":
            raise InputError(f"trust must be a number in [0, 1] or 'auto', got {trust!r}")
    elif non_negative(trust, "trust") > 1.0:
        raise InputError(f"trust must lie in [0, 1], got {trust!r}")


def _noise(noise: Any, X: Any, weights: Array | None) -> float:
    return noise_level(X, weights=weights) if isinstance(noise, str) else float(noise)


def _way_back(inverse: Any, plane: Subspace, X: Any, weights: Array | None) -> Any:
    if not plane.origin.kernel.domain.is_vector:
        return Candidates() if inverse is None else inverse
    if inverse is None:
        return Readout.of(plane, X, weights)
    if isinstance(inverse, LearnedMap):
        return inverse.fit(plane, distinct_rows(X, weights)[0])
    if not isinstance(inverse, Solver | Readout):
        raise InputError(f"inverse must be None, a solver or a LearnedMap, got {inverse!r}")
    return inverse


def _trust(
    trust: Any,
    denoiser: Denoiser,
    X: Any,
    weights: Array | None,
    sigma: float | None,
    mass: float | None,
) -> float:
    if not isinstance(trust, str):
        return float(trust)
    if sigma is None:
        return 1.0
    quick = isinstance(denoiser.way_back, Readout | FittedMap)
    size = None if quick else _FEW_ROWS
    risk = stein_risk(denoiser, X, sigma, weights=weights, mass=mass, n_rows_used=size)
    return risk.trust
