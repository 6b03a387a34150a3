"""Pictures of fits: duality gaps, learning curves with bounds, first-order methods."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer as mc
from mercer.plot import plot_descent, plot_gap, plot_learning_curve
from mercer.theory.first_order import constant_steps, gradient_descent, subgradient_method


def rounds(model, X, y, count=4):
    model.set_params(max_iter=1, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mc.MercerWarning)
        return [model.fit(X, y).certificate_ for _ in range(count)]


def curves(axis):
    return {line.get_label(): line.get_xydata() for line in axis.lines}


def test_gaps_are_those_of_the_certificates():
    X, y = load_iris(return_X_y=True)
    two = y < 2
    found = {
        "logistic": rounds(mc.KernelLogisticRegression(C=10.0, tol=1e-9), X[two], y[two]),
        "svc": rounds(mc.SVC(C=10.0, tol=1e-9), X, y),  # three certificates, one for each pair
    }
    drawn = curves(plot_gap(found))
    assert isinstance(found["svc"][0], tuple)
    expected = {
        "logistic": [c.relative_gap for c in found["logistic"]],
        "svc": [max(c.relative_gap for c in some) for some in found["svc"]],
    }
    for name, gaps in expected.items():
        np.testing.assert_array_equal(drawn[name][:, 0], [1, 2, 3, 4])
        np.testing.assert_array_equal(drawn[name][:, 1], np.maximum(gaps, 1e-16))
    axis = plot_gap(found["logistic"])
    assert axis.get_legend() is None
    assert axis.get_yscale() == "log"


def test_a_gap_of_zero_is_drawn():
    zero = mc.KernelRidge(penalty=1.0).fit([[0.0], [1.0]], [0.0, 0.0]).certificate_
    assert zero.relative_gap == 0.0
    axis = plot_gap([zero])
    assert axis.lines[0].get_ydata()[0] == 1e-16
    axis.figure.canvas.draw()


def test_risks_with_their_range_and_bounds(rng):
    sizes = [50, 100, 400]
    X, y = rng.normal(size=(400, 1)), np.tile([0, 1], 200)
    bounds = [
        mc.theory.bound(mc.SVC(mc.Gaussian(1.0), C=0.1, fit_intercept=False).fit(X[:n], y[:n]))
        for n in sizes
    ]
    risks = rng.uniform(0.5, 1.0, (3, 20))
    axis = plot_learning_curve({"new rows": risks}, sizes, bounds=bounds)
    drawn = curves(axis)
    np.testing.assert_allclose(drawn["new rows"], np.c_[sizes, risks.mean(axis=1)])
    np.testing.assert_allclose(drawn["bound"], np.c_[sizes, [b.value for b in bounds]])
    np.testing.assert_array_equal(drawn["function 0"][:, 1], bounds[0].trivial)
    band = axis.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == np.percentile(risks, 5, axis=1).min()
    assert band[:, 1].max() == np.percentile(risks, 95, axis=1).max()
    assert axis.get_title() == "bounds hold with probability 0.95"
    plain = curves(plot_learning_curve([0.3, 0.2, 0.1], sizes, bounds=[0.9, 0.5, 0.2]))
    np.testing.assert_array_equal(plain["bound"][:, 1], [0.9, 0.5, 0.2])
    assert set(plain) == {"risk", "bound"}


def test_a_descent_and_its_bound():
    run = gradient_descent(
        lambda x: x @ x + 3.0, lambda x: 2.0 * x, [1.0, 2.0], 20,
        smoothness=4.0, minimiser=[0.0, 0.0],
    )  # fmt: skip
    drawn = curves(plot_descent(run, minimum=3.0))
    np.testing.assert_array_equal(drawn["f"][:, 1], run.values - 3.0)
    np.testing.assert_array_equal(drawn["bound"][:, 1], run.bound)
    assert set(drawn) == {"f", "bound"}


def test_values_of_a_subgradient_method_may_rise():
    steps = constant_steps(50, 10**0.5, 5**0.5)
    run = subgradient_method(
        lambda x: abs(x[0]) + 2 * abs(x[1]), lambda x: np.sign(x) * [1, 2], [3.0, 1.0], steps
    )
    drawn = curves(plot_descent(run))
    np.testing.assert_array_equal(drawn["best so far"][:, 1], run.best_values)
    assert "bound" not in drawn  # nothing is promised without the minimiser


RUN = gradient_descent(lambda x: x @ x, lambda x: 2.0 * x, [1.0], 5, smoothness=4.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_gap([]), "after each round"),
        (lambda: plot_gap([1.0, 0.1]), "after each round"),
        (lambda: plot_gap(3), "after each round"),
        (lambda: plot_learning_curve([0.1], [10, 20]), "one row for each of 2 sizes"),
        (lambda: plot_learning_curve([0.1, 0.0], [10, 20]), "must be > 0"),
        (lambda: plot_learning_curve([0.1, 0.2], [0, 20]), "sizes must be > 0"),
        (lambda: plot_learning_curve([0.1, 0.2], [10, 20], bounds=[1.0]), "2 entries"),
        (lambda: plot_learning_curve([0.1, 0.2], [10, 20], bounds=1.0), "bounds must be"),
        (lambda: plot_descent(3.0), "run must be a Run"),
        (lambda: plot_descent(RUN, minimum=1.0), "minimum is 1.0, but f is"),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()


def test_no_certificates_at_all():
    with pytest.raises(mc.InputError, match="at least one"):
        plot_gap({})
