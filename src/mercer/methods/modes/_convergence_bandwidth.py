"""The bandwidth from which mean shift is guaranteed to converge, to a single mode."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, frozen, instance
from mercer.engine import Distance, Expr, Program, apply_all, n_columns, profile_at
from mercer.exceptions import DerivativeError, InputError
from mercer.kernels import Constant, Gaussian, Kernel, Product, Transformed
from mercer.methods.modes._enclosing_ball import enclosing_ball, max_distance
from mercer.rigor import Interval, negative_up_to, profile_ranges_in_distance

_DECADES = 155  # the scan runs over u from 1e-155 to 1e155: all lengths that kernels may have
_PER_DECADE = 200
_CUSP = 1e-9  # rho at 1e-155 this near to 1: the slope of k(r^2) in r is not 0 at r = 0
_SHORT = 1e-9  # the proof ends this fraction before the root, where q'' is 0
_AGAIN = 20  # roots that the proof may find before the one it confirms


@dataclass(frozen=True, eq=False)
class ConvergenceBandwidth:
    """The bandwidth above which mean shift has a single mode, and what is guaranteed.

    Attributes
    ----------
    value : float
        h0 in units of the kernel's `length_scale`; for kernels without one the same as `factor`.
        Infinite if no bandwidth is enough.
    holds : bool
        Whether the kernel as given is proved to be wide enough: strictly concave at all distances
        up to 2 radius.
    centre, radius
        The ball that holds the points; behind linear maps, the mapped points.
    root : float
        u0, the squared distance up to which the kernel is strictly concave.
    proved : bool
        Whether interval arithmetic proved that the kernel is strictly concave up to `root`, or to
        within 1e-9 of it.
    single_mode : bool
        Whether there is provably one mode: `holds`, or a Gaussian with h > radius.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.convergence_bandwidth(mc.Gaussian(3.0), [[0.0], [2.0]])
    >>> round(float(found), 9), found.holds
    (2.0, True)
    """

    value: float
    holds: bool
    centre: Array
    radius: float
    root: float
    proved: bool
    single_mode: bool

    @property
    def factor(self) -> float:
        """2 radius / sqrt(root): the kernel has to be stretched by more than this."""
        if self.radius == 0.0 or math.isinf(self.root):
            return 0.0
        return 2.0 * self.radius / math.sqrt(self.root) if self.root > 0.0 else math.inf

    @property
    def reason(self) -> str:
        """What is guaranteed, in words."""
        if self.radius == 0.0:
            return "All points are equal, and their place is the only mode."
        if self.root == 0.0:
            return (
                "No bandwidth is guaranteed: the profile has a cusp at distance zero (rho is 1 or "
                "more there), so the density has no Hessian at its points and the theorem does not "
                "apply. Use a smooth kernel, such as Gaussian or Matern(2.5); ascents of this one "
                "are only known to be monotone."
            )
        if not self.proved and self.factor < 1.0:
            return (
                "Nothing is guaranteed: the kernel seems to be strictly concave up to a squared "
                f"distance of {self.root:.6g}, but that could not be proved. Write its profile "
                "with arithmetic, exp, log, sqrt and powers."
            )
        if math.isinf(self.root):
            return "The kernel is strictly concave at all distances: one mode at any width."
        scale = "" if self.value == self.factor else f" (a length scale of {self.value:.6g})"
        text = (
            "Convergence to a single mode is guaranteed if the kernel is stretched by more than "
            f"{self.factor:.6g}{scale}; as given"
        )
        if self.holds:
            return f"{text} it is."
        if self.single_mode:
            return (
                f"{text} the Hessian may be singular somewhere in the ball, but not at critical "
                f"points, because the length scale exceeds the radius {self.radius:.6g} (Gaussian "
                "only): there is still only one mode."
            )
        return f"{text} it is not: there may be several modes, and each ascent is only monotone."

    def __float__(self) -> float:
        return self.value


def convergence_bandwidth(kernel: Kernel, X: Any, *, centre: Any = None) -> ConvergenceBandwidth:
    """Return the bandwidth h0 above which mean shift converges, to a single mode.

    With the profile k(u), u the squared distance, and rho(u) = -2 u k''(u) / k'(u),

        u0 = inf {u > 0: rho(u) >= 1},    h0 = length_scale * 2 R / sqrt(u0),

    for points in a ball of radius R. If 4 R^2 < u0, every positive combination of the
    k(x_i, .) has a negative definite Hessian on that ball, which holds all iterates and all
    critical points. So there is one mode, and mean shift converges to it from everywhere; at such
    bandwidths it cannot tell clusters apart. Outside of the ball the Hessian may be singular.

    Gaussian: h0 = 2 R. Inverse multiquadric: factor 2 R sqrt((2p + 1) / c). Epanechnikov: every
    point of the ball must be in the window of every other. Every profile with a cusp, such as
    Laplace's: infinite, because rho > 1 near 0.

    Parameters
    ----------
    kernel : Kernel
        A decreasing profile of one squared distance; linear maps are applied to the points.
    X : array_like or CSR matrix of shape (n, d)
    centre : array_like of shape (d,), optional
        The centre of the ball. None takes the smallest ball that holds the points, so that h0 does
        not depend on the origin; zeros give the bound of the literature, R = max |x_i|.

    Returns
    -------
    ConvergenceBandwidth

    See Also
    --------
    all_modes : all modes with proof, at any bandwidth.

    Notes
    -----
    u0 is the smallest root. It is searched for at 200 values of u per decade from 1e-155 to 1e155,
    refined by bisection, and interval arithmetic then tries to prove that no smaller one was
    missed. The condition is sufficient, not necessary: clusters merge at smaller bandwidths.

    References
    ----------
    S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large bandwidths and
    simultaneous accurate clustering, 2025, Theorem 1 and Lemma 1, with corrections: the
    guarantee holds on the ball only, u0 is the smallest root, a Laplace kernel has no finite
    bandwidth, and the ball may be centred anywhere.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.convergence_bandwidth(mc.Gaussian(1.5), [[-1.0, 0.0], [1.0, 0.0]])
    >>> round(found.value, 9), found.holds, found.single_mode
    (2.0, False, True)
    >>> mc.convergence_bandwidth(mc.Laplace(1.0), [[-1.0, 0.0], [1.0, 0.0]]).value
    inf
    """
    program = instance(kernel, Kernel, "kernel").program
    X = kernel.points(X).array
    maps = _checked(kernel, program)
    Z = apply_all(maps, X)
    if centre is None:
        middle, radius, _ = enclosing_ball(Z)
    else:
        given = as_vector(centre, "centre", n_columns(X)).astype(np.float64)
        middle = np.asarray(apply_all(maps, given[None]))[0]
        radius = max_distance(Z, middle)
    core = _core(kernel)
    root, reach = _smallest_root(kernel, core.program.profile)
    holds = radius == 0.0 or 2.0 * radius < reach
    lemma = isinstance(core, Gaussian) and radius < core.length_scale
    proved = reach > 0.0 or root == 0.0
    found = ConvergenceBandwidth(0.0, holds, frozen(middle), radius, root, proved, holds or lemma)
    return replace(found, value=found.factor * float(getattr(core, "length_scale", 1.0)))


def _checked(kernel: Kernel, program: Program) -> Any:
    """The maps of the one distance, or an error that says what is missing."""
    variables = program.variables
    if len(variables) != 1 or not isinstance(variables[0], Distance):
        raise InputError(
            "convergence_bandwidth needs a kernel that is a profile of one squared distance, such "
            f"as Gaussian(1.0), which {kernel!r} is not"
        )
    if not program.has_derivatives:
        raise InputError(
            f"{kernel!r} sees points through a map that is not linear; map the points first and "
            "give the kernel without the map"
        )
    return variables[0].maps


def _core(kernel: Kernel) -> Kernel:
    """The kernel without positive factors and maps: its length scale is in mapped units."""
    match kernel:
        case Transformed(kernel=inner):
            return _core(inner)
        case Product(left=Constant(), right=inner) | Product(left=inner, right=Constant()):
            return _core(inner)
    return kernel


def _slopes(profile: Expr, u: Array) -> tuple[Array, Array]:
    """k'(u), and k'(u) + 2 u k''(u), which is half the second derivative of k(r^2) in r."""
    _, first, second = profile_at(profile, u, 2)
    with np.errstate(all="ignore"):
        return first, first + 2.0 * u * second


def _smallest_root(kernel: Kernel, profile: Expr) -> tuple[float, float]:
    """u0 = inf {u > 0: k' >= 0 or k' + 2 u k'' >= 0}, and the distance up to which it is proved."""
    u = np.logspace(-_DECADES, _DECADES, 2 * _DECADES * _PER_DECADE + 1)
    try:
        slope, bend = _slopes(profile, u)
    except DerivativeError as error:
        raise InputError(
            f"{kernel!r} has a profile without derivatives; give it profile_derivatives(u)"
        ) from error
    if not slope.any() or np.nanmax(slope) > 0 or np.isnan(slope[0]):
        raise InputError(
            f"convergence_bandwidth needs a profile that decreases with the distance, which that "
            f"of {kernel!r} does not; for mean shift with a Uniform window take its shadow, "
            "Epanechnikov"
        )
    if bend[0] >= -_CUSP * abs(slope[0]):
        return 0.0, 0.0
    wrong = np.flatnonzero(~((slope < 0) & (bend < 0)))[:1]
    root = (
        _bisected(profile, float(u[wrong[0] - 1]), float(u[wrong[0]])) if len(wrong) else math.inf
    )
    for _ in range(_AGAIN):
        end = min(root, float(u[-1]))
        reach, missed = _concave_reach(profile, math.sqrt(end))
        if missed is None:
            if 0.0 < reach < math.sqrt(end) * (1.0 - 2.0 * _SHORT):
                root = reach * reach  # a kink, or too narrow a gap for the proof
            return root, reach
        # there is a root between two values of the scan
        root = _bisected(profile, float(u[u < missed].max()), missed)
    return root, 0.0


def _bisected(profile: Expr, low: float, high: float) -> float:
    """The border between a place where the kernel is strictly concave and one where it is not."""
    from scipy.optimize import bisect

    def side(u: float) -> float:
        return -1.0 if np.maximum(*_slopes(profile, np.array([u])))[0] < 0.0 else 1.0

    return float(bisect(side, low, high, xtol=1e-300, rtol=1e-15))


def _concave_reach(profile: Expr, end: float) -> tuple[float, float | None]:
    """Prove that q''(r) < 0 from 0 up to a distance, at most end (1 - 1e-9), for q(r) = k(r^2).

    Returns the distance, and a squared distance where q'' >= 0 if there is one. q' < 0 follows,
    because q'(0) = 0: the profile has no cusp.
    """
    edges = end * (1.0 - _SHORT) * np.concatenate([[0.0], np.logspace(-20.0, 0.0, 2001)])

    def bend(low: Array, high: Array) -> Array:
        return np.asarray(profile_ranges_in_distance(profile, Interval(low, high), 2)[2].hi)

    try:
        reach, r = negative_up_to(bend, lambda r: np.maximum(*_slopes(profile, r * r)), edges)
    except InputError:  # the profile is not recorded
        return 0.0, None
    return (reach, None) if r is None else (0.0, r * r)
