"""Regularised fits with a general loss: I4 of docs/spec.md."""

import cvxpy as cp
import numpy as np
import pytest

import mercer as mc
from mercer.estimators import KernelMachine
from mercer.methods import EpsilonInsensitiveLoss

LOSSES = ["square", "absolute", EpsilonInsensitiveLoss(0.3), "squared_margin", "hinge", "logistic"]
PENALTY, N = 0.02, 40


def losses_of(loss, y, t):
    """The loss in the language of the conic solver."""
    return {
        "square": lambda: cp.square(y - t),
        "absolute": lambda: cp.abs(y - t),
        "squared_margin": lambda: cp.square(1.0 - cp.multiply(y, t)),
        "hinge": lambda: cp.pos(1.0 - cp.multiply(y, t)),
        "logistic": lambda: cp.logistic(-cp.multiply(y, t)),
    }.get(loss, lambda: cp.pos(cp.abs(y - t) - 0.3))()


def data(loss, rng):
    X = rng.normal(size=(N, 2))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=N) > 0.2, 1.0, -1.0)
    is_margin = loss in ("squared_margin", "hinge", "logistic")
    return X, labels if is_margin else np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=N)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Linear()], ids=repr)
def test_I4_fits_solve_the_finite_dimensional_problem(loss, kernel, rng):
    """min (1/n) sum_i l(y_i, (K a)_i) + (penalty / 2) a'Ka, by a conic solver; C = 1 / (n penalty).

    The linear kernel has a singular K: coefficients are not unique, objective and values are.
    """
    X, y = data(loss, rng)
    C = 1.0 / (N * PENALTY)
    model = KernelMachine(kernel, loss=loss, C=C, fit_intercept=False, tol=1e-9).fit(X, y)
    values, vectors = np.linalg.eigh(kernel(X))
    w = cp.Variable(N)
    t = (vectors * np.sqrt(np.maximum(values, 0.0))) @ w
    objective = cp.sum(losses_of(loss, y, t)) / N + 0.5 * PENALTY * cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL")
    assert model.certificate_.primal * PENALTY == pytest.approx(problem.value, rel=1e-6)
    assert model.certificate_.relative_gap <= 1e-9
    np.testing.assert_allclose(model.element_(X), t.value, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_I4_no_other_function_of_the_space_does_better(loss, rng):
    """Functions with parts outside the span of the rows, which the representer theorem excludes."""
    X, y = data(loss, rng)
    k, C = mc.Gaussian(1.0), 1.0 / (N * PENALTY)
    model = KernelMachine(k, loss=loss, C=C, fit_intercept=False, tol=1e-9).fit(X, y)
    value = model.loss_
    for size in (1e-3, 0.1, 1.0):
        other = mc.Element(k, rng.normal(size=(5, 2)), size * rng.normal(size=5))
        f = model.element_ + other
        objective = 0.5 * f.norm() ** 2 + C * value(y, f(X)).sum()
        assert objective >= model.certificate_.dual * (1.0 - 1e-12)
