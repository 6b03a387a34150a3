"""Imputation: missing entries predicted by kernel PCA, observed entries held."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array, as_points, is_sparse, non_negative, one_of, positive_int
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import distinct_rows
from mercer.methods.imputation._rounds import (
    Components,
    Trial,
    choose,
    complete,
    fill_from_neighbours,
    observed_mean,
)
from mercer.methods.pca._filters import Filter, Tikhonov, as_filter
from mercer.methods.pca._kernel_pca import check_number
from mercer.preimages import LinearInverse
from mercer.space import Element

_MANY = 2000  # rows whose components are all computed, in seconds per round; more take landmarks
_LANDMARKS = 500
_REFERENCES = 2000  # rows among which neighbours are sought
_BLOCK = 2048  # rows that are filled at once


@dataclass(frozen=True, eq=False)
class Imputer:
    """Fills missing entries of rows: x_m = r(x)_m, the observed entries held.

    r(x) = b_0 + sum_i b_i k(z_i, z) is the regression of the rows on their filtered coordinates in
    the principal subspace, with z = (x - offset) / scale. The equation is solved by iteration from
    the mean of near rows; then x_m becomes mean + trust (x_m - mean). `fit_imputer` makes one.

    Attributes
    ----------
    kernel : Kernel or None
        On columns divided by `scale`; None if only column means could be learned.
    error : float
        Mean squared error on the entries that were hidden, over that of column means: an estimate
        for the missing entries, if they are missing at random. NaN if none could be hidden.
    status : Status
        Why the rounds of `fit_imputer` ended.
    changes : array of shape (n_iter,)
        Root mean square change of the missing entries in each round, in units of the scale.
    offset, scale, mean, trust : arrays of shape (d,)
        Units in which the kernel sees columns, the means of columns in them, and trust in [0, 1].
    regression, intercept : Element or None, and array of shape (d,)
        The sums of r, one per column (None if there are means only), and b_0.
    rows, row_weights : arrays of shape (m, d) and (m,)
        Completed rows, among which neighbours are sought.
    max_iter, tol
        The iteration ends at a change of `tol` (root mean square, in units of the scale).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import fit_imputer
    >>> t = np.linspace(0.0, 2.0, 100)[:, None]
    >>> imputer = fit_imputer(np.hstack([t, 3.0 * t + 1.0, t**2]))
    >>> imputer([[1.0, np.nan, np.nan]]).round(1)
    array([[1., 4., 1.]])
    """

    kernel: Kernel | None
    error: float
    status: Status
    changes: Array = field(repr=False)
    offset: Array = field(repr=False)
    scale: Array = field(repr=False)
    mean: Array = field(repr=False)
    trust: Array = field(repr=False)
    regression: Element | None = field(repr=False)
    intercept: Array = field(repr=False)
    rows: Array = field(repr=False)
    row_weights: Array = field(repr=False)
    max_iter: int = 20
    tol: float = 1e-3

    def __call__(self, X: Any) -> Array:
        """Return X with its NaN filled, and all other entries unchanged."""
        X = _incomplete(X)
        if X.shape[1] != len(self.mean):
            raise InputError(f"X must have {len(self.mean)} columns, got {X.shape[1]}")
        out = np.array(X)
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        for part in pieces(len(rows), _BLOCK):
            block = X[rows[part]]
            Z = self._fill((block.astype(np.float64) - self.offset) / self.scale)
            filled = (self.offset + self.scale * Z).astype(X.dtype)
            out[rows[part]] = np.where(np.isnan(block), filled, block)
        return out

    def _fill(self, T: Array) -> Array:
        missing = np.isnan(T)
        Z = np.where(missing, self.mean, T)
        if self.regression is None or not self.trust.any():
            return Z
        on = np.flatnonzero(~missing.all(axis=1))
        with single_threaded_blas():
            Z[on] = fill_from_neighbours(T[on], self.rows, self.row_weights)
        for _ in range(self.max_iter):
            if not on.size:
                break
            there = self.intercept + np.asarray(self.regression(Z[on]), dtype=np.float64)
            change = np.where(missing[on], there - Z[on], 0.0)
            Z[on] += change
            moved = np.sqrt(np.sum(change**2, axis=1) / missing[on].sum(axis=1))
            on = on[moved > self.tol]
        return np.where(missing, self.mean + self.trust * (Z - self.mean), T)


def fit_imputer(
    X: Any,
    kernel: Kernel | None = None,
    *,
    weights: Any = None,
    filter: Filter | None = None,  # noqa: A002
    n_components: float | None = None,
    scale_columns: str = "auto",
    n_landmarks: int | None = None,
    max_iter: int = 20,
    tol: float = 1e-3,
    random_state: Any = 0,
) -> Imputer:
    """Return a map that fills missing entries by kernel PCA, fitted to rows with missing entries.

    The rows are completed in rounds. A round finds the principal subspace of the completed rows,
    then, for each column, the missing entries z with z = (H z), the observed ones held. H projects
    on the subspace with the filter's weights, and predicts the column by linear regression. With
    `Tikhonov` that is kernel ridge regression of each column on the completed rows, from the rows
    in which it is observed. The first completion is a mean over rows that are near in shared
    columns.

    Observed entries are hidden to choose what is not given: a tenth of them, of small arrays up to
    three tenths, on at most 400 rows. They choose the filter's strength in each round, the number
    of rounds, the units of columns, the length scale, and the trust in the prediction against the
    mean of each column, mean + trust (z - mean). The trust is about 0 for columns that the others
    do not predict.

    Parameters
    ----------
    X : array_like of shape (n, d)
        NaN where missing, or masked. Every column needs an observed entry.
    kernel : Kernel, optional
        On vectors. By default Gaussian, its squared length scale a quarter, one or four times the
        median squared distance between rows (from shared columns, scaled up to all).
    filter : Filter, optional
        `Tikhonov()` by default. Strengths that it leaves open are chosen.
    weights, n_components
        As for `kernel_pca`.
    scale_columns : {"auto", "std", "none"}
        Whether the automatic kernel sees columns divided by their observed standard deviations
        ("std") or as they are ("none"). "auto" takes whichever predicts hidden entries better, by
        the product of its errors in both units: dividing helps tables and harms images. A kernel
        that is given is in the units of the data, so that columns are not scaled.
    n_landmarks : int, optional
        As for `kernel_pca`; by default none up to 2,000 different rows, and 500 beyond.
    max_iter, tol : int and float
        Rounds at most. The last round changes the missing entries by less than `tol`, root mean
        square and relative to the scale of the columns.
    random_state : int, Generator, RandomState or None, default=0
        Chooses which entries are hidden, and landmarks.

    Notes
    -----
    The choices are right for entries missing at random, and too optimistic for entries that are
    missing because of their value.

    References
    ----------
    G. Sanguinetti and N. D. Lawrence, Missing data in kernel PCA, 2006.

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
    >>> imputer.error < 0.1
    True
    """
    X = _incomplete(X)
    check_number(n_components)
    positive_int(max_iter, "max_iter")
    non_negative(tol, "tol")
    _check_kernel(kernel, scale_columns)
    missing = np.isnan(X)
    if missing.all(axis=0).any():
        empty = np.flatnonzero(missing.all(axis=0)).tolist()
        raise InputError(f"columns {empty} of X have no observed entry; drop them first")
    rng = as_generator(random_state)
    raw = raw_weights(weights, len(X))
    raw = np.ones(len(X)) if raw is None else raw
    # rows without an observed entry say nothing; one bit pattern for every NaN
    rows = np.where(missing, np.nan, X.astype(np.float64))
    rows, w = distinct_rows(rows, np.where(missing.all(axis=1), 0.0, raw))
    if not len(rows):
        raise InputError("no row with a positive weight has an observed entry")
    if n_landmarks is not None:
        positive_int(n_landmarks, "n_landmarks")
    elif len(rows) > _MANY:
        n_landmarks = _LANDMARKS
    settings = {
        "filter": as_filter(filter, Tikhonov()),
        "n_components": n_components, "n_landmarks": n_landmarks,
    }  # fmt: skip
    with single_threaded_blas():  # small matrices; threads lose much if other work is running
        trial = choose(rows, w, kernel, settings, scale_columns, max_iter, rng)
    with single_threaded_blas() if len(rows) <= _MANY else nullcontext():
        found = _run(rows, w, trial, max_iter, tol, rng)
    return found if missing.any() else replace(found, status=Status.COMPLETE)


def _run(rows: Array, w: Array, trial: Trial, max_iter: int, tol: float, rng: Any) -> Imputer:
    """Run the chosen rounds on all rows, and return the map that they end with."""
    T = (rows - trial.offset) / trial.scale
    missing = np.isnan(T)
    picked: Any = slice(None)
    if len(T) > _REFERENCES:
        picked = np.sort(rng.choice(len(T), _REFERENCES, replace=False))
    Z = fill_from_neighbours(T, T[picked], w[picked])
    settings, none = trial.settings, np.zeros(T.shape[1])
    means = Imputer(
        None if settings is None else settings.kernel, trial.expected, Status.TOO_FEW,
        np.zeros(0), trial.offset, trial.scale, observed_mean(T, w), none, None, none,
        Z[picked], w[picked], max_iter, tol,
    )  # fmt: skip
    parts = None if settings is None else Components.fit(Z, w, settings)
    if parts is None or settings is None:
        return means
    changes: list[float] = []
    for strength, relaxation in trial.rounds if missing.any() else ():
        change = relaxation * (complete(parts.smoother(strength), Z, missing) - Z)
        changes.append(float(np.sqrt(np.mean(change[missing] ** 2))))
        Z = Z + change
        parts = Components.fit(Z, w, settings)
        if parts is None:
            return replace(means, changes=np.array(changes))
        if changes[-1] <= tol:
            break
    last = trial.rounds[max(len(changes) - 1, 0)][0] if trial.rounds else None
    # the regression of completed rows on their filtered coordinates, as sums of kernels
    plane, inverse = parts.plane, LinearInverse.fit(parts.plane, Z, w)
    slopes = parts.weights(last)[:, None] * inverse.slopes
    at_origin = np.asarray(plane.directions.inner(plane.origin), dtype=np.float64).ravel()
    status = Status.TOO_FEW
    if trial.trust.any():
        at_end = Status.MAX_ITER if len(changes) == max_iter else Status.CHOSEN
        status = Status.CONVERGED if changes and changes[-1] <= tol else at_end
    return replace(
        means, status=status, changes=np.array(changes), trust=trial.trust, rows=Z[picked],
        regression=plane.directions.combine(slopes), intercept=inverse.mean - at_origin @ slopes,
    )  # fmt: skip


def _check_kernel(kernel: Any, scale_columns: Any) -> None:
    if kernel is not None and not (isinstance(kernel, Kernel) and kernel.domain.is_vector):
        raise InputError(
            f"kernel must be a kernel on vectors, such as Gaussian(1.0), got {kernel!r}"
        )
    one_of(scale_columns, ("auto", "std", "none"), "scale_columns")
    if kernel is not None and scale_columns == "std":
        raise InputError(
            'a kernel that is given is in the units of the data; use scale_columns="none", or '
            "scale the columns of X first"
        )


def masked_as_nan(X: Any) -> Any:
    """Return a masked array as a plain one, with NaN for masked entries."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(X.dtype if X.dtype.kind in "fcO" else np.float64), np.nan)


def _incomplete(X: Any) -> Array:
    """Return X as a float matrix in which NaN is allowed, and infinity is not."""
    if is_sparse(X):
        raise InputError(
            "X is sparse, which does not distinguish missing entries from 0; use X.toarray()"
        )
    array = np.asarray(masked_as_nan(X))
    if np.iscomplexobj(array):
        raise InputError("X must hold real numbers, got complex ones")
    kind = array.dtype if array.dtype == np.float32 else np.dtype(np.float64)
    try:
        array = array.astype(kind, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers, and NaN where missing: {error}") from error
    as_points(np.where(np.isnan(array), kind.type(0.0), array))
    return array
