"""Pre-image problems: elements, objective, constraint, length scales, and starting points."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_points, is_sparse, plain
from mercer._random import as_generator
from mercer.engine import Program, dense, n_columns, n_rows, pieces
from mercer.engine.pairs._distances import squared_norms
from mercer.engine.programs._program import maps_of
from mercer.exceptions import InputError
from mercer.preimages._constraint import Constraint
from mercer.preimages._driver import State, row_norms, row_products, smallest_subgradients
from mercer.preimages._objective import ElementSums, Nearest, Objective
from mercer.rigor import cusp_slope, gradient_bound
from mercer.space import Element, feature

_TRIED = 2048  # points of an element that are tried as starts


class Problem:
    """A batch of elements with points in float64, an objective and a constraint."""

    def __init__(self, psi: Element, objective: Objective, constraint: Constraint) -> None:
        self.psi, self.objective, self.constraint = psi, objective, constraint
        self.kernel, self.program = psi.kernel, psi.kernel.program
        self.batch, self.dim = len(psi), n_columns(psi.points)
        self.sums = ElementSums(psi)
        self._maps: list[Any] = [maps_of(v) for v in self.program.variables] or [()]
        self.is_smooth = psi.kernel.domain.is_vector and self.program.has_derivatives

    def part(self, rows: Any) -> Problem:
        """The problem for some of the elements, given as a slice or an array of indices."""
        index = np.arange(self.batch)[rows]
        if len(index) == self.batch:
            return self
        psi = Element(self.kernel, self.psi.points, self.psi.coef.columns(index), len(index))
        return Problem(psi, self.objective, self.constraint.part(index))

    def at(self, points: Array, owners: Array, order: int = 1) -> State:
        """The objective of element owners[j] at row j, and derivatives in the free coordinates.

        At a cusp the gradient is the subgradient of smallest norm.
        """
        state = self.objective.at(self.sums, points, owners, min(order, self.objective.max_order))
        if state.cusp is not None and order:
            state = self._shrunk(state)
        if not order or self.constraint.is_free:
            return state
        return self.constraint.restrict(state, owners)

    @cached_property
    def offset(self) -> float:
        """k(x, x)/2 where it is constant and left out of the objective, else 0."""
        if not self.program.is_translation_invariant or not isinstance(self.objective, Nearest):
            return 0.0
        return 0.5 * float(engine.diagonal(self.program, self.psi.points[:1])[0])

    def precondition(self, gradient: Array) -> Array:
        """The gradient in the metric of a kernel k(Ax, Ay): times (A'A)^+."""
        inverse = self._inverse_metric
        return gradient if inverse is None else np.asarray(gradient @ inverse)

    def fixed_point_step(self, state: State) -> Array:
        """-gradient / stiffness in the metric of the kernel: the published step, of either sign."""
        return np.asarray(-self.precondition(state.gradient) / state.stiffness[:, None])

    def shortened(self, step: Array, points: Array, length: float, where: Any = True) -> Array:
        """Steps cut to a length, or to half the way to the nearest point of psi if that is longer.

        `where` is a mask of the rows that may be cut.
        """
        norm = row_norms(self.image(step))
        long = np.flatnonzero((norm > length) & np.isfinite(norm) & where)
        if not long.size:
            return step
        gap = row_norms(self.image(points[long] - self.nearest_point(points[long])))
        factor = np.ones(len(step))
        factor[long] = np.minimum(1.0, np.maximum(length, 0.5 * gap) / norm[long])
        return np.asarray(step * factor[:, None])

    def nearest_point(self, points: Array) -> Array:
        """The point of the element nearest to each row, as a radial kernel measures distances."""
        X = self.psi.points
        radial = self.program.kind == "radial"
        variables = self.program.variables if radial else (engine.Distance(),)
        distance = Program(variables, engine.Var(0, nonnegative=True))
        out = np.empty_like(points)
        for rows in pieces(len(points), max(1, (1 << 22) // n_rows(X))):
            nearest = np.argmin(engine.gram(distance, points[rows], X), axis=1)
            out[rows] = dense(X[nearest])
        return out

    @cached_property
    def length(self) -> float:
        return kernel_length(self.program)

    @property
    def nudge(self) -> float:
        """A small step: a hundredth of the kernel's length, or of the spread of the points."""
        return 0.01 * (self.length if np.isfinite(self.length) else self.spread)

    @cached_property
    def spread(self) -> float:
        """The spread of the points; if they are one point, its distance from 0."""
        X = self.psi.points
        return spread(X) or float(np.linalg.norm(dense(X[:1]))) or 1.0

    def image(self, vectors: Array) -> Array:
        """The vectors A v that the kernel measures; several variables side by side."""
        return np.concatenate([engine.apply_all(maps, vectors) for maps in self._maps], axis=1)

    @cached_property
    def extent(self) -> tuple[Array, float]:
        """The mean of the points Ax that the kernel measures, and their reach.

        The reach is the largest distance from the mean (a bound on it for sparse points), plus the
        length of the kernel. Kernels that are not profiles of distances have an origin: their reach
        is measured from there as well.
        """
        means, reaches = [], []
        for maps in self._maps:
            Z: Any = engine.apply_all(maps, self.psi.points)
            mean = np.asarray(Z.mean(axis=0), dtype=float).ravel()
            if is_sparse(Z):
                largest = np.sqrt(Z.multiply(Z).sum(axis=1).max()) + np.linalg.norm(mean)
            else:
                largest = np.linalg.norm(Z - mean, axis=1).max()
            means.append(mean)
            reaches.append(float(largest))
        middle, reach = np.concatenate(means), float(np.linalg.norm(reaches))
        if self.program.is_translation_invariant:
            reach += self.length if np.isfinite(self.length) else 0.0
        else:
            reach = max(reach, float(np.linalg.norm(middle)))
        return middle, reach or 1.0

    @cached_property
    def _inverse_metric(self) -> Array | None:
        if len(self._maps) != 1 or not self._maps[0]:
            return None
        image = self.image(np.eye(self.dim))
        return np.asarray(np.linalg.pinv(image @ image.T, hermitian=True))

    @cached_property
    def gradient_bounds(self) -> Array:
        """A bound on the gradient of each element, with which gradients are compared."""
        bound = np.asarray(gradient_bound(self.psi), dtype=float)
        if not np.isfinite(bound).all():  # infinite at the points
            bound = self.psi.coef.sizes
            if self.program.kind == "radial":  # 2 r |k'(r^2)| at the typical distance r
                X = self.image(dense(self.psi.points))
                r2 = float(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))) or 1.0
                slope = engine.profile_at(self.program.profile, np.array([r2]), 1)[1]
                bound = bound * 2.0 * r2**0.5 * abs(slope)
        return np.asarray(np.maximum(bound, np.finfo(float).tiny))

    @cached_property
    def has_point_cusps(self) -> bool:
        """Whether the objective has cusps, and only at points of the element."""
        cusps = [v for v, c in zip(self.program.variables, self.program.cusps, strict=True) if c]
        plain = self.program.kind == "radial" or all(v == engine.Distance() for v in cusps)
        return bool(cusps) and plain

    def _shrunk(self, state: State) -> State:
        """The state with the smallest subgradient at points x_j with a cusp and a_j > 0."""
        rows = np.flatnonzero(state.cusp > 0)
        if not rows.size or not self.has_point_cusps:
            return state
        pull = state.cusp[rows] * self._cusp_slopes(state.points[rows])
        rest = state.gradient[rows]
        norm = np.sqrt(np.maximum(row_products(rest, self.precondition(rest)), 0.0))
        gradient = np.array(state.gradient)
        gradient[rows] = smallest_subgradients(rest, norm, pull * np.exp(-state.shift[rows]))
        return replace(state, gradient=gradient)

    def _cusp_slopes(self, points: Any) -> Array:
        """eta = lim (k(x, x) - (k(x, x + h) + k(x, x - h)) / 2) / |h|, extrapolated to h = 0."""
        if self.program.kind == "radial":
            return np.full(n_rows(points), cusp_slope(self.program))
        from scipy.sparse import csr_array

        own, phi = self.kernel.diag(points), feature(self.kernel, points)
        size = 1e-5 * (1.0 + np.sqrt(squared_norms(points)))
        rows = np.arange(len(size))
        h = csr_array((size, (rows, np.zeros_like(rows))), shape=points.shape)  # the first axis

        def slope(scale: float) -> Array:
            sides = [phi.fields(points + t * scale * h, paired=True).value for t in (1.0, -1.0)]
            return np.asarray((own - 0.5 * (sides[0] + sides[1])) / (scale * size))

        return 2.0 * slope(0.5) - slope(1.0)


def spread(X: Any) -> float:
    mean = np.asarray(X.mean(axis=0)).reshape(-1)
    squares = (
        X.power(2).sum() - n_rows(X) * (mean @ mean) if is_sparse(X) else ((X - mean) ** 2).sum()
    )
    return float(np.sqrt(max(squares / n_rows(X), 0.0)))


def kernel_length(program: Program) -> float:
    """The length over which a radial kernel falls; infinite if it has none.

    sqrt(-k(0) / 2 k'(0)), which is the length scale of a Gaussian; or, with a cusp of slope eta at
    distance zero, k(0) / eta, the length scale of a Laplace kernel.
    """
    if program.kind != "radial":
        return np.inf
    top = program.value_at_zero
    if any(program.cusps):
        eta = cusp_slope(program)
        return top / eta if top > 0.0 and 0.0 < eta < np.inf else np.inf
    slope = program.derivatives_at_zero[0][0]
    if not (np.isfinite(slope) and slope < 0.0 < top):
        return np.inf
    return float(np.sqrt(-0.5 * top / slope))


def given_starts(start: Any, batch: int, dim: int) -> Array:
    """Check the user's starts: (d,), (b, d), or (s, b, d) for several starts per element."""
    array = np.asarray(plain(start, "start"))
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim == 2:
        array = array[None, :, :]
    if array.ndim != 3 or array.shape[2] != dim or array.shape[1] not in (1, batch):
        raise InputError(
            f"start must have shape ({dim},), ({batch}, {dim}) or (s, {batch}, {dim}), got "
            f"{np.shape(start)}"
        )
    flat = as_points(array.reshape(-1, dim), "start").astype(float)
    return np.broadcast_to(flat.reshape(array.shape), (array.shape[0], batch, dim))


def default_starts(problem: Problem, count: int, random_state: Any) -> Array:
    """The weighted mean and the `count` - 1 best points of the element that lie apart, (s, b, d).

    Up to 2,048 points are tried, drawn at random if there are more.
    """
    X, n = problem.psi.points, n_rows(problem.psi.points)
    if n > _TRIED:
        X = X[np.sort(as_generator(random_state).choice(n, _TRIED, replace=False))]
    X = dense(X)
    own = engine.diagonal(problem.program, X)
    values = problem.psi.fields(X).value - 0.5 * own[:, None]  # (n, b)
    chosen = _apart(X, values, max(1, count - 1))
    if count == 1:
        return chosen
    mean = _weighted_mean(problem)
    known = np.isfinite(mean).all(axis=1, keepdims=True)
    return np.concatenate([chosen, np.where(known, mean, chosen[0])[None]])


def _apart(X: Array, values: Array, count: int) -> Array:
    """For each element its best point, then the best that is far from it, and so on, (s, b, d).

    Far means farther than half the root mean squared distance of the points from their mean; if no
    such point is left, the best one is repeated.
    """
    Z = X - X.mean(axis=0)
    squares = np.sum(Z**2, axis=1)
    limit = 0.25 * float(np.mean(squares))
    left = np.array(values, dtype=float)
    out = np.empty((count, values.shape[1], X.shape[1]))
    for k in range(count):
        none = ~np.isfinite(left).any(axis=0)
        best = np.argmax(np.where(none, values, left), axis=0)
        out[k] = X[best]
        if k + 1 < count:
            gap = squares[:, None] + squares[best] - 2.0 * Z @ Z[best].T
            left[gap <= limit] = -np.inf
            left[best, np.arange(len(best))] = -np.inf
    return out


def _weighted_mean(problem: Problem) -> Array:
    """sum_i a_i x_i / sum_i a_i per element; not finite where the sum is not positive."""
    X, coef = problem.psi.points, problem.psi.coef
    total = coef.weigh(np.ones((n_rows(X), 1)))[0]
    if is_sparse(X):
        sums = np.asarray(X.T @ coef.tile(slice(None), slice(None)))
    else:
        sums = coef.weigh(engine.as_float64(X))
    mean = (sums / np.where(total > 0, total, np.nan)).T
    return np.asarray(mean, dtype=float)
