"""Check a subspace: projections are orthogonal and nearest."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer._random import as_generator
from mercer.engine import n_rows
from mercer.space import Element, Subspace
from mercer.testing._report import agree, require


def check_subspace(
    plane: Subspace, psi: Element | None = None, *, tol: float = 1e-8, random_state: Any = 0
) -> None:
    """Check the laws of a subspace.

    Directions must be orthonormal. Projections must have the right coordinates, stay in place when
    projected again, leave a residual that is orthogonal to every direction, obey Pythagoras, and be
    nearer than other elements of the subspace. Truncation must keep the first coordinates.

    Parameters
    ----------
    plane : Subspace
        Its kernel must be positive definite.
    psi : Element, optional
        A batch of elements to project; by default random ones on the subspace's points.
    tol : float, default=1e-8
        The relative error allowed; its square root for distances near zero.
    random_state : int, Generator, RandomState or None, default=0

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
    if psi is None:
        psi = Element(origin.kernel, f.points, rng.normal(size=(n_rows(f.points), 4)))
    b, loose = len(psi), np.sqrt(tol)
    size = float(np.max(psi.distance(origin))) + float(origin.norm())
    equal = partial(agree, plane, tol=tol, size=size)
    c, shadow, distance = plane.coordinates(psi), plane.project(psi), plane.distance(psi)
    require(c.shape == (b, r), plane, f"coordinates have shape {c.shape}, not {(b, r)}")
    expected = np.asarray(f.inner(psi)).T - np.asarray(f.inner(origin))
    equal("coordinates = <psi - origin, f>", c, expected)
    equal("coordinates of a projection", plane.coordinates(shadow), c)
    again = plane.project(shadow).distance(shadow)
    equal("projecting twice", again, np.zeros(b), tol=loose)
    equal("orthogonality of the residual", (psi - shadow).inner(f), np.zeros((b, r)))
    squares = np.sum(c**2, axis=1) + distance**2
    equal("Pythagoras", squares, psi.distance(origin) ** 2, size=size**2)
    equal("distance = |psi - projection|", distance, psi.distance(shadow), tol=loose)
    equal("coordinates of the origin", plane.coordinates(origin), np.zeros(r))
    short = plane.truncate(max(1, r // 2))
    equal("truncation", short.coordinates(psi), c[:, : short.dim])
    for step in (1e-2, 1.0):
        other = plane.element(c + step * size * rng.normal(size=c.shape))
        gain = float(np.max(distance - psi.distance(other)))
        message = f"an element of the subspace is nearer than the projection, by {gain:.3g}"
        require(gain <= loose * size, plane, message)
    equal("coordinates of one element", plane.coordinates(psi[0]), c[0])
    single, Y = plane.project(psi[0]), psi.points[:4]
    require(single.batch is None, plane, "the projection of one element is a batch")
    batch = shadow(Y)[:, 0]
    equal("the projection of one element", single(Y), batch, size=np.abs(batch).max() + size)
