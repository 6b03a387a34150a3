"""The squared maximum mean discrepancy of two samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array, as_weights, check_same_columns, instance, one_of, positive_int
from mercer._chunks import Chunks
from mercer._random import as_generator
from mercer._tensors import as_double, check_alike, float_bits, host, is_tensor, namespace
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._forms_in_pieces import within_in_pieces
from mercer.methods.hypothesis_tests._resampling import Blocks
from mercer.space import Element, feature, mean_embedding

_ESTIMATORS = ("unbiased", "biased", "incomplete", "block")


@refuses_overflow
def mmd(
    kernel: Kernel,
    X: Any,
    Y: Any,
    *,
    weights: Any = None,
    estimator: str = "unbiased",
    n_pairs: int | None = None,
    block_size: int | None = None,
    random_state: Any = None,
) -> Any:
    """Return the squared maximum mean discrepancy of two samples, |mu_P - mu_Q|^2.

    mu_P = E k(x, .) is the mean embedding of P. The square is what most libraries report; the
    distance itself is `witness(kernel, X, Y).norm()`.

    - "biased": the squared distance of the empirical mean embeddings, >= 0;
    - "unbiased": mean_{i != j} k(x_i, x_j) + mean_{i != j} k(y_i, y_j) - 2 mean k(x_i, y_j), whose
      expectation is the population value, so it is below zero about half of the time if P = Q;
    - "block": the mean of unbiased values of blocks of `block_size` rows, in time n block_size;
    - "incomplete": the mean of h(i, j) = k(x_i, x_j) + k(y_i, y_j) - k(x_i, y_j) - k(x_j, y_i) over
      `n_pairs` pairs i != j drawn at random, in time n_pairs.

    The last two pair row i of X with row i of Y, and ignore rows that have no partner.

    For tensors the result is a tensor with a gradient: a loss that makes one sample like another.

    Parameters
    ----------
    kernel : Kernel
    X, Y : points of the two samples
    weights : (array_like, array_like), optional
        Weights >= 0 of the rows of X and of Y; a weight of 2 in a biased value is the same as
        repeating the row. In unbiased ones a row is never paired with itself.
    estimator : {"unbiased", "biased", "incomplete", "block"}, default="unbiased"
    n_pairs : int, optional
        By default the number of pairs of rows with a partner, as many as a linear-time test has.
    block_size : int, optional
        By default the square root of the number of rows.
    random_state : int, Generator, RandomState or None
        Draws the pairs of "incomplete".

    References
    ----------
    Gretton, Borgwardt, Rasch, Schoelkopf, Smola, A kernel two-sample test, JMLR 13, 2012, equations
    (2), (3) and (5); the cross term is divided by m n.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.methods import mmd
    >>> mmd(mc.Linear(), [[0.0], [2.0]], [[3.0], [5.0]], estimator="biased")
    9.0
    >>> mmd(mc.Linear(), [[0.0], [2.0]], [[3.0], [5.0]])
    7.0
    """
    instance(kernel, Kernel, "kernel")
    one_of(estimator, _ESTIMATORS, "estimator")
    x, y = kernel.points(X, "X", tensors=True), kernel.points(Y, "Y", tensors=True)
    check_alike(x.array, y.array, ("X", "Y"))
    check_same_columns(x, y)
    if isinstance(x.array, Chunks) or isinstance(y.array, Chunks):
        return _in_pieces(kernel, x, y, weights, estimator)
    if is_tensor(x.array) and float_bits(x.array) == 32:
        wide, weights = _in_float64(x, y, weights)
        how: Any = {"n_pairs": n_pairs, "block_size": block_size, "random_state": random_state}
        value = mmd(kernel, *wide, weights=weights, estimator=estimator, **how)
        return namespace(value).astype(value, x.array.dtype)
    if estimator in ("biased", "unbiased"):
        v, w = _both(weights)
        v = as_weights(v, len(x), like=x.array)
        w = as_weights(w, len(y), like=y.array)
        if estimator == "biased" and is_tensor(v):  # without the root
            terms = (_all_pairs(kernel, x, v), _all_pairs(kernel, y, w))
            return sum(terms) - 2.0 * _cross(kernel, x, v, y, w)
        if estimator == "biased":
            difference = mean_embedding(kernel, x, weights=v) - mean_embedding(kernel, y, weights=w)
            return float(difference.norm()) ** 2
        return _within(kernel, x, v) + _within(kernel, y, w) - 2.0 * _cross(kernel, x, v, y, w)
    if weights is not None:
        raise InputError(f"the {estimator} estimator takes no weights; use 'unbiased'")
    n = min(len(x), len(y))
    if n < 2:
        raise InputError(f"the {estimator} estimator needs two rows of X and of Y")
    if estimator == "block":
        return mean_over_blocks(lambda rows: mmd(kernel, x[rows], y[rows]), n, block_size, 2)
    return _incomplete(kernel, x, y, n, n_pairs, as_generator(random_state))


def witness(kernel: Kernel, X: Any, Y: Any, *, weights: Any = None) -> Element:
    """Return the witness mu_P - mu_Q: positive where P outweighs Q, negative where Q does.

    The function f of norm one with the largest difference of means over the two samples is
    `witness / witness.norm()`, and that difference is the norm of the witness.

    Parameters
    ----------
    kernel : Kernel
        k.
    X, Y : array_like of shape (m, d), (n, d)
        The samples of P and Q.
    weights : pair of array_like, optional
        As for `mmd`.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.methods import witness
    >>> f = witness(mc.Gaussian(1.0), [[0.0]], [[3.0]])
    >>> f([[0.0], [1.5], [3.0]]).round(3)
    array([ 0.989,  0.   , -0.989])
    """
    v, w = _both(weights)
    return mean_embedding(kernel, X, weights=v) - mean_embedding(kernel, Y, weights=w)


def witness_in_blocks(
    kernel: Kernel, samples: list[Any], weights: list[Array], blocks: Blocks | None
) -> Element | None:
    """The difference d of two samples; None if no block has rows of both."""
    if blocks is None:
        return witness(kernel, *samples, weights=weights)
    parts = np.split(blocks.index, [len(weights[0])])
    W, V = (np.bincount(b, w, len(blocks.sizes)) for b, w in zip(parts, weights, strict=True))
    c = W * V / (W + V)
    if not c.any():
        return None
    scaled = [
        w * (c / np.where(M > 0, M, 1.0))[b] for w, M, b in zip(weights, (W, V), parts, strict=True)
    ]
    return witness(kernel, *samples, weights=scaled)


def _both(weights: Any) -> tuple[Any, Any]:
    """The weights of X and of Y."""
    if weights is None:
        return None, None
    if not isinstance(weights, list | tuple) or len(weights) != 2:
        raise InputError("weights must be a pair, the weights of X and those of Y")
    return weights[0], weights[1]


def _in_float64(x: Any, y: Any, weights: Any) -> tuple[list[Any], Any]:
    """Samples and weights of float32 tensors: terms of about the same size are subtracted."""
    both = _both(weights)
    for z, w in zip((x, y), both, strict=True):
        if is_tensor(w):
            check_alike(z.array, w, ("the points", "weights"))
    wide = [replace(z, array=as_double(z.array)) for z in (x, y)]
    if weights is None:
        return wide, None
    return wide, [as_double(w) if is_tensor(w) else w for w in both]


def _in_pieces(kernel: Kernel, x: Any, y: Any, weights: Any, estimator: str) -> float:
    """The discrepancy of samples of which one at least comes in pieces."""
    if estimator not in ("biased", "unbiased"):
        raise InputError(
            f"estimator={estimator!r} pairs rows of samples in memory; use 'unbiased' or 'biased' "
            "for rows in pieces"
        )
    v, w = _both(weights)
    means = [mean_embedding(kernel, z, weights=u) for z, u in ((x, v), (y, w))]
    if estimator == "biased":
        return float((means[0] - means[1]).norm()) ** 2
    within = [
        within_in_pieces(kernel, z.array, u, unbiased=True)
        if isinstance(z.array, Chunks)
        else _within(kernel, z, as_weights(u, len(z)))
        for z, u in ((x, v), (y, w))
    ]
    return within[0] + within[1] - 2.0 * float(means[0].inner(means[1]))


def mean_over_blocks(
    statistic: Callable[[slice], Any], n: int, block_size: int | None, fewest: int
) -> Any:
    """The mean over blocks of rows, of at least `fewest`; left-over rows are not used."""
    size = int(np.sqrt(n)) if block_size is None else positive_int(block_size, "block_size")
    size = min(max(size, fewest), n)
    values = [statistic(slice(i, i + size)) for i in range(0, n - size + 1, size)]
    return sum(values[1:], start=values[0]) / len(values)


def number_of(value: Any) -> Any:
    """The value as a float; a tensor as it is, with its history."""
    return value if is_tensor(value) else float(value)


def _all_pairs(kernel: Kernel, x: Any, v: Array) -> Any:
    """The mean of k(x_i, x_j) over all i and j, with weights."""
    return number_of(v @ mean_embedding(kernel, x, weights=v)(x))


def _within(kernel: Kernel, x: Any, v: Array) -> Any:
    """The mean of k(x_i, x_j) over i != j, with weights."""
    pairs = 1.0 - number_of(v @ v)
    if np.count_nonzero(host(v)) < 2:
        raise InputError(
            "the unbiased estimator needs two rows with positive weight in each sample"
        )
    return (_all_pairs(kernel, x, v) - number_of(v**2 @ kernel.diag(x))) / pairs


def _cross(kernel: Kernel, x: Any, v: Array, y: Any, w: Array) -> Any:
    """The mean of k(x_i, y_j)."""
    return number_of(w @ mean_embedding(kernel, x, weights=v)(y))


def _incomplete(
    kernel: Kernel, x: Any, y: Any, n: int, n_pairs: int | None, rng: np.random.Generator
) -> Any:
    """The mean of h over random pairs of rows, a block of pairs at a time."""
    count = n if n_pairs is None else positive_int(n_pairs, "n_pairs")
    i = rng.integers(0, n, size=count)
    j = (i + rng.integers(1, n, size=count)) % n  # any other row
    total: Any = 0.0
    for at in pieces(count, 4096):
        (xa, xb), (ya, yb) = ((z[i[at]], z[j[at]]) for z in (x, y))
        same = paired_values(kernel, xa, xb) + paired_values(kernel, ya, yb)
        h = same - paired_values(kernel, xa, yb) - paired_values(kernel, xb, ya)
        total = total + number_of(namespace(h).sum(h))
    return total / count


def paired_values(kernel: Kernel, X: Any, Y: Any) -> Array:
    """k(x_i, y_i)."""
    value = feature(kernel, X).fields(Y.array, paired=True).value
    return value if is_tensor(value) else np.asarray(value).ravel()
