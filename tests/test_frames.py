"""Frames and series of pandas, polars and pyarrow: every estimator and function, in and out."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier, is_regressor

import mercer as mc
from mercer import estimators, linalg, methods, preimages, space, theory
from mercer._array import as_points, as_vector, as_weights
from mercer._frames import Header
from mercer.preimages import certify, preimage_objective

N = 40
NAMES = ["length", "width", "mass"]
INDEX = np.arange(N)[::-1] * 10
T = np.random.default_rng(0).uniform(0.0, 6.0, N)
X = np.column_stack([np.cos(T), np.sin(T), np.cos(2.0 * T)]).round(4)
W = np.arange(N) % 3 + 1.0
Y = np.sin(T).round(4)
LABELS = np.arange(N) % 2
K = mc.Gaussian(1.0)


def pandas_frame(A, names=NAMES, index=INDEX):
    return pd.DataFrame(A, columns=names, index=None if index is None else index[: len(A)])


def polars_frame(A, names=NAMES):
    return pl.DataFrame(A, schema=names, orient="row")


def arrow_frame(A, names=NAMES):
    return pa.table({name: A[:, j] for j, name in enumerate(names)})


FRAMES = {"pandas": pandas_frame, "polars": polars_frame, "pyarrow": arrow_frame}
SERIES = {
    "pandas": lambda v: pd.Series(v, index=np.arange(len(v))[::-1]),
    "nullable": lambda v: pd.Series(v, index=np.arange(len(v))[::-1]).convert_dtypes(),
    "polars": pl.Series,
    "pyarrow": lambda v: pa.chunked_array([v]),
    "pyarrow array": pa.array,
}
library = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
ALL = [getattr(estimators, name) for name in estimators.__all__ if name != "KernelEstimator"]
every_estimator = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
TRANSFORMERS = [cls for cls in ALL if hasattr(cls, "set_output")]


def made(cls):
    """An estimator that gives the same result again."""
    options = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    if cls is estimators.KernelDenoiser:
        options["noise"] = 0.1
    if cls is estimators.Nystroem:
        options["n_components"] = 10
    return cls(**options)


def fitted(cls, rows, wrap=np.asarray, **options):
    model = made(cls)
    if is_classifier(model):
        return model.fit(rows, wrap(LABELS), **options)
    return (
        model.fit(rows, wrap(Y), **options) if is_regressor(model) else model.fit(rows, **options)
    )


def answers(model, rows):
    """What an estimator says about rows, by the names of its methods."""
    names = ("transform", "predict", "predict_proba", "decision_function", "score_samples")
    return {n: np.asarray(getattr(model, n)(rows)) for n in names if hasattr(model, n)}


def names_of(frame):
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


# --- in: estimators -------------------------------------------------------------------------------


@library
@every_estimator
@pytest.mark.sample(2)
def test_estimators_take_frames_as_arrays(cls, make):
    expected, model = answers(fitted(cls, X), X), fitted(cls, make(X))
    assert model.feature_names_in_.tolist() == NAMES
    found = answers(model, make(X))
    assert expected
    for name, values in expected.items():
        assert type(found[name]) is np.ndarray
        assert found[name].dtype == values.dtype
        assert_allclose(found[name], values, rtol=1e-7, atol=1e-9)


@library
@every_estimator
@pytest.mark.sample(2)
def test_float32_stays_and_is_not_made_of_mixtures(cls, make):
    single = X.astype(np.float32)
    expected, found = (answers(fitted(cls, Z), Z) for Z in (single, make(single)))
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        assert_allclose(found[name], values, rtol=1e-3, atol=1e-4)


@library
@every_estimator
@pytest.mark.sample(2)
def test_columns_must_be_those_of_fit(cls, make):
    model = fitted(cls, make(X))
    ask = getattr(model, next(iter(answers(model, make(X)))))
    swapped, other = [1, 0, 2], ["length", "width", "height"]
    with pytest.raises(ValueError, match="same order as they were in fit"):
        ask(make(X[:, swapped], [NAMES[j] for j in swapped]))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- height\n.*missing:\n- mass"):
        ask(make(X, other))
    with pytest.raises(ValueError, match="yet now missing:\n- mass"):
        ask(make(X[:, :2], NAMES[:2]))
    with pytest.raises(ValueError, match="unseen at fit time:\n- more"):
        ask(make(X[:, [0, 1, 2, 2]], [*NAMES, "more"]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ask(X)
    assert not hasattr(model.fit(X, LABELS), "feature_names_in_")


@every_estimator
def test_what_is_no_number_is_refused_by_name(cls):
    frame = pl.DataFrame({"a": X[:, 0], "word": ["x"] * N})
    for bad, message in [
        (frame, "X has columns that are not numeric: word; encode them .* table_kernel"),
        (frame.lazy(), r"X is a lazy frame; .* X.collect\(\)"),
        (pd.DataFrame(X, columns=["a", "b", "a"]), "several columns with the same name: a;"),
        (pa.table([X[:, 0], X[:, 1]], names=["a", "a"]), "several columns with the same name: a;"),
        (pd.DataFrame({"a": [2**53 + 1] * N}, dtype="Int64"), r"'a' of X has integers .* 2\*\*53"),
    ]:
        with pytest.raises(mc.InputError, match=message):
            fitted(cls, bad)


@every_estimator
def test_missing_values_are_refused_by_name_or_filled(cls):
    holes = X.copy()
    holes[[1, 5], 2] = np.nan
    for frame in (pandas_frame(holes), polars_frame(holes).fill_nan(None), polars_frame(holes)):
        if cls is estimators.KernelImputer:
            assert_allclose(
                fitted(cls, frame).transform(frame), fitted(cls, holes).transform(holes)
            )
            continue
        with pytest.raises(mc.InputError, match=r"NaN .* in mass \(2\); .*KernelImputer"):
            fitted(cls, frame)


@pytest.mark.parametrize("wrap", SERIES.values(), ids=SERIES)
@every_estimator
@pytest.mark.sample(5)
def test_targets_labels_and_weights_may_be_series(cls, wrap):
    weighted = "sample_weight" in inspect.signature(cls.fit).parameters
    options = {"sample_weight": W} if weighted else {}
    expected = answers(fitted(cls, X, **options), X)
    given = {"sample_weight": wrap(W)} if weighted else {}
    found = answers(fitted(cls, X, wrap, **given), X)
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("wrap", SERIES.values(), ids=SERIES)
def test_labels_that_are_words(wrap):
    words = np.array(["yes", "no"])[LABELS]
    model = mc.SVC().fit(X, wrap(words))
    assert model.classes_.tolist() == ["no", "yes"]
    assert_array_equal(model.predict(X), mc.SVC().fit(X, words).predict(X))
    with pytest.raises(mc.InputError, match="y has 1 missing value; drop or fill"):
        mc.SVC().fit(X, wrap([None, *words[1:].tolist()]))


# --- out: estimators ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@library
@pytest.mark.parametrize("cls", TRANSFORMERS, ids=lambda cls: cls.__name__)
@pytest.mark.sample(3)
def test_set_output(cls, make, kind):
    plain, model = fitted(cls, X), fitted(cls, make(X)).set_output(transform=kind)
    out = model.transform(make(X))
    assert type(out).__module__.split(".")[0] == kind
    assert names_of(out) == model.get_feature_names_out().tolist()
    assert_allclose(out.to_numpy(), plain.transform(X), rtol=1e-7, atol=1e-9)
    from_pandas = kind == "pandas" and make is pandas_frame
    if kind == "pandas":
        assert_array_equal(out.index, INDEX if from_pandas else np.arange(N))
    if cls in (estimators.KernelDenoiser, estimators.KernelImputer):
        assert names_of(out) == NAMES
    if hasattr(model, "inverse_transform"):
        back = model.inverse_transform(out)
        assert type(back) is type(out)
        assert names_of(back) == NAMES
        assert_allclose(back.to_numpy(), plain.inverse_transform(plain.transform(X)), atol=1e-7)
        if kind == "pandas":
            assert_array_equal(back.index, out.index)
    if cls is mc.KernelPCA:
        assert model.score(make(X)) == pytest.approx(plain.score(X))


def test_without_set_output_arrays_come_back():
    model = mc.KernelPCA(2).fit(pandas_frame(X))
    assert type(model.inverse_transform(model.transform(pandas_frame(X)))) is np.ndarray


def test_pre_images_of_a_table_have_its_columns():
    table = pd.DataFrame({"age": X[:, 0], "city": np.array(["Bonn", "Rome"])[LABELS]})
    model = mc.KernelPCA(2, kernel=mc.table_kernel(table)).set_output(transform="pandas").fit(table)
    back = model.inverse_transform(model.transform(table))
    assert list(back) == ["age", "city"]
    assert set(back.city) <= {"Bonn", "Rome"}


# --- in: functions --------------------------------------------------------------------------------

MORE = X + 0.3
TESTS = {"n_permutations": 19, "random_state": 0}


def _score(Z):
    return -Z


FUNCTIONS = {
    "kernel": lambda f: K(f(X), f(MORE)),
    "diag": lambda f: K.diag(f(X)),
    "gradient": lambda f: K.gradient(f(X[:3]), f(MORE[:2])),
    "Element": lambda f: mc.Element(K, f(X), W)(f(MORE)),
    "Element.gradient": lambda f: mc.Element(K, f(X), W).gradient(f(MORE)),
    "Element.hessian": lambda f: mc.Element(K, f(X), W).hessian(f(MORE)),
    "feature": lambda f: mc.feature(K, f(X)).inner(mc.feature(K, f(MORE))),
    "mean_embedding": lambda f: mc.mean_embedding(K, f(X), weights=W)(f(MORE)),
    "covariance": lambda f: mc.covariance(K, f(X), K, f(MORE)).norm(),
    "kernel_density": lambda f: mc.kernel_density(K, f(X))(f(MORE)),
    "adaptive_density": lambda f: methods.adaptive_density(K, f(X)).log(f(MORE)),
    "kernel_pca": lambda f: mc.kernel_pca(K, f(X), 2).eigenvalues,
    "median_scale": lambda f: mc.median_scale(f(X)),
    "density_scale": lambda f: methods.density_scale(f(X)),
    "convergence_bandwidth": lambda f: mc.convergence_bandwidth(K, f(X)).value,
    "mmd": lambda f: methods.mmd(K, f(X), f(MORE)),
    "mmd_variance": lambda f: methods.mmd_variance(K, f(X), f(MORE)),
    "witness": lambda f: methods.witness(K, f(X), f(MORE))(f(X)),
    "hsic": lambda f: methods.hsic(K, f(X), K, f(MORE)),
    "coco": lambda f: methods.coco(K, f(X), K, f(MORE)),
    "dhsic": lambda f: methods.dhsic([K, K], [f(X), f(MORE)]),
    "ksd": lambda f: methods.ksd(K, f(X), _score),
    "mmd_test": lambda f: mc.mmd_test(f(X), f(MORE), **TESTS).pvalue,
    "mmd_test, kernel": lambda f: mc.mmd_test(f(X), f(MORE), kernel=K, **TESTS).pvalue,
    "hsic_test": lambda f: mc.hsic_test(f(X), f(MORE), **TESTS).pvalue,
    "coco_test": lambda f: methods.coco_test(f(X), f(MORE), **TESTS).pvalue,
    "dhsic_test": lambda f: methods.dhsic_test(f(X), f(MORE), **TESTS).pvalue,
    "ksd_test": lambda f: mc.ksd_test(f(X), _score, **TESTS).pvalue,
    "significant_modes": lambda f: methods.significant_modes(f(X)).labels,
    "scale_space": lambda f: methods.scale_space(f(X), [0.1, 0.5, 1.0]).n_modes,
    "noise_level": lambda f: methods.noise_level(f(X)).sd,
    "feature_noise": lambda f: methods.feature_noise(K, f(X), 0.1),
    "moment_condition": lambda f: methods.moment_condition(f(X), _score).mean_square,
    "nystrom": lambda f: linalg.nystrom(K, f(X), 5, random_state=0).landmarks,
    "eigenpairs": lambda f: linalg.eigenpairs(K, f(X), 2).values,
    "solve": lambda f: linalg.solve(K, f(X), f(MORE), 0.1).coef,
    "pivoted_cholesky": lambda f: linalg.pivoted_cholesky(K, f(X), max_rank=4).pivots,
    "leverage_scores": lambda f: linalg.leverage_scores(K, f(X), 0.1),
    "certify": lambda f: certify(mc.mean_embedding(K, f(X)), f(X[:1])).min_eigenvalue,
    "preimage_objective": lambda f: preimage_objective(mc.mean_embedding(K, f(X)), f(MORE)),
    "preimage, start": lambda f: mc.preimage(mc.mean_embedding(K, X), start=f(X[:1])).points,
    "effective_dimension": lambda f: theory.learning.effective_dimension(K, f(X), 0.1),
    "memorise": lambda f: theory.learning.memorise(f(X), Y)(f(X)),
    "Overlap": lambda f: mc.kernels.Overlap()(f(X)),
}


@library
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.sample(3)
def test_functions_take_frames_as_arrays(function, make):
    expected, found = function(np.asarray), function(make)
    assert type(found) is type(expected)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


WITH_SERIES = {
    "Element": lambda f: mc.Element(K, X, f(W))(X),
    "mean_embedding": lambda f: mc.mean_embedding(K, X, weights=f(W))(X),
    "kernel_pca": lambda f: mc.kernel_pca(K, X, 2, weights=f(W)).eigenvalues,
    "mmd": lambda f: methods.mmd(K, X, MORE, weights=(f(W), f(W))),
    "mmd_test": lambda f: mc.mmd_test(X, MORE, weights=[f(W), f(W)], **TESTS).pvalue,
    "mmd_test, blocks": lambda f: mc.mmd_test(X, MORE, blocks=f(BLOCKS), **TESTS).pvalue,
    "hsic_test, blocks": lambda f: mc.hsic_test(X, MORE, blocks=f(BLOCKS[:N]), **TESTS).pvalue,
    "median_scale": lambda f: mc.median_scale(X, weights=f(W)),
    "solve": lambda f: linalg.solve(K, X, f(Y), 0.1, weights=f(W)).coef,
    "clustering_accuracy": lambda f: methods.clustering_accuracy(f(LABELS), f(1 - LABELS)).correct,
    "fit_imputer": lambda f: methods.fit_imputer(X, weights=f(W)).error,
    "combine": lambda f: mc.feature(K, X).combine(f(W)).norm(),
    "empirical_risk": lambda f: theory.learning.empirical_risk(methods.SquareLoss(), f(Y), f(W)),
    "strings": lambda f: mc.Spectrum(2)(f(WORDS)),
    "Precomputed": lambda f: mc.Precomputed(K(X))(f(LABELS)),
    "Overlap": lambda f: mc.kernels.Overlap()(f(WORDS)),
    "fixed": lambda f: mc.preimage(mc.mean_embedding(K, X), fixed=f([0.5, None, None])).points,
    "Box": lambda f: (
        mc.preimage(mc.mean_embedding(K, X), region=mc.Box(f(X[0] - 1), f(X[0] + 1))).points
    ),
}
BLOCKS = np.arange(2 * N) % 4
WORDS = np.array(["ab", "ba", "abba"])[np.arange(N) % 3]


@pytest.mark.parametrize("wrap", SERIES.values(), ids=SERIES)
@pytest.mark.parametrize("function", WITH_SERIES.values(), ids=WITH_SERIES)
@pytest.mark.sample(3)
def test_functions_take_series_as_vectors(function, wrap):
    def plain(values):
        is_list = isinstance(values, list)
        return np.array(values, dtype=float) if is_list else values

    assert_allclose(function(wrap), function(plain), rtol=1e-9, atol=1e-11)


@library
def test_functions_compare_names_of_columns(make):
    psi, swapped = mc.mean_embedding(K, make(X)), make(X[:, [1, 0, 2]], ["width", "length", "mass"])
    other = make(X, ["length", "width", "height"])
    for call in (
        psi, lambda Z: K(make(X), Z), lambda Z: psi - mc.mean_embedding(K, Z), psi.gradient,
        lambda Z: mc.mmd_test(make(X), Z, **TESTS), lambda Z: methods.mmd(K, make(X), Z),
        methods.fit_imputer(make(X)), lambda Z: mc.mean_shift(psi, Z),
    ):  # fmt: skip
        with pytest.raises(mc.InputError, match="same columns in different orders"):
            call(swapped)
        with pytest.raises(mc.InputError, match=r"only .* has mass; only .* has height"):
            call(other)
    psi(X)  # an array has no names


# --- out: functions -------------------------------------------------------------------------------


def holes():
    Z = X.copy()
    Z[np.random.default_rng(0).random(Z.shape) < 0.1] = np.nan
    return Z


@library
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_maps_of_rows_give_frames_for_frames(make, dtype):
    rows, Z = X.astype(dtype), holes().astype(dtype)
    denoiser = methods.fit_denoiser(mc.kernel_pca(K, rows, 4), rows, noise=0.1)
    for map_of_rows, given_rows in ((denoiser, rows), (methods.fit_imputer(Z), Z)):
        expected, out = map_of_rows(given_rows), map_of_rows(make(given_rows))
        assert type(out) is type(make(rows))
        assert names_of(out) == NAMES
        assert as_points(out).dtype == dtype == expected.dtype
        assert_array_equal(as_points(out), expected)
        if make is pandas_frame:
            assert_array_equal(out.index, INDEX)


def test_names_that_are_numbers_come_back():
    frame = pd.DataFrame(holes())
    out = methods.fit_imputer(frame)(frame)
    assert out.columns.equals(frame.columns)
    assert mc.feature(K, pd.DataFrame(X)).header is None


P = X[:16]


def results(make):
    """Everything that holds points in data space, and their array."""
    psi = mc.mean_embedding(K, make(P))
    narrow = mc.mean_embedding(mc.Gaussian(0.4), make(P))
    plane = mc.kernel_pca(K, make(P), 3)
    sparse = mc.kernel_pca(K, make(P), 3, n_landmarks=10, random_state=0)
    phi = mc.feature(K, make(P[:4]))
    model = mc.MeanShift(bandwidth=0.5).fit(make(P))
    return {
        "preimage": mc.preimage(psi),
        "preimage of an expression": mc.preimage((2.0 * psi - phi[1] * 0.5).merge()),
        "preimage of a projection": mc.preimage(plane.project(phi)),
        "preimage on landmarks": mc.preimage(sparse.project(phi)),
        "candidates": mc.preimage(psi, mc.Candidates()),
        "Element": psi,
        "features": phi[1:3],
        "compress": mc.compress(psi, 4).element,
        "compress, chosen": mc.compress(psi, 4, method=preimages.Pruning()).element,
        "density": mc.kernel_density(K, make(P)),
        "mean_shift": mc.mean_shift(narrow),
        "significant_modes": methods.significant_modes(make(P)),
        "blurring": methods.blurring_mean_shift(mc.Gaussian(0.4), make(P)),
        "witness": methods.witness(K, make(P), make(P + 0.3)),
        "witness of a test": mc.mmd_test(make(P), make(P + 0.3), **TESTS).witness,
        "MeanShift": model.modes_,
        "MeanShift.density_": model.density_,
        "KernelPCA": mc.KernelPCA(2).fit(make(P)).subspace_.directions,
        "KernelPCA on landmarks": mc.KernelPCA(2, n_landmarks=9).fit(make(P)).subspace_.origin,
        "KernelRidge": mc.KernelRidge(kernel=K).fit(make(P), Y[:16]).element_,
        "SVC": mc.SVC(kernel=K).fit(make(P), LABELS[:16]).element_,
        "KernelDensity": mc.KernelDensity().fit(make(P)).density_.elements[0],
    }


@library
def test_results_remember_names_and_library(make, tmp_path):
    for name, found in results(make).items():
        library = type(make(X)).__module__.split(".")[0]
        assert found.header == Header(tuple(NAMES), library), name
        frame = found.to_frame()
        assert type(frame) is type(make(X)), name
        assert names_of(frame) == NAMES
        assert_array_equal(as_points(frame), found.points)
        for other in FRAMES.values():
            assert type(found.to_frame(type(other(X)).__module__.split(".")[0])) is type(other(X))
        mc.save(found, tmp_path / name)
        assert mc.load(tmp_path / name).header == found.header


def test_proved_modes_remember_names():
    frame = polars_frame(X[:6, :2], ["a", "b"])
    found = methods.all_modes(mc.mean_embedding(mc.Gaussian(1.2), frame))
    assert found.to_frame().columns == ["a", "b"]


def test_results_of_arrays_have_no_names():
    for name, found in results(lambda A: A).items():
        assert found.header is None, name
        assert list(found.to_frame()) == ["x0", "x1", "x2"]
    for library in ("excel", np.zeros(2)):
        with pytest.raises(mc.InputError, match="library must be one of pandas, polars"):
            mc.preimage(mc.mean_embedding(K, X)).to_frame(library)
    with pytest.raises(mc.exceptions.UnavailableError, match="modin is not installed"):
        mc.preimage(mc.mean_embedding(K, X)).to_frame("modin")


@pytest.mark.parametrize("header", [np.ones((8, 3)), ["a"], "a", 0])
def test_the_header_of_an_element_is_a_header(header):
    with pytest.raises(mc.InputError, match="header must be a Header"):
        mc.Element(mc.Gaussian(1.0), [[0.0]], [1.0], header=header)


def test_float32_stays_in_results():
    back = mc.preimage(mc.mean_embedding(K, polars_frame(X.astype(np.float32))))
    assert set(back.to_frame().dtypes) == {pl.Float32}


def test_a_table_comes_back_as_a_frame():
    table = pl.DataFrame({"age": X[:, 0], "city": np.array(["Bonn", "Rome"])[LABELS]})
    back = mc.preimage(mc.feature(mc.table_kernel(table), table[:3]), mc.Candidates(table))
    assert back.to_frame().equals(table[:3])
    psi = mc.mean_embedding(mc.table_kernel(table), table)
    assert_array_equal(psi(table), psi(table[["city", "age"]]))  # columns go by name


def test_tables_of_modes_have_the_names_of_the_data():
    frame = pandas_frame(X, ["density", "a", "b"])
    table = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.4), frame)).table()
    assert list(table) == ["density", "a", "b", "density_", "starts", "curvature", "proved"]


def test_units_of_scaled_columns_have_no_names():
    model = mc.KernelPCA(2, scale_columns="std").fit(pandas_frame(X))
    assert model.subspace_.origin.header is None


def test_results_of_tests_as_frames():
    found = mc.mmd_test(X, MORE, **TESTS)
    for library in FRAMES:
        row = found.to_frame(library)
        assert names_of(row) == list(found.to_dict())
        assert row["pvalue"].to_numpy()[0] == found.pvalue


@pytest.mark.parametrize("make", [polars_frame, arrow_frame], ids=["polars", "pyarrow"])
def test_axes_have_the_names_of_the_data(make):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from mercer import plot

    flat = make(X[:, :2], ["a", "b"])
    psi = mc.mean_embedding(K, flat)
    path = mc.preimage(psi, mc.FixedPoint(), start=[[2.0, 1.0]], history=True)
    for axis in (
        plot.plot_element(psi),
        plot.plot_path(path, psi),
        plot.plot_convexity(psi),
        plot.plot_modes(mc.mean_shift(psi), X[:, :2]),
        plot.plot_basins(psi, resolution=10),
        plot.plot_witness(mc.mmd_test(flat, make(X[:, :2] + 1.0, ["a", "b"]), **TESTS)),
    ):
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("a", "b")
        pyplot.close(axis.figure)
    axis = plot.plot_kernel(K, make(X[:, :1], ["a"]))[0]
    assert axis.get_xlabel() == "a"
    pyplot.close(axis.figure)


@pytest.mark.parametrize("make", [polars_frame], ids=["polars"])  # pandas in tests/reports
def test_reports_take_frames(make):
    pytest.importorskip("jinja2")
    imputer = mc.KernelImputer().fit(make(holes()))
    assert "length" in mc.report(imputer, make(holes())).html()
    ridge = mc.KernelRidge().fit(make(X), Y)
    assert mc.report(ridge, make(X), pl.Series(Y)).pictures


# --- types of columns -----------------------------------------------------------------------------

NULLABLE = {
    "Int64": (st.integers(-(2**53), 2**53), lambda v: pd.array(v, dtype="Int64")),
    "Float64": (st.floats(-1e9, 1e9), lambda v: pd.array(v, dtype="Float64")),
    "boolean": (st.booleans(), lambda v: pd.array(v, dtype="boolean")),
    "UInt8": (st.integers(0, 255), lambda v: pd.array(v, dtype="UInt8")),
    "Arrow integers": (st.integers(-(2**53), 2**53), lambda v: pd.array(v, dtype="int64[pyarrow]")),
    "polars integers": (st.integers(-(2**53), 2**53), lambda v: pl.Series(v, dtype=pl.Int64)),
    "polars floats": (st.floats(-1e9, 1e9), lambda v: pl.Series(v, dtype=pl.Float64)),
    "polars booleans": (st.booleans(), lambda v: pl.Series(v, dtype=pl.Boolean)),
    "Arrow booleans": (st.booleans(), lambda v: pa.chunked_array([pa.array(v, pa.bool_())])),
    "Arrow doubles": (
        st.floats(-1e9, 1e9),
        lambda v: pa.chunked_array([pa.array(v, pa.float64())]),
    ),
}


def a_frame(column):
    if isinstance(column, pl.Series):
        return pl.DataFrame({"a": column, "b": np.arange(len(column))})
    if isinstance(column, pa.ChunkedArray):
        return pa.table({"a": column, "b": np.arange(len(column))})
    return pd.DataFrame({"a": column, "b": np.arange(len(column))})


@pytest.mark.parametrize(("values", "column"), NULLABLE.values(), ids=NULLABLE)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_nullable_columns_are_exact(values, column, data):
    entries = data.draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=8))
    frame, gaps = a_frame(column(entries)), [v is None for v in entries]
    expected = np.array([np.nan if v is None else float(v) for v in entries])
    if any(gaps):
        with pytest.raises(mc.InputError, match=rf"NaN .* in a \({sum(gaps)}\); drop"):
            as_points(frame)
        with pytest.raises(mc.InputError, match=f"w has {sum(gaps)} missing value"):
            as_vector(column(entries) if not hasattr(column(entries), "isna") else frame["a"], "w")
    else:
        assert_array_equal(as_points(frame)[:, 0], expected)
        assert as_points(frame).dtype == np.float64
    if not all(gaps):
        rows = methods.fit_imputer(frame, max_iter=1)(frame)
        kept = np.asarray(rows["a"])[~np.array(gaps)]
        assert_array_equal(kept, expected[~np.array(gaps)])


def test_integers_that_float64_cannot_hold_are_refused():
    for column in (pd.array([2**53 + 1, None], dtype="Int64"), pl.Series([2**53 + 1, None])):
        with pytest.raises(mc.InputError, match="'a' of X has integers above"):
            methods.fit_imputer(a_frame(column))


def test_single_precision_is_that_of_all_columns():
    single, double = X[:, 0].astype(np.float32), X[:, 1]
    assert as_points(pl.DataFrame({"a": single, "b": single})).dtype == np.float32
    assert as_points(pl.DataFrame({"a": single, "b": double})).dtype == np.float64
    assert as_points(pl.DataFrame({"a": single, "b": np.arange(N)})).dtype == np.float64
    nullable = pd.DataFrame({"a": pd.array(single, dtype="Float32")})
    assert as_points(nullable).dtype == np.float32


@pytest.mark.parametrize(
    ("column", "cure"),
    [
        (pl.Series(["x", "y"]), "table_kernel"),
        (pl.Series(["x", "y"], dtype=pl.Categorical), "table_kernel"),
        (pl.Series(["1.5", "2.5"]).cast(pl.Decimal(5, 2)), "cast them to float64"),
        (pl.Series([[1.0], [2.0]]), "encode them"),
        (pd.Series([1.0, 2.0], dtype=object), "cast them to float64"),
        (pd.Series([1.0, 2.0], dtype="float16"), "cast them to float64"),
        (pd.Categorical([1, 2]), "table_kernel"),
        (pd.date_range("2020", periods=2), "days since a date"),
        (pd.Series([1j, 2.0]), "encode them"),
    ],
)
def test_columns_that_are_refused(column, cure):
    frame = a_frame(column)
    for call in (as_points, K, methods.fit_imputer):
        with pytest.raises(mc.InputError, match=f"not numeric: a; .*{cure}"):
            call(frame)


def test_sparse_columns_of_pandas_stay_sparse():
    frame = pd.DataFrame(X * (X > 0), columns=NAMES).astype(pd.SparseDtype("float64", 0.0))
    assert as_points(frame).format == "csr"
    assert_allclose(K(frame), K(X * (X > 0)), atol=1e-12)
    with pytest.raises(mc.InputError, match="X is sparse"):
        methods.fit_imputer(frame)


@pytest.mark.parametrize("value", [np.nan, 1.0])
def test_sparse_columns_that_leave_out_another_value_than_zero(value):
    frame = pd.DataFrame(X, columns=NAMES).astype(pd.SparseDtype("float64", value))
    with pytest.raises(mc.InputError, match=rf"sparse columns .*: {', '.join(NAMES)}; use .*dense"):
        K(frame)
    assert_allclose(K(frame.sparse.to_dense()), K(X), atol=1e-12)


def test_labels_with_nulls_are_refused_by_name():
    for frame in (
        pl.DataFrame({"a": ["x", None], "b": [1, 2]}),
        pl.DataFrame({"a": [1, None], "b": [1, 2]}),
        pd.DataFrame({"a": ["x", None], "b": [1, 2]}),
        pa.table({"a": ["x", None], "b": [1, 2]}),
    ):
        with pytest.raises(mc.InputError, match="X has missing values in a; make them a category"):
            mc.kernels.Overlap()(frame)


def test_weights_of_objects_are_refused():
    with pytest.raises(mc.InputError, match="weights must hold numbers, got String"):
        as_weights(pl.Series(["a", "b"]), 2)


def test_a_header_is_checked():
    with pytest.raises(mc.InputError, match="names must be a tuple of strings"):
        Header(["a"], "pandas")
    with pytest.raises(mc.InputError, match="library must be one of"):
        Header(("a",), "os")
    assert space.Element(K, X, W, header=Header(tuple(NAMES), "pandas")).header.names[0] == "length"


@pytest.mark.parametrize("rows", [0, 2])
def test_frames_without_columns(rows):
    table = pa.table({"a": np.zeros(rows)}).drop_columns(["a"])
    for frame in (table, pd.DataFrame(index=range(rows))):
        with pytest.raises(mc.InputError):
            mc.Gaussian(1.0)(frame)
