"""Imputation: each column predicted from the others by kernel ridge regression, in rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_points,
    header,
    is_sparse,
    non_negative,
    plain,
    positive_int,
)
from mercer._frames import Header, check_same_header, like
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import distinct_rows
from mercer.methods.imputation._regressions import (
    Chain,
    ColumnRegression,
    hidden_error,
    moments,
    replay,
)

_LANDMARKS = 300  # 500 lower the error on tables by 1 to 3 %, and take twice as long


@dataclass(frozen=True, eq=False)
class Imputer:
    """A fitted map that fills in missing values; observed values are not changed.

    Missing entries start at the means of their columns. Kernel ridge regressions then predict one
    group of columns after the other, in the rounds and the order in which they were fitted. So the
    rows of the fit are completed just as they were there. `fit_imputer` returns one.

    Attributes
    ----------
    kernel : Kernel
        Of all regressions.
    regressions : tuple of ColumnRegression
        Those of all rounds, in their order. Empty if there is one row or one column; missing
        entries then get the means.
    centres : array of shape (m, d)
        The rows z_s of the regressions, NaN where missing.
    error : array of shape (d,)
        Root mean squared error on observed entries that were hidden, 5 % at a time, in up to
        150 rows that were not fitted; at most 250 others were. In standard deviations of the
        column: about 1 if the other columns do not help. Since fewer rows are fitted and more is
        missing, it is a little too large. NaN if no entry could be hidden.
    status : Status
        Why the rounds of `fit_imputer` ended.
    changes : array of shape (n_iter,)
        Root mean square change of the missing entries in each round, in standard deviations.
    offset, scale : arrays of shape (d,)
        The units in which the kernel sees columns, (x - offset) / scale.
    mean : array of shape (d,)
        Means of the observed entries in these units.
    header : Header or None
        The names of the columns, if the rows of the fit were a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import fit_imputer
    >>> t = np.linspace(0.0, 2.0, 100)[:, None]
    >>> imputer = fit_imputer(np.hstack([t, 3.0 * t + 1.0, t**2]))
    >>> imputer([[1.0, np.nan, np.nan]]).round(1)
    array([[1., 4., 1.]])
    """

    kernel: Kernel
    regressions: tuple[ColumnRegression, ...] = field(repr=False)
    centres: Array = field(repr=False)
    error: Array
    status: Status
    changes: Array = field(repr=False)
    offset: Array = field(repr=False)
    scale: Array = field(repr=False)
    mean: Array = field(repr=False)
    header: Header | None = None

    def __call__(self, X: Any) -> Any:
        """Return X with its missing entries filled; a frame as a frame with the same columns."""
        check_same_header(self.header, header(X), ("the rows of the fit", "X"))
        given, X = X, _incomplete(X)
        if X.shape[1] != len(self.mean):
            raise InputError(f"X must have {len(self.mean)} columns, got {X.shape[1]}")
        gaps = np.isnan(X)
        on = np.flatnonzero(gaps.any(axis=1))
        T = (X[on].astype(np.float64) - self.offset) / self.scale
        with single_threaded_blas():
            Z = replay(self.kernel, self.regressions, self.centres, self.mean, T)
        out = np.array(X)
        out[gaps] = (self.offset + self.scale * Z).astype(X.dtype)[gaps[on]]
        return like(given, out)


def fit_imputer(
    X: Any,
    kernel: Kernel | None = None,
    *,
    weights: Any = None,
    n_landmarks: int = _LANDMARKS,
    max_iter: int = 3,
    tol: float = 1e-2,
    random_state: Any = 0,
) -> Imputer:
    """Fit a map that fills in missing values, on rows with missing values.

    Chained equations with kernels: in each round every column is regressed on the others, from the
    rows in which it is observed, and its missing entries are predicted. The prediction of column j
    is b_j + f(x) from the other columns x, where b_j is its mean and f minimises

        sum_i w_i (y_i - b_j - f(x_i))^2 + a ||f||^2 .

    The penalty a is chosen in the first round, by leave-one-out cross-validation: if the other
    columns do not help, it is large, and predictions are about the mean.

    Parameters
    ----------
    X : array_like of shape (n, d)
        NaN where missing, or masked. Every column needs an observed entry.
    kernel : Kernel, optional
        On vectors of any length, in the units of the data. By default columns are standardised, and
        k(x, y) = exp(-|x - y|_1 / p) + <x, y> / p on p columns: a smooth function of all columns
        plus a linear one. Then units do not matter.
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is the same as repeating the row.
    n_landmarks : int, default=300
        If there are more than twice as many rows, f is a combination of k(z, .) for this many rows
        z drawn at random. Otherwise it is exact.
    max_iter : int, default=3
        The largest number of rounds. More lowered the error by less than 1 % on tables.
    tol : float, default=1e-2
        Stop after a round that changes the missing entries by at most this many standard
        deviations (root mean square).
    random_state : int, Generator, RandomState or None, default=0
        Chooses landmarks, groups of columns, and the entries that are hidden to measure the error.

    Returns
    -------
    Imputer

    Notes
    -----
    More than 48 columns are put into 48 random groups, or fewer if there are more than 250. Each
    group is predicted from the columns outside it.
    The error is right for entries missing at random, and too optimistic for entries that are
    missing because of their value.

    References
    ----------
    S. van Buuren and K. Groothuis-Oudshoorn, mice: multivariate imputation by chained equations in
    R, Journal of Statistical Software 45(3), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import fit_imputer
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0.0, 2.0, (300, 1))
    >>> X = np.sin(t + np.arange(6))
    >>> holes = X.copy()
    >>> holes[rng.random(X.shape) < 0.2] = np.nan
    >>> imputer = fit_imputer(holes)
    >>> missing = np.isnan(holes)
    >>> bool(np.mean((imputer(holes) - X)[missing] ** 2) < 0.02 * np.var(X))
    True
    >>> bool(np.median(imputer.error) < 0.1)
    True
    """
    names, X = header(X), _incomplete(X)
    if kernel is not None and not (isinstance(kernel, Kernel) and kernel.domain.is_vector):
        raise InputError(
            f"kernel must be a kernel on vectors, such as Gaussian(1.0), got {kernel!r}"
        )
    size, rounds = positive_int(n_landmarks, "n_landmarks"), positive_int(max_iter, "max_iter")
    tol = non_negative(tol, "tol")
    missing = np.isnan(X)
    rng = as_generator(random_state)
    raw = raw_weights(weights, len(X))
    raw = np.ones(len(X)) if raw is None else raw
    # rows without an observed entry say nothing; one bit pattern for every NaN
    rows = np.where(missing, np.nan, X.astype(np.float64))
    rows, w = distinct_rows(rows, np.where(missing.all(axis=1), 0.0, raw))
    empty = np.flatnonzero(np.isnan(rows).all(axis=0)).tolist()
    if empty:
        raise InputError(
            f"columns {_named(empty, names)} of X have no observed entry in rows of positive "
            "weight; drop them"
        )
    offset, scale = moments(rows, w)
    if kernel is not None:
        offset, scale = np.zeros_like(offset), np.ones_like(scale)
    rows -= offset
    rows /= scale
    with single_threaded_blas():  # small matrices; threads lose much if other work is running
        error = hidden_error(rows, w, kernel, size, rounds, tol, rng)
        chain = Chain(rows, w, kernel, size, rng)
        changes = chain.run(rounds, tol)
    status = Status.CONVERGED if changes and changes[-1] <= tol else Status.MAX_ITER
    if not missing.any():
        status = Status.COMPLETE
    elif not chain.regressions:
        status = Status.TOO_FEW
    return Imputer(
        chain.kernel, tuple(chain.regressions), rows[chain.centres], error, status,
        np.array(changes), offset, scale, chain.mean, names,
    )  # fmt: skip


def _named(columns: list[int], names: Header | None) -> Any:
    return columns if names is None else [names.names[j] for j in columns]


def masked_as_nan(X: Any) -> Any:
    """Return a masked array as a plain one, with NaN for masked entries."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(X.dtype if X.dtype.kind in "fcO" else np.float64), np.nan)


def _incomplete(X: Any) -> Array:
    """Return X as a float matrix in which NaN is allowed, and infinity is not."""
    X = plain(masked_as_nan(X), missing=True)
    if is_sparse(X):
        raise InputError(
            "X is sparse, which does not distinguish missing entries from 0; use X.toarray()"
        )
    array = np.asarray(X)
    if np.iscomplexobj(array):
        raise InputError("X must hold real numbers, got complex ones")
    kind = array.dtype if array.dtype == np.float32 else np.dtype(np.float64)
    try:
        array = array.astype(kind, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers, and NaN where missing: {error}") from error
    as_points(np.where(np.isnan(array), kind.type(0.0), array))
    return array
