"""Power iteration: the eigenvalue of largest modulus, one pass over the kernel per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, frozen, positive, positive_int
from mercer._progress import Callback, Step
from mercer._random import as_generator
from mercer._status import Status
from mercer.kernels import Kernel
from mercer.linalg._operator import gram_operator


@dataclass(frozen=True, eq=False)
class EigenPair:
    """One eigenpair, S v = lambda v.

    Attributes
    ----------
    value : float
        lambda.
    vector : array of shape (n,)
        v of length one; its largest entry is positive.
    residual : float
        |S v - lambda v|.
    n_iter : int
    status : Status

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> k = mc.kernels.Constant(2.0)
    >>> pair = linalg.power_iteration(k, [[0.0], [1.0], [2.0]], random_state=0)
    >>> round(pair.value, 6), pair.n_iter
    (6.0, 2)
    """

    value: float
    vector: Array
    residual: float
    n_iter: int
    status: Status


def power_iteration(
    kernel: Kernel,
    X: Any,
    *,
    centred: bool = False,
    weights: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    random_state: Any = None,
    callback: Callback | None = None,
) -> EigenPair:
    """Find the eigenvalue of largest modulus by v <- S v / |S v|.

    Each step is one kernel sum, O(n^2). The error of v falls by |lambda_2 / lambda_1| in each, and
    for a positive definite kernel v'Sv never falls; `eigenpairs` needs far fewer steps where the
    two are close.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d), or other points of the kernel's domain
    centred, weights
        The operator S, as in `gram_operator`.
    tol : float, default=1e-6
        Stop when |S v - lambda v| <= tol |lambda|.
    max_iter : int, default=1000
    random_state : int, Generator, RandomState or None
        Draws the start.
    callback : callable, optional
        Called with a `Step` after each iteration; stops it by returning True.

    Returns
    -------
    EigenPair

    References
    ----------
    A. Rudi and P. Gaillard, Kernel methods (lecture notes, 2021), section 4.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> pair = linalg.power_iteration(mc.Linear(), [[3.0], [4.0]], random_state=0)
    >>> round(pair.value, 6), pair.vector.round(6), pair.status.name
    (25.0, array([0.6, 0.8]), 'CONVERGED')
    """
    S = gram_operator(kernel, X, centred=centred, weights=weights)
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    v = as_generator(random_state).standard_normal(S.shape[0])
    v /= np.linalg.norm(v)
    status = Status.MAX_ITER
    for n_iter in range(1, max_iter + 1):
        image = S @ v
        value = float(v @ image)
        residual = float(np.linalg.norm(image - value * v))
        size = float(np.linalg.norm(image))
        if residual <= tol * abs(value) or size == 0.0:
            status = Status.CONVERGED
            break
        if callback is not None and callback(Step(n_iter, residual / size)) is True:
            status = Status.STOPPED
            break
        if n_iter < max_iter:
            v = image / size
    return EigenPair(value, frozen(signed(v[:, None])[:, 0]), residual, n_iter, status)


def signed(V: Array) -> Array:
    """Columns with the sign that makes their largest entry positive; the first one at a tie."""
    size = np.abs(V)
    # entries equal to rounding count as ties, so that symmetric vectors have a sign too
    first = np.argmax(size > (1.0 - 1e-6) * size.max(axis=0), axis=0)
    sign = np.where(V[first, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(V * sign)
