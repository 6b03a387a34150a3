"""Fourier series on the circle: inner products, norms and MMD from coefficients.

With k(x, y) = sum_l khat_l exp(2 pi i l (x - y) / period) a function f with coefficients fhat_l is
in the space of k if sum |fhat_l|^2 / khat_l is finite, and <f, g> = sum fhat_l conj(ghat_l) /
khat_l. Arrays of coefficients hold l = -L, ..., L in this order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_vector,
    as_weights,
    instance,
    positive_int,
    positive_length,
    real,
)
from mercer.exceptions import InputError
from mercer.kernels._circle import Circular, PeriodicSobolev
from mercer.kernels._parameters import callable_function
from mercer.linalg._inputs import refuses_overflow

_ZERO_MEAN = 1e-12  # times the largest value


def fourier_coefficients(
    function: Callable[[Array], Any],
    n_terms: int,
    *,
    period: float = 2.0 * math.pi,
    start: float = 0.0,
    n_points: int | None = None,
) -> Array:
    """Return fhat_l = (1 / period) int f(x) exp(-2 pi i l x / period) dx for |l| <= n_terms.

    By the mean over N equally spaced points of one period: exact, to rounding, for trigonometric
    polynomials of degree below N - n_terms; the error is of the order N^-s for functions with s
    derivatives, and 1 / N at a jump.

    Parameters
    ----------
    function : callable
        Takes an array of shape (n,), returns n real or complex numbers.
    n_terms : int
        L >= 1.
    period : float, default=2 pi
        > 0.
    start : float, default=0.0
        The function is evaluated on [start, start + period).
    n_points : int, optional
        N > 2 n_terms; by default 8 n_terms, and at least 256.

    Returns
    -------
    complex array of shape (2 n_terms + 1,)

    References
    ----------
    Sakulwongtana, Definition 2.2.1 and Proposition 2.2.1, with the factor 1 / (2 pi) that is
    missing there.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.theory.fourier_coefficients(lambda x: 1 + 2 * np.cos(x), 1).real.round(12)
    array([1., 1., 1.])
    """
    L, period = term_count(n_terms), positive_length(period, "period")
    N = max(256, 8 * L) if n_points is None else positive_int(n_points, "n_points")
    if N <= 2 * L:
        raise InputError(f"n_points must be > 2 n_terms = {2 * L}, got {N}")
    start = real(start, "start")
    values = finite_values(function, start + period * np.arange(N) / N, "function")
    l = np.arange(-L, L + 1)  # noqa: E741
    shift = np.exp(-2j * math.pi * l * (start / period))
    return np.asarray(np.fft.fft(values)[l] / N * shift)


def characteristic_coefficients(
    points: Any, n_terms: int, *, weights: Any = None, period: float = 2.0 * math.pi
) -> Array:
    """Return phi_l = sum_i w_i exp(-2 pi i l x_i / period) for |l| <= n_terms.

    The coefficients E exp(-2 pi i l x / period) of the distribution that puts the weight w_i on
    x_i. Those of a density p are `period` times its Fourier coefficients.

    Parameters
    ----------
    points : array_like of shape (n,) or (n, 1)
    n_terms : int
        L >= 1.
    weights : array_like of shape (n,), optional
        >= 0, scaled to sum to one; equal by default.
    period : float, default=2 pi
        > 0.

    Returns
    -------
    complex array of shape (2 n_terms + 1,)

    References
    ----------
    Sakulwongtana, Theorem 2.5.4, which holds with characteristic functions in place of Fourier
    coefficients of densities.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.theory.characteristic_coefficients([0.0, np.pi], 2).real.round(12)
    array([1., 0., 1., 0., 1.])
    """
    x = np.asarray(points)
    x = as_vector(x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x, "points").astype(np.float64)
    if x.size == 0:
        raise InputError("points has no entries: at least one is needed")
    L, w = term_count(n_terms), as_weights(weights, len(x))
    angle = 2.0 * math.pi / positive_length(period, "period") * x
    half = np.array([w @ np.exp(-1j * l * angle) for l in range(L + 1)])  # noqa: E741
    return np.concatenate([half[:0:-1].conj(), half])


def term_count(n_terms: Any) -> int:
    """The number of terms, at most a million: some seconds."""
    L = positive_int(n_terms, "n_terms")
    if L > 10**6:
        raise InputError(f"n_terms must be at most 1,000,000, got {L}")
    return L


def fourier_inner(kernel: Circular, f: Any, g: Any) -> complex:
    """Return <f, g> = sum_l fhat_l conj(ghat_l) / khat_l; real, to rounding, for real functions.

    Raises an error if f or g is not in the space: a coefficient is not zero where khat_l = 0.
    Source: Sakulwongtana, Definition 2.2.3.

    Parameters
    ----------
    kernel : Circular
    f, g : array_like of shape (2L + 1,)
        Fourier coefficients of l = -L, ..., L, all others being zero.

    Examples
    --------
    The reproducing property, <f, k(., z)> = f(z), for f = 1 + 2 cos x at z = 0:

    >>> import numpy as np
    >>> import mercer as mc
    >>> k = mc.kernels.JacobiTheta(1.0)
    >>> f, at_zero = np.ones(3), k.coefficient(np.arange(-1, 2))
    >>> round(mc.theory.fourier_inner(k, f, at_zero).real, 12)
    3.0
    """
    f, g = _coefficients(f, "f"), _coefficients(g, "g")
    if f.shape != g.shape:
        raise InputError(f"f and g must have as many coefficients, got {f.size} and {g.size}")
    log_k = log_coefficients(kernel, f.size // 2)
    for name, h in (("f", f), ("g", g)):
        outside = np.flatnonzero((log_k == -np.inf) & (h != 0))
        if outside.size:
            l = int(outside[0]) - f.size // 2  # noqa: E741
            raise InputError(
                f"{name} is not in the space of {kernel!r}: its coefficient of l = {l} is not "
                "zero, but that of the kernel is"
            )
    both = (f != 0) & (g != 0)
    f, g, log_k = f[both], g[both], log_k[both]
    # in logarithms: khat_l may be below the range of float64 where the quotient is not
    log_size = np.log(np.abs(f)) + np.log(np.abs(g)) - log_k
    largest = log_size.max(initial=-800.0)
    total = np.sum(np.exp(log_size - largest + 1j * (np.angle(f) - np.angle(g))))
    with np.errstate(over="ignore"):
        unit = float(np.exp(largest))
    return complex(*(float(part) * unit if part else 0.0 for part in (total.real, total.imag)))


def fourier_norm(kernel: Circular, f: Any) -> float:
    """Return ||f|| = sqrt(sum_l |fhat_l|^2 / khat_l).

    Infinite if f is not in the space (fhat_l != 0 = khat_l for some l), or beyond float64.

    Parameters
    ----------
    kernel : Circular
        A kernel on the circle, with coefficients khat_l.
    f : array_like of shape (2 L + 1,)
        fhat_l for l = -L, ..., L.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.fourier_norm(mc.Periodic((1.0, 0.25)), [0.5, 1.0, 0.5])
    1.7320508075688772
    >>> mc.theory.fourier_norm(mc.Periodic((0.0, 0.25)), [0.5, 1.0, 0.5])
    inf
    """
    terms = log_terms(kernel, _coefficients(f, "f"))
    with np.errstate(over="ignore"):
        return float(np.exp(0.5 * np.logaddexp.reduce(terms)))


def sobolev_norm(
    kernel: PeriodicSobolev,
    function: Callable[[Array], Any],
    derivative: Callable[[Array], Any],
    *,
    n_points: int = 4096,
) -> float:
    """Return the norm of the periodic Sobolev space as an integral.

        ||f||^2 = (1 / nu_0) (int_0^1 f)^2 + (2 pi)^(-2s) int_0^1 |f^(s)|^2

    for the period 1; for others f(period t) is taken on [0, 1]. The integrals are means over
    equally spaced midpoints: exact for trigonometric polynomials of degree below n_points / 2, off
    by O(1 / n_points) where the derivative jumps. The norm is infinite if nu_0 = 0 and the mean of
    f is not zero (above 1e-12 of its largest value).

    Parameters
    ----------
    kernel : PeriodicSobolev
        Of order s and constant nu_0.
    function, derivative : callable
        f and f^(s), which take and return arrays of shape (n,).
    n_points : int, default=4096

    References
    ----------
    Rudi and Gaillard 2021, section 2, with the constant term divided by nu_0 and the integral over
    [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> k = mc.kernels.PeriodicSobolev(order=1, constant=4.0)
    >>> mc.theory.sobolev_norm(k, lambda x: 2.0 + 0.0 * x, lambda x: 0.0 * x)
    1.0
    """
    instance(kernel, PeriodicSobolev, "kernel")
    N = positive_int(n_points, "n_points")
    x = kernel.period * (np.arange(N) + 0.5) / N
    f, df = finite_values(function, x, "function"), finite_values(derivative, x, "derivative")
    top = float(np.abs(df).max()) or 1.0
    with np.errstate(over="ignore", divide="ignore"):
        log_size = np.log(top) + 0.5 * np.log(np.mean(np.abs(df / top) ** 2))
        smooth = float(np.exp(kernel.order * math.log(kernel.period / (2.0 * math.pi)) + log_size))
    mean = abs(complex(np.mean(f)))
    if kernel.constant > 0.0:
        return math.hypot(mean / math.sqrt(kernel.constant), smooth)
    return math.inf if mean > _ZERO_MEAN * float(np.abs(f).max()) else smooth


@refuses_overflow
def fourier_mmd(kernel: Circular, phi_P: Any, phi_Q: Any) -> float:
    """Return the squared MMD of two distributions, sum_l khat_l |phi_P,l - phi_Q,l|^2.

    Here phi_l = E exp(-2 pi i l x / period), not a Fourier coefficient of the density, which is
    smaller by the factor `period`. Coefficients beyond those given count as equal, and the error of
    that is at most 4 sum_{|l| > L} khat_l.

    Parameters
    ----------
    kernel : Circular
    phi_P, phi_Q : array_like of shape (2L + 1,)
        Coefficients of l = -L, ..., L; see `characteristic_coefficients`.

    References
    ----------
    Sakulwongtana, Theorem 2.5.4 (see `characteristic_coefficients`) and Corollary 2.5.2, where the
    coefficient of order 0 may be 0.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.theory import characteristic_coefficients, fourier_mmd
    >>> P, Q = (characteristic_coefficients([x], 40) for x in (0.0, 1.0))
    >>> k = mc.kernels.JacobiTheta(0.5)
    >>> round(fourier_mmd(k, P, Q), 6)
    1.379805
    >>> round(float(2 * (k([[0.0]]) - k([[0.0]], [[1.0]]))[0, 0]), 6)
    1.379805
    """
    P, Q = _coefficients(phi_P, "phi_P"), _coefficients(phi_Q, "phi_Q")
    if P.shape != Q.shape:
        raise InputError(f"phi_P and phi_Q must have as many entries, got {P.size} and {Q.size}")
    khat = np.exp(log_coefficients(kernel, P.size // 2))
    return float(np.sum(khat * np.abs(P - Q) ** 2))


def finite_values(function: Callable[[Array], Any], x: Array, name: str) -> Array:
    """The values of a user's function at the rows of x, checked."""
    values = np.asarray(callable_function(function, name)(x))
    kind = values.dtype.kind
    if values.shape != (len(x),) or kind not in "biufc" or not np.isfinite(values).all():
        raise InputError(
            f"{name} must return {len(x)} finite numbers for {len(x)} points, got dtype "
            f"{values.dtype} and shape {values.shape}"
        )
    return values


def log_coefficients(kernel: Circular, n_terms: int) -> Array:
    """log khat_l of l = -n_terms, ..., n_terms; -inf where khat_l = 0."""
    if not isinstance(kernel, Circular):
        raise InputError(
            f"kernel must be a kernel on the circle (Periodic, JacobiTheta, PeriodicSobolev), got "
            f"{type(kernel).__name__}"
        )
    l = np.arange(-n_terms, n_terms + 1)  # noqa: E741
    logs = getattr(kernel, "log_coefficient", None)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(kernel.coefficient(l)) if logs is None else logs(l), np.float64)


def log_terms(kernel: Circular, f: Array) -> Array:
    """log(|fhat_l|^2 / khat_l): -inf where fhat_l = 0, else inf where khat_l = 0."""
    log_k = log_coefficients(kernel, f.size // 2)
    with np.errstate(divide="ignore"):
        log_f = 2.0 * np.log(np.abs(f))
    return np.where(f == 0, -np.inf, log_f - np.where(f == 0, 0.0, log_k))


def _coefficients(values: Any, name: str) -> Array:
    array = np.asarray(values)
    if array.ndim != 1 or array.size % 2 == 0 or array.dtype.kind not in "biufc":
        raise InputError(
            f"{name} must hold the coefficients of l = -L, ..., L, an odd number of them, got "
            f"dtype {array.dtype} and shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"{name} has NaN or infinite coefficients")
    return array.astype(np.complex128)
