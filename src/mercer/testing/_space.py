"""Check elements (values, derivatives, geometry, combinations) and subspaces (projections)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine import n_columns, n_rows
from mercer.exceptions import DerivativeError
from mercer.kernels import Definiteness
from mercer.space import Element, Subspace
from mercer.testing._lattice import accepts, natural_scale
from mercer.testing._report import agree, agree_with_differences, require


def check_element(psi: Element, queries: Any = None) -> None:
    """Check values, derivatives, norms and arithmetic of an element.

    The checks compare values with sums over pairs, and the gradient and Hessian with differences.
    They cover inner products, norms, |psi(x)| <= sqrt(k(x, x)) |psi|, sums, multiples, linear
    combinations and merging of equal points. The elements of a batch must be the same one by one,
    by slice, and paired with queries.

    Parameters
    ----------
    psi : Element
        A small element or batch; the checks are slow.
    queries : optional
        Points at which to evaluate; by default some of the element's own and some near them.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.testing import check_element
    >>> psi = mc.Element(mc.Laplace(1.0), [[0.0], [1.0], [1.0]], [1.0, -2.0, 0.5])
    >>> check_element(psi)
    """
    rng = np.random.default_rng(0)
    Y = _queries(psi, rng) if queries is None else psi.queries(queries)
    A = np.asarray(psi.coef.tile(slice(None), slice(None)), dtype=np.float64)
    tol = 1e-4 if getattr(psi.points, "dtype", None) == np.float32 else 1e-10
    K, own = _loop(psi, Y), psi.kernel(psi.points)
    values = psi(Y)
    cure = "take points and `queries` nearer to the origin"
    finite = np.isfinite(K).all() and np.isfinite(own).all()
    require(finite, psi, f"cannot be checked: kernel values overflow; {cure}")
    size = float((np.abs(K) @ np.abs(A)).max()) + 1e-300
    law, flat = "psi(y) = sum_i a_i k(x_i, y)", values.reshape(len(values), -1)
    agree(psi, law, flat, K @ A, tol=tol, size=size)
    expected = (n_rows(Y),) if psi.batch is None else (n_rows(Y), psi.batch)
    require(values.shape == expected, psi, f"psi(Y) has shape {values.shape}, not {expected}")
    _check_derivatives(psi, A, Y, tol)
    _check_geometry(psi, A, Y, tol)
    _check_combinations(psi, Y, tol, size, rng)
    if psi.batch is not None:
        _check_batch(psi, Y, tol, size, rng)


def check_subspace(plane: Subspace, psi: Element | None = None, *, tol: float = 1e-8) -> None:
    """Check the identities of a subspace.

    Directions must be orthonormal. Projections must have the right coordinates, stay in place when
    projected again, leave a residual that is orthogonal to every direction, obey Pythagoras, and be
    nearer than other elements of the subspace. Truncation must keep the first coordinates.

    Parameters
    ----------
    plane : Subspace
        Its kernel must be positive definite.
    psi : Element, optional
        A batch of elements to project; by default random ones on the subspace's points.
    tol : float, default=1e-8
        The relative error allowed; its square root for distances near zero. Allowed as well are
        the rounding errors of inner products, which are large if features are nearly equal, and
        those of eigenvalues, which are relative to the sum of k(x, x).

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.testing import check_subspace
    >>> k = mc.Gaussian(1.0)
    >>> X = [[0.0], [1.0], [3.0]]
    >>> check_subspace(mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)))
    """
    rng = np.random.default_rng(0)
    f, origin, r = plane.directions, plane.origin, plane.dim
    A = np.abs(np.asarray(f.coef.tile(slice(None), slice(None)), dtype=np.float64))
    K = origin.kernel(f.points)
    products = float(np.max(A.T @ np.abs(K) @ A, initial=0.0))
    if plane.eigenvalues is not None and r:
        products = max(products, float(np.trace(K)) / float(np.min(plane.eigenvalues)))
    tol = max(tol, 16.0 * np.finfo(np.float64).eps * products)
    agree(plane, "orthonormality of its directions", f.inner(f), np.eye(r), tol=tol)
    if psi is None:
        psi = Element(origin.kernel, f.points, rng.normal(size=(n_rows(f.points), 4)))
    b, loose = len(psi), np.sqrt(tol)
    size = float(np.max(psi.distance(origin))) + float(origin.norm())
    equal = partial(agree, plane, tol=tol, size=size)
    c, shadow, distance = plane.coordinates(psi), plane.project(psi), plane.distance(psi)
    require(c.shape == (b, r), plane, f"coordinates have shape {c.shape}, not {(b, r)}")
    expected = np.asarray(f.inner(psi)).T - np.asarray(f.inner(origin))
    equal("coordinates = <psi - origin, f>", c, expected)
    equal("coordinates of a projection", plane.coordinates(shadow), c)
    again = plane.project(shadow).distance(shadow)
    equal("projecting twice", again, np.zeros(b), tol=loose)
    equal("orthogonality of the residual", (psi - shadow).inner(f), np.zeros((b, r)))
    squares = np.sum(c**2, axis=1) + distance**2
    equal("Pythagoras", squares, psi.distance(origin) ** 2, size=size**2)
    equal("distance = |psi - projection|", distance, psi.distance(shadow), tol=loose)
    equal("coordinates of the origin", plane.coordinates(origin), np.zeros(r))
    short = plane.truncate(max(1, r // 2))
    equal("truncation", short.coordinates(psi), c[:, : short.dim])
    for step in (1e-2, 1.0):
        other = plane.element(c + step * size * rng.normal(size=c.shape))
        gain = float(np.max(distance - psi.distance(other)))
        message = f"an element of the subspace is nearer than the projection, by {gain:.3g}"
        require(gain <= loose * size, plane, message)
    equal("coordinates of one element", plane.coordinates(psi[0]), c[0])
    single, Y = plane.project(psi[0]), psi.points[:4]
    require(single.batch is None, plane, "the projection of one element is a batch")
    batch = shadow(Y)[:, 0]
    equal("the projection of one element", single(Y), batch, size=np.abs(batch).max() + size)


def _check_derivatives(psi: Element, A: Array, Y: Any, tol: float) -> None:
    if not psi.kernel.domain.is_vector:
        return
    try:
        gradient, hessian = psi.gradient(Y), psi.hessian(Y)
    except DerivativeError:
        return
    double = Element(psi.kernel, _double(psi.points), A[:, 0] if psi.batch is None else A)
    Y = _double(Y)
    length = natural_scale(psi.kernel, Y.shape[1])
    exact = double.gradient(Y)
    terms = float((np.abs(np.asarray(psi.kernel(Y, double.points))) @ np.abs(A)).max())
    size = float(np.abs(exact).max()) + terms / length
    agree(psi, "its gradient", gradient, exact, tol=100 * tol, size=size)
    agree_with_differences(psi, "its gradient", exact, double, Y, length, terms)
    cusps = any(psi.kernel.program.cusps) & (Y[:, None] == double.points).all(axis=2).any(axis=1)
    exact = double.hessian(Y)
    agree_with_differences(psi, "its Hessian", exact, double.gradient, Y, length, size, cusps)
    smooth, size = np.isfinite(hessian), size / length + size
    equal = partial(agree, psi, tol=100 * tol, size=size)
    equal("its Hessian", hessian[smooth], double.hessian(Y)[smooth])
    gap = np.nan_to_num(hessian - np.swapaxes(hessian, -1, -2))
    equal("symmetry of its Hessian", gap, 0.0 * gap)


def _check_geometry(psi: Element, A: Array, Y: Any, tol: float) -> None:
    kernel = psi.kernel
    K = np.asarray(kernel(psi.points), dtype=np.float64)
    gram = A.T @ K @ A
    size = float((np.abs(A).T @ np.abs(K) @ np.abs(A)).max()) + 1e-300
    inner, equal = np.asarray(psi.inner(psi)), partial(agree, psi, tol=tol, size=size)
    equal("<psi, psi> = a' K a", inner.reshape(gram.shape), gram)
    if kernel.flags.definiteness is not Definiteness.POSITIVE:
        return
    norm = np.atleast_1d(psi.norm())
    equal("|psi|^2 = a' K a", norm**2, np.diag(gram))
    zero, loose = np.zeros(np.shape(psi.norm())), np.sqrt([tol, size])
    equal("|psi - psi| = 0", psi.distance(psi), zero, tol=loose[0], size=loose[1])
    bound = np.sqrt(kernel.diag(Y))[:, None] * norm
    excess = float((np.abs(psi(Y)).reshape(bound.shape) - bound).max())
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
        ("psi + phi + psi", psi + other + psi, 2.0 * values + theirs),
        ("psi.merge()", psi.merge(), values),
        ("(psi + psi).merge()", (psi + psi).merge(), 2.0 * values),
    ):
        agree(psi, law, combined(Y), expected, tol=tol, size=4.0 * size)
    kept, distinct = n_rows(psi.merge().points), n_rows(psi.points)
    if hasattr(psi.points, "dtype") and psi.points.dtype != object:
        distinct = np.unique(_double(psi.points), axis=0).shape[0]
    require(kept <= distinct, psi, f"psi.merge() keeps {kept} points, but {distinct} are distinct")
    law = "<psi + phi, phi> = <psi, phi> + <phi, phi>"
    expected = np.asarray(psi.inner(other)) + np.asarray(other.inner(other))
    scale = float(np.abs(expected).max()) + size
    agree(psi, law, (psi + other).inner(other), expected, tol=100 * tol, size=scale)


def _check_batch(psi: Element, Y: Any, tol: float, size: float, rng: np.random.Generator) -> None:
    b, values = len(psi), psi(Y)
    equal = partial(agree, psi, tol=tol, size=size)
    picks: list[Any] = [0, b // 2, -1, slice(None, None, 2), slice(min(1, b - 1), None), [b - 1, 0]]
    for pick in (*picks, np.arange(b) % 2 == 0, np.array([0, 0, b - 1])):
        equal(f"psi[{pick}]", psi[pick](Y), values[:, pick])
    W = rng.normal(size=(b, 2))
    equal("psi.combine(W)", psi.combine(W)(Y), values @ W, size=10.0 * b * size)
    equal("psi.combine(w)", psi.combine(W[:, 0])(Y), values @ W[:, 0], size=10.0 * b * size)
    equal("psi * w", (psi * W[:, 0])(Y), values * W[:, 0], size=10.0 * size)
    each = [psi[j].inner(psi[j]) for j in range(b)]
    inner = np.asarray(psi.inner(psi))
    scale = float(np.abs(inner).max()) + size
    equal("inner products one by one", np.diag(inner), each, tol=10 * tol, size=scale)
    rows = np.resize(np.arange(n_rows(Y)), b)
    paired = psi.fields(Y[rows], paired=True).value
    equal("values paired with queries", paired, values[rows, np.arange(b)])


def _queries(psi: Element, rng: np.random.Generator) -> Any:
    """Some of the points and, for vectors, some near them."""
    X = psi.points[: min(3, n_rows(psi.points))]
    if not psi.kernel.domain.is_vector:
        return X
    X = _double(X)
    length = natural_scale(psi.kernel, X.shape[1])
    Y = np.concatenate([X, X + 0.5 * length * rng.normal(size=X.shape), X[:1] + 3.0 * length])
    Y = Y.astype(psi.points.dtype, copy=False)
    return psi.queries(Y[[accepts(psi.kernel, Y[j : j + 1]) for j in range(len(Y))]])


def _loop(psi: Element, Y: Any) -> Array:
    """k(y_j, x_i) one pair at a time."""
    rows, columns = ([Z[i : i + 1] for i in range(n_rows(Z))] for Z in (Y, psi.points))
    return np.array([[float(psi.kernel(y, x)[0, 0]) for x in columns] for y in rows])


def _double(X: Any) -> Array:
    dense = X.toarray() if is_sparse(X) else X
    return np.asarray(dense) if not n_columns(X) else np.asarray(dense, dtype=np.float64)
