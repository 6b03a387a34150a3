"""Fits of kernel ridge regression to rows in pieces: what is chosen on a sample, and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, Points, non_negative
from mercer._chunks import Chunks, sampled
from mercer.estimators._kernel_parameter import is_auto
from mercer.estimators._ridge_choice import choose
from mercer.exceptions import InputError
from mercer.linalg import nystrom
from mercer.methods.machines._ridge import RidgeFit, merged_rows
from mercer.methods.machines._ridge_pieces import (
    fit_landmarks_in_pieces,
    fit_rows_in_pieces,
    preconditioner_rank,
)


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
    some_y, _ = sampled(Y)  # the same rows
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
        middle: Array = np.average(some_y, axis=0, weights=mass)
        fit = fit_landmarks_in_pieces(low, whole, model._sum_penalty, middle, fit_intercept=free)
        return fit, model.kernel_.points(low.landmarks)
    size = preconditioner_rank(len(X))
    low = nystrom(model.kernel_, distinct, size, rule="leverage", random_state=0)
    return fit_rows_in_pieces(low, whole, model._sum_penalty, **model._settings()), points
