"""Ranges of kernel sums over boxes: -sum_i a_i k(x_i, x) with derivatives, rounding included."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine import Columns, Distance, Dot, Map, Maps, Matrix, Norm, Program, Scales
from mercer.engine.programs._jets import Jet, is_zero, plus, square, times
from mercer.engine.programs._program import maps_of
from mercer.rigor._intervals import EPS, Interval, as_interval, up
from mercer.rigor._profile_enclosure import enclose, profile_ranges_in_distance


@dataclass(frozen=True)
class Enclosure:
    """Ranges over m boxes for n terms: values (m, n), derivatives along the free axes."""

    value: Interval
    first: tuple[Any, ...] = ()
    second: dict[tuple[int, int], Any] | None = None


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms -a_i k(x_i, x) of an objective."""

    program: Program
    points: Array  # (n, d)
    coef: Array  # (n,), positive ones first
    weight: Array  # (n,): sums of |a| over merged points, for the rounding slack
    axes: tuple[int, ...]  # the coordinates that are free

    @classmethod
    def merged(cls, program: Program, points: Any, coef: Array) -> Terms:
        """Terms of all axes at distinct points, those with coefficient zero left out."""
        points = np.asarray(points.toarray() if is_sparse(points) else points, dtype=float)
        used = coef != 0 if coef.any() else np.arange(len(coef)) == 0
        X, group, count = np.unique(
            points[used] + 0.0, axis=0, return_inverse=True, return_counts=True
        )
        a = np.bincount(group.reshape(-1), coef[used], len(X))
        weight = np.bincount(group.reshape(-1), np.abs(coef[used]), len(X))
        # a weight other than |a| tells `weighed` that the coefficient is rounded
        weight = np.where(count > 1, weight * (1 + 4 * EPS * count), weight)
        order = np.argsort(-a, kind="stable")
        return cls(program, X[order], a[order], weight[order], tuple(range(X.shape[1])))

    @cached_property
    def metrics(self) -> tuple[tuple[Array, Array], ...]:
        """B = A'A of each variable, and a bound on its rounding error."""
        dim = self.points.shape[1]
        return tuple(_metric(maps_of(v), dim) for v in self.program.variables)

    @property
    def is_radial(self) -> bool:
        """Whether the profile is one of a single distance."""
        return self.program.kind == "radial"

    def at(self, low: Array, high: Array, order: int) -> Enclosure:
        """Ranges over the boxes low <= x <= high, shape (m, d)."""
        measured = [self.variable(v, low, high, order) for v in range(len(self.program.variables))]
        jet = enclose(self.program.profile, [u for u, _ in measured], order)
        shape = (len(low), len(self.coef))
        value = _broadcast(jet.value, shape).known()
        if not order:
            return Enclosure(value)
        slopes = [s for _, s in measured]
        first = tuple(self._first_derivative(jet, slopes, j, shape) for j in range(len(self.axes)))
        if order == 1:
            return Enclosure(value, first)
        touching = not self.program.is_smooth and bool(np.any(measured[0][0].lo <= 0))
        radial = self._near_zero(measured[0][0], jet) if touching else None
        second = {
            (j, i): self._second_derivative(jet, slopes, (j, i), radial, shape)
            for j in range(len(self.axes))
            for i in range(j, len(self.axes))
        }
        return Enclosure(value, first, second)

    def weighed(self, terms: Any, mask: Array | None = None) -> Interval:
        """The range of -sum_i a_i t_i for terms with the given ranges (m, n), rounding included."""
        if not isinstance(terms, Interval):
            return Interval(0.0, 0.0)
        if mask is not None:
            terms = terms.where(mask)
        split = int(np.count_nonzero(self.coef > 0))
        a, b = self.coef[:split], -self.coef[split:]
        for_lo = np.concatenate([terms.hi[:, :split], terms.lo[:, split:]], axis=1)
        for_hi = np.concatenate([terms.lo[:, :split], terms.hi[:, split:]], axis=1)
        lo = for_lo[:, split:] @ b - for_lo[:, :split] @ a
        hi = for_hi[:, split:] @ b - for_hi[:, :split] @ a
        extra: Any = 0.0
        if self._merged.any():  # the coefficient itself is rounded
            extra = terms.size[:, self._merged] @ self.weight[self._merged]
        relative = (len(self.coef) + 20) * EPS
        low = lo - relative * (np.abs(for_lo) @ self.weight + extra)
        high = hi + relative * (np.abs(for_hi) @ self.weight + extra)
        return Interval(np.where(np.isinf(lo), lo, low), np.where(np.isinf(hi), hi, high)).known()

    def gradient(self, ranges: Enclosure, mask: Array | None = None) -> Interval:
        """The range of the gradient of the sum, shape (m, k)."""
        rows = len(ranges.value.lo)
        return Interval.stacked([self.weighed(x, mask) for x in ranges.first], rows)

    def hessian(self, ranges: Enclosure, mask: Array | None = None) -> Interval:
        """The range of the Hessian of the sum, shape (m, k, k)."""
        k, second, rows = len(self.axes), ranges.second or {}, len(ranges.value.lo)
        found = {pair: self.weighed(x, mask) for pair, x in second.items()}
        entries = [found[min(i, j), max(i, j)] for i in range(k) for j in range(k)]
        flat = Interval.stacked(entries, rows)
        return Interval(flat.lo.reshape(-1, k, k), flat.hi.reshape(-1, k, k))

    @cached_property
    def _merged(self) -> Array:
        return np.asarray(self.weight != np.abs(self.coef))

    def variable(
        self, index: int, low: Array, high: Array, order: int
    ) -> tuple[Interval, list[Any]]:
        """The range of a variable, and of its derivatives along the free axes."""
        X, d = self.points, self.points.shape[1]
        box = [Interval(low[:, j, None], high[:, j, None]) for j in range(d)]
        match self.program.variables[index]:
            case Distance(maps=maps):
                return self._squared(maps, [box[j] + (-X[:, j]) for j in range(d)], order)
            case Norm(of="row", maps=maps):
                return self._squared(maps, box, order)
            case Norm(maps=maps):
                own = [Interval(X[None, :, j], X[None, :, j]) for j in range(d)]
                return self._squared(maps, own, 0)[0], [0] * len(self.axes)
            case Dot():
                B, off = self.metrics[index]
                w, slack = X @ B, np.abs(X) @ (off + 8 * d * EPS * np.abs(B))
                side = Interval(w - slack, w + slack)
                t = functools.reduce(plus, (box[j] * side[None, :, j] for j in range(d)))
                return t, [side[None, :, j] for j in self.axes]
        raise AssertionError("checked by Global")  # pragma: no cover

    def _squared(self, maps: Maps, z: list[Interval], order: int) -> tuple[Interval, list[Any]]:
        """|A z|^2 and its derivatives 2 A'A z."""
        matrices, image = [], z
        for step in maps:
            matrices.append(_matrix(step, len(image)))
            image = [0.0 * z[0] if is_zero(x) else x for x in _product(matrices[-1], image)]
        u: Any = functools.reduce(plus, (part.square() for part in image), 0)
        if not order:
            return u, []
        for A in reversed(matrices):
            image = _product(A.T, image)
        return u, [times(2.0, image[j]) for j in self.axes]

    def _first_derivative(self, jet: Jet, slopes: list[list[Any]], j: int, shape: Any) -> Any:
        total: Any = 0
        for slope, along in zip(jet.first, slopes, strict=True):
            if along:
                total = plus(total, times(slope, along[j]))
        return _broadcast(total, shape)

    def _second_derivative(
        self,
        jet: Jet,
        slopes: list[list[Any]],
        pair: tuple[int, int],
        radial: Any,
        shape: Any,
    ) -> Any:
        """sum_v k_v v_jl + sum_vw k_vw v_j w_l."""
        j, i = pair
        total: Any = 0
        for v, variable in enumerate(self.program.variables):
            if isinstance(variable, Distance) or variable == Norm("row", maps_of(variable)):
                total = plus(total, times(jet.first[v], self._curve(v, pair)))
            for w in range(len(slopes)):
                a, b = slopes[v][j], slopes[w][i]
                both = square(a) if (v, j) == (w, i) else times(a, b)
                total = plus(total, times(jet.second[v][w], both))
        total = _broadcast(total, shape)
        return total if radial is None else self._second_near_cusp(total, jet, radial, pair, shape)

    def _curve(self, index: int, pair: tuple[int, int]) -> Any:
        """2 B_jl with its rounding; 0 where it vanishes."""
        j, i = (self.axes[i] for i in pair)
        B, off = self.metrics[index]
        return 2.0 * Interval(B[j, i] - off[j, i], B[j, i] + off[j, i]) if off[j, i] else 0

    def _near_zero(self, u: Interval, jet: Jet) -> Interval | None:
        """4 u k''(u) = q''(r) - 2 k'(u) for q(r) = k(r^2): bounded where k'' is not."""
        if not self.is_radial or not isinstance(jet.first[0], Interval):
            return None
        r = Interval(np.sqrt(u.lo) * (1 - 4 * EPS), np.sqrt(u.hi) * (1 + 4 * EPS))
        bend = profile_ranges_in_distance(self.program.profile, r, 2)[2]
        return bend + (-2.0) * jet.first[0]

    def _second_near_cusp(
        self, total: Any, jet: Jet, radial: Interval, pair: tuple[int, int], shape: Any
    ) -> Any:
        """Entries near a point where k'' is infinite: 2 k' B + 4 u k'' e e', |A'e|_j <= b_j."""
        j, i = (self.axes[i] for i in pair)
        B = self.metrics[0][0]
        reach = float(np.sqrt(B[j, j] * B[i, i])) * (1 + 1e-12)
        low = np.minimum(radial.lo, 0.0) if j == i else -radial.size
        high = np.maximum(radial.hi, 0.0) if j == i else radial.size
        other = plus(Interval(low, high) * reach, times(jet.first[0], self._curve(0, pair)))
        other = _broadcast(other, shape)
        fine = np.isfinite(total.lo) & np.isfinite(total.hi)
        return Interval(np.where(fine, total.lo, other.lo), np.where(fine, total.hi, other.hi))


def radial_slopes(t: Terms, scale: Array, reach: Array) -> tuple[Array, Array]:
    """Bounds on the least and the largest slope of r -> k(x_i, x_i + r v), in scaled coordinates.

    For a kernel of one distance, over scaled distances up to `reach` and all directions v.
    """
    axes = np.ix_(t.axes, t.axes)
    squared = np.linalg.eigvalsh(t.metrics[0][0][axes] / np.outer(scale, scale))
    least = np.sqrt(max(float(squared[0]) - 1e-12 * float(squared[-1]), 0.0)) * (1 - 1e-11)
    most = float(np.sqrt(squared[-1])) * (1 + 1e-11)
    r = Interval(np.zeros_like(reach), up(reach * most))
    fall = profile_ranges_in_distance(t.program.profile, r, 1)[1]
    return np.maximum(-fall.hi, 0.0) * least, np.abs(fall.lo) * most


def _broadcast(a: Any, shape: tuple[int, int]) -> Any:
    """An interval as arrays of the given shape; 0 stays."""
    return a if isinstance(a, int) else as_interval(a).broadcast(shape)


def _matrix(step: Map, dim: int) -> Array:
    """A linear map of R^dim as a matrix; its entries are rounded."""
    match step:
        case Scales():
            return np.diag(1.0 / step.array)
        case Columns():
            return np.eye(dim)[step.array]
    assert isinstance(step, Matrix)
    return step.array


def _product(A: Array, z: Sequence[Any]) -> list[Any]:
    """The range of A z, entry by entry."""
    image = []
    for row in A:
        total: Any = 0
        for j in np.flatnonzero(row).tolist():
            total = plus(total, z[j] if row[j] == 1.0 else times(z[j], float(row[j])))
        image.append(total)
    return image


def _metric(maps: Maps, dim: int) -> tuple[Array, Array]:
    """A'A for the product A of the maps, and a bound on the rounding error of each entry."""
    A = size = np.eye(dim)
    for step in maps:
        M = _matrix(step, len(A))
        A, size = M @ A, np.abs(M) @ size
    return A.T @ A, 32 * (1 + len(maps)) * dim * EPS * (size.T @ size)
