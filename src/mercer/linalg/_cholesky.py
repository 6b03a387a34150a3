"""Direct solves of (K + penalty I) A = B, in the memory of K."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer._array import Array
from mercer.engine import pieces
from mercer.exceptions import InputError

_EPS = float(np.finfo(np.float64).eps)
_LARGEST = 1e-8  # jitter beyond this share of the trace would hide that K is not definite
_BLOCK = 512


class NotDefiniteError(Exception):
    """The matrix is not positive definite, beyond rounding; K was restored."""


def by_cholesky(
    K: Array, B: Array, penalty: float, *, jitter: bool = True
) -> tuple[Array, Array, float]:
    """A by L L' = K + penalty I, which takes the place of K; B - M A; and the jitter it took.

    LAPACK writes L into one triangle. The other still holds K, which serves twice: to start again
    where the factorisation fails, and to measure the residual. Without `jitter` a matrix that is
    singular to rounding counts as not definite.
    """
    from scipy.linalg.blas import dsymm
    from scipy.linalg.lapack import dlange, dpocon, dpotrf, dpotrs

    check_finite(K)
    diagonal = K.diagonal().copy()
    A = K.T  # the columns LAPACK wants; K is symmetric and stored by rows
    norm = 0.0 if jitter else dlange("1", A)
    for added in _jitters(diagonal) if jitter else [0.0]:
        np.fill_diagonal(A, diagonal + (penalty + added))
        L, info = dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if info == 0 and (jitter or dpocon(L, norm, uplo="L")[0] > len(K) * _EPS):
            break
        _restore(K)
    else:
        np.fill_diagonal(K, diagonal)
        raise NotDefiniteError
    coef, _ = dpotrs(L, B, lower=1)
    change = diagonal + penalty - L.diagonal()
    product = dsymm(1.0, L, coef, lower=0) + change[:, None] * coef
    return np.ascontiguousarray(coef), B - product, added


def by_eigen(K: Array, B: Array, penalty: float) -> tuple[Array, int]:
    """(K + penalty I)^+ B by the eigenpairs of K that are not zero to rounding, and their number.

    The solution of least norm among those of least squares. K is overwritten.
    """
    from scipy.linalg import eigh

    check_finite(K)
    values, V = eigh(K, overwrite_a=True, check_finite=False, driver="evd")
    values = values + penalty
    keep = np.abs(values) > len(K) * _EPS * np.abs(values).max()
    factors = np.divide(1.0, values, out=np.zeros_like(values), where=keep)
    return V @ (factors[:, None] * (V.T @ B)), int(keep.sum())


def lower_root(W: Array) -> tuple[Array, float]:
    """L with L L' = W + jitter I for a small matrix W >= 0, and the jitter it took."""
    from scipy.linalg.lapack import dpotrf

    diagonal = W.diagonal()
    if not diagonal.any():
        return np.eye(len(W)), 1.0  # features that are all zero
    for jitter in _jitters(diagonal):
        L, info = dpotrf(W + jitter * np.eye(len(W)), lower=1)
        if info == 0:
            return np.asarray(L), jitter
    raise InputError("the kernel is not positive definite on these points")


def check_finite(K: Array) -> None:
    """Raise where kernel values overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(K.sum()) or np.isfinite(K).all():
            return
    raise InputError("the kernel matrix has infinite or NaN entries; scale the points down")


def _jitters(diagonal: Array) -> Iterator[float]:
    """Nothing, then from rounding errors of K upwards by tens."""
    yield 0.0
    trace = float(np.abs(diagonal).sum())
    jitter = _EPS * trace
    while 0.0 < jitter <= _LARGEST * trace:
        yield jitter
        jitter *= 10.0


def _restore(K: Array) -> None:
    """Copy the triangle below the diagonal of K to the one above."""
    for rows in pieces(len(K), _BLOCK):
        block = np.tril(K[rows, rows], -1)
        K[rows, rows] = block + block.T
        K[rows, rows.stop :] = K[rows.stop :, rows].T
