"""Leading eigenpairs: dense and Krylov against NumPy, on spectra that deceive Krylov methods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import Status, linalg
from mercer.linalg import _eigen
from mercer.linalg._lanczos import BlockLanczos, default_sizes
from mercer.testing import awkward_kernels

METHODS = ("dense", "krylov")


def check(kernel, X, k, *, method, tol=1e-8, **of):
    """Values, orthonormal vectors and residuals against a full dense decomposition."""
    S = linalg.GramOperator(kernel, X, **of).dense()
    values = np.linalg.eigvalsh(S)[::-1]
    size = max(abs(values[0]), abs(values[-1]))
    found = linalg.eigenpairs(kernel, X, k, method=method, random_state=5, **of)
    assert found.status is (Status.SOLVED if method == "dense" else Status.CONVERGED)
    assert found.method == method
    assert found.values.shape == (k,)
    assert np.all(np.diff(found.values) <= 1e-12 * size)
    assert_allclose(found.values, values[:k], atol=1e-10 * size)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-11)
    residual = np.linalg.norm(S @ found.vectors - found.vectors * found.values, axis=0)
    assert_allclose(found.residuals, residual, atol=1e-11 * size)
    assert found.residuals.max() <= 2 * tol * size
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_against_numpy(kernel, method, rng):
    X = rng.normal(size=(70, 3))
    check(kernel, X, 6, method=method)
    check(kernel, X, 5, method=method, centred=True, weights=rng.integers(0, 3, size=70))


@pytest.mark.parametrize("k", [1, 30, 150])
@pytest.mark.parametrize("scale", [0.3, 2.0], ids=["slow decay", "fast decay"])
def test_restarts(k, scale, rng):
    X = rng.normal(size=(600, 4))
    _, basis = default_sizes(600, k)
    assert basis < 600 or k == 150
    check(mc.Gaussian(scale), X, k, method="krylov", centred=True)


def test_vectors_agree_with_scipy_up_to_nothing(rng):
    """Signs are fixed, so both methods give the same vectors."""
    X = rng.normal(size=(300, 2))
    dense, krylov = (
        linalg.eigenpairs(mc.Gaussian(1.0), X, 8, method=m, tol=1e-12, random_state=0)
        for m in METHODS
    )
    assert_allclose(krylov.vectors, dense.vectors, atol=1e-8)
    largest = np.abs(dense.vectors).argmax(axis=0)
    assert np.all(dense.vectors[largest, range(8)] > 0)


@pytest.mark.parametrize("centred", [False, True])
def test_a_weight_of_two_is_a_row_that_stands_twice(centred, rng):
    X, weights = rng.normal(size=(40, 3)), rng.integers(1, 4, size=40)
    rows = np.repeat(np.arange(40), weights)
    for method in METHODS:
        once, twice = (
            linalg.eigenpairs(mc.Laplace(1.0), Z, 6, centred=centred, weights=w, method=method)
            for Z, w in ((X, weights), (X[rows], None))
        )
        assert_allclose(once.values, twice.values, rtol=1e-9)
        spread = (once.vectors / np.sqrt(weights)[:, None])[rows]
        assert_allclose(np.abs(np.sum(spread * twice.vectors, axis=0)), 1.0, atol=1e-7)


@pytest.mark.parametrize("k", [5, 60, 110])
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_eigenvalues_of_high_multiplicity_are_not_missed(k, noise, rng):
    """A hundred groups of equal size, far apart: a hundred eigenvalues, all the same."""
    X = np.repeat(1e3 * rng.normal(size=(100, 3)), 6, axis=0)
    X = X + noise * rng.normal(size=X.shape)
    check(mc.Gaussian(1.0), X, k, method="krylov")


def test_hidden_eigenvalues_behind_a_tail(rng):
    groups = np.repeat(1e3 * rng.normal(size=(60, 2)), 8, axis=0)
    X = np.vstack([groups, rng.normal(size=(200, 2))])
    check(mc.Gaussian(0.5), X, 64, method="krylov")
    nothing_claimed = mc.kernels.FromFunction(mc.Gaussian(0.5))
    check(nothing_claimed, X, 64, method="krylov", centred=True)


@pytest.mark.parametrize("method", METHODS)
def test_more_components_than_the_rank(method, rng):
    X = np.repeat(rng.normal(size=(4, 3)), 10, axis=0)
    found = check(mc.Gaussian(1.0), X, 12, method=method, centred=True)
    assert_allclose(found.values[3:], 0.0, atol=1e-12)
    check(mc.Linear(), rng.normal(size=(30, 2)), 30, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_identity_zero_and_single_points(method):
    far = 100.0 * np.arange(50.0)[:, None]
    check(mc.Gaussian(1.0), far, 20, method=method)
    zero = linalg.eigenpairs(mc.Linear(), np.zeros((20, 2)), 3, method=method)
    assert_allclose(zero.values, 0.0)
    assert_allclose(zero.vectors.T @ zero.vectors, np.eye(3), atol=1e-12)
    one = linalg.eigenpairs(mc.Linear(), [[3.0]], 1, method=method)
    assert_allclose((one.values[0], one.vectors[0, 0]), (9.0, 1.0))


# --- eigenvalues so close that LAPACK's range solver loses some -----------------------------------


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    ("shape", "scale", "k"),
    [((250, 3), 0.02, 10), ((300, 100), 1.0, 10), ((120, 2), 1e-6, 30), ((40, 5), 0.1, 1),
     ((5, 2), 1e-3, 1), ((3, 2), 1e-3, 2), ((2, 1), 1e-3, 1)],
)  # fmt: skip
@pytest.mark.parametrize("copies", [1, 4])
def test_clustered_eigenvalues_are_all_found(shape, scale, k, copies, centred):
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=shape)
        X = np.repeat(X[: len(X) // copies + 1], copies, axis=0)
        check(mc.Gaussian(scale), X, k, method="dense", centred=centred)


@pytest.mark.parametrize("seed", range(8))
def test_kernel_pca_of_features_that_are_nearly_orthogonal(seed):
    X = np.random.default_rng(seed).normal(size=(300, 100))
    assert mc.kernel_pca(mc.Gaussian(1.0), X, 10).eigenvalues.shape == (10,)


@pytest.mark.parametrize("wrong", ["few", "none", "equal", "inexact"])
def test_what_the_range_solver_returns_is_checked(wrong, monkeypatch, rng):
    """Too few pairs, the same vector twice, and vectors that are no eigenvectors."""
    original = _eigen.largest_pairs

    def broken(K, k):
        values, V = original(K, k)
        if wrong == "equal":
            V[:, 0] = V[:, 1]
        if wrong == "inexact":
            V[:, 0] += 1e-6 * V[:, 1]
        count = {"few": 2, "none": 0}.get(wrong, k)
        return values[:count], V[:, :count]

    monkeypatch.setattr(_eigen, "largest_pairs", broken)
    check(mc.Gaussian(1.0), rng.normal(size=(80, 3)), 5, method="dense")


def test_identical_features_of_many_points_by_krylov():
    """An identity matrix, and one eigenvalue of multiplicity 400: more than any block."""
    far = 1e3 * np.arange(1600.0)[:, None]
    assert_allclose(linalg.eigenpairs(mc.Gaussian(1.0), far, 10).values, 1.0)
    four = np.repeat(far[:400], 4, axis=0)
    assert_allclose(linalg.eigenpairs(mc.Gaussian(1.0), four, 90).values, 4.0)


def test_conditionally_definite_kernels(rng):
    """Centred, the energy distance has a spectrum >= 0; not centred, one large negative value."""
    X = rng.normal(size=(200, 3))
    centred = check(mc.NegativeDistance(), X, 10, method="krylov", centred=True)
    assert np.all(centred.values > 0)
    check(mc.NegativeDistance(), X, 4, method="krylov")


def test_float32_points(rng):
    X = rng.normal(size=(300, 4)).astype(np.float32)
    found = check(mc.Gaussian(1.0), X, 10, method="krylov")
    assert found.vectors.dtype == np.float64


def test_the_table(rng):
    """Small problems are written down, large ones are not."""
    assert linalg.eigenpairs(mc.Linear(), rng.normal(size=(100, 2)), 3).method == "dense"
    large = linalg.eigenpairs(mc.Gaussian(3.0), rng.normal(size=(1600, 2)), 3)
    assert large.method == "krylov"
    assert large.n_iter > 1


def test_it_stops_at_max_iter_and_says_so(rng):
    X = rng.normal(size=(500, 5))
    found = linalg.eigenpairs(mc.Gaussian(0.5), X, 20, method="krylov", max_iter=3, random_state=0)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 3
    S = mc.Gaussian(0.5)(X)
    residual = np.linalg.norm(S @ found.vectors - found.vectors * found.values, axis=0)
    assert_allclose(found.residuals, residual, atol=1e-12)


def test_callbacks_can_stop(rng):
    seen = []
    found = linalg.eigenpairs(
        mc.Gaussian(0.5),
        rng.normal(size=(400, 5)),
        10,
        method="krylov",
        callback=lambda step: seen.append(step) or step.n_iter == 4,
    )
    assert found.status is Status.STOPPED
    assert [step.n_iter for step in seen] == [1, 2, 3, 4]


def test_seeds_are_honoured(rng):
    X = rng.normal(size=(300, 3))
    first, again, other = (
        linalg.eigenpairs(mc.Laplace(1.0), X, 3, method="krylov", random_state=seed)
        for seed in (1, np.random.default_rng(1), 2)
    )
    assert np.array_equal(first.vectors, again.vectors)
    assert not np.array_equal(first.vectors, other.vectors)
    assert_allclose(first.values, other.values, rtol=1e-10)


def test_the_basis_stays_orthonormal_over_many_restarts(rng):
    S = np.diag(np.linspace(1.0, 2.0, 300))
    run = BlockLanczos(lambda V: S @ V, 300, 6, rng, sizes=(4, 24))
    run.run(1e-10, 400)
    assert run.status is Status.CONVERGED
    assert_allclose(run.values, np.diag(S)[::-1][:6], rtol=1e-9)
    assert_allclose(run.vectors.T @ run.vectors, np.eye(6), atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 3}, "at most the number of points, 2, got 3"),
        ({"n_components": 0}, "n_components must be an integer >= 1"),
        ({"method": "arpack"}, "method must be one of"),
        ({"tol": -1.0}, "tol must be > 0"),
        ({"max_iter": 0}, "max_iter"),
        ({"X": [[0.0], [np.inf]]}, "infinity"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"X": [[0.0], [1.0]], "n_components": 1} | change
    with pytest.raises(mc.InputError, match=message):
        linalg.eigenpairs(mc.Gaussian(1.0), **arguments)


# --- power iteration ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", awkward_kernels()[:6], ids=repr)
def test_power_iteration_finds_the_largest(kernel, rng):
    X = rng.normal(size=(40, 3))
    found = linalg.power_iteration(kernel, X, random_state=0, max_iter=5000)
    pairs = linalg.eigenpairs(kernel, X, 1)
    assert found.status is Status.CONVERGED
    assert_allclose(found.values[0], pairs.values[0], rtol=1e-9)
    assert_allclose(found.vectors[:, 0], pairs.vectors[:, 0], atol=1e-4)
    assert found.residuals[0] <= 1e-6 * found.values[0]


def test_power_iteration_centred_and_weighted(rng):
    X, weights = rng.normal(size=(30, 2)), rng.random(30)
    found = linalg.power_iteration(mc.Linear(), X, centred=True, weights=weights, random_state=0)
    expected = np.linalg.eigvalsh(np.cov(X.T, aweights=weights, ddof=0))[-1] * weights.sum()
    assert_allclose(found.values[0], expected, rtol=1e-9)


def test_power_iteration_finds_negative_eigenvalues_too():
    k = mc.Precomputed([[-3.0, 0.0], [0.0, 1.0]])
    found = linalg.power_iteration(k, [0, 1], random_state=0)
    assert_allclose(found.values[0], -3.0)
    assert_allclose(found.vectors[:, 0], [1.0, 0.0], atol=1e-6)


def test_power_iteration_stops(rng):
    X = rng.normal(size=(50, 8))
    found = linalg.power_iteration(mc.Gaussian(0.5), X, tol=1e-14, max_iter=4, random_state=0)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 4
    rest = mc.Gaussian(0.5)(X) @ found.vectors - found.values * found.vectors
    assert_allclose(found.residuals[0], np.linalg.norm(rest), atol=1e-13)
    stopped = linalg.power_iteration(mc.Gaussian(0.5), X, random_state=0, callback=lambda s: True)
    assert (stopped.status, stopped.n_iter) == (Status.STOPPED, 1)
    zero = linalg.power_iteration(mc.Linear(), [[0.0], [0.0]])
    assert (zero.values[0], zero.status) == (0.0, Status.CONVERGED)
