"""The closed-form pre-image: formula, forms of coefficients, awkward points, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import Dense, LowRank, SingleFeatures, Stacked
from mercer.preimages._constraint import Box, Constraint
from mercer.preimages._objective import Nearest
from mercer.preimages._problem import Problem
from mercer.preimages.solvers._closed_form import ClosedForm

FREE = Constraint(None, None)
KERNELS = [mc.Gaussian(1.0), mc.Laplace(1.0), mc.Polynomial(3), mc.Gaussian(2.0) + mc.Linear()]


def points_of(solver, psi, constraint=FREE):
    if psi.batch is None:
        psi = mc.Element(psi.kernel, psi.points, psi.coef, 1)
    return solver.solve(Problem(psi, Nearest(), constraint), None).points


def literal(kernel, X, g, penalty):
    """The printed formula, written out."""
    inverse = np.linalg.pinv(kernel(X), rcond=1e-12, hermitian=True)
    return np.linalg.pinv(X) @ (X @ X.T - penalty * inverse) @ g


@pytest.mark.parametrize("shape", [(12, 2), (5, 5), (4, 9)])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_formula_as_printed(kernel, shape, rng):
    X, g = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    found = points_of(ClosedForm(penalty=0.05), mc.Element(kernel, X, g))
    assert_allclose(found, literal(kernel, X, g, 0.05).T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("positive_part", [False, True])
def test_without_penalty_it_is_the_combination_of_the_points(positive_part, rng):
    X, g = rng.normal(size=(20, 3)), rng.normal(size=(20, 4))
    found = points_of(ClosedForm(positive_part=positive_part), mc.Element(mc.Gaussian(), X, g))
    assert_allclose(found, g.T @ X, rtol=1e-14, atol=1e-14)


def test_exact_for_the_linear_kernel(rng):
    X, g = rng.normal(size=(20, 3)), rng.normal(size=20)
    psi = mc.Element(mc.Linear(), X, g)
    found = points_of(ClosedForm(), psi)
    assert psi.distance(mc.Element(mc.Linear(), found, [1.0])) < 1e-7


@pytest.mark.parametrize("solver", [ClosedForm(), ClosedForm(0.1), ClosedForm(0.1, True)], ids=repr)
def test_every_form_of_coefficients_gives_the_same(solver, rng):
    X = rng.normal(size=(10, 2))
    left, right = rng.normal(size=(10, 2)), rng.normal(size=(2, 6))
    selected = SingleFeatures(np.array([0, 3, 3, 9, 1, 2]), rng.normal(size=6), 10)
    stacked = Stacked((Dense(rng.normal(size=(4, 6))), LowRank(left[4:], right)))
    for coef in (Dense(left @ right), LowRank(left, right), selected, stacked):
        short = mc.Element(mc.Gaussian(), X, coef, 6)
        dense = mc.Element(mc.Gaussian(), X, coef.tile(slice(None), slice(None)))
        assert_allclose(points_of(solver, short), points_of(solver, dense), atol=1e-11)


@pytest.mark.parametrize("positive_part", [False, True])
def test_duplicated_points_are_one_point_with_the_sum_of_coefficients(positive_part, rng):
    """The element is the same, so the inner products with distinct points fitted are."""
    X, g = rng.normal(size=(6, 2)), rng.normal(size=6)
    twice, halves = np.concatenate([X, X]), np.concatenate([g / 4, 3 * g / 4])
    solver = ClosedForm(0.01, positive_part)
    shared = points_of(solver, mc.Element(mc.Gaussian(), twice, halves))
    even = points_of(solver, mc.Element(mc.Gaussian(), twice, np.concatenate([g / 2, g / 2])))
    assert np.isfinite(shared).all()
    assert_allclose(shared, even, atol=1e-8)


@pytest.mark.parametrize("positive_part", [False, True])
@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0]],
        [[0.0, 0.0]],
        [[1.0, 2.0]] * 3,
        [[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]],
        [[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]],
        [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0]],
    ],
    ids=["one", "origin", "equal", "constant column", "zero column", "more columns than rows"],
)
def test_awkward_points(X, positive_part):
    X = np.asarray(X)
    psi = mc.Element(mc.Gaussian(), X, np.linspace(1.0, -0.5, len(X)))
    found = points_of(ClosedForm(1e-3, positive_part), psi)
    assert found.shape == (1, X.shape[1])
    assert np.isfinite(found).all()


def test_float32_points_and_constraints(rng):
    X = rng.normal(size=(10, 2)).astype(np.float32)
    psi = mc.Element(mc.Gaussian(), X, np.full(10, 0.1))
    assert_allclose(points_of(ClosedForm(), psi), X.mean(axis=0, keepdims=True), rtol=1e-6)
    low = X.mean(axis=0) + 1.0
    boxed = points_of(ClosedForm(), psi, Constraint(Box(low, np.inf), None))
    assert_allclose(boxed[0], low)


def test_errors_name_the_condition_and_the_cure(rng, monkeypatch):
    X = rng.normal(size=(9, 1)) / 4
    psi = mc.Element(mc.Gaussian(), X, np.ones(9))
    with pytest.raises(mc.InputError, match="penalty must be >= 0"):
        ClosedForm(-1.0)
    with pytest.raises(mc.InputError, match="tol must be > 0"):
        ClosedForm(tol=0.0)
    with pytest.raises(mc.InputError, match="positive definite kernel"):
        points_of(ClosedForm(0.1), mc.Element(mc.Epanechnikov(), X, np.ones(9)))
    monkeypatch.setattr("mercer.preimages.solvers._closed_form._MANY", 8)
    with pytest.raises(mc.InputError, match=r"penalty=0\.0"):
        points_of(ClosedForm(0.1), psi)
    assert points_of(ClosedForm(), psi).shape == (1, 1)
    objects = mc.kernels.FromFunction(
        lambda A, B: np.ones((len(A), len(B))), on=mc.kernels.Objects()
    )
    with pytest.raises(mc.InputError, match="Candidates"):
        points_of(ClosedForm(), mc.Element(objects, ["a", "b"], [1.0, 1.0]))


def test_sparse_points_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    psi = mc.Element(mc.Gaussian(), sparse.csr_array(np.eye(3)), np.ones(3))
    with pytest.raises(mc.InputError, match="toarray"):
        points_of(ClosedForm(), psi)
