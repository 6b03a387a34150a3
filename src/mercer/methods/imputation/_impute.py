"""Imputation: missing entries from the principal subspace of the rows, observed ones held."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, as_points, is_sparse, non_negative, positive_int
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import distinct_rows
from mercer.methods.imputation._choice import Choice, choose
from mercer.methods.imputation._rounds import Components, from_neighbours, observed_mean
from mercer.methods.pca._components import check_number
from mercer.methods.pca._filters import Filter, Tikhonov
from mercer.preimages import LinearInverse
from mercer.space import Element

_MANY = 2000  # rows whose components are all computed; more take landmarks
_LANDMARKS = 500
_REFERENCES = 2000  # rows among which neighbours are sought
_BLOCK = 2048  # rows that are filled at once


@dataclass(frozen=True, eq=False)
class Completion:
    """Fills missing entries of new rows: x_m = r(x)_m, the observed coordinates held.

    r(x) = b_0 + sum_i b_i k(z_i, x) is the regression of the rows on their filtered coordinates in
    the principal subspace, z = (x - offset) / scale. The equation is solved by iteration from the
    mean of near rows; then x_m becomes mean + trust (x_m - mean).

    Attributes
    ----------
    offset, scale, mean : arrays of shape (d,)
        Units in which the kernel sees columns, and the means of columns in them.
    back : Element or None
        The sums of r, one per column; None where there are means only.
    intercept : array of shape (d,)
        b_0.
    rows, row_weights : arrays of shape (m, d) and (m,)
        Completed rows, where starts are looked for.
    trust : array of shape (d,)
        In [0, 1].
    max_iter, tol
        When the iteration ends: a change of `tol` (root mean square, in units of scale).
    """

    offset: Array = field(repr=False)
    scale: Array = field(repr=False)
    mean: Array = field(repr=False)
    back: Element | None
    intercept: Array = field(repr=False)
    rows: Array = field(repr=False)
    row_weights: Array = field(repr=False)
    trust: Array = field(repr=False)
    max_iter: int = 20
    tol: float = 1e-3

    def __call__(self, X: Any) -> Array:
        """X with its NaN filled; everything else is returned as it came."""
        X = incomplete(X)
        if X.shape[1] != len(self.mean):
            raise InputError(f"X must have {len(self.mean)} columns, got {X.shape[1]}")
        out = np.array(X)
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        for part in pieces(len(rows), _BLOCK):
            block = X[rows[part]]
            missing = np.isnan(block)
            filled = self.original(
                self._filled((block.astype(np.float64) - self.offset) / self.scale)
            )
            out[rows[part]] = np.where(missing, filled.astype(X.dtype), block)
        return out

    def original(self, Z: Array) -> Array:
        """From the kernel's units to those of the data."""
        return np.asarray(self.offset + self.scale * Z)

    def trusted(self, Z: Array) -> Array:
        """As far from the means as predictions are worth."""
        return np.asarray(self.mean + self.trust * (Z - self.mean))

    def _filled(self, T: Array) -> Array:
        missing = np.isnan(T)
        Z = np.where(missing, self.mean, T)
        on = np.flatnonzero(~missing.all(axis=1))
        if self.back is None or not self.trust.any():
            return Z
        with single_threaded_blas():
            Z[on] = from_neighbours(T[on], self.rows, self.row_weights)
        for _ in range(self.max_iter):
            if not on.size:
                break
            there = self.intercept + np.asarray(self.back(Z[on]), dtype=np.float64)
            change = np.where(missing[on], there - Z[on], 0.0)
            Z[on] += change
            moved = np.sqrt(np.sum(change**2, axis=1) / missing[on].sum(axis=1))
            on = on[moved > self.tol]
        return np.where(missing, self.trusted(Z), T)


@dataclass(frozen=True, eq=False)
class Imputed:
    """A completed array, and how it came about.

    Attributes
    ----------
    points : array of shape (n, d)
        X with its NaN filled.
    n_iter : int
        Rounds.
    changes : array of shape (n_iter,)
        Root mean square change of the missing entries in each round, in units of the scale.
    status : Status
    kernel : Kernel or None
        The kernel, on columns divided by `completion.scale`.
    strength : float or None
        The filter's last strength, relative to the whole scatter of the features.
    error : float
        Mean squared error on the entries that were hidden, over that of column means: what to
        expect of the missing ones if they are missing at random. NaN where none could be hidden.
    completion : Completion
        Fills new rows.
    """

    points: Array = field(repr=False)
    n_iter: int
    changes: Array = field(repr=False)
    status: Status
    kernel: Kernel | None
    strength: float | None
    error: float
    completion: Completion = field(repr=False)


def impute(
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
) -> Imputed:
    """Return X with its NaN filled by kernel principal components.

    Rounds of: the principal subspace of the completed rows; then, for each column, the missing
    entries z that solve z = (H z) with the observed ones held, H the projection on the subspace
    with the filter's weights, read back by linear regression. With `Tikhonov` that is kernel ridge
    regression of each column on the completed rows, from the rows where it is observed. The first
    completion is a mean over rows that are near in the columns both have.

    What is not given is chosen on observed entries that are hidden (a tenth; of small arrays up to
    three tenths; on at most 400 rows): the filter's strength in each round, the number of rounds,
    the units of columns, the length scale, and how far to trust the result against the mean of each
    column, mean + trust (z - mean). The trust is about 0 in columns that others say nothing about.

    Parameters
    ----------
    X : array_like of shape (n, d)
        NaN where missing. Every column needs an observed entry.
    kernel : Kernel, optional
        On vectors. By default Gaussian, its squared length scale a quarter, one or four times the
        median squared distance between rows (from columns that both have, scaled up to all).
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is a row that stands twice.
    filter : Filter, optional
        `Tikhonov()` by default. Strengths that it leaves open are chosen.
    n_components : int, float or None
        As for `kernel_pca`; None is all.
    scale_columns : {"auto", "std", "none"}
        Whether the automatic kernel sees columns divided by their observed standard deviations
        ("std") or as they are ("none"). "auto" takes whichever predicts hidden entries better, by
        the product of its errors in both units. A kernel that is given is in the units of the data,
        so that columns are not scaled.
    n_landmarks : int, optional
        As for `kernel_pca`; by default none up to 2,000 different rows, and 500 beyond.
    max_iter : int, default=20
        Rounds at most.
    tol : float, default=1e-3
        A round that changes the missing entries by less, root mean square and relative to the
        scale of the columns, is the last.
    random_state : int, Generator, RandomState or None, default=0
        Chooses what is hidden, and landmarks.

    Returns
    -------
    Imputed

    Notes
    -----
    Equal rows count as one of their total weight, so that `weights` are exact. What is chosen on
    hidden entries is right for entries missing at random, not for those that are missing because
    of their value.

    References
    ----------
    SPEC H, D13. G. Sanguinetti and N. D. Lawrence, Missing data in kernel PCA, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import impute
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0.0, 2.0, (300, 1))
    >>> X = np.sin(t + np.arange(6))
    >>> holes = X.copy()
    >>> holes[rng.random(X.shape) < 0.2] = np.nan
    >>> found = impute(holes)
    >>> missing = np.isnan(holes)
    >>> bool(np.mean((found.points - X)[missing] ** 2) < 0.02 * np.var(X))
    True
    >>> x = np.sin(1.0 + np.arange(6))
    >>> x.round(1)
    array([ 0.8,  0.9,  0.1, -0.8, -1. , -0.3])
    >>> found.completion([[x[0], x[1], np.nan, np.nan, np.nan, x[5]]]).round(1)
    array([[ 0.8,  0.9,  0.1, -0.8, -1. , -0.3]])
    """
    X = incomplete(X)
    check_number(n_components)
    positive_int(max_iter, "max_iter")
    non_negative(tol, "tol")
    if kernel is not None and not (isinstance(kernel, Kernel) and kernel.domain.is_vector):
        raise InputError(
            f"kernel must be a kernel on vectors, such as Gaussian(1.0), got {kernel!r}"
        )
    if scale_columns not in ("auto", "std", "none"):
        raise InputError(f'scale_columns must be "auto", "std" or "none", got {scale_columns!r}')
    if kernel is not None and scale_columns == "std":
        raise InputError(
            'a kernel that is given is in the units of the data; use scale_columns="none", or '
            "scale the columns of X first"
        )
    if np.isnan(X).all(axis=0).any():
        empty = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
        raise InputError(f"columns {empty} of X have no observed entry; drop them first")
    rng = as_generator(random_state)
    raw = raw_weights(weights, X.shape[0])
    raw = np.ones(len(X)) if raw is None else raw
    # rows without an observed entry say nothing; one bit pattern for every NaN
    rows = np.where(np.isnan(X), np.nan, X.astype(np.float64))
    rows, w = distinct_rows(rows, np.where(np.isnan(X).all(axis=1), 0.0, raw))
    if not len(rows):
        raise InputError("no row with a positive weight has an observed entry")
    few = _LANDMARKS if n_landmarks is None and len(rows) > _MANY else n_landmarks
    with single_threaded_blas():  # small matrices; threads lose much where other work is running
        chosen = choose(
            rows, w, kernel, Tikhonov() if filter is None else filter, n_components, scale_columns,
            None if few is None else positive_int(few, "n_landmarks"), max_iter, rng,
        )  # fmt: skip
    with single_threaded_blas() if len(rows) <= _MANY else nullcontext():
        return _run(X, rows, w, chosen, max_iter, tol, rng)


def _run(
    X: Array, rows: Array, w: Array, chosen: Choice, max_iter: int, tol: float, rng: Any
) -> Imputed:
    """The chosen rounds on all rows, and the map that they end with."""
    T = (rows - chosen.offset) / chosen.scale
    missing = np.isnan(T)
    picked: Any = slice(None)
    if len(T) > _REFERENCES:
        picked = np.sort(rng.choice(len(T), _REFERENCES, replace=False))
    Z = from_neighbours(T, T[picked], w[picked])
    changes: list[float] = []
    parts, settings = None, chosen.settings
    for move in chosen.moves if missing.any() else ():
        assert settings is not None
        parts = Components.of(Z, w, settings)
        if parts is None:
            break
        there = move.of(parts, Z, missing)
        changes.append(float(np.sqrt(np.mean((there - Z)[missing] ** 2))))
        Z = there
        if changes[-1] <= tol:
            break
    if settings is not None:
        parts = Components.of(Z, w, settings)
    back, intercept = None, np.zeros(T.shape[1])
    strength = chosen.moves[max(len(changes) - 1, 0)].strength if chosen.moves else None
    if parts is not None:
        back, intercept = _sums(parts, Z, w, strength)
    completion = Completion(
        chosen.offset, chosen.scale, observed_mean(T, w), back, intercept, Z[picked], w[picked],
        chosen.trust if back is not None else np.zeros_like(intercept), max_iter, tol,
    )  # fmt: skip
    status = _status(changes, completion, bool(np.isnan(X).any()), tol, max_iter)
    kernel = None if settings is None else settings.kernel
    points = completion(X)
    return Imputed(
        points,
        len(changes),
        np.array(changes),
        status,
        kernel,
        strength,
        chosen.expected,
        completion,
    )


def _sums(parts: Components, Z: Array, w: Array, strength: float | None) -> tuple[Element, Array]:
    """The regression of completed rows on their filtered coordinates, as sums of kernels."""
    inverse = LinearInverse.fit(parts.plane, Z, w)
    slopes = parts.weights(strength)[:, None] * inverse.slopes
    plane = parts.plane
    at_origin = np.asarray(plane.directions.inner(plane.origin), dtype=np.float64).ravel()
    return plane.directions.combine(slopes), inverse.mean - at_origin @ slopes


def _status(
    changes: list[float], completion: Completion, missing: bool, tol: float, max_iter: int
) -> Status:
    if not missing:
        return Status.COMPLETE
    if not completion.trust.any():
        return Status.TOO_FEW
    if changes and changes[-1] <= tol:
        return Status.CONVERGED
    return Status.MAX_ITER if len(changes) == max_iter else Status.CHOSEN


def incomplete(X: Any) -> Array:
    """Return X as a float matrix in which NaN is allowed, and infinity is not."""
    if is_sparse(X):
        raise InputError(
            "X is sparse, where a missing entry cannot be told from 0; use X.toarray()"
        )
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("X is a masked array; use X.filled(np.nan)")
    array = np.asarray(X)
    kind = array.dtype if array.dtype == np.float32 else np.dtype(np.float64)
    try:
        array = array.astype(kind, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers, and NaN where missing: {error}") from error
    as_points(np.where(np.isnan(array), kind.type(0.0), array))
    return array
