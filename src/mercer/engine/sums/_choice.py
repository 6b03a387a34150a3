"""Which engine runs a sum, and in which precision.

| engine   | runs                                                                             |
|----------|----------------------------------------------------------------------------------|
| spectral | smooth radial profiles in at most 3 dimensions, where `options(tolerance=...)`   |
|          | allows an error, a grid of frequencies meets it, and there are enough pairs      |
| native   | profiles of one distance or inner product the core knows, dense points of at     |
|          | most 1,000 dimensions (Gram matrices: 200)                                       |
| blocked  | everything else: several variables, functions of blocks, opaque profiles, sparse |
|          | points, more dimensions (BLAS products, and a pass of the core over them)        |

`options(engine=...)` with one of these names overrides the choice, for the calls inside the block;
naming an engine that cannot run a call is an error. The blocked engine, if named, runs on NumPy
alone.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import is_sparse
from mercer._config import get_options
from mercer.engine._compiled import core
from mercer.engine.pairs._distance_limits import recompute_below
from mercer.engine.pairs._distances import bound_on_error, squared_norms
from mercer.engine.pairs._tiles import mapped_points
from mercer.engine.programs._float_range import fits_float32, profile_needs_float64
from mercer.engine.programs._maps import apply_all
from mercer.engine.programs._program import Distance, Program
from mercer.engine.sums._frequency_grid import finufft
from mercer.exceptions import InputError, MercerWarning

_SUM_DIMENSIONS = 1000  # above it the accumulators of a gradient exceed the cache
GRAM_DIMENSIONS = 200  # above it BLAS does most of the work of a Gram matrix, and does it better
_NATIVE_COLUMNS = 1024  # coefficient columns of one native sum of derivatives: more leave the cache
_VALUE_COLUMNS = 1 << 16  # of one native sum of values: each of its panels takes 25 MB
NO_SPECTRUM = (
    "the spectral engine cannot run this: it needs finufft (extra `fast`), dense points of at most "
    "3 dimensions, a smooth radial kernel, and a tolerance that a frequency grid can meet; "
    "use options(engine=None)"
)


def use_native(program: Program, X: Any, Y: Any, dimensions: int = _SUM_DIMENSIONS) -> bool:
    """Whether the compiled core should run sums of this program."""
    wanted = get_options().engine
    if wanted == "blocked":
        return False
    if wanted == "spectral":
        raise InputError(NO_SPECTRUM)
    possible = program.runs_on_core and isinstance(X, np.ndarray) and isinstance(Y, np.ndarray)
    if wanted == "native":
        if not possible or core() is None or _dimensions(program, X) >= core().MAX_COLUMNS:
            raise InputError("the native engine cannot run this; use options(engine=None)")
        return True
    if not possible or _dimensions(program, X) > dimensions:
        return False
    if core() is None:
        _warn_that_nothing_is_compiled()
        return False
    return True


def native_elements(dim: int, order: int) -> int:
    """How many elements one native sum takes; 0 where one Hessian has too many columns."""
    if order == 0:
        return _VALUE_COLUMNS
    columns = 1 + dim * (order >= 1) + dim * dim * (order == 2)
    return max(_NATIVE_COLUMNS // columns, int(order < 2))


def can_transform(program: Program, X: Any, Y: Any) -> bool:
    """Whether the spectral engine can run this, if a grid meets the tolerance."""
    return (
        program.kind == "radial"
        and isinstance(X, np.ndarray)
        and isinstance(Y, np.ndarray)
        and _dimensions(program, X) <= 3
        and program.is_smooth
        and finufft() is not None
    )


def _dimensions(program: Program, X: Any) -> int:
    return int((apply_all(program.maps, X[:1]) if program.maps else X).shape[1])


@lru_cache(maxsize=1)
def _warn_that_nothing_is_compiled() -> None:
    """Once per process."""
    warnings.warn(
        "mercer was installed without its compiled core, so kernel sums run on NumPy, several "
        "times slower; install a C++17 compiler and then mercer again",
        MercerWarning,
        stacklevel=2,
    )


def needs_float64(program: Program, X: Any, Y: Any, order: int) -> bool:
    """Whether these float32 points need float64 sums.

    They do if their squared distances, or constants or derivatives of the profile, leave the range
    of float32, or if derivatives are sums of coordinates that would cancel (clusters far apart).
    """
    if getattr(X, "dtype", None) != np.float32 or getattr(Y, "dtype", None) != np.float32:
        return False
    if profile_needs_float64(program, order):
        return True
    return any(
        _distance_needs_float64(program, i, X, Y, order)
        for i, v in enumerate(program.variables)
        if isinstance(v, Distance)
    )


def _distance_needs_float64(program: Program, index: int, X: Any, Y: Any, order: int) -> bool:
    if is_sparse(X) or is_sparse(Y):
        return order > 0
    x, y = mapped_points(program.variables[index], X, Y)
    centre = x.mean(axis=0, dtype=np.float64)
    radius2 = float(squared_norms(y - centre).max())
    widest2 = max(radius2, float(squared_norms(x - centre).max()))
    if not fits_float32(program, widest2):
        return True
    error = bound_on_error(radius2, np.float32)
    return (
        order > 0 and radius2 > 0 and recompute_below(program, index, "float32", error, radius2) > 0
    )
