"""One element per query, by the core, against the blocked engine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import Dense, LowRank, Stacked, fields
from mercer.engine._compiled import core
from mercer.engine.programs._tape import tape
from tests.engine.isas import ISAS, compiled

KERNELS = [
    mc.Gaussian(1.5), mc.Laplace(1.0), mc.Matern(2.5, 1.0), mc.Polynomial(2), mc.Exponential(3.0),
    mc.Gaussian(1.0) + mc.InverseMultiquadric(1.0, 0.7), mc.Epanechnikov(3.0),
    mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0, 0.5])),
    mc.Gaussian(1.0).transform(mc.Columns([2, 0])),
]  # fmt: skip


def problem(rng, n, m, dim=3, dtype="float64"):
    X, Y = (rng.normal(size=(k, dim)).astype(dtype) for k in (n, m))
    Y[0] = X[0]  # a coincidence
    coef = LowRank(rng.normal(size=(n, 4)).astype(dtype), rng.normal(size=(4, m)).astype(dtype))
    return X, Y, coef


def same(one, two, tol):
    for name in ("value", "gradient", "hessian", "cusp"):
        a, b = getattr(one, name), getattr(two, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            scale = np.exp(one.shift).reshape(-1, *(1,) * (a.ndim - 1)) if name != "cusp" else 1.0
            assert_allclose(a * scale, b, rtol=tol, atol=tol * max(1.0, np.abs(b).max()))
    for a, b in zip(one.slopes, two.slopes, strict=True):
        assert_allclose(a * np.exp(one.shift), b, rtol=tol, atol=tol * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 7), (131, 49), (300, 500)])
def test_paired_sums_of_the_core(isa, kernel, n, m, rng, monkeypatch):
    monkeypatch.setenv("MERCER_ISA", isa)
    X, Y, coef = problem(rng, n, m)
    for order in (0, 1, 2):
        if order == 2 and any(kernel.program.cusps):
            continue  # second derivatives beside a cusp cancel
        with mc.options(engine="blocked"):
            expected = fields(kernel.program, X, Y, coef, order=order, paired=True)
        for shifted in (False, True):
            got = fields(kernel.program, X, Y, coef, order=order, paired=True, shifted=shifted)
            same(got, expected, 1e-10)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [k for k in KERNELS[:6] if not any(k.program.cusps)], ids=repr)
def test_paired_sums_in_many_dimensions(isa, dtype, kernel, rng, monkeypatch):
    monkeypatch.setenv("MERCER_ISA", isa)
    X, Y, coef = problem(rng, 150, 90, 230, dtype)
    X, Y = X / 8, Y / 8
    with mc.options(engine="blocked"):
        expected = fields(kernel.program, X, Y, coef, order=1, paired=True)
    got = fields(kernel.program, X, Y, coef, order=1, paired=True, shifted=True)
    same(got, expected, 1e-10 if dtype == "float64" else 2e-4)


def test_other_coefficients(rng):
    X, Y, low = problem(rng, 40, 30)
    k = mc.Gaussian(1.0).program
    dense = Dense(rng.normal(size=(40, 30)))
    mixed = Stacked((LowRank(low.left[:15], low.right), Dense(dense.array[15:])))
    for coef in (dense, mixed):
        with mc.options(engine="blocked"):
            expected = fields(k, X, Y, coef, order=2, paired=True)
        same(fields(k, X, Y, coef, order=2, paired=True), expected, 1e-11)


def test_rows_that_underflow_keep_their_direction(rng):
    for dim in (3, 230):
        X, Y, coef = problem(rng, 30, 20, dim)
        Y[5] += 300.0
        got = fields(mc.Gaussian(0.5).program, X, Y, coef, order=1, paired=True, shifted=True)
        assert got.shift[5] < -1000
        assert np.abs(got.gradient[5]).max() > 0
        with mc.options(engine="blocked"):
            expected = fields(
                mc.Gaussian(0.5).program, X, Y, coef, order=1, paired=True, shifted=True
            )
        assert_allclose(got.gradient[5], expected.gradient[5], rtol=1e-9)


@compiled
def test_coefficients_of_pairs_are_checked(rng):
    X, out = rng.normal(size=(9, 2)), [np.empty((5, 1))]
    steps, result = tape(mc.Gaussian(1.0).program.profile)
    program = core().Program64(X, list(steps), result, 2, "")
    program.set_coef(0, np.ones((9, 1)))
    width = program.panel
    program.sums(X[:5], out, np.ones((9, width)))
    for pair in (np.ones((8, width)), np.ones((9, width - 1)), np.ones((9, width), np.float32)):
        with pytest.raises((TypeError, ValueError)):
            program.sums(X[:5], out, pair)


def test_small_memory_changes_nothing(rng):
    X, Y, coef = problem(rng, 700, 600)
    whole = fields(mc.Gaussian(1.0).program, X, Y, coef, order=1, paired=True)
    with mc.options(working_memory=1):
        parts = fields(mc.Gaussian(1.0).program, X, Y, coef, order=1, paired=True)
    same(parts, whole, 1e-11)
