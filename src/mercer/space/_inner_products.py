"""Inner products of expansions, a' K(X, Y) b, for every form of coefficients and block by block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer._tensors import as_double, detached, is_tensor, namespace
from mercer.engine import Coef, Dense, Program, SingleFeatures, n_rows, pieces
from mercer.exceptions import InputError

_VALUES = 1 << 20  # values of a batch that are held at once
_ROUNDING = 1e-12  # relative, of squared norms of tensors

Expansion = tuple[Any, Coef]
"""Points and coefficients."""


def blocks(points: Any, coef: Coef) -> list[Expansion]:
    """An expansion as a sum of blocks with coefficients of one form each, points in float64.

    Inner products use float64 for points of any dtype, or norms of differences would be noise.
    """
    points, coef = in_float64(points, coef)
    if isinstance(coef, engine.Stacked):
        axes = (slice(None),) if is_tensor(points) else ()
        return [(points[rows, *axes], part) for rows, part in coef.blocks()]
    return [(points, coef)]


def in_float64(points: Any, coef: Coef) -> Expansion:
    """Points in float64; coefficients, too, if they are tensors."""
    if not is_tensor(points):
        return engine.as_float64(points), coef
    return as_double(points), _doubled(coef)


def _doubled(coef: Coef) -> Coef:
    if isinstance(coef, engine.Stacked):
        return engine.stack([_doubled(part) for part in coef.parts])
    if isinstance(coef, SingleFeatures):
        return replace(coef, value=as_double(coef.value))
    return coef.rebuilt([as_double(a) for a in coef.arrays])


def inner_table(program: Program, one: Expansion, other: Expansion) -> Array:
    """<psi_j, phi_l> for every element of two batches, shape (b, b'); of tensors in their dtype."""
    if other[1].shape[1] <= one[1].shape[1]:  # evaluate the smaller batch
        return _weighed_values(program, one, other).T
    return _weighed_values(program, other, one)


def squared_norms(program: Program, points: Any, coef: Coef) -> tuple[Array, Array, Array]:
    """<psi_j, psi_j> / scale_j^2, the square of its terms' size / scale_j^2, and the scales.

    Rounding is measured against the size sum_i |a_i| sqrt|k(x_i, x_i)|. Scales are powers of two
    where squares would overflow or underflow, else 1, and 0 for elements that are zero.
    """
    length = np.sqrt(np.abs(engine.diagonal(program, points).astype(np.float64)))
    length = np.minimum(length, np.finfo(np.float64).max)  # zero times infinity would be NaN
    with np.errstate(over="ignore"):
        size, total = _absolute(coef).weigh(np.column_stack([length, np.ones_like(length)]))
    scale = norm_scales(size, total)
    factor = 1.0 / np.where(scale > 0.0, scale, 1.0)
    if (factor != 1.0).any():
        coef, size = scaled(coef, factor), size * factor
    squared = np.zeros(coef.shape[1])
    parts = blocks(points, coef)
    with np.errstate(over="ignore", invalid="ignore"):
        for i, one in enumerate(parts):
            for j, other in enumerate(parts[: i + 1]):
                product = _paired(program, one, other)
                squared += product if i == j else 2.0 * product
    if not np.isfinite(squared).all():
        raise InputError("kernel values at the points overflow; scale the data down")
    return squared, size**2, scale


def norm_scales(size: Array, total: Array) -> Array:
    """The scales of `squared_norms`, from the sums of |a_i| sqrt|k(x_i, x_i)| and of |a_i|."""
    most = np.minimum(np.maximum(size, total), np.finfo(np.float64).max)
    scale = np.where(total > 0.0, 1.0, 0.0)
    extreme = ((most < 1e-100) & (total > 0.0)) | (most > 1e100)
    scale[extreme] = np.ldexp(1.0, np.clip(np.frexp(most[extreme])[1], -1000, 1000))
    return scale


def tensor_norms(program: Program, points: Any, coef: Coef) -> Any:
    """sqrt(<psi_j, psi_j>) of tensors, shape (b,); NaN where the square is below zero.

    The derivative of the root is taken as zero where the norm is zero.
    """
    dtype = points.dtype
    points, coef = in_float64(points, coef)
    xp, parts = namespace(points), blocks(points, coef)
    squared: Any = 0.0
    for i, one in enumerate(parts):
        for j, other in enumerate(parts[: i + 1]):
            product = _paired(program, one, other)
            squared = squared + (product if i == j else 2.0 * product)
    length = xp.sqrt(xp.abs(detached(engine.diagonal(program, points))))
    size = _absolute(coef).weigh(length[:, None])[0, :]
    zero = xp.zeros_like(squared)
    root = xp.where(squared > 0, xp.sqrt(xp.where(squared > 0, squared, zero + 1.0)), zero)
    root = xp.where(squared < -_ROUNDING * detached(size) ** 2, xp.full_like(root, np.nan), root)
    return xp.astype(root, dtype, copy=False)


def scaled(coef: Coef, factor: Array) -> Coef:
    """Each element times its factor; the left parts of products of thin matrices are about 1."""
    if isinstance(coef, engine.Stacked):
        return engine.stack([scaled(part, factor) for part in coef.parts])
    if not isinstance(coef, engine.LowRank):
        return coef.scale(factor)
    size = np.abs(coef.left).max(axis=0)
    size = np.where(size > 0.0, np.maximum(size, 1e-300), 1.0)
    return engine.LowRank(coef.left / size, coef.right * np.outer(size, factor))


def _absolute(coef: Coef) -> Coef:
    """|a_i|, or a bound on it for products of thin matrices."""
    if isinstance(coef, engine.Stacked):
        return engine.stack([_absolute(part) for part in coef.parts])
    if isinstance(coef, SingleFeatures):
        return replace(coef, value=abs(coef.value))
    if isinstance(coef, engine.LowRank):
        return engine.LowRank(abs(coef.left), abs(coef.right))
    return Dense(abs(coef.array))


def _paired(program: Program, one: Expansion, other: Expansion) -> Any:
    """diag(A' K(X, Y) B): the inner product of element j of one batch with element j of another."""
    (X, A), (Y, B) = one, other
    xp = namespace(X)
    if isinstance(A, SingleFeatures):
        Q: Any = xp.take(X, A.index, axis=0) if is_tensor(X) else X[A.index]
        return A.value * engine.fields(program, Y, Q, B, paired=True).value
    if isinstance(B, SingleFeatures):
        return _paired(program, other, one)
    if isinstance(A, engine.LowRank) and isinstance(B, engine.LowRank):
        table: Any = inner_table(program, (X, Dense(A.left)), (Y, Dense(B.left)))
        return xp.sum(A.right * (table @ B.right), axis=0)
    if is_tensor(X):
        values: Any = engine.fields(program, Y, X, B).value
        return xp.sum(A.tile(slice(0, n_rows(X)), slice(None)) * values, axis=0)
    total = np.zeros(A.shape[1])
    for rows in pieces(n_rows(X), _rows_for(A.shape[1])):
        values = engine.fields(program, Y, X[rows], B).value
        total += np.einsum("ib,ib->b", A.tile(rows, slice(None)), values, dtype=np.float64)
    return total


def _weighed_values(program: Program, weighing: Expansion, evaluated: Expansion) -> Array:
    """Inner products from the values of one batch at the points of the other, (b', b)."""
    X, B = in_float64(*evaluated)
    if is_tensor(X):
        Y, A = in_float64(*weighing)
        table = A.weigh(engine.fields(program, X, Y, B).value)
        return namespace(X).astype(table, evaluated[0].dtype, copy=False)  # type: ignore[no-any-return]
    total = np.zeros((B.shape[1], weighing[1].shape[1]))
    size = _rows_for(B.shape[1])
    for points, coef in blocks(*weighing):
        if isinstance(coef, SingleFeatures):
            for part in pieces(coef.index.size, size):
                values = engine.fields(program, X, points[coef.index[part]], B).value
                total[:, part] += (values * coef.value[part, None]).T
            continue
        for rows in pieces(n_rows(points), size):
            values = engine.fields(program, X, points[rows], B).value
            if isinstance(coef, engine.LowRank):
                total += (values.T @ coef.left[rows]) @ coef.right
            else:
                assert isinstance(coef, Dense)
                total += values.T @ coef.array[rows]
    return total


def _rows_for(batch: int) -> int:
    """How many queries of a batch are evaluated at once."""
    return max(16, _VALUES // batch)
