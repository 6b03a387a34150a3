"""Basins of attraction: balls about modes inside which mean shift was checked to reach the mode.

With a convex profile each step of mean shift climbs a concave parabola under the density f, so f is
nowhere lower on the segment of a step than at its start: the iteration never leaves its component
of a superlevel set {f >= c}. So if a ball about a mode holds no other critical point, every start
in it with a density above that on the sphere ends at the mode.

That a ball holds no other critical point follows from values, gradients and Hessians at samples and
a bound on the third derivatives between them. The bound is rigorous (`mercer.rigor`). The sums at
the samples are not enclosed: margins allow for their error. So a label that comes from a basin is
called checked, not proved. What `is_proved_maximum` says about a mode is a proof.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer._array import Array, Points
from mercer._chunks import Chunks
from mercer.engine import Dense, by_row, pieces
from mercer.methods._rows import nearest
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._third_derivative import HessianVariation, ThirdDerivatives
from mercer.preimages._driver import State
from mercer.rigor import row_sums, supremum_errors
from mercer.space import Element

_EPS = float(np.finfo(float).eps)
_MARGIN = 1e-3  # of a radial derivative, which must be negative by this much
# Sums have errors of 1e-8 to 1e-10 of the mass, at frequencies of at most 10 per length; each
# derivative multiplies an error by a frequency.
_FREQUENCY = 10.0
_PAIRS, _LEAST = 2e6, 16  # pairs of modes and points, and modes, about which proofs are tried
_OFF = 1e-4  # of the kernel's length: how far from the returned point a proved maximum may be
# fine and coarse shells by dimension: growth of their radii, cells along each edge of a cube of
# directions, and how far they go in lengths of the kernel
_GRIDS = {
    1: [(1.15, 1, 4.0)],
    2: [(1.15, 10, 4.0), (1.3, 4, 1.0)],
    3: [(1.15, 10, 4.0), (1.3, 6, 1.0)],
    4: [(1.2, 7, 2.0), (1.3, 5, 1.0)],
}


class Basin(NamedTuple):
    """Every start with |z - mode| < radius and f(z) > level ends at this mode."""

    mode: Array  # of shape (d,)
    value: float  # f there
    radius: float
    level: float


class Basins:
    """The basins of one density that are known, and which of them hold given points.

    Nothing is claimed about balls that may hold a cusp or a kink of a profile.
    """

    def __init__(self, density: DensitySum) -> None:
        self.density = density
        self.modes = np.empty((0, density.dim))
        self.radius = self.level = np.empty(0)

    def holding(self, Z: Array, value: Array) -> Array:
        """The number of the basin that holds each point, -1 where none does."""
        if not len(self.modes):
            return np.full(len(Z), -1)
        distance, number = nearest(self.modes, Z)
        held = (distance < self.radius[number]) & (value > self.level[number])
        return np.where(held, number, -1)

    def search(self, modes: Array, most_samples: float) -> None:
        """Look for basins about modes, which are known to rounding.

        They reach farther than a ball of definite Hessians if that takes at most `most_samples`
        samples of the density. A basin whose mode lies in a known ball is not new.
        """
        for basin in self._grown(self._balls(modes), most_samples):
            same = np.linalg.norm(self.modes - basin.mode, axis=1) < self.radius
            if basin.level < basin.value and not same.any():
                self.modes = np.vstack([self.modes, basin.mode])
                self.radius = np.append(self.radius, basin.radius)
                self.level = np.append(self.level, basin.level)

    @cached_property
    def _third(self) -> ThirdDerivatives:
        return ThirdDerivatives.of(self.density)

    def _balls(self, modes: Array) -> list[tuple[Basin, HessianVariation]]:
        """Balls on which the Hessian is definite, about those modes that have one."""
        here = self.density.at(modes, 2, exact=True)
        found = []
        for j, mode in enumerate(modes):
            scale = float(np.exp(here.shift[j]))
            third = self._third.about(mode, scale)
            steepest = float(np.linalg.eigvalsh(here.hessian[j])[0])
            slope = float(np.linalg.norm(here.gradient[j]))
            r = third.concave_radius(steepest, slope)
            if r is not None:
                off = slope / (0.5 * steepest)  # the mode is no farther than this
                level = -here.value[j] - 0.25 * steepest * (r - off) ** 2 + slope * off
                level = level * scale + self.density.error
                ball = Basin(mode, -here.value[j] * scale, r - 2.0 * off, level)
                found.append((ball, third))
        return found

    def _grown(
        self, balls: list[tuple[Basin, HessianVariation]], most_samples: float
    ) -> list[Basin]:
        """Larger basins in place of balls: samples of all of them in one call."""
        d = self.density.dim
        for growth, n_cells, far in _GRIDS.get(d, []) if balls else []:
            rays, chord = _directions(d, n_cells)
            ends = [far * self.density.length / ball.radius for ball, _ in balls]
            counts = [int(np.log(end) / np.log(growth)) + 1 for end in ends]
            if sum(counts) * len(rays) <= most_samples:
                break
        else:
            return [ball for ball, _ in balls]
        edges = [
            ball.radius * growth ** np.arange(n + 1)
            for (ball, _), n in zip(balls, counts, strict=True)
        ]
        samples = [
            ball.mode + np.multiply.outer(0.5 * (e[1:] + e[:-1]), rays).reshape(-1, d)
            for (ball, _), e in zip(balls, edges, strict=True)
        ]
        f = self.density.at(np.concatenate(samples), 2)
        parts = np.split(np.arange(len(f.points)), np.cumsum([len(part) for part in samples])[:-1])
        return [
            self._with_shells(*ball, e, f[part], chord)
            for ball, e, part in zip(balls, edges, parts, strict=True)
        ]

    def _with_shells(
        self, ball: Basin, third: HessianVariation, edges: Array, f: State, chord: float
    ) -> Basin:
        """Add shells around the ball while f falls along every ray.

        The shells lie between spheres with radii `edges`, with samples along rays in their middles.
        No direction is farther than `chord` from a ray. With w = p - mode at a sample p and
        |v| <= s, <grad f(p + v), w + v> is at most <g, w> + |g + H w| s + max(0, lambda_1(H)) s^2 +
        D s^2 |w + v| / 2, D bounding D^3 f.
        """
        best, W = ball, f.points - ball.mode
        unit = -np.exp(f.shift) / third.scale  # the state is that of -f
        value, g, H = (by_row(a, unit) for a in (f.value, f.gradient, f.hessian))
        error = self.density.error / third.scale  # of values, gradients and Hessians
        g_error = error * _FREQUENCY / self.density.length
        H_error = g_error * _FREQUENCY / self.density.length
        for j, ring in enumerate(pieces(len(W), len(W) // (len(edges) - 1))):
            inside, out = edges[j : j + 2]
            rho = 0.5 * (inside + out)
            e = rho * chord
            s = 0.5 * (out - inside) + e
            w, h = W[ring], H[ring]
            eigenvalues = np.linalg.eigvalsh(h)
            pull = np.einsum("ij,ij->i", g[ring], w)
            turned = np.linalg.norm(g[ring] + np.einsum("ijk,ik->ij", h, w), axis=1)
            turned += g_error + H_error * rho
            bend = np.maximum(eigenvalues[:, -1] + H_error, 0.0)
            variation = third(out)
            rest = 0.5 * variation * s**2 * out + g_error * rho
            if not (pull + turned * s + bend * s**2 + rest < _MARGIN * pull).all():
                break
            across = np.linalg.norm(g[ring] - (pull / rho**2)[:, None] * w, axis=1) + g_error
            curve = np.abs(eigenvalues).max(axis=1) + H_error + variation * e
            curve -= pull / rho**2  # the sphere falls back from its tangent plane
            level = float((value[ring] + across * e + 0.5 * curve * e**2).max()) * third.scale
            level += 2.0 * self.density.error
            if level < best.level:
                best = Basin(ball.mode, ball.value, rho, level)
        return best


def is_proved_maximum(density: DensitySum, modes: Array) -> Array:
    """Whether a strict local maximum is proved to lie within 1e-4 lengths of each point.

    Errors of rounding are bounded, and third derivatives enclosed: the Hessian is at most -m / 2 on
    a ball of radius r, and the gradient at its centre at most m r / 4. At a data point with a cusp
    the pull of the other points is less than the slope of the cusp. Points without a proof may
    still be maxima: degenerate ones, or beyond the number for which a proof is tried.
    """
    proved = np.zeros(len(modes), dtype=bool)
    modes = modes[: max(_LEAST, int(_PAIRS / density.n_points))]
    if not len(modes):
        return proved
    errors = _rounding_errors(density, modes)
    if errors is None:
        return proved
    f, cusp = density.fields(modes, exact=True)
    pull = np.linalg.norm(f.gradient, axis=1) * np.exp(f.shift)  # type: ignore[arg-type]
    proved[: len(modes)] = pull + errors[0] < (1.0 - 1e-10) * cusp
    third = ThirdDerivatives.of(density)
    for rows in pieces(len(modes), density.hessian_rows):
        here = density.at(modes[rows], 2, exact=True)
        for j in np.flatnonzero(cusp[rows] == 0.0):
            i, scale, H = rows.start + j, float(np.exp(here.shift[j])), here.hessian[j]
            slope = float(here.local_norm[j]) + errors[0][i] / scale
            slack = errors[1][i] / scale + 10.0 * len(H) * _EPS * float(np.linalg.norm(H))
            steepest = float(np.linalg.eigvalsh(H)[0]) - slack
            r = third.about(modes[i], scale).concave_radius(steepest, slope)
            proved[i] = r is not None and slope <= 0.5 * steepest * _OFF * density.length
    return proved


def _rounding_errors(density: DensitySum, modes: Array) -> tuple[Array, Array] | None:
    """Bounds on the errors of gradients and Hessians at the modes; None if that takes too long."""
    gradient, hessian = np.zeros(len(modes)), np.zeros(len(modes))
    for kernel, program, Z, a in density.groups:
        if isinstance(Z, Chunks):
            return None
        quick = None
        if not density.maps:
            quick = supremum_errors(Element(kernel, Points(Z, kernel.domain), a), modes)
        if quick is None:
            if len(modes) * len(Z) > _PAIRS:
                return None  # rounding would be bounded pair by pair
            sums = row_sums(program, Z, modes, Dense(a[:, None]), False)
            quick = sums.gradient_error, sums.hessian_error
        gradient += quick[0]
        hessian += quick[1]
    return gradient, hessian


def _directions(d: int, n_cells: int) -> tuple[Array, float]:
    """Unit vectors, and the largest distance of any other one from the nearest of them.

    The centres of the cells of a grid on the faces of a cube, projected on the sphere, which moves
    no two points of the cube farther apart.
    """
    if d == 1:
        return np.array([[1.0], [-1.0]]), 0.0
    ticks = (2.0 * np.arange(n_cells) + 1.0) / n_cells - 1.0
    face = np.stack(np.meshgrid(*[ticks] * (d - 1), indexing="ij"), axis=-1).reshape(-1, d - 1)
    sides = [np.insert(face, axis, sign, axis=1) for axis in range(d) for sign in (-1.0, 1.0)]
    rays = np.concatenate(sides)
    return rays / np.linalg.norm(rays, axis=1, keepdims=True), float(np.sqrt(d - 1) / n_cells)
