"""When searches end: a row that leaves for infinity has not converged, in any units."""

import numpy as np
import pytest

import mercer as mc
from mercer import Status
from mercer.preimages._objective import Nearest
from mercer.preimages._problem import Problem

UNITS = (1.0, 1e-6, 1e6)


def heavy_tails(unit: float) -> list[mc.Kernel]:
    """Kernels that fall like powers of the distance, most of them slowly."""
    powers = [mc.InverseMultiquadric(unit**2, p) for p in (0.05, 0.15, 0.2, 0.25, 0.3, 0.5, 1.0)]
    alphas = [mc.RationalQuadratic(alpha, unit) for alpha in (0.05, 0.1, 0.3, 1.0)]
    scaled = [mc.InverseMultiquadric(1.0, 0.2).transform(mc.Scales([unit]))]
    return [*powers, *alphas, *scaled]


def light_tails(unit: float) -> list[mc.Kernel]:
    return [mc.Gaussian(unit), mc.Matern(1.5, unit), mc.Laplace(unit), mc.Epanechnikov(unit**2)]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("dim", "origin"), [(1, 0.0), (2, 1e3), (5, 0.0)])
def test_negative_weights_escape(unit, origin, dim):
    X = (np.random.default_rng(0).normal(size=(3, dim)) + origin) * unit
    for kernel in heavy_tails(unit) + light_tails(unit):
        if "Scales" in repr(kernel) and dim > 1:
            continue
        for points, coef in ((X[:1], [-1.0]), (X, [-1.0, -0.5, -2.0])):
            back = mc.preimage(mc.Element(kernel, points, coef))
            assert back.status[0] is Status.ESCAPED, (kernel, coef, back.points)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("solver", [mc.Newton(), mc.LBFGS(), mc.FixedPoint()], ids=repr)
def test_far_starts_come_back_to_positive_weights(solver, unit):
    X, coef = np.array([[0.0, 0.0], [1.0, 0.0]]) * unit, [1.0, 0.5]
    for kernel in [*heavy_tails(unit)[:-1], mc.Gaussian(unit)]:
        psi = mc.Element(kernel, X, coef)
        near = mc.preimage(psi, solver, start=X[0])
        for far in (1e3, 1e12):
            back = mc.preimage(psi, solver, start=[far * unit, 0.3 * far * unit])
            assert back.status[0] is Status.CONVERGED, (kernel, far)
            np.testing.assert_allclose(back.points, near.points, atol=1e-5 * unit)


@pytest.mark.parametrize(("dim", "shift"), [(1, 100.0), (3, 0.0)])
def test_status_does_not_depend_on_units(shift, dim, rng):
    X, A = rng.normal(size=(8, dim)) + shift, rng.normal(size=(8, 5))
    for number in range(len(heavy_tails(1.0)) + len(light_tails(1.0))):
        found = []
        for unit in UNITS:
            kernel = (heavy_tails(unit) + light_tails(unit))[number]
            if "Scales" not in repr(kernel) or dim == 1:
                found.append(mc.preimage(mc.Element(kernel, X * unit, A)).status.tolist())
        assert all(statuses == found[0] for statuses in found)


def test_mixed_signs_converge_only_at_critical_points(rng):
    """Whatever is called converged has a fixed-point step that leads nowhere."""
    X = rng.normal(size=(6, 2))
    for kernel in heavy_tails(1.0)[:-1]:
        psi = mc.Element(kernel, X, rng.normal(size=(6, 30)) - 0.3)
        back = mc.preimage(psi)
        assert set(back.status) <= {Status.CONVERGED, Status.ESCAPED}
        done = back.status == Status.CONVERGED
        reach = np.linalg.norm(X - X.mean(axis=0), axis=1).max() + 1.0
        away = np.linalg.norm(back.points - X.mean(axis=0), axis=1)
        f = psi.fields(back.points, order=1, paired=True)
        step = np.linalg.norm(f.gradient, axis=1) / np.abs(2.0 * f.slopes[0])
        assert (step[done] < np.where(away > 10.0 * reach, 1e-6 * away, np.inf)[done]).all()


@pytest.mark.parametrize("dim", [1, 2, 25])
@pytest.mark.parametrize("kernel", [mc.Laplace(1.0), mc.Matern(0.5, 2.0)], ids=repr)
def test_a_negative_cusp_is_left(kernel, dim):
    """At a point with a negative coefficient the objective of a Laplace kernel has a peak."""
    X = np.zeros((2, dim))
    X[1] = 1.0
    assert mc.preimage(mc.Element(kernel, X[:1], [-1.0])).status[0] is Status.ESCAPED
    back = mc.preimage(mc.Element(kernel, X, [-1.0, 1.0]), start=X[0])
    assert back.status[0] is Status.AT_POINT
    np.testing.assert_array_equal(back.points[0], X[1])


@pytest.mark.parametrize("constant", [0.5, 100.0])
@pytest.mark.parametrize("coef", [[-1.0, -0.5], [-1.0, 0.2]])
def test_a_constant_added_to_the_kernel_does_not_hide_an_escape(constant, coef):
    psi = mc.Element(mc.Gaussian(1.0) + constant, [[0.0], [0.5]], coef)
    start = [[-1.0]]
    plain = mc.Element(mc.Gaussian(1.0), [[0.0], [0.5]], coef)
    assert mc.preimage(plain, start=start).status[0] is Status.ESCAPED
    assert mc.preimage(psi, start=start).status[0] is Status.ESCAPED


@pytest.mark.parametrize("seed", range(3))
def test_gradients_whose_parts_vanish_together_converge(seed):
    """k(x, x) is 1 to rounding here, so the parts of the gradient are zero at the minimiser."""
    kernel = mc.kernels.Normalised(mc.Polynomial(2) + mc.Gaussian(1.0))
    X = np.random.default_rng(seed).normal(size=(12, 3))
    assert mc.preimage(mc.mean_embedding(kernel, X)).status[0] is Status.CONVERGED


def test_sparse_points_are_not_written_out():
    """A million columns: the spread of sparse points must not need a dense array."""
    sparse = pytest.importorskip("scipy.sparse")
    X = sparse.random_array((40, 1_000_000), density=1e-5, rng=0, format="csr")
    psi = mc.Element(mc.Gaussian(5.0), X, np.full((40, 1), 1 / 40))
    problem = Problem(psi, Nearest(), None)
    middle, reach = problem.extent
    assert middle.shape == (1_000_000,)
    true = np.sqrt(np.max(X.multiply(X).sum(axis=1)))
    assert true <= reach <= 3.0 * true + 5.0
    assert 0.0 < problem.spread <= true


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("solver", [mc.Newton(), mc.LBFGS(), mc.FixedPoint()], ids=repr)
def test_a_search_that_ends_at_a_kink_says_so(dim, solver):
    """Windows of Epanechnikov terms with negative coefficients have edges where minima lie."""
    stalled = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        psi = mc.Element(mc.Epanechnikov(1.0), rng.normal(size=(12, dim)), rng.normal(size=12))
        back = mc.preimage(psi, solver)
        assert back.status[0] is not Status.MAX_ITER
        stalled += back.status[0] is Status.STALLED
    assert stalled > 0


def test_cusps_along_planes_end_stalled():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        k = mc.Laplace(1.0).transform(mc.Columns([0])) * mc.Gaussian(1.0).transform(mc.Columns([1]))
        psi = mc.Element(k, rng.normal(size=(12, 2)), rng.normal(size=12))
        assert mc.preimage(psi).status[0] is not Status.MAX_ITER


@pytest.mark.parametrize("kernel", [mc.kernels.Cosine(), mc.kernels.Normalised(mc.Polynomial(2))])
def test_kernels_of_angles_converge(kernel):
    """k(x, x) = 1, so gradients are compared with their bound, not with their own size."""
    rng = np.random.default_rng(1)
    plane = mc.kernel_pca(kernel, rng.normal(size=(30, 7)), 1)
    start = np.random.default_rng(3).normal(size=(30, 7))
    found = mc.preimage(plane.project(mc.feature(kernel, start)), mc.Newton(), start=start)
    assert all(status is Status.CONVERGED for status in found.status)
    assert found.n_iter.max() < 100
    assert kernel.program.diagonal.variables == ()


def test_two_points_that_follow_each_other_are_an_end():
    """At a minimum up to rounding, steps go to and fro."""
    k = mc.Epanechnikov(1.0) + mc.Matern(0.5, 1.0) + mc.kernels.Geometric(30.0)
    psi = mc.Element(k, np.random.default_rng(8).normal(size=(8, 1)), np.ones(8))
    found = mc.preimage(psi, start=[[-1.0]])
    assert found.status[0] is not Status.MAX_ITER
    assert found.n_iter[0] < 500
