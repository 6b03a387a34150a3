"""Affine subspaces of a reproducing kernel Hilbert space."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array, as_points, instance, positive, positive_int
from mercer._threads import interruptible, single_threaded_blas
from mercer.engine import Dense, LowRank
from mercer.exceptions import InputError
from mercer.space._element import Element
from mercer.space._inner_products import scaled, squared_norms
from mercer.space._points import equal_points

_SMALL = 1000  # elements


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    """An affine subspace of a kernel's space: origin + span(directions).

    Centring moves the origin and leaves the kernel alone, so the mean is kept.

    Parameters
    ----------
    origin : Element
        A single element.
    directions : Element
        A batch of r *orthonormal* elements; `Subspace.span` orthonormalises any batch.
    eigenvalues : array of shape (r,), optional
        The scatter of the data along each direction, if the subspace was found from data.
    total : float, optional
        The whole scatter of the data about the origin.
    neglected : float, default=0.0
        The part of `total` that an approximation leaves out.
    offset : array of shape (r,), optional
        <origin, f_l>, if it is already known.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Linear()
    >>> plane = mc.Subspace.span(mc.Element(k, [[0.0, 1.0]], [1.0]), mc.feature(k, [[2.0, 0.0]]))
    >>> shadow = plane.project(mc.feature(k, [[3.0, 4.0]]))
    >>> shadow([[1.0, 0.0], [0.0, 1.0]])
    array([[3.],
           [1.]])
    >>> plane.distance(mc.feature(k, [[3.0, 4.0]]))
    array([3.])
    """

    origin: Element
    directions: Element
    eigenvalues: Array | None = None
    total: float | None = None
    neglected: float = 0.0
    offset: Array | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.origin, Element) or self.origin.batch is not None:
            raise InputError("origin must be a single element")
        instance(self.origin, Element, "origin")
        if not isinstance(self.directions, Element) or self.directions.batch is None:
            raise InputError("directions must be a batch of elements")
        self.origin._same_space(self.directions)

    @classmethod
    def span(cls, origin: Element, elements: Element, *, tol: float = 1e-9) -> Subspace:
        """Return origin + span(elements), for a batch of any elements.

        Directions come from the eigenvectors of the Gram matrix of the elements, the strongest
        first; those with an eigenvalue below `tol` times the largest are dropped as dependent.
        """
        positive(tol, "tol")
        if not isinstance(origin, Element) or origin.batch is not None:
            raise InputError("origin must be a single element")
        instance(origin, Element, "origin")
        if not isinstance(elements, Element) or elements.batch is None:
            raise InputError("elements must be a batch; psi.combine(np.eye(1)) makes one of one")
        values, vectors = _gram_eigenpairs(elements)
        keep = values > tol * max(float(values[0]), 0.0)
        if not keep.any():
            raise InputError("the elements are all zero: they span nothing")
        directions = elements.combine(vectors[:, keep] / np.sqrt(values[keep]))
        values, vectors = _gram_eigenpairs(directions)
        # a second pass, to the nearest orthonormal set, removes the rounding errors of the first
        directions = directions.combine((vectors / np.sqrt(values)) @ vectors.T)
        return cls(*_on_shared_points(origin, directions))

    @property
    def dim(self) -> int:
        """The number of directions."""
        return len(self.directions)

    def truncate(self, dim: int) -> Subspace:
        """Return the subspace of the first `dim` directions."""
        if positive_int(dim, "dim") > self.dim:
            raise InputError(f"dim must be at most {self.dim}, got {dim}")
        values = None if self.eigenvalues is None else self.eigenvalues[:dim]
        offset = None if self.offset is None else self.offset[:dim]
        return replace(self, directions=self.directions[:dim], eigenvalues=values, offset=offset)

    def coordinates(self, psi: Element) -> Array:
        """Return <psi - origin, f_l>, shape (r,) for one element, (b, r) for a batch."""
        instance(psi, Element, "psi")
        return np.asarray(psi.inner(self.directions) - self._offset)

    @cached_property
    def _offset(self) -> Array:
        found = self.directions.inner(self.origin) if self.offset is None else self.offset
        return np.asarray(found)

    @cached_property
    def _origin_norm(self) -> tuple[Array, Array]:
        """|origin|^2 over the square of a scale that keeps it in range, and the scale."""
        return _squared_norms(self.origin)

    def element(self, coordinates: Any) -> Element:
        """Return origin + sum_l c_l f_l, for coordinates of shape (r,) or (b, r)."""
        single, shape = np.ndim(coordinates) == 1, np.shape(coordinates)
        if len(shape) not in (1, 2) or shape[-1] != self.dim:
            raise InputError(f"coordinates must have {self.dim} columns, got shape {shape}")
        c = as_points(np.atleast_2d(coordinates), "coordinates").astype(np.float64)
        f = self.directions
        moved = LowRank(f.coef.array, c.T) if isinstance(f.coef, Dense) else f.coef.combine(c.T)
        total = Element(f.kernel, f.support, moved, len(c)) + self.origin
        return Element(f.kernel, total.support, total.coef, None) if single else total

    def project(self, psi: Element) -> Element:
        """Return the element of the subspace nearest to psi, or one for each of a batch."""
        return self.element(self.coordinates(psi))

    def distance(self, psi: Element) -> Any:
        """Return the distance of psi to the subspace: its reconstruction error.

        From Pythagoras, |psi - origin|^2 - |coordinates|^2, so a distance below about 1e-8 of the
        norm is rounding.
        """
        c = np.atleast_2d(self.coordinates(psi))
        (squared, unit), (own, own_unit) = _squared_norms(psi), self._origin_norm
        scale = np.maximum(unit, own_unit)  # so that no square overflows or underflows
        scale = np.where(scale > 0.0, scale, 1.0)
        unit_psi = Element(psi.kernel, psi.points, scaled(psi.coef, 1.0 / scale), len(scale))
        cross = unit_psi.inner(self.origin)
        left = squared * (unit / scale) ** 2 + own * (own_unit / scale) ** 2 - 2.0 * cross / scale
        left = scale * np.sqrt(np.maximum(left - np.sum((c / scale[:, None]) ** 2, axis=1), 0.0))
        return left if psi.batch is not None else left[0]

    def __repr__(self) -> str:
        return f"<Subspace of dimension {self.dim} through {self.origin!r}>"


def _on_shared_points(origin: Element, directions: Element) -> tuple[Element, Element]:
    """Both on one set of distinct points: features minus their mean hold each point three times."""
    if equal_points(origin.points, directions.points):
        return origin, directions
    r = len(directions)
    last = np.eye(1, r + 1, r)
    both = (directions.combine(np.eye(r, r + 1)) + origin.combine(last)).merge()
    C = both.coef.array
    kernel, points = origin.kernel, both.support
    return Element(kernel, points, C[:, -1]), Element(kernel, points, C[:, :-1])


def _squared_norms(psi: Element) -> tuple[Array, Array]:
    """<psi, psi> / scale^2, negative where the kernel is only conditionally definite; the scale."""
    squared, _, scale = squared_norms(psi.kernel.program, psi.points, psi.coef)
    return squared, scale


def _gram_eigenpairs(elements: Element) -> tuple[Array, Array]:
    """Eigenvalues, largest first, and eigenvectors of the matrix of inner products."""
    G = np.asarray(elements.inner(elements))
    small = len(G) <= _SMALL  # where BLAS threads cost more than they gain on a busy machine
    with single_threaded_blas() if small else nullcontext():
        values, vectors = interruptible(np.linalg.eigh, 0.5 * (G + G.T))
    return values[::-1], vectors[:, ::-1]
