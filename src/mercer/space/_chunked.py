"""Elements on rows in pieces: coefficients, values and inner products as sums over the pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_vector
from mercer._chunks import Chunks, weights_in_pieces
from mercer.engine import Coef, Dense, Fields, Program, as_float64
from mercer.exceptions import InputError
from mercer.space._inner_products import norm_scales


@dataclass(frozen=True, eq=False)
class CoefInPieces:
    """Coefficients of shape (n, b), cut into pieces at the same rows as the points.

    It has those methods of other coefficients that select, scale or combine elements.
    """

    chunks: Chunks
    batch: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.chunks), self.batch

    def columns(self, index: Any) -> CoefInPieces:
        return self.combine(np.eye(self.batch)[:, index])

    def scale(self, factor: Any) -> CoefInPieces:
        return CoefInPieces(self.chunks.mapped(_scaled, factor), self.batch)

    def combine(self, B: Array) -> CoefInPieces:
        return CoefInPieces(self.chunks.mapped(_combined, B), B.shape[1])

    @cached_property
    def range(self) -> tuple[float, float, float]:
        """The smallest coefficient above zero (inf if none), the smallest, and the sum."""
        least, lowest, total = self.chunks.total(_range, add=_joined_range, task="weights")
        return least, lowest, total


def coefficients(points: Chunks, coef: Any) -> tuple[CoefInPieces, int | None]:
    """Return coefficients as the user gave them, (n,) or (n, b), and the batch."""
    chunks = points.zip(coef, name="coef").only(len(points.columns))
    shape = chunks.gathered(np.shape, task="coefficients")[0]
    if len(shape) not in (1, 2) or 0 in shape:
        raise InputError(f"coef must have shape ({len(points)},) or ({len(points)}, b)")
    batch = shape[1] if len(shape) == 2 else None
    return CoefInPieces(chunks.mapped(_as_columns), batch or 1), batch


def mean_weights(points: Chunks, weights: Any) -> CoefInPieces:
    """Return weights that sum to one; equal by default."""
    if weights is None:
        shares = points.each(points.sizes).only(len(points.columns))
        return CoefInPieces(shares.mapped(_equal, 1.0 / len(points)), 1)
    raw = weights_in_pieces(points, weights)
    total = CoefInPieces(raw, 1).range[2]
    if total == 0.0:
        raise InputError("weights must not all be zero")
    if not 1e-300 < total < 1e300:
        raise InputError(f"the sum of the weights is {total:g}; bring them nearer to 1")
    return CoefInPieces(raw.mapped(_scaled, 1.0 / total), 1)


def joined(one: Any, other: Any, batch: int | None) -> tuple[Chunks, CoefInPieces]:
    """Return points and coefficients of the sum of two elements, at least one of them in pieces."""
    kind = one.points if isinstance(one.points, Chunks) else other.points
    parts = []
    for psi in (one, other):
        points, coef = psi.points, psi._spread(batch)
        if not isinstance(points, Chunks):
            array = coef.tile(slice(None), slice(None))
            points, coef = kind.whole(points), CoefInPieces(kind.whole(array), array.shape[1])
        parts.append((points, coef))
    (x, a), (y, b) = parts
    return x.concat(y), CoefInPieces(a.chunks.concat(b.chunks), a.batch)


def rows_of(psi: Any) -> Chunks:
    """Return points and coefficients of an element, if its points come in pieces."""
    rows: Chunks = psi.points.zip(psi.coef.chunks)
    return rows


def fields_in_pieces(psi: Any, Y: Any, how: dict[str, Any]) -> Any:
    """Return the fields of an element; where the queries come in pieces, so do the fields."""
    program = psi.kernel.program
    if how.get("paired"):
        raise InputError("an element at one query each needs its points in memory")
    if not isinstance(Y, Chunks):
        return rows_of(psi).total(_kernel_sum, program, Y, how, add=add_fields, task="kernel sum")
    if not isinstance(psi.points, Chunks):
        return Y.mapped(_kernel_sum_at, program, psi.points, psi.coef, how)
    return Y.crossed(rows_of(psi), _kernel_sum_of_pair, program, how, add=add_fields)


def inner_in_pieces(program: Program, one: Any, other: Any) -> Any:
    """Return <psi_j, phi_l> for every element of two batches, shape (b, b')."""
    if not isinstance(other.points, Chunks):
        return inner_in_pieces(program, other, one).T
    rows = rows_of(other)
    if isinstance(one.points, Chunks):
        rows = rows.crossed(rows_of(one), _inner_of_pair, program)
        return np.asarray(rows.total(np.asarray, task="inner product"))
    how = (program, one.points, one.coef)
    return np.asarray(rows.total(_inner, *how, task="inner product"))


def squared_norms_in_pieces(psi: Any) -> tuple[Array, Array, Array]:
    """Return the same as `squared_norms`, for points in pieces."""
    program = psi.kernel.program
    size, total = rows_of(psi).total(_absolute, program, task="norm")
    scale = norm_scales(size, total)
    factor = 1.0 / np.where(scale > 0.0, scale, 1.0)
    if (factor != 1.0).any():
        psi, size = replace(psi, coef=psi.coef.scale(factor)), size * factor
    return inner_in_pieces(program, psi, psi).diagonal(), size**2, scale


def _scaled(a: Array, factor: Any) -> Array:
    return np.asarray(a * factor)


def _combined(a: Array, B: Array) -> Array:
    return np.asarray(a @ B)


def _equal(size: int, share: float) -> Array:
    return np.full((size, 1), share)


def _as_columns(a: Any) -> Array:
    a = np.asarray(a)
    flat = as_vector(a.reshape(-1), "coef")
    return flat.reshape(len(a), -1)


def _range(a: Array) -> tuple[float, float, float]:
    with np.errstate(over="ignore"):
        return float(a[a > 0].min(initial=np.inf)), float(a.min()), float(a.sum())


def _joined_range(
    a: tuple[float, float, float], b: tuple[float, float, float]
) -> tuple[float, float, float]:
    return min(a[0], b[0]), min(a[1], b[1]), a[2] + b[2]


def _kernel_sum(x: Any, a: Array, program: Program, y: Any, how: dict[str, Any]) -> Fields:
    return engine.fields(program, x, y, Dense(a), **how)


def _kernel_sum_at(y: Any, program: Program, x: Any, coef: Coef, how: dict[str, Any]) -> Fields:
    return engine.fields(program, x, y, coef, **how)


def _kernel_sum_of_pair(y: Any, x: Any, a: Array, program: Program, how: dict[str, Any]) -> Fields:
    return engine.fields(program, x, y, Dense(a), **how)


def add_fields(one: Fields, other: Fields) -> Fields:
    return engine.total([one, other])


def _inner(y: Any, b: Array, program: Program, x: Any, coef: Coef) -> Array:
    values = engine.fields(program, as_float64(x), as_float64(y), coef).value
    return np.asarray(values.T @ b)


def _inner_of_pair(y: Any, b: Array, x: Any, a: Array, program: Program) -> Array:
    return _inner(y, b, program, x, Dense(a))


def _absolute(x: Any, a: Array, program: Program) -> tuple[Array, Array]:
    length = np.sqrt(np.abs(engine.diagonal(program, as_float64(x))))
    a = np.abs(a)
    with np.errstate(over="ignore"):
        return np.asarray(length @ a), np.asarray(a.sum(axis=0))
