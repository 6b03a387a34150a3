"""Tiles by a BLAS product and one pass of the core: against NumPy, and where they are used."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer as mc
from mercer import engine
from mercer.engine import Dense
from mercer.engine._compiled import core
from mercer.engine.pairs._tiles import Pairs
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._tape import tape
from tests.engine.cases import TOLERANCE
from tests.engine.isas import ISAS, compiled, each_isa, forced

pytestmark = compiled

DTYPES = ["float32", "float64"]
KERNELS = {
    "one step": mc.Gaussian(1.3),
    "several steps": mc.Laplace(1.3) + 0.5 * mc.Gaussian(2.0),
    "no step": mc.Linear(),
    "inner products": mc.Polynomial(3, scale=2.0),
}


def core_profile(kernel, isa):
    steps, result = tape(kernel.program.profile)
    return core().Profile(list(steps), result, isa)


@given(
    name=st.sampled_from(sorted(KERNELS)),
    isa=st.sampled_from(ISAS or ["none"]),
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(0, 9),
    columns=st.sampled_from([0, 1, 2, 7, 8, 15, 16, 17, 100, 191, 192, 193, 1535, 1537, 3100]),
    margin=st.integers(0, 3),
    seed=st.integers(0, 2**31),
)
def test_the_profile_on_a_tile(name, isa, dtype, rows, columns, margin, seed):
    rng = np.random.default_rng(seed)
    kernel = KERNELS[name]
    whole = rng.uniform(-1, 1, size=(rows + 1, columns + margin)).astype(dtype)
    before = whole.copy()
    tile = whole[:rows, :columns]
    products = tile.astype(np.float64)
    r, c = rng.uniform(2, 4, size=rows).astype(dtype), rng.uniform(2, 4, size=columns).astype(dtype)
    profile = core_profile(kernel, isa)
    if kernel.program.kind == "dot":
        profile.values(tile)
        u = products
    else:
        profile.values(tile, r, c)
        u = r[:, None].astype(float) + c.astype(float) - 2 * products
    expected = evaluate(kernel.program.profile, [u]).value
    np.testing.assert_allclose(tile, expected, rtol=20 * TOLERANCE[dtype], atol=TOLERANCE[dtype])
    np.testing.assert_array_equal(whole[rows:], before[rows:])
    np.testing.assert_array_equal(whole[:, columns:], before[:, columns:])


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_overflow_and_nan(dtype, isa):
    tile = np.array([[1.0 + 1e-6, 1.0, -np.inf, np.inf, np.nan]] * 5, dtype=dtype)
    norms = np.ones(5, dtype)
    core_profile(mc.Gaussian(1.0), isa).values(tile, norms, norms)
    np.testing.assert_array_equal(tile, [[1.0, 1.0, 0.0, 1.0, np.nan]] * 5)


def test_what_does_not_fit_is_refused():
    profile = core_profile(mc.Gaussian(1.0), "")
    tile, norms = np.zeros((4, 6)), np.zeros(6)
    wrong = (TypeError, ValueError)
    for arguments in (
        (tile, norms, norms),
        (tile, norms[:4], norms[:5]),
        (tile.T, norms, norms[:4]),
        (tile[:, ::2], norms[:4], norms[:3]),
        (tile[::-1], norms[:4], norms),
        (np.broadcast_to(tile[0], (4, 6)), norms[:4], norms),
        (tile.astype(np.float32), norms[:4], norms),
        (tile.astype(int), norms[:4], norms),
        (tile, norms[:4].astype(np.float32), norms),
        (tile[0], norms[:4], norms),
    ):
        with pytest.raises(wrong):
            profile.values(*arguments)
    for values in (tile.T, tile.astype(int), None):
        with pytest.raises(wrong):
            profile.values(values)
    with pytest.raises(wrong):
        core().Profile([], 0, "none such")


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_many_dimensions_as_numpy_alone(name, dtype, isa, rng):
    """Sums and Gram matrices of more columns than the native engine takes."""
    X, Y = ((rng.normal(size=(s, 250)) / 9).astype(dtype) for s in (700, 333))
    A = rng.normal(size=(700, 3)).astype(dtype)
    program = KERNELS[name].program
    tolerance = 100 * TOLERANCE[dtype]
    with mc.options(engine="blocked"):
        K, L = engine.gram(program, X, Y), engine.gram(program, X, X)
        value = engine.fields(program, X, Y, Dense(A)).value
    with forced(isa):
        found, square = engine.gram(program, X, Y), engine.gram(program, X, X)
        f = engine.fields(program, X, Y, Dense(A)).value
    np.testing.assert_allclose(found, K, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(square, L, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(square, square.T)
    assert found.dtype == square.dtype == f.dtype == np.dtype(dtype)
    assert np.all(np.abs(f - value) <= tolerance * (np.abs(K).T @ np.abs(A)))


def test_where_one_pass_is_enough(rng):
    X = rng.normal(size=(20, 300))

    def one_pass(kernel, Z, engine=None):
        with mc.options(engine=engine):
            return Pairs(kernel.program, Z, Z).one_pass

    gaussian = mc.Gaussian(20.0)
    assert one_pass(gaussian, X)
    assert one_pass(mc.Polynomial(2), X)
    assert not one_pass(gaussian, X, "blocked")  # NumPy alone
    assert not one_pass(mc.Gaussian(1e-6), X)  # close distances are recomputed
    assert not one_pass(gaussian * mc.Linear(), X)  # two variables
    assert not one_pass(gaussian, X[:, :2])  # differences
