"""Characteristic and universal kernels: what is known, what is not, and witnesses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels._dot_product import Geometric, Taylor, VovkPolynomial
from mercer.theory import is_characteristic, is_universal


def gap(kernel, w):
    P = mc.mean_embedding(kernel, w.X, weights=w.X_weights)
    return float(P.distance(mc.mean_embedding(kernel, w.Y, weights=w.Y_weights)))


@given(
    st.lists(
        st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=3
    ),
    st.integers(0, 3),
)  # fmt: skip
def test_matrices_are_judged_by_their_rank(rows, degree):
    A = np.array(rows, dtype=float)
    kernel = mc.Gaussian(1.0).transform(mc.kernels.Matrix(A))
    full = bool(np.linalg.matrix_rank(A) == 3)
    assert is_characteristic(kernel, 3).holds is full
    if degree:
        kernel = kernel * mc.Polynomial(degree)
        found = is_universal(kernel, 3)
        assert found.holds is (None if full else False)
        if not full:
            assert gap(kernel, found.witness) < 1e-6


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Linear() + mc.Polynomial(4),
        mc.Linear() * mc.Polynomial(2),
        mc.NegativeDistance(2.0),
        VovkPolynomial(6),
        Taylor([1.0, 0.0, 0.5, 0.0, 0.1]),
        Taylor([1.0, 1.0, 1.0], radius=0.01),
        mc.Polynomial(30),
    ],
    ids=repr,
)
def test_polynomials_of_all_forms(kernel):
    found = is_characteristic(kernel, 2)
    assert found.holds is False
    assert "degree" in found.reason
    w = found.witness
    assert_allclose([w.X_weights.sum(), w.Y_weights.sum()], 1.0)
    values = [p @ kernel(Z, w.X[:1]) for Z, p in ((w.X, w.X_weights), (w.Y, w.Y_weights))]
    assert_allclose(*values, rtol=1e-10)
    assert gap(mc.Laplace(0.01), w) > 1e-3


def test_three_blind_summands():
    columns = [mc.Gaussian(1.0).transform(mc.Columns([i])) for i in range(3)]
    kernel = columns[0] + columns[1] + columns[2]
    found = is_characteristic(kernel, 3)
    assert found.witness.X.shape == (4, 3)
    assert gap(kernel, found.witness) < 1e-7
    assert gap(mc.Gaussian(1.0), found.witness) > 0.1
    assert is_characteristic(columns[0] * columns[1] + columns[2], 3).holds is False
    assert is_characteristic(columns[0] * columns[1] * columns[2], 3).holds is True


def test_the_dimension_matters():
    kernel = mc.Gaussian(1.0).transform(mc.Columns([0, 1]))
    assert is_characteristic(kernel, 2).holds is True
    assert is_characteristic(kernel, 3).holds is False
    with pytest.raises(mc.InputError, match="column"):
        is_characteristic(kernel, 1)
    with pytest.raises(mc.InputError, match="needs 2"):
        is_universal(mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0])), 3)


def test_scales_of_any_size_lose_nothing():
    kernel = mc.Gaussian(1.0).transform(mc.Scales([1e-30, 1.0, 1e30]))
    assert is_characteristic(kernel, 3).holds is True


def test_energy_distances():
    assert is_characteristic(mc.NegativeDistance(1.0), 2).holds is True
    assert is_characteristic(mc.NegativeDistance(2.0), 2).holds is False
    assert is_universal(mc.NegativeDistance(1.0), 2).holds is None


def test_what_is_not_known():
    exponential = is_characteristic(mc.Exponential(1.0), 2)
    assert exponential.holds is None
    assert "compact" in exponential.reason
    assert is_universal(mc.Exponential(1.0), 2).holds is True
    assert is_universal(Geometric(), 2).holds is True
    assert is_characteristic(mc.Epanechnikov(1.0), 1).holds is None
    assert is_universal(mc.kernels.Normalised(mc.Polynomial(2)), 1).holds is None

    class Quiet(mc.Radial):  # claims nothing
        def profile(self, u):
            return np.exp(-u)

    for judge in (is_characteristic, is_universal):
        assert judge(Quiet(), 1).holds is None
        assert judge(Quiet(), 1).witness is None


def test_flags_of_a_class_are_believed():
    class Claims(mc.Kernel):
        flags = mc.kernels.Flags(
            mc.kernels.Definiteness.POSITIVE, characteristic=True, universal=False
        )

        def lower(self):
            return mc.kernels.FromFunction(lambda A, B: A @ B.T).program

    assert is_characteristic(Claims(), 1).holds is True
    assert is_universal(Claims(), 1).holds is False
    assert "flags" in is_universal(Claims(), 1).reason


def test_points_that_are_not_vectors_are_refused():
    with pytest.raises(mc.InputError, match="not vectors"):
        is_characteristic(mc.Precomputed(np.eye(3)), 1)
    with pytest.raises(mc.InputError, match="dim"):
        is_characteristic(mc.Gaussian(1.0), 0)


def test_huge_degrees_have_no_witness():
    """Its elements are polynomials, of a degree beyond any list of points."""
    found = mc.theory.is_characteristic(mc.kernels.Polynomial(1_000_000), 10)
    assert found.holds is False
    assert found.witness is None
