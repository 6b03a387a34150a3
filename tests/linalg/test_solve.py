"""Solutions of (K + penalty I) A = B: every method against NumPy, and what the results say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import Status, linalg
from mercer.linalg._conjugate_gradients import ConjugateGradients
from mercer.linalg._operator import GramOperator
from mercer.testing import awkward_kernels

METHODS = ("cholesky", "eigen", "cg")


def expected(K, B, penalty):
    return np.linalg.solve(K + penalty * np.eye(len(K)), B)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_every_method_agrees_with_numpy(kernel, method, rng):
    X, B = rng.normal(size=(50, 3)), rng.normal(size=(50, 4))
    K = kernel(X)
    penalty = 1e-2 * np.trace(K) / 50
    found = linalg.solve(kernel, X, B, penalty, method=method, tol=1e-11)
    assert found.ok
    assert found.method == method
    assert found.jitter == 0.0
    assert_allclose(found.coef, expected(K, B, penalty), atol=1e-7 * np.abs(found.coef).max())
    rest = (K + penalty * np.eye(50)) @ found.coef - B
    assert_allclose(found.residual, np.linalg.norm(rest, axis=0) / np.linalg.norm(B, axis=0),
                    atol=1e-12)  # fmt: skip
    assert found.residual.max() < 1e-10


@pytest.mark.parametrize("preconditioner", [None, "nystrom", "pivoted", "none"])
def test_conjugate_gradients_equal_cholesky(preconditioner, rng):
    X, B = rng.normal(size=(300, 4)), rng.normal(size=(300, 3))
    k = mc.Matern(1.5, 2.0)
    direct = linalg.solve(k, X, B, 0.1)
    by_cg = linalg.solve(k, X, B, 0.1, method="cg", preconditioner=preconditioner, tol=1e-10)
    assert direct.method == "cholesky"
    assert by_cg.status == (Status.CONVERGED,) * 3
    assert_allclose(by_cg.coef, direct.coef, atol=1e-7 * np.abs(direct.coef).max())


def test_preconditioners_save_iterations(rng):
    X, y = rng.normal(size=(800, 3)), rng.normal(size=800)
    k = mc.Gaussian(2.0)
    low = linalg.nystrom(k, X, 200, rule="kmeans", random_state=0)
    factor = linalg.pivoted_cholesky(k, X, max_rank=200)
    steps = {
        name: linalg.solve(k, X, y, 1e-3, method="cg", preconditioner=p, tol=1e-6).n_iter
        for name, p in [("none", "none"), ("default", None), ("kmeans", low), ("pivoted", factor)]
    }
    assert steps["none"] > 100
    assert max(steps[name] for name in ("default", "kmeans", "pivoted")) < 15


def test_one_kernel_sum_per_iteration_for_all_columns(monkeypatch, rng):
    """Columns that are done take no part in later sums."""
    widths = []
    original = GramOperator.matmat
    monkeypatch.setattr(
        GramOperator, "matmat", lambda S, V: widths.append(V.shape[1]) or original(S, V)
    )
    X = rng.normal(size=(120, 2))
    k = mc.Gaussian(1.0)
    vectors = linalg.eigenpairs(k, X, 3).vectors
    B = np.column_stack([vectors[:, 0], vectors @ np.ones(3), rng.normal(size=120), np.zeros(120)])
    widths.clear()
    found = linalg.solve(k, X, B, 0.1, method="cg", preconditioner="none")
    assert found.n_iter.tolist()[:2] == [1, 3]  # as many as there are eigenvectors in B
    assert found.n_iter[3] == 0
    assert widths[:4] == [3, 2, 2, 1]
    assert widths[-1] == 3  # the residuals at the end
    assert len(widths) == found.n_iter.max() + 1


@pytest.mark.parametrize("shift", [0.0, 1e5])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_systems_are_iterated_in_float32_to_the_accuracy_of_float64(
    shift, weighted, monkeypatch, rng
):
    """Far from the origin float32 tells nothing about the points, and float64 takes over."""
    X, B = rng.normal(size=(500, 3)) + shift, rng.normal(size=(500, 2))
    weights = rng.uniform(0.5, 2.0, size=500) if weighted else None
    k = mc.Matern(1.5, 0.5)
    direct = linalg.solve(k, X, B, 0.05, weights=weights, method="cholesky")
    exact = []
    original = GramOperator.matmat
    monkeypatch.setattr(GramOperator, "matmat", lambda S, V: exact.append(1) or original(S, V))
    monkeypatch.setattr("mercer.linalg._solve.DIRECT_UP_TO", 499)
    found = linalg.solve(k, X, B, 0.05, weights=weights, tol=1e-11)
    assert found.ok
    assert found.method == "cg"
    assert_allclose(found.coef, direct.coef, atol=1e-9 * np.abs(direct.coef).max())
    if shift == 0.0:
        assert len(exact) <= 4 < found.n_iter.max() / 2


@pytest.mark.parametrize("draft", [lambda V: -V, lambda V: np.nan * V, lambda V: 1e-3 * V])
def test_products_that_mislead_the_iteration_are_given_up(draft):
    diagonal = np.linspace(1.0, 2.0, 8)[:, None]
    cg = ConjugateGradients(lambda V: diagonal * V, np.copy, np.ones((8, 1)), 1e-10, 1.0, draft)
    cg.run(100)
    assert cg.status.tolist() == [Status.CONVERGED]
    assert_allclose(cg.coef, 1.0 / diagonal, rtol=1e-9)


def test_limits_hold_with_less_exact_products():
    diagonal = np.linspace(1.0, 2.0, 8)[:, None]

    def run(max_iter, callback=None):
        cg = ConjugateGradients(
            lambda V: diagonal * V, np.copy, np.ones((8, 1)), 1e-10, 1.0, lambda V: diagonal * V
        )
        cg.run(max_iter, callback)
        return cg

    limited, stopped = run(2), run(100, lambda step: step.n_iter == 2)
    assert limited.status.tolist() == [Status.MAX_ITER]
    assert stopped.status.tolist() == [Status.STOPPED]
    for cg in (limited, stopped):
        assert cg.n_iter.tolist() == [2]
        assert_allclose(cg.residual, np.linalg.norm(diagonal * cg.coef - 1.0) / np.sqrt(8.0))


def test_single_and_many_right_hand_sides(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    k = mc.Laplace(1.0)
    for method in METHODS:
        one = linalg.solve(k, X, y, 0.5, method=method)
        many = linalg.solve(k, X, y[:, None], 0.5, method=method)
        assert one.coef.shape == (30,)
        assert many.coef.shape == (30, 1)
        assert isinstance(one.residual, float)
        assert isinstance(one.n_iter, int)
        assert isinstance(one.status, Status)
        assert len(many.status) == 1
        assert_allclose(one.coef, many.coef[:, 0])


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_a_row_that_stands_twice(method, rng):
    """The coefficients of the copies add up to that of the weighted row."""
    X, y, weights = rng.normal(size=(12, 2)), rng.normal(size=12), rng.integers(0, 4, size=12)
    k = mc.Gaussian(1.0) + 0.5 * mc.Linear()
    weighted = linalg.solve(k, X, y, 0.3, weights=weights, method=method, tol=1e-12)
    rows = np.repeat(np.arange(12), weights)
    repeated = linalg.solve(k, X[rows], y[rows], 0.3, method=method, tol=1e-12)
    total = np.bincount(rows, weights=repeated.coef, minlength=12)
    assert_allclose(weighted.coef, total, atol=1e-9)
    assert np.all(weighted.coef[weights == 0] == 0)


# --- singular matrices ----------------------------------------------------------------------------


def test_jitter_only_where_it_is_needed_and_reported(rng):
    X = rng.normal(size=(20, 2))
    k = mc.Laplace(0.5)
    assert linalg.solve(k, X, np.ones(20), 0.0, method="cholesky").jitter == 0.0
    twice = np.vstack([X, X])
    found = linalg.solve(k, twice, np.ones(40), 0.0, method="cholesky")
    assert found.status is Status.JITTERED
    assert 0 < found.jitter < 1e-12
    assert found.residual < 1e-8
    assert linalg.solve(k, twice, np.ones(40), 0.1, method="cholesky").jitter == 0.0


@pytest.mark.parametrize("scale", [1.0, 30.0], ids=["duplicates", "smooth"])
def test_without_a_penalty_singular_matrices_are_truncated(scale, rng):
    """Labels that contradict each other at one point must not blow up the coefficients."""
    X = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)
    k, y = mc.Gaussian(scale), rng.normal(size=60)
    found = linalg.solve(k, X, y, 0.0)
    assert (found.method, found.status) == ("eigen", Status.TRUNCATED)
    assert found.rank < 31
    at_points = k(X) @ found.coef
    assert_allclose(at_points[::2], at_points[1::2])
    if scale == 1.0:
        assert_allclose(at_points[::2], 0.5 * (y[::2] + y[1::2]), atol=1e-4)
    regular = linalg.solve(mc.Laplace(1.0), X[::2], y[::2], 0.0)
    assert (regular.method, regular.status) == ("cholesky", Status.SOLVED)


def test_large_singular_matrices_get_jitter(monkeypatch, rng):
    from mercer.linalg import _solve

    monkeypatch.setattr(_solve, "EIGEN_UP_TO", 10)
    X = np.repeat(rng.normal(size=(8, 2)), 2, axis=0)
    found = linalg.solve(mc.Gaussian(1.0), X, np.ones(16), 0.0)
    assert (found.method, found.status) == ("cholesky", Status.JITTERED)


@pytest.mark.parametrize("method", METHODS)
def test_the_residual_leaves_jitter_out(method, rng):
    """A right-hand side outside the range of K cannot be met, and the result does not claim it."""
    twice = np.repeat(rng.normal(size=(6, 2)), 2, axis=0)
    B = np.tile([1.0, -1.0], 6)
    found = linalg.solve(mc.Gaussian(1.0), twice, B, 0.0, method=method)
    assert found.residual > 0.5
    assert np.isfinite(found.coef).all()


def test_eigen_gives_the_pseudo_inverse(rng):
    X = np.repeat(rng.normal(size=(8, 2)), 3, axis=0)
    k, B = mc.Gaussian(1.0), rng.normal(size=(24, 2))
    found = linalg.solve(k, X, B, 0.0, method="eigen")
    assert found.rank == 8
    assert found.status == (Status.TRUNCATED,) * 2
    assert_allclose(found.coef, np.linalg.pinv(k(X), rcond=1e-13) @ B, rtol=1e-6)


def test_conjugate_gradients_solve_consistent_singular_systems(rng):
    X = np.repeat(rng.normal(size=(40, 3)), 2, axis=0)
    k = mc.Laplace(1.0)
    B = k(X) @ rng.normal(size=80)
    found = linalg.solve(k, X, B, 0.0, method="cg")
    assert found.status is Status.CONVERGED
    assert_allclose(k(X) @ found.coef, B, atol=1e-6 * np.abs(B).max())


def test_kernels_that_are_not_positive_definite():
    k = mc.Precomputed([[1.0, 2.0], [2.0, 1.0]])
    found = linalg.solve(k, [0, 1], [3.0, 3.0], 0.0)
    assert found.method == "eigen"
    assert_allclose(found.coef, [1.0, 1.0])
    with pytest.raises(mc.InputError, match='use method="eigen"'):
        linalg.solve(k, [0, 1], [3.0, 3.0], 0.0, method="cholesky")
    by_cg = linalg.solve(k, [0, 1], [1.0, -1.0], 0.0, method="cg", preconditioner="none")
    assert by_cg.status is Status.INDEFINITE
    assert not by_cg.ok


def test_a_kernel_that_is_zero():
    for method in (None, "eigen", "cg"):
        found = linalg.solve(mc.Linear(), np.zeros((3, 2)), np.ones(3), 0.0, method=method)
        assert_allclose(found.coef, 0.0)
        assert_allclose(found.residual, 1.0)


def test_overflowing_kernels_are_refused():
    with pytest.raises(mc.InputError, match="infinite"):
        linalg.solve(mc.Polynomial(3), [[1e120], [2e120]], [1.0, 1.0], 1.0)


# --- limits ---------------------------------------------------------------------------------------


def test_it_stops_at_max_iter_and_says_so(rng):
    X, B = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    found = linalg.solve(
        mc.Gaussian(2.0), X, B, 1e-6, method="cg", preconditioner="none", max_iter=5
    )
    assert found.status == (Status.MAX_ITER,) * 2
    assert found.n_iter.tolist() == [5, 5]
    assert np.all(found.residual > 1e-8)
    rest = mc.Gaussian(2.0)(X) @ found.coef + 1e-6 * found.coef - B
    assert_allclose(found.residual, np.linalg.norm(rest, axis=0) / np.linalg.norm(B, axis=0))


def test_it_stops_where_rounding_allows_no_more(rng):
    X, y = rng.normal(size=(100, 1)), rng.normal(size=100)
    found = linalg.solve(mc.Gaussian(2.0), X, y, 1e-13, method="cg", tol=1e-15, max_iter=3000)
    assert found.status is Status.STALLED
    assert found.residual < 1.0 + 1e-9


def test_an_iteration_that_made_things_worse_is_undone():
    """The true residual has the last word: here the product that gives it is another one."""
    factors = iter([1e-3, 5.0])
    cg = ConjugateGradients(lambda V: next(factors) * V, np.copy, np.ones((4, 1)), 1e-8, 1.0)
    cg.run(10)
    assert cg.status.tolist() == [Status.STALLED]
    assert_allclose(cg.coef, 0.0)
    assert_allclose(cg.residual, 1.0)


def test_callbacks_see_each_iteration_and_can_stop(rng):
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    seen = []

    def stop(step):
        seen.append(step)
        return step.n_iter == 3

    found = linalg.solve(
        mc.Gaussian(1.0), X, y, 1e-3, method="cg", preconditioner="none", callback=stop
    )
    assert [step.n_iter for step in seen] == [1, 2, 3]
    assert found.status is Status.STOPPED
    assert found.n_iter == 3


def test_seeds_are_honoured(rng):
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    arguments = {"method": "cg", "tol": 1e-4}
    first, again, other = (
        linalg.solve(mc.Gaussian(1.0), X, y, 0.1, random_state=seed, **arguments).coef
        for seed in (3, np.random.default_rng(3), 4)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_threads_do_not_change_the_answer(rng):
    X, y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    found = []
    for jobs in (1, 2):
        with mc.options(n_jobs=jobs):
            found.append(linalg.solve(mc.Gaussian(1.0), X, y, 0.1, method="cg").coef)
    assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("method", [None, *METHODS])
def test_few_points(n, method):
    X = np.arange(n)[:, None].astype(float)
    found = linalg.solve(mc.Gaussian(1.0), X, np.ones(n), 1.0, method=method)
    assert_allclose(found.coef, expected(mc.Gaussian(1.0)(X), np.ones(n), 1.0), rtol=1e-9)


def test_more_dimensions_than_points(rng):
    X, y = rng.normal(size=(5, 300)), rng.normal(size=5)
    for method in METHODS:
        found = linalg.solve(mc.Linear(), X, y, 1.0, method=method, tol=1e-12)
        assert_allclose(found.coef, expected(X @ X.T, y, 1.0), rtol=1e-8)


def test_float32_points_give_float64_solutions(rng):
    X, y = rng.normal(size=(60, 3)).astype(np.float32), rng.normal(size=60).astype(np.float32)
    for method in METHODS:
        found = linalg.solve(mc.Gaussian(1.0), X, y, 1e-6, method=method)
        assert found.coef.dtype == np.float64
        assert found.residual < 1e-8


def test_columns_of_very_different_scales(rng):
    X = rng.normal(size=(60, 3)) * [1e-4, 1.0, 1e3]
    y = rng.normal(size=60)
    for kernel in (mc.Gaussian(500.0), mc.Polynomial(2), mc.Linear() + mc.Laplace(1.0)):
        penalty = 1e-4 * float(np.mean(kernel.diag(X)))
        direct = linalg.solve(kernel, X, y, penalty)
        by_cg = linalg.solve(kernel, X, y, penalty, method="cg", tol=1e-10)
        assert by_cg.ok
        assert_allclose(by_cg.coef, direct.coef, atol=1e-5 * np.abs(direct.coef).max())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": -1.0}, "penalty must be >= 0"),
        ({"B": [1.0]}, r"B must have shape \(2,\)"),
        ({"B": [1.0, np.inf]}, "infinity"),
        ({"method": "qr"}, "method must be one of"),
        ({"method": "cg", "preconditioner": "jacobi"}, "preconditioner must be one of"),
        ({"tol": 0.0}, "tol must be > 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"X": [[0.0], [np.nan]]}, "NaN"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"X": [[0.0], [1.0]], "B": [1.0, 2.0], "penalty": 1.0} | change
    with pytest.raises(mc.InputError, match=message):
        linalg.solve(mc.Gaussian(1.0), **arguments)


def test_a_preconditioner_of_other_points_is_refused():
    k = mc.Gaussian(1.0)
    low = linalg.nystrom(k, [[0.0], [1.0], [2.0]], 2, random_state=0)
    with pytest.raises(mc.InputError, match="of 3 points, but X has 2"):
        linalg.solve(k, [[0.0], [1.0]], [1.0, 1.0], 1.0, method="cg", preconditioner=low)
