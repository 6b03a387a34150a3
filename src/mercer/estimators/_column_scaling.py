"""Column scaling: the `scale_columns` parameter of estimators."""

from __future__ import annotations

from typing import Any

from sklearn.preprocessing import StandardScaler

from mercer._array import is_sparse
from mercer.exceptions import InputError


def fit_column_scaler(
    scale_columns: Any, X: Any, sample_weight: Any = None, *, in_data_units: bool
) -> StandardScaler | None:
    """Return what brings columns to the units in which the automatic kernel sees them.

    "std" is scikit-learn's `StandardScaler`: columns are centred (CSR matrices are not) and divided
    by their standard deviations. "none" takes columns as they are, and returns None. A kernel or a
    bandwidth that the user gave is `in_data_units`, so that "std" is refused.
    """
    if isinstance(scale_columns, str) and scale_columns == "none":
        return None
    if not (isinstance(scale_columns, str) and scale_columns == "std"):
        raise InputError(f'scale_columns must be "none" or "std", got {scale_columns!r}')
    if in_data_units:
        raise InputError(
            'scale_columns="std" goes with the automatic kernel and bandwidth; one that is given '
            'is in the units of the data. Use scale_columns="none", or put a StandardScaler before '
            "the estimator in a pipeline"
        )
    return StandardScaler(with_mean=not is_sparse(X)).fit(X, sample_weight=sample_weight)


def scaled(scaler: StandardScaler | None, X: Any) -> Any:
    """Return rows in the units of the kernel."""
    return X if scaler is None else scaler.transform(X)


def unscaled(scaler: StandardScaler | None, Z: Any) -> Any:
    """Return rows in the units of the data."""
    return Z if scaler is None else scaler.inverse_transform(Z)
