"""Dense factorisations by LAPACK, in place: Cholesky, with and without pivots, and eigenpairs.

SciPy's wrappers hold the interpreter lock, so LAPACK and BLAS are called through the pointers that
SciPy publishes for Cython; then threads run side by side, and a signal can end a long call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import interruptible, single_threaded_blas
from mercer.engine import pieces
from mercer.exceptions import InputError

EPS = float(np.finfo(np.float64).eps)
_BLOCK = 64  # rows that are transposed at once, in the cache; columns that are solved for
_THREADED = 12_000  # rows: OpenBLAS 0.3.31 crashes in dpotrf of 16,512 rows on several threads


class NotDefiniteError(Exception):
    """The matrix is not positive definite, beyond rounding; K was restored."""


def by_cholesky(
    K: Array, B: Array, penalty: float, *, jitter: bool = True
) -> tuple[Array, Array, float]:
    """A from L L' = K + penalty I, with L in place of K; B - M A; and the jitter it needed.

    LAPACK writes L into one triangle. The other still holds K, which is used twice: to start again
    where the factorisation fails, and to measure the residual. Without `jitter` a matrix that is
    singular to rounding counts as not definite.
    """
    from scipy.linalg.blas import dsymm
    from scipy.linalg.lapack import dlange, dpocon, dpotrs

    check_finite(K)
    n, diagonal = len(K), K.diagonal().copy()
    L = K.T  # the columns LAPACK wants; K is symmetric and stored by rows
    norm = 0.0 if jitter else dlange("1", L)
    # no jitter, then from the rounding errors of K upwards by factors of ten; beyond 1e-8 of the
    # trace, jitter would hide that K is not definite
    least = EPS * float(np.abs(diagonal).sum())
    for added in [0.0, *(10.0**i * least for i in range(8))] if jitter else [0.0]:
        np.fill_diagonal(K, diagonal + (penalty + added))
        info = _cholesky(K, b"L")
        if info == 0 and (jitter or dpocon(L, norm, uplo="L")[0] > n * EPS):
            break
        restore(K, diagonal)
    else:
        raise NotDefiniteError
    coef, rest = np.empty_like(B), np.empty_like(B)
    change = (diagonal + penalty - L.diagonal())[:, None]
    for some in pieces(B.shape[1], _BLOCK):  # between them signals are handled
        coef[:, some], _ = dpotrs(L, B[:, some], lower=1)
        product = dsymm(1.0, L, coef[:, some], lower=0) + change * coef[:, some]
        rest[:, some] = B[:, some] - product
    return coef, rest, added


def invert(K: Array) -> bool:
    """Replace K > 0 by its inverse; False if K is singular to rounding."""
    check_finite(K)
    n = len(K)
    if _cholesky(K, b"U") != 0:
        return False
    interruptible(_lapack, K, "dpotri", b"U", n, K, n)
    restore(K, K.diagonal().copy())  # the lower triangle by rows is the upper one by columns
    return True


def by_eigen(K: Array, B: Array, penalty: float) -> tuple[Array, int]:
    """(K + penalty I)^+ B by the eigenpairs of K that are not zero to rounding, and their number.

    The minimum-norm least-squares solution. K is overwritten.
    """
    values, V = all_pairs(K)
    values = values + penalty
    keep = np.abs(values) > len(K) * EPS * np.abs(values).max()
    factors = np.divide(1.0, values, out=np.zeros_like(values), where=keep)
    return V @ (factors[:, None] * (V.T @ B)), int(keep.sum())


def all_pairs(K: Array) -> tuple[Array, Array]:
    """All eigenvalues of K, ascending, and the eigenvectors, which overwrite it."""
    check_finite(K)
    K = np.ascontiguousarray(K)
    n = len(K)
    values, size, integers = np.empty(n), 1 + 6 * n + 2 * n * n, 3 + 5 * n
    info = interruptible(_lapack, K, "dsyevd", b"V", b"L", n, K, n, values, np.empty(size), size,
                         np.empty(integers, dtype=np.intc), integers)  # fmt: skip
    if info != 0:
        raise np.linalg.LinAlgError("the eigenvalues of the kernel matrix did not converge")
    return values, K.T


def largest_pairs(K: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues of K, ascending, and their vectors.

    LAPACK may find fewer where eigenvalues are close together, without saying so.
    """
    check_finite(K)
    n, diagonal = len(K), K.diagonal().copy()
    values, V, found = np.empty(n), np.empty((k, n)), np.zeros((), dtype=np.intc)
    size, integers = 40 * n, 10 * n  # enough for panels of 32 columns
    info = interruptible(
        _lapack, K, "dsyevr", b"V", b"I", b"L", n, K, n, 0.0, 0.0, n - k + 1, n, 0.0, found,
        values, V, n, np.empty(2 * n, dtype=np.intc), np.empty(size), size,
        np.empty(integers, dtype=np.intc), integers,
    )  # fmt: skip
    restore(K, diagonal)
    count = int(found) if info == 0 else 0
    return values[:count], V[:count].T


def independent(W: Array, tol: float) -> tuple[Array, Array]:
    """Pivots p of W >= 0 until all others are below tol, and lower T with T T' = W[p, p]."""
    n, order, rank = len(W), np.empty(len(W), dtype=np.intc), np.zeros((), dtype=np.intc)
    interruptible(_lapack, W, "dpstrf", b"L", n, W, n, order, rank, tol, np.empty(2 * n))
    r = int(rank)
    return order[:r].astype(np.intp) - 1, np.tril(W.T[:r, :r])


def solve_rows(T: Array, C: Array) -> None:
    """Replace each row c of C by T^-1 c, for a lower triangular T; both contiguous by rows."""
    (m, r), one = C.shape, np.ones(())
    # LAPACK sees the columns of C' and the upper triangle of T'
    _call("dtrsm", b"L", b"U", b"T", b"N", r, m, one, T, r, C, r)


def check_finite(K: Array) -> None:
    """Raise if kernel values overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(K.sum()) or np.isfinite(K).all():
            return
    raise InputError("the kernel matrix has infinite or NaN entries; scale the points down")


def restore(K: Array, diagonal: Array) -> None:
    """Copy the triangle below the diagonal of K to the one above, and put the diagonal back."""
    for rows in pieces(len(K), _BLOCK):
        block = np.tril(K[rows, rows], -1)
        K[rows, rows] = block + block.T
        K[rows, rows.stop :] = K[rows.stop :, rows].T
    np.fill_diagonal(K, diagonal)


def _cholesky(K: Array, triangle: bytes) -> int:
    """Factor K in place; returns LAPACK's info."""
    n = len(K)
    with single_threaded_blas() if n > _THREADED else nullcontext():
        return interruptible(_lapack, K, "dpotrf", triangle, n, K, n)


def _lapack(_: Array, name: str, *arguments: Any) -> int:
    """Call a routine of LAPACK; returns info."""
    info = np.zeros((), dtype=np.intc)
    _call(name, *arguments, info)
    return int(info)


def _call(name: str, *arguments: Any) -> None:
    """Call a routine with everything by reference, without the interpreter lock."""
    values = [
        np.array(a, dtype=np.intc) if isinstance(a, int) else np.asarray(a) for a in arguments
    ]
    _routine(name)(*(value.ctypes.data for value in values))


@cache
def _routine(name: str) -> Callable[..., None]:
    from scipy.linalg import cython_blas, cython_lapack

    capsule = (cython_blas.__pyx_capi__ | cython_lapack.__pyx_capi__)[name]
    get_name, get_pointer = (
        ctypes.pythonapi.PyCapsule_GetName,
        ctypes.pythonapi.PyCapsule_GetPointer,
    )
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    if b" int *" not in signature:
        raise ImportError("mercer needs a SciPy whose LAPACK takes 32-bit integers")
    address = get_pointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * signature.count(b"*"))(address)


def saddle_free_steps(g: Array, H: Array, flat: float) -> tuple[Array, Array]:
    """-|H|^-1 g of each row, Newton's step that leaves saddles, and the eigenvalues of H.

    Eigenvalues below `flat` times the largest, in size, are replaced by that. Dauphin et al.,
    Identifying and attacking the saddle point problem, 2014.
    """
    values, vectors = np.linalg.eigh(H)
    sizes = np.abs(values)
    sizes = np.maximum(sizes, flat * sizes.max(axis=1, keepdims=True) + np.finfo(float).tiny)
    along = np.einsum("mij,mi->mj", vectors, g) / sizes
    return -np.einsum("mij,mj->mi", vectors, along), values
