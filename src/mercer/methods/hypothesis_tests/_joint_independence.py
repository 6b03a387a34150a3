"""Joint independence of several variables by dHSIC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, Points, instance, positive_int
from mercer._config import get_options
from mercer._progress import tracked
from mercer._threads import map_threads, stop_if_interrupted
from mercer.engine import as_float64, gram, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._hsic import mean_values, paired_rows
from mercer.methods.hypothesis_tests._kernel_grid import root_mean_squares
from mercer.methods.hypothesis_tests._resampling import Drawn, seeded, shuffled
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval, recorded
from mercer.methods.hypothesis_tests._variables import variables

_TILE = 512  # rows and columns of the kernel matrices that are held at once
_AT_ONCE = 16  # draws in one task

Tile = Callable[[Array, Array], Array]


@refuses_overflow
def dhsic(kernels: Any, variables: Any) -> float:
    """Return dHSIC, |mu_P - mu_1 (x) ... (x) mu_d|^2: the joint dependence of d variables.

    mu_P is the mean of k_1(x_1, .) (x) ... (x) k_d(x_d, .) and mu_v that of one variable, of the
    empirical distribution: a squared norm, >= 0. For two variables it is the biased `hsic`.

    Parameters
    ----------
    kernels : sequence of Kernel, one for each variable
    variables : sequence of n points each, row i of one belonging to row i of the others

    References
    ----------
    Pfister, Buehlmann, Schoelkopf, Peters, Kernel-based tests for joint independence, JRSS B 80,
    2018.

    Examples
    --------
    Any two of these are independent, but not all three.

    >>> import mercer as mc
    >>> from mercer.methods import dhsic, hsic
    >>> x, y = [[0.0], [0.0], [1.0], [1.0]], [[0.0], [1.0], [0.0], [1.0]]
    >>> z, k = [[0.0], [1.0], [1.0], [0.0]], mc.Gaussian(1.0)
    >>> dhsic([k, k, k], [x, y, z]) > 0.001 > hsic(k, x, k, z, estimator="biased")
    True
    """
    for value, name in ((kernels, "kernels"), (variables, "variables")):
        if not isinstance(value, list | tuple):
            raise InputError(f"{name} must be a list, got {type(value).__name__}")
    if len(kernels) != len(variables) or len(kernels) < 2:
        raise InputError(
            f"dhsic needs two or more variables and a kernel for each, got {len(kernels)} kernels "
            f"and {len(variables)} variables"
        )
    points = [
        instance(k, Kernel, f"kernel {i + 1}").points(X, f"variable {i + 1}")
        for i, (k, X) in enumerate(zip(kernels, variables, strict=True))
    ]
    for x in points[1:]:
        paired_rows(len(points[0]), len(x))
    arrays = [as_float64(x.array) for x in points]
    same = np.repeat(np.arange(len(points[0]))[None], len(arrays), axis=0)
    return float(_Joint(tuple(kernels), arrays).statistics(same[:, None])[0])


@recorded
@refuses_overflow
def dhsic_test(
    *variables_: Any, kernel: Any = None, n_permutations: int = 500, random_state: Any = None
) -> TestResult:
    """Test whether several variables are jointly independent.

    The statistic is `dhsic`. The null distribution comes from permuting the rows of each
    variable but the first, so the p-value (b + 1) / (m + 1) is exact for every sample size.

    Parameters
    ----------
    *variables_ : two or more variables, n points each
        Arrays of shape (n, d), frames, or points of the kernels; row i belongs to row i of the
        others.
    kernel : sequence or "median", optional
        One entry per variable: a kernel, several kernels (equally many for each variable),
        "median" or None. The first kernels of all variables are used together, then the
        second ones, and so on, and these are combined. By default Gaussian kernels at four
        bandwidths for each variable.
    n_permutations : int, default=500
        Random draws. Each passes over n^2 products of kernel values, for all kernels.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    TestResult
        The effect size is dHSIC, less its mean over the permutations because dHSIC is positive for
        independent variables too, over the geometric mean of its values for d copies of one
        variable; its interval treats these as known. There is no witness.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import dhsic_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.choice([-1.0, 1.0], size=(2, 60, 1))
    >>> dhsic_test(x, y, x * y, random_state=0).pvalue
    0.001996007984031936
    """
    n_draws = positive_int(n_permutations, "n_permutations")
    if len(variables_) < 2:
        raise InputError("joint independence needs at least two variables")
    seed, rng = seeded(random_state)
    arrays, kernels = variables(list(variables_), kernel, rng)
    if len({len(k) for k in kernels}) > 1:
        counts = [len(k) for k in kernels]
        most = max(counts)
        if set(counts) - {1, most}:
            raise InputError(f"variables need equally many kernels, or one, got {counts}")
        kernels = [k * most if len(k) == 1 else k for k in kernels]
    n, sets = n_rows(arrays[0]), list(zip(*kernels, strict=True))
    rows = np.arange(n, dtype=np.int32)
    draws = np.stack(
        [np.repeat(rows[None], n_draws + 1, axis=0)]
        + [shuffled(rows, n_draws, rng) for _ in arrays[1:]]
    )
    joint = [_Joint(k, arrays) for k in sets]
    statistics = np.array([j.statistics(draws) for j in tracked(joint, "kernels")])
    sizes = [root_mean_squares(k, Z, rng) for k, Z in zip(kernels, arrays, strict=True)]
    moved = statistics - statistics.mean(axis=1, keepdims=True)  # the same shift for all draws
    drawn = Drawn.of(moved, np.prod(sizes, axis=0))
    observed, others = statistics[drawn.best, 0], statistics[drawn.best, 1:]
    effect = joint[drawn.best].effect(float(observed - others.mean()))
    return TestResult(
        question="Are the variables jointly independent?",
        statistic=float(observed),
        null="permutation",
        n=(n,),
        seed=seed,
        witness=None,
        **drawn.fields(sets),
        **effect_interval(*effect, drawn.spread),
    )


class _Joint:
    """dHSIC of permuted variables, for one kernel of each."""

    def __init__(self, kernels: tuple[Kernel, ...], arrays: list[Any]) -> None:
        self.kernels, self.n = kernels, n_rows(arrays[0])
        self.arrays = [as_float64(Z) for Z in arrays]
        points = [Points(Z, k.domain) for k, Z in zip(kernels, self.arrays, strict=True)]
        self.means = [mean_values(k, x) for k, x in zip(kernels, points, strict=True)]
        whole = 8.0 * self.n**2 * len(kernels) <= get_options().working_memory * 2**20
        self.tiles = [_tile(k, Z, whole) for k, Z in zip(kernels, self.arrays, strict=True)]

    def statistics(self, draws: Array) -> Array:
        """For each draw: the rows of each variable, shape (d, n_draws, n)."""
        tasks = list(pieces(draws.shape[1], _AT_ONCE))

        def job(at: slice) -> list[float]:
            return [self._one(draws[:, b]) for b in range(at.start, at.stop)]

        return np.concatenate(map_threads(job, tasks))

    def _one(self, perms: Array) -> float:
        rows = np.prod([m[p] for m, p in zip(self.means, perms, strict=True)], axis=0)
        total = sum(self._products(perms, at).sum() for at in pieces(self.n, _TILE))
        means = np.prod([m.mean() for m in self.means])
        return float(total / self.n**2 + means - 2.0 * rows.mean())

    def _products(self, perms: Array, rows: slice) -> Array:
        """Row sums of the product of all matrices."""
        out = np.zeros(rows.stop - rows.start)
        for columns in pieces(self.n, _TILE):
            stop_if_interrupted()
            tile = self.tiles[0](perms[0][rows], perms[0][columns])
            for take, perm in zip(self.tiles[1:], perms[1:], strict=True):
                tile = tile * take(perm[rows], perm[columns])
            out += tile.sum(axis=1)
        return out

    def effect(self, value: float) -> tuple[float, float, float]:
        """The ratio of the value to that of copies of a variable, its variance, and the divisor."""
        d, n = len(self.kernels), self.n
        same = np.repeat(np.arange(n)[None], d, axis=0)
        own = [
            _Joint((k,) * d, [Z] * d)._one(same)
            for k, Z in zip(self.kernels, self.arrays, strict=True)
        ]
        if min(own) <= 0.0:
            return 0.0, 0.0, 0.0
        unit = float(np.exp(np.mean(np.log(own))))
        # of each row: 2 <mu_P - product, features - sum over v of v's feature (x) other means>
        both = np.concatenate([self._products(same, at) for at in pieces(n, _TILE)]) / n
        influence = both - np.prod(self.means, axis=0)
        for v, (take, mean) in enumerate(zip(self.tiles, self.means, strict=True)):
            others = [m for u, m in enumerate(self.means) if u != v]
            weights = np.prod(others, axis=0)
            every = np.arange(n)
            sums = [take(every[at], every) @ weights / n for at in pieces(n, _TILE)]
            influence -= np.concatenate(sums) - mean * np.prod([m.mean() for m in others])
        return value / unit, float(np.var(2.0 * influence / unit)) / n, unit


def _tile(kernel: Kernel, Z: Any, whole: bool) -> Tile:
    """Values at chosen rows and columns: from the matrix, or computed if it is too large."""
    if not whole:
        return lambda rows, columns: gram(kernel.program, Z[rows], Z[columns])
    n = n_rows(Z)
    K = np.asarray(gram(kernel.program, Z, Z), dtype=np.float64).ravel()
    return lambda rows, columns: K.take(rows.astype(np.int64)[:, None] * n + columns)
