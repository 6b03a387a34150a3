"""Check a kernel: values, derivatives, precision, sparse points, refusals, claims and measures."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from mercer import kernels
from mercer._array import Array, is_sparse
from mercer.engine import Map
from mercer.exceptions import DerivativeError, InputError
from mercer.kernels import Domain, Flags, Kernel
from mercer.testing._claims import check_claims
from mercer.testing._lattice import DIMENSIONS, accepts, cloud, dimensions, natural_scale
from mercer.testing._report import agree, agree_with_differences, fail, require
from mercer.testing._spectrum import check_measures

_TOL = 1e-11  # of the largest value; a double loop is accurate to about 1e-13


def check_kernel(
    kernel: Kernel,
    points: Any = None,
    *,
    claims: Flags | None = None,
    dims: tuple[int, ...] = DIMENSIONS,
) -> None:
    """Check the identities of a kernel, and the claims in its `flags`.

    The checks are:

    - symmetry, k(X, Y) = k(Y, X)', which must be exact for k(X); the diagonal; values pair by pair;
    - gradients and mixed derivatives, against differences;
    - definiteness on lattices in each dimension at several scales (a kernel that claims to be
      INDEFINITE must show it on one of them);
    - convexity and complete monotonicity of the profile;
    - mixing and spectral measures, against draws and integrals;
    - float32 and sparse points, and errors for invalid points;
    - that the kernel is an immutable value, which can be rebuilt, copied, compared, printed and
      pickled.

    Parameters
    ----------
    kernel : Kernel
    points : optional
        At least four additional points, required if the kernel does not take vectors.
    claims : Flags, optional
        Claims to check instead of the kernel's own `flags`, for example for a `FromFunction`.
    dims : tuple of int, default=(1, 2, 3, 5)
        Dimensions to test; those that the kernel does not accept are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.testing import check_kernel
    >>> check_kernel(mc.Gaussian(2.0) + 0.5 * mc.Linear())
    >>> product = mc.kernels.FromFunction(lambda X, Y: np.cos(X @ Y.T))
    >>> check_kernel(product, claims=mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE), dims=(1,))
    Traceback (most recent call last):
    ...
    AssertionError: FromFunction(...): claims to be positive definite, but the Gram matrix of 14
    points in 1 dimensions, step ... has the eigenvalue ... (at least ... is allowed)
    """
    rng = np.random.default_rng(0)
    claims = kernel.flags if claims is None else claims
    clouds = [cloud(kernel, d, rng) for d in dimensions(kernel, dims)]
    some = clouds or points is not None
    require(some, kernel, f"accepts no points in {dims} dimensions; pass `points`")
    _check_parameters(kernel)
    for X in clouds:
        _check_vectors(kernel, X, np.concatenate([X[3:6], -0.7 * X[:2] + 0.1 * X[4:6]]))
    if points is not None:
        X = kernel.points(points, "points").array
        require(len(points) >= 4, kernel, "needs at least four `points`")
        _check_values(kernel, X[:8], X[2:12])
        if kernel.domain.is_vector and not is_sparse(X):
            _check_vectors(kernel, np.asarray(X[:8]), np.asarray(X[2:6]))
    check_claims(kernel, claims, points, dims)
    check_measures(kernel, claims, dims, rng)


def _check_vectors(kernel: Kernel, X: Any, Y: Any) -> None:
    Y = Y if accepts(kernel, Y) else X[:4]
    _check_values(kernel, X, Y)
    _check_derivatives(kernel, X, Y)
    _check_float32(kernel, X, Y)
    _check_sparse(kernel, X, Y)
    _check_refusals(kernel, X)


def _check_values(kernel: Kernel, X: Any, Y: Any) -> None:
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


def _check_derivatives(kernel: Kernel, X: Array, Y: Array) -> None:
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
    equal = (X[:, None] == Y).all(axis=2)
    agree_with_differences(
        kernel,
        "the mixed derivative",
        mixed,
        lambda Z: kernel.gradient(X, Z),
        Y,
        length,
        unit,
        equal,
    )
    gap = np.nan_to_num(mixed - np.transpose(kernel.mixed_derivative(Y, X), (1, 0, 3, 2)))
    size = float(np.nanmax(np.abs(mixed))) + unit / length  # the derivative may be 0 everywhere
    agree(kernel, "symmetry of the mixed derivative", gap, 0.0 * gap, tol=1e-9, size=size)


def _check_float32(kernel: Kernel, X: Array, Y: Array) -> None:
    """float32 points give float32 values, equal to the float64 ones up to rounding."""
    X32, Y32 = X.astype(np.float32), Y.astype(np.float32)
    if not (accepts(kernel, X32) and accepts(kernel, Y32)):  # k(x, x) may overflow in float32
        return
    results = {
        "k(X, Y)": (kernel(X32, Y32), kernel(X32.astype(np.float64), Y32.astype(np.float64))),
        "diag(X)": (kernel.diag(X32), kernel.diag(X32.astype(np.float64))),
    }
    for name, (single, double) in results.items():
        found = f"float32 in, float32 out: {name} is {single.dtype} for float32 points"
        require(single.dtype == np.float32, kernel, found)
        largest = float(np.finfo(np.float32).max)  # beyond it values are infinite
        held = (np.clip(values, -largest, largest, dtype=np.float64) for values in (single, double))
        agree(kernel, f"{name} in float32", *held, tol=2e-5)


def _check_sparse(kernel: Kernel, X: Array, Y: Array) -> None:
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
    unit = float(np.abs(dense).max()) / natural_scale(kernel, X.shape[1])  # the true one may be 0
    size = float(np.abs(expected).max()) + 1e-3 * unit
    agree(kernel, "sparse = dense, gradient,", actual, expected, tol=1e-9, size=size)


def _check_refusals(kernel: Kernel, X: Array) -> None:
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


def _check_parameters(kernel: Kernel) -> None:
    """A kernel is an immutable value: parameters, equality, copies and repr."""
    own, inside = kernel.get_params(deep=False), list(_kernels(kernel))
    for inner in inside:
        name, advice = type(inner).__name__, "put @dataclass(frozen=True) on the class"
        decorated = "__dataclass_fields__" in vars(type(inner))
        require(decorated, inner, f"does not compare by value; {advice} {name}")
    _check_same(kernel, type(kernel)(**own), "rebuilt")
    require(kernel.replace() == kernel, kernel, "replace() without arguments changes it")
    everything = kernel.get_params(deep=True)
    complete = own.items() <= everything.items()
    require(complete, kernel, "get_params(deep=True) lacks some of its own parameters")
    require(kernel.replace(**everything) == kernel, kernel, "replace(**get_params()) changes it")
    require(kernel != kernel + 1.0, kernel, "equals another kernel")
    require(kernel.__sklearn_clone__() is kernel, kernel, "its clone is not the kernel itself")
    _check_same(kernel, copy.copy(kernel), "copied")
    _check_same(kernel, copy.deepcopy(kernel), "deep-copied")
    if not any(_holds_a_function(v) for k in inside for v in k.get_params(deep=False).values()):
        _check_same(kernel, _from_text(kernel), "evaluated from its repr")
        if not any("<locals>" in type(k).__qualname__ for k in inside):
            _check_same(kernel, pickle.loads(pickle.dumps(kernel)), "pickled and loaded")
    _check_frozen(kernel)


def _holds_a_function(value: Any) -> bool:
    """Whether a parameter is a function, whose repr cannot be evaluated."""
    inside = getattr(value, "function", value) if isinstance(value, Map) else value
    return callable(inside) and not isinstance(inside, Kernel)


def _check_same(kernel: Kernel, other: Any, how: str) -> None:
    require(other == kernel, kernel, f"{how}, it is not equal to itself: {other!r}")
    require(hash(other) == hash(kernel), kernel, f"{how}, it is equal but has another hash")
    require(repr(other) == repr(kernel), kernel, f"{how}, its repr is {other!r}")
    require(other.program.profile is not None, kernel, f"{how}, it no longer works")
    _check_frozen(other)


def _from_text(kernel: Kernel) -> Any:
    """Evaluate the repr with the public kernels, and the classes that the kernel contains."""
    names = {name: getattr(kernels, name) for name in kernels.__all__}
    names |= {type(k).__name__: type(k) for k in _kernels(kernel)} | {"Domain": Domain}
    try:
        return eval(repr(kernel), names)
    except Exception as error:  # noqa: BLE001  (any error is a failure)
        fail(kernel, f"its repr cannot be evaluated: {type(error).__name__}, {error}")


def _check_frozen(kernel: Kernel) -> None:
    """Attributes cannot be set, and arrays cannot be written to."""
    items = ((k, *item) for k in _kernels(kernel) for item in k.get_params(deep=False).items())
    for owner, name, value in items:
        try:
            setattr(owner, name, value)
        except AttributeError:
            pass
        else:
            fail(kernel, f"is not immutable: {type(owner).__name__}.{name} can be set")
        array = getattr(value, "array", value) if isinstance(value, Map) else value
        if isinstance(array, np.ndarray):
            require(not array.flags.writeable, kernel, f"is not immutable: {name} is writeable")


def _kernels(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    for value in kernel.get_params(deep=False).values():
        if isinstance(value, Kernel):
            yield from _kernels(value)
