"""MMD on R^d from characteristic functions, weighted by the spectral measure of the kernel."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, instance, positive_int
from mercer.engine import n_columns, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import refuses_overflow
from mercer.theory._fourier import finite_values


class SpectralMMD(NamedTuple):
    """A squared MMD estimated from random frequencies, and its standard error.

    Attributes
    ----------
    value : float
        The mean over the frequencies.
    error : float
        Its standard error.
    """

    value: float
    error: float


@refuses_overflow
def spectral_mmd(
    kernel: Kernel,
    P: Any,
    Q: Any,
    *,
    dim: int | None = None,
    n_frequencies: int = 4096,
    random_state: Any = None,
) -> SpectralMMD:
    """Return the squared MMD of two distributions on R^d, int |phi_P - phi_Q|^2 dLambda.

    Lambda is the spectral measure of the kernel, k(x, y) = int exp(-i <w, x - y>) dLambda(w), and
    phi_P(w) = E exp(-i <w, x>). The integral is a mean over frequencies drawn from Lambda: for
    distributions with a known characteristic function, when no sample is available. For samples
    `mmd(..., estimator="biased")` is the same number without the error.

    Parameters
    ----------
    kernel : Kernel
        A function of x - y, with a spectral measure.
    P, Q : callable or array_like of shape (n, d)
        Characteristic functions, from frequencies of shape (m, d) to m complex numbers; or points.
    dim : int, optional
        d; needed if neither P nor Q is a sample.
    n_frequencies : int, default=4096
        The error falls like one over its square root.
    random_state : int, Generator, RandomState or None

    References
    ----------
    Sakulwongtana, Theorem 2.5.6.

    Examples
    --------
    A point at 0 and a point at 1:

    >>> import numpy as np
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> found = mc.theory.spectral_mmd(
    ...     k, [[0.0]], lambda w: np.exp(-1j * w[:, 0]), random_state=0)
    >>> abs(found.value - 2 * (1 - float(k([[0.0]], [[1.0]])[0, 0]))) < 3 * found.error < 0.1
    True
    """
    instance(kernel, Kernel, "kernel")
    count = positive_int(n_frequencies, "n_frequencies")
    samples = [None if callable(S) else kernel.points(S, "a sample").array for S in (P, Q)]
    columns = {n_columns(S) for S in samples if S is not None}
    if dim is not None:
        columns.add(positive_int(dim, "dim"))
    if len(columns) != 1:
        raise InputError(
            f"P, Q and dim must agree on the number of columns, and one of them must give it; got "
            f"{sorted(columns)}"
        )
    measure = kernel.spectral_measure(columns.pop())
    w = measure.sample(count, random_state)
    phi = _characteristic(P, samples[0], w) - _characteristic(Q, samples[1], w)
    squares = measure.mass * np.abs(phi) ** 2
    return SpectralMMD(float(squares.mean()), float(squares.std() / math.sqrt(count)))


def _characteristic(P: Any, X: Any, w: Array) -> Array:
    """The given function at the rows of w, or mean_j exp(-i <w, x_j>), some rows at a time."""
    if X is None:
        return finite_values(P, w, "a characteristic function")
    rows = max(1, (1 << 20) // n_rows(X))
    parts = (np.exp(-1j * np.asarray(X @ w[at].T)).mean(axis=0) for at in pieces(len(w), rows))
    return np.concatenate(list(parts))
