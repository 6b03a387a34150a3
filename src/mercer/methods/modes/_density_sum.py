"""A kernel density as a sum of groups of kernels, with the step of mean shift at any point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine import (
    Dense,
    Distance,
    Fields,
    LinearMap,
    Matrix,
    PreparedSum,
    Program,
    Scales,
    apply_all,
    evaluate,
    n_columns,
    prepare,
)
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.rigor._derivative_bounds import cusp_slope
from mercer.space import Element

_ENTRIES = 1 << 22  # of Hessians in memory at a time: 32 MB
_STEPS = 10  # evaluations of a start, about, until it is retired


class DensityState(NamedTuple):
    """The density at some points, its derivatives, and the step of mean shift from there."""

    value: Array  # (m,); times exp(shift) where it underflows
    gradient: Array  # (m, d), in units of exp(shift)
    step: Array  # (m, d)
    stiffness: Array  # (m,), in units of exp(shift): step = gradient / stiffness off the cusps
    hessian: Array | None  # (m, d, d)
    shift: Array  # (m,)
    cusp_slope: Array  # (m,), in units of exp(shift): > 0 on a data point where f has a cusp

    @property
    def at_cusp(self) -> Array:
        """Rows on a data point where the density has a cusp."""
        return np.asarray(self.cusp_slope > 0.0)

    @property
    def is_held(self) -> Array:
        """Rows on a data point whose cusp outweighs the pull of the other points: modes."""
        return np.asarray(self.at_cusp & ~self.step.any(axis=1))

    @property
    def density(self) -> Array:
        """The true values."""
        return np.asarray(self.value * np.exp(self.shift))

    def newton_step(self) -> Array:
        """-H^-1 g where the Hessian is negative definite, infinite elsewhere; shape (m, d)."""
        assert self.hessian is not None
        out = np.full(self.gradient.shape, np.inf)
        rows = np.flatnonzero(_is_negative_definite(self.hessian))
        if rows.size:
            g = -self.gradient[rows, :, None]
            out[rows] = np.linalg.solve(self.hessian[rows], g)[:, :, 0]
        return out

    def is_top(self, distance: float) -> Array:
        """Whether the Hessian is negative definite and Newton's step no longer than a distance."""
        return np.asarray(np.linalg.norm(self.newton_step(), axis=1) <= distance)


def _is_negative_definite(H: Array) -> Array:
    """Of each of some symmetric matrices; by Cholesky's factors, cheaper than eigenvalues."""
    from scipy.linalg import lapack

    if H.shape[1] <= 4:  # calls one by one cost more than all eigenvalues together
        return np.asarray(np.linalg.eigvalsh(H)[:, -1] < 0.0)
    return np.array([lapack.dpotrf(-matrix)[1] == 0 for matrix in H], dtype=bool)


@dataclass(frozen=True, eq=False)
class DensitySum:
    """f(z) = sum over groups of sum_i a_i k(|z_i - z|^2), a_i > 0, all profiles convex.

    Attributes
    ----------
    kernels : of the groups, behind `maps`
    programs : one for each group, of one squared distance without maps
    points : the z_i of each group
    coef : the a_i of each group
    maps : what takes data x to z = A x, A invertible
    dim : the number of columns of the data
    tolerance : the error of sums, as a share of their largest possible value
    n_queries : how many points are climbed from
    log_unit : the logarithm of what values have to be multiplied by
    """

    kernels: tuple[Kernel, ...]
    programs: tuple[Program, ...]
    points: tuple[Array, ...]
    coef: tuple[Array, ...]
    maps: tuple[LinearMap, ...]
    dim: int
    tolerance: float
    n_queries: int
    log_unit: float

    @classmethod
    def of(cls, density: Any, n_queries: int | None = None) -> DensitySum:
        """From an element, or anything that has `elements`."""
        whole = isinstance(density, Element)
        elements = (density,) if whole else tuple(density.elements)
        parts = [_group(element) for element in elements]
        logs = np.zeros(1) if whole else density.log_scales
        unit = float(logs.max())
        maps = parts[0][3]
        if any(part[3] != maps for part in parts[1:]):
            raise InputError("the elements of a density must measure distances alike")
        n = sum(len(part[1]) for part in parts)
        return cls(
            tuple(element.kernel for element in elements),
            tuple(part[0] for part in parts),
            tuple(part[1] for part in parts),
            tuple(part[2] * np.exp(log - unit) for part, log in zip(parts, logs, strict=True)),
            maps,
            n_columns(elements[0].points),
            float(np.clip(1e-3 / n, 1e-10, 1e-8)),
            n if n_queries is None else n_queries,
            unit,
        )

    def forth(self, X: Array) -> Array:
        """Where data points lie in z."""
        return np.ascontiguousarray(apply_all(self.maps, X), dtype=np.float64)

    def back(self, Z: Array) -> Array:
        """The data points of z."""
        for step in reversed(self.maps):
            A = step.array
            Z = Z * A if isinstance(step, Scales) else np.linalg.solve(A, Z.T).T
        return np.ascontiguousarray(Z)

    def pulled(self, H: Array) -> Array:
        """Hessians in x, of those in z: A' H A."""
        for step in reversed(self.maps):
            H = step.pull(np.swapaxes(step.pull(H, self.dim), -1, -2), self.dim)
        return H

    @cached_property
    def length(self) -> float:
        """The length over which the density changes: that of the narrowest profile at zero.

        sqrt(k(0) / -2 k'(0)), the length scale of a Gaussian; for cusps k(0) / |slope|.
        """
        return min(own_length(program) for program in self.programs)

    @cached_property
    def mass(self) -> float:
        """sum_i a_i k(0): no value of the density is larger."""
        at_zero = [float(_profile(p, np.zeros(1))[0]) for p in self.programs]
        return float(sum(k * a.sum() for k, a in zip(at_zero, self.coef, strict=True)))

    @property
    def hessian_rows(self) -> int:
        """How many Hessians fit into the memory that one call may take."""
        return max(1, _ENTRIES // self.dim**2)

    @property
    def error(self) -> float:
        """A bound on the error of values that are not exact."""
        return self.tolerance * self.mass

    def nearest_point(self, Z: Array) -> Array:
        """The data point nearest to each row."""
        tree, points = self._tree
        return np.asarray(points[tree.query(Z)[1]])

    @cached_property
    def _tree(self) -> tuple[Any, Array]:
        from scipy.spatial import cKDTree

        points = np.concatenate(self.points)
        return cKDTree(points), points

    @property
    def has_cusps(self) -> bool:
        """Whether a slope is infinite at the points."""
        return any(any(p.cusps) for p in self.programs)

    def at(self, Z: Array, order: int = 1, *, exact: bool = False) -> DensityState:
        """The density, and the step sum_i w_i (z_i - z) / sum_i w_i with w_i = -2 a_i k'(u_i).

        At a point of the data, where a cusp has an infinite slope, the step is that of Vardi and
        Zhang: with R = sum of w_i (z_i - z) over the other points, and eta the slope of the cusp,
        it is max(0, 1 - eta / |R|) R / sum_i w_i.
        """
        parts = [
            f.fields(Z, order=order, shifted=True, exact=exact).only_element() for f in self._sums
        ]
        value, gradient, slope, hessian, shift = _added(parts, order)
        eta = np.zeros(1)
        for program, f in zip(self.programs, parts, strict=True):
            if f.cusp is not None:
                eta = eta + cusp_slope(program) * f.cusp
        stiffness = -2.0 * slope
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(stiffness[:, None] > 0.0, gradient / stiffness[:, None], 0.0)
        eta = np.broadcast_to(eta, shift.shape)
        if self.has_cusps:
            eta = eta * np.exp(-shift)
            step *= _freed(eta, np.linalg.norm(gradient, axis=1))[:, None]
        H = hessian if order == 2 else None
        return DensityState(value, gradient, step, stiffness, H, shift, eta)

    @cached_property
    def _sums(self) -> list[PreparedSum]:
        return [
            prepare(
                p,
                Z,
                Dense(a[:, None]),
                n_queries=_STEPS * self.n_queries,
                tolerance=self.tolerance,
                slopes=True,
            )
            for p, Z, a in zip(self.programs, self.points, self.coef, strict=True)
        ]


def _added(parts: list[Fields], order: int) -> tuple[Array, Array, Array, Any, Array]:
    """Value, gradient, slope and Hessian of a sum of elements, in units of exp(shift)."""
    if len(parts) == 1:
        (f,) = parts
        return f.value, f.gradient, f.slopes[0], f.hessian, f.shift  # type: ignore[return-value]
    shift = np.max([f.shift for f in parts], axis=0)
    value, gradient, slope, hessian = (np.zeros(1) for _ in range(4))
    for f in parts:
        scale = np.exp(f.shift - shift)
        value = value + scale * f.value
        gradient = gradient + scale[:, None] * f.gradient
        slope = slope + scale * f.slopes[0]
        if order == 2:
            hessian = hessian + scale[:, None, None] * f.hessian
    return value, gradient, slope, hessian, shift


def _group(element: Element) -> tuple[Program, Array, Array, tuple[LinearMap, ...]]:
    """Program without maps, mapped points and coefficients of one element, and the maps."""
    kernel = element.kernel
    if kernel.program.kind != "radial" or kernel.flags.convex_profile is not True:
        raise InputError(
            "mean shift needs a kernel with a convex, decreasing profile of one squared distance, "
            f"which {kernel!r} is not known to be; mercer.preimage climbs any kernel"
        )
    if element.batch is not None:
        raise InputError("mean shift climbs one element; pick one of the batch, psi[j]")
    if is_sparse(element.points):
        raise InputError("mean shift needs dense points; use X.toarray()")
    coef = np.asarray(element.coef.tile(slice(None), slice(None)), dtype=np.float64)[:, 0]
    if (coef < 0).any() or not (coef > 0).any():
        raise InputError(
            "mean shift needs coefficients >= 0, not all zero; mercer.preimage climbs elements "
            "with coefficients of both signs"
        )
    (variable,) = kernel.program.variables
    assert isinstance(variable, Distance)
    maps = tuple(variable.maps)
    d = n_columns(element.points)
    for step in maps:
        square = isinstance(step, Scales) or (
            isinstance(step, Matrix) and step.array.shape[0] == step.array.shape[1]
        )
        if not square or (isinstance(step, Matrix) and np.linalg.matrix_rank(step.array) < d):
            raise InputError(
                f"the kernel does not see every direction of the data ({step!r}), so the density "
                "has no modes; leave those columns out of the data instead"
            )
    used = coef > 0
    X = np.asarray(element.points, dtype=np.float64)[used]
    Z = np.ascontiguousarray(apply_all(maps, X), dtype=np.float64)
    program = replace(kernel.program, variables=(Distance(),))
    own = _profile(program, np.zeros(1))
    if _slope_at(program, _squared_length(program, own)) >= 0.0:
        raise InputError(
            f"the density of {kernel!r} is flat, so there is nothing to climb; the mean shift with "
            "a flat kernel climbs the density of Epanechnikov"
        )
    return program, Z, coef[used], maps  # type: ignore[return-value]


def _profile(program: Program, u: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.broadcast_to(evaluate(program.profile, [u]).value, u.shape)


def _slope_at(program: Program, u: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.ravel(evaluate(program.profile, [np.array([u])], 1).first[0])[0])


def _squared_length(program: Program, own: Array) -> float:
    """A squared distance well inside the profile: where it has fallen a little."""
    u = np.logspace(-30.0, 30.0, 2401)
    fallen = np.flatnonzero(_profile(program, u) < (1.0 - 1e-3) * own[0])
    return float(u[fallen[0]]) if fallen.size else 1.0


def own_length(program: Program) -> float:
    own = _profile(program, np.zeros(1))
    if any(program.cusps):
        return float(own[0]) / cusp_slope(program)
    return float(np.sqrt(own[0] / (-2.0 * _slope_at(program, 0.0))))


def _freed(held: Array, pull: Array) -> Array:
    """1 - eta / |R| where that is positive: the share of a step that a cusp does not hold back."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(held > 0.0, np.maximum(0.0, 1.0 - held / pull), 1.0)
    return np.nan_to_num(share, nan=0.0)
