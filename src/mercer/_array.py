"""Checks of user input: matrices of points, vectors, weights and numbers; and checked `Points`."""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mercer._frames import (
    Header,
    as_frame,
    as_series,
    check_same_header,
    header_of,
    is_chunked,
    matrix_of,
    numbers_of,
    values_of,
)
from mercer._tensors import (
    LARGEST_COORDINATE,
    as_numpy,
    check_alike,
    check_tangent,
    constant,
    host,
    is_abstract,
    is_tensor,
    namespace,
    some_rows,
)
from mercer.exceptions import InputError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_EXACT_INTEGERS = 2**53  # beyond, float64 skips integers
LARGEST = LARGEST_COORDINATE


@dataclass(frozen=True, eq=False)
class Points:
    """Points that a domain has accepted, so that they need no second check.

    `kernel.points(X)` checks X and returns this value. Every function of the library that takes
    points takes it too, and does not check it again if its kernel has an equal domain. Rows
    selected from it are `Points` as well.

    Attributes
    ----------
    array : ndarray or CSR array
        The points as the engine takes them; a dense array is a read-only view of the user's array.
    domain : Domain
        The domain that accepted them.
    header : Header or None
        The names of the columns, if the points were given as a frame.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> X = k.points([[0.0], [1.0], [2.0]])
    >>> len(X), X.array.dtype
    (3, dtype('float64'))
    >>> k(X[:1], X).round(4)
    array([[1.    , 0.6065, 0.1353]])
    """

    array: Any
    domain: Any
    header: Header | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d), or (n,) for points that are not vectors."""
        return tuple(self.array.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Points:
        """Return some of the points: a slice, row numbers or a mask."""
        rows_of = some_rows(self.array, rows) if is_tensor(self.array) else self.array[rows]
        return Points(rows_of, self.domain, self.header)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)


def header(X: Any) -> Header | None:
    """The names of the columns of points, if they are or were a frame."""
    return X.header if isinstance(X, Points) else header_of(X)


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array (tested without importing scipy.sparse)."""
    return type(X).__module__.startswith("scipy.sparse") and hasattr(X, "tocsr")


def refuse_pieces(X: Any, name: str = "X") -> None:
    """Raise for rows in pieces, which would have to be gathered in this process."""
    if is_chunked(X):
        raise InputError(
            f"{name} comes in pieces (a Dask collection, or files), but this computation needs all "
            "rows in memory. Use n_landmarks or seeds where there is such a parameter, take a "
            f"sample of the rows, or {name}.compute() if they fit; the page on Dask has a list"
        )


def unmasked(X: Any, name: str = "X") -> Any:
    """Return a masked array as a plain one, and refuse it if entries are masked."""
    refuse_pieces(X, name)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if masked := int(np.ma.getmaskarray(X).sum()):
        raise InputError(
            f"{name} is a masked array with {masked} masked entries; fill or drop them first "
            "(KernelImputer takes them as missing)"
        )
    return X.data


def as_points(X: Any, name: str = "X") -> Any:
    """Return X as an (n, d) float32 or float64 matrix of finite numbers, dense or CSR.

    float32 stays float32; integers and booleans become float64, exactly. Everything whose
    conversion could lose information (complex, half or extended precision, masked entries,
    objects) is refused. `Points` that are vectors were already checked.
    """
    if isinstance(X, Points):
        X, known = X.array, not is_tensor(X.array)
        if known and (is_sparse(X) or (X.ndim == 2 and X.dtype in _FLOATS)):
            return X
    if type(X) is np.ndarray and X.dtype in _FLOATS and X.flags.aligned:
        array = X
    else:
        read_ahead(X)
        X = plain(as_numpy(X, name), name)
        if is_sparse(X):
            return _as_sparse_points(X, name)
        array = _as_float(X, name)
    if array.ndim != 2:
        raise InputError(
            f"{name} must have shape (n_points, n_features), got {array.shape}; use "
            f"{name}.reshape(-1, 1) for one feature or {name}.reshape(1, -1) for one point"
        )
    _check_nonempty(array.shape, name)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.einsum("ij,ij->", array, array)):  # so all entries are, and their squares
            return array
    _check_size(array, name)
    return array


def read_ahead(X: Any) -> None:
    """Tell the system that a memory-mapped array is read from beginning to end: often faster."""
    mapped = getattr(X, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_SEQUENTIAL"):
        mapped.madvise(mmap.MADV_SEQUENTIAL)


def as_dense_points(X: Any, name: str = "X") -> Array:
    """Return X as `as_points` does, in float64, refusing sparse matrices."""
    X = as_points(X, name)
    if is_sparse(X):
        raise InputError(f"{name} must be dense; use {name}.toarray()")
    return np.asarray(X, dtype=np.float64)


def check_same_columns(X: Any, Y: Any, names: tuple[str, str] = ("X", "Y")) -> None:
    """Raise unless two arrays of points have the same number of features (0 if not vectors).

    `Points` must have the same names of columns, too, if both have names.
    """
    if X.shape[1:] != Y.shape[1:]:
        a, b = (Z.shape[1] if len(Z.shape) == 2 else 0 for Z in (X, Y))
        raise InputError(f"{names[0]} has {a} features, but {names[1]} has {b}")
    if isinstance(X, Points) and isinstance(Y, Points) and not X.domain.base.by_name:
        check_same_header(X.header, Y.header, names)


def as_numbers(a: Any, name: str) -> Array:
    """Return a as a float64 array of any shape; NaN and infinity are numbers here."""
    return _as_float(a, name, missing=True).astype(np.float64, copy=False)


def as_vector(a: Any, name: str, length: int | None = None) -> Array:
    """Return a as a finite float vector, of the given length if one is given."""
    vector = _as_float(a, name)
    if vector.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {vector.shape}")
    if length is not None and vector.shape[0] != length:
        raise InputError(f"{name} must have {length} entries, got {vector.shape[0]}")
    _check_finite(vector, name)
    return vector


def as_weights(weights: Any, length: int, name: str = "weights", like: Any = None) -> Array:
    """Return non-negative float64 weights with a positive sum, scaled so that they sum to one.

    With `like`, a tensor of points, they are a tensor of its kind; weights that are already tensors
    keep their history, other numbers become constants.
    """
    if like is not None and is_tensor(like):
        if not is_tensor(weights):
            return constant(as_weights(weights, length, name), like)  # type: ignore[no-any-return]
        check_alike(like, weights, ("the points", name))
        check_tangent(weights, name)
        if not is_abstract(weights):
            as_weights(host(weights), length, name)  # which checks them
        return weights / namespace(weights).sum(weights)  # type: ignore[no-any-return]
    if weights is None:
        return np.full(length, 1.0 / length)
    w = as_vector(weights, name, length).astype(np.float64)
    if np.any(w < 0):
        raise InputError(f"{name} must be >= 0, got {float(w.min())!r}")
    if not w.any():
        raise InputError(f"{name} must not all be zero")
    w = w / w.max()  # before the sum, which could overflow
    return np.asarray(w / w.sum())


def positive(value: Any, name: str) -> float:
    """Return value as a float, refusing anything that is not a finite number above zero."""
    number = real(value, name)
    if number <= 0:
        raise InputError(f"{name} must be > 0, got {number!r}")
    return number


def positive_length(value: Any, name: str, limit: float = 1e75) -> float:
    """Return a number > 0 between 1 / limit and limit.

    Second derivatives of kernels need the fourth power of a length, which float64 can hold for
    lengths up to 1e75, and squares of squared lengths, up to 1e150.
    """
    number = positive(value, name)
    if not 0.999 / limit <= number <= limit:  # 1 / 1e75 is above 1e-75
        raise InputError(
            f"{name} must be between {1.0 / limit:.0e} and {limit:.0e}, got {number!r}; rescale "
            "the data"
        )
    return number


def non_negative(value: Any, name: str) -> float:
    """Return value as a float, refusing anything that is not a finite number of at least zero."""
    number = real(value, name)
    if number < 0:
        raise InputError(f"{name} must be >= 0, got {number!r}")
    return number


def real(value: Any, name: str) -> float:
    """Return value as a finite float."""
    try:
        shape = np.shape(value)
    except ValueError as error:  # lists of different lengths
        raise InputError(f"{name} must be a single number, got a list") from error
    if shape:
        raise InputError(f"{name} must be a single number, got shape {shape}")
    bad = bool | np.bool_ | str | bytes | complex | np.datetime64 | np.ma.MaskedArray
    if isinstance(value, bad) or np.iscomplexobj(value):
        raise InputError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be a real number, got {value!r}") from error
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, got {number!r}")
    return number


def positive_int(value: Any, name: str) -> int:
    """Return value as an int of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be an integer >= 1, got {value!r}")
    if value > _EXACT_INTEGERS:
        raise InputError(f"{name} must be at most 2**53, got {value}")
    return int(value)


def instance(value: Any, kind: type[Any], name: str) -> Any:
    """Return the value if it is of this type and not made of tensors of another library."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        expected = vars(kind).get("_expected", f"{article} {kind.__name__}")
        raise InputError(f"{name} must be {expected}, got {type(value).__name__}")
    if is_tensor(getattr(value, "points", None)):
        raise InputError(
            f"{name} is on tensors, and this function computes in NumPy; create it again from "
            "points.detach().cpu().numpy() and coef.detach().cpu().numpy()"
        )
    return value


def check_flag(value: Any, name: str, *, optional: bool = False) -> None:
    """Raise unless the value is True or False, or None if that is allowed."""
    if not (isinstance(value, bool | int | np.bool_) or (optional and value is None)):
        words = "True, False or None" if optional else "True or False"
        raise InputError(f"{name} must be {words}, got {value!r}")


def one_of(value: Any, choices: tuple[str, ...], name: str) -> str:
    """Return value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)


def frozen(array: Array) -> Array:
    """A read-only view: values hold their arrays without a way to change them."""
    view = array.view()
    view.flags.writeable = False
    return view


def _as_float(X: Any, name: str, *, missing: bool = False) -> Array:
    X = plain(unmasked(as_numpy(X, name), name), name, missing=missing)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{name} must be a rectangular array of numbers: {error}") from error
    kind = array.dtype.kind
    if array.dtype in _FLOATS:
        return array if array.flags.aligned else array.copy()
    if kind in "biu":
        ends = (int(array.min()), int(array.max())) if array.size and kind in "iu" else (0,)
        if max(map(abs, ends)) > _EXACT_INTEGERS:
            raise InputError(f"{name} has integers above 2**53, which float64 cannot hold exactly")
        return array.astype(np.float64)
    if kind == "c":
        raise InputError(f"{name} is complex. Complex data not supported; use the real part")
    if kind == "f":
        cure = "astype(np.float32)" if array.dtype.itemsize < 4 else "astype(np.float64)"
        raise InputError(f"{name} has dtype {array.dtype}; use {name}.{cure}")
    raise InputError(f"{name} must hold numbers, got dtype {array.dtype}")


def plain(X: Any, name: str = "X", *, missing: bool = False) -> Any:
    """Return frames and series of numbers as arrays, and anything else as it is.

    With `missing`, nulls become NaN; otherwise they are refused.
    """
    if type(X) is np.ndarray:
        return X
    if (frame := as_frame(X, name)) is not None:
        return matrix_of(frame, name, missing=missing)
    if (series := as_series(X)) is not None:
        if not missing:
            values_of(series, name)  # raises
        return numbers_of(series, name)
    return X


def _check_nonempty(shape: tuple[int, ...], name: str) -> None:
    if 0 in shape:
        what = "rows" if shape[0] == 0 else "features (columns)"
        raise InputError(f"{name} has no {what}: shape {shape}, at least one is needed")


def _check_finite(array: Array, name: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(array)):  # cheap; a finite sum proves that all entries are finite
            return
    if (finite := np.isfinite(array)).all():
        return
    where = tuple(int(i) for i in np.argwhere(~finite)[0])
    kind = "NaN" if np.isnan(array[where]) else "infinity"
    raise InputError(
        f"{name} contains {kind} ({int((~finite).sum())} non-finite entries, the first at "
        f"{where if len(where) > 1 else where[0]}); drop or impute them (KernelImputer)"
    )


def _check_size(X: Array, name: str) -> None:
    _check_finite(X, name)
    if X.dtype == np.float64 and float(np.abs(X).max(initial=0.0)) > LARGEST:
        raise InputError(
            f"{name} has entries above {LARGEST:g}, whose squares overflow; rescale it"
        )


def _as_sparse_points(X: Any, name: str) -> Any:
    """A CSR array without repeated entries; of a sparse matrix, `*` would be a matrix product."""
    from scipy.sparse import csr_array

    csr = X if isinstance(X, csr_array) else csr_array(X)
    if csr.ndim != 2:
        raise InputError(f"{name} must be two-dimensional, got shape {csr.shape}")
    _check_nonempty(csr.shape, name)
    if not csr.has_canonical_format:
        csr = csr.copy()  # the caller's own array stays as it is
        csr.sum_duplicates()
    data = _as_float(csr.data, name)
    _check_size(data, name)
    return csr if data.dtype == csr.dtype else csr.astype(np.float64)
