"""What was saved comes back: equal, with equal values, and shared where it was shared."""

import math
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mercer as mc
from mercer import linalg, methods
from mercer.engine import Dense, LowRank, SingleFeatures, Stacked
from mercer.io import load, save
from mercer.kernels import OpenBall
from mercer.space._points import equal_points
from tests.kernels.test_conformance import COMPOSITE, LABELLED, SINGLE, name


def equal(a, b):
    """Whether two things are the same to the last bit, NaN included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype.names is not None:
        return a.dtype == b.dtype and all(equal(a[c], b[c]) for c in a.dtype.names)
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return all(equal(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return a.tobytes() == b.tobytes()
    if sp.issparse(a):
        return a.shape == b.shape and all(
            equal(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr")
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, complex | np.complexfloating):
        return equal(a.real, b.real) and equal(a.imag, b.imag)
    if isinstance(a, float | np.floating) and np.isnan(a):
        return bool(np.isnan(b))
    if isinstance(a, mc.Kernel) or not is_dataclass(a):
        return a == b
    return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


# --- kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", SINGLE + COMPOSITE, ids=name)
def test_kernels(kernel, there_and_back):
    back = there_and_back(kernel)
    assert type(back) is type(kernel)
    assert back == kernel
    assert hash(back) == hash(kernel)
    assert repr(back) == repr(kernel)
    X = np.linspace(0.05, 0.4, 9).reshape(3, 3)
    for columns in (3, 2, 1):
        try:
            K = kernel(X[:, :columns])
        except mc.InputError:
            continue
        assert back(X[:, :columns]).tobytes() == K.tobytes()
        break
    else:
        pytest.fail("the points of this test suit no number of columns")


@pytest.mark.parametrize(("kernel", "points"), LABELLED, ids=lambda x: name(x)[:40])
def test_kernels_and_elements_on_other_points(kernel, points, there_and_back):
    points = {k: list(v) for k, v in points.items()} if isinstance(points, dict) else points
    psi = mc.mean_embedding(kernel, points)
    back = there_and_back(psi)
    assert back.kernel == kernel
    assert equal(back, psi)
    assert back(points).tobytes() == psi(points).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_matrices(dtype, there_and_back):
    K = np.array([[2.0, 1.0], [1.0, 2.0]], dtype=dtype)
    psi = mc.feature(mc.Precomputed(K, mc.kernels.Definiteness.POSITIVE), [1, 0, 1])
    back = there_and_back(psi)
    assert back.kernel == psi.kernel
    assert back.kernel.K.dtype == psi.kernel.K.dtype
    assert equal(back([0, 1]), psi([0, 1]))


def test_caches_are_not_stored(tmp_path):
    k = mc.Gaussian(1.0) + mc.Linear()
    save(k, tmp_path / "before")
    k(np.eye(3))  # lowers it to a program, which it keeps
    save(k, tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert "program" not in vars(load(tmp_path / "after"))


# --- elements -------------------------------------------------------------------------------------


def elements():
    """Every form of coefficients, several kinds of points."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(7, 3))
    k = mc.Laplace(1.0)
    features = mc.feature(k, X)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), features).truncate(2)
    sparse = sp.random_array((6, 4), density=0.5, format="csr", rng=rng)
    return {
        "single": mc.Element(k, X, np.arange(7.0)),
        "batch": mc.Element(k, X, rng.normal(size=(7, 2))),
        "float32": mc.Element(k, X.astype(np.float32), np.ones(7, dtype=np.float32)),
        "features": features[[3, 1, 1]],
        "float32 features": mc.feature(k, X.astype(np.float32)),
        "low rank": plane.project(features),
        "stacked": features - mc.mean_embedding(k, X[:4]) + mc.feature(k, X[::-1]),
        "one of a batch": features[2],
        "sparse": mc.mean_embedding(k, sparse),
        "sparse matrix": mc.feature(mc.Linear(), sp.csr_matrix(sparse)),
        "columns first": mc.Element(k, np.asfortranarray(X), np.ones(7)),
        "every second row": mc.Element(k, X[::2], np.ones(4)),
        "bytes": mc.mean_embedding(mc.Spectrum(1), [b"ab", b"\xff\x00"]),
        "tokens": mc.mean_embedding(mc.Spectrum(1), [["a", 1, None], ["b", (2.0, "c")]]),
        "large labels": mc.mean_embedding(mc.kernels.Overlap(), [[2**60 + 1], [2**60], [2**90]]),
    }


FORMS = {
    "batch": Dense,
    "features": SingleFeatures,
    "low rank": LowRank,
    "stacked": Stacked,
}


@pytest.mark.parametrize("which", elements())
def test_elements(which, there_and_back):
    psi = elements()[which]
    assert isinstance(psi.coef, FORMS.get(which, object))
    back = there_and_back(psi)
    assert equal(back, psi)
    assert equal(back(psi.points), psi(psi.points))
    assert np.array_equal(back.norm(), psi.norm())
    if psi.kernel.domain.is_vector and not sp.issparse(psi.points):
        assert not back.points.flags.writeable
        assert back.points.flags.f_contiguous == psi.points.flags.f_contiguous
        assert equal(back.gradient(psi.points), psi.gradient(psi.points))


def test_elements_can_be_combined_with_what_was_saved(there_and_back):
    psi = elements()["batch"]
    assert np.all((there_and_back(psi) - psi).norm() == 0.0)


def test_subspaces_share_points_and_kernel(there_and_back):
    X = np.random.default_rng(0).normal(size=(20, 3))
    plane = mc.kernel_pca(mc.Gaussian(1.0), X, 4)
    assert equal_points(plane.origin.points, plane.directions.points)
    back = there_and_back(plane)
    assert equal_points(back.origin.points, back.directions.points)
    assert back.origin.kernel is back.directions.kernel
    psi = mc.feature(mc.Gaussian(1.0), X[:3] + 0.1)
    assert equal(back.coordinates(psi), plane.coordinates(psi))
    assert equal(back.eigenvalues, plane.eigenvalues)
    assert (back.total, back.neglected) == (plane.total, plane.neglected)
    assert isinstance(back.project(psi).coef, LowRank)  # only where points are shared


@pytest.mark.parametrize("kernel", [k for k, _ in LABELLED], ids=name)
def test_subspaces_on_other_points_share_them_too(kernel, there_and_back):
    points = dict(LABELLED)[kernel]
    points = {k: list(v) for k, v in points.items()} if isinstance(points, dict) else points
    X = kernel.points(points).array
    mean = mc.mean_embedding(kernel, X)
    plane = mc.Subspace.span(mean, mc.feature(kernel, X))
    back = there_and_back(plane)
    assert equal_points(plane.origin.points, plane.directions.points)
    assert equal_points(back.origin.points, back.directions.points)
    assert equal(back.coordinates(mean), plane.coordinates(mean))


def test_sparse_points_are_shared(there_and_back):
    X = sp.random_array((9, 5), density=0.5, format="csr", rng=np.random.default_rng(0))
    k = mc.Gaussian(1.0)
    one, two = there_and_back([mc.mean_embedding(k, X), mc.feature(k, X)])
    assert one.points is two.points


def test_operators(there_and_back):
    X = np.random.default_rng(0).normal(size=(6, 2))
    A = mc.covariance(mc.Gaussian(1.0), X, mc.Linear(), X)
    back = there_and_back(A)
    psi = mc.feature(mc.Linear(), X)
    assert equal(back(psi)(X), A(psi)(X))


# --- settings and results -------------------------------------------------------------------------

VALUES = [
    mc.FixedPoint(tol=1e-7, max_iter=12),
    mc.FixedPoint(safeguard=False),
    mc.Newton(),
    mc.GradientDescent(),
    mc.LBFGS(),
    mc.MM(),
    mc.ClosedForm(),
    mc.Distances(neighbors=None),
    mc.Global(),
    mc.Candidates(),
    mc.Candidates(["ab", "c"]),
    mc.Candidates(np.eye(2)),
    mc.LearnedMap(mc.Gaussian(2.0), penalty=0.5),
    mc.preimages.Greedy(),
    mc.preimages.Pruning(),
    mc.preimages.Nearest(),
    mc.preimages.Collinear(),
    mc.Box(0.0, [1.0, np.inf]),
    mc.preimages.Ball([0.0, 1.0], 2.0),
    mc.preimages.Simplex(),
    mc.kernels.Flags(mc.kernels.Definiteness.CONDITIONAL, True, None, False),
    methods.Truncation(),
    methods.Tikhonov(0.5),
    methods.Tikhonov(),
    methods.Landweber(3),
    mc.Scales([1.0, 2.0]),
    mc.Columns([2, 0]),
    mc.kernels.Matrix([[1.0, -0.0]]),
    mc.kernels.Monomials(3, offset=0.5),
    mc.kernels.Objects(),
    OpenBall(2.0),
    mc.kernels.Table({("x", "y"): mc.Gaussian(1.0), "z": mc.kernels.Hamming(1.0)}).domain,
    mc.kernels.Definiteness.POSITIVE,
]


@pytest.mark.parametrize("thing", VALUES, ids=lambda x: repr(x)[:40])
def test_settings(thing, there_and_back):
    assert equal(there_and_back(thing), thing)


def test_results(there_and_back):
    X = np.random.default_rng(0).normal(size=(12, 2))
    k = mc.Gaussian(1.0)
    plane = mc.kernel_pca(k, X, 3)
    psi = plane.project(mc.feature(k, X))
    found = mc.preimage(psi, start=X, history=True)
    assert equal(there_and_back(found), found)
    way_back = mc.LearnedMap().fit(plane)
    again = there_and_back(way_back)
    assert equal(mc.preimage(psi, again).points, mc.preimage(psi, way_back).points)
    low = linalg.nystrom(k, X, 5, random_state=0)
    assert equal(there_and_back(low).map(X), low.map(X))
    z = linalg.random_features(k, 2, 8, random_state=0)
    assert equal(there_and_back(z)(X), z(X))


# --- values ---------------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(), st.floats(), st.complex_numbers(), st.integers(2**62, 2**70), st.booleans()
)
scalars = st.one_of(
    st.none(),
    numbers,
    st.text(),
    st.binary(),
    hnp.from_dtype(np.dtype(np.float32)),
    hnp.from_dtype(np.dtype(np.uint64)),
    hnp.from_dtype(np.dtype(np.bool_)),
    hnp.from_dtype(np.dtype("U4")),
    st.sampled_from(mc.kernels.Definiteness),
)
dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
    hnp.unicode_string_dtypes(max_len=4),
    hnp.byte_string_dtypes(max_len=4),
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
lengths = st.floats(1e-3, 1e3)
things = st.recursive(
    st.one_of(scalars, arrays, st.builds(mc.Gaussian, lengths)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=4),
        st.dictionaries(st.tuples(st.integers(), st.text(max_size=2)), inner, max_size=2),
        st.frozensets(st.one_of(st.text(max_size=3), st.integers()), max_size=4),
        st.sets(st.tuples(st.integers(), st.booleans()), max_size=3),
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(thing=things)
def test_nested_values(thing, there_and_back):
    assert equal(there_and_back(thing), _native(thing))


def _native(thing):
    """Arrays come back in the byte order of the machine."""
    if isinstance(thing, np.ndarray):
        return thing.astype(thing.dtype.newbyteorder("="))
    if isinstance(thing, list | tuple):
        return type(thing)(map(_native, thing))
    return {k: _native(v) for k, v in thing.items()} if isinstance(thing, dict) else thing


@pytest.mark.parametrize(
    "x", [-0.0, math.inf, -math.inf, math.nan, 5e-324, 1 << 20_000, "\ud800"], ids=range(7)
)
def test_awkward_scalars(x, there_and_back):
    back = there_and_back({"x": x})["x"]
    assert equal(back, x)
    assert repr(back) == repr(x) if not isinstance(x, int) else back == x


def test_minus_zero_keeps_its_sign_in_arrays(there_and_back):
    assert np.signbit(there_and_back(np.array([-0.0]))).all()


def test_the_same_object_gives_the_same_file(tmp_path):
    thing = {"words": frozenset(map(str, range(50))), "psi": elements()["stacked"]}
    save(thing, tmp_path / "one")
    save({"words": frozenset(map(str, reversed(range(50)))), "psi": thing["psi"]}, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_array_that_is_used_twice_is_stored_once(tmp_path, there_and_back):
    X = np.random.default_rng(0).normal(size=(50, 40))
    views = {"X": X, "again": X[:], "part": X[:5], "turned": X.T}
    back = there_and_back(views)
    assert back["X"] is back["again"]
    assert not np.shares_memory(back["X"], back["part"])
    assert equal(back["turned"], X.T)
    assert (tmp_path / "thing.mercer").stat().st_size < 2.3 * X.nbytes


def test_equal_arrays_stay_apart(there_and_back):
    a, b = there_and_back([np.zeros(3), np.zeros(3)])
    assert not np.shares_memory(a, b)


def test_numpy_reads_the_arrays(tmp_path):
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, -1.0])
    save(psi, tmp_path / "psi.npz")
    with np.load(tmp_path / "psi.npz") as file:
        assert set(file.files) == {"mercer.json", "0", "1"}
        assert np.array_equal(file["0"], psi.points)
