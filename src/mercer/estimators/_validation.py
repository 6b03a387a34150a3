"""Checks of the input of estimators: rows and sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from mercer._array import Array, as_vector, is_sparse
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel


def check_rows(estimator: Any, X: Any, *, reset: bool, double: bool = False) -> Any:
    """Return X as scikit-learn checks it; points that are not vectors as their kernel does.

    float32 stays float32, unless `double`. CSR matrices are accepted. `reset` records the number
    and names of columns; otherwise they are compared.
    """
    kernel = estimator.kernel
    if isinstance(kernel, Kernel) and not kernel.domain.is_vector:
        X = kernel.points(X).array
        return X.astype(np.float64) if double and X.dtype == np.float32 else X
    tags = get_tags(estimator).input_tags
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr" if tags.sparse else False,
        dtype=np.float64 if double else [np.float64, np.float32],
        ensure_non_negative=tags.positive_only,
        reset=reset,
    )
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    if reset and precomputed and X.shape[0] != X.shape[1]:
        raise InputError(f"a precomputed Gram matrix must be square, got shape {X.shape}")
    return X


def check_weights(sample_weight: Any, X: Any) -> Array | None:
    """Return weights >= 0, not all zero, as float64; None for None."""
    if sample_weight is None:
        return None
    if is_sparse(X) or getattr(X, "ndim", 1) == 2:
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    else:
        w = as_vector(sample_weight, "sample_weight", n_rows(X)).astype(np.float64)
        if np.any(w < 0):
            raise InputError(f"sample_weight must be >= 0, got {float(w.min())!r}")
    if not np.any(w > 0):
        raise InputError("sample_weight must not all be zero")
    return np.asarray(w)


def float_type(X: Any) -> Any:
    """Return float32 for float32 rows, and float64 otherwise."""
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
