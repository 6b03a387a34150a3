"""Which engine does what.

| engine   | runs                                                                             |
|----------|----------------------------------------------------------------------------------|
| spectral | smooth radial profiles in at most 3 dimensions, where `options(tolerance=...)`   |
|          | allows an error, the frequency grid meets it, and it is forecast to be faster    |
| native   | profiles of one distance or inner product the core knows, dense points of at     |
|          | most 200 dimensions; all elements at all queries, or element j at query j        |
| blocked  | everything else: several variables, functions of blocks, opaque profiles, sparse |
|          | points, more dimensions (BLAS products, and a pass of the core over them)        |

`options(engine=...)` with one of these names overrides the choice, for the calls inside the block;
naming an engine that cannot run a call is an error. A blocked engine that is named runs on NumPy
alone.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._config import get_options, options
from mercer.engine._compiled import can_run, core
from mercer.engine._tiling import n_columns, n_rows, pieces
from mercer.engine.pairs._precision import as_float32, doubled, halved, in_double
from mercer.engine.programs._coef import Coef, Dense, LowRank, Selection, Stacked
from mercer.engine.programs._fields import Fields
from mercer.engine.programs._log_shift import mixed, replaced, side_by_side, total
from mercer.engine.programs._maps import apply_all
from mercer.engine.programs._program import Program
from mercer.engine.sums import _blocked, _native, _per_query, _spectral
from mercer.engine.sums._diagonal import aligned_fields
from mercer.engine.sums._spectral import Grid
from mercer.exceptions import InputError, MercerWarning

NATIVE_DIMENSIONS = 200  # above it BLAS does the work, and does it better
NATIVE_COLUMNS = 1024  # coefficient columns of one native sum of derivatives
_SPECTRAL_PAIRS = 1e7  # fewer are summed before a grid is made
_NO_SPECTRUM = (
    "the spectral engine cannot run this: it needs finufft (extra `fast`), dense points of at most "
    "3 dimensions, a smooth radial kernel, and a tolerance that a frequency grid can meet; "
    "use options(engine=None)"
)
_FINEST = 1e-12  # tolerance of the spectral engine where it is named and none is given
_NOISE = 1e3  # times the bound on the error: sums below it have no relative accuracy
_SELECTED = 64  # elements of a Selection that are differentiated at once
LOST = {"float32": 1e-30, "float64": 1e-290}  # kernel sums below have lost their digits


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m); exactly symmetric when Y is X."""
    if in_double(program, X, Y, 0):
        same = X is Y
        X = doubled(X)
        return as_float32(gram(program, X, X if same else doubled(Y)))
    run = _native.gram if use_native(program, X, Y) else _blocked.gram
    return run(program, X, Y)


def fields(
    program: Program,
    X: Any,
    Y: Any,
    coef: Coef,
    *,
    order: int = 0,
    paired: bool = False,
    shifted: bool = False,
) -> Fields:
    """Sums over points of coef times kernel, and derivatives in the query up to `order`.

    Every element at every query, shape (m, b, ...); or, if `paired`, element j at query j only.
    """
    if in_double(program, X, Y, order):
        wide = doubled(X), doubled(Y)
        return halved(fields(program, *wide, coef, order=order, paired=paired, shifted=shifted))
    if isinstance(coef, Stacked):
        parts = [
            fields(program, X[rows], Y, part, order=order, paired=paired, shifted=shifted)
            for rows, part in coef.blocks()
        ]
        return _again_where_small(program, X, Y, coef, order, shifted, total(parts))
    if isinstance(coef, Selection):
        if paired:
            return aligned_fields(program, X[coef.index], Y, coef.value, order, shifted)
        return _selected_fields(program, X, Y, coef, order, shifted)
    if isinstance(coef, LowRank) and not paired:
        inner = fields(program, X, Y, Dense(coef.left), order=order, shifted=shifted)
        return _again_where_small(program, X, Y, coef, order, shifted, mixed(inner, coef.right))
    if isinstance(coef, Dense) and not paired:
        if shifted:
            X, coef = _heard(X, coef)
        grid = _spectral_grid(program, X, Y, coef, order)
        if grid is not None:
            result = _spectral.fields(program, X, Y, coef.array, grid, order=order)
            return _again_where_small(program, X, Y, coef, order, shifted, result)
        if use_native(program, X, Y):
            result = _native_fields(program, X, Y, coef, order, shifted)
            return _again_where_small(program, X, Y, coef, order, shifted, result)
    if paired:
        by_core = _paired_fields(program, X, Y, coef, order)
        if by_core is not None:
            return _lost_rows_again(program, X, Y, coef, order, shifted, by_core)
    return _blocked.fields(program, X, Y, coef, order=order, paired=paired, shifted=shifted)


def _paired_fields(
    program: Program, X: Any, Y: Any, coef: Dense | LowRank, order: int
) -> Fields | None:
    """Element j at query j, unshifted, by the core; None if that is for the blocked engine."""
    wide = order == 2 and n_columns(X) ** 2 > NATIVE_COLUMNS
    if not wide and use_native(program, X, Y):
        return _native.paired_fields(program, X, Y, coef, order=order)
    dense = not is_sparse(X) and not is_sparse(Y)
    if order == 1 and dense and core() is not None and can_run(program):
        return None if get_options().engine is not None else _per_query.fields(program, X, Y, coef)
    return None


def _lost_rows_again(
    program: Program,
    X: Any,
    Y: Any,
    coef: Dense | LowRank,
    order: int,
    shifted: bool,
    result: Fields,
) -> Fields:
    """Where relative accuracy is wanted (`shifted`), rows that underflow are done again."""
    if not shifted or program.log_profile is None:
        return result
    largest = np.abs(result.value).astype(np.float64)
    for slope in result.slopes:
        largest = np.maximum(largest, np.abs(slope))
    lost = np.flatnonzero(~((largest > LOST[str(result.value.dtype)]) & np.isfinite(largest)))
    if lost.size == 0:
        return result
    part = coef.columns(lost)
    assert isinstance(part, Dense | LowRank)
    again = _blocked.fields(program, X, Y[lost], part, order=order, paired=True, shifted=True)
    return replaced(result, lost, again)


def _heard(X: Any, coef: Dense) -> tuple[Any, Dense]:
    """Without the points of coefficient zero, which must not set the scale of a shifted sum."""
    used = np.any(coef.array != 0, axis=1)
    return (X, coef) if used.all() or not used.any() else (X[used], Dense(coef.array[used]))


def _native_fields(
    program: Program, X: Any, Y: Any, coef: Dense, order: int, shifted: bool
) -> Fields:
    per_element = sum(n_columns(X) ** k for k in range(order + 1)) if order else 1
    if order == 2 and per_element > NATIVE_COLUMNS:
        return _blocked.fields(program, X, Y, coef, order=order, shifted=shifted)
    if order and coef.shape[1] * per_element > NATIVE_COLUMNS:
        size = max(1, NATIVE_COLUMNS // per_element)
        parts = [Dense(coef.array[:, part]) for part in pieces(coef.shape[1], size)]
        return side_by_side([_native_fields(program, X, Y, p, order, shifted) for p in parts])
    if not shifted or program.log_profile is None:
        return _native.fields(program, X, Y, coef.array, order=order)
    return _with_lost_rows(program, X, Y, coef, order)


def _with_lost_rows(program: Program, X: Any, Y: Any, coef: Dense, order: int) -> Fields:
    """Unshifted sums, and the rows whose kernel values underflow or overflow done again."""
    ones = np.ones((n_rows(X), 1), dtype=coef.dtype)
    result = _native.fields(program, X, Y, np.hstack([coef.array, ones]), order=order)
    mass = result.value[:, -1]
    lost = np.flatnonzero(~((mass > LOST[str(mass.dtype)]) & np.isfinite(mass)))
    result = result.first_elements(coef.shape[1])
    if lost.size == 0:
        return result
    again = _blocked.fields(program, X, Y[lost], coef, order=order, shifted=True)
    return replaced(result, lost, again)


def _again_where_small(
    program: Program, X: Any, Y: Any, coef: Coef, order: int, shifted: bool, result: Fields
) -> Fields:
    """Where relative accuracy is wanted (`shifted`), do sums again that a tolerance made noise.

    Their error is bounded by a share of the largest sum, not of each: in the tails a ratio of two
    tiny numbers would be noise.
    """
    if not shifted or result.bound is None:
        return result
    small = np.any(np.abs(result.value) < _NOISE * result.bound, axis=1)
    rows = np.flatnonzero(small & (result.shift == 0.0))  # rows with a shift were done again
    if rows.size == 0:
        return result
    with options(engine=None, tolerance=0.0):
        again = fields(program, X, Y[rows], coef, order=order, shifted=True)
    return replaced(result, rows, again)


def _spectral_grid(program: Program, X: Any, Y: Any, coef: Dense, order: int) -> Grid | None:
    """The grid of frequencies to use, or None if this call is not for the spectral engine."""
    wanted, tolerance = get_options().engine, get_options().tolerance
    if wanted not in (None, "spectral"):
        return None
    possible = (
        program.kind == "radial"
        and not (is_sparse(X) or is_sparse(Y))
        and _dimensions(program, X) <= 3
        and program.is_smooth
        and _spectral.finufft() is not None
    )
    if wanted is None and (not possible or tolerance == 0.0 or _few_pairs(X, Y)):
        return None
    most: float = _spectral.MOST_MODES
    if wanted is None:  # a larger grid would take longer than the sum
        seconds = _native.seconds_needed(program, X, Y, coef.shape[1], order)
        size = _dimensions(program, X), n_rows(X), n_rows(Y), coef.shape[1], order
        most = min(most, _spectral.modes_within(seconds, *size))
    grid = None
    if possible and most >= 1:
        low, high = _spectral.box_of(program, X, Y)
        grid = _spectral.grid_for(program, low, high, max(tolerance, _FINEST), most)
    if wanted == "spectral" and grid is None:
        raise InputError(_NO_SPECTRUM)
    return grid


def _few_pairs(X: Any, Y: Any) -> bool:
    return float(n_rows(X)) * n_rows(Y) < _SPECTRAL_PAIRS


def _selected_fields(
    program: Program, X: Any, Y: Any, coef: Selection, order: int, shifted: bool
) -> Fields:
    """All queries against elements that are single features."""
    if order == 0 and not shifted:
        value = gram(program, Y, X[coef.index])
        value *= coef.value.astype(value.dtype)
        return Fields(value, None, None, (), None, np.zeros(n_rows(Y)))
    blocks = []
    for part in pieces(coef.index.shape[0], _SELECTED):
        points, values = X[coef.index[part]], np.diag(coef.value[part])
        blocks.append(fields(program, points, Y, Dense(values), order=order, shifted=shifted))
    return side_by_side(blocks)


def use_native(program: Program, X: Any, Y: Any) -> bool:
    """Whether sums of this program are for the compiled core."""
    wanted = get_options().engine
    if wanted == "blocked":
        return False
    if wanted == "spectral":
        raise InputError(_NO_SPECTRUM)
    possible = can_run(program) and not is_sparse(X) and not is_sparse(Y)
    if wanted == "native":
        if not possible or core() is None:
            raise InputError("the native engine cannot run this; use options(engine=None)")
        return True
    if not possible or _dimensions(program, X) > NATIVE_DIMENSIONS:
        return False
    if core() is None:
        _say_that_nothing_is_compiled()
        return False
    return True


def _dimensions(program: Program, X: Any) -> int:
    maps = program.variables[0].maps  # type: ignore[union-attr]
    return n_columns(apply_all(maps, X[:1])) if maps else n_columns(X)


@lru_cache(maxsize=1)
def _say_that_nothing_is_compiled() -> None:
    """Once per process."""
    warnings.warn(
        "mercer was installed without its compiled core, so kernel sums run on NumPy, several "
        "times slower; install a C++17 compiler and then mercer again",
        MercerWarning,
        stacklevel=2,
    )
