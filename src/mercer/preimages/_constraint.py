"""Constraints on pre-images: boxes, balls, the simplex, and fixed coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array, as_numbers, as_points, as_vector, positive
from mercer.exceptions import InputError
from mercer.kernels._parameters import checked
from mercer.preimages._driver import State


class Region(ABC):
    """A convex set of points, with its projection and its tangent cones.

    Both take a mask of the coordinates that are free; the others stay as they are.
    """

    @abstractmethod
    def project(self, X: Array, free: Array) -> Array:
        """The nearest points of the set, moving free coordinates only."""

    @abstractmethod
    def tangent(self, X: Array, V: Array, free: Array) -> Array:
        """The part of the directions V at X that stays in the set (projection onto the cone)."""

    def check(self, dim: int) -> None:  # noqa: B027 - most sets lie in any dimension
        """Raise unless the set lies in this dimension."""


@dataclass(frozen=True, eq=False)
class Box(Region):
    """Constraint: low <= x <= high in each coordinate; infinite where there is no bound.

    Parameters
    ----------
    low, high : float or array_like of shape (d,)

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Linear(), [[1.0, 3.0]], [1.0])
    >>> mc.preimage(psi, region=mc.Box(0.0, 2.0)).points
    array([[1., 2.]])
    """

    low: Any
    high: Any

    def __post_init__(self) -> None:
        low, high = as_numbers(self.low, "low"), as_numbers(self.high, "high")
        if max(low.ndim, high.ndim) > 1 or (low.ndim and high.ndim and low.shape != high.shape):
            raise InputError(
                f"low and high must be numbers, or have one entry per coordinate; got shapes "
                f"{low.shape} and {high.shape}"
            )
        if not (low <= high).all():  # nor is NaN allowed
            raise InputError("a box needs low <= high in every coordinate")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def project(self, X: Array, free: Array) -> Array:
        return np.where(free, np.clip(X, self.low, self.high), X)

    def tangent(self, X: Array, V: Array, free: Array) -> Array:
        """V without the components that point out of the box."""
        out = ((self.low >= X) & (V < 0)) | ((self.high <= X) & (V > 0))
        return np.where(out & free, 0.0, V)

    def check(self, dim: int) -> None:
        for bound in (self.low, self.high):
            if bound.ndim and bound.shape != (dim,):
                raise InputError(f"the box has bounds of shape {bound.shape} in {dim} dimensions")


@dataclass(frozen=True, eq=False)
@checked(centre=lambda value, name: as_vector(value, name).astype(float), radius=positive)
class Ball(Region):
    """Constraint: |x - centre| <= radius.

    Parameters
    ----------
    centre : array_like of shape (d,)
    radius : float

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Linear(), [[3.0, 4.0]], [1.0])
    >>> mc.preimage(psi, region=mc.preimages.Ball([0.0, 0.0], 1.0)).points.round(8)
    array([[0.6, 0.8]])
    """

    centre: Any
    radius: float

    def project(self, X: Array, free: Array) -> Array:
        """Scaled towards the centre; held coordinates leave a smaller ball for the others."""
        gap = X - self.centre
        left = self.radius**2 - np.sum(np.where(free, 0.0, gap) ** 2, axis=1)
        if (left < 0).any():
            raise InputError("the coordinates in `fixed` lie outside the ball")
        moving = np.where(free, gap, 0.0)
        norm = np.linalg.norm(moving, axis=1)
        factor = np.where(norm**2 > left, np.sqrt(left) / norm, 1.0)
        return np.where(free, self.centre + gap * factor[:, None], X)

    def tangent(self, X: Array, V: Array, free: Array) -> Array:
        """V on the sphere, without its outward component."""
        gap = X - self.centre
        on = np.linalg.norm(gap, axis=1) >= self.radius * (1 - 1e-12)
        normal = np.where(free, gap, 0.0)
        unit = np.nan_to_num(normal / np.linalg.norm(normal, axis=1, keepdims=True))
        outward = np.where(on, np.maximum(np.sum(V * unit, axis=1), 0.0), 0.0)
        return np.asarray(V - outward[:, None] * unit)

    def check(self, dim: int) -> None:
        if self.centre.shape != (dim,):
            raise InputError(f"the ball has {self.centre.size} coordinates, the points {dim}")


@dataclass(frozen=True)
@checked(total=positive)
class Simplex(Region):
    """Constraint: x >= 0, with coordinates that sum to `total` (proportions, histograms).

    Parameters
    ----------
    total : float

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Linear(), [[1.0, 0.6]], [1.0])
    >>> mc.preimage(psi, region=mc.preimages.Simplex()).points.round(8)
    array([[0.7, 0.3]])
    """

    total: float = 1.0

    def project(self, X: Array, free: Array) -> Array:
        """max(x - mu, 0) with mu such that the sum is right (sorting)."""
        held = np.sum(np.where(free, 0.0, X), axis=1)
        left = self.total - held
        if (left < 0).any() or (np.where(free, 0.0, X) < 0).any():
            raise InputError("the coordinates in `fixed` lie outside the simplex")
        return np.where(free, np.maximum(X - _water_level(X, free, free, left)[:, None], 0.0), X)

    def tangent(self, X: Array, V: Array, free: Array) -> Array:
        """Directions that sum to zero and do not lower a coordinate that is zero."""
        bound = free & (X <= 0)
        level = _water_level(V, free, bound, np.zeros(len(V)))
        moved = V - level[:, None]
        return np.where(free, np.where(bound, np.maximum(moved, 0.0), moved), 0.0)


def _water_level(V: Array, free: Array, bound: Array, total: Array) -> Array:
    """mu with sum over free of (V - mu), cut at 0 where bound, equal to total.

    The sum falls with mu and is linear between the sorted bound values.
    """
    out = np.zeros(len(V))
    for j in range(len(V)):
        loose, cut = V[j, free[j] & ~bound[j]], np.sort(V[j, free[j] & bound[j]])[::-1]
        sums = loose.sum() + np.concatenate([[0.0], np.cumsum(cut)])
        counts = loose.size + np.arange(cut.size + 1)
        levels = (sums - total[j]) / np.maximum(counts, 1)
        # the first k bound values are above the level, the next is not
        upper = np.concatenate([[np.inf], cut])
        lower = np.concatenate([cut, [-np.inf]])
        fits = np.flatnonzero((levels < upper) & (levels >= lower) & (counts > 0))
        out[j] = levels[fits[0]] if fits.size else (cut[0] if cut.size else 0.0)
    return out


@dataclass(frozen=True, eq=False)
class Constraint:
    """A region and coordinates that are held: `held` has NaN where a coordinate is free."""

    region: Region | None
    held: Array | None  # (b, d)

    @cached_property
    def is_free(self) -> bool:
        return self.region is None and self.held is None

    def free(self, X: Array, owners: Array) -> Array:
        """Which coordinates may move, shape (m, d)."""
        if self.held is None:
            return np.ones(X.shape, dtype=bool)
        return np.asarray(np.isnan(self.held[owners]))

    def project(self, X: Array, owners: Array) -> Array:
        if self.is_free:
            return X
        free = self.free(X, owners)
        if self.held is not None:
            X = np.where(free, X, self.held[owners])
        return X if self.region is None else self.region.project(X, free)

    def restrict(self, state: State, owners: Array) -> State:
        """Derivatives in feasible directions; held rows and columns of the Hessian are as in I."""
        free = self.free(state.points, owners)
        downhill = np.where(free, -state.gradient, 0.0)
        if self.region is not None:
            downhill = self.region.tangent(state.points, downhill, free)
        hessian = state.hessian
        if hessian is not None and self.held is not None:
            both = free[:, :, None] & free[:, None, :]
            hessian = np.where(both, hessian, np.eye(free.shape[1]) * ~free[:, :, None])
        return replace(state, gradient=-downhill, hessian=hessian)

    def part(self, rows: Any) -> Constraint:
        return self if self.held is None else Constraint(self.region, self.held[rows])


def as_constraint(region: Any, fixed: Any, batch: int, dim: int) -> Constraint:
    if region is not None:
        if not isinstance(region, Region):
            raise InputError(f"region must be a Box, Ball or Simplex, got {type(region).__name__}")
        region.check(dim)
    if fixed is None:
        return Constraint(region, None)
    held = np.atleast_2d(as_numbers(fixed, "fixed"))
    if held.shape not in ((1, dim), (batch, dim)):
        raise InputError(
            f"fixed must have shape ({dim},) or ({batch}, {dim}), NaN where a coordinate is free; "
            f"got {np.shape(fixed)}"
        )
    as_points(np.nan_to_num(held, nan=0.0, posinf=np.inf, neginf=-np.inf), "fixed")
    return Constraint(region, np.broadcast_to(held, (batch, dim)))
