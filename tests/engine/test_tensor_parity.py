"""Kernels and elements on tensors give what they give on NumPy arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer._tensors import is_tensor
from mercer.methods import hsic, ksd, mmd
from tests.engine.tensors import (
    LIBRARIES,
    ON_HISTOGRAMS,
    SMOOTHLY_MEASURED,
    data,
    needs_torch,
    numbers,
    tensor_of,
)

ENGINES = [None, "blocked"]  # torch on the host: the compiled core, or its own tiles


def same(call, make, rtol=1e-9, atol=1e-11):
    """The call on NumPy arrays and on tensors."""
    expected, found = call(np.asarray), call(make)
    assert is_tensor(found)
    assert str(found.dtype).endswith(str(np.asarray(expected).dtype))
    assert_allclose(numbers(found), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", SMOOTHLY_MEASURED, ids=repr)
@pytest.mark.parametrize("library", LIBRARIES)
def test_kernels_and_their_derivatives(library, kernel, engine):
    make, (X, Y, _) = tensor_of(library), data()
    with mc.options(engine=engine):
        same(lambda to: kernel(to(X), to(Y)), make)
        same(lambda to: kernel(to(X)), make, atol=1e-9)
        same(lambda to: kernel.diag(to(X)), make)
        same(lambda to: kernel.gradient(to(X), to(Y)), make)
        same(lambda to: kernel.mixed_derivative(to(X), to(Y)), make)


@pytest.mark.parametrize("kernel", ON_HISTOGRAMS, ids=repr)
@pytest.mark.parametrize("library", LIBRARIES)
def test_kernels_of_histograms(library, kernel):
    make, (X, Y, _) = tensor_of(library), data()
    same(lambda to: kernel(to(X**2), to(Y**2)), make)
    same(lambda to: kernel.diag(to(X**2)), make)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", SMOOTHLY_MEASURED, ids=repr)
@pytest.mark.parametrize("library", LIBRARIES)
def test_elements(library, kernel, engine):
    make, (X, Y, A) = tensor_of(library), data()

    def psi(to):
        return mc.Element(kernel, to(X), to(A))

    with mc.options(engine=engine):
        same(lambda to: psi(to)(to(Y)), make)
        same(lambda to: psi(to).gradient(to(Y)), make)
        same(lambda to: psi(to).hessian(to(Y)), make)
        same(lambda to: psi(to).fields(to(Y[:3]), order=2, paired=True).gradient, make)
        same(lambda to: psi(to).inner(psi(to)[1]), make)
        same(lambda to: (2.0 * psi(to)[0] - mc.mean_embedding(kernel, to(Y)) / 3.0)(to(Y)), make)
        same(lambda to: psi(to).combine(to(A[:3, :2])).gradient(to(Y)), make)


@pytest.mark.parametrize("library", LIBRARIES)
def test_norms_features_and_selections(library):
    make, (X, Y, A) = tensor_of(library), data()
    k = mc.Matern(1.5, 2.0) + mc.Linear()

    def residuals(to):
        return mc.feature(k, to(X)) - mc.mean_embedding(k, to(Y), weights=to(np.arange(1.0, 10.0)))

    same(lambda to: residuals(to).norm(), make)
    same(lambda to: residuals(to)[2:5].norm(), make)
    same(lambda to: residuals(to)[3].gradient(to(Y)), make)
    same(lambda to: mc.feature(k, to(X))(to(Y)), make)
    same(lambda to: mc.feature(k, to(X)).hessian(to(Y)), make)
    same(lambda to: mc.Element(k, to(X), to(A)).norm(), make)
    same(lambda to: (mc.feature(k, to(X)) * to(A[:, 0])).distance(mc.feature(k, to(X))), make)
    zero = mc.feature(k, make(X))
    assert_allclose(numbers((zero - zero).norm()), 0.0, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_constant_kernels(library):
    make, (X, Y, A) = tensor_of(library), data()
    k = mc.Gaussian(1.0) * 0.5 + 2.0
    for kernel in (k, mc.kernels.Constant(3.0)):
        same(lambda to, kernel=kernel: kernel(to(X), to(Y)), make)
        same(lambda to, kernel=kernel: mc.Element(kernel, to(X), to(A)).hessian(to(Y)), make)


@pytest.mark.parametrize("library", LIBRARIES)
def test_float32_stays_and_is_accurate(library):
    make, (X, Y, A) = tensor_of(library), data(np.float32)
    far = np.float32(1000.0)  # nothing depends on the origin
    for kernel in (mc.Gaussian(0.5), mc.Laplace(1.0)):
        same(lambda to, k=kernel: k(to(X + far), to(Y + far)), make, 1e-5, 1e-6)
        with mc.options(engine="blocked"):
            same(lambda to, k=kernel: k(to(X + far), to(Y + far)), make, 1e-5, 1e-6)
            same(lambda to, k=kernel: mc.Element(k, to(X), to(A)).gradient(to(Y)), make, 1e-4, 1e-5)


@pytest.mark.parametrize("working_memory", [0.01, 128])
@pytest.mark.parametrize("library", LIBRARIES)
def test_sums_do_not_depend_on_tiles(library, working_memory):
    make, (X, Y, A) = tensor_of(library), data()
    with mc.options(working_memory=working_memory, engine="blocked"):
        same(lambda to: mc.Element(mc.Matern(2.5), to(X), to(A)).hessian(to(Y)), make)
        same(lambda to: mc.Laplace(1.0)(to(X), to(Y)), make)


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "block", "incomplete"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_statistics(library, estimator):
    make, (X, Y, _) = tensor_of(library), data()
    Z = X[:, :2] ** 2
    k, other = mc.Gaussian(1.0), mc.Laplace(1.0)
    how = {"estimator": estimator, "random_state": 0}
    found = mmd(k, make(X), make(Y), **how)
    assert_allclose(numbers(found), mmd(k, X, Y, **how), rtol=1e-9)
    found = hsic(k, make(X), other, make(Z), **how)
    assert_allclose(numbers(found), hsic(k, X, other, Z, **how), rtol=1e-9)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize(
    "kernel",
    [
        mc.InverseMultiquadric(1.0, 0.5),
        mc.Gaussian(1.0) * mc.Polynomial(2),
        mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0, 0.5, 3.0])),
    ],
    ids=repr,
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_stein_discrepancies_and_weights(library, kernel, estimator):
    make, (X, Y, _) = tensor_of(library), data()
    w, v = np.arange(1.0, 15.0), np.arange(2.0, 11.0)
    how = {"estimator": estimator}
    found = ksd(kernel, make(X), lambda Z: -Z, weights=make(w), **how)
    assert_allclose(float(found), ksd(kernel, X, lambda Z: -Z, weights=w, **how), rtol=1e-9)
    found = mmd(kernel, make(X), make(Y), weights=(make(w), make(v)), **how)
    assert_allclose(float(found), mmd(kernel, X, Y, weights=(w, v), **how), rtol=1e-8)
    found = hsic(kernel, make(X), kernel, make(X), weights=w, centred=False, **how)
    assert_allclose(
        float(found), hsic(kernel, X, kernel, X, weights=w, centred=False, **how), rtol=1e-9
    )


@needs_torch
def test_elements_are_scores():
    make, (X, Y, _) = tensor_of("torch"), data()
    k = mc.InverseMultiquadric(1.0, 0.5)
    density = mc.mean_embedding(mc.Gaussian(1.0), Y)
    found = ksd(k, make(X), mc.mean_embedding(mc.Gaussian(1.0), make(Y)))
    assert_allclose(float(found), ksd(k, X, density), rtol=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_preimages(library):
    make, (X, _, A) = tensor_of(library), data()
    psi = {to: mc.Element(mc.Gaussian(2.0), to(X), to(np.abs(A) / 14)) for to in (np.asarray, make)}
    expected, found = (mc.preimage(psi[to]) for to in (np.asarray, make))
    assert is_tensor(found.points)
    assert_allclose(numbers(found.points), expected.points, rtol=1e-12)
    assert_allclose(found.distance, expected.distance)
    held = np.array([0.5, np.nan, np.nan, np.nan])
    found = mc.preimage(psi[make], fixed=make(held), start=make(X[0]))
    assert_allclose(numbers(found.points)[:, 0], 0.5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_float32_differences_are_not_noise(library):
    """Terms that cancel are added in float64, as those of arrays, and the result is rounded."""
    make, rng, k = tensor_of(library), np.random.default_rng(0), mc.Gaussian(1.0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    Y = (X + 1e-3 * rng.normal(size=X.shape)).astype(np.float32)
    w = np.arange(1.0, 61.0, dtype=np.float32)

    def gap(to):
        return mc.mean_embedding(k, to(X)) - mc.mean_embedding(k, to(Y))

    def near(to):
        one, other = mc.feature(k, to(X)), mc.feature(k, to(Y))
        return one, other, mc.Element(k, to(X), to(np.stack([w, -w], axis=1)))

    for call in (
        lambda to: gap(to).norm(),
        lambda to: gap(to).inner(gap(to)),
        lambda to: near(to)[0].distance(near(to)[1]),
        lambda to: near(to)[2].norm(),
        lambda to: mmd(k, to(X), to(Y), estimator="biased"),
        lambda to: mmd(k, to(X), to(Y), estimator="biased", weights=(to(w), w)),
        lambda to: mmd(k, to(X), to(Y)),
        lambda to: mmd(k, to(X), to(Y), estimator="block"),
        lambda to: mmd(k, to(X), to(Y), estimator="incomplete", random_state=0),
        lambda to: hsic(k, to(X), k, to(Y[::-1].copy())),
        lambda to: hsic(k, to(X), k, to(Y[::-1].copy()), estimator="incomplete", random_state=0),
        lambda to: ksd(k, to(X), lambda Z: -Z, weights=to(w)),
    ):
        found = call(make)
        assert str(found.dtype).endswith("float32")
        assert_allclose(numbers(found), call(np.float64), rtol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_constants_are_not_rounded(library):
    make = tensor_of(library)
    assert float(mc.kernels.Constant(0.1)(make(data()[0]))[0, 1]) == 0.1
