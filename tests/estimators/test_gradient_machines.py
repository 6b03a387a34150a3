"""Kernel gradient descent and the kernel stochastic subgradient method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import KernelGradientDescent, KernelSGD
from mercer.exceptions import InputError
from mercer.methods import AbsoluteLoss, LogisticLoss, SquareLoss
from mercer.methods.machines._stochastic_subgradient import Iterate, within_budget
from mercer.theory import bound
from mercer.theory.learning import early_stopping_stability, stability_bound


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        KernelGradientDescent(random_state=0, max_iter=300),
        KernelGradientDescent(loss="logistic", validation_fraction=None, max_iter=100),
        KernelSGD(random_state=0),
        KernelSGD(loss="absolute", random_state=0, max_iter=30),
        KernelSGD(mc.Gaussian(1.0), budget=50, random_state=0),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def regression(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 6.0, (n, 1))
    return X, np.sin(X[:, 0]) + 0.5 * rng.normal(size=n)


# --- gradient descent -----------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_descent_is_the_double_loop(intercept):
    X, y = regression(12)
    k, step = mc.Gaussian(0.7), 0.1
    model = KernelGradientDescent(
        k, step_size=step, max_iter=5, validation_fraction=None, fit_intercept=intercept
    ).fit(X, y)
    a, c = np.zeros(12), 0.0
    for _ in range(5):
        slopes = [2.0 * (sum(a[j] * k(X[[j]], X[[i]]).item() for j in range(12)) + c - y[i])
                  for i in range(12)]  # fmt: skip
        a = a - step * np.array(slopes) / 12
        c -= step * np.mean(slopes) if intercept else 0.0
    new = np.linspace(0.0, 6.0, 7)[:, None]
    assert_allclose(model.predict(new), k(new, X) @ a + c, rtol=1e-10)
    assert model.n_iter_ == 5
    assert_allclose(model.certificate_.primal, np.mean((model.predict(X) - y) ** 2), rtol=1e-10)


def test_many_steps_of_the_square_loss_interpolate():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 0.0, 2.0, 1.0, 0.0])
    model = KernelGradientDescent(
        mc.Gaussian(0.5), validation_fraction=None, max_iter=3000, tol=1e-12, fit_intercept=False
    ).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-4)


def test_warm_start_goes_on():
    X, y = regression()
    given = {"validation_fraction": None, "kernel": mc.Gaussian(0.5)}
    whole = KernelGradientDescent(max_iter=30, **given).fit(X, y)
    part = KernelGradientDescent(max_iter=15, warm_start=True, **given).fit(X, y).fit(X, y)
    assert_allclose(part.predict(X), whole.predict(X), rtol=1e-10)


def test_held_out_rows_stop_before_the_noise_is_learned():
    X, y = regression(200)
    grid = np.linspace(0.3, 5.7, 100)[:, None]
    errors = {}
    for share in (0.2, None):
        model = KernelGradientDescent(
            mc.Gaussian(0.2), validation_fraction=share, max_iter=2000, random_state=0
        ).fit(X, y)
        errors[share] = np.mean((model.predict(grid) - np.sin(grid[:, 0])) ** 2)
        assert share is None or model.n_iter_ < 500
    assert errors[0.2] < 0.7 * errors[None]


def test_weights_are_repetitions_and_runs_are_repeatable():
    X, y = regression(40)
    w = np.arange(40) % 3
    given = {"validation_fraction": None, "kernel": mc.Gaussian(0.5), "max_iter": 20}
    weighted = KernelGradientDescent(**given).fit(X, y, sample_weight=w)
    repeated = KernelGradientDescent(**given).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-10)
    first, second = (KernelGradientDescent(random_state=3).fit(X, y).n_iter_ for _ in range(2))
    assert first == second


def test_losses_without_a_derivative_are_refused():
    X, y = regression(20)
    with pytest.raises(InputError, match="KernelSGD"):
        KernelGradientDescent(loss=AbsoluteLoss()).fit(X, y)


def test_risk_of_early_stopping_has_a_bound():
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 3000)
    X = rng.normal(size=(3000, 2)) + 2.0 * y[:, None]
    given = {"loss": "logistic", "fit_intercept": False, "max_iter": 2}
    model = KernelGradientDescent(mc.Gaussian(3.0), validation_fraction=None, **given).fit(X, y)
    found = bound(model)
    risk = np.mean(LogisticLoss()(y, model.decision_function(X)))
    assert_allclose(found.empirical_risk, risk, rtol=1e-9)
    beta = early_stopping_stability(3000, 2, 4.0, 1.0, 1.0)  # steps of 1 / M = 4
    assert_allclose(found.gap, stability_bound(beta, 3000, 0.05, 8.0 + np.log(2.0)), rtol=1e-9)
    with pytest.raises(mc.exceptions.UnavailableError, match="same rows"):
        bound(KernelGradientDescent(mc.Gaussian(3.0), **given).fit(X, y))
    with pytest.raises(mc.exceptions.UnavailableError, match="too long"):
        bound(model.set_params(step_size=9.0).fit(X, y))


# --- stochastic subgradients ----------------------------------------------------------------------


def sgd_by_loops(k, X, y, loss, step):
    """Coefficients of the last f, and of the average with the weights 1, 2, ..."""
    n = len(X)
    a, mean, total = np.zeros(n), np.zeros(n), 0.0
    for i in range(n):
        mean, total = mean + (i + 1) * a, total + (i + 1)
        value = sum(a[j] * k(X[[j]], X[[i]]).item() for j in range(i))
        a[i] = -step * float(loss.subgradient(y[i], value))
    return a, mean / total


@pytest.mark.parametrize("loss", [AbsoluteLoss(), SquareLoss()])
@pytest.mark.parametrize("average", [True, False])
def test_sgd_is_the_double_loop_in_any_batches(loss, average):
    X, y = regression(60)
    k = mc.Gaussian(1.0)
    model = KernelSGD(k, loss=loss, step_size=0.3, average=average, shuffle=False)
    for rows in (slice(0, 7), slice(7, 40), slice(40, 60)):
        model.partial_fit(X[rows], y[rows])
    coef = sgd_by_loops(k, X, y, loss, 0.3)[1 if average else 0]
    new = np.linspace(0.0, 6.0, 9)[:, None]
    assert_allclose(model.predict(new), k(new, X) @ coef, rtol=1e-9)
    assert model.t_ == 60


def test_blocks_of_rows_do_not_change_the_result(monkeypatch):
    from mercer.methods.machines import _stochastic_subgradient as module

    X, y = regression(50)
    results = []
    for size in (3, 256):
        monkeypatch.setattr(module, "_BLOCK", size)
        model = KernelSGD(mc.Gaussian(1.0), loss="absolute", random_state=0, max_iter=2).fit(X, y)
        results.append(model.predict(X))
    assert_allclose(results[0], results[1], rtol=1e-9)


def test_budget_bounds_the_points_and_its_error_bounds_the_change():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    given = {"random_state": 0, "shuffle": False}
    free = KernelSGD(mc.Gaussian(30.0), **given).partial_fit(X, y, classes=range(10))
    n = len(free.element_.points)
    small = KernelSGD(mc.Gaussian(30.0), budget=n - 10, **given).partial_fit(X, y, range(10))
    assert len(small.element_.points) == n - 10
    tiny = KernelSGD(mc.Gaussian(30.0), budget=60, **given).partial_fit(X, y, classes=range(10))
    assert len(tiny.element_.points) == 60
    assert np.all(tiny.compression_error_ > small.compression_error_)
    assert tiny.score(X, y) > 0.9
    # compressed once, after the last step: the bound is on the change itself
    change = np.abs(small.decision_function(X) - free.decision_function(X)).max(axis=0)
    assert np.all(change <= small.compression_error_ + 1e-9)
    assert np.all(small.compression_error_ < 0.5 * np.abs(free.decision_function(X)).max())


def test_points_are_dropped_like_in_the_loop_over_all_of_them():
    """Each time the point without which the projection of both functions is nearest."""
    rng, kernel = np.random.default_rng(0), mc.Gaussian(0.7)
    X, C = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    state = Iterate(X, C[:, :1], C[:, 1:], 5, np.zeros((2, 1)))
    K, kept, f = kernel(X), list(range(12)), C
    while len(kept) > 7:
        trials = []
        for i in kept:
            rest = [j for j in kept if j != i]
            new = np.linalg.solve(K[np.ix_(rest, rest)], K[rest] @ C)
            left = C.copy()
            left[rest] -= new
            trials.append((np.trace(left.T @ K @ left), rest, new, np.diag(left.T @ K @ left)))
        _, kept, f, squares = min(trials, key=lambda trial: trial[0])
    found = within_budget(state, kernel, 7)
    assert_array_equal(found.points, X[kept])
    assert_allclose(np.hstack([found.coef, found.average]), f, rtol=1e-5)
    assert_allclose(found.errors[:, 0], np.sqrt(squares), rtol=1e-5)


def test_rows_of_several_passes_are_points_once_and_budgets_need_definite_kernels():
    X, y = regression(30)
    given = {"loss": "square", "random_state": 0, "max_iter": 4}
    assert len(KernelSGD(mc.Gaussian(1.0), **given).fit(X, y).element_.points) == 30
    twice = KernelSGD(mc.Gaussian(1.0), budget=20, **given).fit(np.repeat(X, 2, 0), np.repeat(y, 2))
    assert len(twice.element_.points) == 20
    assert twice.score(X, y) > 0.5
    with pytest.raises(InputError, match="positive definite"):
        KernelSGD(mc.Epanechnikov(1.0), budget=20, **given).fit(X, y)


@pytest.mark.parametrize("loss", ["square", "absolute"])
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_predictions_scale_with_the_targets(loss, unit):
    X, y = regression(60)
    model = KernelSGD(mc.Gaussian(1.0), loss=loss, random_state=0, max_iter=2)
    assert_allclose(model.fit(X, unit * y).predict(X), unit * model.fit(X, y).predict(X), rtol=1e-9)


def test_default_steps_learn_ten_classes_in_one_pass():
    X, y = load_digits(return_X_y=True)
    right = KernelSGD(random_state=0, max_iter=1).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    exact = mc.SVC().fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert right > exact - 0.03


def test_labels_and_classes():
    X, y = load_digits(return_X_y=True)
    names = np.array(["zero", "one", "two"])[y[y < 3]]
    model = KernelSGD(random_state=0).fit(X[y < 3], names)
    assert model.score(X[y < 3], names) > 0.98
    assert_array_equal(model.classes_, ["one", "two", "zero"])
    with pytest.raises(InputError, match="not among the classes"):
        model.partial_fit(X[:2], ["three", "one"])
    with pytest.raises(InputError, match="classes must be passed"):
        KernelSGD().partial_fit(X[:5], y[:5])
    with pytest.raises(InputError, match="random_state"):
        KernelSGD(random_state=-1).fit(X[y < 3], names)
    with pytest.raises(InputError, match="not Gram matrices"):
        KernelSGD("precomputed").fit(np.eye(3), [0, 1, 0])


def test_models_can_be_saved(tmp_path):
    X, y = regression(60)
    for model in (KernelSGD(loss="absolute"), KernelGradientDescent(random_state=0)):
        mc.save(model.fit(X, y), tmp_path / "model.mercer")
        again = mc.load(tmp_path / "model.mercer")
        assert_array_equal(again.predict(X), model.predict(X))


def test_passes_without_a_step_have_nothing_to_learn():
    loss = mc.methods.EpsilonInsensitiveLoss(0.5)
    model = mc.estimators.KernelSGD(mc.Gaussian(1.0), loss=loss, max_iter=2, random_state=0)
    with pytest.raises(mc.InputError, match="nothing to learn"):
        model.fit([[0.0], [1.0]], [0.1, -0.1])


@pytest.mark.parametrize("step_size", [1e300, 1e20])
def test_steps_that_diverge_are_refused(step_size):
    X = np.random.default_rng(6).normal(size=(30, 2))
    with pytest.raises(InputError, match="diverge; use a shorter step_size"):
        KernelSGD(loss="square", step_size=step_size, random_state=0).fit(X, np.sin(X[:, 0]))
