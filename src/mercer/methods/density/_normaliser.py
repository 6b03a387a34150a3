"""Radial kernels as densities: their integral over R^d (the normaliser), and random draws.

With u = |x|^2, in logarithms so that no dimension is too large:

    Z = int k(|x|^2) dx = pi^(d/2) / Gamma(d/2) int u^(d/2 - 1) k(u) du

It has a closed form for mixtures of Gaussians whose mixing measure is known, (2 pi)^d times the
spectral density at 0; otherwise it is computed by adaptive quadrature in t = log u.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from mercer._array import Array
from mercer.engine import Maps, Scales, column_rank, profile_at
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Constant, Kernel, Product, Sum, Transformed
from mercer.kernels._measures import GammaMixing, InverseGammaMixing, MixingMeasure, PointMass

_RADIAL = "use a radial kernel (Gaussian, Laplace, Epanechnikov, ...) or a sum of such"
_FAR = 690.0  # |log u|: the range of float64
_STEP = 0.05  # of the first scan in log u
_SEEN = 46.0  # terms below exp(-46) of the largest are rounding
_PANELS = 256
_NODES = 16  # of each panel
_DRAWN_PANELS = 4096  # for draws, which take the density to be linear inside each
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class RadialPart:
    """A weight times a profile of |Rx|^2. A kernel with a finite integral is a sum of these.

    `metric` is R: a vector for a diagonal, else upper triangular (d, d).
    """

    log_weight: float
    kernel: Kernel
    metric: Array
    dim: int

    @property
    def log_integral(self) -> float:
        """log of the integral over R^d."""
        log = self.log_weight + log_radial_integral(self.kernel, self.dim)
        diagonal = self.metric if self.metric.ndim == 1 else np.diagonal(self.metric)
        return log - float(np.sum(np.log(np.abs(diagonal))))


def log_normaliser(kernel: Kernel, dim: int) -> float:
    """Return log int k(x, 0) dx over R^dim; raise if the integral is not finite."""
    logs = np.array([part.log_integral for part in radial_parts(kernel, dim)])
    return float(np.logaddexp.reduce(logs))


def log_peak(kernel: Kernel, dim: int) -> float:
    """Return log k(x, x), also where k(x, x) itself leaves the range of numbers."""
    at_zero = [
        p.log_weight + float(_log_profile(p.kernel, np.zeros(1))[0])
        for p in radial_parts(kernel, dim)
    ]
    return float(np.logaddexp.reduce(at_zero))


def radial_parts(kernel: Kernel, dim: int, maps: Maps = ()) -> list[RadialPart]:
    """Return the kernel behind linear maps as a sum of weighted profiles of distances."""
    if isinstance(kernel, Sum):
        return radial_parts(kernel.left, dim, maps) + radial_parts(kernel.right, dim, maps)
    if isinstance(kernel, Transformed):
        return radial_parts(kernel.kernel, dim, (*maps, kernel.point_map))
    if isinstance(kernel, Product):
        for constant, other in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
            if isinstance(constant, Constant):
                parts, log = radial_parts(other, dim, maps), math.log(constant.value)
                return [RadialPart(p.log_weight + log, p.kernel, p.metric, p.dim) for p in parts]
    program = kernel.program
    if program.kind == "constant":
        raise _infinite(kernel, dim)
    if program.kind != "radial":
        raise InputError(
            f"a density needs a kernel that is a function of a distance; {kernel!r} is not; "
            f"{_RADIAL}"
        )
    own: Maps = program.variables[0].maps  # type: ignore[union-attr]
    return [RadialPart(0.0, kernel, _metric((*maps, *own), dim), dim)]


def _metric(maps: Maps, dim: int) -> Array:
    """R with |Rx| = |Ax| for the map A of all maps together."""
    for step in maps:
        if not step.is_linear:
            raise InputError(
                f"a kernel behind the map {step!r}, which is not linear, is not radial; {_RADIAL}"
            )
    scales = [step.array for step in maps if isinstance(step, Scales)]
    if len(scales) == len(maps):
        return np.asarray(np.ones(dim) / np.prod(scales, axis=0))
    A = np.eye(dim)
    for step in maps:
        A = step.apply(A)  # rows are the images of the coordinate vectors
    rank = column_rank(A.T)
    if rank < dim:
        raise InputError(
            f"the kernel's map keeps only {rank} of {dim} directions, so its integral is infinite; "
            "select the columns of X instead, or use an invertible map"
        )
    return np.asarray(np.linalg.qr(A.T, mode="r"))


def mixing_of(kernel: Kernel) -> MixingMeasure | None:
    """The mixing measure of a profile, if it is of a kind whose integral is known."""
    try:
        mixing = kernel.mixing_measure()
    except UnavailableError:
        return None
    known = isinstance(mixing, PointMass | GammaMixing | InverseGammaMixing)
    return mixing if known and _TINY <= mixing.mass < math.inf else None  # k(0) may underflow


def log_radial_integral(kernel: Kernel, dim: int) -> float:
    """log of the integral of profile(|x|^2) over R^dim, without the maps of the kernel.

    For k(u) = int exp(-u t) dmu(t) it is the integral of (pi / t)^(d/2) over mu.
    """
    half = 0.5 * dim
    match mixing_of(kernel):
        case PointMass(t=t, mass=w) if t > 0:
            return math.log(w) + half * math.log(math.pi / t)
        case GammaMixing(shape=p, rate=c, mass=w):
            if p <= half:
                raise _infinite(kernel, dim)
            ratio = math.lgamma(p - half) - math.lgamma(p)
            return math.log(w) + half * math.log(math.pi * c) + ratio
        case InverseGammaMixing(shape=a, scale=b, mass=w):
            ratio = math.lgamma(a + half) - math.lgamma(a)
            return math.log(w) + half * math.log(math.pi / b) + ratio
    distance = RadialDistribution.of(kernel, dim)
    return distance.log_mass + half * math.log(math.pi) - math.lgamma(half)


def draw(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Array:
    """Return independent draws from k(x, 0) / Z, shape (size, dim)."""
    parts = radial_parts(kernel, dim)
    logs = np.array([part.log_integral for part in parts])
    share = np.exp(logs - logs.max())
    counts = rng.multinomial(size, share / share.sum())
    drawn = []
    for part, count in zip(parts, counts.tolist(), strict=True):
        z, R = _draw_radial(part.kernel, count, dim, rng), part.metric
        drawn.append(z / R if R.ndim == 1 else np.linalg.solve(R, z.T).T)
    return drawn[0] if len(parts) == 1 else np.asarray(rng.permutation(np.concatenate(drawn)))


def _draw_radial(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Array:
    """Draw from a mixture of normals if the mixing measure is known, otherwise by the radius.

    x given t is normal with variance 1 / (2t), and t has density ~ t^(-d/2) dmu(t).
    """
    z = rng.standard_normal((size, dim))
    match mixing_of(kernel):
        case PointMass(t=t) if t > 0:
            return np.asarray(z * np.sqrt(0.5 / t))
        case GammaMixing(shape=p, rate=c):
            return np.asarray(z * np.sqrt(0.5 * c / rng.gamma(p - 0.5 * dim, 1.0, (size, 1))))
        case InverseGammaMixing(shape=a, scale=b):
            return np.asarray(z * np.sqrt(0.5 / b * rng.gamma(a + 0.5 * dim, 1.0, (size, 1))))
    distance = RadialDistribution.of(kernel, dim, _DRAWN_PANELS)
    radius = np.exp(0.5 * distance.at(rng.random(size), rng.random(size)))
    return np.asarray(z * (radius / np.linalg.norm(z, axis=1))[:, None])


@dataclass(frozen=True, eq=False)
class RadialDistribution:
    """The distribution of t = log u with density ~ exp(t d/2) k(e^t), cut into panels."""

    low: Array  # ends of the panels in t
    high: Array
    mass: Array  # the integral over each panel, times exp(-top)
    log_mass: float  # the logarithm of the integral over all t
    density: Callable[[Array], Array]  # the integrand times exp(-top), a function of t

    def at(self, quantile: Array, within: Array) -> Array:
        """Return t: the panel at that quantile, and a share of its mass, with a linear density."""
        below = np.cumsum(self.mass)
        panel = np.searchsorted(below, quantile * below[-1], side="right")
        low, high = self.low[panel], self.high[panel]
        p, q, r = self.density(low), self.density(high), within
        # the root s of (p s + (q - p) s^2 / 2) = r (p + q) / 2, written without cancellation
        bottom = p + np.sqrt(p * p + r * (q * q - p * p))
        s = np.divide(r * (p + q), bottom, out=r.copy(), where=bottom > 0)
        return np.asarray(low + s * (high - low))

    @classmethod
    def of(cls, kernel: Kernel, dim: int, panels: int = _PANELS) -> RadialDistribution:
        """Integrate the profile of a kernel; raise if that is infinite or k takes values < 0."""

        def log_density(t: Array) -> Array:
            return np.asarray(0.5 * dim * t + _log_profile(kernel, np.exp(t)))

        t = np.linspace(-_FAR, _FAR, round(2 * _FAR / _STEP) + 1)
        g = log_density(t)
        known = ~np.isnan(g)  # a profile may be inf / inf far away
        t, g = t[known], g[known]
        if t.size < 100 or not np.any(g > -np.inf):
            raise InputError(f"the profile of {kernel!r} is zero or not a number everywhere")
        best = int(np.argmax(g))
        around = np.linspace(t[max(best - 1, 0)], t[min(best + 1, t.size - 1)], 20_001)
        top = float(np.max(log_density(around)))
        if top == math.inf:
            raise _infinite(kernel, dim)
        seen = np.flatnonzero(g > top - _SEEN)
        first, last = (seen[0], seen[-1]) if seen.size else (best, best)
        tails = 0.0
        if last == t.size - 1:  # a power law: add the tail beyond the largest number
            fall = float(g[-200] - g[-1]) / (t[-1] - t[-200])
            if not fall > 1e-9:
                raise _infinite(kernel, dim)
            tails = math.exp(g[-1] - top) / fall

        def density(t: Array) -> Array:
            return np.exp(log_density(t) - top)

        ends = t[max(first - 2, 0)], t[min(last + 2, t.size - 1)]
        low, high, mass = _integrated(density, np.linspace(*ends, panels + 1))
        return cls(low, high, mass, top + math.log(float(mass.sum()) + tails), density)


@cache
def _lobatto() -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1], ends included: no jump hides between a node and an end."""
    P = np.polynomial.Legendre.basis(_NODES - 1)
    nodes = np.concatenate([[-1.0], np.sort(P.deriv().roots().real), [1.0]])
    return nodes, 2.0 / (_NODES * (_NODES - 1) * P(nodes) ** 2)


def _integrated(f: Callable[[Array], Array], edges: Array) -> tuple[Array, Array, Array]:
    """Panels and the integral of f over each; panels are halved where that changes the integral."""
    a, b = edges[:-1], edges[1:]
    whole, known = _quadrature(f, a, b), 0.0
    settled: list[Array] = []
    for _ in range(60):
        middle = 0.5 * (a + b)
        halves = np.stack([np.concatenate([a, middle]), np.concatenate([middle, b])])
        parts = _quadrature(f, *halves)
        both = parts.reshape(2, -1).sum(axis=0)
        total = known + float(both.sum())
        rough = (np.abs(both - whole) > 1e-15 * total) & (a < middle) & (middle < b)
        known += float(both[~rough].sum())
        calm = np.tile(~rough, 2)
        settled.append(np.vstack([halves, parts])[:, calm])
        (a, b), whole = halves[:, ~calm], parts[~calm]
        if a.size == 0:
            break
    low, high, mass = np.hstack([*settled, np.stack([a, b, whole])])
    order = np.argsort(low)
    return low[order], high[order], mass[order]


def _quadrature(f: Callable[[Array], Array], a: Array, b: Array) -> Array:
    nodes, weights = _lobatto()
    half = 0.5 * (b - a)
    t = 0.5 * (a + b)[:, None] + half[:, None] * nodes
    return np.asarray(half * (f(t.ravel()).reshape(t.shape) @ weights))


def _log_profile(kernel: Kernel, u: Array) -> Array:
    program = kernel.program
    if program.log_profile is not None:
        return profile_at(program.log_profile, u)[0]
    (k,) = profile_at(program.profile, u)
    if np.any(k < 0):
        at = float(u[np.flatnonzero(k < 0)[0]])
        raise InputError(
            f"a density must not be negative, but {kernel!r} is, at distance "
            f"{math.sqrt(at):.6g}; {_RADIAL} that is >= 0"
        )
    with np.errstate(divide="ignore"):
        return np.log(k)


def _infinite(kernel: Kernel, dim: int) -> InputError:
    return InputError(
        f"{kernel!r} has no finite integral over {dim} dimensions (u^(d/2 - 1) k(u) must be "
        "integrable; an inverse multiquadric needs p > d/2), so it cannot be made a density; use a "
        "kernel that decays faster"
    )
