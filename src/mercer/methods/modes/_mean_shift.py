"""Mean shift: from every start uphill to a mode of a kernel density."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array, as_points, frozen, is_sparse, positive, positive_int
from mercer._progress import Callback
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.methods.modes._ascent import Ascent, Ends
from mercer.methods.modes._basins import is_proved_maximum
from mercer.methods.modes._density_sum import DensitySum, is_held
from mercer.methods.modes._leaving import SAME
from mercer.methods.modes._merging import merge_ends


@dataclass(frozen=True, eq=False)
class Modes:
    """The modes that mean shift reached, the most frequented first, and who reached them.

    Attributes
    ----------
    points : array of shape (k, d)
    density : array of shape (k,)
    eigenvalues : array of shape (k, d)
        Of the Hessian, ascending; -inf at data points where the density has a cusp.
    counts : array of shape (k,)
        The number of starts that ended there.
    proved : array of bool, shape (k,)
        Whether the point is proved to be a strict local maximum: by a ball on which the Hessian is
        negative definite, or at a cusp that holds against the pull of all other points.
    labels : array of int, shape (m,)
        The mode of each start; -1 where it reached none.
    status : array of Status, shape (m,)
    n_iter : array of int, shape (m,)
        Steps of mean shift from each start.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [6.0]]))
    >>> found.points.round(4), found.counts
    (array([[0.5],
           [6. ]]), array([2, 1]))
    """

    points: Array
    density: Array
    eigenvalues: Array
    counts: Array
    proved: Array
    labels: Array = field(repr=False)
    status: Array = field(repr=False)
    n_iter: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.points)

    def table(self) -> dict[str, Array]:
        """One column for each property of the modes, as `pandas.DataFrame(found.table())` likes it.

        Coordinates are x0, x1, ...; `curvature` is the eigenvalue nearest to zero.
        """
        columns = {f"x{j}": self.points[:, j] for j in range(self.points.shape[1])}
        return columns | {
            "density": self.density,
            "starts": self.counts,
            "curvature": self.eigenvalues.max(axis=1, initial=-np.inf),
            "proved": self.proved,
        }


def mean_shift(
    density: Any,
    start: Any = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Modes:
    """Climb from every start to a mode of f = sum_i a_i k(x_i, .), a_i >= 0.

    Each step goes to the mean of the points, weighed by w_i = -2 a_i k'(|x_i - x|^2); it is the
    fixed point of the pre-image problem, and with a convex profile f never falls. At a data point
    where the kernel has a cusp the step is that of Vardi and Zhang.

    A start is done as soon as it lies where only one mode can be reached: in a ball about a mode
    that is proved to hold no other critical point, above the density on its sphere. A step never
    leaves its component of a superlevel set, so this is the mode that the iteration itself would
    converge to, only sooner. Elsewhere it goes on until a step is shorter than `tol`. Sums have an
    error of at most 1e-8 of their largest possible value; in up to three dimensions those of a
    Gaussian go by frequencies (`mercer.options(engine=...)`).

    Parameters
    ----------
    density : Element or Density
        One element with coefficients >= 0 and a kernel of one squared distance with a convex,
        decreasing profile: every radial kernel of mercer but `Uniform`, whose mean shift is that of
        `Epanechnikov`. Linear maps in the kernel must be invertible.
    start : array_like of shape (m, d), optional
        By default the points of the density.
    tol : float, default=1e-6
        Of the length scale (where the profile at zero would fall to zero if it went on as a
        parabola; for cusps as a line).
    max_iter : int, default=1000
    callback : callable, optional
        Called with a `Step` after each iteration; stops by returning True.

    Returns
    -------
    Modes

    See Also
    --------
    MeanShift : clusters by modes, as a scikit-learn estimator.
    preimage : for coefficients of both signs and all other kernels.

    References
    ----------
    SPEC F2, F4, F5, D1, D6. D. Comaniciu and P. Meer, Mean shift: a robust approach toward feature
    space analysis, 2002. Y. Vardi and C.-H. Zhang, The multivariate L1-median and associated data
    depth, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3.0, 1.0, (50, 2)), rng.normal(3.0, 1.0, (50, 2))])
    >>> found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.5), X))
    >>> len(found), found.proved, bool((found.labels[:50] == found.labels[0]).all())
    (2, array([ True,  True]), True)
    """
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    target = DensitySum.of(density)
    Z = (
        np.concatenate(target.points)
        if start is None
        else target.forth(_checked_start(start, target))
    )
    target = replace(target, n_queries=len(Z))
    ascent = Ascent(target, tol, max_iter)
    ends = ascent.run(Z, callback)
    modes, labels = ascent.modes_of(ends)
    return _described(target, modes, labels, ends)


def nearest_modes(
    density: Any, modes: Array, start: Array, *, tol: float = 1e-6, max_iter: int = 1000
) -> Array:
    """Return for each start the number of the mode that mean shift reaches, -1 for none of them.

    Parameters
    ----------
    density : Element or Density
    modes : array of shape (k, d)
        From `mean_shift` on the same density.
    start : array of shape (m, d)
    tol, max_iter
        As for `mean_shift`.
    """
    if not len(modes):
        return np.full(len(start), -1)
    target = DensitySum.of(density, len(start))
    Z, known = target.forth(start), target.forth(modes)
    ascent = Ascent(target, tol, max_iter)
    found, labels = ascent.modes_of(ascent.run(Z))
    return np.append(_numbers(target, known, found), -1)[labels]


def _numbers(target: DensitySum, known: Array, found: Array) -> Array:
    """Which of the known modes each mode is, -1 for none of them."""
    from scipy.spatial import cKDTree

    distance, number = cKDTree(known).query(found)
    # known modes may have been rounded to float32
    same = distance <= SAME * target.length + 1e-6 * float(np.abs(known).max())
    number[~same] = merge_ends(target, known, found[~same])[0]
    number[number >= len(known)] = -1
    return np.asarray(number)


def _described(target: DensitySum, modes: Array, labels: Array, ends: Ends) -> Modes:
    """Modes that starts reached, with density and curvature, in the coordinates of the data."""
    counts = np.bincount(labels[labels >= 0], minlength=len(modes))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    rank = np.full(len(modes) + 1, -1)  # one more: -1 stays -1
    rank[order] = np.arange(len(order))
    modes, d = modes[order], target.dim
    value, eigenvalues = np.empty(len(modes)), np.empty((len(modes), d))
    for rows in pieces(len(modes), target.hessian_rows):
        here = target.at(modes[rows], 2, exact=True)
        scale = np.exp(here.shift + target.log_unit)
        value[rows] = -here.value * scale
        H = target.pulled(np.nan_to_num(-here.hessian) * scale[:, None, None])
        eigenvalues[rows] = np.linalg.eigvalsh(H)
        eigenvalues[rows][is_held(here)] = -np.inf
    proved = is_proved_maximum(target, modes)
    parts = (target.back(modes), value, eigenvalues, counts[order], proved, rank[labels])
    return Modes(*(frozen(a) for a in (*parts, ends.status, ends.n_iter)))


def _checked_start(start: Any, target: DensitySum) -> Array:
    X = as_points(start, "start")
    if is_sparse(X):
        raise InputError("start must be dense; use start.toarray()")
    if X.shape[1] != target.dim:
        raise InputError(f"start must have {target.dim} columns, got {X.shape[1]}")
    return np.asarray(X, dtype=np.float64)


__all__ = ["Modes", "mean_shift"]
