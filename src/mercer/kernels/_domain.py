"""Domains: the sets of points on which kernels are defined, and checks of user input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._array import Points, as_points, frozen, header, positive_length
from mercer._chunks import as_chunks
from mercer._frames import is_chunked, items_of
from mercer._tensors import as_numpy, as_tensor, host, is_tensor, namespace
from mercer.engine import Dot, Map, Program, Var, as_float64, diagonal
from mercer.exceptions import DomainError, InputError
from mercer.kernels._parameters import checked

_SQUARED_NORM = Program((Dot(),), Var(0))


class Domain(ABC):
    """The set on which a kernel is defined, and how points are checked to lie in it.

    A subclass defines one method, `check`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import mercer as mc
    >>> @dataclass(frozen=True)
    ... class Positive(mc.kernels.Domain):
    ...     def check(self, X, name):
    ...         X = mc.kernels.Vectors().check(X, name)
    ...         if (X <= 0).any():
    ...             raise mc.exceptions.DomainError(f"{name} must be > 0; take its exponential")
    ...         return X
    >>> k = mc.kernels.FromFunction(lambda X, Y: 1.0 / (X + Y.T), on=Positive())
    >>> k([[1.0], [3.0]])
    array([[0.5       , 0.25      ],
           [0.25      , 0.16666667]])
    """

    @abstractmethod
    def check(self, X: Any, name: str) -> Any:
        """Return X as an array that the engine takes, or raise an error that calls it `name`."""

    by_name: ClassVar[bool] = False  # columns are taken by name, so that their order is free

    @property
    def base(self) -> Domain:
        """The set that this domain is a part of: vectors, row numbers or objects."""
        return self

    @property
    def is_vector(self) -> bool:
        """Whether points are vectors, so that maps of coordinates make sense."""
        return isinstance(self.base, Vectors | AnyPoints)

    def can_map(self, point_map: Map) -> bool:
        """Whether images of vectors under a map may be points of this domain."""
        return self.is_vector

    def meet(self, other: Domain) -> Domain:
        """The domain of a sum or product of kernels on this domain and another."""
        if isinstance(self, AnyPoints):
            return other
        if isinstance(other, AnyPoints) or self == other:
            return self
        if self.base != other.base:
            raise DomainError(
                f"kernels on {self} and on {other} cannot be combined: their points differ"
            )
        if self.base in (self, other):
            return other if self == self.base else self
        return self.joined(other)

    def joined(self, other: Domain) -> Domain:
        """The intersection with another part of the same set."""
        return Intersection(self, other)


@dataclass(frozen=True)
class Vectors(Domain):
    """Rows of a numeric matrix, dense or CSR: the domain of most kernels.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Gaussian(1.0).domain
    Vectors()
    >>> mc.kernels.Vectors().check([[1, 2]], "X")
    array([[1., 2.]])
    """

    def check(self, X: Any, name: str) -> Any:
        """A finite float matrix; dense ones come back as read-only views, tensors as they are."""
        if is_tensor(X):
            return as_tensor(X, name)
        X = as_points(X, name)
        return frozen(X) if isinstance(X, np.ndarray) else X


@dataclass(frozen=True)
@checked(radius=positive_length)
class OpenBall(Domain):
    """Vectors x with |x| < radius: where a power series of <x, y> converges.

    Points are refused if |x|^2 >= (1 - (d + 4) eps) radius^2, with eps of their type, so that no
    computed inner product of two points reaches radius^2.

    Parameters
    ----------
    radius : float
        > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> class InverseRoot(mc.DotProduct):
    ...     domain = mc.kernels.OpenBall(1.0)
    ...     def profile(self, t):
    ...         return (1.0 - t) ** -0.5
    >>> InverseRoot()([[0.6, 0.0]], [[0.6, 0.5]])
    array([[1.25]])
    """

    radius: float

    base = Vectors()

    def check(self, X: Any, name: str) -> Any:
        X = Vectors().check(X, name)
        norms = host(diagonal(_SQUARED_NORM, as_float64(X)))
        eps = float(namespace(X).finfo(X.dtype).eps)
        outside = np.flatnonzero(norms >= (1.0 - (X.shape[1] + 4) * eps) * self.radius**2)
        if outside.size:
            row = int(outside[0])
            raise DomainError(
                f"{name} must lie inside the ball |x| < {self.radius:.6g}, but row {row} has norm "
                f"{float(np.sqrt(norms[row])):.6g}; scale the points down, or "
                "enlarge the ball (the scale of the kernel)"
            )
        return X


@dataclass(frozen=True)
class RowIds(Domain):
    """The row numbers 0, ..., size - 1 of a precomputed matrix."""

    size: int

    def check(self, X: Any, name: str) -> Any:
        """Integers in range, of shape (n,); a single column is flattened."""
        if isinstance(X, np.ma.MaskedArray):
            raise DomainError(f"{name} is a masked array; drop the masked row numbers first")
        ids = np.asarray(X)
        if ids.ndim == 2 and ids.shape[1] == 1:
            ids = ids[:, 0]
        if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iu":
            raise DomainError(
                f"{name} must be a list of row numbers (points of a precomputed kernel), got "
                f"dtype {ids.dtype} and shape {ids.shape}"
            )
        if ids.min() < 0 or ids.max() >= self.size:
            raise DomainError(
                f"{name} must hold row numbers in 0..{self.size - 1}, got "
                f"{int(ids.min())}..{int(ids.max())}"
            )
        return frozen(ids.astype(np.intp))


@dataclass(frozen=True)
class Objects(Domain):
    """Any Python objects; the kernel's function interprets them.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.kernels.FromFunction(lambda A, B: [[float(a[0] == b[0]) for b in B] for a in A],
    ...                     on=mc.kernels.Objects())
    >>> k(["ab", "cd"], ["ax"])
    array([[1.],
           [0.]])
    """

    def check(self, X: Any, name: str) -> Any:
        """A one-dimensional array of the objects."""
        X = items_of(X)
        if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
            raise DomainError(f"{name} must be a list of points, got {type(X).__name__}")
        if len(X) == 0:
            raise InputError(f"{name} has no points: at least one is needed")
        if isinstance(X, np.ndarray) and X.ndim == 1:
            return frozen(X)
        out = np.empty(len(X), dtype=object)
        for i, x in enumerate(X):
            out[i] = x
        return frozen(out)


@dataclass(frozen=True)
class AnyPoints(Domain):
    """The domain of constant kernels: vectors, or any points in a sum or product."""

    def check(self, X: Any, name: str) -> Any:
        return Vectors().check(X, name)


@dataclass(frozen=True)
class Mapped(Domain):
    """Points (vectors, or what the map accepts) whose images under a map lie in another domain."""

    inner: Domain
    point_map: Map

    def check(self, X: Any, name: str) -> Any:
        """Points the map can be applied to, whose images are accepted."""
        X = self._taken.check(X, name)
        if self.is_vector:
            self.point_map.check(X.shape[1], name)
        if self.inner not in (Vectors(), AnyPoints()):
            self.inner.check(self.point_map.apply(X), name)
        return X

    @property
    def _taken(self) -> Domain:
        return getattr(self.point_map, "on", None) or Vectors()

    @property
    def base(self) -> Domain:
        return self._taken.base


@dataclass(frozen=True)
class Intersection(Domain):
    """The intersection of two parts of the same set."""

    left: Domain
    right: Domain

    def check(self, X: Any, name: str) -> Any:
        return self.right.check(self.left.check(X, name), name)

    @property
    def base(self) -> Domain:
        return self.left.base


def points_of(domain: Domain, X: Any, name: str, tensors: bool = False) -> Points:
    """Points that a domain accepts; tensors as NumPy arrays unless `tensors` is set."""
    own = isinstance(X, Points)
    array = X.array if own else X
    if own and X.domain == domain and (tensors or not is_tensor(array)):
        return X  # type: ignore[no-any-return]
    head = X.header if own else header(X)
    if is_chunked(array):
        return Points(_in_pieces(domain, array, name), domain, head)
    checked = domain.check(array if tensors else as_numpy(array, name), name)
    if tensors and is_tensor(array) and not is_tensor(checked):
        raise InputError(f"{domain!r} has no tensors; use {name}.detach().cpu().numpy()")
    return Points(checked, domain, head)


def _in_pieces(domain: Domain, X: Any, name: str) -> Any:
    """Rows in pieces, which are checked when they are read."""
    if not domain.is_vector:
        raise InputError(f"{name} comes in pieces, which only kernels on vectors take")
    rows = as_chunks(X, name)
    if rows.ndim != 2:
        raise InputError(f"{name} must have shape (n_points, n_features), got {rows.shape}")
    dtype = np.float32 if rows.dtype == np.float32 else np.float64
    return rows.mapped(_checked, domain, f"a chunk of {name}", tail=rows.tail, dtype=dtype)


def _checked(X: Any, domain: Domain, name: str) -> Any:
    return domain.check(X, name)
