"""`check_subspace`: projections are orthogonal, and nothing is nearer."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._random import as_generator
from mercer.engine import n_rows
from mercer.space import Element, Subspace
from mercer.testing._report import agree, require


def check_subspace(
    plane: Subspace, psi: Element | None = None, *, tol: float = 1e-8, random_state: Any = 0
) -> None:
    """Raise an AssertionError unless the subspace is one.

    Tried are: orthonormal directions; coordinates and elements undo each other; projections stay
    put, leave a residual orthogonal to every direction, obey Pythagoras and are nearer than any
    other element of the subspace that is tried; a truncated subspace has the first coordinates.

    Parameters
    ----------
    plane : Subspace
        Of a positive definite kernel.
    psi : Element, optional
        A batch of elements to project; random ones on the subspace's points by default.
    tol : float, default=1e-8
        Relative error that is allowed; distances near zero get its square root.
    random_state : int, Generator, RandomState or None, default=0

    Raises
    ------
    AssertionError
        With a sentence that names the law and the size of the violation.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.testing import check_subspace
    >>> k = mc.Gaussian(1.0)
    >>> X = [[0.0], [1.0], [3.0]]
    >>> check_subspace(mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)))
    """
    rng = as_generator(random_state)
    f, origin, r = plane.directions, plane.origin, plane.dim
    agree(plane, "orthonormality of its directions", f.inner(f), np.eye(r), tol=tol)
    psi = _some_elements(plane, rng) if psi is None else psi
    b = len(psi)
    size = float(np.max(psi.distance(origin))) + float(origin.norm())
    c, shadow = plane.coordinates(psi), plane.project(psi)
    require(c.shape == (b, r), plane, f"coordinates have shape {c.shape}, not {(b, r)}")
    agree(plane, "coordinates of a projection", plane.coordinates(shadow), c, tol=tol, size=size)
    expected = np.asarray(f.inner(psi)).T - np.asarray(f.inner(origin))
    agree(plane, "coordinates = <psi - origin, f>", c, expected, tol=tol, size=size)
    again = plane.project(shadow).distance(shadow)
    agree(plane, "projecting twice", again, np.zeros(b), tol=np.sqrt(tol), size=size)
    left = (psi - shadow).inner(f)
    agree(plane, "orthogonality of the residual", left, np.zeros((b, r)), tol=tol, size=size)
    distance = plane.distance(psi)
    squares = np.sum(c**2, axis=1) + distance**2
    agree(plane, "Pythagoras", squares, psi.distance(origin) ** 2, tol=tol, size=size**2)
    agree(
        plane,
        "distance = |psi - projection|",
        distance,
        psi.distance(shadow),
        tol=np.sqrt(tol),
        size=size,
    )
    _check_nearest(plane, psi, c, distance, size, tol, rng)
    _check_single(plane, psi, c, size, tol)
    short = plane.truncate(max(1, r // 2))
    agree(plane, "truncation", short.coordinates(psi), c[:, : short.dim], tol=tol, size=size)


def _check_nearest(
    plane: Subspace, psi: Element, c: Any, distance: Any, size: float, tol: float, rng: Any
) -> None:
    """No other element of the subspace is nearer."""
    for step in (1e-2, 1.0):
        other = plane.element(c + step * size * rng.normal(size=c.shape))
        nearer = float(np.max(distance - psi.distance(other)))
        require(
            nearer <= np.sqrt(tol) * size,
            plane,
            f"another element of the subspace is nearer than the projection, by {nearer:.3g}",
        )


def _check_single(plane: Subspace, psi: Element, c: Any, size: float, tol: float) -> None:
    """One element is projected as it is in a batch; random coordinates come back."""
    one = psi[0]
    agree(plane, "coordinates of one element", plane.coordinates(one), c[0], tol=tol, size=size)
    shadow = plane.project(one)
    require(shadow.batch is None, plane, "the projection of one element is a batch")
    Y = psi.points[:4]
    batch = plane.project(psi)(Y)[:, 0]
    agree(
        plane,
        "the projection of one element",
        shadow(Y),
        batch,
        tol=tol,
        size=float(np.abs(batch).max()) + size,
    )
    agree(
        plane,
        "coordinates of the origin",
        plane.coordinates(plane.origin),
        np.zeros(plane.dim),
        tol=tol,
        size=size,
    )


def _some_elements(plane: Subspace, rng: np.random.Generator) -> Element:
    points = plane.directions.points
    return Element(plane.origin.kernel, points, rng.normal(size=(n_rows(points), 4)))
