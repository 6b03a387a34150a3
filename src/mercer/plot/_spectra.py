"""Split a spectral measure of one variable into atoms and a density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer.exceptions import UnavailableError
from mercer.kernels import SpectralMeasure
from mercer.kernels._discrete_measures import Atoms
from mercer.kernels._measures import Convolution, LinearImage, Mixture, PointMass, ScaleMixture

Density = Callable[[Array], Array]
_TERMS = 200  # atoms of an infinite series that are kept, for each sign
_SAME = 1e-9  # of the largest frequency; closer atoms are merged


@dataclass(frozen=True, eq=False)
class Parts:
    """Atoms at ascending frequencies `w` with masses `m`, and a density or None."""

    w: Array
    m: Array
    density: Density | None = None


def parts(measure: SpectralMeasure) -> Parts:
    """Split a measure; raise an UnavailableError if its density has no closed form."""
    if isinstance(measure, Atoms):
        w, m = measure.atoms(_TERMS)
        return Parts(w[m > 0], m[m > 0])
    if isinstance(measure, ScaleMixture) and measure.mixing == PointMass(0.0, measure.mass):
        return Parts(np.zeros(1), np.array([measure.mass]))
    if isinstance(measure, Mixture):
        return _sum(parts(measure.left), parts(measure.right))
    if isinstance(measure, Convolution):
        return _convolution(measure)
    if isinstance(measure, LinearImage) and measure.inner.dim == 1:
        a = float(measure.point_map.pull(np.ones((1, 1)), 1)[0, 0])
        return _scaled(parts(measure.inner), abs(a))  # measures are symmetric
    return _plain(measure)


def _plain(measure: SpectralMeasure) -> Parts:
    measure.density(np.ones((1, 1)))  # raises an UnavailableError if there is none
    return Parts(np.empty(0), np.empty(0), lambda w: measure.density(w[:, None]))


def _sum(a: Parts, b: Parts) -> Parts:
    w, m = _merge_atoms(np.append(a.w, b.w), np.append(a.m, b.m))
    f, g = a.density, b.density
    both = None if f is None or g is None else lambda w: f(w) + g(w)
    return Parts(w, m, both or f or g)


def _convolution(measure: Convolution) -> Parts:
    """Convolution with atoms shifts and scales the other measure."""
    a, b = parts(measure.left), parts(measure.right)
    if a.density is not None and b.density is not None:
        if a.w.size or b.w.size:
            raise UnavailableError("this product of mixed measures has no closed density")
        return _plain(measure)
    w, m = _merge_atoms(np.add.outer(a.w, b.w).ravel(), np.multiply.outer(a.m, b.m).ravel())
    (atoms, f) = (a, b.density) if a.density is None else (b, a.density)
    if f is None:
        return Parts(w, m)

    def moved(w: Array) -> Array:
        at = np.subtract.outer(w, atoms.w)
        return np.asarray(f(at.ravel()).reshape(at.shape) @ atoms.m)

    return Parts(w, m, moved)


def _scaled(inner: Parts, a: float) -> Parts:
    """The image under w -> a w."""
    if a == 0.0:
        raise UnavailableError("the map loses all points")
    f = inner.density
    return Parts(a * inner.w, inner.m, None if f is None else lambda w: f(w / a) / a)


def _merge_atoms(w: Array, m: Array) -> tuple[Array, Array]:
    if not w.size:
        return w, m
    order = np.argsort(w, kind="stable")
    w, m = w[order], m[order]
    first = np.append(True, np.diff(w) > _SAME * np.abs(w).max())
    return w[first], np.add.reduceat(m, np.flatnonzero(first))
