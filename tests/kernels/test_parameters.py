"""Parameters: conversions between conventions, changes, equality, and errors that say the cure."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from scipy.sparse import csr_array

import mercer as mc

EXACT = {"rtol": 1e-15, "atol": 0.0}


# --- conversions (the table of conventions) -------------------------------------------------------


@pytest.mark.parametrize("s", [1e-3, 0.7, 1.0, 123.4])
def test_gaussian_conventions(s):
    """exp(-d^2/2s^2), profile e^{-r/2} of r = d^2/h^2, exp(-d^2/g^2), exp(-a d^2)."""
    d = s * np.array([0.0, 0.3, 1.0, 2.5])
    truth = np.exp(-(d**2) / (2 * s**2))
    K = [
        mc.Gaussian(s),
        mc.Gaussian(length_scale=s),  # h = s
        mc.Gaussian.from_width(math.sqrt(2) * s),
        mc.Gaussian.from_gamma(1 / (2 * s**2)),
    ]
    for k in K:
        np.testing.assert_allclose(k([[0.0]], d[:, None])[0], truth, rtol=5e-15)
        np.testing.assert_allclose(k.length_scale, s, **EXACT)
    np.testing.assert_allclose(mc.Gaussian(s).gamma, 1 / (2 * s**2), **EXACT)


@pytest.mark.parametrize("g", [1e-6, 0.5, 7.0])
def test_gamma_goes_there_and_back(g):
    np.testing.assert_allclose(mc.Gaussian.from_gamma(g).gamma, g, rtol=4e-16)


@pytest.mark.parametrize(("rate", "bandwidth"), [(1.0, 1.0), (0.175, 0.602), (3.0, 0.01)])
def test_laplace_conventions(rate, bandwidth):
    """exp(-d/s), exp(-lam d/h), exp(-a d); only lam/h matters."""
    tau = rate / bandwidth
    for k in (
        mc.Laplace(1 / tau),
        mc.Laplace.from_gamma(tau),
        mc.Laplace.from_rate(rate, bandwidth),
        mc.Laplace.from_rate(10 * rate, 10 * bandwidth),
    ):
        np.testing.assert_allclose(k.length_scale, 1 / tau, **EXACT)


def test_polynomial_conventions():
    """(<x,y>/s + c)^p and (gamma <x,y> + coef0)^degree."""
    assert mc.Polynomial.from_gamma(3, 0.25, 2.0) == mc.Polynomial(3, scale=4.0, offset=2.0)
    x, y = [[1.0, 2.0]], [[0.5, -3.0]]
    assert mc.Polynomial(3, scale=4.0, offset=2.0)(x, y) == (-5.5 / 4 + 2.0) ** 3


def test_exponential_convention():
    assert mc.Exponential.from_gamma(0.25) == mc.Exponential(4.0)


def test_epanechnikov_window_defaults_to_its_height():
    assert mc.Epanechnikov(2.0).rho is None
    u = [[0.0], [1.0], [1.4], [1.5]]
    K = mc.Epanechnikov(2.0)([[0.0]], u)
    assert np.array_equal(K, mc.Epanechnikov(2.0, 2.0)([[0.0]], u))


def test_normalised_exponential_is_the_gaussian(rng):
    X = rng.normal(size=(6, 3))
    k = mc.kernels.Normalised(mc.Exponential(2.25))
    np.testing.assert_allclose(k(X), mc.Gaussian(1.5)(X), rtol=1e-13)
    np.testing.assert_allclose(k.gradient(X), mc.Gaussian(1.5).gradient(X), atol=1e-14)


# --- reading and changing -------------------------------------------------------------------------


def test_parameters_by_name():
    k = 2.0 * mc.Gaussian(3.0) + mc.Polynomial(2).transform(mc.Columns([0]))
    params = k.get_params()
    assert params["left__left__value"] == 2.0
    assert params["left__right__length_scale"] == 3.0
    assert params["right__kernel__degree"] == 2
    assert params["right__point_map"] == mc.Columns([0])
    assert set(k.get_params(deep=False)) == {"left", "right"}


def test_replace_nested():
    k = mc.Gaussian(1.0) * mc.Linear() + mc.kernels.Normalised(mc.Polynomial(2))
    changed = k.replace(left__left__length_scale=5.0, right__kernel__degree=4)
    assert changed == mc.Gaussian(5.0) * mc.Linear() + mc.kernels.Normalised(mc.Polynomial(4))
    assert k == mc.Gaussian(1.0) * mc.Linear() + mc.kernels.Normalised(mc.Polynomial(2))
    assert k.replace(right=mc.Linear(), left__left=mc.Laplace(2.0)) == (
        mc.Laplace(2.0) * mc.Linear() + mc.Linear()
    )


def test_replace_a_kernel_and_its_parameter_at_once():
    k = mc.Gaussian(1.0) + mc.Linear()
    changed = k.replace(left=mc.Laplace(1.0), left__length_scale=3.0)
    assert changed == mc.Laplace(3.0) + mc.Linear()


def test_replace_checks_again():
    with pytest.raises(mc.InputError, match=r"length_scale must be > 0, got -1\.0"):
        mc.Gaussian(1.0).replace(length_scale=-1.0)
    with pytest.raises(mc.InputError, match=r"has no parameter 'sigma'; it has length_scale"):
        mc.Gaussian(1.0).replace(sigma=1.0)
    with pytest.raises(mc.InputError, match=r"has no parameter 'sigma'"):
        (mc.Gaussian(1.0) + mc.Linear()).replace(left__sigma=1.0)


def test_replace_inside_a_parameter_that_is_no_kernel_says_so():
    with pytest.raises(mc.InputError, match=r"length_scale__x"):
        mc.Gaussian(1.0).replace(length_scale__x=1.0)


def test_numbers_are_kept_as_python_numbers():
    k = mc.Gaussian(np.float32(2.0))
    assert type(k.length_scale) is float
    assert k == mc.Gaussian(2)
    assert type(mc.Polynomial(np.int64(3)).degree) is int
    assert repr(mc.Gaussian(np.float64(2.0))) == "Gaussian(length_scale=2.0)"


def test_equality_is_of_kind_and_parameters():
    assert mc.Gaussian(1.0) != mc.Laplace(1.0)
    assert mc.Gaussian(1.0) != mc.Gaussian(2.0)
    assert mc.Gaussian(1.0) + mc.Linear() != mc.Linear() + mc.Gaussian(1.0)  # values, not functions
    assert mc.Gaussian(1.0) != "Gaussian(1.0)"
    kernels = {
        mc.Gaussian(1.0),
        mc.Gaussian(1.0),
        mc.Laplace(1.0),
        2.0 * mc.Linear(),
        2 * mc.Linear(),
    }
    assert len(kernels) == 3


def test_maps_are_values():
    for a, b, other in [
        (mc.Scales([1.0, 2.0]), mc.Scales(np.array([1, 2])), mc.Scales([1.0, 3.0])),
        (mc.Columns([0, 2]), mc.Columns(np.array([0, 2])), mc.Columns([2, 0])),
        (
            mc.kernels.Matrix([[1.0, 2.0]]),
            mc.kernels.Matrix(np.array([[1, 2]])),
            mc.kernels.Matrix([[1.0], [2.0]]),
        ),
    ]:
        assert a == b
        assert hash(a) == hash(b)
        assert a != other
        for again in (
            copy.copy(a),
            copy.deepcopy(a),
            pickle.loads(pickle.dumps(a)),
            eval(repr(a), vars(mc.kernels)),
        ):
            assert again == a
            assert not again.array.flags.writeable
        with pytest.raises(AttributeError, match=r"is immutable"):
            a.array = other.array
    assert mc.Scales([1.0]) != mc.kernels.Matrix([[1.0]])


def test_equal_maps_have_equal_hashes():
    """0.0 == -0.0, so the maps are equal, and equal things must hash alike."""
    a, b = mc.kernels.Matrix([[0.0, 1.0]]), mc.kernels.Matrix([[-0.0, 1.0]])
    assert a != b or hash(a) == hash(b)


def test_maps_do_not_follow_the_array_they_were_made_of():
    lengths, A = np.array([1.0, 2.0]), np.eye(2)
    scales, matrix = mc.Scales(lengths), mc.kernels.Matrix(A)
    lengths[0] = A[0, 0] = 9.0
    assert scales.array[0] == 1.0
    assert matrix.array[0, 0] == 1.0


def test_kernels_cannot_be_changed():
    k = mc.Gaussian(1.0)
    with pytest.raises(AttributeError):
        k.length_scale = 2.0
    with pytest.raises(AttributeError):
        del k.length_scale


@pytest.mark.parametrize(
    "k",
    [
        mc.Gaussian(1.0) + (mc.Linear() + 1.0),
        (mc.Gaussian(1.0) + mc.Linear()) + 1.0,
        mc.Gaussian(1.0) * (mc.Linear() * 2.0),
        2.0 * (3.0 * mc.Linear()),
        (2.0 * mc.kernels.Constant(3.0)) * mc.Linear(),
        mc.kernels.Constant(2.0) * mc.kernels.Constant(3.0),
        (mc.kernels.Constant(2.0) + mc.kernels.Constant(3.0)) * mc.Linear(),
        (mc.Gaussian(1.0) * mc.Linear()).transform(mc.Scales([1.0])).transform(mc.Columns([0])),
        mc.kernels.Constant(2.0).transform(mc.Scales([1.0])),
        mc.kernels.Normalised(2.0 * mc.Linear() + mc.Gaussian(0.1)),
        mc.Gaussian(1e-70) + mc.Gaussian(0.1 + 0.2),
    ],
    ids=repr,
)
def test_text_reads_back(k):
    again = eval(repr(k), vars(mc.kernels))
    assert again == k
    assert repr(again) == repr(k)


# --- errors name the parameter and the cure -------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mc.Gaussian(0.0), "length_scale must be > 0, got 0.0"),
        (lambda: mc.Gaussian(-1.0), "length_scale must be > 0, got -1.0"),
        (lambda: mc.Gaussian(float("nan")), "length_scale must be finite, got nan"),
        (lambda: mc.Gaussian(float("inf")), "length_scale must be finite, got inf"),
        (lambda: mc.Gaussian("1"), "length_scale must be a real number, got '1'"),
        (lambda: mc.Gaussian(None), "length_scale must be a real number, got None"),
        (lambda: mc.Gaussian(True), "length_scale must be a real number, got True"),
        (lambda: mc.Gaussian(1j), "length_scale must be a real number, got 1j"),
        (lambda: mc.Gaussian([1.0, 2.0]), "kernel.transform(Scales(lengths))"),
        (lambda: mc.Laplace([1.0, 2.0]), "kernel.transform(Scales(lengths))"),
        (lambda: mc.Gaussian(np.eye(2)), "length_scale must be a single number, got shape (2, 2)"),
        (lambda: mc.Gaussian.from_gamma(-1.0), "gamma must be > 0, got -1.0"),
        (lambda: mc.Gaussian.from_width(0), "width must be > 0, got 0.0"),
        (lambda: mc.Laplace.from_rate(1.0, 0.0), "bandwidth must be > 0, got 0.0"),
        (lambda: mc.Laplace.from_rate(0.0, 1.0), "rate must be > 0, got 0.0"),
        (lambda: mc.Matern(3.5), "nu must be 0.5, 1.5 or 2.5, got 3.5"),
        (lambda: mc.Matern("1.5"), "nu must be 0.5, 1.5 or 2.5, got '1.5'"),
        (lambda: mc.Matern(np.array([0.5, 1.5])), "nu must be"),
        (lambda: mc.Matern(1.5, -2.0), "length_scale must be > 0, got -2.0"),
        (lambda: mc.RationalQuadratic(0.0), "alpha must be > 0, got 0.0"),
        (lambda: mc.InverseMultiquadric(0.0), "c must be > 0, got 0.0"),
        (lambda: mc.InverseMultiquadric(1.0, -1.0), "p must be > 0, got -1.0"),
        (lambda: mc.Epanechnikov(0.0), "c must be > 0, got 0.0"),
        (lambda: mc.Epanechnikov(1.0, 0.0), "rho must be > 0, got 0.0"),
        (lambda: mc.NegativeDistance(0.0), "p must be > 0, got 0.0"),
        (lambda: mc.NegativeDistance(1.0, -1.0), "c must be >= 0, got -1.0"),
        (lambda: mc.Polynomial(0), "degree must be an integer >= 1, got 0"),
        (lambda: mc.Polynomial(2.0), "degree must be an integer >= 1, got 2.0"),
        (lambda: mc.Polynomial(True), "degree must be an integer >= 1, got True"),
        (lambda: mc.Polynomial(2, scale=0.0), "scale must be > 0, got 0.0"),
        (lambda: mc.Polynomial(2, offset=-0.5), "offset must be >= 0, got -0.5"),
        (lambda: mc.Exponential(0.0), "scale must be > 0, got 0.0"),
        (lambda: mc.kernels.Constant(0.0), "value must be > 0, got 0.0"),
        (lambda: mc.Scales([]), "lengths must all be > 0"),
        (lambda: mc.Scales([1.0, 0.0]), "lengths must all be > 0, got [1.0, 0.0]"),
        (lambda: mc.Scales([[1.0]]), "lengths must be one-dimensional, got shape (1, 1)"),
        (lambda: mc.Scales([np.nan]), "lengths contains NaN"),
        (lambda: mc.Columns([0.5]), "indices must be a list of column numbers"),
        (lambda: mc.Columns([]), "indices must be a list of column numbers"),
        (lambda: mc.Columns([0, 0]), "indices must be >= 0 and distinct, got [0, 0]"),
        (lambda: mc.Columns([-1]), "indices must be >= 0 and distinct, got [-1]"),
        (lambda: mc.kernels.Matrix([1.0]), "A must have shape"),
        (lambda: mc.kernels.Matrix([[np.inf]]), "A contains infinity"),
        (lambda: mc.Linear() - mc.Linear(), "subtract elements instead"),
        (lambda: 1.0 - mc.Linear(), "subtract elements instead"),
        (lambda: -mc.Linear(), "negate elements instead"),
        (lambda: -2.0 * mc.Linear(), "needs a number > 0, got -2.0"),
        (lambda: mc.Linear() + 0, "needs a number > 0, got 0.0"),
        (lambda: mc.Linear() * float("nan"), "must be finite, got nan"),
        (
            lambda: mc.Linear().transform([1.0]),
            "transform takes a map of points (Scales, Columns, Matrix, Features), got list",
        ),
        (lambda: mc.kernels.FromFunction("k"), "function must be a function, got str"),
        (lambda: mc.Precomputed([[1.0, 2.0]]), "K must be square, got shape (1, 2)"),
        (lambda: mc.Precomputed([[1.0, 2.0], [0.0, 1.0]]), "use (K + K') / 2"),
        (lambda: mc.Precomputed([[np.nan]]), "K contains NaN"),
        (lambda: mc.Precomputed(csr_array(np.eye(2))), "K must be dense; use K.toarray()"),
        (lambda: mc.kernels.Matrix(csr_array(np.eye(2))), "A must be dense; use A.toarray()"),
        (
            lambda: mc.Precomputed([[1.0]]) + mc.Gaussian(1.0),
            "cannot be combined: their points differ",
        ),
        (
            lambda: mc.Precomputed([[1.0]]).transform(mc.Scales([1.0])),
            "points that are not vectors: nothing to map",
        ),
    ],
)
def test_errors_name_the_parameter_and_the_cure(make, message):
    with pytest.raises(mc.InputError, match=re.escape(message)):
        make()


@pytest.mark.parametrize("other", ["text", None, [1.0], np.ones(2), object()])
def test_kernels_do_not_combine_with_anything(other):
    for combine in (lambda: mc.Linear() + other, lambda: other * mc.Linear()):
        with pytest.raises((TypeError, mc.InputError)):
            combine()


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (mc.Gaussian(1.0), [1.0, 2.0], "use X.reshape(-1, 1) for one feature"),
        (mc.Gaussian(1.0), [[1.0], [np.nan]], "X contains NaN (1 non-finite entries, the first at"),
        (mc.Gaussian(1.0), np.empty((0, 2)), "X has no rows"),
        (mc.Gaussian(1.0), np.empty((2, 0)), "X has no features"),
        (mc.Gaussian(1.0), [[1j]], "Complex data not supported"),
        (mc.Gaussian(1.0), [["a"]], "X must hold numbers"),
        (mc.Gaussian(1.0), [[1.0], [1.0, 2.0]], "X must be a rectangular array of numbers"),
        (mc.Gaussian(1.0), [[2**60 + 1]], "integers above 2**53"),
        (mc.Gaussian(1.0), np.ma.masked_array([[1.0]], mask=[[True]]), "masked array"),
        (mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0])), [[1.0]], "Scales needs 2"),
        (mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 2.0]])), [[1.0]], "Matrix needs 2"),
        (mc.Gaussian(1.0).transform(mc.Columns([3])), [[1.0]], "looks at column 3"),
        (mc.kernels.Normalised(mc.Linear()), [[1.0], [0.0]], "k(x, x) = 0.0 (row 1)"),
        (mc.Precomputed([[1.0]]), [1], "X must hold row numbers in 0..0, got 1..1"),
        (mc.Precomputed([[1.0]]), [-1], "X must hold row numbers in 0..0, got -1..-1"),
        (mc.Precomputed([[1.0]]), [[0.5]], "X must be a list of row numbers"),
        (mc.Precomputed([[1.0]]), [], "X must be a list of row numbers"),
    ],
)
def test_points_outside_the_domain(kernel, X, message):
    for call in (kernel, kernel.diag):
        with pytest.raises(mc.InputError, match=re.escape(message)):
            call(X)


def test_different_numbers_of_columns():
    with pytest.raises(mc.InputError, match=r"X has 1 features, but Y has 2"):
        mc.Gaussian(1.0)([[1.0]], [[1.0, 2.0]])


def test_a_matrix_refuses_sparse_points_with_the_cure():
    k = mc.Linear().transform(mc.kernels.Matrix([[1.0, 1.0]]))
    with pytest.raises(mc.InputError, match=r"X @ A\.T"):
        k(csr_array(np.eye(2)))


def test_a_constant_behind_a_map_checks_columns_like_any_other():
    k = mc.kernels.Constant(1.0).transform(mc.Scales([1.0, 2.0]))
    with pytest.raises(mc.InputError, match=r"needs 2"):
        k([[1.0]])
