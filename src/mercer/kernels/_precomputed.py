"""Precomputed kernel matrices, and kernels given by a Python function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points, frozen
from mercer.engine import Block, Program, Var
from mercer.exceptions import InputError
from mercer.kernels._domain import Domain, RowIds, Vectors
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._parameters import an_instance, callable_function, checked, optional


class OfBlocks(Kernel):
    """A kernel that is computed for two blocks of points at once, without derivatives."""

    @abstractmethod
    def _block(self, X: Any, Y: Any = None) -> Array:
        """k(x_i, y_j) for checked points, or k(x_i, x_i) without Y."""

    def lower(self) -> Program:
        values = _BlockOf(self)
        return Program((Block(values, values),), Var(0))


@dataclass(frozen=True)
class _BlockOf:
    """The method `_block` of a kernel, as a value."""

    kernel: OfBlocks

    def __call__(self, X: Any, Y: Any = None) -> Array:
        return self.kernel._block(X, Y)


@dataclass(frozen=True)
@checked(function=callable_function, on=optional(an_instance(Domain)))
class FromFunction(OfBlocks):
    """k(x, y) from a Python function of two blocks of points.

    The slowest kind of kernel, without derivatives, but for any kind of points. It claims nothing
    about definiteness; `mercer.testing.check_kernel` tests it.

    Parameters
    ----------
    function : callable
        Takes blocks of n and m points, returns an (n, m) matrix; k must be symmetric.
    on : Domain, optional
        The domain; by default rows of a numeric matrix. `Objects()` accepts anything.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> k = mc.kernels.FromFunction(lambda X, Y: np.minimum(X, Y.T))
    >>> k([[1.0], [3.0]], [[2.0]])
    array([[1.],
           [2.]])
    """

    function: Callable[[Any, Any], Any]
    on: Domain | None = None

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return Vectors() if self.on is None else self.on

    def _block(self, X: Any, Y: Any = None) -> Array:
        """The function with its result checked; k(x, x) one point at a time."""
        if Y is None:
            points = (X[i : i + 1] for i in range(X.shape[0]))
            return np.array([self._block(x, x)[0, 0] for x in points])
        K = np.asarray(self.function(X, Y), dtype=np.float64)
        expected = (X.shape[0], Y.shape[0])
        if K.shape != expected:
            raise InputError(f"the kernel function returned shape {K.shape}, not {expected}")
        if not np.isfinite(K).all():
            raise InputError("the kernel function returned NaN or infinity")
        return K


@dataclass(frozen=True, eq=False, repr=False)
@checked(definiteness=an_instance(Definiteness))
class Precomputed(OfBlocks):
    """k(i, j) = K[i, j] from a given symmetric matrix; points are row numbers.

    Parameters
    ----------
    K : array_like of shape (n, n)
        Symmetric; held in float64.
    definiteness : Definiteness, default=Definiteness.UNKNOWN
        The definiteness claimed for K.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Precomputed([[2.0, 1.0], [1.0, 2.0]])
    >>> k([0, 1], [1])
    array([[1.],
           [2.]])
    """

    K: Any
    definiteness: Definiteness = Definiteness.UNKNOWN

    def __post_init__(self) -> None:
        K = as_dense_points(self.K, "K")
        if K.shape[0] != K.shape[1]:
            raise InputError(f"K must be square, got shape {K.shape}")
        gap = float(np.abs(K - K.T).max())
        if gap > 1e-8 * float(np.abs(K).max()):
            raise InputError(
                f"K must be symmetric, but |K - K'| reaches {gap:.3g}; use (K + K') / 2"
            )
        object.__setattr__(self, "K", frozen(K + 0.0))

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        return Flags(self.definiteness)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return RowIds(self.K.shape[0])

    def _block(self, X: Any, Y: Any = None) -> Array:
        return np.asarray(self.K[X, X] if Y is None else self.K[np.ix_(X, Y)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Precomputed):
            return NotImplemented
        return self.definiteness == other.definiteness and np.array_equal(self.K, other.K)

    def __hash__(self) -> int:
        return hash((self.K.shape, self.K[0].tobytes(), self.definiteness))

    def __repr__(self) -> str:
        return f"Precomputed({self.K.tolist()}, {self.definiteness})"
