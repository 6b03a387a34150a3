"""Score functions s(x) = grad log p(x) of models, all that a goodness-of-fit test needs of them.

A score does not change if p is multiplied by a constant, so densities need not be normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points
from mercer.exceptions import InputError
from mercer.methods.density._density import Density
from mercer.space import Element

# d/dz log p(z) of standard distributions of scipy.stats, where p vanishes at the ends
_CLOSED: dict[str, Callable[..., Array]] = {
    "beta": lambda z, a, b: (a - 1.0) / z - (b - 1.0) / (1.0 - z),
    "cauchy": lambda z: -2.0 * z / (1.0 + z**2),
    "chi2": lambda z, df: (0.5 * df - 1.0) / z - 0.5,
    "gamma": lambda z, a: (a - 1.0) / z - 1.0,
    "gumbel_l": lambda z: 1.0 - np.exp(z),
    "gumbel_r": lambda z: np.exp(-z) - 1.0,
    "laplace": lambda z: -np.sign(z),
    "logistic": lambda z: -np.tanh(0.5 * z),
    "lognorm": lambda z, s: -(1.0 + np.log(z) / s**2) / z,
    "norm": lambda z: -z,
    "t": lambda z, df: -(df + 1.0) * z / (df + z**2),
    "weibull_min": lambda z, c: ((c - 1.0) - c * z**c) / z,
}
_STEP = 1e-3  # of the width of a density: fourth-order differences are right to about 1e-10
_FEWEST = 10  # rows, or the square root of their number: the largest tell how heavy the tail is
_TAIL = 3  # the largest rows are a tail only if they are at most a third of all
_CONFIDENCE = 0.99


def score_at(score: Any, X: Any) -> Array:
    """Return the scores of a model at the rows of X, shape (n, d), checked.

    `score` is what `ksd` takes: a function, a distribution of scipy.stats, a list of them (one per
    column, independent), a `Density`, or an `Element` that is a density up to a factor.
    """
    points = as_dense_points(X)
    with np.errstate(all="ignore"):
        values = _as_function(score)(points)
    S = np.asarray(values, dtype=np.float64)
    if S.shape == points.shape[:1] and points.shape[1] == 1:
        S = S[:, None]
    if S.shape != points.shape:
        raise InputError(
            f"score must return one gradient per row, shape {points.shape}, got {S.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(S).all(axis=1))
    if bad.size:
        raise InputError(
            f"the score is not finite at {bad.size} rows, the first is row {bad[0]}: the density "
            "is zero there, or its logarithm has no slope; a sample with such rows does not fit"
        )
    return S


def _as_function(score: Any) -> Callable[[Array], Any]:
    if isinstance(score, Density):
        return score.log_gradient
    if isinstance(score, Element):
        return partial(_of_element, score)
    if isinstance(score, list | tuple):
        return partial(_of_columns, score)
    if hasattr(score, "logpdf"):
        return partial(_of_distribution, score)
    if not callable(score):
        raise InputError(
            "score must be a function of X, a frozen distribution of scipy.stats such as norm(0, "
            f"1), a Density or an Element, got {type(score).__name__}"
        )
    return score  # type: ignore[no-any-return]


def _of_element(psi: Element, X: Array) -> Array:
    """Gradient over value; both carry the same logarithmic scale, so underflow does not matter."""
    if psi.batch is not None:
        raise InputError("score must be a single element, got a batch")
    f = psi.fields(psi.queries(X), order=1, shifted=True)
    value = np.asarray(f.value, dtype=np.float64)[:, 0]
    gradient = np.asarray(f.gradient, dtype=np.float64)[:, 0]
    return np.asarray(gradient / np.where(value > 0, value, np.nan)[:, None])


def _of_columns(parts: Any, X: Array) -> Array:
    if len(parts) != X.shape[1]:
        raise InputError(f"score has {len(parts)} distributions for {X.shape[1]} columns")
    return np.hstack([score_at(part, X[:, [c]]) for c, part in enumerate(parts)])


def _of_distribution(distribution: Any, X: Array) -> Array:
    """The score of a distribution of scipy.stats."""
    kind = type(distribution).__name__
    if kind == "multivariate_normal_frozen":
        return _elliptical(distribution.mean, distribution.cov, X)[0]
    if kind == "multivariate_t_frozen":
        slope, length = _elliptical(distribution.loc, distribution.shape, X)
        return np.asarray(
            slope * ((distribution.df + X.shape[1]) / (distribution.df + length))[:, None]
        )
    if not hasattr(distribution, "support"):
        raise InputError(f"the score of a {kind} is not known; give a function of X instead")
    if X.shape[1] != 1:
        raise InputError(
            f"the distribution has one dimension and X has {X.shape[1]} columns; give a list of "
            "distributions, one per column, or a multivariate one"
        )
    x = X[:, 0]
    ends = np.array(distribution.support(), dtype=np.float64)
    _check_ends(distribution, ends)
    inside = (x > ends[0]) & (x < ends[1])
    name, frozen = (
        getattr(getattr(distribution, "dist", None), "name", None),
        getattr(distribution, "args", ()),
    )
    if name in _CLOSED:
        shapes, loc, scale = distribution.dist._parse_args(*frozen, **distribution.kwds)
        values = _CLOSED[name]((x - loc) / scale, *shapes) / scale
    else:
        values = _differences(distribution, x, ends)
    return np.asarray(np.where(inside, values, np.nan))


def _elliptical(centre: Any, shape: Any, X: Array) -> tuple[Array, Array]:
    """-S^-1 (x - m) and the squared Mahalanobis lengths (x - m)' S^-1 (x - m)."""
    gap = X - np.asarray(centre)
    matrix = np.atleast_2d(np.asarray(shape, dtype=np.float64))
    if np.linalg.matrix_rank(matrix, hermitian=True) < len(matrix):
        raise InputError("the covariance is singular: the distribution has no density")
    slope = -np.linalg.solve(matrix, gap.T).T
    return slope, -np.einsum("ij,ij->i", slope, gap)


def _check_ends(distribution: Any, ends: Array) -> None:
    """Refuse densities that do not vanish at a finite end of their support."""
    for end, other in (ends, ends[::-1]):
        if not np.isfinite(end):
            continue
        width = other - end if np.isfinite(other) else float(distribution.median()) - end
        height = float(distribution.pdf(end + 1e-12 * width)) * abs(width)
        if not height < 1e-3:
            raise InputError(
                f"the density does not vanish at the end {end:g} of its support, so Stein's "
                "identity does not hold; use data on the whole line (the logarithm of x, for "
                "instance), or a score function with a kernel that vanishes there, such as "
                "Linear() * Gaussian(1.0) at zero"
            )


def _differences(distribution: Any, x: Array, ends: Array) -> Array:
    """The slope of logpdf by differences of fourth order, to about 1e-9 of its size.

    Steps shrink towards the ends of the support, and grow in the tails.
    """
    quantile = distribution.ppf if hasattr(distribution, "ppf") else distribution.icdf
    low, middle, high = (float(quantile(q)) for q in (0.25, 0.5, 0.75))
    nearest = np.minimum(x - ends[0], ends[1] - x)
    h = np.minimum(_STEP * np.maximum(high - low, np.abs(x - middle)), 0.01 * nearest)
    above, below = x + h, x - h  # as rounded
    far_above, far_below = x + 2.0 * h, x - 2.0 * h
    near = (distribution.logpdf(above) - distribution.logpdf(below)) / (above - below)
    far = (distribution.logpdf(far_above) - distribution.logpdf(far_below)) / (
        far_above - far_below
    )
    return np.asarray((4.0 * near - far) / 3.0)


@dataclass(frozen=True)
class MomentCondition:
    """What a sample says about E_q |s_p|^2 < infinity.

    Attributes
    ----------
    mean_square : float
        The mean of |s|^2 over the sample.
    tail_index : float
        a such that P(|s| > t) falls like t^-a, by Hill's estimator on the sqrt(n) largest |s|, at
        least ten. The second moment is infinite for a <= 2. inf for fewer than 30 rows.
    fails : bool
        Whether the tail index is below 2 with confidence 99 %.

    Examples
    --------
    >>> from mercer.methods import moment_condition
    >>> moment_condition([[1.0], [3.0]], lambda X: -X)  # two rows do not show a tail
    MomentCondition(mean_square=5.0, tail_index=inf, fails=False)
    """

    mean_square: float
    tail_index: float
    fails: bool


def moment_condition(X: Any, score: Any) -> MomentCondition:
    """Check the condition E_q |s_p|^2 < infinity of the kernel Stein discrepancy on a sample.

    Without it the discrepancy of a bounded kernel need not exist, and a wild bootstrap need not
    have its level. A finite sample cannot prove the condition: `fails` is True if the sample
    is clear evidence against it, as for a Cauchy sample and a normal model.

    Parameters
    ----------
    X : array_like of shape (n, d)
        A sample of q.
    score : as for `ksd`
        The model p.

    References
    ----------
    Sakulwongtana, Advanced machine learning notes, Theorem 2.7.1 and Remark 52. Hill, A simple
    general approach to inference about the tail of a distribution, Annals of Statistics 3, 1975.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from mercer.methods import moment_condition
    >>> rng = np.random.default_rng(0)
    >>> moment_condition(rng.standard_cauchy((500, 1)), norm()).fails
    True
    >>> moment_condition(rng.normal(size=(500, 1)), norm()).fails
    False
    """
    return tail_of(score_at(score, X))


def tail_of(S: Array) -> MomentCondition:
    """The moment condition from the scores of the sample."""
    from scipy.special import gammaincinv  # slow to import

    scale = float(np.abs(S).max()) or 1.0
    sizes = scale * np.sqrt(np.sort(np.einsum("ij,ij->i", S / scale, S / scale)))
    k = max(_FEWEST, int(np.sqrt(len(S))))
    with np.errstate(over="ignore"):
        mean_square = float(np.mean(sizes**2))
    if len(S) < _TAIL * k or sizes[-k - 1] == 0.0:
        return MomentCondition(mean_square, np.inf, False)
    total = float(np.log(sizes[-k:] / sizes[-k - 1]).sum())
    if total == 0.0:
        return MomentCondition(mean_square, np.inf, False)
    # for a power law the total is gamma distributed with shape k and scale 1 / a
    return MomentCondition(mean_square, k / total, bool(gammaincinv(k, _CONFIDENCE) / total < 2.0))
