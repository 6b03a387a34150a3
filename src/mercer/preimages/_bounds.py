"""Bounds on the derivatives of psi = sum_i a_i k(x_i, .) that hold everywhere.

A radial kernel is a profile k of u = r^2, so every bound is sum_i |a_i| times a supremum over r of
an expression in k', k'' and k'''. The supremum is taken over all distances, not over those of the
data, and once per profile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._errors import DerivativeError
from mercer.engine import (
    Coef,
    Distance,
    Expr,
    Maps,
    Program,
    Selection,
    Stacked,
    evaluate,
    n_columns,
    pieces,
)
from mercer.space import Element

_SMALLEST, _LARGEST = 1e-75, 1e75  # distances; their fourth powers are still numbers
_PER_DECADE = 40
_FLAT = 1e-9  # logarithmic slopes below this are rounding: the function has a limit
_STEP = 1e-5  # relative step of the differences that bracket the third derivative
_ENTRIES = 1 << 22  # of coefficients, in memory at a time
_WHOLE_MAP = 1000  # up to this many columns a chain of maps is multiplied out


def gradient_bound(psi: Element) -> Any:
    """Bound on the gradient of psi: |grad psi(x)| <= |a|_1 sup_r 2 r |k'(r^2)| for every x.

    For k(Ax, Ay) times the spectral norm of A. The Gaussian gives |a|_1 / (s sqrt(e)), attained at
    distance s; at a cusp the supremum is the limit for r -> 0.

    Parameters
    ----------
    psi : Element
        One element, or a batch.

    Returns
    -------
    float, or array of shape (b,)
        Where the supremum is infinite because the slope grows with the distance (NegativeDistance
        with p > 1), distances up to the diameter of the box around the points are taken; infinite
        where it grows towards distance zero (p < 1). NaN for kernels that are not profiles of one
        distance.

    References
    ----------
    SPEC C4, ERRATA 000-1.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.3), [[0.0], [2.0]], [0.5, -0.5])
    >>> round(mc.gradient_bound(psi), 6)
    0.466562
    """
    program = psi.kernel.program
    sup = _of_kind(program, lambda profile: _sup_slope(profile, math.inf))
    if math.isinf(sup) and not math.isinf(_cusp(program.profile)):
        sup = _sup_slope(program.profile, _diameter(program, psi.points))
    return _scaled(psi, sup, 1)


def lipschitz(psi: Element) -> Any:
    """Lipschitz constant of the gradient: |a|_1 sup_u max(|2 k'(u)|, |2 k'(u) + 4 u k''(u)|).

    The two are the eigenvalues of the Hessian of k(x_i, .), across and along x - x_i; for k(Ax, Ay)
    times the squared spectral norm of A. 1 / L is a step with which gradient descent descends.

    Parameters
    ----------
    psi : Element
        One element, or a batch.

    Returns
    -------
    float, or array of shape (b,)
        Infinite at cusps and where k' jumps (Epanechnikov); NaN for kernels that are not profiles
        of one distance.

    References
    ----------
    SPEC C5.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(0.5), [[0.0], [2.0]], [1.0, -2.0])
    >>> round(mc.lipschitz(psi), 6)
    12.0
    """
    return _scaled(psi, _of_kind(psi.kernel.program, _sup_curvature), 2)


def hessian_lipschitz(psi: Element) -> Any:
    """Lipschitz constant of the Hessian: |a|_1 sup |12 k''(u) t + 8 k'''(u) t^3| over t^2 <= u.

    That is the third derivative of k(x_i, .) along a unit vector v with t = <v, x - x_i>. Profiles
    that are completely monotone have k'' and |k'''| that decrease, so differences of k'' bracket
    k''' and values at the ends of a cell bound what is between: the result is an upper bound, at
    most about a thousandth above the supremum (1.3802 |a|_1 / s^3 for the Gaussian).

    Parameters
    ----------
    psi : Element
        One element, or a batch.

    Returns
    -------
    float, or array of shape (b,)
        Infinite where the Hessian is not Lipschitz (Laplace); NaN where nothing is known: other
        kernels than completely monotone ones.

    References
    ----------
    Nesterov and Polyak (2006), where it bounds the error of a quadratic model.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(0.5), [[0.0], [2.0]], [1.0, -2.0])
    >>> round(mc.hessian_lipschitz(psi), 1)
    33.1
    """
    program = psi.kernel.program
    sup = 0.0 if not program.variables else math.nan
    if program.kind == "radial":
        if psi.kernel.flags.completely_monotone:
            sup = _of_kind(program, _sup_third)
        elif math.isinf(_of_kind(program, _sup_curvature)):
            sup = math.inf
    return _scaled(psi, sup, 3)


def cusp_slope(program: Program) -> float:
    """The slope eta = lim -d/dr k(r^2) for r -> 0 of a profile whose slope in u is infinite at 0.

    1 / l for the Laplace kernel, 0 for kernels without a cusp, infinite for steeper ones, NaN for
    kernels with a cusp that are not profiles of one distance. Distances are those after the map.
    """
    if not any(program.cusps):
        return 0.0
    return _of_kind(program, _cusp)


def coefficient_sizes(psi: Element) -> Array:
    """|a|_1 = sum_i |a_i| of each element, shape (b,), float64; in blocks of bounded memory."""
    return _sizes(psi.coef)


def spectral_norms(program: Program, dim: int) -> tuple[float, float]:
    """The largest and the smallest singular value of the map A of a program of one variable.

    The first may be too large and the second too small, for long chains of maps of many columns.
    """
    maps: Maps = getattr(program.variables[0], "maps", ()) if program.variables else ()
    if not maps:
        return 1.0, 1.0
    if dim <= _WHOLE_MAP:
        A = _mapped(maps, np.eye(dim))  # (d, p)
        values = np.linalg.svd(A, compute_uv=False)
        return float(values[0]), float(values[-1]) if A.shape[1] >= dim else 0.0
    norms = [_norm(m.array, type(m).__name__) for m in maps]
    return math.prod(norms), 0.0


def _mapped(maps: Maps, X: Any) -> Any:
    for step in maps:
        X = step.apply(X)
    return X


def _norm(array: Array, kind: str) -> float:
    if kind == "Matrix":
        return float(np.linalg.norm(array, 2))
    return float(1.0 / array.min()) if kind == "Scales" else 1.0


# --- coefficients -----------------------------------------------------------------------------


def _sizes(coef: Coef) -> Array:
    if isinstance(coef, Selection):
        return np.abs(coef.value).astype(np.float64)
    if isinstance(coef, Stacked):
        return np.asarray(sum(_sizes(part) for part in coef.parts))
    n, b = coef.shape
    total = np.zeros(b)
    for columns in pieces(b, max(1, min(b, _ENTRIES // 256))):
        width = columns.stop - columns.start
        for rows in pieces(n, max(1, _ENTRIES // width)):
            total[columns] += np.abs(coef.tile(rows, columns)).sum(axis=0, dtype=np.float64)
    return total


def _scaled(psi: Element, sup: float, power: int) -> Any:
    norm = 1.0
    if psi.kernel.program.kind == "radial" and math.isfinite(sup):
        norm = spectral_norms(psi.kernel.program, n_columns(psi.points))[0]
    with np.errstate(invalid="ignore"):
        sizes = coefficient_sizes(psi)
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
    Z = _mapped(variable.maps, points)
    low, high = Z.min(axis=0), Z.max(axis=0)
    if is_sparse(Z):
        low, high = low.toarray(), high.toarray()
    return float(np.linalg.norm(np.asarray(high, dtype=float) - np.asarray(low, dtype=float)))


# --- suprema over distances -------------------------------------------------------------------


def _profile(profile: Expr, u: Array, order: int) -> tuple[Array, ...]:
    """k, k', k'' at u."""
    with np.errstate(all="ignore"):
        jet = evaluate(profile, [u], order)
    parts = (jet.value, *jet.first, *(row[0] for row in jet.second))
    return tuple(np.broadcast_to(np.asarray(p, dtype=float), u.shape) for p in parts)


def _grid(low: float = _SMALLEST, high: float = _LARGEST, per_decade: int = _PER_DECADE) -> Array:
    count = int(math.log10(high / low) * per_decade) + 2
    return np.geomspace(low, high, count)


def _supremum(size: Callable[[Array], Array], high: float = _LARGEST) -> float:
    """sup of a function of r over (0, high]; infinite where it still grows at an end."""
    r = _grid(high=high)
    y = np.nan_to_num(size(r), nan=0.0, posinf=math.inf)
    if _grows(r, y) or (high == _LARGEST and _grows(r[::-1], y[::-1])):
        return math.inf
    best = float(y.max())
    for i in np.argsort(y)[-5:]:  # zoom in on the five highest
        low, top = r[max(i - 1, 0)], r[min(i + 1, len(r) - 1)]
        for _ in range(7):
            z = np.linspace(low, top, 101)
            v = np.nan_to_num(size(z), nan=0.0)
            j = int(np.argmax(v))
            best = max(best, float(v[j]))
            low, top = z[max(j - 1, 0)], z[min(j + 1, 100)]
    return best


def _grows(r: Array, y: Array) -> bool:
    """Whether y has no limit towards the first r: it is a power that grows."""
    a, b = y[0], y[_PER_DECADE]
    if a <= 0 or b <= 0 or not math.isfinite(a):
        return bool(a > 0 and not math.isfinite(a))
    return math.log(a / b) / abs(math.log(r[_PER_DECADE] / r[0])) > _FLAT


@lru_cache(maxsize=256)
def _sup_slope(profile: Expr, high: float) -> float:
    """sup of 2 r |k'(r^2)| over r <= high."""
    if high <= _SMALLEST:
        return 0.0

    def slope(r: Array) -> Array:
        return np.asarray(2.0 * r * np.abs(_profile(profile, r * r, 1)[1]))

    return _supremum(slope, min(high, _LARGEST))


@lru_cache(maxsize=256)
def _sup_curvature(profile: Expr) -> float:
    """sup of |2k'| and |2k' + 4 u k''|; infinite where k or k' jumps."""

    def curvature(r: Array) -> Array:
        _, first, second = _profile(profile, r * r, 2)
        along = 2.0 * first + 4.0 * r * (r * second)
        return np.asarray(np.maximum(np.abs(2.0 * first), np.abs(along)))

    sup = _supremum(curvature)
    return math.inf if any(_jumps(profile, gate, sup) for gate in _gates(profile)) else sup


def _gates(node: Any) -> Iterator[Expr]:
    """The gates of every cut in an expression."""
    if not isinstance(node, Expr) or not is_dataclass(node):
        return
    if hasattr(node, "gate"):
        yield node.gate
    for f in fields(node):
        yield from _gates(getattr(node, f.name))


def _jumps(profile: Expr, gate: Expr, sup: float) -> bool:
    """Whether k or k' differs on the two sides of a gate, each found by bisection."""
    r = _grid()
    sign = _profile(gate, r * r, 0)[0] >= 0
    for i in np.flatnonzero(sign[1:] != sign[:-1]):
        low, high = r[i] ** 2, r[i + 1] ** 2
        for _ in range(100):
            middle = 0.5 * (low + high)
            if (_profile(gate, np.array([middle]), 0)[0][0] >= 0) == sign[i]:
                low = middle
            else:
                high = middle
        k, slope = _profile(profile, np.array([low, high]), 1)
        if abs(k[1] - k[0]) > 1e-8 * sup * low or abs(slope[1] - slope[0]) > 1e-8 * sup:
            return True
    return False


@lru_cache(maxsize=256)
def _cusp(profile: Expr) -> float:
    """lim -2 r k'(r^2) for r -> 0, taken at 1e-75, where the next term is far below rounding."""
    r = np.geomspace(_SMALLEST, 10.0 * _SMALLEST, _PER_DECADE + 1)
    slope = -2.0 * r * _profile(profile, r * r, 1)[1]
    if _grows(r, np.abs(slope)):
        return math.inf
    return 0.0 if _grows(r[::-1], np.abs(slope)[::-1]) else float(slope[0])


@lru_cache(maxsize=256)
def _sup_third(profile: Expr) -> float:
    """Upper bound on |12 k'' t + 8 k''' t^3| over t^2 <= u, for completely monotone profiles."""
    left, right = (edges := _grid())[:-1], edges[1:]
    upper, lower = _third(profile, left, right)
    if _grows(left, upper) or not math.isfinite(upper.max()):
        return math.inf
    for _ in range(4):  # cells that may still hold the supremum are cut into smaller ones
        keep = upper >= lower.max()
        cuts = np.linspace(left[keep], right[keep], 17)
        left, right = cuts[:-1].ravel(), cuts[1:].ravel()
        upper, lower = _third(profile, left, right)
        if upper.max() <= 1.001 * lower.max() or left.size > 100_000:
            break
    return float(upper.max())


def _third(profile: Expr, left: Array, right: Array) -> tuple[Array, Array]:
    """Bounds on the supremum over cells of distances: above, and below (its value at the left).

    k'' and c = -k''' decrease. With K >= k'' and c0 <= c <= c1 on a cell, 12 K t - 8 c0 t^3 has its
    largest value at t^2 = K / (2 c0) or at the end, and 8 c1 t^3 - 12 k'' t its own at the end.
    """
    K, (c1, low) = _profile(profile, left**2, 2)[2], _bracket(profile, left**2)
    K0, c0 = _profile(profile, right**2, 2)[2], _bracket(profile, right**2)[1]
    with np.errstate(all="ignore"):
        t = np.minimum(np.sqrt(K / (2.0 * c0)), right)
        rising = np.where(K > 0, 12.0 * K * t - 8.0 * c0 * t**3, 0.0)
        falling = 8.0 * c1 * right**3 - 12.0 * K0 * left
        upper = np.fmax(rising, falling)
        s = np.minimum(np.sqrt(K / (2.0 * c1)), left)
        lower = np.fmax(12.0 * K * s - 8.0 * c1 * s**3, 8.0 * low * left**3 - 12.0 * K * left)
    upper = np.where(upper == math.inf, math.inf, np.nan_to_num(upper, nan=0.0))
    return upper * (1.0 + 1e-12), np.nan_to_num(lower, nan=0.0, posinf=0.0)


def _bracket(profile: Expr, u: Array) -> tuple[Array, Array]:
    """-k'''(u) from above and below: differences of k'' to the left and to the right."""
    h = _STEP * u
    second = [_profile(profile, v, 2)[2] for v in (u - h, u, u + h)]
    slack = 1e-14 * second[0]  # rounding of k''
    with np.errstate(all="ignore"):
        above = (second[0] - second[1] + slack) / h
        below = np.maximum(second[1] - second[2] - slack, 0.0) / h
    return above, below
