"""Dask arrays and dataframes: the same results as in memory (the other files have more cases)."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import mercer as mc
from mercer._chunks import LocalChunks, as_chunks
from mercer.exceptions import InputError
from mercer.methods import hsic, ksd, mmd

da = pytest.importorskip("dask.array")

rng = np.random.default_rng(0)
X, Y, w = rng.normal(size=(120, 2)), rng.normal(size=(90, 2)), rng.random(120)
k = mc.Gaussian(1.2)


def test_an_element_is_evaluated_on_the_cluster_and_the_result_is_lazy(cut):
    known = mc.Element(k, X, w)
    for psi in (known, mc.Element(k, cut(X), w), mc.Element(k, cut(X), cut(w))):
        found = psi(cut(Y))
        assert isinstance(found, da.Array)
        assert found.chunks == ((30, 60),)
        np.testing.assert_allclose(found.compute(), known(Y), rtol=1e-12)
    psi = mc.Element(k, cut(X), w)
    np.testing.assert_allclose(psi(Y), known(Y), rtol=1e-12)
    np.testing.assert_allclose(psi.gradient(cut(Y)).compute(), known.gradient(Y), atol=1e-10)
    assert psi.norm() == pytest.approx(known.norm(), rel=1e-12)


def test_without_a_client_dask_runs_in_this_process():
    """In a fresh process, where nothing has imported `distributed` before."""
    code = """
import dask.array as da, numpy as np
import mercer as mc
X = np.random.default_rng(0).normal(size=(60, 2))
rows = da.from_array(X, chunks=(25, 2))
model, known = mc.KernelRidge(mc.Gaussian(1.0), n_landmarks=9, random_state=0), mc.Gaussian(1.0)
model.fit(rows, X[:, 0])
psi = mc.mean_embedding(known, rows)
print(np.allclose(psi(X), mc.mean_embedding(known, X)(X)), model.predict(rows).compute().shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True (60,)\n", "")


def test_float32_stays_float32(cut):
    psi = mc.mean_embedding(k, cut(X.astype(np.float32)))
    found = psi(cut(Y.astype(np.float32)))
    assert found.dtype == found.compute().dtype == np.float32
    np.testing.assert_allclose(found.compute(), mc.mean_embedding(k, X)(Y), rtol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "Float32", "float32[pyarrow]", "Float64"])
def test_types_of_dataframes_are_those_in_memory(kind, cluster):
    pytest.importorskip("pyarrow")
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("ab")).astype(kind)
    model = mc.KernelPCA(2, kernel=k, n_landmarks=20, random_state=0)
    known = model.fit(frame).transform(frame)
    rows = dd.from_pandas(frame, npartitions=3)
    found = model.fit(rows).transform(rows)
    assert found.dtype == found.compute().dtype == known.dtype


def test_sparse_chunks_are_refused_by_estimators(cut):
    rows = cut(X).map_blocks(csr_array)
    with pytest.raises(InputError, match="sparse chunks"):
        mc.KernelPCA(2, kernel=k, n_landmarks=20).fit(rows)


def test_missing_values_are_said_to_be_in_a_chunk(cut):
    rows = cut(np.where(np.arange(len(X))[:, None] == 77, np.nan, X))
    for fit in (
        mc.KernelPCA(2, kernel=k, n_landmarks=20).fit,
        lambda rows: mc.mean_embedding(k, rows).norm(),
    ):
        with pytest.raises(InputError, match=r"a chunk of X contains NaN .* at \(37, 0\)"):
            fit(rows)


def test_chunks_along_columns_are_joined_and_weights_may_be_cut_elsewhere(cluster):
    rows = da.from_array(X, chunks=(70, 1))
    found = mc.mean_embedding(k, rows, weights=da.from_array(w, chunks=77))(Y)
    np.testing.assert_allclose(found, mc.mean_embedding(k, X, weights=w)(Y), rtol=1e-12)


def test_errors_of_pieces_reach_the_user(cut):
    bad = X.copy()
    bad[100, 1] = np.inf
    with pytest.raises(InputError, match="points contains infinity"):
        mc.Element(k, cut(bad), w)(Y)
    with pytest.raises(InputError, match="must have 120 rows"):
        mc.Element(k, cut(X), cut(w[:80]))
    with pytest.raises(InputError, match="no rows"):
        mc.mean_embedding(k, cut(X)[:0])
    with pytest.raises(InputError, match="all rows in memory"):
        mc.SVR().fit(X, cut(w))


def test_chunks_of_other_shapes_than_dask_says_are_refused(cluster):
    rows = da.from_array(X, chunks=(60, 2)).map_blocks(lambda x: x[x[:, 0] > 0.0], dtype=float)
    with pytest.raises(InputError, match=r"but Dask says \(60, 2\)"):
        mc.mean_embedding(k, rows)(Y)


def test_dask_collections_and_files_do_not_mix(cluster):
    rows, files = da.from_array(X, chunks=(60, 2)), LocalChunks.of(X, 50)
    for mixed in (
        lambda: mmd(k, rows, files),
        lambda: mc.mean_embedding(k, rows)(files),
        lambda: mc.mean_embedding(k, files)(rows),
        lambda: mc.mean_embedding(k, files, weights=da.from_array(w, chunks=50)),
    ):
        with pytest.raises(InputError, match="others in pieces of files"):
            mixed()


def test_dataframes_of_unknown_length(cluster):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    some = dd.from_pandas(frame, npartitions=2)
    some, kept = some[some.a > 0.0], X[X[:, 0] > 0.0]
    found = mc.mean_embedding(k, some)(Y)
    np.testing.assert_allclose(found, mc.mean_embedding(k, kept)(Y), rtol=1e-12)
    model = mc.KernelPCA(3, kernel=k, n_landmarks=20, random_state=0).fit(some)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(some.rename(columns={"a": "c"}))
    with pytest.raises(InputError, match="columns that are not numeric: t"):
        mc.mean_embedding(k, dd.from_pandas(frame.assign(t="text"), npartitions=2))


def test_names_of_columns_are_compared(cluster):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    rows = dd.from_pandas(frame, npartitions=2)
    psi, other = mc.mean_embedding(k, rows), rows[["b", "a"]]
    assert psi.header.names == ("a", "b")
    for refused in (
        lambda: mc.mmd_test(rows, other, kernel=k),
        lambda: mc.mmd_test(rows, frame[["b", "a"]], kernel=k),
        lambda: mmd(k, rows, other),
        lambda: psi(other),
    ):
        with pytest.raises(InputError, match="the same columns in different orders"):
            refused()
    np.testing.assert_allclose(psi(rows).compute(), psi(X), rtol=1e-12)
    test = mc.mmd_test(rows, X[::2], kernel=k, n_permutations=9, random_state=0)
    assert test.witness.header.names == ("a", "b")


def test_fits_are_shown_without_their_labels(cut):
    model = mc.MeanShift(bandwidth=1.0, seeds=X[:5], labels="nearest").fit(cut(X))
    assert "rows of each cluster" not in model._summary().facts
    assert model._summary().facts["rows"] == "120"
    assert "MeanShift" in model._repr_html_()
    assert "120" in mc.report(model).html()


def test_pairs_of_pieces_of_a_symmetric_function(cut):
    rows = as_chunks(cut(X)).each([0, 1])
    pairs = rows.crossed(rows, pair, add=list.__add__, half=True)
    assert pairs.total(list) == [(0, 0), (0, 1), (1, 1)]


def pair(_x, i, _y, j):
    return [(i, j)]


def test_kernel_pca(cut):
    Z = X * [1.0, 30.0]
    options = {"n_landmarks": 30, "random_state": 0, "scale_columns": "std"}
    known = mc.KernelPCA(4, **options).fit(Z, sample_weight=w)
    model = mc.KernelPCA(4, **options).fit(cut(Z), sample_weight=cut(w))
    np.testing.assert_allclose(model.eigenvalues_, known.eigenvalues_, rtol=1e-9)
    C = model.transform(cut(Z))
    assert isinstance(C, da.Array)
    np.testing.assert_allclose(C.compute(), known.transform(Z), atol=1e-9)
    back = model.inverse_transform(C)
    np.testing.assert_allclose(back.compute(), known.inverse_transform(known.transform(Z)))
    scores = model.score_samples(cut(Z))
    np.testing.assert_allclose(scores.compute(), known.score_samples(Z), atol=1e-9)


@pytest.mark.parametrize("noise", [0.2, "auto"])
def test_denoising(cut, noise):
    t = rng.uniform(0.0, 2.0 * np.pi, 300)
    curve = np.column_stack([f(j * t) for j in (1, 2, 3) for f in (np.cos, np.sin)])
    noisy = np.hstack([curve, np.zeros((300, 10))])
    noisy += 0.2 * rng.normal(size=noisy.shape)
    options = {"n_landmarks": 60, "random_state": 0, "noise": noise}
    known = mc.KernelDenoiser(**options).fit(noisy)
    model = mc.KernelDenoiser(**options).fit(cut(noisy))
    assert known.noise_ > 0.1
    assert model.noise_ == pytest.approx(known.noise_, rel=1e-9)
    assert model.trust_ == pytest.approx(known.trust_, rel=1e-6)
    found = model.transform(cut(noisy))
    np.testing.assert_allclose(found.compute(), known.transform(noisy), atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [{"n_landmarks": 30, "random_state": 0}, {"penalty": 1.0, "solver": "cg", "tol": 1e-10}],
    ids=["landmarks", "cg"],
)
def test_kernel_ridge(cut, options):
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    known = mc.KernelRidge(k, **options).fit(X, y, sample_weight=w)
    model = mc.KernelRidge(k, **options).fit(cut(X), cut(y), sample_weight=cut(w))
    found = model.predict(cut(Y))
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), known.predict(Y), rtol=1e-6, atol=1e-8)
    score = model.score(cut(X), cut(y), sample_weight=cut(w))
    assert score == pytest.approx(known.score(X, y, sample_weight=w), rel=1e-6)
    assert model.certificate_.relative_gap < 1e-6


def test_densities_and_mean_shift(cut):
    known = mc.KernelDensity(bandwidth="scott").fit(X)
    model = mc.KernelDensity(bandwidth="scott").fit(cut(X))
    found = model.score_samples(cut(Y))
    np.testing.assert_allclose(found.compute(), known.score_samples(Y), rtol=1e-9)
    Z = X + np.repeat([[0.0], [9.0]], 60, axis=0)
    options = {"bandwidth": 1.5, "seeds": Z[::20], "labels": "nearest", "tol": 1e-4}
    clusters, own = (mc.MeanShift(**options).fit(rows) for rows in (Z, cut(Z)))
    np.testing.assert_allclose(own.cluster_centers_, clusters.cluster_centers_, atol=1e-2)
    assert isinstance(own.labels_, da.Array)
    np.testing.assert_array_equal(own.labels_.compute(), clusters.labels_)


def test_discrepancies_and_tests(cut):
    assert mmd(k, cut(X), cut(Y)) == pytest.approx(mmd(k, X, Y), rel=1e-9)
    other = X[:, :1] ** 2
    assert hsic(k, cut(X), k, cut(other)) == pytest.approx(hsic(k, X, k, other), rel=1e-9)
    law = mc.mean_embedding(mc.Gaussian(1.0), Y)
    assert ksd(k, cut(X), law) == pytest.approx(ksd(k, X, law), rel=1e-9)
    options = {"kernel": k, "n_permutations": 99, "random_state": 0}
    known, found = mc.mmd_test(X, Y + 1.0, **options), mc.mmd_test(cut(X), cut(Y + 1.0), **options)
    assert found.statistic == pytest.approx(known.statistic, rel=1e-4)
    assert found.pvalue == known.pvalue == 0.01
    assert found.effect_size == pytest.approx(known.effect_size, rel=1e-6)
    known, found = (mc.ksd_test(rows, law, **options) for rows in (X + 2.0, cut(X + 2.0)))
    assert found.statistic == pytest.approx(known.statistic, rel=1e-4)
    assert found.pvalue == known.pvalue == 0.01
    options["kernel"] = (k, k)
    known, found = (mc.hsic_test(rows, X[:, 1:], **options) for rows in (X, cut(X)))
    assert found.statistic == pytest.approx(known.statistic, rel=1e-5)
    assert found.pvalue == known.pvalue == 0.01
