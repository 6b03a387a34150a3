"""Every kernel, and many made of several, through the public conformance kit."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import mercer as mc
from mercer.testing import awkward_kernels, check_algebra, check_kernel

SINGLE = [
    mc.Gaussian(1.0),
    mc.Gaussian(1e-3),
    mc.Gaussian(1e3),
    mc.Laplace(1.0),
    mc.Laplace(0.02),
    mc.Matern(0.5, 1.0),
    mc.Matern(1.5, 2.0),
    mc.Matern(2.5, 0.3),
    mc.RationalQuadratic(0.1, 1.0),
    mc.RationalQuadratic(1.0, 2.0),
    mc.RationalQuadratic(50.0, 0.5),
    mc.InverseMultiquadric(1.0, 0.5),
    mc.InverseMultiquadric(2.0, 1.0),
    mc.InverseMultiquadric(0.5, 10.0),
    mc.Epanechnikov(1.0),
    mc.Epanechnikov(1.0, 0.5),
    mc.Epanechnikov(0.25, 1.0),
    mc.NegativeDistance(1.0),
    mc.NegativeDistance(0.5, c=2.0),
    mc.NegativeDistance(2.0),
    mc.NegativeDistance(3.0),
    mc.Linear(),
    mc.Polynomial(1),
    mc.Polynomial(2, scale=3.0, offset=0.0),
    mc.Polynomial(3),
    mc.Polynomial(4, scale=0.5),
    mc.Polynomial(7, scale=10.0, offset=2.0),
    mc.Exponential(1.0),
    mc.Exponential(20.0),
    mc.kernels.Constant(3.0),
    mc.kernels.Uniform(),
    mc.kernels.Uniform(0.3),
    mc.kernels.Geometric(),
    mc.kernels.Geometric(2.5),
    mc.kernels.VovkPolynomial(1),
    mc.kernels.VovkPolynomial(4),
    mc.kernels.VovkPolynomial(11),
    mc.kernels.Taylor([1.0, 1.0, 0.5]),
    mc.kernels.Taylor([0.0, 1.0, 0.0, 2.0], radius=2.0),
    mc.Sigmoid(),
    mc.Sigmoid(3.0, -1.0),
    mc.kernels.Cosine(),
    mc.kernels.ArcCosine(0),
    mc.kernels.ArcCosine(1),
    mc.kernels.ArcCosine(2),
    mc.Periodic([1.0, 0.5, 0.0, 0.25]),
    mc.kernels.JacobiTheta(0.3),
    mc.kernels.JacobiTheta(1.5, period=24.0),
    mc.kernels.PeriodicSobolev(1),
    mc.kernels.PeriodicSobolev(3, constant=0.5, period=7.0),
    mc.kernels.Minimum(),
    mc.kernels.Harmonic(),
    mc.kernels.AdditiveChiSquare(),
    mc.kernels.ChiSquare(0.5),
    mc.kernels.LaplaceProduct(1.0),
    mc.kernels.LaplaceProduct(0.02),
]

LABELLED = [
    (mc.kernels.Hamming(1.0), [["a", 1], ["a", 2], ["b", 1], ["b", 1], ["c", 3]]),
    (mc.kernels.Overlap(), [["a", 1], ["a", 2], ["b", 1], ["b", 1], ["c", 3]]),
    (mc.Jaccard(), [{1, 2}, set(), {2, 3}, {2, 3}, {1, 2, 3, 4}]),
    (mc.Spectrum(2), ["banana", "ananas", "", "ba", "bandana", "ba"]),
    (mc.Subsequences(2, 0.7), ["cat", "car", "bat", "bar", "c", "cat"]),
    (
        mc.kernels.Table({"x": mc.Gaussian(1.0), "y": mc.kernels.Hamming(1.0)}),
        {"x": [1, 2, 3, 3], "y": "abca"},
    ),
]

COMPOSITE = [
    2.5 * mc.Gaussian(1.0),
    mc.Gaussian(1.0) + 0.5,
    mc.Gaussian(0.5) + mc.Gaussian(3.0),
    mc.Gaussian(1.0) * mc.Gaussian(2.0),
    mc.Gaussian(1.0) * mc.Laplace(2.0),
    mc.Laplace(1.0) * mc.Matern(1.5, 1.0),
    mc.RationalQuadratic(1.5, 1.0) * mc.InverseMultiquadric(1.0, 1.0) + 0.1,
    mc.Gaussian(1.0) + mc.NegativeDistance(1.0),
    0.3 * mc.NegativeDistance(1.5) + mc.Laplace(1.0) + 2.0,
    3.0 * mc.Epanechnikov(1.0),
    mc.Linear() + mc.Polynomial(2) + 1.0,
    mc.Linear() * mc.Exponential(5.0),
    mc.Gaussian(1.0) * mc.Linear(),
    mc.Gaussian(1.0) + mc.Laplace(1.0) * mc.Polynomial(2, scale=4.0),
    (mc.Gaussian(1.0) + mc.Linear()) * (mc.Laplace(2.0) + 1.0),
    mc.Gaussian(1.0).transform(mc.Scales([0.3, 3.0])),
    mc.Laplace(1.0).transform(mc.Scales([0.3, 3.0, 1.0])),
    mc.Matern(2.5).transform(mc.Columns([1])),
    mc.Gaussian(1.0).transform(mc.Columns([2, 0])),
    mc.Laplace(1.0).transform(mc.kernels.Matrix([[1.0, 2.0], [-1.0, 0.5]])),
    mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 1.0, 0.0]])),
    mc.Polynomial(2).transform(mc.kernels.Matrix([[1.0, 2.0], [-1.0, 0.5], [0.0, 1.0]])),
    mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0])).transform(mc.Columns([2, 0])),
    mc.Epanechnikov(1.0).transform(mc.Scales([2.0, 0.5])),
    mc.NegativeDistance(1.0).transform(mc.Columns([0])) + mc.Gaussian(1.0),
    mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Gaussian(2.0).transform(mc.Columns([1, 2])),
    mc.Gaussian(1.0).transform(mc.Columns([0])) + mc.Linear().transform(mc.Columns([1])),
    (mc.Gaussian(1.0) * mc.Linear() + 1.0).transform(mc.Scales([1.0, 0.5, 2.0])),
    mc.kernels.Normalised(mc.Linear()),
    mc.kernels.Normalised(mc.Polynomial(3)),
    mc.kernels.Normalised(mc.Exponential(2.0)),
    mc.kernels.Normalised(mc.Linear() + mc.Laplace(1.0)),
    mc.kernels.Normalised(mc.Polynomial(2).transform(mc.Scales([1.0, 2.0]))),
    mc.kernels.Normalised(mc.Gaussian(1.0)) * mc.kernels.Normalised(mc.Linear()),
    mc.kernels.Normalised(mc.kernels.Normalised(mc.Exponential(2.0)) + mc.Linear()),
    mc.kernels.Geometric() * mc.Gaussian(1.0) + 0.5,
    mc.kernels.Geometric(2.0).transform(mc.Scales([2.0, 0.5])),
    mc.kernels.Normalised(mc.kernels.ArcCosine(1) + 1.0),
    mc.kernels.JacobiTheta(0.5).transform(mc.Columns([1]))
    * mc.Gaussian(1.0).transform(mc.Columns([0])),
    mc.kernels.PeriodicSobolev(2).transform(mc.Columns([0])) + mc.Linear(),
    mc.kernels.Minimum() + mc.kernels.ChiSquare(1.0) * mc.kernels.Harmonic(),
    mc.kernels.Hamming(1.0).transform(mc.Columns([0]))
    * mc.Gaussian(1.0).transform(mc.Columns([1])),
    mc.Linear().transform(mc.kernels.Monomials(2)) + mc.Gaussian(1.0),
    mc.kernels.LaplaceProduct(2.0) * mc.Laplace(1.0) + 0.5 * mc.Linear(),
    mc.kernels.LaplaceProduct(1.0).transform(mc.Scales([2.0, 0.5])),
]


def name(kernel):
    return repr(kernel).replace("mercer.", "")


@pytest.mark.parametrize("kernel", SINGLE, ids=name)
def test_single_kernels(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("kernel", COMPOSITE, ids=name)
def test_composite_kernels(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=name)
def test_awkward_kernels(kernel):
    check_kernel(kernel)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kernel", SINGLE[1::2] + awkward_kernels()[::2], ids=name)
def test_kernels_where_nothing_was_compiled(kernel):
    with mc.options(engine="blocked"):
        check_kernel(kernel)


@pytest.mark.parametrize(("kernel", "points"), LABELLED, ids=lambda x: name(x)[:40])
def test_kernels_on_other_points(kernel, points):
    points = {k: list(v) for k, v in points.items()} if isinstance(points, dict) else points
    check_kernel(kernel, points=kernel.points(points))


def test_every_kernel_class_is_in_the_list():
    classes = {
        obj
        for obj in (getattr(mc.kernels, name) for name in mc.kernels.__all__)
        if isinstance(obj, type) and issubclass(obj, mc.Kernel)
    }
    abstract = {mc.Kernel, mc.Radial, mc.DotProduct, mc.kernels.Circular}
    elsewhere = {mc.kernels.FromFunction, mc.Precomputed}  # test_given.py
    inside = {type(k) for k in SINGLE + COMPOSITE + [k for k, _ in LABELLED]}
    assert classes - abstract - elsewhere - inside == set()


def test_algebra_of_awkward_kernels():
    check_algebra(awkward_kernels())


def test_algebra_of_all_kinds():
    anywhere = [k for k in SINGLE if _accepts(k, np.array([[-3.0, 2.0]]))]
    check_algebra([k for k in anywhere if "1000" not in repr(k) and "0.001" not in repr(k)][::2])


def test_algebra_across_metrics():
    X = np.array([[-3.0, 2.0, 1.0]])
    check_algebra([k for k in COMPOSITE[15:] if _accepts(k, X)] + [mc.Linear(), mc.Gaussian(1.0)])


def _accepts(kernel, X):
    try:
        kernel.points(X)
    except mc.InputError:
        return False
    return True


@pytest.mark.parametrize("kernel", SINGLE + COMPOSITE, ids=name)
def test_scikit_learn_clone_is_the_kernel_itself(kernel):
    assert clone(kernel) is kernel


def test_pickles_hold_parameters_only():
    k = mc.Gaussian(1.0) + mc.Linear()
    before = pickle.dumps(k)
    k(np.eye(3))  # lowers the kernel to a program, which it keeps
    assert pickle.dumps(k) == before
