"""Part D of the specification, solvers without iterations: closed form, distances, learned map.

D11, D12, D13 (the denoising pipeline with them) and D14. Each test states the law of its id.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.spatial import cKDTree

import mercer as mc
from mercer.preimages import procrustes
from mercer.preimages._constraint import Constraint
from mercer.preimages._objective import Nearest
from mercer.preimages._problem import Problem
from mercer.preimages.solvers._closed_form import ClosedForm
from mercer.preimages.solvers._distances import Distances
from mercer.preimages.solvers._regression import LearnedMap


def points_of(solver, psi):
    if psi.batch is None:
        psi = mc.Element(psi.kernel, psi.points, psi.coef, 1)
    return solver.solve(Problem(psi, Nearest(), Constraint(None, None)), None).points


def eigen_inverse(K, tol=1e-12):
    return np.linalg.pinv(K, rcond=tol, hermitian=True)


def principal_plane(kernel, X, dim):
    """Centred kernel PCA, written out."""
    n = len(X)
    H = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(H @ kernel(X) @ H)
    A = H @ (vectors[:, ::-1][:, :dim] / np.sqrt(values[::-1][:dim]))
    return mc.Subspace(mc.mean_embedding(kernel, X), mc.Element(kernel, X, A))


# --- D11 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Laplace(1.0), mc.Polynomial(2)], ids=repr)
def test_D11_without_penalty_it_is_the_combination_of_the_points(kernel, rng):
    X, g = rng.normal(size=(40, 3)), rng.normal(size=(40, 5))
    assert_allclose(points_of(ClosedForm(), mc.Element(kernel, X, g)), g.T @ X, atol=1e-13)


def test_D11_more_points_than_dimensions(rng):
    """x = Xg - penalty (XX')^-1 X K^-1 g, X with points as columns."""
    rows, g, penalty = rng.normal(size=(12, 2)), rng.normal(size=12), 0.3
    kernel, X = mc.Laplace(1.0), rows.T
    wanted = X @ g - penalty * np.linalg.inv(X @ X.T) @ X @ np.linalg.inv(kernel(rows)) @ g
    assert_allclose(points_of(ClosedForm(penalty), mc.Element(kernel, rows, g))[0], wanted)


def test_D11_fewer_points_than_dimensions(rng):
    """x = X P^-1 (P - penalty K^-1) g."""
    rows, g, penalty = rng.normal(size=(5, 9)), rng.normal(size=5), 0.3
    kernel, X = mc.Gaussian(2.0), rows.T
    P = X.T @ X
    wanted = X @ np.linalg.inv(P) @ (P - penalty * np.linalg.inv(kernel(rows))) @ g
    assert_allclose(points_of(ClosedForm(penalty), mc.Element(kernel, rows, g))[0], wanted)


def test_D11_many_elements_are_one_product(rng):
    """X* = M Gamma with M = (X')^+ (P - penalty K^+), the same M for every element."""
    X, kernel, penalty = rng.normal(size=(15, 3)), mc.Gaussian(1.0), 0.01
    M = np.linalg.pinv(X) @ (X @ X.T - penalty * eigen_inverse(kernel(X)))
    plane = principal_plane(kernel, X, 4)
    psi = plane.project(mc.feature(kernel, rng.normal(size=(50, 3))))
    gamma = psi.coef.tile(slice(None), slice(None))
    assert_allclose(points_of(ClosedForm(penalty), psi), (M @ gamma).T, atol=1e-8)


def fit_cost(B, P, K, penalty):
    """|P - K B K|^2 / 2 + penalty tr(B K): what the linear map is fitted by."""
    return 0.5 * np.sum((P - K @ B @ K) ** 2) + penalty * np.trace(B @ K)


def test_D11_the_positive_part_is_the_minimiser_among_real_maps(rng):
    """P - penalty K^-1 is not positive, so no real A has A'A = B as printed.

    Honeine and Richard 2011, (6), corrected.
    """
    X, penalty = rng.normal(size=(6, 2)), 0.1
    kernel = mc.Laplace(1.0)
    K, P = kernel(X), X @ X.T
    inverse = np.linalg.inv(K)
    values, V = np.linalg.eigh(P - penalty * inverse)
    assert values[0] < 0
    positive = (V * np.maximum(values, 0.0)) @ V.T
    best = fit_cost(inverse @ positive @ inverse, P, K, penalty)

    def cost(flat):
        A = flat.reshape(6, 6)
        return fit_cost(A.T @ A, P, K, penalty)

    runs = [minimize(cost, rng.normal(size=36) / 2, options={"maxiter": 2000}) for _ in range(3)]
    assert_allclose(min(run.fun for run in runs), best, rtol=1e-6)
    g = rng.normal(size=6)
    found = points_of(ClosedForm(penalty, positive_part=True), mc.Element(kernel, X, g))[0]
    assert_allclose(found, np.linalg.pinv(X) @ positive @ g, rtol=1e-9)
    # the printed matrix costs less, but it is the A'A of no real A
    assert fit_cost(inverse @ (P - penalty * inverse) @ inverse, P, K, penalty) < best


def test_D11_the_printed_inverse_of_P_does_not_exist(rng):
    """Honeine and Richard 2011, (9): with n > d, P is singular; least squares is what is meant."""
    X, g, penalty = rng.normal(size=(12, 2)), rng.normal(size=12), 0.1
    kernel = mc.Gaussian(0.5)
    P, right = X @ X.T, (X @ X.T - penalty * np.linalg.inv(kernel(X))) @ g
    assert np.linalg.matrix_rank(P) == 2
    wanted = np.linalg.lstsq(X, right, rcond=None)[0]
    printed = X.T @ np.linalg.inv(P) @ right  # of rounding errors
    found = points_of(ClosedForm(penalty), mc.Element(kernel, X, g))[0]
    assert_allclose(found, wanted, rtol=1e-7)
    assert np.linalg.norm(printed - wanted) > 0.1 * np.linalg.norm(wanted)


@pytest.mark.parametrize("positive_part", [False, True])
def test_D11_singular_gram_matrices_are_normal(positive_part, rng):
    """Duplicates, and smooth kernels on many points; K^-1 is truncated.

    Honeine and Richard 2011, (6), corrected.
    """
    X = rng.normal(size=(200, 2))
    X = np.concatenate([X, X[:50]])
    kernel = mc.Gaussian(0.5)
    assert np.linalg.cond(kernel(X)) > 1e15
    psi = principal_plane(kernel, X, 5).project(mc.feature(kernel, X[:20]))
    with_penalty = points_of(ClosedForm(1e-3, positive_part), psi)
    assert_allclose(with_penalty, points_of(ClosedForm(), psi), atol=0.02)


# --- D12 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", [None, 5])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_D12_exact_when_the_distances_are_true(dim, neighbors, rng):
    """psi a feature: its distances are those of a point, which comes back."""
    X, Z = rng.normal(size=(12, dim)), 0.7 * rng.normal(size=(6, dim))
    kernel = mc.Gaussian(3.0)
    count = None if neighbors is None else neighbors + dim
    psi = mc.Element(kernel, X, np.zeros((12, 6))) + mc.feature(kernel, Z)
    assert_allclose(points_of(Distances(count), psi), Z, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Laplace(2.0),
        mc.Matern(1.5, 2.0),
        mc.InverseMultiquadric(1.0, 1.0),
        mc.RationalQuadratic(2.0, 1.0),
        2.0 * mc.Gaussian(1.0) + mc.Laplace(3.0),
        mc.Gaussian(1.0).transform(mc.Scales([2.0, 0.5])),
    ],
    ids=repr,
)
def test_D12_any_radial_kernel(kernel, rng):
    X, Z = rng.normal(size=(12, 2)), rng.normal(size=(6, 2))
    psi = mc.Element(kernel, X, np.zeros((12, 6))) + mc.feature(kernel, Z)
    for neighbors in (None, 7):
        assert_allclose(points_of(Distances(neighbors), psi), Z, atol=1e-10)


def test_D12_feature_distances_of_the_answer_are_those_of_the_element(rng):
    """d~_i^2 = |psi|^2 + k(x_i, x_i) - 2 psi(x_i), by the space's own distance."""
    X, kernel = rng.normal(size=(10, 2)), mc.Gaussian(1.5)
    psi = mc.Element(kernel, X, np.zeros((10, 1))) + mc.feature(kernel, [[0.3, -0.2]])
    x = points_of(Distances(None), psi)
    back = mc.feature(kernel, x)
    for i in range(10):
        of_point = mc.feature(kernel, X[i : i + 1])
        assert_allclose(of_point.distance(back), of_point.distance(psi), atol=1e-7)


def test_D12_procrustes_undoes_a_motion(rng):
    A = rng.normal(size=(7, 3))
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    fit = procrustes(A, A @ Q + [1.0, 2.0, 3.0])
    assert_allclose(fit.rotation, Q, atol=1e-12)
    assert fit.residual < 1e-12


# --- D13 ------------------------------------------------------------------------------------------


def banana(rng, n):
    """(x, x^2 + N(0, 0.2^2)) with x uniform on [-1, 1]."""
    x = rng.uniform(-1, 1, size=n)
    return np.column_stack([x, x**2 + 0.2 * rng.normal(size=n)])


@pytest.mark.parametrize(
    "solver", [ClosedForm(), ClosedForm(1e-3), ClosedForm(1e-3, True), Distances()], ids=repr
)
def test_D13_projection_and_return_remove_noise(solver, rng):
    """The banana of experiment X4: 300 points, 3 components, length scale 0.5."""
    X, Z = banana(rng, 300), banana(rng, 200)
    t = np.linspace(-1.2, 1.2, 5000)
    curve = cKDTree(np.column_stack([t, t**2]))
    kernel = mc.Gaussian(0.5)
    clean = points_of(solver, principal_plane(kernel, X, 3).project(mc.feature(kernel, Z)))
    assert curve.query(clean)[0].mean() < 0.6 * curve.query(Z)[0].mean()


# --- D14 ------------------------------------------------------------------------------------------


def arc(rng, n, noise):
    """Points near a half circle."""
    t = rng.uniform(0, np.pi, size=n)
    return np.column_stack([np.cos(t), np.sin(t)]) + noise * rng.normal(size=(n, 2))


def test_D14_the_learned_map_brings_points_of_a_curve_back(rng):
    kernel = mc.Gaussian(0.5)
    X, Z = arc(rng, 200, 0.0), arc(rng, 100, 0.0)
    plane = principal_plane(kernel, X, 4)
    way_back = LearnedMap().fit(plane, X)
    found = points_of(way_back, plane.project(mc.feature(kernel, Z)))
    assert np.linalg.norm(found - Z, axis=1).max() < 0.01
    assert way_back.loo_error < 0.01


def test_D14_its_error_is_what_fresh_points_see(rng):
    """Leave-one-out is an honest estimate; the bandwidth on coordinates is not that of the data."""
    kernel = mc.Gaussian(0.5)
    X, Z = arc(rng, 200, 0.1), arc(rng, 2000, 0.1)
    way_back = LearnedMap().fit(principal_plane(kernel, X, 1), X)
    fresh = points_of(way_back, mc.feature(kernel, Z)) - Z
    assert_allclose(np.sqrt(np.mean(np.sum(fresh**2, axis=1))), way_back.loo_error, rtol=0.15)
    assert way_back.kernel.length_scale != kernel.length_scale


def test_D14_what_it_learns_is_the_data_noise_included(rng):
    """Coordinates that tell the noise bring it back: a learned map denoises by its penalty."""
    kernel = mc.Gaussian(0.5)
    X, Z = arc(rng, 300, 0.1), arc(rng, 300, 0.1)
    plane = principal_plane(kernel, X, 4)
    psi = plane.project(mc.feature(kernel, Z))
    by_error, smooth = LearnedMap().fit(plane, X), LearnedMap(penalty=0.1).fit(plane, X)

    def off(x):
        return np.abs(np.linalg.norm(x, axis=1) - 1.0).mean()

    assert off(points_of(by_error, psi)) > 0.6 * off(Z)
    assert off(points_of(smooth, psi)) < 0.5 * off(Z)


def test_D14_the_linear_case_is_exact(rng):
    """On all directions of the linear kernel the way back is an affine map, which ridge finds."""
    X, Z = rng.normal(size=(20, 3)) + 4.0, rng.normal(size=(5, 3))
    plane = mc.Subspace.span(mc.mean_embedding(mc.Linear(), X), mc.feature(mc.Linear(), X))
    way_back = LearnedMap(mc.Linear(), penalty=1e-9).fit(plane, X)
    assert_allclose(points_of(way_back, mc.feature(mc.Linear(), Z)), Z, atol=1e-7)
