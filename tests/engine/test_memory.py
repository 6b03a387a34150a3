"""Kernel sums need memory for tiles, never for the matrix."""

import tracemalloc

import numpy as np
import pytest

import mercer as mc
from mercer.engine import Dense, LowRank, SingleFeatures, fields

pytestmark = pytest.mark.usefixtures("each_engine")

MIB = 2**20


def peak(call) -> float:
    """MiB that NumPy arrays take at most during a call, on top of what was there."""
    mc.Gaussian()(np.ones((2, 2)))  # pools and caches are not what is measured
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return (tracemalloc.get_traced_memory()[1] - before) / MIB
    finally:
        tracemalloc.stop()


def sum_over(X, Y=None):
    Y = X if Y is None else Y
    fields(mc.InverseMultiquadric(1.0, 1.0).program, X, Y, Dense(np.ones((len(X), 1))))


def test_thirty_thousand_by_thirty_thousand(rng, each_engine):
    """The matrix would take 3,433 MiB (a third of that on NumPy tiles, to save time)."""
    X = rng.normal(size=(30_000, 2)).astype(np.float32)
    Y = X[:10_000] if each_engine == "blocked" else X
    assert peak(lambda: sum_over(X, Y)) < 40


@pytest.mark.parametrize("each_engine", ["blocked"], indirect=True)
@pytest.mark.parametrize("d", [2, 5])
def test_working_memory_is_obeyed(d, rng):
    X = rng.normal(size=(5_000, d))
    copies = 3 * X.nbytes / MIB  # centred points, and results
    used = {}
    for limit in (64, 8, 1):
        with mc.options(working_memory=limit):
            used[limit] = peak(lambda: sum_over(X))
        assert used[limit] < 1.5 * limit + copies
    assert used[8] < used[64] / 1.5
    assert used[1] < used[8] / 2


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kernel", [mc.Gaussian(), mc.Gaussian() * mc.Polynomial(2)], ids=repr)
def test_derivatives_obey_it_too(kernel, order, rng):
    X, A = rng.normal(size=(1_500, 8)), rng.normal(size=(1_500, 2))
    results = 3 * 1_500 * 2 * sum(8**k for k in range(order + 1)) * 8 / MIB
    with mc.options(working_memory=8):
        used = peak(lambda: fields(kernel.program, X, X, Dense(A), order=order))
    assert used < 8 + results + 8 * X.nbytes / MIB


def test_derivatives_with_many_points(rng):
    """Products of coordinates of all points would take 78 numbers for each."""
    X, Y = rng.normal(size=(40_000, 12)), rng.normal(size=(50, 12))
    with mc.options(working_memory=8):
        used = peak(
            lambda: fields(mc.Gaussian().program, X, Y, Dense(np.ones((40_000, 1))), order=2)
        )
    assert used < 8 + 6 * X.nbytes / MIB


def test_coefficients_are_not_written_out(rng):
    """A batch of 5,000 features or projections: (n, b) would take 191 MiB."""
    n = 5_000
    X = rng.normal(size=(n, 3))
    program = mc.Gaussian().program
    selection = SingleFeatures(np.arange(n), np.ones(n), n)
    assert peak(lambda: fields(program, X, X, selection, order=1, paired=True)) < 10
    projection = LowRank(rng.normal(size=(n, 4)), rng.normal(size=(4, n)))
    assert peak(lambda: fields(program, X, X, projection, order=0, paired=True)) < 60


def test_repaired_distances_are_bounded(rng):
    """Laplace recomputes close pairs; here all pairs are close."""
    X = 1e3 + 1e-9 * rng.normal(size=(1_500, 20))
    with mc.options(working_memory=16):
        used = peak(lambda: fields(mc.Laplace().program, X, X, Dense(np.ones((1_500, 1)))))
    assert used < 40
