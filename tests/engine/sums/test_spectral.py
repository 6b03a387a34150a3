"""The spectral engine: sums by frequencies, and a bound on their error that can be believed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer as mc
from mercer import engine
from mercer.engine import Dense, LowRank, Matrix, Scales, Stacked
from mercer.engine.sums import _frequency_grid
from mercer.engine.sums._spectral import modes_worth_while

finufft = pytest.mark.skipif(_frequency_grid.finufft() is None, reason="finufft is not installed")
pytestmark = finufft

ROTATED = np.array([[0.9, -0.4, 0.3], [0.1, 0.8, -0.5], [0.3, 0.2, 1.1]])
KERNELS = {
    "gaussian": mc.Gaussian(0.7),
    "narrow": mc.Gaussian(0.2),
    "matern 5/2": mc.Matern(2.5, 1.0),
    "rational": mc.RationalQuadratic(1.5, 1.0),
    "multiquadric": mc.InverseMultiquadric(1.0, 0.5),
    "sum": mc.Gaussian(0.5) + mc.Gaussian(2.0),
    "scaled": 3.0 * mc.Gaussian(0.5),
    "offset": mc.Gaussian(0.7) + 1.0,
    "product": mc.Gaussian(0.7) * mc.RationalQuadratic(1.0, 1.0),
}


def kernel_in(name, d, mapping=None):
    kernel = KERNELS[name]
    if mapping == "scales":
        return kernel.transform(Scales([0.7, 1.9, 1.1][:d]))
    if mapping == "matrix":
        return kernel.transform(Matrix(ROTATED[:d, :d]))
    return kernel


def at_zero(kernel, d):
    return float(kernel(np.zeros((1, d)))[0, 0])


def both(kernel, X, Y, A, tolerance, order=0, shifted=False):
    """By frequencies, and by float64 sums over pairs."""
    coef = A if not isinstance(A, np.ndarray) else Dense(A)
    with mc.options(engine="spectral", tolerance=tolerance):
        f = engine.fields(kernel.program, X, Y, coef, order=order, shifted=shifted)
    with mc.options(engine="blocked"):
        wide = X.astype(np.float64), Y.astype(np.float64)
        g = engine.fields(kernel.program, *wide, coef, order=order, shifted=shifted)
    return f, g


def assert_within_bound(f, g):
    assert f.bound.shape == f.value.shape[1:]
    assert np.all(np.abs(f.value - g.value) <= f.bound), (np.abs(f.value - g.value) / f.bound).max()


# --- values and derivatives -----------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("mapping", [None, "scales", "matrix"])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_with_derivatives(name, mapping, d, tolerance, rng):
    X, Y, A = rng.normal(size=(60, d)), rng.normal(size=(40, d)), rng.normal(size=(60, 3))
    kernel = kernel_in(name, d, mapping)
    f, g = both(kernel, X, Y, A, tolerance, order=2)
    assert_within_bound(f, g)
    mass = np.abs(A).sum(axis=0)
    assert np.all(f.bound <= tolerance * at_zero(kernel, d) * mass * (1 + 1e-9))
    # derivatives carry no bound; each costs about the highest frequency that is needed
    scale = {"narrow": 20.0}.get(name, 10.0) * (2.0 if mapping == "scales" else 1.5) * 3
    gap = np.abs(f.gradient - g.gradient).max(axis=(0, 2))
    assert np.all(gap <= scale * f.bound)
    gap = np.abs(f.hessian - g.hessian).max(axis=(0, 2, 3))
    rough = tolerance ** -(1 / 3) if name == "matern 5/2" else 1.0  # a kink in the third derivative
    assert np.all(gap <= rough * scale**2 * f.bound)
    np.testing.assert_allclose(f.hessian, np.swapaxes(f.hessian, 2, 3), atol=1e-12)
    if name in ("gaussian", "narrow", "scaled"):  # exponential in the squared distance
        ratio = np.abs(g.slopes[0] / g.value).max()
        assert np.all(np.abs(f.slopes[0] - g.slopes[0]) <= ratio * f.bound * (1 + 1e-9) + 1e-12)
    else:
        assert f.slopes == ()
    np.testing.assert_array_equal(f.shift, np.zeros(40))


@pytest.mark.parametrize("mapping", [None, "scales", "matrix"])
@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("gaussian", 1e-7), ("multiquadric", 1e-3), ("offset", 1e-4), ("rational", 1e-3)],
)
def test_three_dimensions(name, tolerance, mapping, rng):
    X, Y, A = rng.normal(size=(50, 3)), rng.normal(size=(40, 3)), rng.normal(size=(50, 2))
    f, g = both(kernel_in(name, 3, mapping), X, Y, A, tolerance, order=2)
    assert_within_bound(f, g)
    assert np.all(np.abs(f.gradient - g.gradient).max(axis=(0, 2)) <= 40 * f.bound)
    assert np.all(np.abs(f.hessian - g.hessian).max(axis=(0, 2, 3)) <= 1600 * f.bound)


def test_maps_that_lower_the_dimension(rng):
    """What counts is where the kernel measures, not how many columns the points have."""
    X, Y, A = rng.normal(size=(50, 6)), rng.normal(size=(20, 6)), rng.normal(size=(50, 2))
    kernel = mc.Gaussian(0.9).transform(Matrix(rng.normal(size=(2, 6)) / 2))
    f, g = both(kernel, X, Y, A, 1e-8, order=2)
    assert_within_bound(f, g)
    assert f.hessian.shape == (20, 2, 6, 6)
    np.testing.assert_allclose(f.gradient, g.gradient, atol=1e-6)
    np.testing.assert_allclose(f.hessian, g.hessian, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-11])
def test_batches_in_both_types(batch, dtype, order, tolerance, rng):
    """Two elements share a transform; the bound covers the rounding of the result."""
    X, Y = rng.normal(size=(30, 2)).astype(dtype), rng.normal(size=(20, 2)).astype(dtype)
    A = np.asfortranarray(rng.normal(size=(30, batch)))
    f, g = both(mc.Gaussian(0.8), X, Y, A, tolerance, order=order)
    assert_within_bound(f, g)
    fields = (f.value, f.gradient, f.hessian)[: order + 1]
    assert all(a.dtype == dtype for a in fields)
    assert (f.gradient is None, f.hessian is None) == (order < 1, order < 2)


AXIS = np.array([0.0, 1.0])
PLACES = {
    "one point": lambda X, Y: (X[:1], Y),
    "one query": lambda X, Y: (X, Y[:1]),
    "one of each": lambda X, Y: (X[:1], Y[:1]),
    "all equal": lambda X, Y: (0 * X + 0.3, 0 * Y + 0.3),
    "all zero": lambda X, Y: (0 * X, 0 * Y),
    "points equal": lambda X, Y: (0 * X + 0.3, Y),
    "an axis constant": lambda X, Y: (X * AXIS + 5, Y * AXIS + 5),
    "far from the origin": lambda X, Y: (X + 1e6, Y + 1e6),
    "far along one axis": lambda X, Y: (X + 1e9 * AXIS, Y + 1e9 * AXIS),
    "tiny": lambda X, Y: (1e-9 * X, 1e-9 * Y),
    "queries elsewhere": lambda X, Y: (X, Y + 8.0),
}


@pytest.mark.parametrize("name", ["gaussian", "matern 5/2", "multiquadric", "product"])
@pytest.mark.parametrize("place", PLACES)
def test_anywhere(place, name, rng):
    X, Y = PLACES[place](rng.normal(size=(30, 2)), rng.normal(size=(20, 2)))
    A = rng.normal(size=(len(X), 2))
    f, g = both(KERNELS[name], X, Y, A, 1e-6, order=1)
    assert_within_bound(f, g)
    assert np.all(np.abs(f.gradient - g.gradient).max(axis=(0, 2)) <= 40 * f.bound)


@settings(max_examples=20)
@given(
    name=st.sampled_from(sorted(KERNELS)),
    d=st.sampled_from([1, 1, 2, 2, 3]),
    n=st.sampled_from([1, 2, 50]),
    b=st.integers(1, 3),
    dtype=st.sampled_from(["float32", "float64"]),
    digits=st.floats(1.0, 12.0),
    stretch=st.floats(0.05, 4.0),
    offset=st.sampled_from([0.0, 10.0, 1e6]),
    positive=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_the_bound_is_honest(name, d, n, b, dtype, digits, stretch, offset, positive, seed):
    """Few points with coefficients of one sign are the worst case: no errors cancel."""
    rng = np.random.default_rng(seed)
    if d == 3:
        digits, stretch = min(digits, 5.0), min(stretch, 1.0)
    X, Y = ((stretch * rng.normal(size=(s, d)) + offset).astype(dtype) for s in (n, 60))
    Y[:5] = X[rng.integers(0, n, size=5)]
    A = np.ones((n, b)) if positive else rng.normal(size=(n, b))
    try:
        f, g = both(KERNELS[name], X, Y, A, 10.0**-digits)
    except mc.InputError:  # no grid of a reasonable size
        return
    assert_within_bound(f, g)
    most = 10.0**-digits * at_zero(KERNELS[name], d) * np.abs(A).sum(axis=0)
    rounding = np.finfo(dtype).eps * np.abs(f.value).max(axis=0)
    assert np.all(f.bound <= 1.01 * most + 1.01 * rounding)


# --- what carries the bound -----------------------------------------------------------------------


def test_the_bound_of_a_mixture_and_of_a_sum(rng):
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(20, 2))
    left, right = rng.normal(size=(40, 2)), rng.normal(size=(2, 5))
    parts = Dense(rng.normal(size=(15, 3))), LowRank(left[15:], right[:, :3])
    for coef in (LowRank(left, right), Stacked(parts)):
        f, g = both(mc.Gaussian(0.7), X, Y, coef, 1e-5, order=1)
        assert_within_bound(f, g)
        mass = np.abs(coef.tile(slice(None), slice(None))).sum(axis=0)
        assert np.all(f.bound >= 1e-7 * mass)


# --- small sums -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("form", ["dense", "low rank", "stacked"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_shifted_sums_are_right_in_the_tails(form, order, tolerance, rng):
    """A ratio of gradient to value must not be one of errors, even where both underflow."""
    X, Y = rng.normal(size=(200, 2)), np.linspace(-1, 1, 60)[:, None] * np.array([40.0, 10.0])
    ones = np.ones((200, 1))
    coef = {
        "dense": Dense(ones),
        "low rank": LowRank(np.hstack([ones, X[:, :1]]), np.array([[1.0], [0.05]])),
        "stacked": Stacked((Dense(ones[:120]), Dense(ones[120:]))),
    }[form]
    f, g = both(mc.Gaussian(0.5), X, Y, coef, tolerance, order=order, shifted=True)
    logs = [np.log(h.value[:, 0]) + h.shift for h in (f, g)]
    np.testing.assert_allclose(*logs, atol=2e-3, rtol=1e-12)
    assert logs[1].min() < -1000
    assert np.all(f.bound <= 1.3 * tolerance * 200)
    if order:
        ratios = [h.gradient[:, 0] / h.value for h in (f, g)]
        np.testing.assert_allclose(*ratios, rtol=2e-3, atol=2e-2)
    if order == 2:
        ratios = [h.hessian[:, 0] / h.value[..., None] for h in (f, g)]
        np.testing.assert_allclose(*ratios, rtol=2e-3, atol=2e-1)


def test_a_profile_without_a_tape_is_redone_too(rng):
    """Small sums go to whatever engine can do them."""
    kernel = sum((mc.Gaussian(0.3 + 0.1 * i) for i in range(8)), start=mc.Gaussian(0.2))
    X, Y = rng.normal(size=(50, 2)), np.array([[0.0, 0.0], [30.0, 0.0]])
    f, g = both(kernel, X, Y, np.ones((50, 1)), 1e-4, order=1, shifted=True)
    ratios = [h.gradient[:, 0] / h.value for h in (f, g)]
    np.testing.assert_allclose(*ratios, rtol=1e-2, atol=1e-2)


# --- when to use it -------------------------------------------------------------------------------


def test_more_pairs_are_worth_a_larger_grid():
    modes = [modes_worth_while(pairs, 20_000, 2, 1) for pairs in (1e6, 1e8, 1e9)]
    assert modes[0] == 0
    assert 0 < modes[1] < modes[2]
    assert modes_worth_while(1e9, 20_000, 3, 1) < modes[2]  # spreading costs more in space
    assert modes_worth_while(1e9, 20_000, 2, 10) < modes[2]  # a batch shares its exponentials
