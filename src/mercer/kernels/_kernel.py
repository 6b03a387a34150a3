"""Kernels and their algebra: constants, sums, products and linear maps of points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mercer import engine
from mercer._array import Array, Points, check_same_columns, instance, positive, real
from mercer._tensors import check_alike
from mercer.engine import Const, Map, Program
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels._domain import AnyPoints, Domain, Mapped, Vectors, points_of
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._measures import (
    Convolution,
    LinearImage,
    MixingMeasure,
    Mixture,
    PointMass,
    ScaleMixture,
    SpectralMeasure,
)
from mercer.kernels._parameters import Parametrized, checked

_DEEPEST = 50  # nesting levels: each takes several calls, and Python allows a thousand
_LARGEST = 4096


class Kernel(Parametrized, ABC):
    """A symmetric function k(x, y) of two points; an immutable value.

    Kernels are frozen dataclasses whose fields are their parameters. They add, multiply and scale
    by positive numbers; `transform` applies a map to the points first. Calling a kernel gives the
    Gram matrix. To write your own, start from `Radial` or `DotProduct`.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(2.0) + 0.5 * mc.Linear()
    >>> k([[0.0], [2.0]])
    array([[1.        , 0.60653066],
           [0.60653066, 3.        ]])
    >>> k == eval(repr(k), vars(mc))
    True
    """

    flags: Flags = Flags()
    """What is known to be true of the kernel."""

    domain: Domain = Vectors()
    """The set on which the kernel is defined."""

    @abstractmethod
    def lower(self) -> Program:
        """Return the program that an engine runs; called once, see `program`."""

    @cached_property
    def program(self) -> Program:
        """The program that the engine runs: variables, and a profile of them."""
        return self.lower()

    _expected: ClassVar[str] = "a Kernel such as mercer.Gaussian(1.0)"  # in errors
    _depth: ClassVar[int] = 1
    _size: ClassVar[int] = 1

    def _made_of(self, *kernels: Kernel) -> None:
        """Record how deep kernels are nested, and how many there are (repeats included)."""
        for k in kernels:
            instance(k, Kernel, f"an argument of {type(self).__name__}")
        depth, size = 1 + max(k._depth for k in kernels), sum(k._size for k in kernels)
        if depth > _DEEPEST:
            raise InputError(
                f"kernels are nested {depth} deep, more than {_DEEPEST}; group them, as in "
                "(a + b) + (c + d), and multiply matrices and scales into one map"
            )
        if size > _LARGEST:
            raise InputError(
                f"a kernel of {size} kernels is too large, at most {_LARGEST} are allowed; write "
                "2.0 * k for k + k"
            )
        object.__setattr__(self, "_depth", depth)
        object.__setattr__(self, "_size", size)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Return the Gram matrix k(x_i, y_j), shape (n, m); Y defaults to X."""
        return engine.gram(self.program, *self._pair(X, Y))

    def diag(self, X: Any) -> Array:
        """Return k(x_i, x_i), shape (n,), without the Gram matrix."""
        return engine.diagonal(self.program, self.points(X, tensors=True).array)

    def gradient(self, X: Any, Y: Any = None) -> Array:
        """Return the gradient of k(x_i, y_j) in x_i, shape (n, m, d).

        Where a kernel has a cusp (Laplace at x = y) the gradient does not exist, and the symmetric
        derivative, zero, is returned.
        """
        return engine.pairwise_derivative(self.program, *self._pair(X, Y))

    def mixed_derivative(self, X: Any, Y: Any = None) -> Array:
        """Return the matrix of d^2 k(x_i, y_j) / dx_i dy_j', shape (n, m, d, d).

        NaN where it does not exist (kernels with a cusp, at x = y).
        """
        return engine.pairwise_derivative(self.program, *self._pair(X, Y), mixed=True)

    def points(self, X: Any, name: str = "X", *, tensors: bool = False) -> Points:
        """Return X checked, or raise; `Points` that an equal domain has accepted are kept as is.

        Tensors of other libraries become NumPy arrays unless `tensors` is set.
        """
        return points_of(self.domain, X, name, tensors)

    def _pair(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """The arrays of X and Y, both checked; one array twice where Y is X or None."""
        x = self.points(X, "X", tensors=True)
        if Y is None or Y is X:
            return x.array, x.array
        y = self.points(Y, "Y", tensors=True)
        check_alike(x.array, y.array, ("X", "Y"))
        check_same_columns(x, y)
        return x.array, y.array

    def transform(self, point_map: Map) -> Transformed:
        """Return the kernel on mapped points: see `Scales`, `Columns`, `Matrix`, `Features`."""
        return Transformed(self, point_map)

    def mixing_measure(self) -> MixingMeasure:
        """Return mu with profile k(u) = int exp(-u t) dmu(t), for completely monotone profiles."""
        raise UnavailableError(f"{self!r} has no completely monotone profile, so no mixing measure")

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        """Return Lambda with k(x, y) = int exp(-i <w, x - y>) dLambda(w) on R^dim (Bochner)."""
        raise UnavailableError(f"{self!r} has no known spectral measure")

    __array_ufunc__ = None  # so that a NumPy number on the left defers to these operators

    def __add__(self, other: Any) -> Kernel:
        return _combined(Sum, self, other)

    def __radd__(self, other: Any) -> Kernel:
        return _combined(Sum, other, self)

    def __mul__(self, other: Any) -> Kernel:
        return _combined(Product, self, other)

    def __rmul__(self, other: Any) -> Kernel:
        return _combined(Product, other, self)

    def __sub__(self, other: Any) -> Kernel:
        raise InputError(
            "the difference of two kernels is in general not a kernel; subtract elements instead"
        )

    __rsub__ = __sub__

    def __neg__(self) -> Kernel:
        raise InputError("minus a kernel is not a kernel; negate elements instead")


def _combined(kind: type[_OfTwo], left: Any, right: Any) -> Kernel:
    """left + right or left * right; a long chain of one kind is regrouped as a balanced tree."""
    a, b = (_as_kernel(value, kind) for value in (left, right))
    if a is None or b is None:
        return NotImplemented  # type: ignore[no-any-return]
    if max(a._depth, b._depth) < _DEEPEST:
        return kind(a, b)
    terms, stack = list[Kernel](), [b, a]
    while stack:
        k = stack.pop()
        if isinstance(k, kind):
            stack += [k.right, k.left]
        else:
            terms.append(k)
    while len(terms) > 1:
        pairs = [kind(*terms[i : i + 2]) for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[2 * len(pairs) :]
    return terms[0]


def _as_kernel(value: Any, kind: type[_OfTwo]) -> Kernel | None:
    """A kernel as it is, a positive number as a constant kernel, None for anything else."""
    if isinstance(value, Kernel):
        return value
    if np.ndim(value) != 0 or isinstance(value, str | bool) or value is None:
        return None
    number = real(value, "the number")
    if number <= 0:
        sign = "+" if kind is Sum else "*"
        raise InputError(f"kernel {sign} number needs a number > 0, got {number!r}")
    return Constant(number)


@dataclass(frozen=True)
@checked(value=positive)
class Constant(Kernel):
    """k(x, y) = c: the kernel of an intercept.

    Parameters
    ----------
    value : float
        The constant c > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Linear() + 1.0
    Linear() + Constant(value=1.0)
    """

    value: float

    flags = Flags(Definiteness.POSITIVE, True, True, False, False)
    domain = AnyPoints()

    def lower(self) -> Program:
        return Program((), Const(self.value))

    def mixing_measure(self) -> MixingMeasure:
        """All mass at t = 0."""
        return PointMass(0.0, self.value)

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        return ScaleMixture(self.mixing_measure(), dim)


@dataclass(frozen=True)
class _OfTwo(Kernel):
    """A kernel made of two kernels on the same points."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        self._made_of(self.left, self.right)
        _ = self.domain  # raises if the points differ

    @cached_property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.left.domain.meet(self.right.domain)

    @property
    def _same_kind(self) -> bool:
        """Whether both profiles are functions of the same variable (or of none)."""
        return len({*self.left.program.variables, *self.right.program.variables}) <= 1

    def _require_one_distance(self) -> None:
        if not self._same_kind:
            raise UnavailableError(f"{self!r} is not a profile of one squared distance")


@dataclass(frozen=True)
class Sum(_OfTwo):
    """k(x, y) = left(x, y) + right(x, y); written `left + right`.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0) + mc.Linear()
    >>> k.replace(left__length_scale=3.0)
    Gaussian(length_scale=3.0) + Linear()
    """

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        return self.left.flags.plus(self.right.flags, same_kind=self._same_kind)

    def lower(self) -> Program:
        return self.left.program + self.right.program

    def mixing_measure(self) -> MixingMeasure:
        """The sum of the measures, if both profiles are functions of the same distance."""
        self._require_one_distance()
        return self.left.mixing_measure() + self.right.mixing_measure()

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        return Mixture(self.left.spectral_measure(dim), self.right.spectral_measure(dim))

    def __repr__(self) -> str:
        right = f"({self.right!r})" if isinstance(self.right, Sum) else repr(self.right)
        return f"{self.left!r} + {right}"


@dataclass(frozen=True)
class Product(_OfTwo):
    """k(x, y) = left(x, y) right(x, y); written `left * right`, or `2.0 * k` with a number.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> import mercer as mc
    >>> 2.0 * mc.Gaussian(1.0)
    2.0 * Gaussian(length_scale=1.0)
    """

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        return self.left.flags.times(
            self.right.flags,
            same_kind=self._same_kind,
            constant=isinstance(self.left, Constant) or isinstance(self.right, Constant),
            stationary=_is_stationary(self.left) and _is_stationary(self.right),
        )

    def lower(self) -> Program:
        return self.left.program * self.right.program

    def mixing_measure(self) -> MixingMeasure:
        """The convolution of the measures, if both profiles are functions of one distance."""
        self._require_one_distance()
        return self.left.mixing_measure() * self.right.mixing_measure()

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        """A convolution: a draw is the sum of two draws."""
        return Convolution(self.left.spectral_measure(dim), self.right.spectral_measure(dim))

    def __repr__(self) -> str:
        if isinstance(self.left, Constant) and not isinstance(self.right, Constant):
            left = repr(self.left.value)
        else:
            left = f"({self.left!r})" if isinstance(self.left, Sum) else repr(self.left)
        tight = isinstance(self.right, Sum | Product)
        return f"{left} * ({self.right!r})" if tight else f"{left} * {self.right!r}"


@dataclass(frozen=True)
class Transformed(Kernel):
    """k(A(x), A(y)) for a map A of points; written `kernel.transform(map)`.

    Parameters
    ----------
    kernel : Kernel
    point_map : Map
        A, such as `Scales`, `Columns` or `Matrix`.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Gaussian(1.0).transform(mc.Columns([0, 2]))
    Gaussian(length_scale=1.0).transform(Columns([0, 2]))
    """

    kernel: Kernel
    point_map: Map

    def __post_init__(self) -> None:
        self._made_of(self.kernel)
        if not isinstance(self.point_map, Map):
            raise InputError(
                "transform takes a map of points (Scales, Columns, Matrix, Features), got "
                f"{type(self.point_map).__name__}"
            )
        if not self.kernel.domain.can_map(self.point_map):
            raise InputError(f"{self.kernel!r} has points that are not vectors: nothing to map")

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Those of the kernel; characteristic and universal only if the map loses nothing."""
        inner = self.kernel.flags
        keeps = isinstance(self.point_map, engine.Scales)
        return inner if keeps else replace(inner, characteristic=None, universal=None)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return Mapped(self.kernel.domain, self.point_map)

    def lower(self) -> Program:
        return self.kernel.program.mapped((self.point_map,))

    def mixing_measure(self) -> MixingMeasure:
        return self.kernel.mixing_measure()

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        """The image of the measure under the transposed map."""
        if not self.point_map.is_linear:
            raise UnavailableError(f"{self!r} is not stationary: its map of points is not linear")
        inner = self.kernel.spectral_measure(self.point_map.out_dim(dim))
        return LinearImage(inner, self.point_map, dim)

    def __repr__(self) -> str:
        inner = repr(self.kernel)
        inner = f"({inner})" if isinstance(self.kernel, Sum | Product) else inner
        return f"{inner}.transform({self.point_map!r})"


def _is_stationary(k: Kernel) -> bool:
    return k.program.has_derivatives and k.program.is_translation_invariant
