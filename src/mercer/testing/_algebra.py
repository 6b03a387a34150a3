"""Check the algebra of kernels: sums, products, multiples and maps of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Map
from mercer.exceptions import DerivativeError, InputError
from mercer.kernels import Columns, Kernel, Matrix, Scales
from mercer.testing._claims import check_claims
from mercer.testing._lattice import DIMENSIONS, cloud, dimensions
from mercer.testing._report import agree, fail, require

_TOL = 1e-12


def check_algebra(kernels: Sequence[Kernel]) -> None:
    """Check the algebra of kernels: sums, products, multiples and maps of points.

    Each kernel is combined with the next two of the list (which starts again at its end). Sums and
    products must commute, associate and distribute, multiples must scale, maps must compose, and
    gradients must follow the sum and product rules. Differences and negative multiples must be
    refused. The claims of composites are checked on lattices.

    Parameters
    ----------
    kernels : sequence of Kernel
        At least one. All must take vectors with a common number of columns.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.testing import check_algebra
    >>> check_algebra([mc.Gaussian(1.0), mc.Linear(), mc.Laplace(2.0)])
    """
    kernels = list(kernels)
    require(kernels, kernels, "the list of kernels is empty")
    shared = set(DIMENSIONS).intersection(*(dimensions(k) for k in kernels))
    require(shared, kernels, f"no number of columns among {DIMENSIONS} suits all of them")
    d = 3 if 3 in shared else min(shared)
    rng = np.random.default_rng(0)
    for i, a in enumerate(kernels):
        b, c = kernels[(i + 1) % len(kernels)], kernels[(i + 2) % len(kernels)]
        X = cloud(a + b + c, d, rng)
        Y = X[::-1] * 0.8
        _check_ring(a, b, c, X, Y)
        _check_refusals(a)
        _check_maps(a, b, X, Y, rng)
        _check_rules(a, b, X, Y)
        mapped = (a * b + c).transform(Scales(np.arange(d) + 0.5))
        for composite in ((a + b) * c, 2.0 * a + 0.5, mapped):
            check_claims(composite, composite.flags, dims=(d,))


@np.errstate(over="ignore")  # values that overflow are infinite on both sides
def _check_ring(a: Kernel, b: Kernel, c: Kernel, X: Array, Y: Array) -> None:
    A, B, C = (k(X, Y) for k in (a, b, c))
    laws = {
        "a + b": (a + b, A + B),
        "a + b = b + a": (b + a, A + B),
        "a * b": (a * b, A * B),
        "a * b = b * a": (b * a, A * B),
        "(a + b) + c": ((a + b) + c, A + B + C),
        "a + (b + c)": (a + (b + c), A + B + C),
        "(a * b) * c": ((a * b) * c, A * B * C),
        "a * (b * c)": (a * (b * c), A * B * C),
        "(a + b) * c": ((a + b) * c, A * C + B * C),
        "a * c + b * c": (a * c + b * c, A * C + B * C),
        "(a * b + c) * (a + 1)": ((a * b + c) * (a + 1.0), (A * B + C) * (A + 1.0)),
        "3 a": (3.0 * a, 3.0 * A),
        "a 3": (a * np.float64(3.0), 3.0 * A),
        "a + 2": (a + 2.0, A + 2.0),
        "2 + a": (2 + a, A + 2.0),
        "2 (a / 2)": (2.0 * (0.5 * a), A),
        "2 (a + 1)": ((a + 1.0) * 2.0, 2.0 * A + 2.0),
    }
    size = _largest(A, B, C)
    for law, (kernel, expected) in laws.items():
        equal = partial(agree, kernel, tol=_TOL, size=4.0 * (1.0 + size**3))
        equal(law, kernel(X, Y), expected)
        equal(f"{law}, diagonal,", kernel.diag(X), np.diag(kernel(X)))


def _check_refusals(a: Kernel) -> None:
    """Operations whose result need not be a kernel are refused."""
    refused: dict[str, Callable[[], Any]] = {
        "a - b": lambda: a - a,
        "-a": lambda: -a,
        "-1 * a": lambda: -1.0 * a,
        "0 * a": lambda: 0.0 * a,
        "a + (-1)": lambda: a + -1.0,
        "1 - a": lambda: 1.0 - a,
        "nan * a": lambda: float("nan") * a,
    }
    for what, broken in refused.items():
        try:
            broken()
        except InputError:
            continue
        fail(a, f"{what} must be refused with an InputError, because it need not be a kernel")


def _check_maps(a: Kernel, b: Kernel, X: Array, Y: Array, rng: np.random.Generator) -> None:
    d = X.shape[1]
    lengths = rng.uniform(0.5, 2.0, d)
    M = rng.normal(size=(d, d)) / np.sqrt(d)
    order = rng.permutation(d)
    maps: list[tuple[Map, Callable[[Array], Array]]] = [
        (Scales(lengths), lambda Z: Z / lengths),
        (Matrix(M), lambda Z: Z @ M.T),
        (Columns(order), lambda Z: Z[:, order]),
    ]
    for point_map, action in maps:
        moved = a.transform(point_map)
        size = _largest(a(action(X)), a(action(Y)))
        agree(moved, "k(Ax, Ay)", moved(X, Y), a(action(X), action(Y)), tol=1e-10, size=size)
        twice = moved.transform(Scales(lengths))
        expected = a(action(X / lengths), action(Y / lengths))
        agree(twice, "k(A(Bx), A(By))", twice(X, Y), expected, tol=1e-10, size=_largest(expected))
        for law, both, apart in (
            ("the map of a sum", (a + b).transform(point_map), moved + b.transform(point_map)),
            ("the map of a product", (a * b).transform(point_map), moved * b.transform(point_map)),
        ):
            agree(both, law, both(X, Y), apart(X, Y), tol=1e-10, size=_largest(apart(X)))


def _check_rules(a: Kernel, b: Kernel, X: Array, Y: Array) -> None:
    """Gradients and mixed derivatives of sums and products."""
    try:
        da, db = a.gradient(X, Y), b.gradient(X, Y)
    except DerivativeError:
        return
    A, B = a(X, Y)[..., None], b(X, Y)[..., None]
    size = _largest(da, db) + _largest(A, B)
    agree(a + b, "the sum rule", (a + b).gradient(X, Y), da + db, tol=1e-11, size=size)
    product = A * db + B * da
    agree(a * b, "the product rule", (a * b).gradient(X, Y), product, tol=1e-11, size=size**2)
    total = a.mixed_derivative(X, Y) + b.mixed_derivative(X, Y)
    actual = (a + b).mixed_derivative(X, Y)
    smooth = np.isfinite(total)
    same = np.array_equal(smooth, np.isfinite(actual))
    require(same, a + b, "its cusps are not those of a and b")
    agree(a + b, "the sum rule of mixed derivatives", actual[smooth], total[smooth], tol=1e-11)


def _largest(*arrays: Any) -> float:
    return max(float(np.abs(a).max()) for a in arrays)
