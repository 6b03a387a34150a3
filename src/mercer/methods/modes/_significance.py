"""Significant modes: the modes of a density that are not due to chance, and their clusters.

A kernel density of any sample has modes by chance. Here a mode counts only if the density there is
significantly higher than at the saddle over which it joins a higher mode. Rows are clustered on a
graph of nearest neighbours: each goes to its highest neighbour until it reaches a mode, and
modes that are not significant are joined to the mode across their saddle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, as_dense_points, frozen, header
from mercer._frames import Framed, Header
from mercer._progress import Callback, check_callback, report
from mercer.engine import Dense, prepare
from mercer.kernels import Gaussian
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import followed, nearest, renumbered, spread_rows
from mercer.methods.density._bandwidth import check_counts, column_spreads, normal_scale
from mercer.methods.modes._row_graph import bridged, join_tree, neighbour_edges, row_basins

_FACTORS = (1.0, 0.7, 0.5, 0.35, 0.25)  # of Silverman's bandwidth: those that are tried
_VIEWS = (10, 5, 2)  # principal components, if there are more columns
_MOST_ROWS = 20_000  # that are used; the others get the label of the nearest of them
_ROUNDING = 8  # digits of a mean of kernel values; sums are good to 1e-9
_LEAST = 2.5  # critical t: that of six rows far from all others
_FLAT = 1e-9  # of the largest deviation: a component with less is rounding
_ROUNDED = 1e-15  # of the distance from the origin, the same
_FULL = 500  # rows or columns up to which all singular vectors are computed


@dataclass(frozen=True, eq=False)
class SignificantModes(Framed):
    """Clusters of rows about the significant modes of their density.

    Attributes
    ----------
    labels : array of int, shape (n,)
        The cluster of each row.
    points : array of shape (k, d)
        The row with the highest density in each cluster.
    significance : array of shape (k,)
        t of the mode of each cluster. The highest mode is joined to no other, so it is not tested,
        and its t is infinite.
    critical : float
        The t from which a mode is significant.
    components : array of shape (q, d)
        Rows were clustered in the coordinates Z = X @ components.T: principal components, scaled to
        the spread of the first.
    bandwidth : float
        The length scale of the Gaussian in these coordinates.
    header : Header or None
        The names of the columns, if the rows were given as a frame; see `to_frame`.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> print(mc.methods.significant_modes(X).message)
    no clusters: no second mode has t >= 2.50
    """

    labels: Array = field(repr=False)
    points: Array
    significance: Array
    critical: float
    components: Array = field(repr=False)
    bandwidth: float
    header: Header | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def message(self) -> str:
        """What was found, in one sentence."""
        if len(self) == 1:
            return f"no clusters: no second mode has t >= {self.critical:.2f}"
        return f"{len(self)} clusters: each mode has t >= {self.critical:.2f}"


def significant_modes(
    X: Any, *, weights: Any = None, callback: Callback | None = None
) -> SignificantModes:
    """Cluster rows around the statistically significant modes of a Gaussian density.

    A mode m is joined to a higher one over a saddle s. It is significant if

        t = mean_i(k(x_i, m) - k(x_i, s)) / (standard deviation / sqrt(n))

    is at least sqrt(2 log(n) / q), and at least 2.5, on q components. This is done for Silverman's
    bandwidth times 1, 0.7, 0.5, 0.35 and 0.25, on all principal components (the 10 leading ones if
    there are more), and on the 5 and 2 leading ones, all scaled to the same spread, so that every
    normal cloud is round. The bandwidth and components with the most significant modes are taken;
    among equals those with the fewest other modes, then the most components, then the largest
    bandwidth.

    Clusters do not change with the order of rows, nor if all columns are shifted or multiplied by
    one number. They may change if columns are scaled one by one.

    Parameters
    ----------
    X : array_like of shape (n, d)
        If it has more than 20,000 distinct rows, only that many are used, evenly spaced in
        lexicographic order, and the others get the label of the nearest of them.
    weights : array_like of shape (n,), optional
        Numbers of rows >= 0: a weight of 2 is the same as repeating the row.
    callback : callable, optional
        Called with a `Step` after each bandwidth; return True to take the best one so far.

    Returns
    -------
    SignificantModes

    See Also
    --------
    MeanShift : an estimator whose default this is.
    scale_space : the number of modes at every bandwidth, significant or not.

    Notes
    -----
    t compares a mode and a saddle that were both chosen from the data, and is the largest of many,
    so it is not normally distributed. The critical value comes from simulation: of normal clouds,
    round or long (deviations from 1 to 0.1), and of uniform ones, at least 95 % are one cluster
    (`python -m benchmarks clustering`: n from 200 to 5,000, d from 1 to 20). sqrt(2 log n) is about
    the largest of n standard normal numbers; t of m rows far from all others is about sqrt(m), so
    that about eight are needed for a cluster.

    References
    ----------
    F. Chazal, L. J. Guibas, S. Y. Oudot, P. Skraba, Persistence-based clustering in Riemannian
    manifolds, Journal of the ACM 60, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0.0, 1.0, (60, 2)), rng.normal(6.0, 1.0, (40, 2))])
    >>> found = mc.methods.significant_modes(X)
    >>> found.message, np.bincount(found.labels)
    ('2 clusters: each mode has t >= 2.50', array([60, 40]))
    """
    names, X = header(X), as_dense_points(X)
    check_callback(callback)
    rows, w = spread_rows(X, raw_weights(weights, len(X)), _MOST_ROWS)
    if len(rows) == 1:
        return replace(_one_mode(len(X), rows), header=names)
    check_counts(w)
    middle = np.median(rows, axis=0)  # not the mean: an outlier would take digits from all rows
    unit = float(column_spreads(rows, w).max())  # squares of very small lengths underflow
    C = (rows - middle) / unit
    axes = _principal_axes(C, w, float(np.abs(middle).max()) / unit)
    views = sorted({min(q, len(axes)) for q in _VIEWS}, reverse=True)
    tries = (one for q in views for one in _at_bandwidths(C, w, axes[:q]))
    found, total = next(tries), len(views) * len(_FACTORS)
    for i, other in enumerate(tries, start=2):
        if (len(other.modes), -other.n_tops) > (len(found.modes), -found.n_tops):
            found = other
        if report("significant modes", i, 1.0 - i / total, total=total, callback=callback):
            break
    A = found.axes
    own = nearest(C @ A.T, ((X - middle) / unit) @ A.T)[1]
    return SignificantModes(
        frozen(found.labels[own]),
        frozen(rows[found.modes]),
        frozen(found.t),
        _critical(float(w.sum()), len(A)),
        frozen(A),
        found.bandwidth * unit,
        names,
    )


class _Found(NamedTuple):
    """Significant modes at one bandwidth: labels of rows, rows that are modes, and their t.

    `n_tops` is the number of all modes, significant or not.
    """

    axes: Array
    labels: Array
    modes: Array
    t: Array
    bandwidth: float
    n_tops: int


def _critical(n: float, q: int) -> float:
    return max(_LEAST, math.sqrt(2.0 * math.log(n) / q))


def _one_mode(n: int, rows: Array) -> SignificantModes:
    """Of n equal rows."""
    labels, t = frozen(np.zeros(n, dtype=np.intp)), frozen(np.array([np.inf]))
    axes = frozen(np.eye(*rows.shape))
    return SignificantModes(labels, frozen(rows), t, _LEAST, axes, 1.0)


def _principal_axes(C: Array, w: Array, far: float) -> Array:
    """Leading principal axes of rows along which they differ, shape (r, d).

    They are scaled so that the spreads of rows along all of them are equal, and every normal cloud
    is round. `far` is the distance of rows from the origin, whose rounding looks like a component.
    """
    A = (C - (w @ C) / w.sum()) * np.sqrt(w / w.sum())[:, None]
    most = max(_VIEWS)
    if min(A.shape) > _FULL:
        from scipy.sparse.linalg import svds

        start = np.random.default_rng(0).normal(size=min(A.shape))
        _, size, axes = svds(A, most, v0=start, return_singular_vectors="vh")
    else:
        _, size, axes = np.linalg.svd(A, full_matrices=False)
    order = np.argsort(-size)[:most]
    least = max(_FLAT * size.max(), _ROUNDED * far)
    axes = axes[order[(size[order] > least) | (order == order[0])]]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = axes * np.sign(largest)  # or their signs would depend on rounding
    spreads = column_spreads(C @ axes.T, w)
    return np.asarray(axes * (spreads[0] / spreads)[:, None])


def _at_bandwidths(C: Array, w: Array, axes: Array) -> Iterator[_Found]:
    """The significant modes of rows along some axes at each bandwidth, the largest first."""
    Z, q = C @ axes.T, len(axes)
    edges = neighbour_edges(Z)
    bridges = bridged(Z, edges)
    silverman = normal_scale(Z, w, "silverman")
    for factor in _FACTORS:
        h = factor * silverman
        f = np.round(_means(Z, w, h, Z), _ROUNDING)
        modes, basin = row_basins(Z, f, edges, h)
        tree = join_tree(Z, f, modes, basin, bridges, partial(_means, Z, w, h))
        t = np.full(len(modes), np.inf)
        t[tree.child] = _t(Z, w, Z[modes[tree.child]], tree.saddle, h)
        real = t >= _critical(float(w.sum()), q)
        into = np.arange(len(modes))
        into[tree.child] = np.where(real[tree.child], tree.child, tree.parent)
        number = followed(into)[basin]
        mass = np.bincount(number, w, len(modes))
        order = np.flatnonzero(real)
        order = order[np.argsort(-mass[order], kind="stable")]
        labels = renumbered(number, order, len(modes))
        yield _Found(axes, labels, modes[order], t[order], h, len(modes))


def _t(Z: Array, w: Array, M: Array, S: Array, h: float) -> Array:
    """t of the difference in density between modes M and saddles S.

    k(x, m) k(x, s) = exp(-|m - s|^2 / 4 h^2) k'(x, (m + s) / 2), with k' of length h / sqrt(2).
    """
    if not len(M):
        return np.empty(0)
    n, m = float(w.sum()), len(M)
    f = _means(Z, w, h, np.concatenate([M, S]), exact=True)
    g = _means(Z, w, h / math.sqrt(2.0), np.concatenate([M, S, 0.5 * (M + S)]), exact=True)
    cross = np.exp(-np.sum((M - S) ** 2, axis=1) / (4.0 * h * h)) * g[2 * m :]
    mean = f[:m] - f[m:]
    variance = g[:m] + g[m : 2 * m] - 2.0 * cross - mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean > 0.0, mean * np.sqrt(n / np.maximum(variance, 0.0)), 0.0)


def _means(Z: Array, w: Array, h: float, Q: Array, *, exact: bool = False) -> Array:
    """The mean of k(x_i, q) over rows, k Gaussian with length scale h, for each row q of Q."""
    coef = Dense((w / w.sum())[:, None])
    total = prepare(Gaussian(h).program, Z, coef, n_queries=len(Q), tolerance=1e-9)
    return np.asarray(total.fields(Q, exact=exact).only_element().value)
