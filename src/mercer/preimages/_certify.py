"""Certificates: what is proved about a point, rounding included."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import rigor
from mercer._array import Array, check_flag
from mercer._config import get_options, options
from mercer.engine import Program, apply_all, column_rank, dense, n_rows, pieces
from mercer.exceptions import DerivativeError, InputError
from mercer.preimages._driver import State, row_norms
from mercer.preimages._objective import ElementSums, Nearest
from mercer.preimages._result import Certificate, Verdict, undecided
from mercer.rigor import EPS, Interval, profile_ranges, spectral_norms, up
from mercer.space import Element

_WHOLE = 64  # dimensions up to which Hessians are formed
_NUMBERS = 1 << 22  # in the Hessians, or gradients, of one block
_FEW = 16 * EPS  # relative error of a few operations
_WHOLE_MAP = 1000  # columns up to which a map is multiplied out to see whether it is onto


def certify(psi: Element, X: Any, *, eigenvalues: bool | None = None) -> Certificate:
    """Check, with proof where possible, whether points are local minimisers of k(x, x)/2 - psi(x).

    With smallest Hessian eigenvalue >= m > 0, Hessian Lipschitz constant M and gradient g, rounding
    included, h = |g| M / m^2 < 1/2 proves that a minimiser lies within
    2 |g| / (m + m sqrt(1 - 2h)) of the point (Newton-Kantorovich). A negative eigenvalue proves
    that the point is not a minimiser. A point of the element with coefficient a, where the kernel
    has a cusp of slope eta, is a minimiser if the gradient of all other terms is below eta a, and
    is not if a < 0.

    Parameters
    ----------
    psi : Element
        One element, or a batch of m.
    X : array_like of shape (m, d)
        Points; one per element of a batch.
    eigenvalues : bool, optional
        Whether to use the eigenvalues of Hessians, by default up to 64 dimensions. Otherwise
        Weyl's inequalities and the trace (`weyl_test`), which prove less and cost less.

    Returns
    -------
    Certificate

    Notes
    -----
    Rounding is bounded by the number of operations in each sum, and for the profile by interval
    arithmetic on its expression. M is known for completely monotone profiles and for kernels of the
    inner product; for others a point is at best POSITIVE_DEFINITE. Kernels without derivatives, or
    whose profile could not be recorded, are UNDECIDED everywhere.

    References
    ----------
    Honeine (2024, see `preimage`), Lemmas 12 and 13, Theorems 14, 15 and 24; L. V. Kantorovich and
    G. P. Akilov, Functional analysis, 1982, chapter XVIII.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [3.0]], [1.0, 1.0])
    >>> [v.name for v in mc.preimages.certify(psi, [[0.03], [1.5]]).verdict]
    ['PROVED_MINIMUM', 'NOT_A_MINIMUM']
    """
    check_flag(eigenvalues, "eigenvalues", optional=True)
    return certify_state(*rigor.prepared(psi, X), eigenvalues=eigenvalues)


def certify_state(
    psi: Element, X: Any, state: State | None = None, *, eigenvalues: bool | None = None
) -> Certificate:
    """`certify` for checked points, at which the derivatives may be known already."""
    if not psi.kernel.program.has_derivatives:
        return undecided(n_rows(X))
    X = dense(X)
    whole = X.shape[1] <= _WHOLE if eigenvalues is None else eigenvalues
    now = get_options()
    if state is not None and (
        not whole
        or state.hessian is None
        or now.tolerance > 0.0
        or now.engine == "spectral"
        or np.any(state.shift)
        or np.any(state.cusp)
    ):
        state = None  # not accurate to rounding, or subgradients
    size = max(1, _NUMBERS // X.shape[1] ** (1 + whole))
    plain = options(tolerance=0.0, engine=None if now.engine == "spectral" else now.engine)
    with plain, np.errstate(all="ignore"):
        try:
            M = np.broadcast_to(rigor.hessian_lipschitz(psi), (psi.coef.shape[1],))
            parts = [
                _certificate(*_part(psi, X, M, rows), whole, state=state and state[rows])
                for rows in pieces(len(X), size)
            ]
        except (DerivativeError, InputError):  # of a profile that could not be recorded
            return undecided(len(X))
    return Certificate(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _part(psi: Element, X: Array, M: Array, rows: Any) -> tuple[Element, Array, Array]:
    """Some of the queries, and the elements and constants that belong to them."""
    return (psi, X[rows], M) if psi.batch is None else (psi[rows], X[rows], M[rows])


# bounds on the norm of the gradient, and on the smallest eigenvalue from below and from above
_Bounds = tuple[Array, Array, Array]


def _certificate(
    psi: Element, X: Array, M: Array, whole: bool, quick: bool = True, state: State | None = None
) -> tuple[Array, ...]:
    """Verdicts, radii and bounds on the smallest eigenvalue of one block.

    A cheap bound on the rounding, which needs no pass over the points, is tried first; points that
    it leaves undecided are checked again with a bound that takes such a pass.
    """
    if state is None:
        owners = np.arange(len(X)) if psi.batch is not None else np.zeros(len(X), dtype=int)
        state = Nearest().at(ElementSums(psi, shifted=False), X, owners, 2 if whole else 1)
    norm, errors = _norms(state.gradient), None
    if whole:
        errors = rigor.supremum_errors(psi, X) if quick else None
        if errors is None:
            sums = rigor.all_sums(psi, X)
            facts = _bounds_from_hessians(
                norm, state.hessian, sums.gradient_error, sums.hessian_error
            )
        else:
            facts = _bounds_from_hessians(norm, state.hessian, *errors)
    else:
        facts = _bounds_from_sums(psi, X, norm)
    result = _verdicts(psi, X, facts, M, state.cusp)
    if errors is None:
        return result
    _, low, high = facts
    near = norm * M < 0.5 * ((low + high) / 2) ** 2  # proved, but for rounding
    rows = np.flatnonzero((near & (result[0] == Verdict.POSITIVE_DEFINITE)) | (low <= 0))
    rows = rows[result[0][rows] != Verdict.NOT_A_MINIMUM]
    if rows.size:
        again = _certificate(*_part(psi, X, M, rows), True, quick=False)
        better = np.array([v is not Verdict.UNDECIDED for v in again[0].tolist()])
        for old, new in zip(result, again, strict=True):
            old[rows[better]] = new[better]
    return result


def _norms(g: Array) -> Array:
    """Upper bounds on the lengths of rows."""
    return np.asarray(up(row_norms(g) * (1.0 + g.shape[1] * EPS)))


def _bounds_from_hessians(
    norm: Array, H: Array, gradient_error: Array, hessian_error: Array
) -> _Bounds:
    """From the eigenvalues of Hessians, which are computed to within 10 d eps |H|."""
    finite = np.isfinite(H).all(axis=(1, 2)) & np.isfinite(hessian_error)
    H = np.where(finite[:, None, None], H, 0.0)
    smallest = np.linalg.eigvalsh(H)[:, 0]
    slack = hessian_error + 10.0 * H.shape[1] * EPS * row_norms(H.reshape(len(H), -1))
    slack = np.where(finite, slack, np.inf)
    return up(norm + gradient_error), smallest - slack, smallest + slack


def _bounds_from_sums(psi: Element, X: Array, norm: Array) -> _Bounds:
    """From Weyl's inequalities and the trace, for programs of one variable."""
    program, dim = psi.kernel.program, X.shape[1]
    nothing = np.full(len(X), np.inf)
    if program.kind not in ("radial", "dot"):
        return nothing, -nothing, nothing
    sums = rigor.all_sums(psi, X)
    test = rigor.weyl_of_sums(program, X, sums)
    factor = 2.0 if program.kind == "radial" else 1.0
    largest, smallest = spectral_norms(program, dim)
    low = factor * (test.slope - test.rising - test.rounding)
    low = low * np.where(low > 0, smallest, largest) ** 2
    high = np.where(test.has_negative_eigenvalue & _is_onto(program, dim), -1.0, np.inf)
    return up(norm + sums.gradient_error), low, high


def _is_onto(program: Program, dim: int) -> bool:
    """Whether Ax reaches every direction, so that what is proved about Ax holds for x."""
    if not program.maps:
        return True
    A = apply_all(program.maps, np.eye(dim)) if dim <= _WHOLE_MAP else np.zeros((dim, 1))
    return column_rank(A.T) == A.shape[1]


def _verdicts(
    psi: Element, X: Array, facts: _Bounds, M: Array, cusp: Array | None
) -> tuple[Array, ...]:
    norm, low, high = facts
    convex = low > 0
    if psi.kernel.program.kind == "dot":
        M = _local_lipschitz(psi, X, np.where(convex, up(2.0 * norm / low), np.inf))
    h = up(up(norm / low) * up(M / low))
    proved = convex & (h < 0.5)
    root = np.sqrt(np.maximum(1.0 - 2.0 * h, 0.0)) * (1.0 - _FEW)
    radius = np.where(proved, up(2.0 * norm / (low * (1.0 + root))), np.nan)
    verdict = np.full(len(X), Verdict.UNDECIDED, dtype=object)
    verdict[convex] = Verdict.POSITIVE_DEFINITE
    verdict[proved] = Verdict.PROVED_MINIMUM
    verdict[high < 0] = Verdict.NOT_A_MINIMUM
    low = np.where(np.isfinite(low), low, np.nan)
    if cusp is not None:
        _decide_cusps(psi, X, norm, cusp, (verdict, radius, low))
    return verdict, radius, low


def _decide_cusps(
    psi: Element, X: Array, norm: Array, cusp: Array, result: tuple[Array, ...]
) -> None:
    """At points of the element: a minimum if the pull of the cusp outweighs the rest."""
    verdict, radius, low = result
    at = np.flatnonzero(cusp != 0)
    verdict[at], radius[at], low[at] = Verdict.UNDECIDED, np.nan, np.nan
    real = (np.abs(cusp) > 1e-12 * psi.coef.sizes)[at]  # not the rounding of opposite ones
    slope = rigor.cusp_slope(psi.kernel.program)
    pull = slope * spectral_norms(psi.kernel.program, X.shape[1])[1] if slope > 0 else 0.0
    stays = real & (norm[at] < pull * cusp[at] * (1.0 - 1e-10))
    if slope > 0:  # psi has a peak there, or a pit if the weight is negative
        verdict[at[real & (cusp[at] < 0)]] = Verdict.NOT_A_MINIMUM
    verdict[at[stays]], radius[at[stays]] = Verdict.PROVED_MINIMUM, 0.0


def _local_lipschitz(psi: Element, X: Array, reach: Array) -> Array:
    """A Lipschitz constant of the Hessian within `reach` of each point, for kernels f(<x, y>).

    With R = |x| + reach and |x_i| <= S the third derivative is at most
    6 f''(u) R + 4 f'''(u) R^3 + |a|_1 f'''(t) S^3 in size, for some u in [0, R^2] and |t| <= R S.
    """
    program = psi.kernel.program
    norm = spectral_norms(program, X.shape[1])[0] * (1.0 + _FEW)
    S = float(_norms(dense(apply_all(program.maps, psi.points))).max())
    R = up(_norms(apply_all(program.maps, X)) + norm * reach)
    own_square = Interval(np.zeros_like(R), up(R * R))
    second, third = (x.size for x in profile_ranges(program.profile, own_square, 3)[2:])
    side = up(R * S)
    cross = profile_ranges(program.profile, Interval(-side, side), 3)[3].size
    own = np.where(second > 0, 6.0 * second * R, 0.0) + np.where(third > 0, 4.0 * third * R**3, 0.0)
    rest = np.where(cross > 0, cross * S**3, 0.0) * psi.coef.sizes
    return np.asarray(up(norm**3 * (own + rest) * (1.0 + _FEW)))
