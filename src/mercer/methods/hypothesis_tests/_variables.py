"""The variables of an independence test, and a set of kernels for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import as_points
from mercer._threads import map_threads
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel, table_kernel
from mercer.methods.hypothesis_tests._hsic import at_least_four, paired_rows
from mercer.methods.hypothesis_tests._kernel_grid import as_kernels, distance_quantiles, has_text

_N_BANDWIDTHS = 4  # for each variable; seven have the same power


def variables(
    given: list[Any], kernel: Any, rng: np.random.Generator
) -> tuple[list[Any], list[tuple[Kernel, ...]]]:
    """Checked arrays of points, and the kernels of each.

    `kernel` is None, "median", or a sequence with an entry for each variable: a kernel, several,
    None or "median".
    """
    chosen = _entries(kernel, len(given))

    def prepared(i: int) -> tuple[Any, tuple[Kernel, ...]]:
        X, k, name = given[i], chosen[i], f"variable {i + 1}"
        if k is None and has_text(X):
            k = table_kernel(X, random_state=generators[i])
        if k is None or isinstance(k, str):
            X = as_points(X, name)
            grid = gaussian_grid(X, generators[i]) if k is None else None
            return X, grid or as_kernels(k, X, generators[i])
        kernels = as_kernels(k, None, generators[i])
        return kernels[0].points(X, name).array, kernels

    generators = rng.spawn(len(given))  # results do not depend on the threads
    found = map_threads(prepared, range(len(given)))
    arrays, kernels = [X for X, _ in found], [k for _, k in found]
    for X in arrays[1:]:
        paired_rows(n_rows(arrays[0]), n_rows(X))
    at_least_four(n_rows(arrays[0]))
    return arrays, kernels


def kernels_of_each(
    given: list[Any], kernel: Any, rng: np.random.Generator
) -> list[tuple[Kernel, ...]]:
    """The kernels of variables that are checked points, in pieces too."""
    return [
        gaussian_grid(X, rng) if k is None else as_kernels(k, X, rng)
        for X, k in zip(given, _entries(kernel, len(given)), strict=True)
    ]


def _entries(kernel: Any, count: int) -> Any:
    chosen = [kernel] * count if kernel is None or isinstance(kernel, str) else kernel
    if not isinstance(chosen, list | tuple) or len(chosen) != count:
        raise InputError(
            f"kernel must be None, 'median' or one entry per variable, {count} in all; a "
            "bandwidth of one variable does not suit another"
        )
    return chosen


def gaussian_grid(X: Any, rng: np.random.Generator) -> tuple[Kernel, ...]:
    """Gaussian kernels from the 5 % quantile to twice the 95 % quantile of distances."""
    low, high = distance_quantiles(X, (0.05, 0.95), rng)
    return tuple(Gaussian(s) for s in np.geomspace(low, 2.0 * high, _N_BANDWIDTHS).tolist())
