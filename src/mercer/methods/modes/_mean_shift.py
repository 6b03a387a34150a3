"""Mean shift: climb from every start to a mode of a kernel density."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_dense_points,
    check_flag,
    frozen,
    header,
    positive,
    positive_int,
)
from mercer._frames import Framed, Header, check_same_header, named_columns
from mercer._progress import Callback, check_callback, report
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.methods._rows import nearest, renumbered
from mercer.methods.modes._ascent import Ascent, Ends
from mercer.methods.modes._basins import is_proved_maximum
from mercer.methods.modes._density_sum import DensitySum, is_held
from mercer.methods.modes._merging import merge_ends
from mercer.methods.modes._short_steps import SAME


@dataclass(frozen=True, eq=False)
class Modes(Framed):
    """The modes that mean shift reached, and the mode of each start.

    Attributes
    ----------
    points : array of shape (k, d)
        The mode that most starts reach comes first.
    density : array of shape (k,)
    eigenvalues : array of shape (k, d)
        Of the Hessian, ascending; -inf at data points where the density has a cusp. NaN where they
        were not computed, as in many columns.
    n_starts : array of shape (k,)
        The number of starts that reach each mode.
    proved : array of bool, shape (k,)
        Whether a strict local maximum is proved to lie within 1e-4 kernel lengths of the point,
        rounding included: by a ball on which the Hessian is negative definite, or by a cusp that
        outweighs all other points. False also if a proof would take too long, and in many columns.
    labels : array of int, shape (m,)
        The mode of each start; -1 if it reached none.
    status : array of Status, shape (m,)
        How each ascent ended. `IN_BASIN` labels are checked; with `CONVERGED` and `AT_POINT` the
        steps became short (see `mean_shift`).
    n_iter : array of int, shape (m,)
        Steps of mean shift from each start.
    header : Header or None
        The names of the columns, if the points of the density were given as a frame; `to_frame`
        gives the modes as such a frame.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [6.0]]))
    >>> found.points.round(4), found.n_starts
    (array([[0.5],
           [6. ]]), array([2, 1]))
    """

    points: Array
    density: Array
    eigenvalues: Array
    n_starts: Array
    proved: Array
    labels: Array = field(repr=False)
    status: Array = field(repr=False)
    n_iter: Array = field(repr=False)
    header: Header | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.points)

    def table(self) -> dict[str, Array]:
        """Columns for a data frame: `pandas.DataFrame(found.table())`.

        Coordinates have the names of the data, or x0, x1, ...; `curvature` is the eigenvalue
        nearest to zero.
        """
        found: dict[str, Array] = {
            "density": self.density,
            "starts": self.n_starts,
            "curvature": self.eigenvalues.max(axis=1, initial=-np.inf),
            "proved": self.proved,
        }
        return named_columns(self.points, self.header, found)


def mean_shift(
    density: Any,
    start: Any = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    eigenvalues: bool | None = None,
    callback: Callback | None = None,
) -> Modes:
    """Climb from every start to a mode of f = sum_i a_i k(x_i, .), a_i >= 0.

    Each step goes to the mean of the points with weights w_i = -2 a_i k'(|x_i - x|^2). With a
    convex profile, f never falls along a step. At a data point where the kernel has a cusp the step
    is that of Vardi and Zhang.

    An ascent ends early inside a basin: a ball about a mode that holds no other critical point,
    where f is higher than on the sphere, so that the iteration would converge to that mode. Basins
    are checked, not proved: the sums behind them have a margin for their error. Elsewhere an ascent
    continues until its steps are shorter than `tol`. Near saddles, on ridges and near cusps, where
    steps are short too, it takes longer ones in the same direction, as long as f rises. In more
    than 20 columns there are neither basins nor tests for saddles.

    Sums have an error of at most 1e-8 of their largest possible value. In up to three dimensions
    those of a Gaussian are computed in the frequency domain (`mercer.options(engine=...)`).

    Parameters
    ----------
    density : Element or Density
        One element with coefficients >= 0 and a kernel of one squared distance with a convex,
        decreasing profile: every radial kernel of mercer but `Uniform`, whose mean shift is that of
        `Epanechnikov`. Linear maps in the kernel must be invertible.
    start : array_like of shape (m, d), optional
        By default the points of the density, which then must be in memory; with `start` they may
        come in pieces (Dask).
    tol : float, default=1e-6
        In lengths of the kernel: sqrt(-k(0) / 2 k'(0)), which is the length scale of a Gaussian;
        with a cusp, k(0) over its slope.
    max_iter : int, default=1000
    eigenvalues : bool, optional
        Whether to compute the eigenvalues of the Hessian at each mode, and to prove modes. By
        default in up to 20 columns.
    callback : callable, optional
        Called with a `Step` before each iteration; return True to stop.

    Returns
    -------
    Modes

    See Also
    --------
    MeanShift : clusters by modes, as a scikit-learn estimator.
    preimage : for coefficients of both signs and all other kernels.

    References
    ----------
    D. Comaniciu and P. Meer, Mean shift: a robust approach toward feature
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
    check_callback(callback)
    check_flag(eigenvalues, "eigenvalues", optional=True)
    target = DensitySum.of(density)
    names = getattr(density, "elements", (density,))[0].header
    if start is None:
        Z = target.points
    else:
        check_same_header(names, header(start), ("the density", "start"))
        start = as_dense_points(start, "start")
        if start.shape[1] != target.dim:
            raise InputError(
                f"the density has {target.dim} features, but start has {start.shape[1]}"
            )
        Z = target.forth(start)
    target = replace(target, n_queries=len(Z))
    ascent = Ascent(target, tol, max_iter)
    ends = ascent.run(Z, callback)
    report("merging")
    modes, labels = ascent.modes_of(ends)
    return replace(_described(target, modes, labels, ends, eigenvalues), header=names)


def assign_to_modes(
    density: Any, modes: Array, start: Array, *, tol: float = 1e-6, max_iter: int = 1000
) -> Array:
    """Return the number of the mode that mean shift reaches from each start, -1 for none of them.

    The modes, `tol` and `max_iter` are those of `mean_shift` on the same density.
    """
    if not len(modes):
        return np.full(len(start), -1)
    target = DensitySum.of(density, len(start))
    Z, known = target.forth(start), target.forth(modes)
    ascent = Ascent(target, tol, max_iter)
    ends = ascent.run(Z)
    if not target.has_few_columns:  # without basins: one comparison instead of two
        labels, arrived = np.full(len(Z), -1), ends.loose
        labels[arrived] = merge_ends(target, known, ends.points[arrived])[0]
        return np.where(labels < len(known), labels, -1)
    found, labels = ascent.modes_of(ends)
    return np.append(_numbers(target, known, found), -1)[labels]


def _numbers(target: DensitySum, known: Array, found: Array) -> Array:
    """The number of each mode among the known ones, -1 if it is none of them."""
    distance, number = nearest(known, found)
    # known modes may have been rounded to float32
    same = distance <= SAME * target.length + 1e-6 * float(np.abs(known).max())
    number[~same] = merge_ends(target, known, found[~same])[0]
    number[number >= len(known)] = -1
    return np.asarray(number)


def _described(
    target: DensitySum, modes: Array, labels: Array, ends: Ends, curvature: bool | None
) -> Modes:
    """The modes that starts reached, with density and curvature, in data coordinates."""
    counts = np.bincount(labels[labels >= 0], minlength=len(modes))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    labels = renumbered(labels, order, len(modes))
    modes = modes[order]
    value = target.values(modes, exact=True) * np.exp(target.log_unit)
    eigenvalues, proved = np.full(modes.shape, np.nan), np.zeros(len(modes), dtype=bool)
    if target.has_few_columns if curvature is None else curvature:
        report("curvature")
        eigenvalues, proved = _eigenvalues(target, modes), is_proved_maximum(target, modes)
    parts = (target.back(modes), value, eigenvalues, counts[order], proved, labels)
    columns: Any = (frozen(a) for a in (*parts, ends.status, ends.n_iter))
    return Modes(*columns)


def _eigenvalues(target: DensitySum, modes: Array) -> Array:
    """Of the Hessian in data coordinates."""
    found = np.empty((len(modes), target.dim))
    for rows in pieces(len(modes), target.hessian_rows):
        here = target.at(modes[rows], 2, exact=True)
        scale = np.exp(here.shift + target.log_unit)[:, None, None]
        found[rows] = np.linalg.eigvalsh(target.pulled(np.nan_to_num(-here.hessian) * scale))
        found[rows][is_held(here)] = -np.inf
    return found
