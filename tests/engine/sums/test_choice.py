"""Which engine runs: the table of `_choice`, what overrides it, and what is missing."""

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

import mercer as mc
from mercer import engine
from mercer.engine import Dense, LowRank, Matrix, SingleFeatures, Stacked, _compiled
from mercer.engine.sums import _blocked, _choice, _native, _spectral
from mercer.engine.sums._frequency_grid import finufft as find_finufft
from tests.engine.isas import compiled
from tests.engine.sums.test_spectral import finufft

RUNS = [
    (_spectral.SpectralSum, "fields", "spectral"),
    (_native.NativeSum, "__call__", "native"),
    (_native, "gram", "native"),
    (_blocked, "fields", "blocked"),
    (_blocked, "gram", "blocked"),
]


@pytest.fixture
def ran(monkeypatch):
    """The engines that ran, in order."""
    names = []

    def watched(run, name):
        def wrapper(*args, **kwargs):
            paired = name == "native" and len(args) > 3  # the coefficients of pairs
            names.append("paired native" if paired else name)
            return run(*args, **kwargs)

        return wrapper

    for module, function, name in RUNS:
        monkeypatch.setattr(module, function, watched(getattr(module, function), name))
    return names


@pytest.fixture
def without_core(monkeypatch):
    """As if nothing had been compiled."""
    monkeypatch.setitem(sys.modules, "mercer._core", None)
    _compiled.core.cache_clear()
    _choice._warn_that_nothing_is_compiled.cache_clear()
    yield
    monkeypatch.undo()
    _compiled.core.cache_clear()
    _choice._warn_that_nothing_is_compiled.cache_clear()


@pytest.fixture
def without_finufft(monkeypatch):
    """As if the extra `fast` were not installed."""
    monkeypatch.setitem(sys.modules, "finufft", None)
    find_finufft.cache_clear()
    yield
    monkeypatch.undo()
    find_finufft.cache_clear()


@dataclass(frozen=True)
class Triangle(mc.Radial):
    """A profile that cannot be recorded."""

    def profile(self, u):
        return np.clip(1 - u, 0, None)


LONG = sum((mc.Gaussian(1.0 + i) for i in range(9)), start=mc.Gaussian(0.5))


def sums(kernel, X, Y, order=0, **keywords):
    coef = Dense(np.ones((X.shape[0], 1)))
    return engine.fields(kernel.program, X, Y, coef, order=order, **keywords)


# --- the table ------------------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize(
    ("kernel", "d", "expected"),
    [
        (mc.Gaussian(1.0), 3, "native"),
        (mc.Gaussian(1.0), 200, "native"),
        (mc.Gaussian(1.0), 1001, "blocked"),
        (mc.Gaussian(1.0).transform(Matrix(np.ones((2, 1001)))), 1001, "native"),
        (mc.Polynomial(3), 3, "native"),
        (mc.Gaussian(1.0) + mc.Laplace(1.0), 3, "native"),
        (mc.Gaussian(1.0) * mc.Linear(), 3, "blocked"),  # two variables
        (mc.kernels.Normalised(mc.Polynomial(2)), 3, "blocked"),
        (mc.kernels.Constant(2.0), 3, "blocked"),
        (Triangle(), 3, "blocked"),
        (LONG, 3, "blocked"),
    ],
)
def test_values_and_gram_matrices(kernel, d, expected, ran, rng):
    X, Y = rng.normal(size=(30, d)), rng.normal(size=(20, d))
    sums(kernel, X, Y)
    kernel(X, Y)
    assert ran == [expected] * 2


@compiled
def test_gram_matrices_of_many_columns_are_left_to_blas(ran, rng):
    X = rng.normal(size=(30, 201))
    sums(mc.Gaussian(1.0), X, X)
    mc.Gaussian(1.0)(X)
    assert ran == ["native", "blocked"]


@compiled
def test_sparse_points_are_blocked(ran, rng):
    X = sp.csr_array(np.round(rng.normal(size=(30, 5))))
    mc.Gaussian(1.0)(X)
    sums(mc.Gaussian(1.0), X, X)
    assert ran == ["blocked", "blocked"]


@compiled
def test_one_element_per_query(ran, rng):
    X, wide = rng.normal(size=(30, 3)), rng.normal(size=(30, 220))
    coef = Dense(np.ones((30, 30)))
    kernel = mc.Gaussian(15.0)
    engine.fields(kernel.program, X, X, coef, paired=True)
    engine.fields(kernel.program, wide, wide, coef, order=1, paired=True)
    engine.fields(kernel.program, wide, wide, coef, order=2, paired=True)
    engine.fields((kernel + mc.Linear()).program, X, X, coef, paired=True)
    assert ran == ["paired native", "paired native", "blocked", "blocked"]


@compiled
def test_a_batch_of_hessians_goes_in_parts(ran, rng):
    """Each of at most so many columns that they fit; with too many dimensions, blocked."""
    X, Y, A = rng.normal(size=(40, 20)), rng.normal(size=(10, 20)), rng.normal(size=(40, 5))
    f = engine.fields(mc.Gaussian(4.0).program, X, Y, Dense(A), order=2)
    assert ran == ["native"] * 3
    ran.clear()
    with mc.options(engine="blocked"):
        g = engine.fields(mc.Gaussian(4.0).program, X, Y, Dense(A), order=2)
    np.testing.assert_allclose(f.hessian, g.hessian, atol=1e-12)
    ran.clear()
    sums(mc.Gaussian(4.0), np.tile(X, 2), np.tile(Y, 2), order=2)
    assert ran == ["blocked"]


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_profile_that_is_too_long_is_summed_right(dtype, rng):
    X, Y = rng.normal(size=(50, 3)).astype(dtype), rng.normal(size=(20, 3)).astype(dtype)
    u = ((Y[:, None].astype(float) - X[None].astype(float)) ** 2).sum(axis=-1)
    expected = sum(np.exp(-0.5 * u / s**2) for s in (0.5, *range(1, 10)))
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(sums(LONG, X, Y).value[:, 0], expected.sum(axis=1), rtol=rtol)
    np.testing.assert_allclose(LONG(Y, X), expected, rtol=rtol)


# --- the spectral engine --------------------------------------------------------------------------


@pytest.fixture
def many(rng):
    return rng.normal(size=(20_000, 2))


@compiled
@finufft
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("shifted", [False, True])
def test_many_points_with_a_tolerance_are_summed_by_frequencies(many, ran, order, shifted):
    with mc.options(tolerance=1e-6):
        f = sums(mc.Gaussian(0.7), many, many[:8000], order, shifted=shifted)
    assert ran[0] == "spectral"
    assert ran.count("spectral") == 1
    with mc.options(tolerance=0.0):
        g = sums(mc.Gaussian(0.7), many, many[:8000], order, shifted=shifted)
    gap = f.value - g.value * np.exp(g.shift - f.shift)[:, None]
    assert np.all(np.abs(gap) <= f.bound)
    assert np.all(f.bound <= 1e-6 * 20_000)


@compiled
@finufft
@pytest.mark.parametrize(
    ("kernel", "changes"),
    [
        (mc.Gaussian(0.7), {"tolerance": 0.0}),  # nothing may be lost
        (mc.Laplace(0.7), {}),  # a cusp
        (mc.Matern(1.5, 0.7), {}),
        (mc.Gaussian(1e-3), {}),  # more modes than pairs in reach
        (mc.Gaussian(0.7).transform(Matrix(np.ones((4, 2)))), {}),  # four dimensions
        (mc.Polynomial(2), {}),
        (mc.Gaussian(0.7), {"engine": "native"}),
        (mc.Gaussian(0.7), {"engine": "blocked"}),
    ],
    ids=repr,
)
def test_everything_else_is_summed_over_pairs(kernel, changes, many, ran):
    with mc.options(**{"tolerance": 1e-6, **changes}):
        sums(kernel, many, many[:600])
    assert ran == [changes.get("engine", "native")]


@compiled
@finufft
def test_few_pairs_are_summed_one_by_one(many, ran):
    with mc.options(tolerance=1e-3):
        sums(mc.Gaussian(0.7), many, many[:400])
        assert mc.get_options().tolerance == 1e-3
    assert ran == ["native"]


@compiled
@finufft
def test_parts_of_an_element_may_go_to_different_engines(many, ran):
    """A large part by frequencies, single features by pairs, and one bound on the sum."""
    A = np.ones((20_000, 1))
    coef = Stacked((Dense(A), SingleFeatures(np.array([5]), np.array([2.0]), 20_000)))
    X = np.vstack([many, many])
    with mc.options(tolerance=1e-6):
        f = engine.fields(mc.Gaussian(0.7).program, X, many[:2000], coef, order=1, shifted=True)
    assert {"spectral", "native"} <= set(ran)
    g = engine.fields(mc.Gaussian(0.7).program, X, many[:2000], coef, order=1)
    assert np.all(np.abs(f.value * np.exp(f.shift)[:, None] - g.value) <= f.bound)


CANNOT = {
    "a cusp": (mc.Laplace(1.0), 2),
    "a kink in the second derivative": (mc.Matern(1.5), 2),
    "four dimensions": (mc.Gaussian(1.0), 4),
    "an inner product": (mc.Polynomial(2), 2),
    "two variables": (mc.Gaussian(1.0) * mc.Linear(), 2),
    "no grid fine enough": (mc.Gaussian(1e-5), 3),
}


@finufft
@pytest.mark.parametrize("name", CANNOT)
def test_a_named_spectral_engine_says_what_it_cannot_do(name, rng):
    kernel, d = CANNOT[name]
    X = rng.normal(size=(20, d))
    with (
        mc.options(engine="spectral", tolerance=1e-6),
        pytest.raises(mc.InputError, match=r"spectral engine cannot run.*at most\s+3 dimensions"),
    ):
        sums(kernel, X, X)


@finufft
def test_a_named_spectral_engine_has_no_gram_matrices_and_takes_no_sparse_points(rng):
    X = rng.normal(size=(20, 2))
    with mc.options(engine="spectral", tolerance=1e-6):
        with pytest.raises(mc.InputError, match="spectral engine cannot run"):
            mc.Gaussian(1.0)(X)
        with pytest.raises(mc.InputError, match="spectral engine cannot run"):
            sums(mc.Gaussian(1.0), sp.csr_array(X), sp.csr_array(X))


def test_without_finufft(without_finufft, many, ran):
    with mc.options(tolerance=1e-6):
        sums(mc.Gaussian(0.7), many, many[:600])
    assert "spectral" not in ran
    with (
        mc.options(engine="spectral", tolerance=1e-6),
        pytest.raises(mc.InputError, match=r"needs finufft \(extra `fast`\)"),
    ):
        sums(mc.Gaussian(0.7), many[:50], many[:50])


# --- the native engine ----------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize("kernel", [Triangle(), LONG, mc.Gaussian(1.0) * mc.Linear()])
def test_a_named_native_engine_says_what_it_cannot_do(kernel, rng):
    X = rng.normal(size=(20, 2))
    with mc.options(engine="native"):
        with pytest.raises(mc.InputError, match="native engine cannot run this"):
            sums(kernel, X, X)
        with pytest.raises(mc.InputError, match="native engine cannot run this"):
            kernel(X)


def test_without_the_core_there_is_one_warning_and_the_same_answer(without_core, ran, rng):
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    with pytest.warns(mc.MercerWarning, match="without its compiled core") as caught:
        f = sums(mc.Matern(2.5), X, Y, order=2)
    assert len(caught) == 1
    K = mc.Gaussian(1.0)(X)  # a second warning would be an error
    engine.fields(mc.Gaussian(1.0).program, X, Y, LowRank(X, X.T), shifted=True)
    assert set(ran) == {"blocked"}
    u = ((Y[:, None] - X[None]) ** 2).sum(axis=-1)
    z = np.sqrt(5 * u)
    np.testing.assert_allclose(f.value[:, 0], ((1 + z + z**2 / 3) * np.exp(-z)).sum(axis=1))
    slope = -5 / 6 * (1 + z) * np.exp(-z)
    gradient = 2 * np.einsum("ji,jip->jp", slope, Y[:, None] - X[None])
    np.testing.assert_allclose(f.gradient[:, 0], gradient, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)


def test_without_the_core_what_never_used_it_does_not_warn(without_core, rng):
    X = rng.normal(size=(20, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (mc.Gaussian(1.0) * mc.Linear())(X)
        with mc.options(engine="blocked"):
            mc.Gaussian(1.0)(X)


def test_without_the_core_it_cannot_be_named(without_core, rng):
    X = rng.normal(size=(20, 3))
    with (
        mc.options(engine="native"),
        pytest.raises(mc.InputError, match="native engine cannot run this"),
    ):
        mc.Gaussian(1.0)(X)


@finufft
@pytest.mark.filterwarnings("ignore:mercer was installed without")
def test_without_the_core_small_sums_are_redone_blocked(without_core, ran, rng):
    X, Y = rng.normal(size=(50, 2)), np.array([[0.0, 0.0], [30.0, 0.0]])
    with mc.options(engine="spectral", tolerance=1e-4):
        f = sums(mc.Gaussian(0.5), X, Y, order=1, shifted=True)
    assert ran == ["spectral", "blocked"]
    assert np.isfinite(f.gradient[:, 0] / f.value).all()
