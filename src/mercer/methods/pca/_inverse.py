"""Inverses of kernel PCA: the solver, and the data points it finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.methods._rows import distinct_rows
from mercer.preimages import Candidates, FittedMap, LearnedMap, LinearInverse, Solver, preimage
from mercer.space import Subspace


def fit_inverse(inverse: Any, plane: Subspace, X: Any, weights: Array | None = None) -> Solver:
    """Return the solver of an `inverse` parameter, fitted to the training rows.

    None is `LinearInverse`, or `Candidates` for points that are not vectors. A `LearnedMap` is
    fitted to the distinct rows. A solver is returned as it is.
    """
    if inverse is None:
        vector = plane.origin.kernel.domain.is_vector
        return LinearInverse.fit(plane, X, weights) if vector else Candidates()
    if isinstance(inverse, LearnedMap):
        return inverse.fit(plane, distinct_rows(plane.origin.kernel.points(X).array, weights)[0])
    if not isinstance(inverse, Solver):
        raise InputError(f"inverse must be None, a solver or a LearnedMap, got {inverse!r}")
    return inverse


def reconstruct(plane: Subspace, solver: Solver, coordinates: Array, start: Any = None) -> Any:
    """Return the data points of coordinates; iterative solvers begin at `start`."""
    if isinstance(solver, LinearInverse | FittedMap):
        return solver.predict(coordinates)
    psi = plane.element(coordinates)
    found = preimage(psi, solver, start=start if solver.needs_start else None).points
    vector = plane.origin.kernel.domain.is_vector
    return np.asarray(found, dtype=np.float64) if vector else found
