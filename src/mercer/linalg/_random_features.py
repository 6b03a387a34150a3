"""Random Fourier features: finitely many frequencies in place of a kernel's spectral measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, check_same_columns, frozen, instance, one_of, positive_int
from mercer._random import as_generator
from mercer.engine import SingleFeatures, n_rows, pieces
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Kernel, SpectralMeasure
from mercer.kernels._measures import Convolution, LinearImage, Mixture, ScaleMixture

_ENTRIES = 1 << 21  # of the pairs of rows that are compared at once, 16 MB
_KINDS = ("plain", "orthogonal")
_MOST = 1 << 31  # numbers in all frequencies


@dataclass(frozen=True, eq=False, repr=False)
class RandomFeatures:
    """Random Fourier features of a kernel.

    z(x) = sqrt(c / m) (cos <w_1, x>, ..., cos <w_m, x>, sin <w_1, x>, ..., sin <w_m, x>).
    c = k(x, x) is the mass of the spectral measure and the w_j are drawn from it, so that
    E z(x)'z(y) = k(x, y), and z(x)'z(x) = k(x, x) always.

    Attributes
    ----------
    kernel : Kernel
    frequencies : array of shape (m, d)
    kind : str
    mass : float
        c.

    Examples
    --------
    >>> import mercer as mc
    >>> z = mc.linalg.random_features(4 * mc.Laplace(1.0), 2, 6, kind="orthogonal", random_state=0)
    >>> z
    <6 orthogonal RandomFeatures of 4.0 * Laplace(length_scale=1.0) in 2 dimensions>
    >>> float((z([[0.5, 1.0]]) ** 2).sum().round(6))
    4.0
    """

    kernel: Kernel
    frequencies: Array
    kind: str
    mass: float

    @property
    def n_features(self) -> int:
        """The number of features, 2 m."""
        return 2 * len(self.frequencies)

    def __call__(self, X: Any) -> Array:
        """Return z(x_i), shape (n, 2 m), in the precision of X."""
        X = self.kernel.points(X).array
        check_same_columns(X, self.frequencies, ("X", "the frequencies"))
        m = len(self.frequencies)
        phase = np.asarray(X @ self.frequencies.T.astype(X.dtype))
        out = np.empty((n_rows(X), 2 * m), dtype=phase.dtype)
        np.cos(phase, out=out[:, :m])
        np.sin(phase, out=out[:, m:])
        out *= out.dtype.type(np.sqrt(self.mass / m))
        return out

    def error(self, X: Any, n_pairs: int = 1000, random_state: Any = None) -> float:
        """Return the root mean square of z(x)'z(y) - k(x, y) on random pairs of rows of X."""
        points = self.kernel.points(X)
        X = points.array
        rng = as_generator(random_state)
        i, j = rng.integers(n_rows(X), size=(2, positive_int(n_pairs, "n_pairs")))
        squares = 0.0
        for part in pieces(n_pairs, max(1, _ENTRIES // X.shape[1])):
            a, b = i[part], j[part]
            chosen = SingleFeatures(a, np.ones(a.size), n_rows(X))
            exact = engine.fields(self.kernel.program, X, X[b], chosen, paired=True).value
            found = np.einsum("ij,ij->i", self(points[a]), self(points[b]), dtype=np.float64)
            squares += float(np.sum((found - exact) ** 2))
        return float(np.sqrt(squares / n_pairs))

    def __repr__(self) -> str:
        m, d = self.frequencies.shape
        return f"<{2 * m} {self.kind} RandomFeatures of {self.kernel!r} in {d} dimensions>"


def random_features(
    kernel: Kernel, dim: int, n_features: int, *, kind: str = "plain", random_state: Any = None
) -> RandomFeatures:
    """Draw random Fourier features from the spectral measure of a kernel (Bochner's theorem).

    With w from Lambda / k(0), E cos <w, x - y> = k(x, y) / k(0). The error falls like m^(-1/2).
    Orthogonal features draw the frequencies in blocks of `dim` whose directions are orthogonal (a
    random rotation) and whose lengths are independent: each is still a draw from Lambda, and
    together they cover the directions more evenly.

    Parameters
    ----------
    kernel : Kernel
        With a spectral measure: radial kernels that are completely monotone, their sums, products
        and linear maps.
    dim : int
        The number of columns d of the points.
    n_features : int
        The number of features 2 m: even, a cosine and a sine for each frequency.
    kind : {"plain", "orthogonal"}
    random_state : int, Generator, RandomState or None

    Returns
    -------
    RandomFeatures
        Call it on points; `error(X, n_pairs)` measures how good it is.

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines (2007); F. Yu and
    others, Orthogonal random features (2016).

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> z = mc.linalg.random_features(mc.Gaussian(1.0), 2, 2000, random_state=0)
    >>> X = np.array([[0.0, 0.0], [1.0, 0.5]])
    >>> bool(np.abs(z(X) @ z(X).T - mc.Gaussian(1.0)(X)).max() < 0.05)
    True
    """
    instance(kernel, Kernel, "kernel")
    dim, n_features = positive_int(dim, "dim"), positive_int(n_features, "n_features")
    if n_features % 2:
        raise InputError(f"n_features must be even (cosines and sines), got {n_features}")
    if dim * n_features > _MOST:
        raise InputError("dim x n_features must be at most 2**31; use fewer features")
    one_of(kind, _KINDS, "kind")
    kernel.points(np.ones((1, dim)), "x")  # raises if it takes no points of `dim` columns
    measure = kernel.spectral_measure(dim)
    rng, m = as_generator(random_state), n_features // 2
    w = measure.draw(m, rng) if kind == "plain" else _orthogonal(measure, m, rng)
    return RandomFeatures(kernel, frozen(w), kind, measure.mass)


def _orthogonal(measure: SpectralMeasure, size: int, rng: np.random.Generator) -> Array:
    """Draws from the measure, orthogonal in blocks wherever it is the same in all directions."""
    if _is_isotropic(measure):
        length = np.linalg.norm(measure.draw(size, rng), axis=1)
        return np.asarray(length[:, None] * _directions(size, measure.dim, rng))
    match measure:
        case LinearImage(inner=inner, point_map=point_map, dim=dim):
            return np.asarray(point_map.pull(_orthogonal(inner, size, rng), dim))
        case Convolution(left=left, right=right):
            return _orthogonal(left, size, rng) + _orthogonal(right, size, rng)
        case Mixture(left=left, right=right):
            from_left = rng.random(size) * measure.mass < left.mass
            out = np.empty((size, measure.dim))
            for part, rows in ((left, from_left), (right, ~from_left)):
                out[rows] = _orthogonal(part, int(rows.sum()), rng)
            return out
    raise UnavailableError(f"{measure!r} is not known to be isotropic; use kind='plain'")


def _is_isotropic(measure: SpectralMeasure) -> bool:
    match measure:
        case ScaleMixture():
            return True
        case Mixture(left=left, right=right) | Convolution(left=left, right=right):
            return _is_isotropic(left) and _is_isotropic(right)
    return False


def _directions(size: int, dim: int, rng: np.random.Generator) -> Array:
    """Unit vectors in orthogonal blocks of `dim`, each block a rotation of Haar measure."""
    blocks = [np.empty((0, dim))]
    for rows in pieces(size, dim):
        Q, R = np.linalg.qr(rng.standard_normal((dim, rows.stop - rows.start)))
        blocks.append((Q * np.sign(R.diagonal())).T)
    return np.concatenate(blocks)
