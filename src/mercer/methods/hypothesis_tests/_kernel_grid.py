"""The kernels that a test combines if none is given: bandwidths from small to large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, instance, one_of
from mercer._chunks import Chunks
from mercer._frames import as_frame, is_number
from mercer._threads import map_threads
from mercer.engine import as_float64, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel, Laplace
from mercer.kernels._bandwidth import SQUARED_DISTANCE
from mercer.kernels.structured._table import column_names, columns_of

_ROWS = 1000  # whose distances set the bandwidths
_TILE = 256  # rows of them at once
_N_BANDWIDTHS = 10


def as_kernels(kernel: Any, X: Any, rng: np.random.Generator) -> tuple[Kernel, ...]:
    """The kernels of a parameter `kernel`: one, several, "median", or None for the grid on X."""
    if kernel is None:
        return kernel_grid(X, rng)
    if isinstance(kernel, str):
        one_of(kernel, ("median",), "kernel")
        return (Gaussian(float(distance_quantiles(X, (0.5,), rng)[0])),)
    kernels = tuple(kernel) if isinstance(kernel, list | tuple) else (kernel,)
    if not kernels:
        raise InputError("kernel is an empty sequence; give at least one kernel")
    for k in kernels:
        instance(k, Kernel, "kernel")
        if k.domain != kernels[0].domain:
            raise InputError("the kernels of one test must take the same points")
    return kernels


def are_given(kernel: Any) -> bool:
    """Whether a parameter `kernel` leaves nothing to the data."""
    if isinstance(kernel, list | tuple):
        return all(map(are_given, kernel))
    return isinstance(kernel, Kernel)


def root_mean_squares(kernels: tuple[Kernel, ...], X: Any, rng: np.random.Generator) -> Array:
    """sqrt(mean k(x, y)^2) of each kernel over pairs of rows; ones for a single kernel."""
    if len(kernels) == 1:
        return np.ones(1)
    rows = _some(X, rng)
    return np.array([np.sqrt(np.mean(engine.gram(k.program, rows, rows) ** 2)) for k in kernels])


def has_text(X: Any) -> bool:
    """Whether this is a frame or a mapping with columns that are not numbers."""
    frame = as_frame(X)
    if frame is not None:
        return not all(is_number(kind) for kind in frame.schema.values())
    if not isinstance(X, Mapping):
        return False
    columns = columns_of(X, column_names(X, "X"), "X")
    return any(np.asarray(c).dtype.kind not in "biuf" for c in columns.values())


def stacked_tables(tables: list[Any]) -> dict[str, Array]:
    """The rows of all tables, as a mapping of the columns of the first."""
    names = column_names(tables[0], "sample 1")
    parts = [columns_of(table, names, f"sample {i + 1}") for i, table in enumerate(tables)]
    return {c: np.concatenate([part[c] for part in parts]) for c in names}


def kernel_grid(X: Any, rng: np.random.Generator) -> tuple[Kernel, ...]:
    """Gaussian and Laplace kernels at ten bandwidths each, spaced geometrically.

    From half the 5 % quantile to twice the 95 % quantile of the distances between rows that differ,
    on at most 1,000 rows. The rows are drawn at random, so the grid does not depend on the order of
    the rows, and permutation tests with it stay exact.
    """
    scales = bandwidth_grid(X, rng)
    return (*(Gaussian(s) for s in scales), *(Laplace(s) for s in scales))


def bandwidth_grid(X: Any, rng: np.random.Generator) -> list[float]:
    """The bandwidths of `kernel_grid`."""
    low, high = distance_quantiles(X, (0.05, 0.95), rng)
    bandwidths: list[float] = np.geomspace(0.5 * low, 2.0 * high, _N_BANDWIDTHS).tolist()
    return bandwidths


def distance_quantiles(X: Any, levels: tuple[float, ...], rng: np.random.Generator) -> Array:
    """Quantiles of the distances between rows that differ, on a random sample of rows."""
    rows = _some(X, rng)

    def squares(at: slice) -> Array:
        u = engine.gram(SQUARED_DISTANCE, rows[at], rows[at.start :])
        return np.asarray(u[np.triu(u > 0, 1)])

    u = np.concatenate(map_threads(squares, list(pieces(n_rows(rows), _TILE))))
    if not u.size:
        raise InputError("all points are equal, so no bandwidth can be chosen; give a kernel")
    return np.asarray(np.sqrt(np.quantile(u, levels)))


def _some(X: Any, rng: np.random.Generator) -> Any:
    """At most 1,000 rows, drawn at random."""
    n = n_rows(X)
    index = np.arange(n) if n <= _ROWS else np.sort(rng.choice(n, _ROWS, replace=False))
    return as_float64(X.rows(index) if isinstance(X, Chunks) else X[index])
