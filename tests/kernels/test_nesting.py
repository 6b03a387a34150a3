"""Long sums, deep nesting and repeated kernels: they work, or are refused at once."""

import pickle
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels import Normalised, Product, Sum, Table


@pytest.fixture(autouse=True)
def at_once():
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < 20.0


def largest(step, k, times):
    """The last kernel before a step is refused, and the error."""
    try:
        for _ in range(times):
            k = step(k)
    except mc.InputError as error:
        return k, str(error)
    raise AssertionError("nothing was refused")


def works(k, X):
    assert isinstance(hash(k), int)
    assert k == pickle.loads(pickle.dumps(k))
    assert repr(k).count("Gaussian") + repr(k).count("Linear") > 1
    assert len(k.get_params()) > 1
    assert k.flags.is_positive_definite
    k.domain.check(X, "X")
    assert np.isfinite(k.gradient(X[:2], X)).all()
    assert mc.Element(k, X, np.ones(len(X))).norm() > 0
    return k(X)


@pytest.mark.parametrize("side", ["left", "right"])
def test_fifteen_hundred_kernels(side, rng):
    X = rng.normal(size=(4, 3))
    scales = np.linspace(1.0, 9.0, 1500)
    total, product = mc.Gaussian(scales[0]), mc.Gaussian(scales[0])
    for s in scales[1:]:
        k = mc.Gaussian(s)
        total = total + k if side == "left" else k + total
        product = product * k if side == "left" else k * product
    assert_allclose(works(total, X), sum(mc.Gaussian(s)(X) for s in scales), rtol=1e-12)
    assert_allclose(total.mixing_measure().mass, 1500.0)
    narrow = mc.Gaussian(np.sum(scales**-2.0) ** -0.5)
    assert_allclose(works(product, X), narrow(X), rtol=1e-10)


def test_one_kernel_for_each_of_many_columns(rng):
    X = rng.normal(size=(4, 150))
    k = mc.Gaussian(1.0).transform(mc.Columns([0]))
    for j in range(1, 150):
        k = k + mc.Gaussian(1.0).transform(mc.Columns([j]))
    expected = sum(mc.Gaussian(1.0)(X[:, [j]]) for j in range(150))
    assert_allclose(works(k, X), expected, rtol=1e-12)


def test_repeated_kernels_are_refused_at_once():
    for double in (lambda k: k + k, lambda k: k * k, lambda k: Table({"a": k, "b": k})):
        k, error = largest(double, mc.Gaussian(1.0), 26)
        assert "kernels is too large" in error
        assert "write 2.0 * k for k + k" in error
        assert k.flags is not None
        assert len(repr(k)) < 1e6
    assert k == k.replace()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda k: k.transform(mc.Scales([2.0])),
        Normalised,
        lambda k: k * mc.Linear() + 1.0,
        lambda k: Sum(k, mc.Linear()),
        lambda k: Product(mc.Linear(), k),
    ],
)
def test_deep_nesting_is_refused_at_once(wrap):
    k, error = largest(wrap, mc.Gaussian(1.0), 1500)
    assert "nested 51 deep, more than 50; group them" in error
    assert k.flags is not None
    assert k == pickle.loads(pickle.dumps(k))
    assert np.isfinite(k([[0.5], [1.0]])).all()
    with pytest.raises(mc.InputError, match=r"nested 51 deep"):
        wrap(pickle.loads(pickle.dumps(k)))


def test_a_regrouped_sum_keeps_its_terms_in_order():
    k = mc.Gaussian(1.0)
    for s in range(2, 200):
        k = k + mc.Gaussian(float(s))
    numbers = [float(part.split(")")[0]) for part in repr(k).split("length_scale=")[1:]]
    assert numbers == [float(s) for s in range(1, 200)]
    assert (mc.Gaussian(1.0) + mc.Linear() + mc.Laplace(1.0)).left == mc.Gaussian(1.0) + mc.Linear()


@pytest.mark.parametrize("wrong", [None, 1.0, "gaussian", mc.Gaussian, [mc.Gaussian(1.0)]])
def test_what_is_no_kernel(wrong):
    for make in (
        Normalised,
        lambda k: Table({"a": k}),
        lambda k: Sum(k, mc.Linear()),
        lambda k: Product(mc.Linear(), k),
        lambda k: mc.kernels.Transformed(k, mc.Scales([1.0])),
    ):
        with pytest.raises(mc.InputError, match=r"an argument of \w+ must be a Kernel such as"):
            make(wrong)
