"""Kernel sums, kernel PCA and denoising of Dask arrays: as in memory, to 1e-9."""

import numpy as np
import pytest

import mercer as mc
from mercer._chunks import as_chunks
from mercer.exceptions import InputError

da = pytest.importorskip("dask.array")

rng = np.random.default_rng(0)
X, Y, w = rng.normal(size=(300, 2)), rng.normal(size=(200, 2)), rng.random(300)
k = mc.Gaussian(1.2)


def test_an_element_is_evaluated_on_the_cluster_and_the_result_is_lazy(cut):
    known = mc.Element(k, X, w)
    for psi in (known, mc.Element(k, cut(X), w), mc.Element(k, cut(X), cut(w))):
        found = psi(cut(Y))
        assert isinstance(found, da.Array)
        assert found.chunks == ((100, 66, 34),)
        np.testing.assert_allclose(found.compute(), known(Y), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(psi(Y)), known(Y), rtol=1e-12)
        np.testing.assert_allclose(psi.gradient(cut(Y)).compute(), known.gradient(Y), atol=1e-10)
    assert mc.Element(k, cut(X), w).norm() == pytest.approx(known.norm(), rel=1e-12)


def test_float32_stays_float32(cut):
    psi = mc.mean_embedding(k, cut(X.astype(np.float32)))
    found = psi(cut(Y.astype(np.float32)))
    assert found.dtype == found.compute().dtype == np.float32
    np.testing.assert_allclose(found.compute(), mc.mean_embedding(k, X)(Y), rtol=1e-5)


def test_chunks_along_columns_are_joined(cluster):
    rows = da.from_array(X, chunks=(100, 1))
    found = mc.mean_embedding(k, rows, weights=da.from_array(w, chunks=77))(Y)
    np.testing.assert_allclose(found, mc.mean_embedding(k, X, weights=w)(Y), rtol=1e-12)


def test_errors_of_pieces_reach_the_user(cut):
    bad = X.copy()
    bad[250, 1] = np.inf
    with pytest.raises(InputError, match="points contains infinity"):
        mc.Element(k, cut(bad), w)(Y)
    with pytest.raises(InputError, match="must have 300 rows"):
        mc.Element(k, cut(X), cut(w[:200]))
    with pytest.raises(InputError, match="no rows"):
        mc.mean_embedding(k, cut(X)[:0])


def test_dataframes_of_unknown_length(cluster):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    some = dd.from_pandas(frame, npartitions=3)
    some = some[some.a > 0.0]
    kept = X[X[:, 0] > 0.0]
    found = mc.mean_embedding(k, some)(Y)
    np.testing.assert_allclose(found, mc.mean_embedding(k, kept)(Y), rtol=1e-12)
    model = mc.KernelPCA(3, kernel=k, n_landmarks=40, random_state=0).fit(some)
    known = mc.KernelPCA(3, kernel=k, n_landmarks=40, random_state=0).fit(kept)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(model.eigenvalues_, known.eigenvalues_, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(some.rename(columns={"a": "c"}))
    with pytest.raises(InputError, match="columns that are not numeric: t"):
        mc.mean_embedding(k, dd.from_pandas(frame.assign(t="text"), npartitions=2))


@pytest.mark.parametrize("scale", ["none", "std", "auto"])
@pytest.mark.parametrize("weights", [None, w], ids=["equal", "weighted"])
def test_kernel_pca(cut, weights, scale):
    Z = X * [1.0, 30.0]
    options = {"n_landmarks": 50, "random_state": 0, "scale_columns": scale}
    known = mc.KernelPCA(4, **options).fit(Z, sample_weight=weights)
    parts = None if weights is None else cut(weights)
    model = mc.KernelPCA(4, **options).fit(cut(Z), sample_weight=parts)
    assert model.kernel_.length_scale == pytest.approx(known.kernel_.length_scale, rel=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, known.eigenvalues_, rtol=1e-9)
    assert model.variance_ == pytest.approx(known.variance_)
    C = model.transform(cut(Z))
    assert isinstance(C, da.Array)
    np.testing.assert_allclose(C.compute(), known.transform(Z), atol=1e-9)
    back = model.inverse_transform(C)
    np.testing.assert_allclose(back.compute(), known.inverse_transform(C.compute()), rtol=1e-9)
    np.testing.assert_allclose(
        model.score_samples(cut(Z)).compute(), known.score_samples(Z), atol=1e-9
    )


def test_kernel_pca_function_and_batches(cut):
    plane = mc.kernel_pca(k, cut(X), 3, n_landmarks=30, random_state=0)
    known = mc.kernel_pca(k, X, 3, n_landmarks=30, random_state=0)
    np.testing.assert_allclose(plane.eigenvalues, known.eigenvalues, rtol=1e-9)
    model = mc.KernelPCA(3, kernel=k, n_landmarks=30, random_state=0)
    model.fit(cut(X)).partial_fit(cut(Y))
    other = mc.KernelPCA(3, kernel=k, n_landmarks=30, random_state=0).fit(X).partial_fit(Y)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)


def test_denoising(cut):
    t = rng.uniform(0.0, 2.0 * np.pi, 400)
    curve = np.column_stack([f(j * t) for j in (1, 2, 3) for f in (np.cos, np.sin)])
    noisy = curve + 0.2 * rng.normal(size=curve.shape)
    options = {"n_landmarks": 60, "random_state": 0}
    for noise in (0.2, "auto"):
        known = mc.KernelDenoiser(noise=noise, **options).fit(noisy)
        model = mc.KernelDenoiser(noise=noise, **options).fit(cut(noisy))
        assert model.noise_ == pytest.approx(known.noise_, rel=1e-9)
        assert model.trust_ == pytest.approx(known.trust_, rel=1e-6)
        found = model.transform(cut(noisy))
        np.testing.assert_allclose(found.compute(), known.transform(noisy), atol=1e-7)


def test_what_needs_all_rows_says_so(cut):
    for refused in (
        lambda: mc.SVC().fit(cut(X), w > 0.5),
        lambda: mc.KernelNovelty().fit(cut(X)),
        lambda: mc.SVR().fit(X, cut(w)),
        lambda: mc.kernel_pca(k, cut(X), 2),
        lambda: mc.convergence_bandwidth(k, cut(X)),
        lambda: mc.preimage(mc.mean_embedding(k, cut(X))),
        lambda: np.asarray(as_chunks(cut(X))),
    ):
        with pytest.raises(InputError, match="all rows in memory"):
            refused()
