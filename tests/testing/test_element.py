"""The conformance kit catches broken elements."""

import numpy as np
import pytest

import mercer as mc
from mercer.testing import check_element
from mercer.testing._report import agree_with_differences


def element(batch=None):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 2))
    X[4] = X[1]
    shape = 6 if batch is None else (6, batch)
    return mc.Element(mc.Gaussian(1.0) + mc.Linear(), X, rng.normal(size=shape))


@pytest.mark.parametrize(
    ("name", "change", "law"),
    [
        ("__call__", lambda r: 1.0001 * r, r"psi\(y\) = sum_i a_i k\(x_i, y\) fails by"),
        ("gradient", lambda r: 1.0001 * r, "its gradient fails by"),
        ("hessian", lambda r: r + 0.001, "its Hessian fails by"),
        ("inner", lambda r: 1.0001 * np.asarray(r), "<psi, psi> = a' K a fails by"),
        ("norm", lambda r: 1.0001 * r, r"\|psi\|\^2 = a' K a fails by"),
        ("distance", lambda r: r + 0.1, r"\|psi - psi\| = 0 fails by"),
        ("__add__", lambda r: 1.001 * r, "fails by"),
        ("__neg__", lambda r: 1.1 * r, "psi - psi fails by|-psi fails by|= 0 fails by"),
        ("__truediv__", lambda r: 2.0 * r, "psi / 2 fails by"),
        ("merge", lambda r: 1.001 * r, r"psi.merge\(\) fails by"),
    ],
)
@pytest.mark.parametrize("batch", [None, 3])
def test_broken_elements_are_caught(spoil, name, change, law, batch):
    psi = element(batch)
    check_element(psi)
    spoil(mc.Element, name, change)
    with pytest.raises(AssertionError, match=law):
        check_element(psi)


@pytest.mark.parametrize(
    ("name", "change", "law"),
    [
        ("__getitem__", lambda r: 1.001 * r, r"psi\[0\] fails by"),
        ("combine", lambda r: 1.001 * r, r"psi.combine\(W\) fails by"),
    ],
)
def test_broken_batches_are_caught(spoil, name, change, law):
    psi = element(3)
    spoil(mc.Element, name, change)
    with pytest.raises(AssertionError, match=law):
        check_element(psi)


def test_merging_that_keeps_equal_points_is_caught(monkeypatch):
    psi = element()
    monkeypatch.setattr(mc.Element, "merge", lambda self: self)
    with pytest.raises(AssertionError, match=r"keeps 6 points, but 5 are distinct"):
        check_element(psi)


def test_values_beyond_the_norm_are_caught(spoil):
    """With k(x, x) too small, |psi(x)| <= sqrt(k(x, x)) |psi| is violated."""
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [3.0]], [1.0, 0.1])
    check_element(psi)
    spoil(mc.Gaussian, "diag", lambda r: 0.5 * r)
    with pytest.raises(AssertionError, match=r"\|psi\(x\)\| exceeds sqrt\(k\(x, x\)\) \|psi\| by"):
        check_element(psi)


def test_wrong_shapes_are_caught(spoil):
    psi = element(3)
    spoil(mc.Element, "__call__", lambda r: r[:, :1])
    with pytest.raises(AssertionError, match=r"fails: shape \(7, 1\) instead of \(7, 3\)"):
        check_element(psi)


def test_differences_that_are_not_accurate_are_no_check():
    """A function that is rough everywhere has no derivative to compare with."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 2))
    smooth = np.cos(X)[:, :, None] * np.eye(2)
    agree_with_differences("f", "its gradient", smooth, np.sin, X, 1.0)
    with pytest.raises(AssertionError, match=r"cannot be checked"):
        agree_with_differences(
            "f", "its gradient", smooth, lambda Z: np.sin(Z) + rng.normal(size=Z.shape), X, 1.0
        )


def test_hessians_that_are_large_somewhere_have_errors_of_that_size():
    """Differences cannot see curvatures of 300 within 0.01, but other entries are checked."""
    scales = mc.Scales([0.5, 2.0, 0.5, 30.0, 0.5, 0.01, 0.01])
    X = np.random.default_rng(5).normal(size=(30, 7))
    check_element(mc.mean_embedding(mc.RationalQuadratic(0.01, 1.0).transform(scales), X))


def test_values_that_overflow_cannot_be_checked():
    X = np.random.default_rng(1).normal(size=(30, 7))
    with pytest.raises(AssertionError, match="cannot be checked: kernel values overflow"):
        check_element(mc.feature(mc.Exponential(0.01), X))


@pytest.mark.parametrize("seed", [0, 1, 5, 6])
def test_several_cusps_within_a_step_are_not_taken_for_a_slope(seed):
    """Two cusps in a step and one in its half give the same difference."""
    X = np.random.default_rng(seed).normal(size=(30, 1))
    check_element(mc.mean_embedding(mc.Matern(0.5, 30.0), X))


def test_a_cusp_that_is_too_small_beside_other_terms_for_differences():
    """exp(100 x y) is enormous at these points; the Laplace kernel has a kink of slope 2."""
    points = np.random.default_rng(0).normal(size=(30, 1))
    check_element(mc.mean_embedding(mc.Laplace(0.5) + mc.Exponential(0.01), points))


def test_derivatives_that_are_far_below_rounding_of_the_terms():
    """The values of both terms are 1 and -1 to rounding, so differences are zero."""
    X = np.random.default_rng(6).normal(size=(2, 2))
    check_element(mc.mean_embedding(mc.kernels.Sigmoid.from_gamma(30.0), X))
