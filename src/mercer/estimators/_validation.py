"""The input of estimators: checked rows, sample weights, and scaled columns (`scale_columns`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, check_array, get_tags
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config
from sklearn.utils.fixes import parse_version
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from mercer._array import (
    Array,
    as_points,
    check_flag,
    is_sparse,
    plain,
    refuse_pieces,
    unmasked,
)
from mercer._chunks import Chunks, as_chunks
from mercer._frames import (
    as_frame,
    as_series,
    frame_of,
    is_chunked,
    labels_of,
    named_columns,
    values_of,
)
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Kernel
from mercer.linalg._inputs import as_columns, row_weights
from mercer.methods._pieces import column_moments, column_ranges

_READS_FRAMES = parse_version(sklearn.__version__) >= parse_version("1.9.dev0")  # of any library


def check_rows(estimator: Any, X: Any, *, reset: bool, double: bool = False) -> Any:
    """Check X as scikit-learn does, and points that are not vectors as their kernel does.

    float32 stays float32, unless `double`. CSR matrices are accepted. `reset` records the number
    and names of columns; otherwise they are compared.
    """
    if is_chunked(X):
        return check_pieces(estimator, X, reset=reset, double=double)
    kernel = estimator.kernel
    if isinstance(kernel, Kernel) and not kernel.domain.is_vector:
        if not kernel.domain.base.by_name:
            check_names(estimator, X, reset=reset)
        X = kernel.points(X).array
        return X.astype(np.float64) if double and X.dtype == np.float32 else X
    tags = get_tags(estimator).input_tags
    X = validated(
        estimator,
        unmasked(X),
        accept_sparse="csr" if tags.sparse else False,
        dtype=np.float64 if double else [np.float64, np.float32],
        ensure_non_negative=tags.positive_only,
        reset=reset,
    )
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    if reset and precomputed and X.shape[0] != X.shape[1]:
        raise InputError(f"a precomputed Gram matrix must be square, got shape {X.shape}")
    return X


def check_pieces(estimator: Any, X: Any, *, reset: bool, double: bool = False) -> Chunks:
    """Return rows in pieces, which are checked when they are read, for estimators that take them.

    The number and names of columns are checked now.
    """
    kernel = estimator.kernel
    if not getattr(estimator, "_takes_pieces", False) or (
        isinstance(kernel, str) and kernel == "precomputed"
    ):
        refuse_pieces(X)
    rows = as_chunks(X)
    if rows.ndim != 2:
        raise InputError(f"X must have shape (n_samples, n_features), got {rows.shape}")
    if hasattr(X, "dtypes"):
        check_names(estimator, X._meta, reset=reset)  # an empty frame of pandas
    else:
        validate_data(estimator, np.empty((1, rows.shape[1])), reset=reset, skip_check_array=True)
    narrow = rows.dtype == np.float32 and not double
    dtype = np.dtype(np.float32 if narrow else np.float64)
    return rows.mapped(_row_block, dtype, tail=rows.tail, dtype=dtype)


def _row_block(X: Any, dtype: Any) -> Array:
    points = as_points(X, "a chunk of X")
    if is_sparse(points):
        raise InputError("X has sparse chunks; use X.map_blocks(lambda chunk: chunk.toarray())")
    return np.asarray(points, dtype=dtype)


def by_pieces(
    tail: Callable[[Any], tuple[int, ...]] | tuple[int, ...] = (), dtype: Any = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a method with one result per row take rows in pieces.

    `tail`, or `tail(self)`, is the shape of the result of one row; the type is that of the rows, or
    `dtype`.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(self: Any, X: Any, *more: Any, **named: Any) -> Any:
            if not is_chunked(X):
                return method(self, X, *more, **named)
            check_is_fitted(self)
            rows = check_pieces(self, X, reset=False)
            special = getattr(self, f"_{method.__name__}_in_pieces", None)
            found = None if special is None else special(rows, *more, **named)
            if found is not None:
                return found
            nameless = copy(self)  # blocks are arrays
            vars(nameless).pop("feature_names_in_", None)
            arguments, shape = (nameless, method.__name__), tail
            shape = shape(self) if callable(shape) else shape
            found = rows.mapped(of_piece, *arguments, tail=shape, dtype=dtype or rows.dtype)
            return found.collected()

        return run

    return decorate


def of_piece(X: Array, estimator: Any, method: str) -> Any:
    """The result of a method of an estimator for one piece."""
    return getattr(estimator, method)(X)


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Return X checked by scikit-learn; text, dates and missing values are refused with a cure."""
    if getattr(getattr(X, "dtype", None), "kind", "f") in "mM":
        raise InputError(
            f"X must hold numbers, got dtype {X.dtype}; convert dates to numbers first"
        )
    try:
        if as_frame(X) is None:
            return validate_data(estimator, X, **options)
        check_names(estimator, X, reset=options.pop("reset"))
        matrix = plain(X, missing=options.get("ensure_all_finite") == "allow-nan")
        return check_array(matrix, estimator=estimator, input_name="X", **options)
    except InputError:
        raise
    except ValueError as error:
        if "NaN" in str(error):
            cure = "fill missing values with KernelImputer, or drop their rows"
            raise InputError(f"Input X contains NaN; {cure}") from error
        if "could not convert" in str(error):
            cure = "encode text as numbers, or use a kernel made by table_kernel"
            raise InputError(f"X must hold numbers: {error}; {cure}") from error
        raise


class _Names:
    """The names and shape of a frame, where scikit-learn 1.8 looks for them."""

    def __init__(self, frame: Any) -> None:
        self.shape, self._names = frame.shape, frame.columns

    def __dataframe__(self) -> _Names:
        return self

    def column_names(self) -> list[Any]:
        return self._names  # type: ignore[no-any-return]


def check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Record or compare the names and the number of columns of a frame, as scikit-learn does."""
    frame = as_frame(X)
    if frame is not None:
        given = X if _READS_FRAMES else _Names(frame)
        validate_data(estimator, given, reset=reset, skip_check_array=True)
    elif reset:
        vars(estimator).pop("feature_names_in_", None)


def check_weights(sample_weight: Any, X: Any) -> Any:
    """Return weights >= 0, not all zero, as float64; None for None."""
    return row_weights(sample_weight, X, "sample_weight")


def check_targets(estimator: Any, y: Any, *, single: bool = False) -> tuple[Array, bool]:
    """Return finite targets, shape (n, outputs), and whether they were a vector.

    `single` takes one output only.
    """
    y = _given(estimator, y)
    y = column_or_1d(y, warn=True) if single else y
    try:
        y = y.astype(np.float64) if y.dtype == object else y
    except (TypeError, ValueError) as error:
        raise InputError(f"y must hold numbers: {error}") from error
    return as_columns(y, len(y) if y.ndim else 0, "y")


def check_labels(estimator: Any, y: Any) -> tuple[Array, Array]:
    """Return the classes among labels, and the number of the class of each row."""
    labels = column_or_1d(_given(estimator, y), warn=True)
    try:
        # numbers too large for integers; scikit-learn's warning about many classes is ours below
        with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore"):
            check_classification_targets(labels)
            classes, index = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(f"labels y must be of one type that can be sorted: {error}") from error
    if len(labels) > 20 and 2 * len(classes) > len(labels):  # as scikit-learn's classifiers
        cure = "for a target of numbers, use a regression"
        warnings.warn(
            f"y has {len(classes)} classes in {len(labels)} rows; {cure}", MercerWarning, 3
        )
    return classes, index


def _given(estimator: Any, y: Any) -> Array:
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    frame, series = as_frame(y, "y"), as_series(y)
    if frame is not None:
        y = labels_of(frame, "y")
    elif series is not None:
        y = values_of(series, "y")
    try:
        y = np.asarray(unmasked(y, "y"))
    except ValueError as error:
        raise InputError(f"y must be an array: {error}") from error
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def check_flags(estimator: Any, *names: str) -> None:
    for name in names:
        check_flag(getattr(estimator, name), name)


def float_type(X: Any) -> Any:
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64


def fit_column_scaler(
    scale_columns: Any, X: Any, sample_weight: Any = None, *, in_data_units: bool
) -> StandardScaler | None:
    """Return the scaler to the units in which the automatic kernel sees the columns.

    "std" is scikit-learn's `StandardScaler`: columns are centred (CSR matrices are not) and divided
    by their standard deviations. "none" takes columns as they are, and returns None. "auto" is
    "none" if the columns seem to have the same unit, and "std" otherwise. A kernel or a bandwidth
    that the user gave is `in_data_units`: "auto" is "none" then, and "std" is refused.
    """
    if not isinstance(scale_columns, str) or scale_columns not in ("auto", "none", "std"):
        raise InputError(f'scale_columns must be "auto", "none" or "std", got {scale_columns!r}')
    if scale_columns == "auto" and (in_data_units or _same_unit(X, sample_weight)):
        return None
    if scale_columns == "none":
        return None
    if in_data_units:
        raise InputError(
            'scale_columns="std" goes with the automatic kernel and bandwidth; one that is given '
            'is in the units of the data. Use scale_columns="none", or put a StandardScaler before '
            "the estimator in a pipeline"
        )
    if not is_chunked(X):
        as_points(X, "X")  # refuses entries whose squares overflow
    return fit_moments(StandardScaler(with_mean=not is_sparse(X)), X, sample_weight)


def fit_moments(scaler: StandardScaler, X: Any, sample_weight: Any) -> StandardScaler:
    """Fit a scaler, with weights in any unit."""
    if isinstance(X, Chunks):
        scaler.n_samples_seen_, scaler.mean_, scaler.var_ = column_moments(X, sample_weight)
        scaler.n_features_in_ = X.shape[1]
        # scikit-learn's bound on the rounding of the variance of a constant column
        unit, var = len(X) * np.finfo(np.float64).eps, scaler.var_
        constant = var <= unit * var + (unit * scaler.mean_) ** 2
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(var)) if scaler.with_std else None
        return scaler
    shares = None if sample_weight is None else sample_weight / np.max(sample_weight)
    return scaler.fit(X, sample_weight=shares)


def _same_unit(X: Any, sample_weight: Any) -> bool:
    """Whether more than half of the columns that vary span half of the range of the table.

    Pixels, shares and grades do. On 13 tables and 3 sets of images the share of such columns was
    0.6 to 1 if columns had the same unit, and at most 0.2 otherwise.
    """
    if isinstance(X, Chunks):
        low, high = column_ranges(X, sample_weight)
    else:
        rows = X if sample_weight is None else X[np.flatnonzero(sample_weight > 0.0)]
        low, high = min_max_axis(rows, axis=0) if is_sparse(X) else (rows.min(0), rows.max(0))
    half = 0.5 * high.astype(np.float64) - 0.5 * low  # halves do not overflow
    varies = half > 0.0
    whole = 0.5 * float(high.max()) - 0.5 * float(low.min())
    return bool(2 * np.count_nonzero(half >= 0.5 * whole) > np.count_nonzero(varies))


def scaled(scaler: StandardScaler | None, X: Any) -> Any:
    """Return rows in the units of the kernel."""
    if isinstance(X, Chunks) and scaler is not None:
        return X.mapped(_scaled, scaler, tail=X.tail, dtype=X.dtype)
    return X if scaler is None else scaler.transform(X)


def _scaled(X: Array, scaler: StandardScaler) -> Array:
    return np.asarray(scaler.transform(X))


def framed(estimator: Any, points: Any, given: Any) -> Any:
    """Return points in data space as `set_output(transform=...)` asks for, with the fitted names.

    scikit-learn has no rule for `inverse_transform`; here it follows that for `transform`.
    """
    kind = _get_output_config("transform", estimator)["dense"]
    if kind == "default" or not isinstance(points, np.ndarray):
        return points
    if points.dtype.names is not None:  # rows of a table
        return frame_of(named_columns(points, None), kind)
    if points.ndim != 2:
        return points
    columns = _check_feature_names_in(estimator)
    adapter = ADAPTERS_MANAGER.adapters[kind]
    return adapter.create_container(points, given, columns=lambda: columns)


def unscaled(scaler: StandardScaler | None, Z: Any) -> Any:
    """Return rows in the units of the data."""
    return Z if scaler is None or not len(Z) else scaler.inverse_transform(Z)
