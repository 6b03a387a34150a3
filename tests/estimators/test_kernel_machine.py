"""Kernel machines with any convex loss: scikit-learn's contract, and the machines of one loss."""

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_wine
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import SVC, SVR, KernelLogisticRegression, KernelMachine
from mercer.methods import EpsilonInsensitiveLoss, ZeroOneLoss


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        KernelMachine(),
        KernelMachine(loss="absolute"),
        KernelMachine(loss="squared_margin"),
        KernelMachine(loss="hinge", fit_intercept=False),
        KernelMachine(mc.Laplace(1.0), loss="logistic"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    ("loss", "machine"),
    [
        ("hinge", SVC(tol=1e-9)),
        ("logistic", KernelLogisticRegression(tol=1e-9)),
        ("absolute", SVR(epsilon=0.0, tol=1e-9)),
        ("epsilon_insensitive", SVR(tol=1e-9)),
        (EpsilonInsensitiveLoss(0.4), SVR(epsilon=0.4, tol=1e-9)),
    ],
    ids=repr,
)
def test_each_loss_is_its_machine(loss, machine):
    X, y = wine()
    ours = KernelMachine(loss=loss, tol=1e-9).fit(X, y)
    machine.fit(X, y)
    assert_array_equal(ours.predict(X), machine.predict(X))
    assert ours.score(X, y) == machine.score(X, y)
    assert is_classifier(ours) == is_classifier(machine)
    assert is_regressor(ours) == is_regressor(machine)


def test_squares_are_kernel_ridge_regression():
    X, y = wine()
    k, C = mc.Gaussian(3.0), 2.0
    ours = KernelMachine(k, C=C, fit_intercept=False).fit(X[::2], y[::2])
    theirs = KernelRidge(alpha=0.5 / C, kernel="precomputed").fit(k(X[::2]), y[::2])
    assert_allclose(ours.predict(X), theirs.predict(k(X, X[::2])), atol=1e-8)
    assert ours.n_iter_ == 1


def test_squares_of_margins_are_squares_of_labels():
    X, y = wine()
    X, y = X[y < 2], y[y < 2]
    labels = KernelMachine(loss="squared_margin", tol=1e-10).fit(X, y)
    targets = KernelMachine(loss="square", tol=1e-10).fit(X, 2.0 * y - 1.0)
    assert_allclose(labels.decision_function(X), targets.predict(X), atol=1e-7)


def test_only_classifiers_have_a_decision_function():
    assert hasattr(KernelMachine(loss="hinge"), "decision_function")
    assert not hasattr(KernelMachine(loss="square"), "decision_function")


def test_the_loss_is_saved_with_the_machine(tmp_path):
    X, y = wine()
    model = KernelMachine(loss=EpsilonInsensitiveLoss(0.2)).fit(X, y)
    mc.save(model, tmp_path / "model.mercer")
    again = mc.load(tmp_path / "model.mercer")
    assert again.loss == model.loss
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("loss", "match"), [("huber", "loss"), (ZeroOneLoss(), "must be convex"), (3.0, "loss")]
)
def test_other_losses_are_refused(loss, match):
    X, y = wine()
    with pytest.raises(mc.InputError, match=match):
        KernelMachine(loss=loss).fit(X, y)
