"""The best of given points, for every kernel there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import mercer as mc
from mercer import Status
from mercer.preimages._constraint import Box, Constraint
from mercer.preimages._objective import Collinear, Nearest, Projected
from mercer.preimages._problem import Problem
from mercer.preimages.solvers._candidates import Candidates
from mercer.testing import awkward_kernels

FREE = Constraint(None, None)


def find(solver, psi, objective=None, constraint=FREE):
    if psi.batch is None:
        psi = mc.Element(psi.kernel, psi.points, psi.coef, 1)
    return solver.solve(Problem(psi, objective or Nearest(), constraint), None)


def naive(psi, candidates):
    """Index of the candidate whose feature is nearest, by distances in feature space."""
    best = []
    for j in range(len(psi)):
        gaps = [psi[j].distance(mc.Element(psi.kernel, candidates[i : i + 1], [1.0]))
                for i in range(len(candidates))]  # fmt: skip
        best.append(int(np.argmin(gaps)))
    return best


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_it_is_the_nearest_in_feature_space(kernel, rng):
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(11, 3))
    psi = mc.Element(kernel, X, rng.normal(size=(8, 5)))
    found = find(Candidates(Y), psi)
    assert_allclose(found.points, Y[naive(psi, Y)])
    assert set(found.status.tolist()) == {Status.CHOSEN}
    assert_allclose(found.n_evaluations, 11)


def test_by_default_the_candidates_are_the_points(rng):
    X = rng.normal(size=(9, 2))
    assert_allclose(find(Candidates(), mc.feature(mc.Gaussian(), X)).points, X)


@given(seed=st.integers(0, 10**6), values=st.integers(1, 200))
def test_blocks_change_nothing(seed, values):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(23, 2))
    psi = mc.Element(mc.Polynomial(2), X, rng.normal(size=(6, 4)))
    whole = find(Candidates(Y), psi).points
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.preimages.solvers._candidates._VALUES", values)
        assert_allclose(find(Candidates(Y), psi).points, whole)


def test_collinear_asks_for_the_angle(rng):
    k = mc.Linear()
    Y = np.array([[0.0, 0.0], [10.0, 1.0], [0.4, 0.4], [0.0, 2.0]])
    psi = mc.Element(k, [[1.0, 1.0]], [1.0])
    assert_allclose(find(Candidates(Y), psi).points, [[0.4, 0.4]])
    psi = mc.Element(k, [[1.0, 0.1]], [1.0])
    assert_allclose(find(Candidates(Y), psi, Collinear()).points, [[10.0, 1.0]])
    with pytest.raises(mc.InputError, match="not finite at any candidate"):
        find(Candidates(Y[:1]), psi, Collinear())


def test_projected_looks_inside_the_plane(rng):
    k, Y = mc.Linear(), rng.normal(size=(20, 2))
    plane = mc.Subspace.span(mc.Element(k, [[0.0, 0.0]], [1.0]), mc.feature(k, [[1.0, 0.0]]))
    psi = mc.feature(k, rng.normal(size=(3, 2)))
    found = find(Candidates(Y), psi, Projected(plane)).points
    wanted = Y[np.argmin(np.abs(Y[:, :1] - psi.points[:, 0]), axis=0)]
    assert_allclose(found, wanted)


def test_strings():
    def common(A, B):
        return [[float(len(set(a) & set(b))) for b in B] for a in A]

    k = mc.kernels.FromFunction(common, on=mc.kernels.Objects())
    psi = mc.Element(k, ["kernel", "colonel", "journal"], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = find(Candidates(), psi).points
    assert found == ["kernel", "colonel"]
    assert find(Candidates(["kern", "colo"]), psi).points == ["kern", "colo"]


def test_sets_and_tuples_stay_what_they_are():
    def overlap(A, B):
        return [[len(a & b) / max(1, len(a | b)) for b in B] for a in A]

    k = mc.kernels.FromFunction(overlap, on=mc.kernels.Objects())
    candidates = [frozenset("ab"), frozenset("xyz")]
    found = find(Candidates(candidates), mc.feature(k, [frozenset("abc")])).points
    assert found == [frozenset("ab")]


def test_rows_of_a_precomputed_matrix(rng):
    A = rng.normal(size=(6, 3))
    k = mc.Precomputed(A @ A.T)
    psi = mc.Element(k, np.arange(6), rng.normal(size=(6, 4)))
    found = find(Candidates([1, 3, 5]), psi).points
    rows = np.array([1, 3, 5])
    assert found.tolist() == rows[naive(psi, rows)].tolist()


def test_sparse_points_stay_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    X = sparse.csr_array(np.diag([1.0, 2.0, 3.0]))
    found = find(Candidates(), mc.feature(mc.Gaussian(), X)).points
    assert_allclose(found.toarray(), X.toarray())


def test_constraints_move_the_candidates_before_they_are_compared():
    k, Y = mc.Gaussian(1.0), np.array([[3.0, 0.0], [0.0, 0.6]])
    psi = mc.feature(k, [[2.0, 0.0], [0.0, 0.0]])
    assert_allclose(find(Candidates(Y), psi, None, Constraint(Box(-1, 1), None)).points[0], [1, 0])
    held = np.array([[np.nan, 0.0], [np.nan, 5.0]])
    found = find(Candidates(Y), psi, None, Constraint(None, held)).points
    assert_allclose(found, [[3.0, 0.0], [0.0, 5.0]])


def test_duplicates_ties_and_float32(rng):
    Y = np.zeros((3, 2), dtype=np.float32)
    found = find(Candidates(Y), mc.feature(mc.Gaussian(), rng.normal(size=(2, 2))))
    assert found.points.dtype == np.float64
    assert_allclose(found.points, 0.0)


def test_candidates_are_checked(rng):
    psi = mc.feature(mc.Gaussian(), rng.normal(size=(2, 2)))
    with pytest.raises(mc.InputError, match="the candidates has 3"):
        find(Candidates(np.ones((2, 3))), psi)
    with pytest.raises(mc.InputError, match="the candidates"):
        find(Candidates([[np.nan, 1.0]]), psi)


def test_sparse_candidates_stay_sparse(rng):
    X = sparse.csr_array(rng.normal(size=(12, 4)) * (rng.uniform(size=(12, 4)) < 0.5))
    back = mc.preimage(mc.mean_embedding(mc.Gaussian(1.0), X), mc.Candidates())
    assert sparse.issparse(back.points)
    assert back.points.shape == (1, 4)
