"""Check values of a kernel: symmetry, derivatives, float32, sparse points and refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.exceptions import DerivativeError, InputError
from mercer.kernels import Kernel
from mercer.testing._differences import agree_with_differences
from mercer.testing._lattice import natural_scale
from mercer.testing._report import agree, fail, require

_TOL = 1e-11  # of the largest value; a double loop is accurate to about 1e-13


def check_values(kernel: Kernel, X: Any, Y: Any) -> None:
    """Check symmetry, the diagonal, and values pair by pair."""
    X, Y = kernel.points(X).array, kernel.points(Y).array
    K, K_XY = kernel(X), kernel(X, Y)
    require(np.isfinite(K).all() and np.isfinite(K_XY).all(), kernel, "k(X, Y) is not finite")
    size = max(float(np.abs(K).max()), float(np.abs(K_XY).max()), 1e-300)
    gap = float(np.abs(K - K.T).max())
    require(np.array_equal(K, K.T), kernel, f"k(X) is not exactly symmetric, by {gap:.3g}")
    equal = partial(agree, kernel, tol=_TOL, size=size)
    equal("symmetry, k(X, Y) = k(Y, X)',", K_XY, kernel(Y, X).T)
    equal("k(X) = k(X, X)", K, kernel(X, X))
    equal("diag(X) = diagonal of k(X)", kernel.diag(X), np.diag(K))
    rows, columns = ([Z[i : i + 1] for i in range(len(Z))] for Z in (X, Y))
    equal("k(X, Y) = k pair by pair", K_XY, [[kernel(x, y)[0, 0] for y in columns] for x in rows])


def check_derivatives(kernel: Kernel, X: Array, Y: Array) -> None:
    """Check the gradient and the mixed derivative, unless they are refused."""
    try:
        gradient = kernel.gradient(X, Y)
    except DerivativeError:
        return
    mixed = kernel.mixed_derivative(X, Y)
    n, m, d = len(X), len(Y), X.shape[1]
    require(gradient.shape == (n, m, d), kernel, f"gradient has shape {gradient.shape}")
    require(mixed.shape == (n, m, d, d), kernel, f"mixed derivative has shape {mixed.shape}")
    length = natural_scale(kernel, d)
    unit = float(np.abs(kernel(X, Y)).max()) / length
    agree_with_differences(kernel, "the gradient in x", gradient, lambda Z: kernel(Z, Y), X, length)
    agree_with_differences(
        kernel, "the mixed derivative", mixed, lambda Z: kernel.gradient(X, Z), Y, length, unit
    )
    gap = np.nan_to_num(mixed - np.transpose(kernel.mixed_derivative(Y, X), (1, 0, 3, 2)))
    size = float(np.nanmax(np.abs(mixed))) + unit / length  # the derivative may be 0 everywhere
    agree(kernel, "symmetry of the mixed derivative", gap, 0.0 * gap, tol=1e-9, size=size)


def check_float32(kernel: Kernel, X: Array, Y: Array) -> None:
    """float32 points give float32 values, equal to the float64 ones up to rounding."""
    X32, Y32 = X.astype(np.float32), Y.astype(np.float32)
    results = {
        "k(X, Y)": (kernel(X32, Y32), kernel(X32.astype(np.float64), Y32.astype(np.float64))),
        "diag(X)": (kernel.diag(X32), kernel.diag(X32.astype(np.float64))),
    }
    for name, (single, double) in results.items():
        found = f"float32 in, float32 out: {name} is {single.dtype} for float32 points"
        require(single.dtype == np.float32, kernel, found)
        agree(kernel, f"{name} in float32", single, double, tol=2e-5)


def check_sparse(kernel: Kernel, X: Array, Y: Array) -> None:
    """CSR points, if accepted, give the same results as dense points."""
    from scipy.sparse import csr_array

    if not kernel.program.has_derivatives:  # a user's function gets the matrix itself
        return
    try:
        K = kernel(csr_array(X), csr_array(Y))
    except InputError:
        return
    dense = kernel(X, Y)
    equal = partial(agree, kernel, tol=_TOL)
    equal("sparse = dense, k(X, Y),", K, dense)
    equal("sparse = dense, k(X, Y) with one of them,", kernel(csr_array(X), Y), dense)
    equal("sparse = dense, diag(X),", kernel.diag(csr_array(X)), kernel.diag(X))
    try:
        expected = kernel.gradient(X, Y)
    except DerivativeError:
        return
    actual = kernel.gradient(csr_array(X), csr_array(Y))
    agree(kernel, "sparse = dense, gradient,", actual, expected, tol=1e-9)


def check_refusals(kernel: Kernel, X: Array) -> None:
    """Anything but a matrix of finite real numbers is refused with an InputError."""
    n, d = X.shape
    broken = {
        "NaN": np.where(np.arange(n * d).reshape(n, d) == 0, np.nan, X),
        "infinity": np.where(np.arange(n * d).reshape(n, d) == n * d - 1, -np.inf, X),
        "no rows": X[:0],
        "no columns": X[:, :0],
        "complex numbers": X + 1j,
        "a vector": X[:, 0],
        "three axes": X[None],
        "text": np.full(X.shape, "1.0"),
        "half precision": np.zeros(X.shape, dtype=np.float16),
    }
    for name, bad in broken.items():
        for what, call in (("k(X)", kernel), ("diag", kernel.diag)):
            _refused(kernel, f"{what} with {name}", call, bad)
        _refused(kernel, f"k(X, Y) with {name} in Y", kernel, X, bad)
    _refused(kernel, "k(X, Y) with another number of columns", kernel, X, np.hstack([X, X]))


def _refused(kernel: Kernel, what: str, call: Any, *arguments: Any) -> None:
    try:
        call(*arguments)
    except InputError as error:
        require(str(error), kernel, f"{what} is refused without a message")
    except Exception as error:  # noqa: BLE001  (any other error is wrong)
        fail(kernel, f"{what} raises {type(error).__name__} instead of InputError: {error}")
    else:
        fail(kernel, f"{what} is accepted, but must raise an InputError")
