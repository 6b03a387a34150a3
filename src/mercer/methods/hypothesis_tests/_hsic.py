"""The Hilbert-Schmidt independence criterion of two paired samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, as_weights, check_flag, instance, one_of, positive_int
from mercer._chunks import Chunks
from mercer._random import as_generator
from mercer._tensors import as_double, check_alike, host, is_tensor, namespace
from mercer._threads import map_threads
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._forms_in_pieces import hsic_in_pieces
from mercer.methods.hypothesis_tests._mmd import mean_over_blocks, number_of, paired_values
from mercer.methods.hypothesis_tests._relabelling import CentredKernel
from mercer.methods.hypothesis_tests._tensor_statistics import offsets, tensor_pair_sums
from mercer.space import mean_embedding

_ESTIMATORS = ("unbiased", "biased", "incomplete", "block")
_TILE = 512  # rows and columns of the kernel matrices that are held at once
_BATCH = 64  # tiles between two additions, in a fixed order
_FEWEST = 4  # rows: the unbiased estimator needs four different ones


@refuses_overflow
def hsic(
    kernel_x: Kernel,
    X: Any,
    kernel_y: Kernel,
    Y: Any,
    *,
    weights: Any = None,
    estimator: str = "unbiased",
    centred: bool = True,
    n_tuples: int | None = None,
    block_size: int | None = None,
    random_state: Any = None,
) -> Any:
    """Return the Hilbert-Schmidt independence criterion, the squared norm |C_xy|^2.

    C_xy = E k(x, .) (x) l(y, .) - mu_x (x) mu_y is the covariance operator of x and y. The square
    is what most libraries report; the norm itself is `covariance(k, X, l, Y).norm()`. With
    K~ = HKH, H = I - 11'/n:

    - "biased": tr(K~ L~) / n^2, the squared norm of the empirical covariance operator, >= 0;
    - "unbiased": the mean over different i, j, q, r of
      h = (k_ij + k_qr - k_iq - k_jr) (l_ij + l_qr - l_iq - l_jr) / 4, whose expectation is the
      population value, so it is often below zero if x and y are independent;
    - "block": the mean of unbiased values of blocks of `block_size` rows, in time n block_size;
    - "incomplete": the mean of h over `n_tuples` random i, j, q, r, in time n_tuples.

    With kernels -|x - y| (`NegativeDistance()`), "biased" is the squared distance covariance.

    For tensors the result is a tensor with a gradient.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel
    X, Y : n points each, row i of one paired with row i of the other
    weights : array_like of shape (n,), optional
        Weights >= 0 of the pairs; a weight of 2 in a biased value is the same as repeating the
        pair. In unbiased ones a pair is never combined with itself.
    estimator : {"unbiased", "biased", "incomplete", "block"}, default="unbiased"
    centred : bool, default=True
        If False, the squared norm of the uncentred operator E k(x, .) (x) l(y, .), which is the
        mean of kx(x_i, x_j) ky(y_i, y_j): over i != j ("unbiased") or over all i, j ("biased").
    n_tuples : int, optional
        By default n.
    block_size : int, optional
        By default the square root of n; at least four.
    random_state : int, Generator, RandomState or None
        Draws the tuples of "incomplete".

    References
    ----------
    Gretton, Bousquet, Smola, Schoelkopf, Measuring statistical dependence with Hilbert-Schmidt
    norms, ALT 2005. Song, Smola, Gretton, Bedo, Borgwardt, Feature selection via dependence
    maximization, JMLR 13, 2012, theorem 2 (unbiased).

    Examples
    --------
    For linear kernels it is the squared covariance.

    >>> import mercer as mc
    >>> from mercer.methods import hsic
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0.0], [2.0], [4.0], [6.0]]
    >>> hsic(mc.Linear(), X, mc.Linear(), Y, estimator="biased")
    6.25
    """
    instance(kernel_x, Kernel, "kernel_x")
    instance(kernel_y, Kernel, "kernel_y")
    one_of(estimator, _ESTIMATORS, "estimator")
    check_flag(centred, "centred")
    x, y = kernel_x.points(X, "X", tensors=True), kernel_y.points(Y, "Y", tensors=True)
    check_alike(x.array, y.array, ("X", "Y"))
    if isinstance(x.array, Chunks) or isinstance(y.array, Chunks):
        if estimator not in ("biased", "unbiased") or weights is not None or not centred:
            raise InputError(
                "rows in pieces have the centred 'unbiased' and 'biased' estimators without "
                "weights; use all rows in memory for others"
            )
        unbiased = estimator == "unbiased"
        if unbiased:
            at_least_four(len(x))
        return hsic_in_pieces(kernel_x, x.array, kernel_y, y.array, unbiased=unbiased)[0]
    n = paired_rows(len(x), len(y))
    if estimator in ("incomplete", "block"):
        if weights is not None or not centred:
            raise InputError(f"the {estimator} estimator takes no weights and is centred")
        at_least_four(n)
        if estimator == "incomplete":
            return _incomplete(kernel_x, x, kernel_y, y, n_tuples, as_generator(random_state))
        return mean_over_blocks(
            lambda rows: hsic(kernel_x, x[rows], kernel_y, y[rows]), n, block_size, _FEWEST
        )
    w = as_weights(weights, n, like=x.array)
    if is_tensor(w):
        return _of_tensors((kernel_x, kernel_y), (x, y), w, estimator == "biased", centred)
    kx, ky = (
        centred_kernel(kernel, z, w) if centred else CentredKernel(kernel.program, z.array)
        for kernel, z in ((kernel_x, x), (kernel_y, y))
    )
    if estimator == "biased":
        sums = _pair_sums(kx, ky, w)
        return float(w @ sums.both[:, 0] + w**2 @ (kx.diagonal * ky.diagonal))
    if centred:
        at_least_four(int(np.count_nonzero(w)))
        return _unbiased(_pair_sums(kx, ky, w), w)
    if np.count_nonzero(w) < 2:
        raise InputError("the unbiased estimator needs two pairs with positive weight")
    return float(w @ _pair_sums(kx, ky, w).both[:, 0] / (1.0 - w @ w))


def paired_rows(n: int, m: int) -> int:
    """The common number of rows."""
    if n != m:
        raise InputError(f"X has {n} rows, but Y has {m}: they must be paired")
    return n


def at_least_four(n: int) -> None:
    """Refuse samples for which the unbiased estimator is not defined."""
    if n < _FEWEST:
        raise InputError(f"independence needs at least four pairs of positive weight, got {n}")


def centred_kernel(kernel: Kernel, x: Any, w: Array) -> CentredKernel:
    """K~: the kernel of the features minus their weighted mean."""
    means = mean_values(kernel, x, w)
    return CentredKernel(kernel.program, x.array, means - 0.5 * float(w @ means))


def mean_values(kernel: Kernel, x: Any, w: Array | None = None) -> Array:
    """The weighted mean of k(x_i, .) at each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.asarray(mean_embedding(kernel, x, weights=w)(x))
    if not np.isfinite(means).all():
        raise InputError(f"values of {kernel!r} overflow; bring the points nearer to 1")
    return means


def _of_tensors(kernels: Any, points: Any, w: Any, biased: bool, centred: bool) -> Any:
    """The same criterion for tensors, computed in float64."""
    xp, wide = namespace(w), as_double(w)
    wide = wide / xp.sum(wide)  # one in float64, too
    used = int(np.count_nonzero(host(w)))
    if not biased and centred:
        at_least_four(used)
    if not biased and used < 2:
        raise InputError("the unbiased estimator needs two pairs with positive weight")
    points = [replace(z, array=as_double(z.array)) for z in points]
    both = list(zip(kernels, points, strict=True))
    shifts = [offsets(k, z, wide) if centred else 0.0 * wide for k, z in both]
    sums = _PairSums(*tensor_pair_sums(kernels, [z.array for z in points], shifts, wide))
    if centred and not biased:
        value = _unbiased(sums, wide)
    elif biased:
        own, other = (
            as_double(k.diag(z)) - 2.0 * g for (k, z), g in zip(both, shifts, strict=True)
        )
        value = wide @ sums.both[:, 0] + wide**2 @ (own * other)
    else:
        value = wide @ sums.both[:, 0] / (1.0 - wide @ wide)
    return xp.astype(value, w.dtype, copy=False)


class _PairSums(NamedTuple):
    """Sums over j != i with the weights w_j, w_j^2, w_j^3 in columns."""

    k: Array  # of k_ij
    ky: Array
    both: Array  # of k_ij l_ij


def _pair_sums(kx: CentredKernel, ky: CentredKernel, w: Array) -> _PairSums:
    """The sums over pairs of rows, a tile of both matrices at a time."""
    n, powers = len(w), np.stack([w, w**2, w**3], axis=1)
    blocks = list(pieces(n, _TILE))
    jobs = [(a, b) for a in blocks for b in blocks if a.start <= b.start]

    def job(at: tuple[slice, slice]) -> list[tuple[Array, Array]]:
        rows, columns = at
        K, L = kx.tile(rows, columns), ky.tile(rows, columns)
        if rows == columns:
            np.fill_diagonal(K, 0.0)
            np.fill_diagonal(L, 0.0)
        return [(T @ powers[columns], T.T @ powers[rows]) for T in (K, L, K * L)]

    out = np.zeros((3, n, 3))
    for batch in pieces(len(jobs), _BATCH):
        for (rows, columns), parts in zip(jobs[batch], map_threads(job, jobs[batch]), strict=True):
            for total, (down, across) in zip(out, parts, strict=True):
                total[rows] += down
                if rows != columns:
                    total[columns] += across
    return _PairSums(*out)


def _unbiased(sums: _PairSums, w: Array) -> Any:
    """The weighted mean of h over tuples of different rows: E k_ij l_ij - 2 E k_ij l_iq + ...

    Sums over different rows are sums over all rows minus those with equal ones.
    """
    u, u2 = sums.k[:, 0], sums.k[:, 1]
    v, v2 = sums.ky[:, 0], sums.ky[:, 1]
    s, s2, s3 = (sums.both[:, c] for c in range(3))
    S2, S3, S4 = (number_of(namespace(w).sum(w**p)) for p in (2, 3, 4))
    same = w @ ((1 - 2 * w + 2 * w**2 - S2) * s + (2 * w - 2) * s2 + 2 * s3)
    shared = w @ ((1 - w) * (u * v - s2) - u2 * v - u * v2 + 2 * s3)
    apart = (w @ u) * (w @ v) - 4 * (w**2 @ (u * v - s2)) - 2 * (w**2 @ s2)
    tuples = 1 - 6 * S2 + 3 * S2**2 + 8 * S3 - 6 * S4  # weight of tuples of different rows
    return number_of((same - 2 * shared + apart) / tuples)


def _incomplete(
    kx: Kernel, x: Any, ky: Kernel, y: Any, n_tuples: int | None, rng: np.random.Generator
) -> Any:
    """The mean of h over random tuples of different rows, a block at a time."""
    dtype = x.array.dtype
    if is_tensor(x.array):
        x, y = (replace(z, array=as_double(z.array)) for z in (x, y))
    n, total = len(x), number_of(0.0)
    count = n if n_tuples is None else positive_int(n_tuples, "n_tuples")
    for at in pieces(count, 4096):
        rows = _different_rows(n, at.stop - at.start, rng)

        def contrast(kernel: Kernel, z: Any, rows: tuple[Array, ...]) -> Array:
            a, b, c, d = (z[index] for index in rows)
            out = paired_values(kernel, a, b) + paired_values(kernel, c, d)
            return out - paired_values(kernel, a, c) - paired_values(kernel, b, d)

        total = total + 0.25 * number_of(contrast(kx, x, rows) @ contrast(ky, y, rows))
    value = total / count
    return namespace(value).astype(value, dtype, copy=False) if is_tensor(value) else value


def _different_rows(n: int, count: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Four different row numbers, `count` times, all tuples equally likely."""
    chosen: list[Array] = []
    for taken in range(_FEWEST):
        new = rng.integers(0, n - taken, size=count)
        for old in np.sort(np.array(chosen).reshape(taken, count), axis=0):
            new = new + (new >= old)  # skip what was chosen before
        chosen.append(new)
    return tuple(chosen)
