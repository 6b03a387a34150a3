"""Imputation: each column predicted from the others by kernel ridge regression, in rounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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

_LANDMARKS = 300  # 500 lower the error on tables by 1 to 3 %, and take twice as long
_CHOICE_ROWS = 200  # on which the penalties of a group are chosen
_PENALTIES = 10.0 ** np.arange(-1.0, 3.1, 0.5)  # per unit of k(x, x)
_HIDDEN = 0.1  # the share of observed entries that is hidden to measure the error
_HIDDEN_ROWS = 300  # on which it is measured
_GROUPS = 48  # groups of columns at most; a group is predicted from all columns outside it
_GROUP_COLUMNS = 100_000  # groups times columns: of very many columns there are fewer groups
_BLOCK = 4096  # rows that are taken at once
_LARGEST = 1.0 - 1e-9  # leverage: a row must not predict itself alone
_JITTER = 1e-13  # of the trace; equal centres make the equations singular


@dataclass(frozen=True, eq=False)
class ColumnRegression:
    """A group of columns predicted from all others, f_j(x) = b_j + sum_s a_sj k(z_s, x).

    Attributes
    ----------
    columns : integer array of shape (g,)
        The columns j of the group.
    coef : array of shape (m, g)
        The coefficients a of the m centres z_s, which are rows of the data completed so far.
    intercept, low, high : arrays of shape (g,)
        b_j, and the range of the observed entries, which predictions do not leave.
    filled : array
        What was then filled in for the missing entries of the centres in these columns, row by
        row: centres of the regressions that follow.
    """

    columns: Array
    coef: Array
    intercept: Array
    low: Array
    high: Array
    filled: Array

    def fill(self, kernel: Kernel, centres: Array, Z: Array, missing: Array) -> None:
        """Predict the missing entries of the group's columns, in place."""
        on = np.flatnonzero(missing[:, self.columns].any(axis=1))
        element = Element(kernel, _without(centres, self.columns), self.coef)
        for part in pieces(len(on), _BLOCK):
            rows = on[part]
            at = np.ix_(rows, self.columns)
            values = self.intercept + element(_without(Z[rows], self.columns))
            Z[at] = np.where(missing[at], np.clip(values, self.low, self.high), Z[at])


@dataclass(frozen=True, eq=False)
class Imputer:
    """Fills missing entries of rows; observed entries are not changed.

    Missing entries start at the means of their columns. Kernel ridge regressions then predict one
    group of columns after the other, in the rounds and the order in which they were fitted. So the
    rows of the fit are completed just as they were there. `fit_imputer` makes one.

    Attributes
    ----------
    kernel : Kernel
        Of all regressions.
    regressions : tuple of ColumnRegression
        Those of all rounds, in their order. Empty if there is one row or one column; the means
        are filled in then.
    centres : array of shape (m, d)
        The rows z_s of the regressions, NaN where missing.
    error : array of shape (d,)
        Root mean squared error on entries that were hidden from a fit to at most 300 rows, in
        standard deviations of the column: about 1 where the other columns do not help. It is NaN
        where no entry could be hidden.
    status : Status
        Why the rounds of `fit_imputer` ended.
    changes : array of shape (n_iter,)
        Root mean square change of the missing entries in each round, in standard deviations.
    offset, scale : arrays of shape (d,)
        The units in which the kernel sees columns, (x - offset) / scale.
    mean : array of shape (d,)
        Means of the observed entries in these units.

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

    def __call__(self, X: Any) -> Array:
        """Return X with its missing entries filled."""
        X = _incomplete(X)
        if X.shape[1] != len(self.mean):
            raise InputError(f"X must have {len(self.mean)} columns, got {X.shape[1]}")
        gaps = np.isnan(X)
        on = np.flatnonzero(gaps.any(axis=1))
        T = (X[on].astype(np.float64) - self.offset) / self.scale
        Z = np.where(gaps[on], self.mean, T)
        missing = gaps[on] & ~gaps[on].all(axis=1, keepdims=True)  # rows of nothing keep the means
        if missing.any():
            with single_threaded_blas():
                self._replay(Z, missing)
        out = np.array(X)
        out[gaps] = (self.offset + self.scale * Z).astype(X.dtype)[gaps[on]]
        return out

    def _replay(self, Z: Array, missing: Array) -> None:
        """Fill as in the fit, while the centres change as they did there."""
        holes = np.isnan(self.centres)
        centres = np.where(holes, self.mean, self.centres)
        for step in self.regressions:
            step.fill(self.kernel, centres, Z, missing)
            group = centres[:, step.columns]
            group[holes[:, step.columns]] = step.filled
            centres[:, step.columns] = group


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
    rows in which it is observed, and its missing entries are predicted. The prediction of column j
    is b_j + f(x) from the other columns x, where b_j is its mean and f minimises

        sum_i w_i (y_i - b_j - f(x_i))^2 + a ||f||^2 .

    The penalty a is chosen in the first round, by leave-one-out cross-validation: where the other
    columns do not help, a large one leaves about the mean.

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
        If there are more than twice as many rows, f is a combination of k(z, .) for so many rows z
        drawn at random. Otherwise it is exact.
    max_iter : int, default=3
        Rounds at most. More lowered the error by less than 1 % on tables.
    tol : float, default=1e-2
        A round that changes the missing entries by at most so many standard deviations, root mean
        square, is the last.
    random_state : int, Generator, RandomState or None, default=0
        Chooses landmarks, groups of columns, and the entries that are hidden to measure the error.

    Returns
    -------
    Imputer

    Notes
    -----
    More than 48 columns are put into 48 random groups, or fewer if there are more than 2,000. Each
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
    seen = ~np.isnan(rows)
    if not seen.any(axis=0).all():
        raise InputError("a column has no observed entry in rows of positive weight; drop it first")
    offset, scale = _moments(rows, w)
    if kernel is not None:
        offset, scale = np.zeros_like(offset), np.ones_like(scale)
    T = (rows - offset) / scale
    with single_threaded_blas():  # small matrices; threads lose much if other work is running
        error = _hidden_error(T, w, kernel, size, rounds, tol, rng)
        chain = _Chain(T, w, kernel, size, rng)
        changes = chain.run(rounds, tol)
    status = Status.CONVERGED if changes and changes[-1] <= tol else Status.MAX_ITER
    if seen.all():
        status = Status.COMPLETE
    elif not chain.regressions:
        status = Status.TOO_FEW
    return Imputer(
        chain.kernel, tuple(chain.regressions), T[chain.centres], error, status,
        np.array(changes), offset, scale, chain.mean,
    )  # fmt: skip


class _Chain:
    """Rows that are completed group by group, and the regressions that did it."""

    def __init__(
        self, T: Array, w: Array, kernel: Kernel | None, size: int, rng: np.random.Generator
    ) -> None:
        n, d = T.shape
        self.missing, self.w, self.rng = np.isnan(T), w, rng
        self.mean, self.spread = _moments(T, w)
        self.Z = np.where(self.missing, self.mean, T)
        # n^3 / 3 operations for all rows, n m^2 for m landmarks
        self.exact = n <= 2 * size
        self.centres = np.arange(n) if self.exact else np.sort(rng.choice(n, size, replace=False))
        self.groups = _groups(self.missing, rng) if n > 1 and d > 1 else []
        p = d - len(self.groups[0]) if self.groups else 1
        self.kernel = LaplaceProduct(p) + (1.0 / p) * Linear() if kernel is None else kernel
        self.penalties: list[Array] = []
        self.regressions: list[ColumnRegression] = []

    def run(self, rounds: int, tol: float) -> list[float]:
        """Complete the rows, and return the change in each round."""
        changes: list[float] = []
        for _ in range(rounds if self.missing.any() else 1):
            before = self.Z[self.missing]
            for i, columns in enumerate(self.groups):
                if len(self.penalties) == i:
                    self.penalties.append(self._penalties(columns))
                self.regressions.append(self._regression(columns, self.penalties[i]))
            moved = (self.Z[self.missing] - before) / self.spread[np.nonzero(self.missing)[1]]
            if moved.size:
                changes.append(float(np.sqrt(np.mean(moved**2))))
                if changes[-1] <= tol:
                    break
        return changes

    def _regression(self, columns: Array, penalties: Array) -> ColumnRegression:
        """Regress the columns of a group on the others, and fill their missing entries."""
        Z, missing = self.Z, self.missing
        centres = Z[self.centres]
        z = _without(centres, columns)
        solve = self._exact if self.exact else self._on_landmarks
        coef = solve(z, columns, penalties)
        ranges = (
            self.mean[columns],
            np.where(missing[:, columns], np.inf, Z[:, columns]).min(axis=0),
            np.where(missing[:, columns], -np.inf, Z[:, columns]).max(axis=0),
        )
        step = ColumnRegression(columns, coef, *ranges, np.empty(0))
        step.fill(self.kernel, centres, Z, missing)
        at = np.ix_(self.centres, columns)
        return replace(step, filled=Z[at][missing[at]])

    def _exact(self, z: Points, columns: Array, penalties: Array) -> Array:
        """Solve (K + a W^-1) c = y - b for each column, over the rows in which it is observed."""
        K = np.asarray(self.kernel(z), dtype=np.float64)
        coef = np.zeros((len(z), len(columns)))
        for k, (j, penalty) in enumerate(zip(columns, penalties, strict=True)):
            seen = np.flatnonzero(~self.missing[:, j])
            A = K[np.ix_(seen, seen)]
            A[np.diag_indices_from(A)] += penalty / self.w[seen]
            coef[seen, k] = _solve(A, self.Z[seen, j] - self.mean[j])
        return coef

    def _on_landmarks(self, z: Points, columns: Array, penalties: Array) -> Array:
        """Solve (C^T W C + a K) c = C^T W (y - b) for each column, with C from rows to centres."""
        K = np.asarray(self.kernel(z), dtype=np.float64)
        A = penalties[:, None, None] * K
        B = np.zeros((len(columns), len(z)))
        for part in pieces(len(self.Z), _BLOCK):
            C = np.asarray(self.kernel(_without(self.Z[part], columns), z), dtype=np.float64)
            for k, j in enumerate(columns):
                seen = ~self.missing[part, j]
                v = np.sqrt(self.w[part][seen])
                F = C[seen]
                F *= v[:, None]
                A[k] += F.T @ F
                B[k] += F.T @ (v * (self.Z[part, j][seen] - self.mean[j]))
        return np.stack([_solve(a, b) for a, b in zip(A, B, strict=True)], axis=1)

    def _penalties(self, columns: Array) -> Array:
        """A penalty for each column of a group, with the least leave-one-out error.

        Missing entries count as means among the targets, and not at all in the error.
        """
        rows = np.flatnonzero(~self.missing[:, columns].all(axis=1))
        if len(rows) > _CHOICE_ROWS:
            rows = np.sort(self.rng.choice(rows, _CHOICE_ROWS, replace=False))
        z = _without(self.Z[rows], columns)
        v = np.sqrt(self.w[rows])[:, None]
        at = np.ix_(rows, columns)
        Y = v * (self.Z[at] - self.mean[columns])
        e, V = np.linalg.eigh(v * np.asarray(self.kernel(z), dtype=np.float64) * v.T)
        e = np.maximum(e, 0.0)
        grid = _PENALTIES * (float(np.mean(np.abs(self.kernel.diag(z)))) or 1.0)
        errors = []
        for penalty in grid:
            shrink = (e / (e + penalty))[:, None]
            left = 1.0 - np.minimum((V**2) @ shrink, _LARGEST)
            residual = np.where(self.missing[at], 0.0, (Y - V @ (shrink * (V.T @ Y))) / left)
            errors.append(np.sum(residual**2, axis=0))
        return np.asarray(grid[len(grid) - 1 - np.argmin(errors[::-1], axis=0)])


def _groups(missing: Array, rng: np.random.Generator) -> list[Array]:
    """Columns one by one, those with the fewest missing entries first; many in random groups."""
    d = missing.shape[1]
    if d <= _GROUPS:
        order = np.argsort(missing.sum(axis=0), kind="stable")
        return [order[i : i + 1] for i in range(d)]
    return np.array_split(rng.permutation(d), max(4, min(_GROUPS, _GROUP_COLUMNS // d)))


def _without(Z: Array, columns: Array) -> Points:
    """Rows without some columns, as points that need no check."""
    return Points(np.delete(Z, columns, axis=1), Vectors())


def _solve(A: Array, b: Array) -> Array:
    """Solve A x = b, A symmetric and positive semi-definite; centres that are equal share."""
    from scipy.linalg import cho_factor, cho_solve

    A[np.diag_indices_from(A)] += _JITTER * np.trace(A)
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, b, check_finite=False))


def _hidden_error(
    T: Array, w: Array, kernel: Kernel | None, size: int, rounds: int, tol: float, rng: Any
) -> Array:
    """Hide observed entries, predict them, and return the error of each column over its spread.

    Of few rows several times, since few entries are hidden then.
    """
    spread = _moments(T, w)[1]
    total, mass = np.zeros(T.shape[1]), np.zeros(T.shape[1])
    for _ in range(min(max(_HIDDEN_ROWS // len(T), 1), 5)):
        some = np.sort(rng.choice(len(T), min(len(T), _HIDDEN_ROWS), replace=False))
        seen = ~np.isnan(T[some])
        hidden = seen & (rng.random(seen.shape) < _HIDDEN)
        hidden[~(seen & ~hidden).any(axis=1)] = False  # every row keeps an entry, every column two
        hidden[:, (seen & ~hidden).sum(axis=0) < 2] = False
        if hidden.any():
            chain = _Chain(np.where(hidden, np.nan, T[some]), w[some], kernel, size, rng)
            chain.run(rounds, tol)
            gap = np.where(hidden, chain.Z - T[some], 0.0) / spread
            total += w[some] @ gap**2
            mass += w[some] @ hidden
    return np.sqrt(np.divide(total, mass, out=np.full(len(mass), np.nan), where=mass > 0.0))


def _moments(T: Array, w: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of the observed entries of each column.

    A column that is constant to rounding, or has nothing observed, gets a deviation of 1.
    """
    seen = ~np.isnan(T)
    v = w[:, None] * seen
    v /= np.maximum(v.sum(axis=0), np.finfo(float).tiny)
    centre = np.where(seen.any(axis=0), np.where(seen, T, -np.inf).max(axis=0), 0.0)
    mean = centre + (v * np.where(seen, T - centre, 0.0)).sum(axis=0)
    gap = np.where(seen, T - mean, 0.0)
    peak = np.abs(gap).max(axis=0)  # so that squares do not underflow
    peak[peak == 0.0] = 1.0
    spread = peak * np.sqrt((v * (gap / peak) ** 2).sum(axis=0))
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
    if np.iscomplexobj(array):
        raise InputError("X must hold real numbers, got complex ones")
    kind = array.dtype if array.dtype == np.float32 else np.dtype(np.float64)
    try:
        array = array.astype(kind, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers, and NaN where missing: {error}") from error
    as_points(np.where(np.isnan(array), kind.type(0.0), array))
    return array
