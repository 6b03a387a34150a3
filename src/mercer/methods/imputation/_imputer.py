"""Imputation: each column predicted from the others by kernel ridge regression, in rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, Points, as_points, is_sparse, non_negative, positive_int
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel, LaplaceProduct, Linear, Vectors
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import distinct_rows
from mercer.space import Element

_GROUPS = 48  # groups of columns at most; a group is predicted from all columns outside it
_LANDMARKS = 500  # with all of 2,000 rows the error on tables was 1 to 2 % smaller, 5 times as slow
_CHOICE_ROWS = 300  # on which the penalty and the length scale of a group are chosen
_PENALTIES = 10.0 ** np.arange(-1.0, 3.1, 0.5)  # for columns of variance 1, per unit of k(x, x)
_HIDDEN = 0.1  # the share of observed entries that is hidden to measure the error
_HIDDEN_ROWS = 500  # on which it is measured
_BLOCK = 4096  # rows that are filled at once
_LARGEST = 1.0 - 1e-9  # leverage: a row must not predict itself alone
_JITTER = 1e-13  # of the trace; equal centres make the equations singular


@dataclass(frozen=True, eq=False)
class ColumnRegression:
    """Columns predicted from the columns outside their group, f_j = b_j + sum_s a_sj k(z_s, .).

    Attributes
    ----------
    columns : integer array of shape (g,)
        The columns j of the group.
    others : integer array
        The columns that predict them.
    element : Element
        The g sums, on the columns `others`.
    intercept, low, high : arrays of shape (g,)
        b_j, and the range of the observed entries, which predictions do not leave.
    """

    columns: Array
    others: Array
    element: Element
    intercept: Array
    low: Array
    high: Array

    def fill(self, Z: Array, missing: Array) -> None:
        """Predict the missing entries of the group's columns, in place."""
        on = np.flatnonzero(missing[:, self.columns].any(axis=1))
        if on.size:
            rows = Points(Z[np.ix_(on, self.others)], self.element.kernel.domain)
            values = self.intercept + np.asarray(self.element(rows), dtype=np.float64)
            at = np.ix_(on, self.columns)
            Z[at] = np.where(missing[at], np.clip(values, self.low, self.high), Z[at])


@dataclass(frozen=True, eq=False)
class Imputer:
    """Fills missing entries of rows, the observed entries held.

    Missing entries start at the means of their columns. Kernel ridge regressions then predict
    column after column, in the rounds in which they were fitted. So the rows of the fit are
    completed as they were there.

    Attributes
    ----------
    regressions : tuple of ColumnRegression
        Those of all rounds, in their order. Empty if there are too few rows or columns; the means
        are filled in then.
    error : array of shape (d,)
        Root mean squared error on entries that were hidden from a fit to at most 500 rows, over the
        standard deviation of the column: about 1 where the other columns do not help. An estimate
        for entries that are missing at random; NaN where none could be hidden.
    status : Status
        Why the rounds of `fit_imputer` ended.
    changes : array of shape (n_iter,)
        Root mean square change of the missing entries in each round, in standard deviations.
    offset, scale : arrays of shape (d,)
        The units in which kernels see columns, (x - offset) / scale.
    mean : array of shape (d,)
        Means of the observed entries in these units.

    See Also
    --------
    fit_imputer : makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import fit_imputer
    >>> t = np.linspace(0.0, 2.0, 100)[:, None]
    >>> imputer = fit_imputer(np.hstack([t, 3.0 * t + 1.0, t**2]))
    >>> imputer([[1.0, np.nan, np.nan]]).round(1)
    array([[1., 4., 1.]])
    """

    regressions: tuple[ColumnRegression, ...] = field(repr=False)
    error: Array
    status: Status
    changes: Array = field(repr=False)
    offset: Array = field(repr=False)
    scale: Array = field(repr=False)
    mean: Array = field(repr=False)

    def __call__(self, X: Any) -> Array:
        """Return X with its NaN filled, and all other entries unchanged."""
        X = _incomplete(X)
        if X.shape[1] != len(self.mean):
            raise InputError(f"X must have {len(self.mean)} columns, got {X.shape[1]}")
        out = np.array(X)
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        for part in pieces(len(rows), _BLOCK):
            block = X[rows[part]]
            T = (block.astype(np.float64) - self.offset) / self.scale
            missing = np.isnan(T)
            Z = np.where(missing, self.mean, T)
            missing[missing.all(axis=1)] = False  # rows of nothing keep the means
            for regression in self.regressions:
                regression.fill(Z, missing)
            filled = (self.offset + self.scale * Z).astype(X.dtype)
            out[rows[part]] = np.where(np.isnan(block), filled, block)
        return out


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
    """Return a map that fills missing entries, fitted to rows with missing entries.

    Chained equations with kernels: in each round every column is regressed on the others, from the
    rows in which it is observed, and its missing entries are predicted. The regressions are kernel
    ridge regressions on Nystrom features. Their penalty is chosen by leave-one-out cross-validation
    in the first round: where a column cannot be predicted, the largest penalty leaves its mean.

    Parameters
    ----------
    X : array_like of shape (n, d)
        NaN where missing, or masked. Every column needs an observed entry.
    kernel : Kernel, optional
        On vectors of any length, in the units of the data. By default columns are standardised, and
        k(x, y) = exp(-|x - y|_1 / p) + <x, y> / p on p columns, a function of
        single columns that bends, plus a linear one.
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is the same as repeating the row.
    n_landmarks : int, default=500
        Rows on which the regressions are written. Up to this number of rows they are exact.
    max_iter : int, default=10
        Rounds at most.
    tol : float, default=1e-2
        The last round changes the missing entries by at most so many standard deviations, root mean
        square.
    random_state : int, Generator, RandomState or None, default=0
        Chooses landmarks, groups of columns, and the entries that are hidden to measure the error.

    Returns
    -------
    Imputer

    Notes
    -----
    More than 48 columns are put into 48 random groups, each predicted from the columns outside it.
    The error is right for entries missing at random, and too optimistic for entries that are
    missing because of their value.

    References
    ----------
    S. van Buuren and K. Groothuis-Oudshoorn, mice: multivariate imputation by chained equations in
    R, 2011.

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
    >>> bool(imputer.error.max() < 0.2)
    True
    """
    X = _incomplete(X)
    if kernel is not None and not (isinstance(kernel, Kernel) and kernel.domain.is_vector):
        raise InputError(
            f"kernel must be a kernel on vectors, such as Gaussian(1.0), got {kernel!r}"
        )
    size, rounds = positive_int(n_landmarks, "n_landmarks"), positive_int(max_iter, "max_iter")
    tol = non_negative(tol, "tol")
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
    offset, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if kernel is None:
        offset, scale = _moments(rows, w)
    T = (rows - offset) / scale
    with single_threaded_blas():  # small matrices; threads lose much if other work is running
        error = _hidden_error(T, w, kernel, size, rounds, tol, rng)
        chain = _Chain(T, w, kernel, size, rng)
        changes = chain.run(rounds, tol)
    status = Status.CONVERGED if changes and changes[-1] <= tol else Status.MAX_ITER
    if not missing.any():
        status = Status.COMPLETE
    elif not chain.regressions:
        status = Status.TOO_FEW
    return Imputer(
        tuple(chain.regressions), error, status, np.array(changes), offset, scale, chain.mean
    )  # fmt: skip


class _Chain:
    """Rows that are completed column by column, and the regressions that did it."""

    def __init__(
        self, T: Array, w: Array, kernel: Kernel | None, size: int, rng: np.random.Generator
    ) -> None:
        self.missing = np.isnan(T)
        self.mean, self.spread = _moments(T, w)
        self.Z = np.where(self.missing, self.mean, T)
        self.w, self.rng = w, rng
        n, d = T.shape
        self.centres = np.sort(rng.choice(n, min(size, n), replace=False))
        order = np.argsort(self.missing.sum(axis=0), kind="stable")
        groups = [order[i : i + 1] for i in range(d)]
        if d > _GROUPS:
            groups = np.array_split(rng.permutation(d), _GROUPS)
        self.groups = groups if d > 1 and n > 1 else []
        p = max(d - len(groups[0]), 1)
        self.kernel = LaplaceProduct(p) + (1.0 / p) * Linear() if kernel is None else kernel
        self.penalties: dict[int, Array] = {}
        self.regressions: list[ColumnRegression] = []

    def run(self, rounds: int, tol: float) -> list[float]:
        """Complete the rows, and return the change in each round."""
        changes: list[float] = []
        for _ in range(rounds if self.missing.any() else 1):
            before = self.Z.copy()
            for i in range(len(self.groups)):
                self.regressions.append(self._regression(i))
                self.regressions[-1].fill(self.Z, self.missing)
            moved = ((self.Z - before) / self.spread)[self.missing]
            if moved.size:
                changes.append(float(np.sqrt(np.mean(moved**2))))
                if changes[-1] <= tol:
                    break
        return changes

    def _regression(self, i: int) -> ColumnRegression:
        """Regress the columns of a group on the others, where they are observed."""
        columns = self.groups[i]
        others = np.setdiff1d(np.arange(self.Z.shape[1]), columns)
        P = Points(np.ascontiguousarray(self.Z[:, others]), Vectors())
        if i not in self.penalties:
            self.penalties[i] = self._penalties(P, columns)
        centres = P[self.centres]
        C = np.asarray(self.kernel(P, centres), dtype=np.float64)
        coef = np.zeros((len(self.centres), len(columns)))
        ranges = np.empty((3, len(columns)))
        for k, (j, penalty) in enumerate(zip(columns, self.penalties[i], strict=True)):
            seen = ~self.missing[:, j]
            y, w = self.Z[seen, j], self.w[seen]
            mean = np.average(y, weights=w)
            ranges[:, k] = mean, y.min(), y.max()
            if len(self.centres) == len(C):  # exact: centres where the column is missing are idle
                A = C[np.ix_(seen, seen)]
                A[np.diag_indices_from(A)] += penalty / w
                coef[seen, k] = _solve(A, y - mean)
            else:
                F = np.sqrt(w)[:, None] * C[seen]
                A = F.T @ F + penalty * C[self.centres]
                coef[:, k] = _solve(A, F.T @ (np.sqrt(w) * (y - mean)))
        return ColumnRegression(columns, others, Element(self.kernel, centres, coef), *ranges)

    def _penalties(self, P: Points, columns: Array) -> Array:
        """A penalty for each column of a group, with the least leave-one-out error.

        Missing entries count as means among the targets, and not at all in the error.
        """
        rows = np.arange(len(P))
        if len(rows) > _CHOICE_ROWS:
            rows = np.sort(self.rng.choice(rows, _CHOICE_ROWS, replace=False))
        v = np.sqrt(self.w[rows])[:, None]
        at = np.ix_(rows, columns)
        Y = v * (self.Z[at] - self.mean[columns])
        e, V = np.linalg.eigh(v * np.asarray(self.kernel(P[rows]), dtype=np.float64) * v.T)
        e = np.maximum(e, 0.0)
        grid = _PENALTIES * (float(np.mean(np.abs(self.kernel.diag(P[rows])))) or 1.0)
        errors = []
        for penalty in grid:
            shrink = (e / (e + penalty))[:, None]
            left = 1.0 - np.minimum((V**2) @ shrink, _LARGEST)
            residual = np.where(self.missing[at], 0.0, (Y - V @ (shrink * (V.T @ Y))) / left)
            errors.append(np.sum(residual**2, axis=0))
        return np.asarray(grid[len(grid) - 1 - np.argmin(errors[::-1], axis=0)])


def _solve(A: Array, b: Array) -> Array:
    """Solve A x = b, A symmetric and positive semi-definite; centres that are equal share."""
    from scipy.linalg import cho_factor, cho_solve

    A[np.diag_indices_from(A)] += _JITTER * np.trace(A)
    return np.asarray(cho_solve(cho_factor(A, lower=True, overwrite_a=True), b))


def _hidden_error(
    T: Array, w: Array, kernel: Kernel | None, size: int, rounds: int, tol: float, rng: Any
) -> Array:
    """Hide observed entries, predict them, and return the error of each column over its spread."""
    some = np.sort(rng.choice(len(T), min(len(T), _HIDDEN_ROWS), replace=False))
    T, w = T[some], w[some]
    seen = ~np.isnan(T)
    hidden = seen & (rng.random(T.shape) < _HIDDEN)
    hidden[~(seen & ~hidden).any(axis=1)] = False  # every row keeps an entry, every column two
    hidden[:, (seen & ~hidden).sum(axis=0) < 2] = False
    error = np.full(T.shape[1], np.nan)
    if hidden.any():
        chain = _Chain(np.where(hidden, np.nan, T), w, kernel, size, rng)
        chain.run(rounds, tol)
        gap = np.where(hidden, chain.Z - T, 0.0) / chain.spread
        mass = (w[:, None] * hidden).sum(axis=0)
        known = mass > 0.0
        error[known] = np.sqrt((w[:, None] * gap**2).sum(axis=0)[known] / mass[known])
    return error


def _moments(T: Array, w: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of the observed entries of each column.

    A column that is constant to rounding, or has nothing observed, gets a deviation of 1.
    """
    seen = ~np.isnan(T)
    mass = np.maximum((w[:, None] * seen).sum(axis=0), np.finfo(float).tiny)
    centre = np.where(seen.any(axis=0), np.nanmax(np.where(seen, T, -np.inf), axis=0), 0.0)
    mean = centre + (w[:, None] * np.where(seen, T - centre, 0.0)).sum(axis=0) / mass
    gap = np.where(seen, T - mean, 0.0)
    spread = np.sqrt((w[:, None] * gap**2).sum(axis=0) / mass)
    return mean, np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)


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
    kind = array.dtype if array.dtype == np.float32 else np.dtype(np.float64)
    try:
        array = array.astype(kind, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers, and NaN where missing: {error}") from error
    as_points(np.where(np.isnan(array), kind.type(0.0), array))
    return array
