"""Sums pair by pair, several queries at a time, against one pair at a time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import Dense
from mercer.engine.sums import _pairwise
from mercer.engine.sums._fields import empty_fields
from mercer.estimators import MeanShift


def sums(kernel, X, Y, A, paired, shifted):
    batch = 1 if paired else A.shape[1]
    out = empty_fields(kernel.program, len(Y), batch, X.shape[1], 2, np.float64)
    rows = np.arange(len(Y))
    _pairwise.by_differences(out, rows, kernel.program, X, Y, Dense(A), 2, paired, shifted)
    return out.only_element() if paired else out


@pytest.mark.parametrize("entries", [1, 40, 130, 1 << 20])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.3), mc.Laplace(1.0), mc.Polynomial(2)], ids=repr)
def test_sums_of_several_queries_at_a_time(kernel, paired, entries, rng, monkeypatch):
    X, Y = rng.normal(size=(11, 2)), rng.normal(size=(7, 2))
    Y[3] = X[2]
    A = rng.normal(size=(11, 7 if paired else 3))
    monkeypatch.setattr(_pairwise, "_ENTRIES", entries)
    got, shifted = (sums(kernel, X, Y, A, paired, shifted) for shifted in (False, True))
    for j, y in enumerate(Y):
        for b in [j] if paired else range(3):
            terms = [mc.Element(kernel, X[[i]], A[[i], b]) for i in range(11)]
            value, gradient = (
                sum(t(y[None])[0] for t in terms),
                sum(t.gradient(y[None])[0] for t in terms),
            )
            for f in (got, shifted):
                row, scale = (j if paired else (j, b)), np.exp(f.shift[j])
                assert_allclose(f.value[row] * scale, value, atol=1e-12)
                assert_allclose(f.gradient[row] * scale, gradient, atol=1e-11)


@pytest.mark.parametrize("paired", [False, True])
def test_blocks_of_queries_whose_weights_underflow(paired, rng, monkeypatch):
    X, Y = rng.normal(size=(11, 2)), 1e3 * rng.normal(size=(7, 2))
    A = rng.uniform(size=(11, 7 if paired else 3))
    found = []
    for entries in (1, 130):  # one pair at a time, and all points for a few queries
        monkeypatch.setattr(_pairwise, "_ENTRIES", entries)
        found.append(sums(mc.Gaussian(1.0), X, Y, A, paired, True))
    for name in ("value", "gradient", "hessian", "shift"):
        one, other = (getattr(f, name) for f in found)
        assert_allclose(one, other, rtol=1e-9)
        assert np.isfinite(one).all()
        assert one.any()


def test_queries_far_from_isolated_points_are_summed_in_blocks(rng, monkeypatch):
    """Each of thousands of queries was summed on its own: 40 seconds for 60 points."""
    calls, original = [], _pairwise.rowwise_fields

    def counted(program, X, Y, *rest):
        calls.append(len(X))
        return original(program, X, Y, *rest)

    monkeypatch.setattr(_pairwise, "rowwise_fields", counted)
    X = rng.normal(size=(12, 2))
    assert MeanShift(bandwidth=1e-8).fit(X).cluster_centers_.shape == (12, 2)
    assert max(calls) > 100
    assert len(calls) < 3000
