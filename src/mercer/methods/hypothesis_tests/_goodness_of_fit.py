"""The goodness-of-fit test: does a sample come from a model that is known up to a constant?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer._array import Points, as_points, frozen, positive_int
from mercer._frames import is_chunked
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Gaussian, Kernel, RationalQuadratic, Vectors
from mercer.kernels._domain import points_of
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._kernel_grid import (
    as_kernels,
    bandwidth_grid,
    root_mean_squares,
)
from mercer.methods.hypothesis_tests._ksd import SteinKernel, SteinTiles, check_stein, stein_points
from mercer.methods.hypothesis_tests._quadratic_forms import mean_of_features, standardised_mean
from mercer.methods.hypothesis_tests._resampling import Drawn, seeded, signs_of_terms
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval, recorded
from mercer.methods.hypothesis_tests._score import score_at, tail_of
from mercer.methods.hypothesis_tests._tests_in_pieces import (
    ksd_test_in_pieces,
    refuse_options,
    sample_of,
)
from mercer.space import mean_embedding


@recorded
@refuses_overflow
def ksd_test(
    X: Any,
    score: Any,
    *,
    kernel: Any = None,
    dependence: float | None = None,
    n_permutations: int = 2000,
    random_state: Any = None,
) -> TestResult:
    """Test whether a sample comes from a model whose density is known up to a constant.

    The statistic is the unbiased squared kernel Stein discrepancy, the mean of h(x_i, x_j) over i
    != j, where h is the Stein kernel (see `ksd`). Its null distribution is that of the mean of
    sigma_i sigma_j h(x_i, x_j) with random signs, a wild bootstrap: nothing is drawn from the
    model. The level is right for large samples, not exact.

    Parameters
    ----------
    X : array_like of shape (n, d)
    score : callable, distribution of scipy.stats, list of them, Density or Element
        The model, as for `ksd`: a function that returns grad log p at the rows of X, for instance.
    kernel : Kernel, sequence of Kernel or "median", optional
        Positive definite kernels without cusps. Several are combined. "median" is one Gaussian
        whose length scale is the median distance. By default inverse multiquadric and Gaussian
        kernels at ten bandwidths each.
    dependence : float, optional
        For time series and Markov chains: rows this far apart count as independent. The signs are
        then a stationary process with that correlation length. By default rows are independent.
    n_permutations : int, default=2000
        Random draws; the smallest possible p-value is 1 / (n_permutations + 1).
    random_state : int, Generator, RandomState or None

    Returns
    -------
    TestResult
        `contributions` has the mean of h(x_i, x_j) over j != i for each row: the rows with the
        largest fit worst. `witness` is the mean of h(x_i, .), an element of the space of
        `SteinKernel`: its mean under the model is zero, and it is large where the sample does not
        fit. The effect size is the squared mean of Stein features over their variance.

    Warns
    -----
    MercerWarning
        If the scores have such heavy tails that their variance is infinite (`moment_condition`).

    Notes
    -----
    The test hardly notices how mass is divided between separate modes: a score is local.
    Of 2,000 samples of 100 rows from the model itself, the default rejected 4.4 % at level 0.05 for
    a normal model, 4.8 % for t with 5 degrees of freedom, 5.7 % for gamma of shape 5, and 6.7 % for
    a normal model in ten dimensions.

    References
    ----------
    Chwialkowski, Strathmann, Gretton, A kernel test of goodness of fit, ICML 2016. Liu, Lee,
    Jordan, A kernelized Stein discrepancy for goodness-of-fit tests, ICML 2016. Schrab, Guedj,
    Gretton, KSD aggregated goodness-of-fit test, NeurIPS 2022 (combining bandwidths).

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from scipy.stats import norm
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> mc.ksd_test(X, norm(0.0, 1.0), random_state=0).pvalue > 0.05
    True
    >>> mc.ksd_test(X, norm(0.5, 1.0), random_state=0).pvalue < 0.01
    True
    """
    n_draws = positive_int(n_permutations, "n_permutations")
    seed, rng = seeded(random_state)
    in_pieces = is_chunked(X)
    if in_pieces:
        refuse_options(dependence=dependence)
        X = points_of(Vectors(), X, "X").array
    kernels = _kernels(kernel, X, rng)
    some = sample_of(X) if in_pieces else None
    for k in kernels:
        points = stein_points(k, X) if some is None else some
        check_stein(k)
    n = len(points)
    if n < 2:
        raise InputError("a goodness-of-fit test needs at least two rows")
    S = score_at(score, points)
    if tail_of(S).fails:
        warnings.warn(
            "the scores have such heavy tails that E |score|^2 seems to be infinite; then the "
            "p-value is not reliable (see moment_condition)",
            MercerWarning,
            stacklevel=2,
        )
    if in_pieces:
        return ksd_test_in_pieces(Points(X, Vectors()), score, kernels, n_draws, seed, rng)
    signs = signs_of_terms(n, n_draws, dependence, rng)
    tiles = [SteinTiles(k, points, S) for k in kernels]
    statistics, rows = mean_of_features(tiles, signs)
    # wide kernels, which have large mean squares, see differences of means and of scales best
    norms = statistics.std(axis=1) / root_mean_squares(kernels, points, rng) ** 2
    drawn = Drawn.of(statistics, norms)
    best = drawn.best
    effect = standardised_mean(
        rows[best], tiles[best].diagonal(), None if dependence is None else signs
    )
    return TestResult(
        question="Does the sample come from the model?",
        statistic=float(statistics[best, 0]),
        null="wild bootstrap",
        n=(n,),
        seed=seed,
        witness=mean_embedding(SteinKernel(kernels[best], score), points),
        contributions=frozen(rows[best]),
        **drawn.fields(kernels),
        **effect_interval(*effect, drawn.spread),
    )


def _kernels(kernel: Any, X: Any, rng: np.random.Generator) -> tuple[Kernel, ...]:
    """The kernels of the test; by default a grid of bandwidths, as for two samples.

    A rational quadratic with exponent 1/2 is an inverse multiquadric that is 1 at distance zero.
    """
    if kernel is not None:
        rows = _points(X) if isinstance(kernel, str) else None
        return as_kernels(kernel, rows, rng)
    scales = bandwidth_grid(_points(X), rng)
    return (*(RationalQuadratic(0.5, s) for s in scales), *(Gaussian(s) for s in scales))


def _points(X: Any) -> Any:
    return X if is_chunked(X) else as_points(X)
