"""Mean shift: from every start uphill to a mode of a kernel density."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array, as_points, frozen, is_sparse, positive, positive_int
from mercer._progress import Callback
from mercer.exceptions import InputError
from mercer.methods.modes._ascent import Climber, ClimbStatus
from mercer.methods.modes._density_ascent import Climbed


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
    status : array of ClimbStatus, shape (m,)
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
    starts: Any = None,
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
    starts : array_like of shape (m, d), optional
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
    target = Climbed.of(density)
    Z = np.concatenate(target.points) if starts is None else target.forth(_starts(starts, target))
    target = replace(target, n_queries=len(Z))
    found = Climber(target, tol, max_iter, callback).run(Z)
    return described(target, found.modes, found.proved, found.labels, found.status, found.n_iter)


def described(
    target: Climbed, modes: Array, proved: Array, labels: Array, status: Array, n_iter: Array
) -> Modes:
    """The modes with density and curvature at each, in the coordinates of the data."""
    counts = np.bincount(labels[labels >= 0], minlength=len(modes))
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    labels = np.where(labels >= 0, rank[labels] if len(rank) else -1, -1)
    modes, proved, counts = modes[order], proved[order], counts[order]
    value, eigenvalues = np.empty(0), np.empty((0, target.dim))
    if len(modes):
        here = target.at(modes, 2, exact=True)
        assert here.hessian is not None
        scale = np.exp(here.shift + target.log_unit)
        value = here.value * scale
        H = target.pulled(here.hessian * scale[:, None, None])
        eigenvalues = np.linalg.eigvalsh(H)
        eigenvalues[here.at_cusp] = -np.inf
    arrays = (target.back(modes), value, eigenvalues, counts, proved, labels, status, n_iter)
    return Modes(*(frozen(a) for a in arrays))


def _starts(starts: Any, target: Climbed) -> Array:
    X = as_points(starts, "starts")
    if is_sparse(X):
        raise InputError("starts must be dense; use starts.toarray()")
    if X.shape[1] != target.dim:
        raise InputError(f"starts must have {target.dim} columns, got {X.shape[1]}")
    return np.asarray(X, dtype=np.float64)


__all__ = ["ClimbStatus", "Modes", "mean_shift"]
