"""The bound on the risk of a fitted machine: its value, its assumptions, and that it holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.exceptions import InputError, UnavailableError
from mercer.theory import bound, learning

KERNEL = mc.Gaussian(2.0)


def labelled(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    return rng.normal(size=(n, 2)) + y[:, None], y


def machine(kind, n, penalty=0.3):
    C = 1.0 / (2.0 * penalty * n)
    return {
        "svc": mc.SVC(KERNEL, C=C, fit_intercept=False),
        "logistic": mc.KernelLogisticRegression(KERNEL, C=C, fit_intercept=False),
        "svr": mc.SVR(KERNEL, C=C, epsilon=0.1, fit_intercept=False),
        "absolute": mc.estimators.KernelMachine(KERNEL, loss="absolute", C=C, fit_intercept=False),
        "squared margin": mc.estimators.KernelMachine(
            KERNEL, loss="squared_margin", C=C, fit_intercept=False
        ),
        "ridge": mc.KernelRidge(KERNEL, penalty=penalty * n, fit_intercept=False),
        "ridge of the mean": mc.KernelRidge(
            KERNEL, penalty=penalty, reduction="mean", fit_intercept=False
        ),
    }[kind]


KINDS = ["svc", "logistic", "svr", "absolute", "squared margin", "ridge", "ridge of the mean"]


@pytest.mark.parametrize("kind", KINDS)
def test_empirical_risk_is_that_of_the_fit(kind):
    X, y = labelled(80)
    X[:10] = X[10:20]  # equal rows
    model = machine(kind, 80).fit(X, y)
    values = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    found = bound(model, target_bound=1.0)
    assert_allclose(found.empirical_risk, np.mean(model.loss_(y, values)), rtol=1e-9)
    assert_allclose(found.value, found.empirical_risk + found.gap)


@pytest.mark.parametrize("kind", KINDS)
def test_bound_holds_on_new_rows(kind):
    n = 60
    X_new, y_new = labelled(20_000, seed=1)
    for seed in range(5):
        model = machine(kind, n).fit(*labelled(n, seed=10 + seed))
        call = getattr(model, "decision_function", model.predict)
        assert np.mean(model.loss_(y_new, call(X_new))) <= bound(model, target_bound=1.0).value


def test_bound_fails_with_at_most_its_probability_and_is_within_a_factor():
    """x is 0 or 1, so that risks are exact; over 1,000 samples of 100 rows."""
    n, delta, ones, atoms = 100, 0.1, np.array([0.9, 0.2]), np.array([[0.0], [1.0]])
    model = machine("svc", n, penalty=0.5)
    values, gaps = [], []
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        i = rng.integers(2, size=n)
        found = bound(model.fit(atoms[i], np.where(rng.random(n) < ones[i], 1, -1)), delta)
        f = model.decision_function(atoms)
        risk = np.mean(ones * model.loss_(1.0, f) + (1.0 - ones) * model.loss_(-1.0, f))
        values.append(found.value / risk)
        gaps.append([risk - found.empirical_risk, found.gap])
    observed, bounds = np.array(gaps).T
    assert np.mean(np.array(values) < 1.0) <= delta
    assert np.quantile(values, delta) < 2.5
    assert bounds.max() < 60.0 * np.quantile(np.abs(observed), 1.0 - delta)


def test_both_conventions_of_the_penalty_have_one_bound():
    X, y = labelled(80)
    kinds = ("ridge", "ridge of the mean")
    a, b = (bound(machine(k, 80).fit(X, y), target_bound=1.0) for k in kinds)
    assert_allclose([a.value, a.gap], [b.value, b.gap], rtol=1e-9)


def test_value_is_made_of_its_theorem():
    n, penalty = 500, 0.3
    model = machine("svc", n, penalty).set_params(tol=1e-10).fit(*labelled(n))
    beta = learning.tikhonov_stability(n, penalty, 1.0, 1.0)
    largest = learning.tikhonov_largest_loss(penalty, 1.0, 1.0, 1.0)
    expected = learning.stability_bound(beta, n, 0.01, largest)
    assert_allclose(bound(model, 0.01).gap, expected, rtol=1e-4)


def test_a_fit_that_stopped_early_has_a_larger_bound():
    X, y = labelled(2000)
    model = machine("svc", 2000, 0.01)
    with pytest.warns(mc.exceptions.MercerWarning):
        early = bound(model.set_params(max_iter=1, tol=1e-9).fit(X, y))
    assert early.gap > bound(model.set_params(max_iter=1000).fit(X, y)).gap * 1.001


def test_a_bound_that_says_nothing_admits_it():
    found = bound(machine("svc", 30, 0.001).fit(*labelled(30)))
    assert found.value > found.trivial
    assert "says nothing" in repr(found)
    assert "says nothing" not in repr(bound(machine("svc", 5000, 0.3).fit(*labelled(5000))))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fit_intercept": True}, "fit_intercept=False"),
        ({"kernel": "auto"}, "chosen from the same rows"),
        ({"kernel": mc.Linear()}, "not known to be bounded"),
        ({"kernel": mc.Gaussian(1.0) + mc.Linear()}, "not known to be bounded"),
        ({"kernel": mc.Epanechnikov(1.0)}, "not known to be positive definite"),
        ({"kernel": mc.NegativeDistance(1.0)}, "not known to be positive definite"),
        ({"class_weight": "balanced"}, "fitted with weights"),
    ],
)
def test_refuses_with_the_reason(change, reason):
    X, y = labelled(60)
    y[:3] = 1
    model = machine("svc", 60).set_params(**change).fit(X, y)
    with pytest.raises(UnavailableError, match=reason):
        bound(model)


def test_refuses_weights_several_classes_and_automatic_penalties():
    X, y = labelled(60)
    model = machine("svc", 60)
    with pytest.raises(UnavailableError, match="weights"):
        bound(model.fit(X, y, sample_weight=np.linspace(1.0, 2.0, 60)))
    assert bound(model.fit(X, y, sample_weight=np.ones(60))).value > 0.0
    with pytest.raises(UnavailableError, match="several functions"):
        bound(model.fit(X, np.arange(60) % 3))
    with pytest.raises(UnavailableError, match="penalty was chosen"):
        bound(mc.KernelRidge(KERNEL, fit_intercept=False).fit(X, y), target_bound=1.0)
    separable = np.where(y > 0, X[:, 0] + 100.0, X[:, 0])[:, None]
    hard = mc.SVC(KERNEL, C=np.inf, fit_intercept=False).fit(separable, y)
    with pytest.raises(UnavailableError, match="finite C"):
        bound(hard)
    free = mc.KernelRidge(KERNEL, penalty=0.0, fit_intercept=False)
    with pytest.raises(UnavailableError, match="penalty > 0"):
        bound(free.fit(X, y), target_bound=1.0)


def test_refuses_targets_that_contradict_their_bound():
    X, y = labelled(60)
    with pytest.raises(UnavailableError, match="exceeds target_bound = 1"):
        bound(machine("ridge", 60).fit(X, 10.0 * y), target_bound=1.0)


def test_refuses_descents_whose_number_of_steps_is_not_their_own():
    """Steps of an earlier fit count as well; a number that the rows chose has no theorem."""
    X, y = labelled(60)
    given = {"loss": "logistic", "fit_intercept": False, "validation_fraction": None}
    machine = mc.estimators.KernelGradientDescent(KERNEL, max_iter=5, **given)
    assert bound(machine.fit(X, y)).gap > 0.0
    with pytest.raises(UnavailableError, match="warm_start=False"):
        bound(machine.set_params(warm_start=True).fit(X, y).fit(X, y))
    with pytest.raises(UnavailableError, match="stopped because of the rows"):
        bound(machine.set_params(warm_start=False, max_iter=1000, tol=0.9).fit(X, y))


def test_regression_needs_a_bound_of_the_targets():
    model = machine("svr", 60).fit(*labelled(60))
    with pytest.raises(UnavailableError, match="target_bound"):
        bound(model)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, "a"])
def test_refuses_wrong_probabilities(delta):
    with pytest.raises(InputError, match="delta"):
        bound(machine("svc", 60).fit(*labelled(60)), delta)


def test_refuses_what_is_not_a_fitted_machine():
    for model in (mc.SVC(), mc.estimators.OneClassSVM().fit(np.zeros((3, 1))), 3):
        with pytest.raises(InputError, match="bound takes fitted machines"):
            bound(model)
