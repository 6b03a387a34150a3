"""The laws of an inner product space, on elements drawn by hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mercer as mc

KERNELS = [
    mc.Gaussian(1.0),
    mc.Laplace(0.7),
    mc.Polynomial(2),
    mc.Gaussian(2.0) * mc.Linear() + 0.5 * mc.Matern(1.5),
    mc.kernels.Normalised(mc.Linear() + 1.0),
]
number = st.floats(-10, 10).map(lambda x: round(x, 3))


@st.composite
def elements(draw, count, batch=None):
    """Some elements of one space, on different points, some of which coincide."""
    kernel = draw(st.sampled_from(KERNELS))
    d = draw(st.integers(1, 5))
    out = []
    for _ in range(count):
        n = draw(st.integers(1, 6))
        X = draw(arrays(np.float64, (n, d), elements=st.integers(-3, 3).map(lambda i: i / 2)))
        a = draw(arrays(np.float64, n if batch is None else (n, batch), elements=number))
        out.append(mc.Element(kernel, X, a))
    return out


def size(*psi):
    """An upper bound for the norms, from which rounding errors follow."""
    total = 1e-12
    for p in psi:
        A = np.abs(p.coef.tile(slice(None), slice(None)))
        total += float((A * np.sqrt(p.kernel.diag(p.points))[:, None]).sum(axis=0).max())
    return total


@given(elements(3), number, number)
def test_inner_product_is_bilinear_and_symmetric(psi, a, b):
    f, g, h = psi
    scale = size(f, g, h) ** 2 * (abs(a) + abs(b) + 1)
    assert abs((a * f + b * g).inner(h) - a * f.inner(h) - b * g.inner(h)) <= 1e-12 * scale
    assert abs(f.inner(g) - g.inner(f)) <= 1e-12 * scale


@given(elements(2))
def test_cauchy_schwarz(psi):
    f, g = psi
    assert abs(f.inner(g)) <= f.norm() * g.norm() + 1e-7 * size(f) * size(g)


@given(elements(2))
def test_norms_exist_and_follow_from_inner_products(psi):
    f, g = psi
    for one in (f, g, f + g, f - g):
        norm = one.norm()
        assert np.isfinite(norm)
        assert abs(norm**2 - one.inner(one)) <= 1e-11 * size(one) ** 2
        assert abs((-3.0 * one).norm() - 3.0 * norm) <= 1e-6 * size(one)


@given(elements(3))
def test_triangle_inequality(psi):
    f, g, h = psi
    assert f.distance(h) <= f.distance(g) + g.distance(h) + 1e-6 * size(f, g, h)
    assert abs(f.norm() - g.norm()) <= f.distance(g) + 1e-6 * size(f, g)
    assert abs(f.distance(g) - g.distance(f)) <= 1e-6 * size(f, g)


@given(elements(2))
def test_parallelogram_law(psi):
    f, g = psi
    both = (f + g).norm() ** 2 + (f - g).norm() ** 2
    assert abs(both - 2 * f.norm() ** 2 - 2 * g.norm() ** 2) <= 1e-10 * size(f, g) ** 2


@given(elements(1), st.data())
def test_reproducing_property(psi, data):
    """<psi, k(y, .)> = psi(y)."""
    f = psi[0]
    Y = data.draw(arrays(np.float64, (3, f.points.shape[1]), elements=number))
    phi = mc.feature(f.kernel, Y)
    scale = size(f) * np.sqrt(f.kernel.diag(Y).max())
    assert np.all(np.abs(f.inner(phi) - f(Y)) <= 1e-12 * scale)


@given(elements(3))
def test_addition_commutes_and_associates(psi):
    f, g, h = psi
    Y, scale = f.points, size(f, g, h) * 30.0
    for a, b in (((f + g) + h, f + (g + h)), (f + g, g + f), (f - g, f + (-g)), (f + f, 2.0 * f)):
        assert np.all(np.abs(a(Y) - b(Y)) <= 1e-12 * scale)
        assert a.distance(b) <= 1e-6 * scale


@given(elements(2))
def test_merging_changes_nothing(psi):
    f = psi[0] + psi[1] + psi[0]
    merged = f.merge()
    assert len(np.unique(merged.points, axis=0)) == len(merged.points)
    assert f.distance(merged) <= 1e-6 * size(f)


@given(elements(2, batch=3), arrays(np.float64, (3, 2), elements=number))
def test_combinations_are_linear(psi, W):
    f, g = psi
    scale = size(f, g) * (1 + np.abs(W).sum()) * 30
    left, right = (f + g).combine(W), f.combine(W) + g.combine(W)
    assert np.all(np.abs(left(f.points) - right(f.points)) <= 1e-12 * scale)
    inner = f.combine(W).inner(g)
    assert np.all(np.abs(inner - W.T @ f.inner(g)) <= 1e-11 * scale**2)


@settings(max_examples=25)
@given(elements(2), elements(1, batch=2), st.data())
def test_projections_are_the_nearest_elements(psi, spanning, data):
    origin, f = psi
    kernel, d = origin.kernel, origin.points.shape[1]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    basis = mc.Element(kernel, rng.normal(size=(4, d)), rng.normal(size=(4, 2)))
    plane = mc.Subspace.span(origin, basis)
    scale = size(origin, f, basis)
    shadow, distance = plane.project(f), plane.distance(f)
    assert abs(f.distance(shadow) - distance) <= 1e-6 * scale
    for _ in range(3):
        other = plane.element(plane.coordinates(f) + scale * rng.normal(size=plane.dim))
        assert distance <= f.distance(other) + 1e-6 * scale
    assert plane.project(shadow).distance(shadow) <= 1e-6 * scale
    residual = f - shadow
    assert np.all(np.abs(plane.directions.inner(residual)) <= 1e-8 * scale)


@given(elements(4))
def test_tensor_products_multiply_inner_products(psi):
    u, v, a, b = psi
    scale = size(u) * size(v) * size(a) * size(b)
    left = mc.space.tensor(u, v).inner(mc.space.tensor(a, b))
    assert abs(left - u.inner(a) * v.inner(b)) <= 1e-11 * scale
    image = mc.space.tensor(u, v)(a)
    assert image.distance(v.inner(a) * u) <= 1e-6 * scale / size(b)
