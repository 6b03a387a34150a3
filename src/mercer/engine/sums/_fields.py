"""Fields: values, gradients and Hessians of kernel sums, and how to combine them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._tensors import is_tensor, namespace
from mercer.engine._sizes import as_float32
from mercer.engine.programs._program import Program
from mercer.engine.sums._derivatives import Moments, gradient_of, hessian_of


@dataclass(frozen=True)
class Fields:
    """A kernel sum and its derivatives at each query; true values are `value * exp(shift)`.

    A row keeps its direction even if all its weights underflow.

    Attributes
    ----------
    value : array of shape (m,) for one element or a paired batch, (m, b) otherwise
    gradient, hessian : arrays with one and two more axes of length d; None if not requested
    slopes : for each variable of the program the sum of coef times the partial derivative; empty
        where they are not known (spectral engine, unless the profile is exponential)
    cusp : the sum of the coefficients of the points that coincide with the query, where the
        slope is infinite (their terms are left out of the derivatives); None for smooth profiles
    shift : the logarithm of the scale of each query, shape (m,); 0 if not given
    bound : a bound on the error of the values of each element, shape (b,), where
        `options(tolerance=...)` was used; None where the error is rounding only
    """

    value: Array
    gradient: Array | None = None
    hessian: Array | None = None
    slopes: tuple[Array, ...] = ()
    cusp: Array | None = None
    shift: Array = None  # type: ignore[assignment]
    bound: Array | None = None

    def __post_init__(self) -> None:
        if self.shift is None:
            object.__setattr__(self, "shift", np.zeros(self.value.shape[0]))

    def each(self, change: Callable[[Array], Array], bound: Array | None = None) -> Fields:
        """Apply one function to value, gradient, Hessian, slopes and cusp."""
        return _joined([self], lambda arrays: change(arrays[0]), self.shift, bound)

    def only_element(self) -> Fields:
        """Drop the axis of elements, of which there is one."""
        return self.each(lambda a: a[:, 0, ...], None if self.bound is None else self.bound[:1])

    def put(self, rows: Any, part: Fields) -> None:
        """Overwrite some rows in place."""
        for name in ("value", "gradient", "hessian", "cusp", "shift"):
            if getattr(self, name) is not None:
                getattr(self, name)[rows] = getattr(part, name)
        if self.slopes:
            for own, other in zip(self.slopes, part.slopes, strict=True):
                own[rows] = other


def empty_fields(program: Program, m: int, batch: int, dim: int, order: int, dtype: Any) -> Fields:
    """Unwritten fields of the given sizes, for `Fields.put`."""
    shape = (m, batch)
    gradient = np.empty((*shape, dim), dtype=dtype) if order >= 1 else None
    hessian = np.empty((*shape, dim, dim), dtype=dtype) if order == 2 else None
    slopes = tuple(np.empty(shape) for _ in program.variables) if order >= 1 else ()
    cusp = np.empty(shape, dtype=dtype) if order >= 1 and any(program.cusps) else None
    return Fields(np.empty(shape, dtype=dtype), gradient, hessian, slopes, cusp)


def from_moments(
    program: Program,
    moments: Moments,
    queries: list[Array],
    dim: int,
    order: int,
    dtype: Any,
    shift: Array | None = None,
    bound: Array | None = None,
) -> Fields:
    """Fields from moments of all elements, arrays of shape (m, b, ...).

    `queries[v]` are the queries as variable v measures them, centred like the points.
    """
    xp = namespace(moments[("value",)])
    value = xp.astype(moments[("value",)], dtype, copy=False)
    if order == 0:
        return Fields(value, shift=shift, bound=bound)  # type: ignore[arg-type]
    gradient = xp.astype(gradient_of(program, moments, queries, dim), dtype, copy=False)
    hessian = None
    if order == 2:
        hessian = xp.astype(hessian_of(program, moments, queries, dim), dtype, copy=False)
    known = range(len(program.variables))
    sums = (moments.get(("first", v)) for v in known)
    slopes = tuple(xp.zeros_like(value) if s is None else s[..., 0] for s in sums)
    cusp = None
    if any(program.cusps):
        cusp = xp.astype(moments[("cusp",)], dtype, copy=False)
    return Fields(value, gradient, hessian, slopes, cusp, shift, bound)  # type: ignore[arg-type]


def total(parts: list[Fields]) -> Fields:
    """The sum of several fields, at a common shift."""
    return _at_common_shift(parts, sum, lambda bounds: np.sum(bounds, axis=0))


def side_by_side(parts: list[Fields]) -> Fields:
    """The parts of a batch side by side, at a common shift."""
    return _at_common_shift(parts, partial(np.concatenate, axis=1), np.concatenate)


def _at_common_shift(
    parts: list[Fields], join: Callable[[list[Array]], Any], join_bounds: Callable[[Any], Array]
) -> Fields:
    if len(parts) == 1:
        return parts[0]
    if is_tensor(parts[0].value):  # without shifts and bounds
        return _joined(parts, join, parts[0].shift, None)
    high = np.max([p.shift for p in parts], axis=0)
    scales = [factor(p.shift, high) for p in parts]

    def scaled_and_joined(arrays: list[Array]) -> Any:
        return join(list(map(by_row, arrays, scales))).astype(arrays[0].dtype, copy=False)

    bound = None
    if any(p.bound is not None for p in parts):
        bound = join_bounds(
            [np.zeros(p.value.shape[1]) if p.bound is None else p.bound for p in parts]
        )
    return _joined(parts, scaled_and_joined, high, bound)


def on_top(parts: list[Fields]) -> Fields:
    """The fields of tensors at queries of several tiles, one below the other."""
    xp = namespace(parts[0].value)
    shift = np.concatenate([p.shift for p in parts])
    return _joined(parts, partial(xp.concat, axis=0), shift, None)


def factor(shift: Array, high: Array) -> Array:
    """The factor that brings sums at `shift` to the shift `high`."""
    return np.exp(np.where(shift == high, 0.0, shift - finite(high)))


def finite(shift: Array) -> Array:
    """The shift, with 0 where it is infinite (every weight is zero)."""
    return np.where(np.isfinite(shift), shift, 0.0)


def by_row(array: Array, scale: Array) -> Array:
    return array * scale.reshape(-1, *(1,) * (array.ndim - 1))


def mixed(inner: Fields, B: Array) -> Fields:
    """The fields of linear combinations of the elements: the batch axis times B."""

    def mix(a: Any) -> Any:
        if is_tensor(a):
            xp = namespace(a)
            B_of_a = xp.astype(B, a.dtype, copy=False)
            return xp.moveaxis(xp.tensordot(a, B_of_a, axes=((1,), (0,))), -1, 1)
        return np.moveaxis(np.tensordot(a, B.astype(a.dtype), axes=(1, 0)), -1, 1)

    return inner.each(mix, None if inner.bound is None else inner.bound @ np.abs(B))


def in_float32(fields: Fields) -> Fields:
    """Fields in float32; slopes and shifts stay in float64, a bound grows by the rounding."""
    f = fields.each(as_float32, with_rounding(fields.bound, fields.value))
    return replace(f, slopes=fields.slopes)


def with_rounding(bound: Array | None, value: Array) -> Array | None:
    """A bound on the error of values of shape (m, b) that will be rounded to float32."""
    if bound is None:
        return None
    return np.asarray(bound + np.finfo(np.float32).eps * np.abs(value).max(axis=0))


def _joined(
    parts: list[Fields], join: Callable[[list[Array]], Any], shift: Array, bound: Array | None
) -> Fields:
    """Join the value, gradient, ... of all parts; None (or no slopes) where one part has none."""

    def joined(name: str) -> Any:
        arrays = [getattr(p, name) for p in parts]
        return None if any(a is None for a in arrays) else join(arrays)

    known = all(p.slopes for p in parts)
    slopes = zip(*(p.slopes for p in parts), strict=True) if known else ()
    return Fields(
        joined("value"),
        joined("gradient"),
        joined("hessian"),
        tuple(join(list(s)) for s in slopes),
        joined("cusp"),
        shift,
        bound,
    )
