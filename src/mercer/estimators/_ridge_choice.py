"""Automatic kernel and penalty of kernel ridge regression, and fits to rows in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array, Points, is_sparse, non_negative, positive, positive_int
from mercer._chunks import SAMPLE_ROWS, Chunks, LocalChunks, sampled
from mercer._config import get_options
from mercer.estimators._kernel_parameter import is_auto
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel
from mercer.linalg import Nystrom, nystrom
from mercer.linalg._solve import DIRECT_UP_TO
from mercer.methods.machines._ridge import MergedRows, RidgeFit, merged_rows
from mercer.methods.machines._ridge_choice import PENALTY_ROWS, choose_kernel, path_of, spread
from mercer.methods.machines._ridge_path import RidgePath
from mercer.methods.machines._ridge_pieces import (
    fit_landmarks_in_pieces,
    fit_rows_in_pieces,
    preconditioner_rank,
)

# Features beyond this many times `working_memory` (1 GiB by default) are not kept: their singular
# value decomposition takes five times as much.
_FEATURES = 8.0


def choose(
    model: Any, X: Points, rows: MergedRows, unit: float
) -> tuple[Nystrom | None, RidgePath | None]:
    """Set the kernel and the penalty; returns landmarks and the path, if any."""
    free, low, path = bool(model.fit_intercept), None, None
    given = model.max_norm is None and not is_auto(model.penalty)
    if is_auto(model.kernel):
        assert isinstance(model.kernel_, Gaussian)
        median = float(np.sqrt(2.0)) * model.kernel_.length_scale
        model.kernel_ = choose_kernel(X, rows, median, fit_intercept=free)
    if model.n_landmarks is not None:
        size = positive_int(model.n_landmarks, "n_landmarks")
        low = _landmarks(model.kernel_, X, size, rule=model.rule, random_state=model.random_state)
        if not given:
            path = RidgePath.of_features(
                low.factor, rows.targets, rows.weights, fit_intercept=free, scatter=rows.scatter
            )
    model._sum_penalty, path = _penalty(model, X, rows, path, unit)
    return low, path


def _landmarks(kernel: Kernel, X: Points, size: int, **options: Any) -> Nystrom:
    low = nystrom(kernel, X, size, **options)
    if not low.rank:
        raise InputError(
            f"k(x, x) is 0 at all rows for {kernel!r}, so landmarks cannot represent them; use a "
            "positive definite kernel, or all rows in memory without n_landmarks"
        )
    return low


def _without_rows(low: Nystrom) -> Nystrom:
    """Landmarks without the features of the sample, which would travel with every task."""
    return replace(low, factor=np.empty((0, low.rank)))


def _penalty(
    model: Any, X: Points, rows: MergedRows, path: RidgePath | None, unit: float
) -> tuple[float, RidgePath | None]:
    """The penalty of the sum of losses, and the path it was chosen on, if any."""
    if model.max_norm is None and not is_auto(model.penalty):
        return unit * non_negative(model.penalty, "penalty"), path
    if model.max_norm is not None:
        limit = positive(model.max_norm, "max_norm")
        if path is None and len(X) > DIRECT_UP_TO:
            raise InputError(f"max_norm needs n_landmarks for more than {DIRECT_UP_TO} rows")
        free, whole = bool(model.fit_intercept), np.arange(len(X))
        path = path or path_of(model.kernel_, X, rows, whole, free)
        return path.penalty_of_norm(limit), path
    if path is None:
        part = spread(len(X), PENALTY_ROWS)
        path = path_of(model.kernel_, X, rows, part, bool(model.fit_intercept))
    model.path_penalties_ = path.grid / unit
    model.loo_path_ = path.leave_one_out_errors
    model.gcv_path_ = np.array([path.gcv_error(p) for p in path.grid])
    return path.best()[0], path


def has_too_many_features(model: Any, X: Points) -> bool:
    """Whether features of all rows on the landmarks need more memory than a fit may take."""
    if model.n_landmarks is None or model.max_norm is not None or model.penalty == 0.0:
        return False
    if not X.domain.is_vector or is_sparse(X.array):
        return False
    size = positive_int(model.n_landmarks, "n_landmarks")
    most = _FEATURES * get_options().working_memory * 2**20 / 8.0
    return size <= SAMPLE_ROWS and float(size) * len(X) > most


def rows_in_pieces(X: Points, Y: Array, w: Array | None) -> tuple[Points, Chunks, Chunks | None]:
    """Rows in memory, their targets and weights as pieces."""
    rows = LocalChunks.of(X.array)
    weights = None if w is None else rows.zip(w[:, None]).only(1)
    return replace(X, array=rows), rows.zip(Y).only(1), weights


def fit_in_pieces(
    model: Any, points: Points, Y: Chunks, w: Chunks | None, unit: float
) -> tuple[RidgeFit, Points]:
    """Choose the kernel, the penalty and landmarks on a sample of the rows, and fit to all.

    The penalty is that of the sum of losses, a ratio of noise to signal variance, which carries
    over from a sample.
    """
    if model.max_norm is not None or model.solver not in ("auto", "cg"):
        raise InputError(
            'rows in pieces are fitted with n_landmarks or solver="cg", and a penalty; leave out '
            "max_norm and other solvers, or use all rows in memory"
        )
    X, free = points.array, bool(model.fit_intercept)
    some, mass = sampled(X, w)
    some_y, _ = sampled(Y, w)  # the same rows
    rows = merged_rows(some, some_y, mass)
    distinct = model.kernel_.points(some[rows.index])
    low = None
    if is_auto(model.kernel) or is_auto(model.penalty) or model.n_landmarks is not None:
        low, _ = choose(model, distinct, rows, unit)
    else:
        model._sum_penalty = unit * non_negative(model.penalty, "penalty")
    whole = X.zip(Y)
    whole = whole.each([None] * len(X.sizes)) if w is None else whole.zip(w)
    if low is not None:
        low = _without_rows(low)
        middle: Array = np.average(some_y, axis=0, weights=mass)
        fit = fit_landmarks_in_pieces(low, whole, model._sum_penalty, middle, fit_intercept=free)
        return fit, model.kernel_.points(low.landmarks)
    size = preconditioner_rank(len(X))
    low = _landmarks(model.kernel_, distinct, size, rule="leverage", random_state=0)
    low = _without_rows(low)
    return fit_rows_in_pieces(low, whole, model._sum_penalty, **model._settings()), points
