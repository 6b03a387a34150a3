"""Bounds on the derivatives of psi = sum_i a_i k(x_i, .) that hold everywhere.

Each is sum_i |a_i| times a supremum over all distances, taken once per profile. Suprema of first
and second derivatives are found numerically, to about ten digits; those of third ones are enclosed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import instance, is_sparse
from mercer.engine import Distance, Expr, Matrix, Program, Scales, apply_all, n_columns
from mercer.exceptions import DerivativeError
from mercer.rigor._suprema import (
    largest_curvature,
    largest_slope,
    largest_third,
    largest_upward,
    slope_at_zero,
)
from mercer.space import Element

_WHOLE_MAP = 1000  # up to this many columns a chain of maps is multiplied out


def gradient_bound(psi: Element) -> Any:
    """Bound on the gradient of psi: |grad psi(x)| <= |a|_1 sup_r 2 r |k'(r^2)| for every x.

    For k(Ax, Ay) it is multiplied by the spectral norm of A. The Gaussian gives
    |a|_1 / (s sqrt(e)), attained at distance s; at a cusp the supremum is the limit for r -> 0.

    Parameters
    ----------
    psi : Element
        One element, or a batch.

    Returns
    -------
    float, or array of shape (b,)
        If the supremum is infinite because the slope grows with the distance (NegativeDistance with
        p > 1), only distances up to the diameter of the box around the points are considered. If it
        grows towards distance zero (p < 1), the bound is infinite. NaN for kernels that are not
        profiles of one distance.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning, 2024,
    Theorem 8, with the factor corrected, and Example 9.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.3), [[0.0], [2.0]], [0.5, -0.5])
    >>> round(mc.preimages.gradient_bound(psi), 6)
    0.466562
    """
    program = instance(psi, Element, "psi").kernel.program
    sup = _of_kind(program, lambda profile: largest_slope(profile, math.inf))
    if math.isinf(sup) and not math.isinf(slope_at_zero(program.profile)):
        sup = largest_slope(program.profile, _diameter(program, psi.points))
    return _scaled(psi, sup, 1)


def lipschitz(psi: Element) -> Any:
    """Lipschitz constant of the gradient: |a|_1 sup_u max(|2 k'(u)|, |2 k'(u) + 4 u k''(u)|).

    The two are the eigenvalues of the Hessian of k(x_i, .), across and along x - x_i. For k(Ax, Ay)
    it is multiplied by the squared spectral norm of A. Gradient descent with the step 1 / L never
    increases a function with this constant.

    Parameters
    ----------
    psi : Element
        One element, or a batch.

    Returns
    -------
    float, or array of shape (b,)
        Infinite at cusps and where k' jumps (Epanechnikov). NaN for kernels that are not profiles
        of one distance.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(0.5), [[0.0], [2.0]], [1.0, -2.0])
    >>> round(mc.preimages.lipschitz(psi), 6)
    12.0
    """
    program = instance(psi, Element, "psi").kernel.program
    return _scaled(psi, _of_kind(program, largest_curvature), 2)


def hessian_lipschitz(psi: Element) -> Any:
    """Lipschitz constant of the Hessian: |a|_1 sup |12 k''(u) t + 8 k'''(u) t^3| over t^2 <= u.

    That is the third derivative of k(x_i, .) along a unit vector v with t = <v, x - x_i>. It is
    enclosed by interval arithmetic on cells of distances, so the result is an upper bound, at most
    about a thousandth above the supremum (1.3802 |a|_1 / s^3 for the Gaussian).

    Source: Nesterov and Polyak (2006), where it bounds the error of a quadratic model.

    Parameters
    ----------
    psi : Element
        One element, or a batch.

    Returns
    -------
    float, or array of shape (b,)
        Infinite where the Hessian is not Lipschitz (Laplace). NaN where nothing is known: kernels
        that are not completely monotone.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(0.5), [[0.0], [2.0]], [1.0, -2.0])
    >>> round(mc.preimages.hessian_lipschitz(psi), 1)
    33.2
    """
    program = instance(psi, Element, "psi").kernel.program
    sup = 0.0 if not program.variables else math.nan
    if program.kind == "radial":
        if psi.kernel.flags.completely_monotone:
            sup = _of_kind(program, largest_third)
        elif math.isinf(_of_kind(program, largest_curvature)):
            sup = math.inf
    return _scaled(psi, sup, 3)


def cusp_slope(program: Program) -> float:
    """The slope eta = lim -d/dr k(r^2) for r -> 0 of a profile whose slope in u is infinite at 0.

    1 / l for the Laplace kernel, 0 for kernels without a cusp, infinite for steeper ones, NaN for
    kernels with a cusp that are not profiles of one distance. Distances are those after the map.
    """
    return _of_kind(program, slope_at_zero) if any(program.cusps) else 0.0


def upward_curvature(program: Program) -> float:
    """sup of the largest eigenvalue of the Hessian of k(x_i, .): max(2 k', 2 k' + 4 u k'', 0)."""
    return _of_kind(program, largest_upward)


def spectral_norms(program: Program, dim: int) -> tuple[float, float]:
    """The largest and the smallest singular value of the map A of a program of one variable.

    For a chain of maps in many columns, bounds on them: the products of those of each map.
    """
    largest, smallest = 1.0, 1.0
    maps: Any = program.maps
    if len(maps) > 1 and dim <= _WHOLE_MAP:
        maps = (Matrix(apply_all(maps, np.eye(dim)).T),)
    for step in maps:
        values = np.ones(1)
        if isinstance(step, Matrix):
            values = np.linalg.svd(step.array, compute_uv=False)
        elif isinstance(step, Scales):
            values = 1.0 / step.array
        rows = len(step.array)  # fewer than columns: some directions are not seen
        largest, smallest = largest * float(values.max()), smallest * float(values.min())
        smallest, dim = smallest if rows >= dim else 0.0, rows
    return largest, smallest


def _scaled(psi: Element, sup: float, power: int) -> Any:
    norm = 1.0
    if psi.kernel.program.kind == "radial" and math.isfinite(sup):
        norm = spectral_norms(psi.kernel.program, n_columns(psi.points))[0]
    with np.errstate(invalid="ignore"):
        sizes = psi.coef.sizes
        bound = np.where(sizes == 0, 0.0, sizes * (sup * norm**power))
    return bound if psi.batch is not None else float(bound[0])


def _of_kind(program: Program, sup: Callable[[Expr], float]) -> float:
    """0 for constants, a supremum for profiles of one distance, else NaN."""
    if program.kind == "constant":
        return 0.0
    if program.kind != "radial":
        return math.nan
    try:
        return sup(program.profile)
    except DerivativeError:
        return math.nan


def _diameter(program: Program, points: Any) -> float:
    """The diagonal of the box around the mapped points."""
    (variable,) = program.variables
    assert isinstance(variable, Distance)
    Z = apply_all(variable.maps, points)
    low, high = Z.min(axis=0), Z.max(axis=0)
    if is_sparse(Z):
        low, high = low.toarray(), high.toarray()
    return float(np.linalg.norm(np.asarray(high, dtype=float) - np.asarray(low, dtype=float)))
