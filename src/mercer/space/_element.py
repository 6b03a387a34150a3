"""Elements of a reproducing kernel Hilbert space, psi = sum_i a_i k(x_i, .)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points, as_vector, check_same_columns, frozen, instance, real
from mercer._chunks import Chunks
from mercer._frames import Framed, Header
from mercer._tensors import check_alike, check_finite, constant, is_tensor, namespace, no_autocast
from mercer.engine import Coef, Dense, Fields, LowRank, SingleFeatures, n_columns, n_rows, stack
from mercer.exceptions import InputError, SpaceError
from mercer.kernels import Kernel
from mercer.space._chunked import (
    CoefInPieces,
    coefficients,
    fields_in_pieces,
    inner_in_pieces,
    joined,
    squared_norms_in_pieces,
)
from mercer.space._inner_products import inner_table, squared_norms, tensor_norms
from mercer.space._points import checked_points, concatenated, equal_points, unique

_ROUNDING = 1e-12  # of the sum of the sizes of all terms


@dataclass(frozen=True, eq=False, repr=False)
class Element(Framed):
    """psi = sum_i a_i k(x_i, .), or a batch of b such elements that share their points.

    Elements are immutable; they can be evaluated, added, scaled and measured. A batch of features
    or projections costs no more than its points.

    Parameters
    ----------
    kernel : Kernel
    points : array_like of shape (n, d), or other points of the kernel's domain
    coef : array_like of shape (n,) for one element, (n, b) for a batch

    Attributes
    ----------
    batch : int or None
        The number of elements, None for a single one.
    header : Header or None
        The names of the columns, if the points were given as a frame; see `to_frame`.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, -1.0])
    >>> psi([[0.0], [1.0]]).round(4)
    array([0.8647, 0.    ])
    >>> round(float(psi.norm()), 4)
    1.315
    """

    kernel: Kernel
    points: Any
    coef: Any
    batch: int | None = None
    header: Header | None = None

    def __post_init__(self) -> None:
        if isinstance(self.coef, Coef | CoefInPieces):  # built internally, from checked parts
            if isinstance(self.points, Points):
                object.__setattr__(self, "header", self.header or self.points.header)
                object.__setattr__(self, "points", self.points.array)
            return
        checked = checked_points(self.kernel, self.points, "points")
        points, coef = checked.array, self.coef
        if self.header is not None:
            instance(self.header, Header, "header")
        object.__setattr__(self, "header", self.header or checked.header)
        if isinstance(points, Chunks):
            coef, batch = coefficients(points, coef)
            for name, value in (("points", points), ("coef", coef), ("batch", batch)):
                object.__setattr__(self, name, value)
            return
        if is_tensor(points) or is_tensor(coef):
            check_alike(points, coef, ("points", "coef"))
            check_finite(coef, "coef")
        try:
            coef = coef if is_tensor(coef) else np.asarray(coef)
        except ValueError as error:
            raise InputError(f"coef must be a rectangular array of numbers: {error}") from error
        if coef.ndim not in (1, 2) or coef.shape[0] != n_rows(points):
            raise InputError(
                f"coef must have shape ({n_rows(points)},) or ({n_rows(points)}, b) for "
                f"{n_rows(points)} points, got {tuple(coef.shape)}"
            )
        batch = coef.shape[1] if coef.ndim == 2 else None
        if batch == 0:
            raise InputError("coef has no columns: a batch needs at least one element")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "batch", batch)
        if is_tensor(coef):
            columns = coef if batch is not None else coef[:, None]
        else:
            flat = as_vector(coef.reshape(-1), "coef")
            columns = frozen(np.array(flat.reshape(n_rows(points), -1)))  # the caller's may change
        object.__setattr__(self, "coef", Dense(columns))

    @property
    def support(self) -> Points:
        """The points as checked `Points`, which other functions do not check again."""
        return Points(self.points, self.kernel.domain, self.header)

    def __call__(self, Y: Any) -> Array:
        """Return psi(y_j), shape (m,); every element of a batch at every point, (m, b)."""
        return self._at(Y, 0)

    def gradient(self, Y: Any) -> Array:
        """Return the gradient of psi at the rows of Y, shape (m, d) or (m, b, d).

        At a cusp (a point of a Laplace-type element) the gradient does not exist; the term of that
        point is left out, which gives the symmetric derivative.
        """
        return self._at(Y, 1)

    def hessian(self, Y: Any) -> Array:
        """Return the Hessian of psi at the rows of Y, shape (m, d, d) or (m, b, d, d).

        NaN at a cusp, where there is none.
        """
        return self._at(Y, 2)

    def fields(
        self, Y: Any, *, order: int = 0, paired: bool = False, shifted: bool = False
    ) -> Fields:
        """Return values and derivatives up to `order` as the engine returns them.

        For code that evaluates an element often: Y is an array that `queries` returned, or one
        computed from it, and only its number of columns is checked. With `paired`, element j of
        the batch is evaluated at row j of Y only. With `shifted`, sums come with a logarithmic
        scale per query, so that directions are kept where values underflow.
        """
        check_same_columns(self.points, Y, ("the element's points", "Y"))
        check_alike(self.points, Y, ("points", "Y"))
        if order:
            engine.require_derivatives(self.kernel.program)
        if paired and n_rows(Y) != self.coef.shape[1]:
            raise InputError(
                f"paired evaluation needs one query per element: {self.coef.shape[1]} elements, "
                f"{n_rows(Y)} queries"
            )
        how: Any = {"order": order, "paired": paired, "shifted": shifted}
        if isinstance(self.points, Chunks) or isinstance(Y, Chunks):
            return fields_in_pieces(self, Y, how)  # type: ignore[no-any-return]
        return engine.fields(self.kernel.program, self.points, Y, self.coef, **how)

    def queries(self, Y: Any) -> Any:
        """Return Y, checked, as an array of points at which this element can be evaluated."""
        points = self.kernel.points(Y, "Y", tensors=is_tensor(self.points))
        check_alike(self.points, points.array, ("points", "Y"))
        check_same_columns(self.support, points, ("the element's points", "Y"))
        return points.array

    def __len__(self) -> int:
        if self.batch is None:
            raise TypeError("a single element has no length; a batch has")
        return self.batch

    def __getitem__(self, index: Any) -> Element:
        """Return one element of a batch, or a smaller batch."""
        if self.batch is None:
            raise TypeError("a single element cannot be indexed; a batch can")
        if isinstance(index, int | np.integer):
            if not -self.batch <= index < self.batch:
                raise IndexError(f"element {index} of a batch of {self.batch}")
            one = self.coef.columns(np.array([index]))
            return Element(self.kernel, self.support, one, None)._trimmed()
        chosen = np.arange(self.batch)[index]
        if chosen.ndim != 1 or chosen.size == 0:
            raise IndexError("a batch is indexed by a number, a slice, or a list of numbers")
        part = self.coef.columns(chosen)
        return Element(self.kernel, self.support, part, chosen.size)._trimmed()

    def __add__(self, other: Any) -> Element:
        if not isinstance(other, Element):
            return NotImplemented
        self._same_space(other)
        if self.batch is not None and other.batch is not None and self.batch != other.batch:
            raise InputError(f"batches of {self.batch} and {other.batch} elements do not match")
        batch = self.batch if self.batch is not None else other.batch
        if isinstance(self.points, Chunks) or isinstance(other.points, Chunks):
            return Element(self.kernel, *joined(self, other, batch), batch)
        mine: Any = self._spread(batch)
        theirs: Any = other._spread(batch)
        if type(mine) is type(theirs) and equal_points(self.points, other.points):
            if isinstance(mine, Dense):
                with _no_overflow():
                    added: Coef = Dense(mine.array + theirs.array)
                return Element(self.kernel, self.support, added, batch)
            if isinstance(mine, LowRank):
                xp = namespace(mine.left)
                right = xp.concat([mine.right, theirs.right], axis=0)
                added = LowRank(xp.concat([mine.left, theirs.left], axis=1), right)
                return Element(self.kernel, self.support, added, batch)
        points = concatenated(self.points, other.points)
        return Element(
            self.kernel, points, stack([mine, theirs]), batch, self.header or other.header
        )

    def __radd__(self, other: Any) -> Element:
        if isinstance(other, int | float) and other == 0:
            return self  # so that sum() works
        return NotImplemented

    def __sub__(self, other: Any) -> Element:
        return self + (-other) if isinstance(other, Element) else NotImplemented

    def __neg__(self) -> Element:
        return self * -1.0

    def __mul__(self, factor: Any) -> Element:
        """Multiply by a number, or each element of a batch by its own."""
        if isinstance(factor, Element | Kernel):
            return NotImplemented
        if is_tensor(factor):
            c: Any = self._tensor(factor, "the factor")
            if c.ndim and (self.batch is None or tuple(c.shape) != (self.batch,)):
                raise InputError(f"the factors must have shape ({self.batch},), got {c.shape}")
        elif np.ndim(factor) == 0:
            c = real(factor, "the factor")
        elif self.batch is None:
            raise InputError("a single element is multiplied by a single number")
        else:
            c = as_vector(factor, "the factors", self.batch)
            c = constant(c, self.points)
        with _no_overflow():
            scaled = self.coef.scale(c)
        return Element(self.kernel, self.support, scaled, self.batch)

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that NumPy numbers and vectors on the left defer to these operators

    def __truediv__(self, divisor: Any) -> Element:
        if is_tensor(divisor):
            return self.__mul__(1.0 / self._tensor(divisor, "the divisor"))
        single = np.ndim(divisor) == 0
        d: Any = real(divisor, "the divisor") if single else as_vector(divisor, "the divisors")
        if np.any(d == 0):
            raise InputError("division of an element by zero")
        return self.__mul__(1.0 / d)

    def combine(self, weights: Any) -> Element:
        """Return the elements sum_j W[j, l] psi_j of a batch, for W of shape (b,) or (b, b').

        A single element counts as a batch of one: `psi.combine(np.ones((1, m)))` repeats it.
        """
        known = is_tensor(weights)
        W = self._tensor(weights, "weights") if known else np.asarray(weights)
        count, ndim = 1 if self.batch is None else self.batch, W.ndim
        if ndim not in (1, 2) or W.shape[0] != count:
            raise InputError(f"weights must have one row per element of a batch, got {W.shape}")
        if known:
            W = W if ndim == 2 else W[:, None]
        else:
            W = as_vector(W.reshape(-1), "weights").reshape(count, -1)
            W = constant(W, self.points)
        batch = W.shape[1] if ndim == 2 else None
        with _no_overflow(), no_autocast(W):
            return Element(self.kernel, self.support, self.coef.combine(W), batch)

    def merge(self) -> Element:
        """Return the same element with equal points merged and points of zero weight dropped."""
        instance(self, Element, "the element")  # on arrays
        points, groups = unique(self.points)
        coef = self.coef.merged(groups, n_rows(points))
        if isinstance(coef, Dense):
            used = np.flatnonzero(np.any(coef.array != 0, axis=1))
            used = used if used.size else np.array([0])
            points, coef = points[used], Dense(coef.array[used])
        return Element(self.kernel, points, coef, self.batch, self.header)

    def inner(self, other: Element) -> Any:
        """Return <psi, phi> = a' K b: a number, or shape (b,), (b',) or (b, b') with batches."""
        self._same_space(other)
        one, two = (self.points, self.coef), (other.points, other.coef)
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(self.points, Chunks) or isinstance(other.points, Chunks):
                table = inner_in_pieces(self.kernel.program, self, other)
            else:
                table = inner_table(self.kernel.program, one, two)
        if not is_tensor(table) and not np.isfinite(table).all():
            raise InputError("the inner product overflows; scale the elements down")
        table = table if other.batch is not None else table[:, 0]
        return table if self.batch is not None else table[0]

    def norm(self) -> Any:
        """Return sqrt(<psi, psi>): a number, or one per element of a batch.

        NaN if the square is negative beyond rounding: then the kernel is not positive definite and
        the element has no norm.
        """
        if is_tensor(self.points):
            root = tensor_norms(self.kernel.program, self.points, self.coef)
            return root if self.batch is not None else root[0]
        if isinstance(self.points, Chunks):
            squared, size, scale = squared_norms_in_pieces(self)
        else:
            squared, size, scale = squared_norms(self.kernel.program, self.points, self.coef)
        with np.errstate(over="ignore"):
            root = np.sqrt(np.maximum(squared, 0.0)) * scale
        root = np.where(squared < -_ROUNDING * size, np.nan, root)
        return root if self.batch is not None else root[0]

    def distance(self, other: Element) -> Any:
        """Return |psi - phi|, element by element where batches are involved."""
        self._same_space(other)
        return (self - other).norm()

    def _at(self, Y: Any, order: int) -> Array:
        Y = self.queries(Y)
        fields, single = self.fields(Y, order=order), self.batch is None
        if not isinstance(fields, Chunks):
            return _derivative(fields, order, single)
        tail = (() if single else (self.batch,)) + order * Y.tail
        dtype = engine.tile_dtype(self.points, Y)
        found = fields.mapped(_derivative, order, single, tail=tail, dtype=dtype)
        return found.collected()

    def _same_space(self, other: Any) -> None:
        if not isinstance(other, Element):
            raise InputError(f"an Element is needed, got {type(other).__name__}")
        if self.kernel != other.kernel:
            raise SpaceError(
                f"the elements live in different spaces: of {self.kernel!r} and of {other.kernel!r}"
            )
        check_same_columns(self.support, other.support, ("one element", "the other"))
        check_alike(self.points, other.points, ("one element", "the other"))

    def _tensor(self, value: Any, name: str) -> Any:
        """A tensor of the same kind as the points, checked to be finite."""
        check_alike(self.points, value, ("points", name))
        check_finite(value, name)
        return value

    def _spread(self, batch: int | None) -> Coef:
        """Coefficients for a batch; a single element is repeated, as a product of rank one."""
        if batch is None or self.batch is not None:
            return self.coef  # type: ignore[no-any-return]
        if isinstance(self.coef, CoefInPieces):
            return self.coef.combine(np.ones((1, batch)))  # type: ignore[return-value]
        column = self.coef.tile(slice(None), slice(None))
        xp = namespace(column)
        where = {"device": column.device} if is_tensor(column) else {}
        return LowRank(column, xp.ones((1, batch), dtype=column.dtype, **where))

    def _trimmed(self) -> Element:
        """Keep only the points that a selection uses."""
        if not isinstance(self.coef, SingleFeatures):
            return self
        if is_tensor(self.points):
            xp, count = namespace(self.points), self.coef.index.shape[0]
            own = xp.arange(count, device=self.points.device)
            coef = SingleFeatures(own, self.coef.value, count)
            points = xp.take(self.points, self.coef.index, axis=0)
            return Element(self.kernel, points, coef, self.batch)
        rows, index = np.unique(self.coef.index, return_inverse=True)
        coef = SingleFeatures(index.reshape(-1), self.coef.value, rows.size)
        return Element(self.kernel, self.support[rows], coef, self.batch)

    def __repr__(self) -> str:
        what = "Element" if self.batch is None else f"batch of {self.batch} Elements"
        dim = n_columns(self.points)
        where = f" in {dim} dimensions" if dim else ""
        return f"<{what} of {self.kernel!r} on {n_rows(self.points)} points{where}>"


def _derivative(fields: Fields, order: int, single: bool) -> Array:
    """The value, gradient or Hessian, without the axis of elements for a single one."""
    array: Any = (fields.value, fields.gradient, fields.hessian)[order]
    if order == 1 and not is_tensor(array) and np.isnan(array).any():
        raise InputError("kernel values overflow, so the gradient is unknown; scale the points")
    if order == 2 and fields.cusp is not None:
        xp, at_cusp = namespace(array), (fields.cusp != 0)[..., None, None]
        array = xp.where(at_cusp, xp.full_like(array, np.nan), array)
    return array[:, 0, ...] if single else array  # type: ignore[no-any-return]


@contextmanager
def _no_overflow() -> Iterator[None]:
    """Raise an InputError if coefficients overflow."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError as error:
        raise InputError("the coefficients overflow; scale the element down") from error
