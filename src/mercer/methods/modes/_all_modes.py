"""Every mode of a positive kernel sum in one or two dimensions, with proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array, frozen, instance, non_negative, positive, positive_int
from mercer._frames import Framed, Header
from mercer.engine import Distance, Expr, dense, profile_at
from mercer.engine.programs._expr import Cut, Opaque
from mercer.exceptions import InputError
from mercer.rigor import FoundModes, Interval, Terms, find_modes, negative_up_to, profile_ranges
from mercer.rigor._suprema import nodes
from mercer.space import Element

_MAX_DIM = 2
_UNDERFLOW = 1e-290  # values and slopes that may be nothing but the slack of underflow


@dataclass(frozen=True, eq=False)
class ProvedModes(Framed):
    """The local maxima of a positive combination, and whether these are all.

    Attributes
    ----------
    points : array of shape (m, d)
        Highest first.
    radius : array of shape (m,)
        Within this distance of each point there is exactly one mode: proved, rounding included. 0
        at a cusp, which is the mode itself.
    values : array of shape (m,)
    eigenvalues : array of shape (m, d)
        Of the Hessian, ascending: all negative, and -inf at a cusp.
    undecided : array of shape (c, 2, d)
        Lower and upper corners of boxes that may hold more modes.
    n_boxes : int
        The number of boxes that were examined.
    header : Header or None
        The names of the columns, if the points were given as a frame; see `to_frame`.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.methods.all_modes(mc.mean_embedding(mc.Gaussian(0.4), [[0.0], [1.0]]))
    >>> len(found), found.complete, sorted(found.points[:, 0].round(4).tolist())
    (2, True, [0.0601, 0.9399])
    """

    points: Array
    radius: Array
    values: Array
    eigenvalues: Array
    undecided: Array
    n_boxes: int
    header: Header | None = None

    @property
    def complete(self) -> bool:
        """Whether it is proved that there are no other modes above the level."""
        return len(self.undecided) == 0

    def __len__(self) -> int:
        return len(self.points)


def all_modes(
    psi: Element, *, level: float = 0.0, tol: float = 1e-10, max_boxes: int = 1_000_000
) -> ProvedModes:
    """Return every local maximum of psi = sum_i a_i k(x_i, .), a_i > 0, with proof, for d <= 2.

    All modes are in the convex hull of the points. The box that holds it is searched by branch and
    bound in interval arithmetic rounded outward. A box is dropped when psi stays below the level on
    it, when the gradient has no zero on it, when psi bends up in some direction everywhere on
    it, or when it is so far from all points that the trace of the Hessian is positive. A box on
    which the Hessian is negative definite and Newton's operator maps it into itself holds exactly
    one mode. All other boxes are cut in two. A point with a cusp (Laplace) is a mode where the
    gradient of the other terms is smaller than the slope of its own: |R| <= eta.

    Parameters
    ----------
    psi : Element
        A single element with coefficients >= 0, such as a density, of a positive decreasing profile
        of one squared distance without jumps or corners, other than at distance zero. The points
        must have one or two columns.
    level : float
        >= 0; modes below it are left out. (A mode whose value equals the level up to rounding may
        be kept or left out.)
    tol : float
        Boxes narrower than this fraction of the first one are not cut again: they are `undecided`.
        That happens where a mode is degenerate, as that of two equal Gaussians at distance 2 s.
    max_boxes : int
        The largest number of boxes to examine; those left are `undecided`.

    Returns
    -------
    ProvedModes

    See Also
    --------
    convergence_bandwidth : the bandwidth from which there is one mode, in any dimension.

    References
    ----------
    S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large bandwidths and
    simultaneous accurate clustering, 2025, Theorem 1 and Lemma 1. Y. Vardi and C.-H. Zhang, The
    multivariate L1-median and associated data depth, 2000 (cusps).

    Examples
    --------
    >>> import mercer as mc
    >>> X = [[0.0, 0.0], [4.0, 0.0], [2.0, 3.0]]
    >>> found = mc.methods.all_modes(mc.mean_embedding(mc.Gaussian(1.0), X))
    >>> len(found), found.complete
    (3, True)
    >>> len(mc.methods.all_modes(mc.mean_embedding(mc.Gaussian(2.5), X)))
    1
    """
    level, tol = non_negative(level, "level"), positive(tol, "tol")
    limit = positive_int(max_boxes, "max_boxes")
    _check_kernel(psi)
    terms = _terms(psi)
    if len(terms.coef) == 1:  # the profile falls with the distance from the only point
        return _result(psi, FoundModes(terms.points, np.zeros(1), [], 1), level)
    return _result(psi, find_modes(terms, level, tol, limit), level)


def _result(psi: Element, found: FoundModes, level: float) -> ProvedModes:
    d = found.points.shape[1]
    values, eigenvalues, order = np.empty(0), np.empty((0, d)), np.empty(0, dtype=int)
    if len(found.points):
        exact = Element(psi.kernel, dense(psi.points), psi.coef).fields(found.points, order=2)
        values, H = exact.value[:, 0], exact.hessian[:, 0]  # type: ignore[index]
        sharp = np.zeros(len(values)) != 0 if exact.cusp is None else exact.cusp[:, 0] != 0
        eigenvalues = np.linalg.eigvalsh(np.where(sharp[:, None, None], 0.0, H))
        eigenvalues[sharp] = -np.inf
        order = np.argsort(-values, kind="stable")
        order = order[values[order] >= level * (1 - 1e-12)]
    boxes = [np.stack(pair, axis=1) for pair in found.undecided]
    undecided = np.concatenate([np.empty((0, 2, d)), *boxes])
    parts = (found.points, found.radius, values, eigenvalues)
    points, radius, values, eigenvalues = (frozen(a[order]) for a in parts)
    counts = frozen(undecided), found.n_boxes
    return ProvedModes(points, radius, values, eigenvalues, *counts, psi.header)


def _check_kernel(psi: Element) -> None:
    kernel = instance(psi, Element, "psi").kernel
    program = kernel.program
    if psi.batch is not None:
        raise InputError(
            f"all_modes takes one element, got a batch of {psi.batch}; call it on psi[j]"
        )
    if len(program.variables) != 1 or not isinstance(program.variables[0], Distance):
        raise InputError(
            f"all_modes needs a kernel that is a profile of one squared distance, which {kernel!r} "
            "is not"
        )
    if not program.has_derivatives or any(isinstance(e, Opaque) for e in nodes(program.profile)):
        raise InputError(
            f"the profile of {kernel!r} could not be recorded or is behind a map that is not "
            "linear, so nothing can be proved about it; write it with arithmetic, exp, log, sqrt "
            "and powers"
        )
    if any(isinstance(e, Cut) for e in nodes(program.profile)):
        raise InputError(
            f"{kernel!r} is a window, cut off at a distance: its maxima may be plateaus, and its "
            "Hessian jumps; use a kernel that is positive everywhere, such as Gaussian"
        )
    if not _is_decreasing(program.profile):
        raise InputError(
            "all_modes needs a profile that is positive and decreases with the distance, which "
            f"that of {kernel!r} is not, or not provably"
        )


def _is_decreasing(profile: Expr) -> bool:
    """Prove that k > 0 and k' < 0 on (0, inf), up to underflow, in any unit."""
    edges = np.logspace(-300.0, 150.0, 3601)
    slopes = profile_at(profile, edges, 1)[1]
    slack = _UNDERFLOW * max(1.0, float(np.abs(slopes[np.isfinite(slopes)]).max(initial=0.0)))

    def upper(low: Array, high: Array) -> Array:
        value, slope = profile_ranges(profile, Interval(low, high), 1)
        return np.asarray(np.maximum(slope.hi, -value.lo) - slack)

    def value(u: Array) -> Array:
        k, slope = profile_at(profile, u, 1)
        return np.asarray(np.maximum(slope, -k) - slack)

    falls = bool((slopes < -slack).any())
    return falls and negative_up_to(upper, value, edges)[0] == edges[-1]


def _terms(psi: Element) -> Terms:
    """Distinct points with the sums of their coefficients, checked."""
    dim = psi.points.shape[1]
    if dim > _MAX_DIM:
        raise InputError(
            f"all_modes works in at most {_MAX_DIM} dimensions, got {dim}; use mean shift there"
        )
    coef = np.asarray(psi.coef.tile(slice(None), slice(None)), dtype=float)[:, 0]
    if (coef < 0).any() or not (coef > 0).any():
        raise InputError(
            f"all_modes needs coefficients >= 0, not all zero, got {float(coef.min())!r}; for other"
            " signs see Global, which proves the highest point"
        )
    terms = Terms.merged(psi.kernel.program, psi.points, coef)
    values = np.linalg.eigvalsh(terms.metrics[0][0])
    if values[0] <= 1e-12 * values[-1]:
        raise InputError(
            f"{psi.kernel!r} does not see every direction, along which no mode is isolated; give "
            "the points without the columns it does not see"
        )
    return terms
