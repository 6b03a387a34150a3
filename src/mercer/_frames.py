"""Data frames and series of pandas, polars, pyarrow and others, in and out, through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._words import counted
from mercer.exceptions import InputError, UnavailableError

_EXACT = 2**53  # beyond, float64 skips integers
# never a frame, so that narwhals is not imported for them
_PLAIN = (np.ndarray, np.generic, list, tuple, dict, str, bytes, int, float, type(None))
_LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")


@dataclass(frozen=True)
class Header:
    """The names of the columns of a frame, and the library that it came from.

    Points that were given as a frame carry it, and so do results computed from them, so that
    `to_frame` returns a frame of the same kind.

    Parameters
    ----------
    names : tuple of str
    library : {"pandas", "polars", "pyarrow", "modin", "cudf"}
    """

    names: tuple[str, ...]
    library: str

    def __post_init__(self) -> None:
        names = self.names
        if not isinstance(names, tuple) or not all(isinstance(c, str) for c in names):
            raise InputError(f"names must be a tuple of strings, got {names!r}")
        if self.library not in _LIBRARIES:
            raise InputError(f"library must be one of {_LIBRARIES}, got {self.library!r}")


def is_chunked(X: Any) -> bool:
    """Whether these are rows in pieces: `Chunks`, or a Dask collection (without importing Dask)."""
    kind = type(X)
    if not hasattr(kind, "__dask_graph__"):
        return hasattr(kind, "in_pieces")
    # arrays of xarray have a graph or None; Dask's own always have one, and it may be long to make
    return kind.__module__.startswith("dask") or X.__dask_graph__() is not None


def as_frame(X: Any, name: str = "X") -> Any:
    """Return X as a narwhals frame, or None if it is not a frame; lazy frames are refused."""
    if isinstance(X, _PLAIN) or is_chunked(X):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        found = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        names = [str(c) for c in getattr(X, "column_names", getattr(X, "columns", ()))]
        twice = sorted({c for c in names if names.count(c) > 1})
        raise InputError(
            f"{name} has several columns with the same name: {', '.join(twice)}; rename them"
        ) from error
    if isinstance(found, nw.LazyFrame):
        raise InputError(f"{name} is a lazy frame; give its rows, as with {name}.collect()")
    return found if isinstance(found, nw.DataFrame) else None


def as_series(y: Any) -> Any:
    """Return y as a narwhals series, or None if it is not a series."""
    if isinstance(y, _PLAIN) or is_chunked(y):
        return None
    import narwhals.stable.v2 as nw

    pa = nw.dependencies.get_pyarrow()  # None unless it was imported
    if pa is not None and isinstance(y, pa.Array):
        y = pa.chunked_array([y])
    found = nw.from_native(y, pass_through=True, allow_series=True)
    return found if isinstance(found, nw.Series) else None


def header_of(X: Any) -> Header | None:
    """The header of a frame whose columns have strings as names; None for anything else."""
    frame = as_frame(getattr(X, "_meta", None) if is_chunked(X) else X)  # of Dask: an empty frame
    if frame is None or not all(isinstance(c, str) for c in frame.columns):
        return None
    library = frame.implementation.value
    return Header(tuple(frame.columns), library) if library in _LIBRARIES else None


def check_same_header(
    one: Header | None, other: Header | None, names: tuple[str, str] = ("X", "Y")
) -> None:
    """Raise if two sets of points both have names of columns, and these differ."""
    if one is None or other is None or one.names == other.names:
        return
    if sorted(one.names) == sorted(other.names):
        raise InputError(f"{names[0]} and {names[1]} have the same columns in different orders")
    only = [sorted(set(a.names) - set(b.names)) for a, b in ((one, other), (other, one))]
    found = [f"only {n} has {', '.join(c)}" for n, c in zip(names, only, strict=True) if c]
    raise InputError(f"{names[0]} and {names[1]} have different columns: {'; '.join(found)}")


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a frame as strings, or None for anything else."""
    frame = as_frame(X)
    return None if frame is None else [str(c) for c in frame.columns]


def is_number(dtype: Any) -> bool:
    """Whether a column of this type is read as numbers: floats, integers and booleans."""
    import narwhals.stable.v2 as nw

    return dtype in (nw.Float32, nw.Float64, nw.Boolean) or dtype.is_integer()


def matrix_of(frame: Any, name: str = "X", *, missing: bool = False) -> Any:
    """Return a narwhals frame as one matrix of float64, or float32 if all columns are float32.

    With `missing`, nulls become NaN; otherwise nulls and NaN are refused, and the error names their
    columns. Columns that are not numbers, and integers that float64 cannot hold, are refused.
    If all columns are sparse columns of pandas, the result is a CSR array.
    """
    import narwhals.stable.v2 as nw

    native = frame.to_native()
    if len(frame.columns) and _are_sparse(native):
        if bad := [str(c) for c, t in native.dtypes.items() if t.fill_value != 0]:
            raise InputError(
                f"{name} has sparse columns that store zeros and leave out another value: "
                f"{', '.join(bad)}; use {name}.sparse.to_dense()"
            )
        return native.sparse.to_coo().tocsr()
    types = list(frame.schema.values())
    single = all(kind == nw.Float32 for kind in types)
    array = None
    if frame.shape[0] and types and (single or all(kind == nw.Float64 for kind in types)):
        array = frame.to_numpy()
    if array is None or array.dtype not in (np.float32, np.float64):  # pandas with Arrow columns
        columns = [frame[:, j] for j in range(len(types))]
        bad = [str(c.name) for c in columns if not is_number(c.dtype) and not _is_empty(c)]
        if bad:
            raise InputError(_not_numbers(name, bad, dict(zip(frame.columns, types, strict=True))))
        array = np.empty(frame.shape, dtype=np.float32 if types and single else np.float64)
        for j, column in enumerate(columns):
            array[:, j] = numbers_of(column, f"column {column.name!r} of {name}")
    if not missing:
        refuse_missing(array, frame.columns, name)
    return array


def numbers_of(series: Any, name: str) -> Any:
    """Return a narwhals series of numbers as a float array, with NaN for nulls."""
    import narwhals.stable.v2 as nw

    if _is_empty(series):
        return np.full(len(series), np.nan)
    if not is_number(series.dtype):
        cure = "encode or cast it as numbers"
        raise InputError(f"{name} must hold numbers, got {series.dtype}; {cure}")
    if series.dtype.is_integer() and len(series):
        low, high = int(series.min()), int(series.max())
        if max(-low, high) > _EXACT:
            raise InputError(f"{name} has integers above 2**53, which float64 cannot hold exactly")
    if series.dtype != nw.Float32:
        series = series.cast(nw.Float64)
    return np.asarray(series.to_numpy())


def values_of(series: Any, name: str) -> Any:
    """Return a narwhals series without nulls as an array: numbers keep their type."""
    nulls = int(series.null_count())
    if nulls:
        raise InputError(f"{name} has {counted(nulls, 'missing value')}; drop or fill such rows")
    return np.asarray(series.to_numpy())


def items_of(X: Any) -> Any:
    """Return a series as a list of Python objects, and anything else as it is."""
    series = as_series(X)
    return X if series is None else series.to_list()


def labels_of(frame: Any, name: str) -> Any:
    """Return the columns of a narwhals frame as labels: floats if all are numbers, else objects."""
    columns = [frame[:, j] for j in range(len(frame.columns))]  # names may be numbers
    nulls = [str(c.name) for c in columns if c.null_count()]
    if nulls:
        raise InputError(
            f"{name} has missing values in {', '.join(nulls)}; make them a category, as "
            'fill_null("missing") or fillna("missing") does, or drop their rows'
        )
    types = list(frame.schema.values())
    if all(is_number(t) for t in types):
        return frame.to_numpy() if len(set(types)) == 1 else matrix_of(frame, name)
    out = np.empty(frame.shape, dtype=object)
    for j, column in enumerate(columns):
        for i, label in enumerate(column.to_list()):  # NumPy would unpack lists if set at once
            out[i, j] = label
    return out


def refuse_missing(array: Any, columns: Sequence[Any], name: str) -> None:
    """Raise if a matrix has NaN, with the names of the columns that hold it."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(np.einsum("ij->", array)):  # no NaN, and no infinities that cancel
            return
    gaps = np.isnan(array)
    if gaps.any():
        counts = zip(columns, gaps.sum(axis=0).tolist(), strict=True)
        found = [f"{c} ({count})" for c, count in counts if count]
        raise InputError(
            f"{name} contains NaN (missing values) in {', '.join(found)}; drop their rows, or fill "
            "missing values with KernelImputer"
        )


def like(X: Any, array: Any) -> Any:
    """Return an array with the rows and columns of X as a frame like X, if X is one.

    Names of columns and, in pandas, the index are those of X.
    """
    frame = as_frame(X)
    if frame is None:
        return array
    import narwhals.stable.v2 as nw

    names = [f"x{j}" for j in range(len(frame.columns))]
    if all(isinstance(c, str) for c in frame.columns):
        names = list(frame.columns)
    native = nw.from_numpy(array, names, backend=frame.implementation).to_native()
    index = nw.maybe_get_index(frame)
    return native if index is None else native.set_axis(index).set_axis(X.columns, axis=1)


class Framed:
    """A result with `points`, and the `header` of the frame that they come from."""

    points: Any
    header: Header | None

    def to_frame(self, library: str | None = None) -> Any:
        """Return the points as a frame with the columns of the data.

        Columns are x0, x1, ... if the data had no names.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow", "modin", "cudf"}, optional
            By default that of the data, or pandas if the data were not a frame.
        """
        if library is None:
            library = self.header.library if self.header else "pandas"
        return frame_of(named_columns(self.points, self.header), library)


def frame_of(columns: dict[str, Any], library: str) -> Any:
    """Return columns as a frame of a library given by name."""
    import narwhals.stable.v2 as nw

    if not isinstance(library, str) or library not in _LIBRARIES:
        raise InputError(f"library must be one of {', '.join(_LIBRARIES)}, got {library!r}")
    backend: Any = library
    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except ImportError as error:
        raise UnavailableError(f"{library} is not installed; choose another library") from error


def named_columns(
    points: Any, header: Header | None, more: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The columns of points by name (x0, x1, ... without a header), and more columns after them."""
    if hasattr(points, "toarray"):
        raise InputError("sparse points are not made dense; use points.toarray()")
    points = np.asarray(points)
    fields = points.dtype.names or ()
    if fields:  # a table
        columns = {c: points[c] for c in fields}
    else:
        points = points[:, None] if points.ndim == 1 else points
        d = points.shape[1]
        known = header is not None and len(header.names) == d
        names = header.names if header is not None and known else [f"x{j}" for j in range(d)]
        columns = {c: points[:, j] for j, c in enumerate(names)}
    for name, values in (more or {}).items():
        while name in columns:  # a column of the data may be called "density"
            name += "_"
        columns[name] = values
    return columns


def _is_empty(series: Any) -> bool:
    """Whether a column holds nulls only; libraries give such a column any type."""
    return len(series) > 0 and int(series.null_count()) == len(series)


def _are_sparse(native: Any) -> bool:
    """Whether all columns are sparse ones of pandas."""
    types: Any = getattr(native, "dtypes", ())
    return hasattr(types, "items") and all(str(t).startswith("Sparse[") for t in types)


def _not_numbers(name: str, bad: list[str], types: dict[Any, Any]) -> str:
    cures = dict.fromkeys(_cure(types[c]) for c in types if str(c) in bad)
    return f"{name} has columns that are not numeric: {', '.join(bad)}; {'; '.join(cures)}"


def _cure(dtype: Any) -> str:
    import narwhals.stable.v2 as nw

    if dtype.is_numeric() or dtype == nw.Object:  # decimals, half precision
        return "cast them to float64"
    if dtype.is_temporal():
        return "turn dates and times into numbers, such as days since a date"
    return "encode them as numbers, or use a kernel made by table_kernel"
