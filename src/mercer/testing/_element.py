"""`check_element`: an element is the function, and the vector, that its coefficients say."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._random import as_generator
from mercer.engine import n_columns, n_rows
from mercer.exceptions import DerivativeError
from mercer.kernels import Definiteness
from mercer.space import Element
from mercer.testing._differences import agree_with_differences
from mercer.testing._lattice import accepts, natural_scale
from mercer.testing._report import agree, require


def check_element(psi: Element, queries: Any = None, *, random_state: Any = 0) -> None:
    """Raise an AssertionError unless psi = sum_i a_i k(x_i, .) in every respect.

    Tried are: values against the sum over points one query at a time; gradient and Hessian against
    differences; <psi, phi> = a' K b and the norm; |psi(x)| <= sqrt(k(x, x)) |psi|; sums, multiples
    and linear combinations; merging of equal points; and, for a batch, that its elements taken one
    by one, by slice or in pairs with queries are the same elements.

    Parameters
    ----------
    psi : Element
        One element or a batch; small, because the checks are slow.
    queries : optional
        Points at which to evaluate; by default some of the element's own and some beside them.
    random_state : int, Generator, RandomState or None, default=0

    Raises
    ------
    AssertionError
        With a sentence that names the law and the size of the violation.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.testing import check_element
    >>> psi = mc.Element(mc.Laplace(1.0), [[0.0], [1.0], [1.0]], [1.0, -2.0, 0.5])
    >>> check_element(psi)
    """
    rng = as_generator(random_state)
    Y = _queries(psi, rng) if queries is None else psi.queries(queries)
    A = _coefficients(psi)
    tol = 1e-4 if getattr(psi.points, "dtype", None) == np.float32 else 1e-10
    K = _loop(psi, Y)
    values = psi(Y)
    size = float((np.abs(K) @ np.abs(A)).max()) + 1e-300
    agree(psi, "psi(y) = sum_i a_i k(x_i, y)", _columns(values), K @ A, tol=tol, size=size)
    expected = (n_rows(Y),) if psi.batch is None else (n_rows(Y), psi.batch)
    require(values.shape == expected, psi, f"psi(Y) has shape {values.shape}, not {expected}")
    _check_derivatives(psi, Y, tol)
    _check_geometry(psi, A, Y, tol)
    _check_combinations(psi, Y, tol, size, rng)
    if psi.batch is not None:
        _check_batch(psi, Y, tol, size, rng)


def _check_derivatives(psi: Element, Y: Any, tol: float) -> None:
    if not psi.kernel.domain.is_vector:
        return
    try:
        gradient, hessian = psi.gradient(Y), psi.hessian(Y)
    except DerivativeError:
        return
    coef = _coefficients(psi)
    double = Element(psi.kernel, _double(psi.points), coef[:, 0] if psi.batch is None else coef)
    Y = _double(Y)
    length = natural_scale(psi.kernel, Y.shape[1])
    exact = double.gradient(Y)
    size = float(np.abs(exact).max()) + float(np.abs(double(Y)).max()) / length
    agree(psi, "its gradient", gradient, exact, tol=100 * tol, size=size)
    agree_with_differences(psi, "its gradient", exact, double, Y, length)
    agree_with_differences(psi, "its Hessian", double.hessian(Y), double.gradient, Y, length, size)
    smooth = np.isfinite(hessian)
    agree(
        psi,
        "its Hessian",
        hessian[smooth],
        double.hessian(Y)[smooth],
        tol=100 * tol,
        size=size / length + size,
    )
    gap = np.nan_to_num(hessian - np.swapaxes(hessian, -1, -2))
    agree(psi, "symmetry of its Hessian", gap, 0.0 * gap, tol=100 * tol, size=size / length + size)


def _check_geometry(psi: Element, A: Array, Y: Any, tol: float) -> None:
    kernel = psi.kernel
    K = np.asarray(kernel(psi.points), dtype=np.float64)
    gram = A.T @ K @ A
    size = float((np.abs(A).T @ np.abs(K) @ np.abs(A)).max()) + 1e-300
    inner = np.asarray(psi.inner(psi))
    agree(psi, "<psi, psi> = a' K a", inner.reshape(gram.shape), gram, tol=tol, size=size)
    if kernel.flags.definiteness is not Definiteness.POSITIVE:
        return
    norm = np.atleast_1d(psi.norm())
    agree(psi, "|psi|^2 = a' K a", norm**2, np.diag(gram), tol=tol, size=size)
    agree(
        psi,
        "|psi - psi| = 0",
        psi.distance(psi),
        np.zeros(np.shape(psi.norm())),
        tol=np.sqrt(tol),
        size=np.sqrt(size),
    )
    bound = np.sqrt(kernel.diag(Y))[:, None] * norm
    values = np.abs(_columns(psi(Y)))
    excess = float((values - bound).max())
    slack = np.sqrt(tol * size) * float(np.sqrt(kernel.diag(Y).max()))
    require(excess <= slack, psi, f"|psi(x)| exceeds sqrt(k(x, x)) |psi| by {excess:.3g}")


def _check_combinations(
    psi: Element, Y: Any, tol: float, size: float, rng: np.random.Generator
) -> None:
    values = psi(Y)
    other = Element(psi.kernel, psi.points, rng.normal(size=n_rows(psi.points)))
    theirs = other(Y) if psi.batch is None else other(Y)[:, None]
    size = size + float(np.abs(theirs).max())
    for law, combined, expected in (
        ("psi + psi", psi + psi, 2.0 * values),
        ("psi - psi", psi - psi, 0.0 * values),
        ("psi + phi", psi + other, values + theirs),
        ("phi + psi", other + psi, values + theirs),
        ("-psi", -psi, -values),
        ("3 psi", 3.0 * psi, 3.0 * values),
        ("psi / 2", psi / 2.0, 0.5 * values),
        ("sum([psi, phi, psi])", _sum(psi, other, psi), 2.0 * values + theirs),
        ("psi.merge()", psi.merge(), values),
        ("(psi + psi).merge()", (psi + psi).merge(), 2.0 * values),
    ):
        agree(psi, law, combined(Y), expected, tol=tol, size=4.0 * size)
    merged = psi.merge()
    require(
        n_rows(merged.points) <= n_rows(psi.points), psi, "psi.merge() has more points than psi"
    )
    if hasattr(merged.points, "dtype") and merged.points.dtype != object:
        distinct = np.unique(_double(psi.points), axis=0).shape[0]
        require(
            n_rows(merged.points) <= distinct,
            psi,
            f"psi.merge() keeps {n_rows(merged.points)} points, of which {distinct} are distinct",
        )
    product = np.asarray((psi + other).inner(other))
    expected = np.asarray(psi.inner(other)) + np.asarray(other.inner(other))
    scale = float(np.abs(expected).max()) + size
    agree(
        psi,
        "<psi + phi, phi> = <psi, phi> + <phi, phi>",
        product,
        expected,
        tol=100 * tol,
        size=scale,
    )


def _check_batch(psi: Element, Y: Any, tol: float, size: float, rng: np.random.Generator) -> None:
    b, values = len(psi), psi(Y)
    for j in (0, b // 2, -1):
        agree(psi, f"psi[{j}]", psi[j](Y), values[:, j], tol=tol, size=size)
    picks: list[Any] = [slice(None, None, 2), slice(1, None) if b > 1 else slice(None), [b - 1, 0]]
    picks += [np.arange(b) % 2 == 0, np.array([0, 0, b - 1])]
    for pick in picks:
        agree(psi, f"psi[{pick}]", psi[pick](Y), values[:, pick], tol=tol, size=size)
    W = rng.normal(size=(b, 2))
    agree(psi, "psi.combine(W)", psi.combine(W)(Y), values @ W, tol=tol, size=10.0 * b * size)
    agree(
        psi,
        "psi.combine(w)",
        psi.combine(W[:, 0])(Y),
        values @ W[:, 0],
        tol=tol,
        size=10.0 * b * size,
    )
    agree(psi, "psi * w", (psi * W[:, 0])(Y), values * W[:, 0], tol=tol, size=10.0 * size)
    each = [psi[j].inner(psi[j]) for j in range(b)]
    inner = np.asarray(psi.inner(psi))
    agree(
        psi,
        "inner products one by one",
        np.diag(inner),
        each,
        tol=10 * tol,
        size=float(np.abs(inner).max()) + size,
    )
    rows = np.resize(np.arange(n_rows(Y)), b)
    paired = psi.fields(Y[rows], paired=True).value
    agree(psi, "paired with queries", paired, values[rows, np.arange(b)], tol=tol, size=size)


def _queries(psi: Element, rng: np.random.Generator) -> Any:
    """Some of the points, and for vectors some beside them."""
    X = psi.points[: min(3, n_rows(psi.points))]
    if not psi.kernel.domain.is_vector:
        return X
    X = _double(X)
    length = natural_scale(psi.kernel, X.shape[1])
    Y = np.concatenate([X, X + 0.5 * length * rng.normal(size=X.shape), X[:1] + 3.0 * length])
    Y = Y.astype(psi.points.dtype, copy=False)
    return psi.queries(Y[[accepts(psi.kernel, Y[j : j + 1]) for j in range(len(Y))]])


def _sum(*elements: Element) -> Element:
    total: Any = sum(elements)
    return total  # type: ignore[no-any-return]


def _loop(psi: Element, Y: Any) -> Array:
    """k(y_j, x_i) one pair at a time."""
    X, k = psi.points, psi.kernel
    return np.array(
        [
            [float(k(Y[j : j + 1], X[i : i + 1])[0, 0]) for i in range(n_rows(X))]
            for j in range(n_rows(Y))
        ]
    )


def _coefficients(psi: Element) -> Array:
    return np.asarray(psi.coef.tile(slice(None), slice(None)), dtype=np.float64)


def _columns(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _double(X: Any) -> Array:
    dense = X.toarray() if is_sparse(X) else X
    return np.asarray(dense) if not n_columns(X) else np.asarray(dense, dtype=np.float64)
