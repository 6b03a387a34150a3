"""Prepared sums: the same answers as one-shot sums, with the points prepared once."""

import numpy as np
import pytest

import mercer as mc
from mercer import engine
from mercer.engine import Dense, LowRank, Scales, SingleFeatures, Stacked
from mercer.engine.sums import _native, _prepared, _spectral
from tests import naive
from tests.engine.isas import compiled
from tests.engine.sums.test_spectral import finufft

KERNELS = {
    "gaussian": mc.Gaussian(0.8),
    "laplace": mc.Laplace(0.8),
    "polynomial": mc.Polynomial(2),
    "mapped": mc.Matern(2.5).transform(Scales([0.5, 2.0, 1.0, 1.0, 3.0])),
    "two variables": mc.Gaussian(1.0) * mc.Linear(),
}


def coefficients(name, n, rng):
    return {
        "dense": Dense(rng.normal(size=(n, 3))),
        "low rank": LowRank(rng.normal(size=(n, 2)), rng.normal(size=(2, 3))),
        "selection": SingleFeatures(np.array([4, 0, 4]), rng.normal(size=3), n),
        "stacked": Stacked(
            (
                Dense(rng.normal(size=(n - 10, 3))),
                SingleFeatures(np.array([4, 0, 4]), rng.normal(size=3), 10),
            )
        ),
    }[name]


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("coef", ["dense", "low rank", "selection", "stacked"])
@pytest.mark.parametrize("name", KERNELS)
def test_many_sets_of_queries(name, coef, shifted, rng, each_engine):
    """Of both types, near and far, and of each order, in any succession."""
    X = rng.normal(size=(50, 5))
    coef = coefficients(coef, 50, rng)
    prepared = engine.prepare(KERNELS[name].program, X, coef, n_queries=100)
    near, far = rng.normal(size=(3, 5)), 40.0 + rng.normal(size=(3, 5))
    for Y, order in ((near, 0), (far, 1), (near, 1), (near.astype("f4"), 2), (far, 2), (near, 0)):
        f = prepared.fields(Y, order=order, shifted=shifted)
        g = engine.fields(KERNELS[name].program, X, Y, coef, order=order, shifted=shifted)
        for part in ("value", "gradient", "hessian", "shift"):
            if getattr(g, part) is not None:
                np.testing.assert_allclose(getattr(f, part), getattr(g, part), rtol=1e-13)
        f = prepared.fields(Y, order=order, shifted=shifted, paired=True)
        K = KERNELS[name](X, Y.astype(float))
        A = coef.tile(slice(None), slice(None))
        np.testing.assert_allclose(
            f.value * np.exp(f.shift), (K * A).sum(axis=0), rtol=1e-6, atol=1e-12
        )


@compiled
@pytest.mark.parametrize("order", [0, 1, 2])
def test_points_are_packed_once(order, rng, monkeypatch):
    packs = []
    make = _native.compiled_program
    monkeypatch.setattr(_native, "compiled_program", lambda *a: packs.append(a) or make(*a))
    X = rng.normal(size=(200, 6))
    prepared = engine.prepare(mc.Gaussian(3.0).program, X, Dense(np.ones((200, 2))))
    for _ in range(3):
        prepared.fields(rng.normal(size=(7, 6)), order=order, shifted=True)
    assert len(packs) == 1
    with mc.options(working_memory=1e-3):  # no room to keep them
        prepared = engine.prepare(mc.Gaussian(3.0).program, X, Dense(np.ones((200, 2))))
        packs.clear()
        values = [prepared.fields(X[:7], order=order).value for _ in range(2)]
    assert len(packs) == 2
    np.testing.assert_array_equal(*values)
    np.testing.assert_allclose(values[0][:, 1], mc.Gaussian(3.0)(X[:7], X).sum(axis=1))


@compiled
@pytest.mark.parametrize("tolerance", [0.0, 1e-9])
def test_few_queries_at_a_time_still_leave_far_points_out(tolerance, rng):
    """With many queries announced, points are sorted although each call has few."""
    X = np.concatenate([rng.normal(size=(2000, 2)), 50.0 + rng.normal(size=(2000, 2))])
    coef = Dense(rng.uniform(size=(4000, 1)))
    program = mc.Gaussian(0.5).program
    prepared = engine.prepare(program, X, coef, n_queries=10**6, tolerance=tolerance, slopes=True)
    with mc.options(engine="native"):
        for Y in (X[:60], X[-5:]):
            f = prepared.fields(Y, order=1)
            g = engine.fields(program, X, Y, coef, order=1)
            bound = 0.0 if f.bound is None else f.bound
            assert np.all(np.abs(f.value - g.value) <= bound + 1e-12 * np.abs(g.value))
            np.testing.assert_allclose(f.slopes[0], -2.0 * f.value, atol=1e-6)
    assert (f.bound is not None) == (tolerance > 0)
    (native,) = (part for part in prepared._kept.values() if isinstance(part, _native.NativeSum))
    assert all(cutoff < np.inf for *_, cutoff in native._packed)


@compiled
@finufft
@pytest.mark.parametrize("shifted", [False, True])
def test_points_are_transformed_once(shifted, rng, monkeypatch):
    """Queries outside of the box of the grid are summed directly."""
    made = []
    make = _spectral.spread_modes
    monkeypatch.setattr(_spectral, "spread_modes", lambda *a: made.append(a) or make(*a))
    X = rng.normal(size=(20_000, 2))
    coef = Dense(np.full((20_000, 1), 1 / 20_000))
    program = mc.Gaussian(0.7).program
    prepared = engine.prepare(program, X, coef, n_queries=10**6, tolerance=1e-8, slopes=True)
    for Y in (X[:5000], X[5000:9000], np.array([[0.1, 0.2], [30.0, 0.0]]), X[:3] * 3.0):
        f = prepared.fields(Y, order=2, shifted=shifted)
        g = engine.fields(program, X, Y, coef, order=2, shifted=shifted)
        for part in ("value", "gradient", "hessian"):
            np.testing.assert_allclose(getattr(f, part), getattr(g, part), atol=1e-5)
        np.testing.assert_allclose(f.slopes[0], g.slopes[0], rtol=1e-3 if shifted else 1, atol=1e-8)
    assert len(made) == 1
    exact = prepared.fields(X[:5000], exact=True)
    np.testing.assert_allclose(exact.value, engine.fields(program, X, X[:5000], coef).value)
    assert exact.bound is None
    with mc.options(engine="spectral"):
        assert prepared.fields(X[:50]).bound is not None
        assert prepared.fields(X[:50], exact=True).bound is None


@finufft
def test_a_spectral_sum_without_slopes_is_not_used_where_they_are_needed(rng):
    X = rng.normal(size=(200, 2))
    coef, program = Dense(np.ones((200, 1))), mc.Matern(2.5).program
    with mc.options(engine="spectral", tolerance=1e-6):
        assert engine.prepare(program, X, coef).fields(X, order=1).slopes == ()
        f = engine.prepare(program, X, coef, slopes=True).fields(X, order=1)
    assert f.bound is None
    np.testing.assert_allclose(f.slopes[0], engine.fields(program, X, X, coef, order=1).slopes[0])


# --- rows that are computed again -----------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("size", [1e-280, 1e-100, 1.0, 1e100, 1e280])
@pytest.mark.parametrize("paired", [False, True])
def test_underflow_is_noticed_whatever_the_size_of_the_coefficients(
    paired, size, order, rng, each_engine
):
    """k underflows; a sum may not."""
    X, Y = rng.normal(size=(30, 2)), np.array([[39.0, 0.0], [0.0, 0.0], [100.0, 3.0]])
    A = size * rng.uniform(1.0, 2.0, size=(30, 3))
    program = mc.Gaussian(1.0).program
    f = engine.fields(program, X, Y, Dense(A), order=order, shifted=True, paired=paired)
    logs = -0.5 * ((Y[:, None] - X[None]) ** 2).sum(axis=-1)
    top = logs.max(axis=1)
    expected = top[:, None] + np.log(np.exp(logs - top[:, None]) @ (A / size)) + np.log(size)
    found = f.shift[:, None] + np.log(f.value.reshape(3, -1))
    np.testing.assert_allclose(found, np.diag(expected)[:, None] if paired else expected, rtol=1e-9)


@compiled
@pytest.mark.parametrize("coef", ["zero", "cancelling", "one of many"])
def test_zero_sums_are_zero(coef, rng):
    """Without coefficients, by symmetry, and where another element of the batch is not zero."""
    X, Y = np.array([[-1.0], [1.0]]), np.array([[0.0], [0.5]])
    A = {
        "zero": np.zeros((2, 1)),
        "cancelling": np.array([[1.0], [-1.0]]),
        "one of many": np.array([[0.0, 1.0], [0.0, 0.0]]),
    }[coef]
    f = engine.fields(mc.Gaussian(1.0).program, X, Y, Dense(A), order=1, shifted=True)
    K = mc.Gaussian(1.0)(Y, X)
    np.testing.assert_allclose(f.value * np.exp(f.shift)[:, None], naive.sums(K, A), atol=1e-16)


@compiled
def test_one_feature_of_many_that_underflows_is_not_computed_again(rng, monkeypatch):
    """The scale of a row is that of its largest term."""
    ran = []
    run = _prepared._blocked.fields
    monkeypatch.setattr(_prepared._blocked, "fields", lambda *a, **k: ran.append(a) or run(*a, **k))
    X = np.array([[0.0], [100.0]])
    program, coef = mc.Gaussian(1.0).program, SingleFeatures(np.arange(2), np.ones(2), 2)
    f = engine.fields(program, X, np.array([[0.5], [99.0]]), coef, order=1, shifted=True)
    np.testing.assert_allclose(f.value, np.exp([[-0.125, -np.inf], [-np.inf, -0.5]]))
    assert not ran


@pytest.mark.parametrize("engine_name", [None, "blocked"])
@pytest.mark.parametrize("dim", [5, 300])
@pytest.mark.parametrize("name", [k for k in KERNELS if k != "mapped"])
def test_blocks_of_a_gram_matrix(name, dim, engine_name, rng):
    X = rng.normal(size=(30, dim)) / np.sqrt(dim) + 1.0
    with mc.options(engine=engine_name):
        block = engine.GramBlocks(KERNELS[name].program, X)
        some, others = np.array([3, 17, 3, 0]), np.array([29, 17])
        K = KERNELS[name](X)
        np.testing.assert_allclose(block(some, others), K[np.ix_(some, others)], rtol=1e-12)
        np.testing.assert_allclose(block(some, slice(None)), K[some], rtol=1e-12)
