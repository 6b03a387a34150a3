"""The test of independence of two variables by the Hilbert-Schmidt independence criterion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from mercer._array import Array, Points, frozen, one_of, positive, positive_int
from mercer._frames import is_chunked
from mercer._threads import map_threads
from mercer.engine import as_float64, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._coco import leading_pair
from mercer.methods.hypothesis_tests._hsic import centred_kernel, hsic
from mercer.methods.hypothesis_tests._hsic_full_rank import FullRank
from mercer.methods.hypothesis_tests._hsic_low_rank import LowRank, factors
from mercer.methods.hypothesis_tests._hsic_permutations import Effect, permutations
from mercer.methods.hypothesis_tests._independence_in_pieces import hsic_test_in_pieces
from mercer.methods.hypothesis_tests._kernel_grid import are_given, root_mean_squares
from mercer.methods.hypothesis_tests._null_distributions import hsic_tail
from mercer.methods.hypothesis_tests._quadratic_forms import mean_of_features
from mercer.methods.hypothesis_tests._relabelling import CentredKernel
from mercer.methods.hypothesis_tests._resampling import Blocks, Drawn, seeded, wild_weights
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval, recorded
from mercer.methods.hypothesis_tests._tests_in_pieces import refuse_options
from mercer.methods.hypothesis_tests._variables import variables
from mercer.space import Element

_QUESTION = "Are the variables independent?"
# Costs for each pair of rows, in multiplications of factors in float32:
_LAID_OUT = 5  # preparing a permuted matrix
_MULTIPLIED = 1  # one product of its entries


@recorded
@refuses_overflow
def hsic_test(
    X: Any,
    Y: Any,
    *,
    kernel: Any = None,
    blocks: Any = None,
    dependence: float | None = None,
    null: str = "permutation",
    n_permutations: int = 2000,
    random_state: Any = None,
) -> TestResult:
    """Test whether two variables are independent.

    The statistic is the unbiased Hilbert-Schmidt independence criterion (see `hsic`), the squared
    norm of the covariance operator of x and y. Without kernels, Gaussian kernels at four
    bandwidths for each variable are combined, sixteen pairs: no bandwidth has to be chosen, and
    no rows are set aside. The null distribution comes from random permutations of the rows of
    Y, so the p-value (b + 1) / (m + 1) is exact for every sample size: under the null hypothesis
    it is at most alpha with probability at most alpha.

    Parameters
    ----------
    X, Y : n points each, row i of one paired with row i of the other
        Arrays of shape (n, d), frames (mixed ones by `table_kernel`), or points of the kernels.
    kernel : pair or "median", optional
        A pair (for X, for Y); each is a kernel, a sequence of kernels, "median" or None. All pairs
        are combined. "median" is one Gaussian whose length scale is the median distance of that
        variable. By default the grids described above, with bandwidths from the data.
    blocks : array_like of shape (n,), optional
        The block of each row (sites, batches, days). Dependence is that within blocks: rows of Y
        are permuted within their block only, and features lose their mean in each block, so that
        differences between blocks do not count. A row that is alone in its block does not count.
    dependence : float, optional
        For time series: rows this far apart count as independent. The null distribution is then
        a wild bootstrap, which is not exact, and the statistic is the mean over i != j of
        the products of both centred kernels.
    null : {"permutation", "spectral", "gamma"}, default="permutation"
        The last two are formulas for a single pair of kernels: not limited to p-values above
        1 / n_permutations, but right only for large samples. "spectral" is the limit distribution
        of n times the biased estimate, chi-squares weighted by products of eigenvalues; `pvalue` is
        the upper end of `pvalue_bounds`, which bracket its tail probability. "gamma" is the gamma
        distribution with its first two moments.
    n_permutations : int, default=2000
        Random draws; the smallest possible p-value is 1 / (n_permutations + 1).
    random_state : int, Generator, RandomState or None

    Returns
    -------
    TestResult
        The effect size is HSIC(X, Y) / sqrt(HSIC(X, X) HSIC(Y, Y)), each of them unbiased: 0 if
        independent, 1 if Y is X; the squared correlation for linear kernels in one dimension.
        With `blocks`, these are the criteria within blocks.
        `witness` is a pair (f, g) of functions of norm one whose values f(x), g(y) have the largest
        covariance for that pair of kernels.

    Notes
    -----
    Smooth kernels are factored, K~ = FF', by pivoted Cholesky, and each permutation is a product of
    thin matrices. For one pair of kernels `pvalue_bounds` takes the error of the factors into
    account: statistics that differ by less count both ways, and `pvalue` is the upper end. For
    several pairs there is no such bracket, because their combination can magnify errors; the
    p-value is exact for the factored kernels. Other kernels take whole matrices, some rows at a
    time if they do not fit into `working_memory`.

    A large p-value does not show that the variables are independent.

    There are no weights, because they would not help. If rows were drawn with probabilities that
    depend on x only, or on y only, then x and y are independent in the sample if they are in the
    population, and this test is exact as it is. If the probabilities depend on both, permuted rows
    are not a sample of the population, with or without weights. `hsic(weights=...)` estimates the
    dependence in the population. If a weight counts rows, repeat the row.

    References
    ----------
    Gretton, Fukumizu, Teo, Song, Schoelkopf, Smola, A kernel statistical test of independence,
    NeurIPS 2007. Chwialkowski, Sejdinovic, Gretton, A wild bootstrap for degenerate kernel tests,
    NeurIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 1))
    >>> result = mc.hsic_test(x, x**2 + rng.normal(size=(100, 1)), random_state=0)
    >>> result.pvalue
    0.0004997501249375312
    """
    n_draws = positive_int(n_permutations, "n_permutations")
    seed, rng = seeded(random_state)
    if is_chunked(X) or is_chunked(Y):
        refuse_options(blocks=blocks is not None, dependence=dependence, null=null != "permutation")
        return hsic_test_in_pieces(_QUESTION, X, Y, kernel, n_draws, seed, rng)
    arrays, kernels = variables([X, Y], kernel, rng)
    n = n_rows(arrays[0])
    within = Blocks.of(blocks, n)
    pairs = [(kx, ky) for kx in kernels[0] for ky in kernels[1]]
    if one_of(null, ("permutation", "spectral", "gamma"), "null") != "permutation":
        if len(pairs) > 1 or blocks is not None or dependence is not None:
            raise InputError(
                f"null={null!r} needs a single kernel for each variable, and neither blocks nor "
                "dependence; give one, for instance kernel='median', or use null='permutation'"
            )
        return _by_formula(pairs[0], arrays, null, None if are_given(kernel) else seed)
    permuted = permuted_hsic(kernels[0], arrays[0], kernels[1], arrays[1], within)
    weights: Array | None = None
    if dependence is None:
        statistics = permuted.statistics(permutations(n, n_draws, rng, within))
    else:
        if blocks is not None:
            raise InputError("time series have no blocks; give either blocks or dependence")
        weights = wild_weights(n, n_draws, positive(dependence, "dependence"), rng)
        statistics = _wild(kernels, arrays, weights)
    sizes = [root_mean_squares(k, Z, rng) for k, Z in zip(kernels, arrays, strict=True)]
    drawn = Drawn.of(statistics, np.outer(*sizes).ravel())
    best = drawn.best
    error = float(permuted.errors[0]) if len(pairs) == 1 and dependence is None else 0.0
    effect, pair = _effect_and_witness(permuted, best, pairs[best], arrays, weights)
    return TestResult(
        question=_QUESTION,
        statistic=effect.value if weights is None else float(statistics[best, 0]),
        null="permutation" if dependence is None else "wild bootstrap",
        n=(n,),
        seed=seed,
        witness=pair,
        **drawn.fields(pairs, error),
        **effect_interval(effect.ratio, effect.variance, effect.unit, drawn.spread),
    )


def _by_formula(
    pair: tuple[Kernel, Kernel], arrays: list[Any], null: str, seed: int | None
) -> TestResult:
    """The test with one pair of kernels, with a null distribution by formula."""
    (kx, ky), n = pair, n_rows(arrays[0])
    x, y = (Points(as_float64(Z), k.domain) for Z, k in zip(arrays, pair, strict=True))
    tail, sd = hsic_tail(kx, x.array, ky, y.array, n * hsic(kx, x, ky, y, estimator="biased"), null)
    permuted = permuted_hsic((kx,), arrays[0], (ky,), arrays[1])
    effect, witness = _effect_and_witness(permuted, 0, pair, arrays)
    return TestResult(
        question=_QUESTION,
        statistic=effect.value,
        pvalue=tail.bounds[1],
        pvalue_bounds=tail.bounds,
        null="weighted chi-squares" if null == "spectral" else "gamma approximation",
        kernels=(pair,),
        n=(n,),
        n_permutations=0,
        seed=seed,
        **effect_interval(effect.ratio, effect.variance, effect.unit, sd / n),
        witness=witness,
        null_statistics=frozen(np.empty(0)),
    )


def _wild(kernels: list[tuple[Kernel, ...]], arrays: list[Any], weights: Array) -> Array:
    """Means over i != j of w_i w_j kx~_ij ky~_ij for each pair of kernels and draw."""
    n = n_rows(arrays[0])
    equal = np.full(n, 1.0 / n)
    centred = [
        [centred_kernel(k, Points(as_float64(Z), k.domain), equal) for k in chosen]
        for Z, chosen in zip(arrays, kernels, strict=True)
    ]

    def tile(kx: CentredKernel, ky: CentredKernel, rows: slice, columns: slice) -> Array:
        return kx.tile(rows, columns) * ky.tile(rows, columns)

    tiles = [partial(tile, kx, ky) for kx in centred[0] for ky in centred[1]]
    return mean_of_features(tiles, weights).statistics


def permuted_hsic(
    kernels_x: tuple[Kernel, ...],
    X: Any,
    kernels_y: tuple[Kernel, ...],
    Y: Any,
    blocks: Blocks | None = None,
) -> LowRank | FullRank:
    """By low rank if that takes fewer operations per permutation, else with whole matrices."""
    per_pair = len(kernels_y) * (_LAID_OUT + _MULTIPLIED * len(kernels_x))
    most = isqrt(n_rows(X) * per_pair // 2)  # n columns^2 is what n^2 / 2 pairs take
    F = factors(kernels_x, X, most, blocks)
    G = factors(kernels_y, Y, most, blocks) if F is not None else None
    if F is not None and G is not None:
        return LowRank(F, G)
    return FullRank(kernels_x, X, kernels_y, Y, blocks)


def _effect_and_witness(
    permuted: LowRank | FullRank,
    best: int,
    pair: tuple[Kernel, Kernel],
    arrays: list[Any],
    weights: Array | None = None,
) -> tuple[Effect, tuple[Element, Element] | None]:
    """Both for one pair of kernels, on the pool, where BLAS does not stall on a busy machine."""
    jobs: list[Callable[[], Any]] = [
        partial(permuted.effect, best, weights),
        partial(_witness, permuted, best, pair, arrays),
    ]
    effect, witness = map_threads(lambda job: job(), jobs)
    return effect, witness


def _witness(
    permuted: LowRank | FullRank, best: int, pair: tuple[Kernel, Kernel], arrays: list[Any]
) -> tuple[Element, Element] | None:
    """The functions with the largest covariance; None for kernels that are not definite."""
    if any(k.flags.definiteness is Definiteness.INDEFINITE for k in pair):
        return None
    A, B = permuted.matrices(best)
    found = leading_pair(A.product, B.product, permuted.n)
    if found is None:
        return None
    x, y = (Points(as_float64(Z), kernel.domain) for Z, kernel in zip(arrays, pair, strict=True))
    centred = permuted.blocks.centred
    a, b = centred(found[0]) / np.sqrt(A.scale), centred(found[1]) / np.sqrt(B.scale)
    return Element(pair[0], x, a), Element(pair[1], y, b)
