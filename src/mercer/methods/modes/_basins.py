"""Parts of basins of attraction, proved: from where mean shift cannot but reach a mode.

With a convex profile each step of mean shift climbs a concave parabola under the density f, so f is
nowhere lower on the segment of a step than at its start: the iteration never leaves its component
of a superlevel set {f >= c}. So if a ball about a mode holds no other critical point, every start
in it with a density above that on the sphere ends at the mode (SPEC D6, F4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._array import Array
from mercer.engine import Program, evaluate, pieces
from mercer.methods.modes._density_sum import DensitySum

_FINE, _EVEN = 0.005, 5000  # spacing and size of the even part of a table, in lengths
_SLACK = 1.02  # for what a table does not see between its entries
_MARGIN = 1e-3  # of a radial derivative: far above the accuracy of sums
# fine and coarse shells by dimension: growth of their radii, cells along each edge of a cube of
# directions, and how far they go in lengths of the kernel
_GRIDS = {
    1: [(1.15, 1, 4.0)],
    2: [(1.15, 10, 4.0), (1.3, 4, 1.0)],
    3: [(1.15, 10, 4.0), (1.3, 6, 1.0)],
    4: [(1.2, 7, 2.0), (1.3, 5, 1.0)],
}
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Basin:
    """Every start with |z - mode| < radius and f(z) > level ends at this mode.

    Attributes
    ----------
    mode : array of shape (d,)
    value : float
        f there.
    radius, level : float
    """

    mode: Array
    value: float
    radius: float
    level: float


class Basins:
    """The proved basins that are known, and which of them hold given points."""

    def __init__(self) -> None:
        self.known: list[Basin] = []

    def add(self, basin: Basin) -> None:
        """Remember one, unless a ball that is known holds its mode, which is then the same."""
        if self.known:
            (distance,), (nearest,) = self._nearest.query(basin.mode[None])
            if distance < self.known[nearest].radius:
                return
        self.known.append(basin)
        for name in ("_limits", "_nearest"):
            self.__dict__.pop(name, None)

    def holding(self, Z: Array, value: Array) -> Array:
        """The number of the basin that holds each point, -1 where none does."""
        if not self.known:
            return np.full(len(Z), -1)
        found = np.empty(len(Z), dtype=np.intp)
        for rows in pieces(len(Z), _BLOCK):
            distance, nearest = self._nearest.query(Z[rows])
            radius, level = self._limits
            held = (distance < radius[nearest]) & (value[rows] > level[nearest])
            found[rows] = np.where(held, nearest, -1)
        return found

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        return np.array([b.radius for b in self.known]), np.array([b.level for b in self.known])

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(np.array([b.mode for b in self.known]))


class Nearest:
    """The nearest of a few points by matrix products, of many by a tree."""

    def __init__(self, modes: Array) -> None:
        from scipy.spatial import cKDTree

        self.modes = modes
        self.tree = cKDTree(modes) if len(modes) > 32 else None

    def query(self, Z: Array) -> tuple[Array, Array]:
        if self.tree is not None:
            return self.tree.query(Z)  # type: ignore[no-any-return]
        score = Z @ self.modes.T
        score -= 0.5 * np.einsum("ij,ij->i", self.modes, self.modes)
        nearest = np.argmax(score, axis=1)
        return np.linalg.norm(Z - self.modes[nearest], axis=1), nearest


@dataclass(frozen=True, eq=False)
class Prover:
    """Proves basins of one density.

    Bounds hold up to the accuracy of the sums, which is far below the margins that are asked for.
    Where a profile has a cusp or a kink nothing is claimed about balls that it may lie in.
    """

    density: DensitySum

    @cached_property
    def _tables(self) -> list[tuple[Array, _RangeMaximum]]:
        return [_third_derivatives(p, self.density.length) for p in self.density.programs]

    def basins(self, modes: Array, most_samples: float) -> list[Basin | None]:
        """A proved basin about each mode, known to rounding; None where none can be proved.

        Basins reach farther than a ball of definite Hessians where that takes at most so many
        samples of the density.
        """
        f = self.density.at(modes, 2, exact=True)
        assert f.hessian is not None
        found: list[Basin | None] = []
        variations = []
        for j, mode in enumerate(modes):
            scale = float(np.exp(f.shift[j]))
            third = self._variation(mode, scale)
            variations.append((third, scale))
            found.append(self._ball(mode, f.value[j], f.gradient[j], f.hessian[j], third, scale))
        self._grow(found, variations, most_samples)
        return found

    def _ball(
        self,
        mode: Array,
        value: float,
        gradient: Array,
        hessian: Array,
        third: _Variation,
        scale: float,
    ) -> Basin | None:
        """A ball on which the density is strongly concave, the mode within half its radius."""
        steepest = -float(np.linalg.eigvalsh(hessian)[-1])
        slope = float(np.linalg.norm(gradient))
        r = self._concave_radius(steepest, third)
        if r is None or slope > 0.25 * steepest * r:
            return None
        off = slope / (0.5 * steepest)  # the mode is no farther than this
        level = value - 0.25 * steepest * (r - off) ** 2 + slope * off
        return Basin(mode, value * scale, r - 2.0 * off, level * scale + self.density.error)

    def _concave_radius(self, steepest: float, third: _Variation) -> float | None:
        """The largest radius on which the Hessian is proved to stay below -steepest / 2."""
        if not steepest > 0.0:
            return None
        radii = self.density.length * np.geomspace(1.0, 1e-4, 60)
        below = 0.5 * steepest / radii
        low, high = 0, len(radii)  # what is asked for grows with the radius: bisect
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if third(radii[middle]) <= below[middle] else (middle + 1, high)
            )
        return float(radii[low]) if low < len(radii) else None

    def _grow(
        self,
        found: list[Basin | None],
        variations: list[tuple[_Variation, float]],
        most_samples: float,
    ) -> None:
        """Put larger basins in place of balls: samples of all of them in one call."""
        d = self.density.points[0].shape[1]
        balls = [j for j, basin in enumerate(found) if basin is not None]
        if not balls:
            return
        for growth, cells, far in _GRIDS.get(d, []):
            rays, chord = _directions(d, cells)
            farthest = far * self.density.length
            shells = {j: _Shells.around(found[j], rays, growth, farthest) for j in balls}  # type: ignore[arg-type]
            if sum(len(s.samples) for s in shells.values()) <= most_samples:
                break
        else:
            return
        f = self.density.at(np.concatenate([shells[j].samples for j in balls]), 2)
        assert f.hessian is not None
        start = 0
        for j in balls:
            part = slice(start, start + len(shells[j].samples))
            start = part.stop
            third, scale = variations[j]
            unit = np.exp(f.shift[part]) / scale
            fields = (
                f.value[part] * unit,
                f.gradient[part] * unit[:, None],
                f.hessian[part] * unit[:, None, None],
            )
            found[j] = self._grown(found[j], shells[j], chord, *fields, third, scale)  # type: ignore[arg-type]

    def _grown(
        self,
        start: Basin,
        shells: _Shells,
        chord: float,
        value: Array,
        g: Array,
        H: Array,
        third: _Variation,
        scale: float,
    ) -> Basin:
        """Add shells around the ball while f is proved to fall along every ray.

        With w = p - mode at a sample p and |v| <= s, <grad f(p + v), w + v> is at most
        <g, w> + |g + H w| s + max(0, lambda_1(H)) s^2 + D s^2 |w + v| / 2, D bounding D^3 f.
        """
        best = start
        W = shells.samples - start.mode
        for j, ring in enumerate(pieces(len(W), shells.n_rays)):
            rho, out = shells.middle[j], shells.edges[j + 1]
            e = rho * chord
            s = 0.5 * (out - shells.edges[j]) + e
            w, h = W[ring], H[ring]
            eigenvalues = np.linalg.eigvalsh(h)
            pull = np.einsum("ij,ij->i", g[ring], w)
            turned = np.linalg.norm(g[ring] + np.einsum("ijk,ik->ij", h, w), axis=1)
            bend = np.maximum(eigenvalues[:, -1], 0.0)
            rest = 0.5 * third(out) * s**2 * out
            if not (pull + turned * s + bend * s**2 + rest < _MARGIN * pull).all():
                break
            across = np.linalg.norm(g[ring] - (pull / rho**2)[:, None] * w, axis=1)
            curve = np.abs(eigenvalues).max(axis=1) + third(out) * e
            curve -= pull / rho**2  # the sphere falls back from its tangent plane
            level = float((value[ring] + across * e + 0.5 * curve * e**2).max()) * scale
            level += 2.0 * self.density.error
            if level < best.level:
                best = Basin(start.mode, start.value, rho, level)
        return best

    def _variation(self, mode: Array, scale: float) -> _Variation:
        """How fast the Hessian can change within a distance of the mode."""
        parts = []
        for (t, third), Z, a in zip(
            self._tables, self.density.points, self.density.coef, strict=True
        ):
            mass = np.zeros(len(t))
            for rows in pieces(len(Z), _BLOCK):
                distance = np.linalg.norm(Z[rows] - mode, axis=1)
                at = (distance * ((1.0 - 1e-9) / t[1])).astype(np.intp)  # the entry below
                far = at >= _EVEN
                at[far] = np.searchsorted(t, distance[far], side="right") - 1
                mass += np.bincount(at, a[rows], len(t))
            used = np.flatnonzero(mass)
            parts.append((t, third, used, mass[used] / scale))
        return _Variation(parts)


def is_maximum(density: DensitySum, modes: Array) -> Array:
    """Whether each point is proved to be a strict local maximum."""
    if not len(modes):
        return np.zeros(0, dtype=bool)
    here = density.at(modes, exact=True)
    held = here.at_cusp & ~here.step.any(axis=1)
    balls = Prover(density).basins(modes, 0.0)
    return held | np.array([ball is not None for ball in balls])


@dataclass(frozen=True, eq=False)
class _Shells:
    """Samples between spheres about a mode, shell by shell."""

    edges: Array
    middle: Array
    samples: Array
    n_rays: int

    @classmethod
    def around(cls, ball: Basin, rays: Array, growth: float, farthest: float) -> _Shells:
        count = max(0, int(np.log(farthest / ball.radius) / np.log(growth)) + 1)
        edges = ball.radius * growth ** np.arange(count + 1)
        middle = 0.5 * (edges[1:] + edges[:-1])
        W = (middle[:, None, None] * rays).reshape(-1, rays.shape[1])
        return cls(edges, middle, ball.mode + W, len(rays))


@dataclass(frozen=True, eq=False)
class _Variation:
    """r -> sum_i a_i sup |D^3 k| over distances within r of |z_i - mode|."""

    parts: list[tuple[Array, _RangeMaximum, Array, Array]]  # of each group: t, |D^3 k|, bins, mass

    def __call__(self, r: float) -> float:
        total = 0.0
        for t, third, bins, mass in self.parts:
            low = np.searchsorted(t, np.maximum(t[bins] - r, 0.0), side="right") - 1
            above = t[np.minimum(bins + 1, len(t) - 1)] + r
            high = np.minimum(np.searchsorted(t, above, side="left"), len(t) - 1)
            total += float(mass @ third(low, high))
        return total


@dataclass(frozen=True, eq=False)
class _RangeMaximum:
    """The largest of the entries low, ..., high of a list, for many ranges at once."""

    levels: Array  # row j holds the maxima of 2^j entries

    @classmethod
    def of(cls, values: Array) -> _RangeMaximum:
        levels = [values]
        while 2 ** len(levels) <= len(values):
            half = 2 ** (len(levels) - 1)
            following = levels[-1].copy()
            following[:-half] = np.maximum(levels[-1][:-half], levels[-1][half:])
            levels.append(following)
        return cls(np.array(levels))

    def __call__(self, low: Array, high: Array) -> Array:
        level = np.log2(high - low + 1).astype(np.intp)
        first, last = self.levels[level, low], self.levels[level, high + 1 - 2**level]
        return np.asarray(np.maximum(first, last))


def _third_derivatives(program: Program, length: float) -> tuple[Array, _RangeMaximum]:
    """Distances t, and the third derivative of k(|z|^2) along the steepest line at distance t.

    Along a unit vector whose inner product with z is s it is 12 k'' s + 8 k''' s^3, |s| <= t.
    """
    even = length * _FINE * np.arange(_EVEN)
    t = np.concatenate([even, even[-1] * np.geomspace(1.0 + 1.0 / _EVEN, 1e6, 2000)])
    with np.errstate(all="ignore"):
        jet = evaluate(program.profile, [t * t], 2)
        first, second = (np.broadcast_to(j, t.shape) for j in (jet.first[0], jet.second[0][0]))
        third = np.gradient(second, t) / np.maximum(2.0 * t, t[1])
        s = np.sqrt(np.clip(np.nan_to_num(-second / (2.0 * third), nan=0.0), 0.0, t**2))
        size = np.maximum(*(np.abs(12.0 * second * x + 8.0 * third * x**3) for x in (s, t)))
        # a kink, as at the edge of a window: the first derivative jumps
        gained = np.diff(t * t) * np.maximum(np.abs(second[1:]), np.abs(second[:-1]))
        kink = np.abs(np.diff(first)) > 2.0 * gained + 1e-9 * np.abs(first[1])
    broken = np.isnan(size) | np.append(kink, False) | np.insert(kink, 0, False)
    return t, _RangeMaximum.of(_SLACK * np.where(broken, np.inf, size))


def _directions(d: int, cells: int) -> tuple[Array, float]:
    """Unit vectors, and how far any other one is from the nearest at most.

    The middles of the cells of a grid on the faces of a cube, pulled in to the sphere, which brings
    no two points of the cube farther apart.
    """
    if d == 1:
        return np.array([[1.0], [-1.0]]), 0.0
    ticks = (2.0 * np.arange(cells) + 1.0) / cells - 1.0
    face = np.stack(np.meshgrid(*[ticks] * (d - 1), indexing="ij"), axis=-1).reshape(-1, d - 1)
    sides = [np.insert(face, axis, sign, axis=1) for axis in range(d) for sign in (-1.0, 1.0)]
    rays = np.concatenate(sides)
    return rays / np.linalg.norm(rays, axis=1, keepdims=True), float(np.sqrt(d - 1) / cells)
