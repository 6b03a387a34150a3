"""Scores of models against closed forms and differences; refusals; the moment condition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import mercer as mc
from mercer.exceptions import InputError
from mercer.methods import Density, moment_condition
from mercer.methods.hypothesis_tests._score import _CLOSED, _differences, score_at, tail_of

SHAPES = {"beta": (2.5, 3.0), "chi2": (7.0,), "gamma": (5.0,), "lognorm": (0.7,), "t": (4.0,)}
SHAPES["weibull_min"] = (2.5,)


@pytest.mark.parametrize("name", sorted(_CLOSED))
def test_closed_forms_are_slopes_of_logpdf(name):
    law = getattr(stats, name)(*SHAPES.get(name, ()), loc=1.5, scale=2.0)
    x = law.ppf(np.linspace(0.01, 0.99, 50))
    by_differences = _differences(law, x, np.array(law.support()))
    found = score_at(law, x[:, None])[:, 0]
    assert_allclose(found, by_differences, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("law", "score"),
    [
        (stats.skewnorm(0.0, loc=1.0, scale=3.0), lambda x: -(x - 1.0) / 9.0),
        (stats.genlogistic(1.0), lambda x: -np.tanh(x / 2)),
        (stats.invgamma(4.0), lambda x: -5.0 / x + 1.0 / x**2),
        (stats.Normal(mu=1.0, sigma=2.0), lambda x: -(x - 1.0) / 4.0),
    ],
)
def test_other_distributions_by_differences(law, score):
    x = np.r_[0.05, 0.3, 1.0, 4.0, 30.0]
    assert_allclose(score_at(law, x[:, None])[:, 0], score(x), rtol=1e-8, atol=1e-9)


def test_multivariate_distributions():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    cov, mean, X = A @ A.T + np.eye(3), rng.normal(size=3), rng.normal(size=(6, 3))
    for law in (stats.multivariate_normal(mean, cov), stats.multivariate_t(mean, cov, 5.0)):
        found = score_at(law, X)
        for c in range(3):
            h = 1e-5 * np.eye(3)[c]
            slope = (law.logpdf(X + h) - law.logpdf(X - h)) / 2e-5
            assert_allclose(found[:, c], slope, rtol=1e-7, atol=1e-8)
    flat = stats.multivariate_normal(np.zeros(2), np.ones((2, 2)), allow_singular=True)
    with pytest.raises(InputError, match="singular"):
        score_at(flat, X[:, :2])


def test_a_list_is_a_product_of_distributions():
    X = np.random.default_rng(0).normal(size=(5, 2))
    S = score_at([stats.norm(1.0, 2.0), stats.logistic()], X)
    assert_allclose(S, np.c_[(1.0 - X[:, 0]) / 4.0, -np.tanh(X[:, 1] / 2)])
    with pytest.raises(InputError, match="3 distributions for 2 columns"):
        score_at([stats.norm()] * 3, X)
    with pytest.raises(InputError, match="one per column"):
        score_at(stats.norm(), X)


def test_densities_and_elements_far_out_where_they_underflow():
    f = mc.mean_embedding(mc.Gaussian(0.5), [[0.0, 0.0], [1.0, 2.0]])
    far = np.array([[100.0, 0.0], [-300.0, 50.0]])
    nearest = np.array([[1.0, 2.0], [0.0, 0.0]])
    assert f(far).max() == 0.0
    for model in (f, 7.0 * f, Density(f)):
        assert_allclose(score_at(model, far), (nearest - far) / 0.25, rtol=1e-12)
    near = np.array([[0.3, 0.2]])
    assert_allclose(score_at(f, near), f.gradient(near) / f(near)[:, None])
    negative = mc.Element(mc.Gaussian(1.0), [[0.0]], [-1.0])
    with pytest.raises(InputError, match="density is zero there"):
        score_at(negative, [[0.0]])
    with pytest.raises(InputError, match="batch"):
        score_at(mc.feature(mc.Gaussian(1.0), [[0.0]]), [[0.0]])


@pytest.mark.parametrize(
    "law",
    [stats.uniform(), stats.expon(), stats.gamma(1.0), stats.gamma(0.5), stats.beta(1.0, 3.0),
     stats.beta(3.0, 0.5), stats.halfnorm(), stats.truncnorm(-1.0, 2.0), stats.weibull_min(1.0)],
    ids=lambda law: law.dist.name,
)  # fmt: skip
def test_densities_that_do_not_vanish_at_an_end_are_refused(law):
    with pytest.raises(InputError, match="does not vanish at the end"):
        score_at(law, [[0.5]])


def test_columns_rows_and_types():
    assert_allclose(score_at(lambda X: -X[:, 0], [[1.0], [2.0]]), [[-1.0], [-2.0]])
    assert score_at(lambda X: -X, np.ones((2, 2), dtype=np.float32)).dtype == np.float64
    with pytest.raises(InputError, match=r"shape \(2, 2\), got \(2,\)"):
        score_at(lambda X: -X[:, 0], np.ones((2, 2)))
    with pytest.raises(InputError, match="first is row 1"):
        score_at(lambda X: 1.0 / X, [[1.0], [0.0]])
    with pytest.raises(InputError, match="first is row 0"):
        score_at(stats.gamma(5.0), [[-1.0], [2.0]])
    with pytest.raises(InputError, match="score must be a function"):
        score_at(3.0, [[1.0]])
    with pytest.raises(InputError, match="not known"):
        score_at(stats.dirichlet([1.0, 2.0]), [[0.5, 0.5]])


@pytest.mark.parametrize("n", [60, 500, 5000])
def test_moment_condition(n):
    rngs = [np.random.default_rng(i) for i in range(100)]
    fails = {
        name: np.mean([moment_condition(draw(rng), score).fails for rng in rngs])
        for name, draw, score in [
            ("cauchy", lambda r: r.standard_cauchy((n, 1)), stats.norm()),
            ("normal", lambda r: r.normal(size=(n, 1)), stats.norm()),
            ("t", lambda r: r.standard_t(5, size=(n, 3)), lambda X: -X),
            ("gamma", lambda r: r.gamma(5.0, size=(n, 1)), stats.gamma(5.0)),
            ("bounded", lambda r: r.standard_cauchy((n, 1)), stats.t(3.0)),
        ]
    }  # fmt: skip
    assert fails["cauchy"] > (0.4 if n == 60 else 0.8)
    assert max(fails[name] for name in ("normal", "t", "gamma", "bounded")) <= 0.01


@pytest.mark.parametrize("n", [11, 15, 20, 30, 40])
def test_few_normal_rows_do_not_look_heavy_tailed(n):
    fails = [tail_of(np.random.default_rng(r).normal(size=(n, 1))).fails for r in range(300)]
    assert np.mean(fails) <= 0.02


def test_moment_condition_of_constant_and_few_scores():
    assert not moment_condition([[1.0], [2.0]], lambda X: -X).fails
    for constant in (0.0, 2.0, 1e200):
        found = moment_condition(np.ones((50, 1)), lambda X, c=constant: c + 0 * X)
        assert not found.fails
        assert found.tail_index == np.inf
