"""Test points: lattices, which reveal kernels that are not positive definite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mercer._array import Array, positive, positive_int
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.kernels._circle import period_of
from mercer.testing._report import require

DIMENSIONS = (1, 2, 3, 5)
_SIDES = {1: 14, 2: 5, 3: 4, 4: 3, 5: 2, 6: 2}
_STEPS = (0.1, 0.3, 0.7, 1.6, 4.0)  # in units of the kernel's own length
_OFFSET = (0.31, -0.17, 0.43, 0.29, -0.23, 0.37)  # keeps lattice points off the origin

_LARGEST = 1e30  # value of a kernel at test points: float32 holds it, with room for derivatives


def lattice(d: int, side: int, step: float = 1.0) -> Array:
    """Return the points step (i_1, ..., i_d) with whole numbers 0 <= i < side.

    On a lattice, a kernel that is not positive definite shows a negative eigenvalue much sooner
    than on random points.

    Parameters
    ----------
    d : int
        Dimension >= 1.
    side : int
        Points per axis >= 1.
    step : float
        Spacing > 0.

    Returns
    -------
    array of shape (side**d, d)

    Examples
    --------
    >>> from mercer.testing import lattice
    >>> lattice(2, 2, 0.5)
    array([[0. , 0. ],
           [0. , 0.5],
           [0.5, 0. ],
           [0.5, 0.5]])
    """
    d, side = positive_int(d, "d"), positive_int(side, "side")
    axes = np.meshgrid(*[np.arange(side, dtype=np.float64)] * d, indexing="ij")
    return positive(step, "step") * np.stack([a.ravel() for a in axes], axis=1)


def accepts(kernel: Kernel, X: Any) -> bool:
    """Whether X lies in the domain of the kernel."""
    try:
        kernel.points(X)
    except InputError:
        return False
    return True


def dimensions(kernel: Kernel, wanted: Sequence[int] = DIMENSIONS) -> list[int]:
    """The dimensions among `wanted` in which the kernel accepts points."""
    if not kernel.domain.is_vector:
        return []
    return [d for d in wanted if _start(kernel, d) is not None]


def natural_scale(kernel: Kernel, d: int) -> float:
    """The smallest distance with |k(x, .) - k(y, .)|^2 > (k(x, x) + k(y, y)) / 2; 1 if none.

    On a circle, distances up to half a turn are tried, and the default is 0.35 of a turn.
    """
    period = period_of(kernel)
    r = np.logspace(-4.0, 4.0, 161) if period is None else period * np.logspace(-5.0, -0.31, 95)
    default = 1.0 if period is None else 0.35 * period
    x = _start(kernel, d)
    if x is None:
        return default
    X = x + r[:, None] * (np.ones(d) / np.sqrt(d))
    try:
        with np.errstate(all="ignore"):
            here, there, between = kernel.diag(x)[0], kernel.diag(X), kernel(x, X)[0]
            far = here + there - 2.0 * between > 0.5 * (np.abs(here) + np.abs(there))
    except InputError:  # a bounded domain, or overflow
        return default
    crossings = np.flatnonzero(far[1:] & ~far[:-1])
    return float(r[crossings[0] + 1]) if crossings.size else default


def lattices(kernel: Kernel, wanted: tuple[int, ...] = DIMENSIONS) -> Iterator[Array]:
    """Lattices around the origin, in every dimension the kernel accepts, at several scales."""
    for d in dimensions(kernel, wanted):
        length = natural_scale(kernel, d)
        for step in _STEPS:
            X = placed(kernel, d, _SIDES.get(d, 2), step * length)
            if X is not None:
                yield X


def placed(kernel: Kernel, d: int, side: int, step: float) -> Array | None:
    """A lattice around the origin, or among positive numbers; None if the kernel accepts neither.

    On a circle it spans at most one turn, so that all points differ.
    """
    period = period_of(kernel)
    step = step if period is None else min(step, period / side)
    X = lattice(d, side, step)
    for start in (-0.5 * (side - 1), 0.5):
        moved = np.asarray(X + step * (start + np.abs(_base(d))))
        if accepts(kernel, moved):
            return moved
    return None


def cloud(kernel: Kernel, d: int, rng: np.random.Generator) -> Array:
    """Eight random points on the kernel's natural scale, or nearer to 0; two of them are equal."""
    X = rng.normal(size=(8, d))
    X[5] = X[2]
    spreads = (natural_scale(kernel, d), 0.1, 0.01, 0.001)
    tried = [s * Z for s in spreads for Z in (X, np.abs(X))]
    accepted = [Z for Z in tried if accepts(kernel, Z)]
    message = f"accepts none of the test points in {d} dimensions; pass `points`"
    require(accepted, kernel, message)
    moderate = (Z for Z in accepted if np.all(np.abs(kernel.diag(Z)) < _LARGEST))
    return np.asarray(next(moderate, accepted[0]))


def _start(kernel: Kernel, d: int) -> Array | None:
    """A point of the domain off the axes, if possible not positive and not near the origin."""
    tried = (s * Z for s in (1.0, 1e-2) for Z in (_base(d), np.abs(_base(d))))
    return next((Z for Z in tried if accepts(kernel, Z)), None)


def _base(d: int) -> Array:
    return np.resize(np.asarray(_OFFSET), (1, d))
