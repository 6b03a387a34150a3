"""The two-sample and k-sample test: do samples come from the same distribution?"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import (
    Array,
    Points,
    as_points,
    as_vector,
    as_weights,
    check_flag,
    check_same_columns,
    frozen,
    header,
    one_of,
    positive_int,
)
from mercer._frames import check_same_header, is_chunked
from mercer.engine import as_float64, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel, Table, table_kernel
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._kernel_grid import (
    are_given,
    as_kernels,
    has_text,
    root_mean_squares,
    stacked_tables,
)
from mercer.methods.hypothesis_tests._mmd import mmd, paired_values, witness, witness_in_blocks
from mercer.methods.hypothesis_tests._null_distributions import mmd_tail
from mercer.methods.hypothesis_tests._power import held_out, most_powerful
from mercer.methods.hypothesis_tests._quadratic_forms import mean_of_features, standardised_mean
from mercer.methods.hypothesis_tests._relabelling import Relabelled, RelabelledInBlocks, precise
from mercer.methods.hypothesis_tests._resampling import (
    Blocks,
    Drawn,
    in_parts,
    relabelled,
    seeded,
    shuffled,
    signs_of_terms,
)
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval, recorded
from mercer.methods.hypothesis_tests._tests_in_pieces import mmd_test_in_pieces, refuse_options
from mercer.space._points import concatenated

_QUESTION = "Do the samples come from the same distribution?"


@recorded
@refuses_overflow
def mmd_test(
    X: Any,
    Y: Any,
    *more: Any,
    kernel: Any = None,
    weights: Any = None,
    paired: bool = False,
    blocks: Any = None,
    dependence: float | None = None,
    null: str = "permutation",
    selection: float | None = None,
    n_permutations: int = 2000,
    random_state: Any = None,
) -> TestResult:
    """Test whether samples come from the same distribution.

    The statistic is the unbiased squared maximum mean discrepancy,

        mean_{i != j} k(x_i, x_j) + mean_{i != j} k(y_i, y_j) - 2 mean k(x_i, y_j),

    for three or more samples the mean over pairs of samples, each pair weighted by the product
    of its sizes. Without a kernel, Gaussian and Laplace kernels at ten bandwidths each are
    combined: no bandwidth has to be chosen, and no rows are set aside. The null distribution comes
    from random relabellings of the rows, so the p-value (b + 1) / (m + 1) is exact for every sample
    size: under the null hypothesis it is at most alpha with probability at most alpha.

    Parameters
    ----------
    X, Y, *more : two or more samples
        Arrays, frames (mixed ones by `table_kernel`), or points of the kernel.
    kernel : Kernel, sequence of Kernel or "median", optional
        Several are combined. "median" is one Gaussian whose length scale is the median distance
        of the pooled rows. By default the grid described above, with bandwidths from the data.
    weights : sequence of array_like, optional
        Weights >= 0 of the rows, one array per sample, all in one unit. They move with their rows.
        Rows of weight zero are left out, from the count of rows too.
    paired : bool, default=False
        Row i of X belongs to row i of Y (before and after, for instance): rows of a pair are
        swapped, not rows of different pairs.
    blocks : array_like of shape (n,), optional
        The block of each row, of all samples one after the other (sites, batches, days). Samples
        are compared within blocks: rows are relabelled within their block only, and the statistic
        is the squared norm of a weighted mean over blocks of the difference in a block, less
        its mean over the relabellings. Of m rows of X and n rows of Y the weight is m n / (m + n).
    dependence : float, optional
        For time series: rows this far apart count as independent. X and Y are then two series
        over the same times, and the null distribution is a wild bootstrap, which is not exact.
    null : {"permutation", "spectral", "gamma"}, default="permutation"
        The last two are formulas for two samples and a single kernel: quick, and not limited to
        p-values above 1 / n_permutations, but right only for large samples. "spectral" is the limit
        distribution, a sum of chi-squares weighted with the eigenvalues of the pooled rows;
        `pvalue` is the upper end of `pvalue_bounds`, which bracket its tail probability. "gamma" is
        the gamma distribution with its first two moments.
    selection : float, optional
        The share of the rows of each sample, drawn at random, on which one kernel is chosen: that
        with the largest MMD^2 / sqrt(V), V as in `mmd_variance`. The test uses the other rows.
        By default kernels are combined on all rows, which usually has more power.
    n_permutations : int, default=2000
        Random draws; the smallest possible p-value is 1 / (n_permutations + 1).
    random_state : int, Generator, RandomState or None

    Returns
    -------
    TestResult
        The effect size is the statistic over the variance within the samples, both in feature
        space: the square of Cohen's d for a linear kernel in one dimension. `witness` is
        mu_X - mu_Y: `preimage(result.witness)` is where X most outweighs Y. With `blocks` the
        effect size is over the variance within blocks and samples, and the witness is the mean
        difference within blocks.

    Notes
    -----
    A large p-value does not show that the distributions are equal. With `paired` or `dependence`,
    the effect size is that of the differences k(x_i, .) - k(y_i, .): the squared norm of their mean
    over their variance. With `dependence`, its interval is that of a time series.

    For two samples of many rows in one to three dimensions and a smooth kernel, sums are computed
    in the frequency domain (finufft, extra `fast`). For one kernel `pvalue_bounds` takes the error
    into account: draws that differ by less count both ways, and `pvalue` is the upper end. For
    several kernels the p-value is exact for the kernels as they were computed.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schoelkopf, Smola, A kernel two-sample test, JMLR 13, 2012.
    Chatterjee, Bhattacharya, Boosting the power of kernel two-sample tests, Biometrika, 2024 (the
    Mahalanobis combination). Biggs, Schrab, Gretton, MMD-FUSE, NeurIPS 2023 (the maximum).
    Chwialkowski, Sejdinovic, Gretton, A wild bootstrap for degenerate kernel tests, NeurIPS 2014.
    Gretton, Fukumizu, Harchaoui, Sriperumbudur, A fast, consistent kernel two-sample test, NeurIPS
    2009 (spectral and gamma null).

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 2)), rng.normal(1.0, 1.0, (90, 2))
    >>> result = mc.mmd_test(X, Y, random_state=0)
    >>> result.pvalue
    0.0004997501249375312
    """
    n_draws = positive_int(n_permutations, "n_permutations")
    seed, rng = seeded(random_state)
    check_flag(paired, "paired")
    one_of(null, ("permutation", "spectral", "gamma"), "null")
    if any(is_chunked(S) for S in (X, Y, *more)):
        refuse_options(
            more=more, weights=weights is not None, paired=paired, blocks=blocks is not None,
            dependence=dependence, null=null != "permutation", selection=selection,
        )  # fmt: skip
        return mmd_test_in_pieces(_QUESTION, (X, Y), kernel, n_draws, seed, rng)
    samples, kernels, v, within = _samples([X, Y, *more], weights, blocks, kernel, rng)
    exchanged = not paired and dependence is None and weights is None and blocks is None
    if (null != "permutation" or selection is not None) and (more or not exchanged):
        raise InputError(
            "null='spectral', null='gamma' and selection are for two samples without pairs, "
            "weights, blocks and dependence; leave them out for the permutation test"
        )
    if selection is not None:
        chosen, samples = held_out(samples, selection, rng)
        points = (Points(S, kernels[0].domain) for S in chosen)
        kernels = (kernels[most_powerful(kernels, *points)],)
        v = [np.ones(n_rows(S)) for S in samples]
    sizes = tuple(n_rows(S) for S in samples)
    if min(sizes) < 2:
        raise InputError(f"each sample needs at least two rows, got samples of {sizes} rows")
    if null != "permutation":
        fixed = are_given(kernel) and selection is None
        return _by_formula(kernels, samples, null, None if fixed else seed)
    test: _Paired | _Relabelled
    if paired or dependence is not None:
        if len(set(sizes)) > 1 or len(sizes) > 2 or weights is not None or blocks is not None:
            raise InputError(
                "paired samples and time series are two samples of equal length, without weights "
                f"and blocks; got samples of {sizes} rows"
            )
        null = "sign flips" if dependence is None else "wild bootstrap"
        signs = signs_of_terms(sizes[0], n_draws, dependence, rng)
        test = _Paired(kernels, samples[0], samples[1], signs, dependence is not None)
    else:
        test = _Relabelled(kernels, samples, _as_one(v), n_draws, rng, within)
    norms = root_mean_squares(kernels, reduce(concatenated, samples), rng)
    drawn = Drawn.of(test.statistics, norms)
    best, two = drawn.best, len(samples) == 2
    # a combination is exact for the kernels as they are computed
    error = test.errors[0] if len(kernels) == 1 else 0.0
    return TestResult(
        question=_QUESTION,
        statistic=float(test.statistics[best, 0]),
        null=null,
        n=sizes,
        seed=seed,
        witness=witness_in_blocks(kernels[best], samples, v, within) if two else None,
        **drawn.fields(kernels, error),
        **effect_interval(*test.effect(best), drawn.spread),
    )


def _by_formula(
    kernels: tuple[Kernel, ...], samples: list[Any], null: str, seed: int | None
) -> TestResult:
    """The test of two samples with one kernel, with a null distribution by formula."""
    if len(kernels) > 1:
        raise InputError(
            f"null={null!r} needs a single kernel, and here {len(kernels)} are combined; "
            "give one kernel, for instance kernel='median', or use null='permutation'"
        )
    sizes = n_rows(samples[0]), n_rows(samples[1])
    drawn = _Relabelled(kernels, samples, np.ones(sum(sizes)))
    points = (Points(S, kernels[0].domain) for S in samples)
    statistic = mmd(kernels[0], *points)
    tail, sd = mmd_tail(kernels[0], reduce(concatenated, samples), sizes, statistic, null)
    return TestResult(
        question=_QUESTION,
        statistic=statistic,
        pvalue=tail.bounds[1],
        pvalue_bounds=tail.bounds,
        null="weighted chi-squares" if null == "spectral" else "gamma approximation",
        kernels=kernels,
        n=sizes,
        n_permutations=0,
        seed=seed,
        **effect_interval(*drawn.effect(0), sd),
        witness=witness(kernels[0], samples[0], samples[1]),
        null_statistics=frozen(np.empty(0)),
    )


class _Relabelled:
    """Statistics and effects if rows of all samples can be exchanged."""

    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        samples: list[Any],
        weights: Array,
        n_draws: int = 1,
        rng: np.random.Generator | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        rng, sizes = rng or np.random.default_rng(0), tuple(n_rows(S) for S in samples)
        # in random order, so that rounding treats the observed labels as it treats any others
        order = rng.permutation(sum(sizes))
        given = relabelled(sizes, 0, rng)[0]
        observed = given[order]

        def draw(m: int) -> Array:
            if blocks is not None:
                return shuffled(given, m, rng, blocks)[:, order]
            drawn = relabelled(sizes, m, rng)
            drawn[0] = observed
            return drawn

        Z = reduce(concatenated, samples)[order]
        equal = bool(np.ptp(weights) == 0)
        free = blocks is None
        options = {"equal_weights": equal or not free, "forms": equal and len(samples) == 2}
        self.kernels = [precise(k, Z, **options, core=free) for k in kernels]
        given_rows = weights[order], observed, len(samples)
        self.drawn = (
            Relabelled(*given_rows)
            if blocks is None
            else RelabelledInBlocks(*given_rows, Blocks(blocks.index[order]))
        )
        draws = in_parts(draw, len(observed), n_draws, observed.itemsize)
        self.statistics, self.errors, self.products = self.drawn.discrepancies(self.kernels, draws)

    def effect(self, k: int) -> tuple[float, float, float]:
        kernel, products = self.kernels[k], self.products[k]
        if isinstance(self.drawn, RelabelledInBlocks):
            return self.drawn.effect(kernel, products, float(self.statistics[k, 0]))
        return self.drawn.effect(kernel.diagonal, products)


class _Paired:
    """Statistics and effects if row i of one sample belongs to row i of the other."""

    def __init__(
        self, kernels: tuple[Kernel, ...], X: Any, Y: Any, signs: Array, series: bool = False
    ) -> None:
        self.weights = signs if series else None
        self.kernels, self.X, self.Y = kernels, as_float64(X), as_float64(Y)
        tiles = [partial(self._tile, k.program) for k in kernels]
        self.statistics, self.rows = mean_of_features(tiles, signs)
        self.errors = np.zeros_like(self.statistics)

    def _tile(self, program: engine.Program, rows: slice, columns: slice) -> Array:
        """<f_i, f_j> of the features f_i = k(x_i, .) - k(y_i, .)."""
        X, Y, gram = self.X, self.Y, partial(engine.gram, program)
        tile = gram(X[rows], X[columns]) + gram(Y[rows], Y[columns])
        tile -= gram(X[rows], Y[columns]) + gram(Y[rows], X[columns])
        return np.asarray(tile)

    def effect(self, k: int) -> tuple[float, float, float]:
        X, Y = (Points(S, self.kernels[k].domain) for S in (self.X, self.Y))
        diagonal = self.kernels[k].diag(X) + self.kernels[k].diag(Y)
        diagonal -= 2.0 * paired_values(self.kernels[k], X, Y)
        return standardised_mean(self.rows[k], diagonal, self.weights)


def _weights(weights: Any, sizes: tuple[int, ...]) -> list[Array]:
    """Weights of the rows of each sample, ones by default."""
    given = [None] * len(sizes) if weights is None else weights
    if not isinstance(given, list | tuple) or len(given) != len(sizes):
        raise InputError(f"weights must be a list of {len(sizes)} arrays, one array per sample")
    parts = []
    for w, n in zip(given, sizes, strict=True):
        as_weights(w, n)  # raises
        parts.append(np.ones(n) if w is None else as_vector(w, "weights", n).astype(np.float64))
    return parts


def _as_one(weights: list[Array]) -> Array:
    """Weights of all rows, with mean 1.

    They are not scaled sample by sample: that would depend on the labels, and the p-value would not
    be exact.
    """
    v = np.concatenate(weights)
    return np.asarray(v / v.mean())


def _samples(
    samples: list[Any], weights: Any, blocks: Any, kernel: Any, rng: np.random.Generator
) -> tuple[list[Any], tuple[Kernel, ...], list[Array], Blocks | None]:
    """Checked arrays of points, the kernels of the test, and the weights and blocks of the rows.

    Rows of weight zero are left out before anything is chosen or relabelled. The p-value is exact
    given their labels.
    """
    if kernel is None and any(has_text(S) for S in samples):
        kernel = table_kernel(stacked_tables(samples), random_state=rng)
    if not isinstance(kernel, Table):
        for i, S in enumerate(samples[1:], start=2):
            check_same_header(header(samples[0]), header(S), ("sample 1", f"sample {i}"))
    by_data = kernel is None or isinstance(kernel, str)
    kernels = () if by_data else as_kernels(kernel, None, rng)
    read = as_points if by_data else lambda S, name: kernels[0].points(S, name).array
    arrays = [read(S, f"sample {i + 1}") for i, S in enumerate(samples)]
    for A in arrays[1:]:
        check_same_columns(arrays[0], A)
    v = _weights(weights, tuple(n_rows(A) for A in arrays))
    used = [w > 0 for w in v]
    every = np.concatenate(used)
    within = Blocks.of(blocks, len(every))
    if not every.all():
        arrays = [A[np.flatnonzero(keep)] for A, keep in zip(arrays, used, strict=True)]
        v = [w[keep] for w, keep in zip(v, used, strict=True)]
        within = None if within is None else Blocks.of(within.index[every], int(every.sum()))
        if min(map(len, v)) < 2:
            raise InputError("the test needs two rows with positive weight in each sample")
    if by_data:
        kernels = as_kernels(kernel, reduce(concatenated, arrays), rng)
    return arrays, kernels, v, within
