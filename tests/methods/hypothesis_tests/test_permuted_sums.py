"""Sums over pairs of permuted rows, by the core and by NumPy, and permutations in parts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer as mc
from mercer.engine._compiled import core
from mercer.exceptions import InputError
from mercer.methods import coco_test, hsic_test, mmd_test
from mercer.methods.hypothesis_tests import _hsic_permutations
from mercer.methods.hypothesis_tests._hsic_matrices import permuted_sums
from mercer.methods.hypothesis_tests._hsic_permutations import permutations
from mercer.methods.hypothesis_tests._resampling import Blocks
from tests.engine.isas import ISAS, compiled, forced


def matrices(n, kernels, seed=0):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(kernels, n, n)).astype(np.float32)
    return K, rng.normal(size=(n, n)).astype(np.float32)


def rows_in_random_order(n, draws):
    rows = np.tile(np.arange(n, dtype=np.int32), (draws, 1))
    return np.random.default_rng(1).permuted(rows, axis=1)


def engine(isa):
    return mc.options(engine="blocked") if isa == "NumPy" else forced(isa)


def double_loop(K, L, p):
    n = len(p)
    return sum(float(K[i, j]) * float(L[p[i], p[j]]) for i in range(n) for j in range(i + 1, n))


@pytest.mark.parametrize("isa", [*ISAS, "NumPy"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 33])
def test_sums_are_the_double_loop(isa, n):
    K, L = matrices(n, 6)
    draws = rows_in_random_order(n, 3)
    with engine(isa):
        found = permuted_sums(K, L, draws)
    expected = [[double_loop(k, L, p) for k in K] for p in draws]
    assert_allclose(found, expected, atol=1e-5 * n)


@pytest.mark.parametrize("isa", [*ISAS, "NumPy"])
def test_many_columns_are_added_in_float64(isa):
    """More columns than are summed in float32: the error must not grow with their number."""
    n = 2500
    K, L = matrices(n, 1)
    draws = rows_in_random_order(n, 2)
    with engine(isa):
        found = permuted_sums(K, L, draws)[:, 0]
    upper = np.triu(K[0].astype(float), 1)
    expected = [np.sum(upper * L.astype(float)[np.ix_(p, p)]) for p in draws]
    assert_allclose(found, expected, atol=2e-6 * n)  # of a standard deviation of about n / 1.4


def test_no_permutations_or_no_matrices():
    K, L = matrices(5, 2)
    assert permuted_sums(K, L, rows_in_random_order(5, 0)).shape == (0, 2)
    assert permuted_sums(K[:0], L, rows_in_random_order(5, 3)).shape == (3, 0)


@compiled
def test_the_core_reads_nothing_outside():
    run = core().permuted_sums
    (K, L), p, out = matrices(9, 2), rows_in_random_order(9, 3), np.empty((3, 2))
    for wrong in (-1, 9, 2**31 - 1, -(2**31)):
        bad = p.copy()
        bad[2, 8] = wrong
        with pytest.raises(ValueError, match="row numbers"):
            run(K, L, bad, out, "")
    for arrays, message in [
        ((K[:, :8].copy(), L, p, out), "n x n"),
        ((K, L[:, :8].copy(), p, out), "n x n"),
        ((K, L, p[:, :8].copy(), out), "n columns"),
        ((K, L, p, np.empty((3, 1))), "output shape"),
        ((K, L, p, np.empty((2, 2))), "output shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            run(*arrays, "")
    for arrays in [
        (K.astype(float), L, p, out),
        (K, L.T, p, out),
        (K, L, p.astype(np.int64), out),
        (K, L, p, out.astype(np.float32)),
        (K[0], L, p, out),
    ]:
        with pytest.raises(TypeError):
            run(*arrays, "")


def test_permutations_do_not_depend_on_the_order_of_the_calls():
    def drawn(order):
        parts = permutations(300, 1000, np.random.default_rng(0), None)
        out = {i: parts[i]() for i in order(range(len(parts)))}
        return np.concatenate([out[i] for i in sorted(out)])

    forward, backward = drawn(list), drawn(reversed)
    assert_array_equal(forward, backward)
    assert forward.shape == (1001, 300)
    assert_array_equal(forward[0], np.arange(300))
    assert_array_equal(np.sort(forward, axis=1), np.broadcast_to(np.arange(300), (1001, 300)))
    assert len(np.unique(forward, axis=0)) == 1001


def test_all_permutations_are_equally_likely(monkeypatch):
    """In parts of two draws each, as for many rows."""
    monkeypatch.setattr(_hsic_permutations, "_NUMBERS", 8)
    parts = permutations(4, 24_000, np.random.default_rng(0), None)
    drawn = np.concatenate([draw() for draw in parts])[1:]
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert np.sum((counts - 1000.0) ** 2 / 1000.0) < 60.0  # chi-squares, 23 degrees: p = 4e-5


def test_blocks_keep_their_rows():
    names = np.array([0, 0, 1, 1, 1, 0])
    blocks = Blocks.of(names, 6)
    for drawn in (draw() for draw in permutations(6, 50, np.random.default_rng(0), blocks)):
        assert_array_equal(names[drawn], np.broadcast_to(names, drawn.shape))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (np.zeros(5), "blocks must name"),
        ([0.0, 0.0, 1.0, np.nan, 1.0, 0.0], "missing"),
        (np.array([0.0, 0.0, 1.0, np.nan, 1.0, 0.0]), "missing"),
        (["a", "b", "a", None, "b", "a"], "missing"),
        (["a", "b", "a", np.nan, "b", "a"], "missing"),
        (pd.Series(["a", "b", "a", pd.NA, "b", "a"], dtype="string"), "missing"),
        (pd.to_datetime(["2020-01-01", "2020-01-02", None] * 2), "missing"),
        (["a", "b", 1, 1, "b", "a"], "mixes int and str"),
    ],
)
@pytest.mark.parametrize("test", [hsic_test, mmd_test, coco_test])
def test_blocks_need_names(names, message, test):
    X, Y = np.random.default_rng(0).normal(size=(2, 6, 1))
    if test is mmd_test:
        X, Y = X[:2], X[2:]
    with pytest.raises(InputError, match=message):
        test(X, Y, blocks=names, n_permutations=5, random_state=0)


def test_names_of_blocks_may_be_of_any_type():
    days = pd.to_datetime(["2020-01-01", "2020-01-02"] * 3)
    for names in (
        [True, False] * 3,
        [1, 2.5] * 3,
        ("a", "b") * 3,
        pd.Categorical(list("ab") * 3),
        days,
    ):
        assert [list(rows) for rows in Blocks.of(names, 6).rows] in (
            [[0, 2, 4], [1, 3, 5]],
            [[1, 3, 5], [0, 2, 4]],
        )
    assert Blocks.of(["a"] * 6, 6) is None


@pytest.mark.parametrize("kernel", ["median", (mc.Laplace(1.0), mc.Laplace(1.0))], ids=str)
def test_results_do_not_depend_on_the_number_of_threads(kernel):
    X, Y = np.random.default_rng(0).normal(size=(2, 400, 1))
    results = []
    for jobs in (1, 2, 3):
        with mc.options(n_jobs=jobs):
            results.append(hsic_test(X, Y, kernel=kernel, n_permutations=500, random_state=0))
    for other in results[1:]:
        assert_array_equal(results[0].null_statistics, other.null_statistics)
        assert results[0].effect_interval == other.effect_interval


def test_numpy_and_the_core_give_the_same_p_value():
    X, Y = np.random.default_rng(0).normal(size=(2, 150, 3))
    first = hsic_test(X, Y, n_permutations=200, random_state=0)
    with mc.options(engine="blocked"):
        second = hsic_test(X, Y, n_permutations=200, random_state=0)
    assert abs(first.pvalue - second.pvalue) <= 2 / 201
