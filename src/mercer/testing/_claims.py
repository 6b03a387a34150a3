"""Check the claims in a kernel's `Flags`, on lattices and on grids of the profile's variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import LARGEST, Array
from mercer.engine import Distance, Dot, Scales, apply_all, profile_at
from mercer.exceptions import DerivativeError
from mercer.kernels import Definiteness, Flags, Kernel, Product, Sum, Transformed
from mercer.kernels._circle import period_of
from mercer.testing._lattice import (
    DIMENSIONS,
    accepts,
    dimensions,
    lattices,
    natural_scale,
    placed,
)
from mercer.testing._report import fail, require
from mercer.theory import projective_conditions

_SLACK = 1e-10  # times the trace
_ROUNDING = 1e-15  # times the trace: of eigenvalues, if all features have the length one
_NOISE = 5e-14  # relative rounding error of a profile: (1 + u)^-50 is not good to the last digit
_ORDERS = 8  # differences of a completely monotone profile that must alternate in sign


def check_claims(
    kernel: Kernel, claims: Flags, points: Any = None, dims: tuple[int, ...] = DIMENSIONS
) -> None:
    check_definiteness(kernel, claims.definiteness, points, dims)
    # a theorem carries these claims from a part over to sums (and the second one to products), but
    # their Gram matrices may show it only below rounding
    if claims.characteristic and not isinstance(kernel, Sum):
        _check_separates(kernel, dims, "characteristic")
    if claims.universal and not isinstance(kernel, Sum | Product | Transformed):
        _check_separates(kernel, dims, "universal")
    variables = kernel.program.variables
    if len(variables) == 1 and isinstance(variables[0], Distance | Dot):
        if isinstance(variables[0], Dot) and claims.definiteness is Definiteness.POSITIVE:
            _check_projective(kernel)
        if claims.convex_profile is not None:
            _check_profile(kernel, claims.convex_profile, "convex", _concave_place(kernel))
        if isinstance(variables[0], Distance) and claims.completely_monotone is not None:
            found = _wrong_difference(kernel)
            _check_profile(kernel, claims.completely_monotone, "completely monotone", found)
        elif claims.completely_monotone:
            fail(kernel, "claims complete monotonicity, which only radial profiles can have")
    elif variables and (claims.convex_profile or claims.completely_monotone):
        fail(kernel, "claims a convex or monotone profile, but is not a profile of one variable")


def check_definiteness(
    kernel: Kernel, claim: Definiteness, points: Any, dims: tuple[int, ...]
) -> None:
    """Quadratic forms on lattices must be non-negative, or negative somewhere, as claimed."""
    if claim is Definiteness.UNKNOWN:
        return
    sets = [*lattices(kernel, dims), *([] if points is None else [points])]
    grams = [(X, np.asarray(kernel(X), dtype=np.float64)) for X in sets]
    grams = [(X, K) for X, K in grams if np.isfinite(K).all()]  # exp(<x, y>) may overflow
    require(grams, kernel, "no lattice lies in its domain; pass `points`")
    refuted = False
    for X, K in grams:
        centred = claim is not Definiteness.POSITIVE
        least, allowed = smallest_eigenvalue(K, centred=centred)
        if claim is Definiteness.INDEFINITE:
            refuted = refuted or least < -allowed
        elif not least >= -allowed:
            what = "conditionally positive" if centred else "positive"
            matrix = f"{'centred ' if centred else ''}Gram matrix of {len(K)} points{_where(X)}"
            found = f"has the eigenvalue {least:.3g} (at least {-allowed:.3g} is allowed)"
            fail(kernel, f"claims to be {what} definite, but the {matrix} {found}")
    if claim is Definiteness.INDEFINITE and not refuted:
        shown = "a negative quadratic form with coefficients that sum to zero"
        cure = "claim nothing, or pass `points` that do"
        fail(kernel, f"claims to be indefinite, but no lattice shows {shown}; {cure}")


def smallest_eigenvalue(K: Array, *, centred: bool) -> tuple[float, float]:
    """The smallest eigenvalue of K (or of K centred), and how negative rounding may make it."""
    K = 0.5 * (K + K.T)
    n, largest = K.shape[0], float(np.abs(K).max())
    if centred:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1, keepdims=True)
    allowed = _SLACK * float(np.abs(np.diag(K)).sum()) + 1e-14 * n * largest
    return float(np.linalg.eigvalsh(0.5 * (K + K.T))[0]), allowed


def _check_separates(kernel: Kernel, dims: tuple[int, ...], claim: str) -> None:
    """Embeddings of signed measures on distinct points must have a positive norm.

    This holds for all measures if the kernel is universal, and for those with total mass zero if
    it is characteristic.
    """
    inner, lengths = _unscaled(kernel)  # so that points are far apart along each axis
    period = period_of(inner)
    for d in dimensions(kernel, dims):
        side, step = {1: 14, 2: 5, 3: 3}.get(d, 2), 2.0 * natural_scale(inner, d)
        if period is not None:  # more points on the circle would be too close together
            side = max(3, min(side, int(2.0 * period / step) + 1))
        X = placed(inner, d, side, step)
        if X is None or len(X) < 3 or not accepts(kernel, X * lengths):
            continue
        X = X * lengths
        K = np.asarray(kernel(X), dtype=np.float64)
        # features of length one, so that large values do not hide small ones
        norms = np.sqrt(np.diag(K)) if np.diag(K).min() > 0.0 else np.ones(len(X))
        K = K / norms[:, None] / norms
        basis = np.eye(len(X))
        if claim == "characteristic":  # coefficients of the scaled features with mass zero
            basis = np.linalg.svd(norms.min() / norms[None, :])[2][1:].T
        least = float(np.linalg.eigvalsh(basis.T @ K @ basis)[0])
        if not least > _ROUNDING * float(np.trace(K)):
            if (
                period is not None and int(2.0 * period / step) < 3
            ):  # the kernel is as wide as the circle
                words = "which cannot be checked: points on the circle are too close together"
                fail(kernel, f"claims to be {claim}, {words}")
            measure = f"some signed measure has the squared norm {least:.3g}"
            where = f"on {len(X)} distinct points{_where(X)}"
            fail(kernel, f"claims to be {claim}, but {where} the embedding of {measure}")


def _unscaled(kernel: Kernel) -> tuple[Kernel, Array]:
    """A kernel, or a factor of a product, without the scales of its columns; and the scales."""
    if isinstance(kernel, Transformed) and isinstance(kernel.point_map, Scales):
        return kernel.kernel, kernel.point_map.array
    if isinstance(kernel, Product):
        for factor in (kernel.left, kernel.right):
            inner, lengths = _unscaled(factor)
            if inner is not factor:
                return inner, lengths
    return kernel, np.ones(1)


def profile_values(kernel: Kernel, u: Array) -> Array:
    return profile_at(kernel.program.profile, u)[0]


def profile_grids(kernel: Kernel) -> list[Array]:
    """Grids of the variable: even ones, and for distances a logarithmic one."""
    dims = dimensions(kernel, range(1, 65))[:1]
    variable, unit = kernel.program.variables[0], 1.0
    assert isinstance(variable, Distance | Dot)
    if dims and all(step.is_linear for step in variable.maps):
        along = np.full((1, dims[0]), natural_scale(kernel, dims[0]) / np.sqrt(dims[0]))
        unit = float(np.sum(apply_all(variable.maps, along) ** 2)) or 1.0  # as k measures it
    steps = unit * np.array([0.02, 0.2, 1.0, 5.0])
    if isinstance(variable, Distance):
        even = [step * np.arange(60) for step in steps]
        return [*even, unit * np.logspace(-5.0, 4.0, 120)]
    grids = (step * (np.arange(61) - 30) for step in steps[:3])
    return [t for t in (_attained(kernel, t, dims) for t in grids) if t.size > 2 and t[-1] > 0.0]


def _attained(kernel: Kernel, t: Array, dims: list[int]) -> Array:
    """Those inner products t of points of the domain, |x|^2 = |t|, where k does not overflow."""
    unit = np.eye(dims[0])[:1] if dims else np.eye(1)
    variable = kernel.program.variables[0]
    assert isinstance(variable, Dot)
    seen = float(np.linalg.norm(apply_all(variable.maps, unit)))
    unit = unit / seen if seen > 0.0 else unit
    t = t[np.abs(profile_values(kernel, t)) < LARGEST]
    return t[[v == 0 or accepts(kernel, np.sqrt(abs(v)) * unit) for v in t]]


def _check_projective(kernel: Kernel) -> None:
    """Positive definiteness needs f >= 0, f' >= 0 and f' + t f'' >= 0 for t >= 0."""
    for t in profile_grids(kernel):
        try:
            found = projective_conditions(kernel, float(t.max()))
        except DerivativeError:
            return
        for law in found.violated:
            falls = f"{law} of its profile falls below zero at a positive inner product"
            fail(kernel, f"claims to be positive definite, but {falls}")


def _check_profile(kernel: Kernel, claim: bool, word: str, found: str) -> None:
    """A claim must not be refuted by what was `found`; its denial needs a witness."""
    if claim:
        require(not found, kernel, f"claims a {word} profile, but {found}")
    else:
        require(found, kernel, f"claims a profile that is not {word}, but no grid shows it")


def _concave_place(kernel: Kernel) -> str:
    """Where the slope of the profile decreases, beyond rounding; "" if nowhere."""
    worst, where = 0.0, 0.0
    for u in profile_grids(kernel):
        f = profile_values(kernel, u)
        gap, slope = np.diff(u), np.diff(f) / np.diff(u)
        noise = _NOISE * np.maximum(np.abs(f[1:]), np.abs(f[:-1])) / gap
        bend = np.diff(slope) + noise[1:] + noise[:-1]
        bend = bend / (np.abs(slope[1:]) + np.abs(slope[:-1]) + noise[1:] + noise[:-1] + 1e-300)
        i = int(np.argmin(bend))
        if bend[i] < worst:
            worst, where = float(bend[i]), float(u[i + 1])
    return f"its slope decreases at {where:.4g}, by {-worst:.3g} of its size" if worst < 0 else ""


def _wrong_difference(kernel: Kernel) -> str:
    """A difference of the profile whose sign does not alternate with its order; "" if none."""
    worst, law = 0.0, ""
    for u in profile_grids(kernel)[:-1]:
        f = profile_values(kernel, u)
        difference, noise = f, _NOISE * float(np.abs(f).max())
        for order in range(_ORDERS + 1):
            least = float(difference.min()) / float(np.abs(f).max())
            if difference.min() < -noise and least < worst:
                worst, law = least, f"difference {order} with step {u[1] - u[0]:.3g}"
            difference, noise = -np.diff(difference), 2.0 * noise
    if law:
        return f"{law} has the wrong sign, by {-worst:.3g} of the profile"
    f = profile_values(kernel, np.r_[0.0, np.logspace(0.0, 300.0, 301)])
    return "it is negative at large distances" if np.any(f < -_NOISE * np.abs(f[0])) else ""


def _where(X: Any) -> str:
    shape = np.shape(X)
    if len(shape) != 2 or shape[0] < 2 or np.asarray(X).dtype.kind not in "iuf":
        return ""
    steps = np.diff(np.unique(np.asarray(X)[:, -1]))
    step = f", step {steps.min():.3g}" if steps.size else ""
    return f" in {shape[1]} dimensions{step}"
