"""The density that mean shift climbs, where it measures distances without maps."""

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
from mercer.space import Element

_STEPS = 10  # evaluations of a start, about, until it is retired
_TINY = 1e-8  # of the kernel's own length: where the slope of a cusp is read off


class Ascent(NamedTuple):
    """The density at some points, and where the mean shift goes from there."""

    value: Array  # (m,); times exp(shift) where it underflows
    gradient: Array  # (m, d), in units of exp(shift)
    step: Array  # (m, d)
    stiffness: Array  # (m,), in units of exp(shift): step = gradient / stiffness off the cusps
    hessian: Array | None  # (m, d, d)
    shift: Array  # (m,)
    at_cusp: Array  # (m,): on a data point at which the slope is infinite

    @property
    def density(self) -> Array:
        """The true values."""
        return np.asarray(self.value * np.exp(self.shift))


@dataclass(frozen=True, eq=False)
class Climbed:
    """f(z) = sum over groups of sum_i a_i k(|z_i - z|^2), a_i > 0, all profiles convex.

    Attributes
    ----------
    programs : one for each group, of one squared distance without maps
    points : the z_i of each group
    coef : the a_i of each group
    maps : what takes data x to z = A x, A invertible
    dim : the number of columns of the data
    tolerance : the error of sums, as a share of their largest possible value
    n_queries : how many points are climbed from
    log_unit : the logarithm of what values have to be multiplied by
    """

    programs: tuple[Program, ...]
    points: tuple[Array, ...]
    coef: tuple[Array, ...]
    maps: tuple[LinearMap, ...]
    dim: int
    tolerance: float
    n_queries: int
    log_unit: float

    @classmethod
    def of(cls, density: Any, n_queries: int | None = None) -> Climbed:
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
    def error(self) -> float:
        """A bound on the error of values that are not exact."""
        return self.tolerance * self.mass

    @property
    def has_cusps(self) -> bool:
        """Whether a slope is infinite at the points."""
        return any(any(p.cusps) for p in self.programs)

    def at(self, Z: Array, order: int = 1, *, exact: bool = False) -> Ascent:
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
                eta = eta + _cusp_slope(program) * f.cusp
        stiffness = -2.0 * slope
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(stiffness[:, None] > 0.0, gradient / stiffness[:, None], 0.0)
        if self.has_cusps:
            held = eta * np.exp(-shift) if np.any(shift) else eta
            step *= _freed(held, np.linalg.norm(gradient, axis=1))[:, None]
        H = hessian if order == 2 else None
        at_cusp = np.broadcast_to(eta > 0.0, shift.shape)
        return Ascent(value, gradient, step, stiffness, H, shift, at_cusp)

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
        return float(own[0]) / _cusp_slope(program)
    return float(np.sqrt(own[0] / (-2.0 * _slope_at(program, 0.0))))


def _cusp_slope(program: Program) -> float:
    """|dk/dr| at r = 0 of a profile with a cusp; 0 of a smooth one."""
    if not any(program.cusps):
        return 0.0
    r = _TINY * np.sqrt(_squared_length(program, _profile(program, np.zeros(1))))
    return float(-2.0 * r * _slope_at(program, r * r))


def _freed(held: Array, pull: Array) -> Array:
    """1 - eta / |R| where that is positive: the share of a step that a cusp does not hold back."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(held > 0.0, np.maximum(0.0, 1.0 - held / pull), 1.0)
    return np.nan_to_num(share, nan=0.0)
