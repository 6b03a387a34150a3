"""Sums over coordinates: the core and NumPy beside double loops, and the border between them."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import Coordinates, Dense, Program, SingleFeatures, Var, diagonal, fields, gram
from mercer.engine._compiled import core
from mercer.engine.pairs._coordinates import comparable
from tests.engine.isas import compiled, each_isa, forced

KINDS = ["minimum", "harmonic", "chi2", "differing", "equal"]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


def term(kind, x, y):
    if kind == "minimum":
        return min(x, y)
    if kind == "differing":
        return float(x != y)
    if kind == "equal":
        return float(x == y)
    if x + y == 0:
        return 0.0
    return x * y / (x + y) if kind == "harmonic" else (x - y) ** 2 / (x + y)


def naive(kind, X, Y):
    """One pair and one coordinate at a time."""
    d = len(X[0])
    share = d if kind == "equal" else 1
    return np.array([[sum(term(kind, x[c], y[c]) for c in range(d)) / share for y in Y] for x in X])


def program(kind, *maps):
    return Program((Coordinates(kind, maps),), Var(0, nonnegative=True))


def counts(rng, n, d, dtype="float64"):
    """Histograms: many zeros, many equal."""
    return rng.poisson(0.8, size=(n, d)).astype(dtype)


@each_kind
@each_dtype
@pytest.mark.parametrize(
    ("n", "m", "d"), [(1, 1, 1), (7, 24, 3), (9, 25, 2), (8, 49, 129), (33, 2, 300), (1, 97, 128)]
)
def test_against_a_double_loop(each_engine, rng, kind, dtype, n, m, d):
    X, Y = counts(rng, n, d, dtype), counts(rng, m, d, dtype)
    K = gram(program(kind), X, Y)
    assert K.dtype == dtype
    assert_allclose(
        K, naive(kind, X.tolist(), Y.tolist()), rtol=1e-6 if dtype == "float32" else 1e-13
    )


@each_kind
def test_whole_numbers_are_exact(each_engine, rng, kind):
    X, Y = rng.integers(0, 2**40, size=(2, 60, 40)).astype(float)
    X[::2, ::3] = Y[::2, ::3]
    exact = {
        "minimum": lambda: np.minimum(X[:, None], Y[None]).sum(axis=2),
        "differing": lambda: (X[:, None] != Y[None]).sum(axis=2),
        "equal": lambda: (X[:, None] == Y[None]).sum(axis=2) / 40,
    }
    if kind in exact:
        assert np.array_equal(gram(program(kind), X, Y), exact[kind]())
    K = gram(program(kind), X, Y)
    assert np.array_equal(K, gram(program(kind), Y, X).T)  # the terms are symmetric to the last bit


@compiled
@each_isa
@each_kind
@each_dtype
def test_every_instruction_set(isa, rng, kind, dtype):
    X, Y = (rng.gamma(0.5, size=(50, 131)).astype(dtype) for _ in range(2))
    with mc.options(engine="blocked"):
        expected = gram(program(kind), X, Y)
    with forced(isa):
        K = gram(program(kind), X, Y)
    assert_allclose(K, expected, rtol=2e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("kind", ["harmonic", "chi2"])
@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float64", [1e149, 1e-300, 5e-324]), ("float32", [1e37, 1e-37, 1e-44])]
)
def test_zero_over_zero_and_the_ends_of_the_range(each_engine, kind, dtype, sizes):
    """Nothing overflows on the way to a result that does not, and 0 / 0 is 0."""
    for size in sizes:
        X = np.array([[0.0], [size], [0.5 * size], [3.0 * size]], dtype=dtype)
        K = gram(program(kind), X, X).astype(float)
        x = X[:, 0].astype(float)
        expected = naive(kind, [[a / size] for a in x], [[a / size] for a in x])
        assert K[0, 0] == 0.0
        if size > 1e-40:  # subnormal numbers have few digits
            assert_allclose(K / size, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
        assert np.isfinite(K).all()


@each_kind
@each_dtype
def test_the_diagonal(each_engine, rng, kind, dtype):
    X = counts(rng, 30, 17, dtype)
    closed = {"minimum": X.sum(axis=1), "harmonic": X.sum(axis=1) / 2, "equal": np.ones(30)}
    expected = closed.get(kind, np.zeros(30))
    found = diagonal(program(kind), X)
    assert found.dtype == dtype
    assert np.array_equal(found, expected.astype(dtype))
    assert_allclose(np.diag(gram(program(kind), X, X)), expected, rtol=1e-6)


@each_kind
def test_maps_come_first(each_engine, rng, kind):
    X, Y = counts(rng, 30, 5), counts(rng, 20, 5)
    moved = program(kind).mapped((mc.Columns([3, 0]),))
    chosen = np.ascontiguousarray(X[:, [3, 0]]), np.ascontiguousarray(Y[:, [3, 0]])
    assert moved == program(kind, mc.Columns([3, 0]))
    assert np.array_equal(gram(moved, X, Y), gram(program(kind), *chosen))
    assert np.array_equal(diagonal(moved, X), diagonal(program(kind), chosen[0]))
    assert np.array_equal(gram(moved, np.asfortranarray(X), Y[::-1]), gram(moved, X, Y)[:, ::-1])


@each_kind
def test_sums(each_engine, rng, kind):
    """Dense coefficients, one element per query, and features at their queries."""
    X, Y, A = counts(rng, 700, 3), counts(rng, 300, 3), rng.normal(size=(700, 2))
    K = gram(program(kind), Y, X)
    assert_allclose(fields(program(kind), X, Y, Dense(A)).value, K @ A, rtol=1e-11, atol=1e-11)
    B = rng.normal(size=(700, 300))
    paired = fields(program(kind), X, Y, Dense(B), paired=True).value
    assert_allclose(paired, (K.T * B).sum(axis=0), rtol=1e-10, atol=1e-10)
    pick, ones = rng.integers(0, 700, size=300), np.ones(300)
    features = fields(program(kind), X, Y, SingleFeatures(pick, ones, 700), paired=True).value
    assert_allclose(features, K[np.arange(300), pick], rtol=1e-13)


def test_programs_share_and_normalise(rng):
    X = counts(rng, 20, 4) + 0.5
    both = program("minimum") + program("minimum") * program("chi2")
    assert both.variables == (Coordinates("minimum"), Coordinates("chi2"))
    K, C = naive("minimum", X, X), naive("chi2", X, X)
    assert_allclose(gram(both, X, X), K + K * C, rtol=1e-13)
    assert_allclose(diagonal(both, X), X.sum(axis=1), rtol=1e-13)
    for kind, total in (("minimum", X.sum(axis=1)), ("harmonic", X.sum(axis=1) / 2)):
        expected = naive(kind, X, X) / np.sqrt(np.outer(total, total))
        unit = program(kind).normalised()
        assert_allclose(gram(unit, X, X), expected, rtol=1e-13)
        assert_allclose(diagonal(unit, X), np.ones(20), rtol=1e-13)
        assert_allclose(diagonal(unit.mapped((mc.Columns([1]),)), X), np.ones(20), rtol=1e-13)


def test_no_derivatives_and_no_engine_but_the_blocked_one(rng):
    X = counts(rng, 4, 2)
    assert not program("chi2").has_derivatives
    with pytest.raises(mc.exceptions.DerivativeError, match="values only"):
        mc.engine.pairwise_derivative(program("chi2"), X, X)
    with mc.options(engine="native"), pytest.raises(mc.InputError, match="cannot run this"):
        gram(program("chi2"), X, X)


def test_sparse_points_are_refused_with_a_cure(rng):
    from scipy.sparse import csr_array

    X = counts(rng, 4, 2)
    for pair in ((csr_array(X), X), (X, csr_array(X))):
        with pytest.raises(mc.InputError, match=r"use X.toarray\(\)"):
            gram(program("minimum"), *pair)


def test_nothing_depends_on_the_number_of_threads(rng):
    X, Y, A = rng.gamma(1.0, size=(2000, 6)), rng.gamma(1.0, size=(900, 6)), rng.normal(size=2000)
    results = []
    for jobs in (1, 2):
        with mc.options(n_jobs=jobs):
            results.append(fields(program("chi2"), X, Y, Dense(A[:, None])).value)
    assert np.array_equal(*results)


# --- objects --------------------------------------------------------------------------------------

LABELS = ["a", "b", "1", 1, 1.0, True, 2, None, (1, 2), b"a", 2.5, frozenset("a")]


@pytest.mark.parametrize("kind", ["differing", "equal"])
def test_objects_are_compared_as_python_does(each_engine, rng, kind):
    def draw(n):
        out = np.empty((n, 3), dtype=object)
        for i, j in np.ndindex(n, 3):
            out[i, j] = LABELS[rng.integers(len(LABELS))]
        return out

    X, Y = draw(40), draw(30)
    expected = naive(kind, X, Y)
    assert_allclose(gram(program(kind), X, Y), expected, rtol=1e-15)
    assert np.array_equal(gram(program(kind), X, X), gram(program(kind), X, X.copy()))
    assert np.array_equal(diagonal(program(kind), X), np.full(40, float(kind == "equal")))
    same = fields(program(kind), X, Y, SingleFeatures(np.arange(30), np.ones(30), 40), paired=True)
    assert_allclose(same.value, np.diag(expected), rtol=1e-15)
    numbers = np.array([[1.0, 2.0, 2.5], [1.0, 1.0, 1.0]])
    assert_allclose(gram(program(kind), X, numbers), naive(kind, X, numbers.tolist()), rtol=1e-15)


def test_one_type_and_one_layout_for_both(rng):
    X, Y = counts(rng, 5, 4, "float32"), counts(rng, 6, 4)
    x, y = comparable(X, Y)
    assert x.dtype == y.dtype == np.float64
    x, y = comparable(Y[:, ::2])
    assert x is y
    assert x.flags.c_contiguous
    labels = Y.astype(object)
    x, y = comparable(labels)
    assert x is y
    assert x.dtype == np.float64
    assert gram(program("differing"), X, Y).dtype == np.float64


# --- the border of the core -----------------------------------------------------------------------


@compiled
@each_dtype
def test_what_does_not_fit_is_refused(rng, dtype):
    X, Y, out = counts(rng, 5, 3, dtype), counts(rng, 4, 3, dtype), np.zeros((4, 5), dtype)
    run = core().coordinate_sums
    other = "float32" if dtype == "float64" else "float64"
    locked = out.copy()
    locked.flags.writeable = False
    for wrong in (
        (-1, Y, X, out, ""),
        (5, Y, X, out, ""),
        (0, Y[:, :2].copy(), X, out, ""),
        (0, Y, X, out[:, :4], ""),
        (0, Y, X, out[:3], ""),
        (0, Y, X, out.T.copy().T, ""),
        (0, Y, X, out[:, ::-1], ""),
        (0, Y, X, out[::-1], ""),
        (0, Y, X, np.broadcast_to(out[:1], (4, 5)), ""),
        (0, Y, X, np.lib.stride_tricks.as_strided(out, (4, 5), (out.itemsize, out.itemsize)), ""),
        (0, Y, X, locked, ""),
        (0, Y, X, out.astype(other), ""),
        (0, Y.astype(other), X, out, ""),
        (0, Y, X.astype(int), out, ""),
        (0, np.asfortranarray(Y), X, out, ""),
        (0, Y, X[::-1], out, ""),
        (0, Y, X[0], out, ""),
        (0, Y, X.tolist(), out, ""),
        (0, Y, X, out, "abacus"),
        ("minimum", Y, X, out, ""),
    ):
        with pytest.raises((TypeError, ValueError)):
            run(*wrong)
    assert not out.any()


@compiled
@each_dtype
def test_only_the_tile_is_written(rng, dtype):
    """Rows of the output may lie apart; what is between them is not touched. Nothing is nothing."""
    X, Y = counts(rng, 29, 130, dtype), counts(rng, 11, 130, dtype)
    wide = np.full((13, 40), np.nan, dtype)
    core().coordinate_sums(0, Y, X, wide[1:12, 5:34], "")
    assert_allclose(wide[1:12, 5:34], naive("minimum", Y.tolist(), X.tolist()), rtol=1e-6)
    wide[1:12, 5:34] = np.nan
    assert np.isnan(wide).all()
    core().coordinate_sums(0, Y[:0], X, np.zeros((0, 29), dtype), "")
    core().coordinate_sums(0, Y, X[:0], np.zeros((11, 0), dtype), "")
    with pytest.raises(ValueError, match="must have columns"):
        core().coordinate_sums(0, Y[:, :0].copy(), X[:, :0].copy(), np.ones((11, 29), dtype), "")


@compiled
def test_several_threads_at_once(rng):
    X, Y = rng.gamma(1.0, size=(200, 40)), rng.gamma(1.0, size=(150, 40))
    outs = [np.zeros((150, 200)) for _ in range(4)]
    threads = [
        threading.Thread(target=core().coordinate_sums, args=(2, Y, X, out, "")) for out in outs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(out, outs[0]) for out in outs)
    assert_allclose(outs[0], naive("chi2", Y, X), rtol=1e-13)
