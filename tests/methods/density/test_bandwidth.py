"""Length scales for densities: formulas, robustness, likelihood of rows left out, weights."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KernelDensity as Peer

import mercer as mc
from mercer.methods.density._bandwidth import (
    column_spreads,
    density_scale,
    kernel_deviation,
    leave_one_out_likelihood,
)
from mercer.methods.density._density import Density, kernel_density

KERNELS = [
    mc.Gaussian(2.0),
    mc.Laplace(0.5),
    mc.Epanechnikov(1.0),
    mc.kernels.Uniform(3.0),
    mc.Gaussian(1.0) + mc.Matern(1.5, 2.0),
    mc.InverseMultiquadric(1.0, 2.5),
    mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 0.3], [0.0, 0.5]])),
]


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_three_reference_rules(d, rng):
    X = rng.normal(size=(400, d))
    X *= np.linspace(1.0, 2.0, d)
    quartiles = np.quantile(X, [0.25, 0.75], axis=0, method="inverted_cdf")
    spread = np.minimum(X.std(axis=0, ddof=1), (quartiles[1] - quartiles[0]) / 1.349)
    s = math.sqrt(np.mean(spread**2))
    modes = s * (4 / (d + 4)) ** (1 / (d + 6)) * 400 ** (-1 / (d + 6))
    assert density_scale(X, rule="modes") == pytest.approx(modes, rel=1e-12)
    silverman = s * (4 / (d + 2)) ** (1 / (d + 4)) * 400 ** (-1 / (d + 4))
    assert density_scale(X) == pytest.approx(silverman, rel=1e-12)
    assert density_scale(X, rule="scott") == pytest.approx(s * 400 ** (-1 / (d + 4)), rel=1e-12)
    assert density_scale(X, rule="modes") > density_scale(X)  # the gradient takes a wider kernel


def test_the_modes_rule_is_the_best_for_the_gradient_of_a_normal_density():
    """The mean squared error of the library's f' for draws of N(0, 1), by the rule and off it."""
    rng = np.random.default_rng(0)
    t = np.linspace(-4.0, 4.0, 161)[:, None]
    truth = (-t * np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi))[:, 0]
    factors = np.array([0.4, 0.7, 1.0, 1.4, 2.0])
    errors = np.zeros(5)
    by_silverman = 0.0
    for _ in range(6):
        X = rng.normal(size=(2000, 1))
        h = density_scale(X, rule="modes")
        for i, factor in enumerate(factors):
            f = kernel_density(mc.Gaussian(factor * h), X)
            errors[i] += np.mean((f.gradient(t)[:, 0] - truth) ** 2)
        f = kernel_density(mc.Gaussian(density_scale(X, rule="silverman")), X)
        by_silverman += np.mean((f.gradient(t)[:, 0] - truth) ** 2)
    assert np.argmin(errors) == 2
    assert errors[2] < 0.8 * by_silverman


@pytest.mark.parametrize("rule", ["modes", "silverman", "scott", "likelihood"])
@pytest.mark.parametrize("scale", [1e-160, 1e-300, 1e-40, 1e40, 1e140])
def test_any_scale_of_the_data_gives_a_scaled_bandwidth(rule, scale, rng):
    """Squares of such numbers underflow or overflow."""
    X = rng.normal(size=(60, 2))
    if rule == "likelihood" and not 1e-70 < scale < 1e70:
        return  # kernels of that length are refused
    assert density_scale(X * scale, rule=rule) == pytest.approx(
        scale * density_scale(X, rule=rule), rel=1e-6, abs=0
    )


def test_a_few_outliers_do_not_widen_the_rules(rng):
    X = rng.normal(size=(500, 2))
    dirty = np.concatenate([X, 1e4 * rng.normal(size=(5, 2))])
    assert density_scale(dirty) == pytest.approx(density_scale(X), rel=0.1)
    assert density_scale(X + 1e8) == pytest.approx(density_scale(X), rel=1e-6)
    assert density_scale(5.0 * X) == pytest.approx(5.0 * density_scale(X), rel=1e-12)


def test_coinciding_quartiles_fall_back_on_the_deviation():
    X = np.array([[0.0]] * 18 + [[1.0], [2.0]])
    w = np.ones(20)
    np.testing.assert_allclose(column_spreads(X, w), X.std(axis=0, ddof=1))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_other_kernels_get_the_deviation_of_a_gaussian(kernel, rng):
    drawn = Density(mc.mean_embedding(kernel, np.zeros((1, 2)))).sample(200_000, 0)
    found = kernel_deviation(kernel, 2)
    assert found == pytest.approx(math.sqrt(np.mean(drawn**2)), rel=0.03)
    X = rng.normal(size=(100, 2))
    h = density_scale(X, kernel=kernel)
    length = getattr(kernel, "length_scale", 1.0)
    assert h * found / length == pytest.approx(density_scale(X), rel=1e-12)


def test_a_kernel_without_a_variance_is_refused_by_reference_rules_only(rng):
    X, heavy = rng.normal(size=(50, 2)), mc.InverseMultiquadric(1.0, 1.5)
    with pytest.raises(mc.InputError, match="no finite variance"):
        density_scale(X, kernel=heavy)
    assert density_scale(X, kernel=heavy, rule="likelihood") > 0


# --- likelihood -----------------------------------------------------------------------------------


def left_out(X, w, h):
    """By definition: each distinct row, given all rows that differ from it."""
    total, n = 0.0, sum(w)
    d = X.shape[1]
    for i, x in enumerate(X):
        others = [j for j in range(len(X)) if not np.array_equal(X[j], x)]
        mass = sum(w[j] for j in others)
        logs = [
            math.log(w[j]) - float(np.sum((x - X[j]) ** 2)) / (2 * h * h) for j in others if w[j]
        ]
        value = np.logaddexp.reduce(logs) - math.log(mass)
        total += w[i] * (value - 0.5 * d * math.log(2 * math.pi * h * h))
    return total / n


@pytest.mark.parametrize("n", [2, 5, 64, 65, 130])
def test_the_likelihood_of_rows_left_out_against_the_double_loop(n, rng):
    X, w = rng.normal(size=(n, 3)), rng.uniform(0.5, 2.0, n)
    model = partial(leave_one_out_likelihood, mc.Gaussian(1.0), X, w)
    for h in (1e-3, 0.3, 2.0, 1e3):  # at 1e-3 every kernel value underflows
        assert model(math.log(h)) == pytest.approx(left_out(X, w, h), rel=1e-10)


def test_the_likelihood_rule_is_scikit_learns_cross_validation(rng):
    X = rng.normal(size=(60, 2))
    h = density_scale(X, rule="likelihood")
    means = {
        g: cross_val_score(Peer(bandwidth=g, leaf_size=1000), X, cv=LeaveOneOut()).mean()
        for g in (0.97 * h, h, 1.03 * h)
    }
    assert max(means, key=means.get) == h
    assert means[h] == pytest.approx(
        leave_one_out_likelihood(mc.Gaussian(1.0), X, np.ones(60), math.log(h)), rel=1e-8
    )


@pytest.mark.parametrize("kernel", KERNELS[:6], ids=repr)
def test_no_length_scale_near_by_is_likelier(kernel, rng):
    X = rng.standard_t(5, size=(120, 2))
    model = partial(leave_one_out_likelihood, kernel, X, np.ones(120))
    factor = density_scale(X, kernel=kernel, rule="likelihood") / getattr(
        kernel, "length_scale", 1.0
    )
    best = model(math.log(factor))
    others = [model(math.log(factor) + t) for t in np.linspace(-0.7, 0.7, 29)]
    slack = 0.01 if isinstance(kernel, mc.kernels.Uniform) else 1e-9  # which is a step function
    assert best >= max(others) - slack


def test_ties_do_not_drive_the_length_scale_to_zero(rng):
    X = np.round(rng.normal(size=(200, 1)), 1)  # about 50 different values
    assert density_scale(X, rule="likelihood") > 0.05
    assert density_scale(np.repeat(X, 3, axis=0), rule="likelihood") == pytest.approx(
        density_scale(X, rule="likelihood", weights=np.full(200, 3)), rel=1e-6
    )


def test_many_dimensions_and_points_that_are_far_apart(rng):
    assert 0.5 < density_scale(rng.normal(size=(40, 300)), rule="likelihood") < 3.0
    apart = np.array([[0.0], [1e-6], [1.0], [1e6]])
    assert np.isfinite(density_scale(apart, rule="likelihood"))


# --- weights, errors ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["modes", "silverman", "scott", "likelihood"])
def test_a_weight_is_a_number_of_rows(rule, rng):
    X, w = rng.normal(size=(50, 2)), rng.integers(0, 4, 50)
    weighted = density_scale(X, rule=rule, weights=w)
    assert weighted == pytest.approx(density_scale(np.repeat(X, w, axis=0), rule=rule), rel=1e-6)


@pytest.mark.parametrize("rule", ["modes", "silverman", "scott", "likelihood"])
@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(1.0), mc.Epanechnikov(1.0), mc.Laplace(1.0)], ids=repr
)
def test_constant_columns_are_left_out(rule, kernel, rng):
    X = rng.normal(size=(60, 2))
    more = np.column_stack([np.full(60, 7.0), X, np.zeros(60)])
    expected = density_scale(X, rule=rule, kernel=kernel)
    assert density_scale(more, rule=rule, kernel=kernel) == pytest.approx(expected, rel=1e-6)
    scaled = mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0, 2.0, 1.0]))  # sees four columns
    assert density_scale(more, rule=rule, kernel=scaled) > 0.0


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12),
    st.sampled_from(["modes", "silverman", "scott", "likelihood"]),
)
def test_any_small_lattice_gives_a_scale_or_an_error_that_says_why(rows, rule):
    X = np.array(rows, dtype=float)
    if len(np.unique(X, axis=0)) == 1:
        with pytest.raises(mc.InputError, match="two different rows"):
            density_scale(X, rule=rule)
    else:
        assert 0.0 < density_scale(X, rule=rule) < 20.0


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[1.0]], {}, "two different rows"),
        ([[1.0], [1.0]], {"rule": "likelihood"}, "two different rows"),
        ([[1.0], [2.0]], {"rule": "best"}, "rule must be one of 'silverman'"),
        ([[1.0], [2.0]], {"weights": [0.5, 0.5]}, "numbers of rows"),
        ([[1.0], [2.0]], {"weights": [3.0, -1.0]}, "weights must be >= 0"),
        ([[1.0], [2.0]], {"weights": [3.0, 0.0]}, "two different rows"),
        ([[1.0], [2.0]], {"kernel": mc.Linear()}, "function of a distance"),
        ([[1.0], [np.nan]], {}, "NaN"),
        (csr_array(np.eye(3)), {}, "toarray"),
    ],
)
def test_bad_input_is_named(X, options, message):
    with pytest.raises(mc.InputError, match=message):
        density_scale(X, **options)


def test_float32_gives_the_scale_of_the_same_numbers_in_double(rng):
    X = rng.normal(size=(40, 2)).astype(np.float32)
    for rule in ("modes", "likelihood"):
        assert density_scale(X, rule=rule) == density_scale(X.astype(float), rule=rule)


@pytest.mark.parametrize("rule", ["modes", "silverman", "scott", "likelihood"])
def test_weights_without_a_row_are_refused_and_large_ones_are_not(rule, rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(mc.InputError, match="weights must not all be zero"):
        density_scale(X, rule=rule, weights=np.zeros(20))
    assert density_scale(X, rule=rule, weights=np.full(20, 1e300)) > 0.0


@pytest.mark.parametrize("wrong", [3, "gaussian", mc.Gaussian])
def test_wrong_kernels_are_named(wrong, rng):
    for rule in ("silverman", "likelihood"):
        with pytest.raises(mc.InputError, match="kernel must be"):
            density_scale(rng.normal(size=(5, 2)), rule=rule, kernel=wrong)


def test_kernels_that_are_negative_have_no_likelihood(rng):
    with pytest.raises(mc.InputError, match="must not be negative"):
        density_scale(rng.normal(size=(9, 2)), rule="likelihood", kernel=mc.NegativeDistance(1.5))
