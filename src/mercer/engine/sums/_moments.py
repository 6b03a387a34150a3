"""Moments of the points under kernel weights: what fixed-point and Newton steps are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine._points import as_float64, n_columns
from mercer.engine.pairs._float32 import needs_float64
from mercer.engine.pairs._profile_tiles import scaled, without_cusps
from mercer.engine.programs._coef import Coef
from mercer.engine.programs._expr import Const
from mercer.engine.programs._jets import Jet
from mercer.engine.programs._program import Distance, Program
from mercer.engine.sums._choice import native_elements, use_native
from mercer.engine.sums._derivatives import Moments, add_moments
from mercer.engine.sums._native import moment_sums, symmetric
from mercer.engine.sums._redo import underflowing_rows
from mercer.engine.sums._tile_loop import TileLoop
from mercer.exceptions import DerivativeError

_EUCLIDEAN = Program((Distance(),), Const(0.0))  # only its variable is looked at


@dataclass(frozen=True)
class WeightedMoments:
    """Sums over points with weights w_i = a_i g(u_i); true sums are these times exp(shift).

    Attributes
    ----------
    weight : sum of w_i, shape (m,)
    first : sum of w_i (x_i - y), shape (m, d): the mean-shift vector is first / weight
    second : sum of w_i (x_i - y)(x_i - y)', shape (m, d, d); None if not asked for
    shift : logarithm of the scale of each query, shape (m,)
    """

    weight: Array
    first: Array
    second: Array | None
    shift: Array

    def put(self, rows: Array, part: WeightedMoments) -> None:
        """Overwrite some rows in place."""
        for name in ("weight", "first", "second", "shift"):
            if getattr(self, name) is not None:
                getattr(self, name)[rows] = getattr(part, name)


def moments(
    program: Program,
    X: Any,
    Y: Any,
    coef: Coef,
    *,
    derivative: int = 1,
    scatter: bool = False,
    shifted: bool = False,
) -> WeightedMoments:
    """Moments of the points about each query, in the original coordinates.

    The weights are the profile (`derivative=0`) or its first or second derivative in the squared
    distance or inner product, times the coefficients: of one element, or of element j for query j.
    Points that coincide with the query at a cusp are left out.
    """
    if program.kind not in ("radial", "dot"):
        raise DerivativeError(
            f"moments need a kernel of one squared distance or inner product, not a "
            f"{program.kind} one"
        )
    if needs_float64(program, X, Y, 2 if scatter else 1):
        X, Y = as_float64(X), as_float64(Y)
    found = _by_core(program, X, Y, coef, derivative, scatter)
    if found is None:
        return _blocked(program, X, Y, coef, derivative, scatter, shifted)
    if shifted and program.log_profile is not None:
        rows = underflowing_rows([found.weight, found.first], 1.0, "float64")
        if rows.size:
            coef = coef if coef.shape[1] == 1 else coef.columns(rows)
            found.put(rows, _blocked(program, X, Y[rows], coef, derivative, scatter, True))
    return found


def _by_core(
    program: Program, X: Any, Y: Any, coef: Coef, derivative: int, scatter: bool
) -> WeightedMoments | None:
    """The moments from sums of the native engine, unshifted; None where it cannot or should not."""
    d = n_columns(X)
    if not native_elements(d, 1 + scatter) or not use_native(program, X, Y):
        return None
    sums, about = moment_sums(program, X, Y, coef, derivative=derivative, scatter=scatter)
    y = np.asarray(Y, dtype=np.float64) - about
    weight, first = sums[:, 0].copy(), sums[:, 1 : 1 + d]
    second = None
    if scatter:
        second = _about(symmetric(sums[:, 1 + d :], d), first, weight, y)
    return WeightedMoments(weight, first - weight[:, None] * y, second, np.zeros(len(y)))


def _about(outer: Array, first: Array, weight: Array, y: Array) -> Array:
    """sum w (x - y)(x - y)' from the moments about another point."""
    cross = first[:, :, None] * y[:, None, :]
    square = weight[:, None, None] * y[:, :, None] * y[:, None, :]
    return np.asarray(outer - cross - np.swapaxes(cross, 1, 2) + square)


def _blocked(
    program: Program,
    X: Any,
    Y: Any,
    coef: Coef,
    derivative: int,
    scatter: bool,
    shifted: bool,
) -> WeightedMoments:
    dim, single = n_columns(Y), coef.shape[1] == 1
    per_row = 32 * dim * (dim if scatter else 1)
    loop = TileLoop(
        program,
        X,
        Y,
        order=derivative,
        shifted=shifted,
        arrays=4 + 4 * derivative,
        bytes_per_row=per_row,
    )
    weight, first = np.empty(loop.m), np.empty((loop.m, dim))
    second = np.empty((loop.m, dim, dim)) if scatter else None
    shifts = np.zeros(loop.m)
    middle = 0.0 if is_sparse(X) else np.mean(X, axis=0, dtype=np.float64)

    def add(sums: list[Moments], jet: Jet, inputs: list[Any], rows: Any, columns: slice) -> None:
        jet, _ = without_cusps(program, jet, inputs)
        A = coef.tile(columns, slice(None) if single else rows)
        W = scaled(_weights(jet, derivative), A.T.astype(jet.value.dtype, copy=False))
        points = X[columns] if is_sparse(X) else (X[columns] - middle).astype(jet.value.dtype)
        add_moments(sums[0], _EUCLIDEAN, W, [points], 2 if scatter else 1)

    def finish(rows: Any, sums: list[Moments], shift: Array) -> None:
        part = sums[0]
        y = np.asarray(Y[rows].toarray() if is_sparse(Y) else Y[rows], dtype=np.float64) - middle
        s, m1 = part[("sum", 0)], part[("first", 0)]
        shifts[rows], weight[rows] = shift, s
        first[rows] = m1 - s[:, None] * y
        if second is not None:
            second[rows] = _about(part[("second", 0, 0)], m1, s, y)

    loop.run(1, add, finish)
    return WeightedMoments(weight, first, second, shifts)


def _weights(jet: Jet, derivative: int) -> Jet:
    """The chosen weights in the place where `add_moments` reads them."""
    W = (jet.value, *(jet.first[:1]), *(row[0] for row in jet.second[:1]))[derivative]
    W = np.zeros_like(jet.value) if isinstance(W, int) else W
    return Jet(W, (W,), ((W,),))
