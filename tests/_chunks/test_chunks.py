"""Rows in pieces of one process; tests/dask runs the same on a cluster."""

import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import mercer as mc
from mercer._checkpoint import checkpointed
from mercer._chunks import LocalChunks, _local, _samples, sampled
from mercer.exceptions import InputError, UnavailableError

rng = np.random.default_rng(0)
X, w = rng.normal(size=(100, 3)), rng.random(100)


def moments(x, weights, shift):
    return {"mass": weights.sum(), "sums": (weights @ (x + shift), x.T @ x)}


def test_a_total_of_several_columns():
    rows = LocalChunks.of(X, 30).zip(w)
    assert rows.sizes == (30, 30, 30, 10)
    found = rows.total(moments, 2.0)
    assert found["mass"] == pytest.approx(w.sum())
    np.testing.assert_allclose(found["sums"][0], w @ (X + 2.0))
    np.testing.assert_allclose(found["sums"][1], X.T @ X)


def test_chosen_rows_come_in_the_order_asked_for():
    rows = LocalChunks.of(X, 30)
    np.testing.assert_array_equal(rows.rows([99, 0, 31, 30, 0]), X[[99, 0, 31, 30, 0]])
    sample, weights = sampled(rows, rows.zip(w[:, None]).only(1))
    np.testing.assert_array_equal(sample, X)
    np.testing.assert_array_equal(weights, w)


def test_functions_of_pieces_and_of_pairs_of_pieces():
    rows = LocalChunks.of(X, 30)
    doubled = rows.mapped(lambda x, c: c * x, 2.0, tail=(3,), dtype=float)
    np.testing.assert_array_equal(doubled.collected(), 2.0 * X)
    other = rows.zip(w).concat(rows.zip(w))
    pairs = rows.crossed(other, lambda x, y, v: x @ y.T @ v, dtype=float)
    np.testing.assert_allclose(pairs.collected(), 2.0 * X @ (X.T @ w))


def test_pairs_of_pieces_of_a_symmetric_function():
    read = []

    def piece(i):
        read.append(i)
        return X[30 * i : 30 * i + 30]

    rows = LocalChunks.reading([30, 30, 30, 10], (3,), np.float64, piece).each(range(4))
    pairs = rows.crossed(rows, lambda x, i, y, j: [(i, j)], add=list.__add__, half=True)
    found = pairs.total(list)
    assert found == [(i, j) for i in range(4) for j in range(i, 4)]
    assert len(read) == 4 + 10


class Array:
    """An array of another library: its class has Dask's protocol, this one is in memory."""

    def __init__(self, array, graph):
        self.array, self.graph, self.shape = array, graph, array.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        return Array(self.array[rows], self.graph)

    def __dask_graph__(self):
        return self.graph


def test_arrays_of_other_libraries_are_in_pieces_if_they_have_a_graph():
    k = mc.Gaussian(1.0)
    psi = mc.mean_embedding(k, Array(X, None))
    np.testing.assert_array_equal(psi(X), mc.mean_embedding(k, X)(X))
    rows = LocalChunks.of(X, 30)
    options = {"n_landmarks": 5, "random_state": 0, "penalty": 1.0}
    found, known = (mc.KernelRidge(k, **options).fit(rows, y) for y in (Array(w, None), w))
    np.testing.assert_array_equal(found.predict(X), known.predict(X))
    with pytest.raises(InputError, match="in pieces of files"):
        rows.zip(Array(w, {}))
    with pytest.raises(InputError):
        mc.mean_embedding(k, Array(X, {}))


def test_without_dask_its_collections_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "mercer._chunks._dask", None)
    with pytest.raises(UnavailableError, match=r"X needs Dask: pip install 'mercer\[dask\]'"):
        mc.mean_embedding(mc.Gaussian(1.0), Array(X, {}))


def test_columns_in_other_pieces_are_cut_anew():
    rows = LocalChunks.of(X, 30).zip(LocalChunks.of(X, 7).zip(LocalChunks.of(w, 7)))
    found = rows.total(lambda x, y, v: [float(np.abs(x - y).max()), float(v @ x[:, 0])])
    assert max(found[::2]) == 0.0
    assert sum(found[1::2]) == pytest.approx(w @ X[:, 0])


@pytest.mark.parametrize("bad", [None, 2.0, np.float64(2.0)])
def test_a_column_that_has_no_rows_is_refused(bad):
    with pytest.raises(InputError, match="y must have 100 rows, got"):
        mc.KernelRidge(mc.Gaussian(1.0), n_landmarks=5).fit(LocalChunks.of(X, 30), bad)


def test_samples_leave_out_rows_of_weight_zero(monkeypatch):
    """Otherwise rare rows of positive weight would hardly be in them."""
    monkeypatch.setattr(_samples, "SAMPLE_ROWS", 5)
    few = np.where(np.arange(100) % 33 == 32, w, 0.0)
    rows = LocalChunks.of(X, 30)
    sample, weights = sampled(rows, rows.zip(few[:, None]).only(1))
    np.testing.assert_array_equal(sample, X[few > 0.0])
    np.testing.assert_array_equal(weights, few[few > 0.0])
    known = mc.KernelDensity(bandwidth="scott").fit(X, sample_weight=few)
    model = mc.KernelDensity(bandwidth="scott").fit(rows, sample_weight=few)
    assert model.kernel_.length_scale == pytest.approx(known.kernel_.length_scale, rel=1e-12)
    options = {"kernel": mc.Gaussian(1.0), "n_landmarks": 5, "random_state": 0, "penalty": 1.0}
    for fit in (
        lambda v: mc.KernelPCA(2, kernel=mc.Gaussian(1.0), n_landmarks=5).fit(rows, None, v),
        lambda v: mc.KernelRidge(**options).fit(rows, w, v),
    ):
        fit(few)
        with pytest.raises(InputError, match="weights must not all be zero"):
            fit(np.zeros(100))


def test_pieces_of_a_file_are_read_when_they_are_needed_and_empty_ones_are_left_out():
    read = []

    def piece(i):
        read.append(i)
        return X[10 * i : 10 * i + 10]

    rows = LocalChunks.reading([10, 0, 10], (3,), np.float64, piece)
    numbered = rows.each([5, 7])
    assert not read
    assert rows.shape == (20, 3)
    assert numbered.total(lambda x, i: i * len(x)) == 120
    assert read == [0, 2]


def test_what_needs_all_rows_refuses_pieces():
    rows = LocalChunks.of(X, 30)
    for refused in (
        lambda: np.asarray(rows),
        lambda: rows[:3],
        lambda: mc.kernel_pca(mc.Gaussian(1.0), rows, 2),
        lambda: mc.KernelImputer().fit(rows),
        lambda: mc.KernelNovelty().fit(rows),
        lambda: mc.SVC().fit(rows, w > 0.5),
        lambda: mc.Nystroem().fit(rows),
        lambda: mc.Gaussian(1.0)(rows, X),
    ):
        with pytest.raises(InputError, match="rows in memory"):
            refused()
    with pytest.raises(InputError, match="must have 100 rows"):
        rows.zip(w[:50])


# --- checkpoints ----------------------------------------------------------------------------------


class Moments(NamedTuple):
    count: int
    mean: float


@dataclass(frozen=True)
class Parts:
    array: np.ndarray
    missing: np.ndarray | None
    inner: dict


@pytest.mark.parametrize(
    "value",
    [
        np.arange(3.0), 2.5, 7, (1.0, np.eye(2)), {"a": np.ones(2), "b": (3, 4.0)},
        Moments(5, 0.1), Parts(np.ones(2), None, {"x": 1.0}),
    ],
    ids=repr,
)  # fmt: skip
def test_sums_come_back_from_their_state(value):
    state = _local._state(4, value)
    assert state["pieces"] == 4
    for name, part in state.items():
        assert name == "pieces" or isinstance(part, np.ndarray)
    again = _local._restored(state, value)
    assert type(again) is type(value) or isinstance(value, tuple)
    assert repr(again) == repr(tuple(value) if isinstance(value, tuple) else value)


def test_a_part_that_only_some_pieces_have():
    state = _local._state(1, Parts(np.ones(2), np.zeros(1), {}))
    again = _local._restored(state, Parts(np.ones(2), None, {}))
    np.testing.assert_array_equal(again.missing, [0.0])


def shifted(block, by):
    return block + by


def never(*_):
    raise AssertionError("computed")


def test_fingerprints_tell_what_rows_are_made_of(rng):
    X, w = rng.normal(size=(40, 2)), np.ones(40)
    rows = LocalChunks.of(X, 10)
    same = LocalChunks.of(X.copy(), 10)
    other = LocalChunks.of(X + np.eye(40, 2), 10)
    assert rows.fingerprint == same.fingerprint
    different = [
        rows, other, LocalChunks.of(X, 20), rows.zip(w), rows.zip(2 * w), rows.concat(same),
        rows.mapped(shifted, 1.0, tail=(2,)), rows.mapped(shifted, 2.0, tail=(2,)),
        other.mapped(shifted, 1.0, tail=(2,)), rows.crossed(rows, shifted),
        rows.crossed(other, shifted), rows.crossed(rows, shifted, half=True), rows.each(range(4)),
    ]  # fmt: skip
    assert len({one.fingerprint for one in different}) == len(different)
    assert rows.mapped(shifted, 1.0).fingerprint == same.mapped(shifted, 1.0).fingerprint
    assert rows.crossed(rows, never).fingerprint  # from its columns: nothing is computed


def test_short_sums_leave_nothing_behind(tmp_path):
    rows = LocalChunks.of(np.arange(40.0), 10)
    with mc.io.checkpoint(tmp_path / "a", every=1e3):
        place = checkpointed("other")
        assert rows.total(np.sum) == 780.0
        assert not place._store.states
