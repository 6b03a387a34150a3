"""Constrained covariance: the largest covariance of f(x) and g(y) over functions of norm one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, Points, instance, positive_int
from mercer._threads import interruptible, map_threads
from mercer.engine import as_float64, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel
from mercer.linalg import pivoted_cholesky
from mercer.linalg._dense import all_pairs
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._hsic import centred_kernel, paired_rows
from mercer.methods.hypothesis_tests._hsic_permutations import permutations
from mercer.methods.hypothesis_tests._kernel_grid import root_mean_squares
from mercer.methods.hypothesis_tests._resampling import Blocks, Drawn, seeded
from mercer.methods.hypothesis_tests._result import TestResult, effect_interval, recorded
from mercer.methods.hypothesis_tests._variables import variables
from mercer.space import Element

_DENSE = 2048  # rows up to which all eigenvectors are found
_LARGEST_RANK = 1000  # beyond that many rows
_SMALLEST = 1e-3  # over n, of the largest eigenvalue: smaller ones hardly change random statistics
_ZERO = 1e-10  # of the largest kernel value: far above rounding
_CONVERGED = 1e-7  # relative change of a singular value: products are in float32
_ITERATIONS = 100  # at most; they usually converge after ten or so
_LANCZOS = 64  # smaller side of a matrix from which on Lanczos iterations find one singular value
_EQUAL = 1e-12  # share that rounding leaves of features that are equal in each block
_FEWEST = 4  # rows of a block that is divided: two for each half
_AT_ONCE = 1 << 20  # numbers in the products of draws that are decomposed at once


@refuses_overflow
def coco(kernel_x: Kernel, X: Any, kernel_y: Kernel, Y: Any) -> float:
    """Return the constrained covariance: sup cov(f(x), g(y)) over |f| <= 1, |g| <= 1.

    It is the largest singular value of the empirical covariance operator,
    |K~^(1/2) L~^(1/2)| / n with K~ = HKH, zero only if no pair of functions in the two spaces is
    correlated. HSIC is the sum of the squares of all singular values.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel
    X, Y : n points each, row i of one paired with row i of the other

    Notes
    -----
    Computed from factors K~ = FF' and L~ = GG', on the ranges of both matrices: from all
    eigenvectors up to 2,048 rows, above from pivoted Cholesky factors of rank 1,000 at most.

    References
    ----------
    Gretton, Herbrich, Smola, Bousquet, Schoelkopf, Kernel methods for measuring independence,
    JMLR 6, 2005, section 2.

    Examples
    --------
    For linear kernels it is the absolute covariance.

    >>> import mercer as mc
    >>> from mercer.methods import coco
    >>> round(coco(mc.Linear(), [[0.0], [1.0], [2.0]], mc.Linear(), [[0.0], [-3.0], [-6.0]]), 6)
    2.0
    """
    F, G, _, _ = _checked(kernel_x, X, kernel_y, Y)
    return float(np.linalg.norm(F.T @ G, 2)) / len(F)


def coco_witness(
    kernel_x: Kernel, X: Any, kernel_y: Kernel, Y: Any
) -> tuple[Element, Element] | None:
    """Return the functions f and g of norm one with the largest covariance.

    f = sum_i a_i (k(x_i, .) - mu_x) and likewise g with b.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel
        The kernels of the two variables.
    X, Y : array_like of shape (n, d_x), (n, d_y)
        Paired rows.

    Returns
    -------
    pair of Elements, or None
        f and g; None if all covariances are zero.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.methods import coco_witness
    >>> f, g = coco_witness(mc.Linear(), [[0.0], [1.0]], mc.Linear(), [[0.0], [2.0]])
    >>> round(float(f.norm()), 6), round(float(g.norm()), 6)
    (1.0, 1.0)
    """
    F, G, x, y = _checked(kernel_x, X, kernel_y, Y)
    return witness_pair(kernel_x, x, F, kernel_y, y, G)


def witness_pair(
    kernel_x: Kernel, x: Any, F: Array, kernel_y: Kernel, y: Any, G: Array
) -> tuple[Element, Element] | None:
    """The functions of the largest singular value s of F'G.

    With singular vectors u and v, a = G v / s and b = F u / s: a'K~a = |F'a|^2 = |u|^2 = 1, without
    a division by small eigenvalues.
    """
    if F.size == 0 or G.size == 0:
        return None
    left, value, right = _largest(F.T @ G)
    if value == 0.0:
        return None
    a, b = G @ right / value, F @ left / value
    return Element(kernel_x, x, a), Element(kernel_y, y, b)


def leading_pair(
    product_x: Callable[[Array], Array], product_y: Callable[[Array], Array], n: int
) -> tuple[Array, Array] | None:
    """Coefficients a and b of `witness_pair` from products with K~ and L~ alone.

    Golub-Kahan-Lanczos bidiagonalisation of F'G. Its vectors F'a and G'b are stored as a and b,
    with the inner products a'K~a and b'L~b; the next are L~b and K~a. The matrices are scaled to
    entries of at most about one. None if they vanish, or turn out not to be positive semi-definite.

    References
    ----------
    Golub, Kahan, Calculating the singular values and pseudo-inverse of a matrix, 1965.
    """
    left, right = _Basis(product_x, n), _Basis(product_y, n)
    grew = right.add(np.random.default_rng(0).normal(size=n))
    value, u, v = 0.0, np.zeros(0), np.zeros(0)
    diagonal: list[float] = []
    above: list[float] = []
    for _ in range(_ITERATIONS):
        if not (grew and left.add(right.products[-1])):
            break
        diagonal.append(float(left.products[-1] @ right.products[-1]))
        last = value
        u, value, v = _largest(np.diag(diagonal) + np.diag(above, 1))
        if value - last <= _CONVERGED * value:
            break
        grew = right.add(left.products[-1])
        above.append(float(left.products[-1] @ right.products[-1]))
    if value == 0.0 or left.indefinite or right.indefinite:
        return None
    a, b = np.zeros(n), np.zeros(n)
    for i in range(len(u)):
        a += u[i] * left.vectors[i]
        b += v[i] * right.vectors[i]
    return a, b


class _Basis:
    """Vectors of mean zero, orthonormal in the inner product a'Ma, and their products with M."""

    def __init__(self, product: Callable[[Array], Array], n: int) -> None:
        self.product, self.n, self.indefinite = product, n, False
        self.vectors: list[Array] = []
        self.products: list[Array] = []

    def add(self, a: Array) -> bool:
        """Add a direction; False if nothing new is left of it."""
        size = float(np.linalg.norm(a))
        a = a - a.mean()
        for _ in range(2):  # once is not orthogonal enough
            for vector, product in zip(self.vectors, self.products, strict=True):
                a -= (product @ a) * vector
        Ma = self.product(a)
        squared, least = float(a @ Ma), _ZERO * size**2
        self.indefinite |= squared < -least
        if squared <= least:
            return False
        self.vectors.append(a / np.sqrt(squared))
        self.products.append(Ma / np.sqrt(squared))
        return True


def _largest(M: Array) -> tuple[Array, float, Array]:
    """The largest singular value and its vectors."""
    if min(M.shape) < _LANCZOS:
        U, s, V = interruptible(np.linalg.svd, M, False)
    else:
        from scipy.sparse.linalg import svds  # slow to import

        U, s, V = svds(M, k=1, v0=np.ones(min(M.shape)))
    return U[:, 0], float(s[0]), V[0]


def range_factor(kernel: Kernel, x: Any) -> Array:
    """FF' = K~ on its range: from eigenvectors, or for many rows of low rank."""
    n, definite = len(x), kernel.flags.definiteness is not Definiteness.CONDITIONAL
    if n > _DENSE and definite:
        low = pivoted_cholesky(kernel, x, max_rank=_LARGEST_RANK)
        return np.asarray(low.factor - low.factor.mean(axis=0))
    k = centred_kernel(kernel, x, np.full(n, 1.0 / n))
    values, vectors = all_pairs(k.tile(slice(None), slice(None)))
    size = float(np.abs(k.g).max() + np.abs(k.diagonal).max())  # of what was subtracted, and left
    rounding = 4.0 * n * float(np.finfo(np.float64).eps) * size
    if values[0] < -max(1e-6 * values[-1], n * rounding):
        raise InputError(f"{kernel!r} is not positive definite on these points")
    used = values > rounding
    return np.asarray(vectors[:, used] * np.sqrt(values[used]))


@recorded
@refuses_overflow
def coco_test(
    X: Any,
    Y: Any,
    *,
    kernel: Any = "median",
    blocks: Any = None,
    n_permutations: int = 2000,
    random_state: Any = None,
) -> TestResult:
    """Test independence by the largest covariance of functions of x and of y.

    The statistic is `coco`. The null distribution comes from random permutations of the rows
    of Y. It answers which functions of x and y are most correlated; `hsic_test`, which sums over
    all of them and over bandwidths, is the more powerful test in most cases.

    Parameters
    ----------
    X, Y : n points each, row i of one paired with row i of the other
    kernel : "median", None or pair, default="median"
        As in `hsic_test`; one Gaussian for each variable by default, because each permutation
        needs a decomposition for each pair of kernels.
    blocks : array_like of shape (n,), optional
        The block of each row, as in `hsic_test`: covariances are those within blocks, and rows of Y
        are permuted within their block only.
    n_permutations : int, default=2000
        Random draws; the smallest possible p-value is 1 / (n_permutations + 1).
    random_state : int, Generator, RandomState or None

    Returns
    -------
    TestResult
        The effect size is the correlation of f(x) and g(y) on rows that did not choose f and g: the
        functions of a random half of the rows are evaluated on the other half, and the other
        way round. On the rows that chose them, functions are always correlated. `witness` has the
        functions of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import coco_test
    >>> x = np.random.default_rng(0).normal(size=(60, 1))
    >>> result = coco_test(x, x**2, random_state=0)
    >>> f, g = result.witness
    >>> result.pvalue < 0.001
    True
    """
    n_draws = positive_int(n_permutations, "n_permutations")
    seed, rng = seeded(random_state)
    arrays, kernels = variables([X, Y], kernel, rng)
    n = n_rows(arrays[0])
    within = Blocks.of(blocks, n)
    pairs = [(kx, ky) for kx in kernels[0] for ky in kernels[1]]
    F, G = (
        [_factor(k, Points(as_float64(Z), k.domain), within) for k in chosen]
        for Z, chosen in zip(arrays, kernels, strict=True)
    )
    shortened = [[_large(f, n) for f in factors] for factors in (F, G)]
    draws = np.concatenate([draw() for draw in permutations(n, n_draws, rng, within)])
    statistics = np.array([_norms(f, g, draws) for f in shortened[0] for g in shortened[1]]) / n
    statistics -= statistics.mean(axis=1, keepdims=True)  # the same shift for all draws
    sizes = [root_mean_squares(k, Z, rng) for k, Z in zip(kernels, arrays, strict=True)]
    drawn = Drawn.of(statistics, np.sqrt(np.outer(*sizes).ravel()))
    i, j = divmod(drawn.best, len(kernels[1]))
    kx, ky = pairs[drawn.best]
    x, y = (Points(as_float64(Z), k.domain) for Z, k in zip(arrays, (kx, ky), strict=True))
    return TestResult(
        question="Are the variables independent?",
        statistic=float(np.linalg.norm(F[i].T @ G[j], 2)) / n,
        null="permutation",
        n=(n,),
        seed=seed,
        witness=witness_pair(kx, x, F[i], ky, y, G[j]),
        **drawn.fields(pairs),
        **_correlation(F[i], G[j], within, rng),
    )


def _large(f: Array, n: int) -> Array:
    """The directions of a factor that can matter for the largest singular value.

    The square of |F'G| changes by at most |E_K| |L~|; under independence it is about |K~| |L~| / n.
    """
    U, s, _ = interruptible(np.linalg.svd, f, False)
    used = s**2 > _SMALLEST / n * (s[0] ** 2 if s.size else 0.0)
    return np.asarray(U[:, used] * s[used])


def _norms(F: Array, G: Array, draws: Array) -> Array:
    """|F' P G| for each permutation, largest singular values."""
    if F.size == 0 or G.size == 0:
        return np.zeros(len(draws))
    size = max(1, _AT_ONCE // (max(F.shape) * G.shape[1]))

    def job(at: slice) -> Array:
        M = F.T @ np.take(G, draws[at], axis=0)
        small = M @ M.transpose(0, 2, 1) if M.shape[1] <= M.shape[2] else M.transpose(0, 2, 1) @ M
        return np.sqrt(np.maximum(np.linalg.eigvalsh(small)[:, -1], 0.0))

    return np.concatenate(map_threads(job, list(pieces(len(draws), size))))


def _factor(kernel: Kernel, x: Any, blocks: Blocks | None) -> Array:
    """`range_factor` of the features less the mean of their block."""
    F = range_factor(kernel, x)
    if blocks is None:
        return F
    centred = blocks.centred(F)
    equal = np.linalg.norm(centred) <= _EQUAL * np.linalg.norm(F)
    return centred[:, :0] if equal else centred


def _correlation(
    F: Array, G: Array, blocks: Blocks | None, rng: np.random.Generator
) -> dict[str, Any]:
    """The correlation of f(x) and g(y) on rows that did not choose f and g, and its interval.

    Two random halves choose functions for each other. Blocks of fewer than four rows are in one of
    them, and features lose their mean in each half of a block, so that no half knows of the other.
    """
    n = len(F)
    half = rng.permutation(n) % 2
    if blocks is not None:
        whole = rng.integers(0, 2, len(blocks.sizes))[blocks.index]
        half = np.where(blocks.sizes[blocks.index] < _FEWEST, whole, half)
    parts = half if blocks is None else 2 * blocks.index + half
    cells = Blocks(np.unique(parts, return_inverse=True)[1])
    F, G = cells.centred(F), cells.centred(G)
    f, g = np.zeros(n), np.zeros(n)
    for own in (half == 0, half == 1):
        M = F[~own].T @ G[~own]
        if M.any():
            left, _, right = _largest(M)
            f[own], g[own] = F[own] @ left, G[own] @ right
    size = float(np.linalg.norm(f) * np.linalg.norm(g))
    if size == 0.0:
        return effect_interval(0.0, 0.0, 0.0, 0.0)
    r, free = float(f @ g) / size, 0.5 * (n - len(cells.sizes))  # both halves may err alike
    return effect_interval(r, (1.0 - r**2) ** 2 / free, 1.0, 0.0)


def _checked(
    kernel_x: Kernel, X: Any, kernel_y: Kernel, Y: Any
) -> tuple[Array, Array, Points, Points]:
    """Factors of both centred matrices, and the points."""
    x = instance(kernel_x, Kernel, "kernel_x").points(X, "X")
    y = instance(kernel_y, Kernel, "kernel_y").points(Y, "Y")
    paired_rows(len(x), len(y))
    x, y = (Points(as_float64(z.array), z.domain) for z in (x, y))
    return range_factor(kernel_x, x), range_factor(kernel_y, y), x, y
