"""Blurring mean shift: the data points themselves move, and weights are those of moved points."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array, frozen, non_negative, one_of, positive, positive_int
from mercer._frames import Framed, Header
from mercer._progress import Callback, check_callback, report
from mercer.engine import Program, by_row, profile_at
from mercer.kernels import Kernel
from mercer.methods._rows import connected, renumbered, row_squares
from mercer.methods.density._density import weights_of
from mercer.methods.modes._density_sum import DensitySum
from mercer.space import mean_embedding
from mercer.space._points import checked_points, unique

_JOINED = 1e-3  # of the kernel's length: points closer than this are one
_SLOW = 1e-2  # of the kernel's length: the largest step of groups that have contracted


@dataclass(frozen=True, eq=False)
class Blurred(Framed):
    """The points and clusters at the end of blurring mean shift.

    Attributes
    ----------
    points : array of shape (n, d)
    labels : array of int, shape (n,)
        Groups of points that have become one; group 0 is the largest.
    n_iter : int
    converged : bool
        Whether the last step was shorter than the tolerance for every point, or all groups had
        contracted to points and hardly moved.
    header : Header or None
        The names of the columns, if the points were given as a frame; see `to_frame`.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.blurring_mean_shift(mc.Gaussian(1.0), [[0.0], [0.5], [9.0]]).converged
    True
    """

    points: Array = field(repr=False)
    labels: Array = field(repr=False)
    n_iter: int
    converged: bool
    header: Header | None = None


def blurring_mean_shift(
    kernel: Kernel,
    X: Any,
    *,
    weights: Any = None,
    own: str = "limit",
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 300,
    callback: Callback | None = None,
) -> Blurred:
    """Blurring mean shift: repeatedly move every point to a weighted mean of all points.

        x_i <- sum_j W_ij x_j / sum_j W_ij,   W_ij = -a_j k'(|x_i - x_j|^2)

    The weights are those of the moved points. With a smooth kernel, groups of points contract to
    single points within a few steps.

    Parameters
    ----------
    kernel : Kernel
        Of one squared distance, with a convex, decreasing profile.
    X : array_like of shape (n, d)
    weights : array_like of shape (n,), optional
        The a_j >= 0.
    own : {"limit", "exclude", "eps"}
        The weight W_ii of a point for itself. "limit" is the formula; with a cusp, where k'(0) is
        infinite, no point ever moves. "exclude" sets it to zero: two points alone then swap places
        forever. "eps" replaces distances below `eps` kernel lengths by that; the result depends on
        it.
    eps : float, default=1e-3
    tol : float, default=1e-6
        In kernel lengths. Stops when no point moves farther, or when every group has contracted to
        this size and moves by less than a hundredth of a length.
    max_iter : int, default=300
    callback : callable, optional
        Called with a `Step` after each iteration; stops by returning True.

    Returns
    -------
    Blurred

    References
    ----------
    Y. Cheng, Mean shift, mode seeking, and clustering, 1995. S. Pal and P. Vepakomma, Convergence
    of mean shift algorithms for large bandwidths, 2025, section 8 (for the Laplace kernel, whose
    own weight is infinite; the paper does not say what it is replaced by).

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.methods.blurring_mean_shift(mc.Gaussian(1.0), [[0.0], [1.0], [6.0], [6.5]])
    >>> found.points.round(4).ravel(), found.labels
    (array([0.5 , 0.5 , 6.25, 6.25]), array([0, 0, 1, 1]))
    """
    one_of(own, ("limit", "exclude", "eps"), "own")
    check_callback(callback)
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    non_negative(eps, "eps")
    mean = mean_embedding(kernel, checked_points(kernel, X, tensors=False), weights=weights)
    target, a = DensitySum.of(mean), weights_of(mean)
    Z = target.forth(np.asarray(mean.points, dtype=np.float64))
    length = target.length
    n_iter, converged = 0, False
    for n_iter in range(1, max_iter + 1):
        new = _blurred(target, Z, a, own, eps * length)
        moved = float(np.linalg.norm(new - Z, axis=1).max())
        Z = new
        converged = moved <= tol * length
        if not converged and moved <= _SLOW * length:
            # Groups have become points if no two points are between the two distances apart. From
            # then on they only attract each other across the gaps, which takes very long.
            small, large = (groups(Z, share * length) for share in (tol, _SLOW))
            converged = bool(small.max() == large.max())
        if converged or report("blurring", n_iter, moved / length, callback=callback):
            break
    labels = groups(Z, _JOINED * length)
    return Blurred(frozen(target.back(Z)), frozen(labels), n_iter, converged, mean.header)


def _blurred(target: DensitySum, Z: Array, a: Array, own: str, eps: float) -> Array:
    (group,) = target.groups
    f, _ = replace(target, groups=(group._replace(points=Z, coef=a),)).fields(Z, exact=True)
    sums: Any = f.gradient, -2.0 * f.slopes[0]
    gradient, weight = (by_row(part, np.exp(f.shift)) for part in sums)
    at_zero = float(_weight(group.program, np.zeros(1))[0])
    if own == "eps":
        gradient, weight = _floored(group.program, Z, a, eps, gradient, weight)
    elif own == "exclude":
        weight -= a * (at_zero if np.isfinite(at_zero) else 0.0)  # at a cusp it is left out anyway
    elif not np.isfinite(at_zero):
        return Z
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(weight[:, None] > 0.0, gradient / weight[:, None], 0.0)
    return np.asarray(Z + step)


def _floored(
    program: Program, Z: Array, a: Array, eps: float, gradient: Array, weight: Array
) -> tuple[Array, Array]:
    """Correct the sums for pairs closer than eps, which get the weight of that distance."""
    from scipy.spatial import cKDTree

    pairs, own = cKDTree(Z).query_pairs(eps, output_type="ndarray").T, np.arange(len(Z))
    i, j = np.hstack([pairs, pairs[::-1], [own, own]])
    gap = Z[j] - Z[i]
    there = _weight(program, row_squares(gap))
    counted = np.where(np.isfinite(there), there, 0.0)  # the sums leave out equal points at a cusp
    change = a[j] * (_weight(program, np.array([eps**2])) - counted)
    np.add.at(weight, i, change)
    np.add.at(gradient, i, change[:, None] * gap)
    return gradient, weight


def _weight(program: Program, u: Array) -> Array:
    """-2 k'(u)."""
    return -2.0 * profile_at(program.profile, u, 1)[1]


def groups(Z: Array, distance: float) -> Array:
    """Connected groups of points closer than a distance; group 0 is the largest."""
    from scipy.spatial import cKDTree

    distance = max(distance, 1e-12 * float(np.abs(Z).max()), 1e-300)
    cells, first = unique(np.round(Z / distance))  # collapsed groups would have n^2 pairs
    pairs = cKDTree(cells).query_pairs(np.sqrt(Z.shape[1]) + 1e-9, output_type="ndarray")
    labels = connected(pairs[:, 0], pairs[:, 1], len(cells))[first]
    order = np.argsort(-np.bincount(labels), kind="stable")
    return renumbered(labels, order, len(order))
