"""The two-sample and goodness-of-fit tests of rows in pieces (Dask)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, Points, check_same_columns, frozen, is_sparse
from mercer._chunks import Chunks, sampled
from mercer._frames import is_chunked
from mercer.engine import as_float64
from mercer.exceptions import InputError
from mercer.kernels import Kernel, Vectors
from mercer.kernels._domain import points_of
from mercer.linalg._inputs import row_weights
from mercer.methods.hypothesis_tests._forms_in_pieces import (
    Draws,
    equal_up_to_rounding,
    forms_in_pieces,
    relabellings,
    row_sums,
)
from mercer.methods.hypothesis_tests._kernel_grid import as_kernels, root_mean_squares
from mercer.methods.hypothesis_tests._ksd import SteinKernel
from mercer.methods.hypothesis_tests._mmd import witness
from mercer.methods.hypothesis_tests._quadratic_forms import standardised_mean
from mercer.methods.hypothesis_tests._relabelling import Relabelled
from mercer.methods.hypothesis_tests._resampling import Drawn
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval
from mercer.space import mean_embedding

_REFERENCES = 64  # rows whose mean kernel values are subtracted, so that little cancels in float32
_MARGIN = 4.0  # rounding of other draws than those where it is measured


def refuse_options(**options: Any) -> None:
    """Raise for options of a test that rows in pieces do not have."""
    used = [name for name, value in options.items() if value]
    if used:
        raise InputError(
            f"{', '.join(used)} of a test needs all rows in memory; leave it out for rows in pieces"
        )


def mmd_test_in_pieces(
    question: str,
    samples: tuple[Any, Any],
    kernel: Any,
    n_draws: int,
    seed: int,
    rng: np.random.Generator,
) -> TestResult:
    """The permutation test of two samples, of which one may be in memory.

    Each draw is a uniformly random relabelling of all rows, as in memory, but not the same one.
    """
    X, Y = _samples(samples, kernel)
    pooled, sizes = X.concat(Y), (len(X), len(Y))
    if min(sizes) < 2:
        raise InputError(f"each sample needs at least two rows, got samples of {sizes} rows")
    kernels = as_kernels(kernel, pooled, rng)
    own_seed = int(rng.integers(2**63))
    draws = relabellings(pooled.sizes, len(X.sizes), own_seed, n_draws)
    statistics = _discrepancies(kernels, pooled, draws, sizes, rng)
    drawn = Drawn.of(statistics, root_mean_squares(kernels, pooled, rng))
    best = kernels[drawn.best]
    observed = np.repeat([0, 1], sizes)
    own = Relabelled(np.ones(sum(sizes)), observed, 2)
    products, diagonal = row_sums(pooled, best.program, own.own.astype(np.float64))
    effect = own.effect(diagonal, products)
    x, y = (Points(S, best.domain) for S in (X, Y))
    return TestResult(
        question=question,
        statistic=float(statistics[drawn.best, 0]),
        null="permutation",
        n=sizes,
        seed=seed,
        witness=witness(best, x, y),
        **drawn.fields(kernels),
        **effect_interval(*effect, drawn.spread),
    )


def ksd_test_in_pieces(
    X: Any, score: Any, kernels: tuple[Kernel, ...], n_draws: int, seed: int, rng: Any
) -> TestResult:
    """The goodness-of-fit test: random signs for each row, as in memory, but not the same ones."""
    points = kernels[0].points(X).array
    n = len(points)
    draws = Draws(int(rng.integers(2**63)), n_draws)
    steins = [SteinKernel(k, score) for k in kernels]
    values = forms_in_pieces(points, [h.program for h in steins], draws).values
    statistics = values / (n * (n - 1.0))
    # wide kernels, which have large mean squares, see differences of means and of scales best
    norms = statistics.std(axis=1) / root_mean_squares(kernels, points, rng) ** 2
    drawn = Drawn.of(statistics, norms)
    sums, diagonal = row_sums(points, steins[drawn.best].program, np.ones((n, 1)))
    rows = sums[:, 0] / (n - 1.0)
    return TestResult(
        question="Does the sample come from the model?",
        statistic=float(statistics[drawn.best, 0]),
        null="wild bootstrap",
        n=(n,),
        seed=seed,
        witness=mean_embedding(steins[drawn.best], Points(points, kernels[0].domain)),
        contributions=frozen(rows),
        **drawn.fields(kernels),
        **effect_interval(*standardised_mean(rows, diagonal), drawn.spread),
    )


def sample_of(X: Any) -> Array:
    """Some rows in memory, for checks."""
    some, _ = sampled(X, row_weights(None, X))
    return some


def _samples(samples: tuple[Any, Any], kernel: Any) -> tuple[Chunks, Chunks]:
    """Both samples in pieces, checked."""
    one = kernel[0] if isinstance(kernel, list | tuple) and kernel else kernel
    domain = one.domain if isinstance(one, Kernel) else Vectors()
    names = "sample 1", "sample 2"
    first, second = (points_of(domain, S, name) for S, name in zip(samples, names, strict=True))
    check_same_columns(first, second, names)
    given = [first.array, second.array]
    if any(map(is_sparse, given)):
        raise InputError("a sample beside one in pieces must be dense; use its toarray()")
    kind = next(S for S in given if is_chunked(S))
    X, Y = (S if is_chunked(S) else kind.whole(S) for S in given)
    return X, Y


def _discrepancies(
    kernels: tuple[Kernel, ...],
    pooled: Chunks,
    draws: Draws,
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> Array:
    """The unbiased discrepancy of each kernel and draw.

    Draws are w = 1_X - p. With F = w'Kw, R = w'K1 and T = 1'K1, the sum within X is
    F + 2 p R + p^2 T, and the others follow. K less g(x_i) + g(x_j) changes nothing.
    """
    m, n = sizes
    count = min(_REFERENCES, m + n)
    some = as_float64(pooled.rows(np.sort(rng.choice(m + n, count, replace=False))))
    forms = forms_in_pieces(pooled, [k.program for k in kernels], draws, some)
    F, R, T = forms.values, forms.linear, forms.total[:, None]
    p = draws.share
    within = F + 2.0 * p * R + p * p * T
    between = R + p * T - within
    other = T - within - 2.0 * between
    a, b, c = 1.0 / (m * (m - 1.0)), 1.0 / (n * (n - 1.0)), 2.0 / (m * float(n))
    values = within * a + other * b - between * c
    return equal_up_to_rounding(values, _MARGIN * (a + b + c) * forms.rounding)
