"""Elements: closed forms, double loops, batches in every form, points of every kind, errors."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import mercer as mc
from mercer.testing import awkward_kernels, check_element

KERNELS = awkward_kernels()


def loop(kernel, X, A, Y):
    """sum_i a_i k(x_i, y_j), one pair at a time."""
    A = np.asarray(A, dtype=float).reshape(len(X), -1)
    out = np.zeros((len(Y), A.shape[1]))
    for j, i in itertools.product(range(len(Y)), range(len(X))):
        out[j] += A[i] * kernel(X[i : i + 1], Y[j : j + 1])[0, 0]
    return out


def forms(kernel, X, rng):
    """Batches with dense, diagonal, low-rank and stacked coefficients."""
    n = len(X)
    dense = mc.Element(kernel, X, rng.normal(size=(n, 3)))
    features = mc.feature(kernel, X[:3])
    plane = mc.Subspace.span(mc.mean_embedding(kernel, X), dense)
    shadow = plane.project(features)
    return {
        "single": mc.Element(kernel, X, rng.normal(size=n)),
        "mean": mc.mean_embedding(kernel, X, weights=rng.uniform(size=n)),
        "dense": dense,
        "features": features,
        "scaled features": features * np.array([2.0, -1.0, 0.5]),
        "chosen features": mc.feature(kernel, X)[[2, 0, 2]],
        "low rank": shadow,
        "stacked": features - shadow,
        "stacked twice": (features - shadow) + dense,
        "single plus batch": mc.Element(kernel, X[:2], [1.0, -2.0]) + dense,
        "combined": features.combine(rng.normal(size=(3, 4))),
        "combined low rank": shadow.combine(rng.normal(size=(3, 2))),
        "combined stack": (features - shadow).combine(rng.normal(size=(3, 2))),
        "merged": (features + features).merge(),
        "one of a stack": (features - shadow)[1],
        "a batch of one": dense[:1],
    }


FORMS = list(forms(mc.Gaussian(1.0), np.eye(5)[:, :3], np.random.default_rng(0)))


@pytest.fixture
def X(rng):
    X = rng.normal(size=(7, 3))
    X[5] = X[1]
    return X


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [0, 4, 6, 9, 13])
def test_every_form_of_a_batch_is_an_element(form, number, X, rng):
    check_element(forms(KERNELS[number], X, rng)[form])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_awkward_kernel_has_elements(kernel, X, rng):
    check_element(mc.Element(kernel, X, rng.normal(size=7)))
    check_element(mc.Element(kernel, X, rng.normal(size=(7, 2))))
    check_element(mc.feature(kernel, X))


@pytest.mark.parametrize("kernel", KERNELS[::3], ids=repr)
def test_float32(kernel, X, rng):
    X32 = X.astype(np.float32)
    psi = mc.Element(kernel, X32, rng.normal(size=(7, 2)).astype(np.float32))
    check_element(psi)
    check_element(mc.feature(kernel, X32))
    for result in (psi(X32), psi.gradient(X32), psi.hessian(X32)):
        assert result.dtype == np.float32
    assert psi(X).dtype == np.float64
    assert psi.inner(psi).dtype == np.float64
    assert psi.norm().dtype == np.float64


@pytest.mark.parametrize("kernel", [k for k in KERNELS if "Matrix" not in repr(k)][::3], ids=repr)
def test_sparse_points(kernel, rng):
    X = rng.normal(size=(9, 3)) * (rng.random((9, 3)) < 0.6) + 1.0 * (
        np.arange(9)[:, None] % 4 == 0
    )
    a = rng.normal(size=(9, 2))
    sparse, dense = mc.Element(kernel, csr_array(X), a), mc.Element(kernel, X, a)
    Y = rng.normal(size=(4, 3))
    for queries in (Y, csr_array(Y)):
        assert_allclose(sparse(queries), dense(Y), rtol=1e-10, atol=1e-11)
        assert_allclose(sparse.gradient(queries), dense.gradient(Y), rtol=1e-8, atol=1e-9)
        assert_allclose(sparse.hessian(queries), dense.hessian(Y), rtol=1e-7, atol=1e-8)
    assert_allclose(sparse.inner(sparse), dense.inner(dense), rtol=1e-10)
    assert_allclose(sparse.norm(), dense.norm(), rtol=1e-8)
    both = sparse + dense
    assert_allclose(both(Y), 2.0 * dense(Y), rtol=1e-10, atol=1e-11)
    assert_allclose(both.norm(), 2.0 * dense.norm(), rtol=1e-8)
    check_element(mc.feature(kernel, csr_array(X)))


def test_sparse_points_are_merged():
    X = csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]))
    psi = mc.Element(mc.Gaussian(1.0), X, [1.0, 2.0, 3.0])
    merged = psi.merge()
    assert merged.points.shape == (2, 2)
    assert_allclose(merged(X), psi(X), rtol=1e-14)


# --- closed forms ---------------------------------------------------------------------------------


def test_linear_elements_are_vectors(rng):
    """sum a_i <x_i, .> is <w, .> with w = sum a_i x_i."""
    X, a, Y = rng.normal(size=(8, 4)), rng.normal(size=8), rng.normal(size=(5, 4))
    psi, w = mc.Element(mc.Linear(), X, a), a @ X
    assert_allclose(psi(Y), Y @ w, rtol=1e-12)
    assert_allclose(psi.gradient(Y), np.tile(w, (5, 1)), rtol=1e-12)
    assert_allclose(psi.hessian(Y), np.zeros((5, 4, 4)), atol=1e-12)
    assert_allclose(psi.norm(), np.linalg.norm(w), rtol=1e-12)
    b = rng.normal(size=8)
    assert_allclose(psi.inner(mc.Element(mc.Linear(), X, b)), w @ (b @ X), rtol=1e-11)


def test_one_gaussian():
    psi = mc.Element(mc.Gaussian(2.0), [[1.0, 1.0]], [3.0])
    y = np.array([[3.0, 1.0]])
    value = 3.0 * np.exp(-0.5)
    assert_allclose(psi(y), [value], rtol=1e-14)
    assert_allclose(psi.gradient(y), [[-0.5 * value, 0.0]], rtol=1e-14)
    assert_allclose(psi.hessian(y), [[[0.0, 0.0], [0.0, -0.25 * value]]], atol=1e-15)
    assert psi.norm() == 3.0


def test_distance_of_two_features():
    """|k(x, .) - k(y, .)|^2 = 2 - 2 k(x, y)."""
    phi = mc.feature(mc.Gaussian(1.0), [[0.0], [1.5]])
    expected = np.sqrt(2.0 - 2.0 * np.exp(-(1.5**2) / 2))
    assert_allclose(phi[0].distance(phi[1]), expected, rtol=1e-14)
    assert_allclose((phi[0] - phi[1]).norm(), expected, rtol=1e-14)


def test_energy_distance(rng):
    """With -|x - y| the squared distance of means is the energy distance (up to scipy's root)."""
    from scipy.stats import energy_distance

    x, y = rng.normal(size=40), rng.normal(size=30) + 0.5
    k = mc.NegativeDistance(1.0)
    gap = mc.mean_embedding(k, x[:, None]) - mc.mean_embedding(k, y[:, None])
    assert_allclose(np.sqrt(2.0) * gap.norm() / np.sqrt(2.0), energy_distance(x, y), rtol=1e-12)


def test_mean_embedding(rng):
    X, w = rng.normal(size=(6, 2)), rng.uniform(size=6)
    k = mc.Gaussian(1.0)
    assert_allclose(mc.mean_embedding(k, X)(X), k(X).mean(axis=1), rtol=1e-13)
    assert_allclose(mc.mean_embedding(k, X, weights=w)(X), k(X) @ w / w.sum(), rtol=1e-13)
    assert_allclose(
        mc.mean_embedding(k, X, weights=7.0 * w)(X),
        mc.mean_embedding(k, X, weights=w)(X),
        rtol=1e-14,
    )
    same = mc.feature(k, X).combine(np.full(6, 1 / 6))
    assert mc.mean_embedding(k, X).distance(same) < 1e-8
    for bad, message in (([1.0], "weights must have 6 entries"), (-w, "weights must be >= 0")):
        with pytest.raises(mc.InputError, match=message):
            mc.mean_embedding(k, X, weights=bad)


def test_values_against_the_double_loop_on_more_points_than_a_tile(rng):
    X, Y = rng.normal(size=(1500, 2)), rng.normal(size=(3, 2))
    a = rng.normal(size=(1500, 2))
    k = mc.Laplace(0.5) + mc.Linear()
    expected = np.array([k(y[None], X)[0] @ a for y in Y])
    assert_allclose(mc.Element(k, X, a)(Y), expected, rtol=1e-11)
    few = slice(0, 40)
    assert_allclose(mc.Element(k, X[few], a[few])(Y), loop(k, X[few], a[few], Y), rtol=1e-12)


def test_one_point_and_more_columns_than_points(rng):
    check_element(mc.Element(mc.Matern(1.5), rng.normal(size=(1, 3)), [2.0]))
    check_element(mc.Element(mc.Polynomial(2), rng.normal(size=(1, 3)), [[2.0, -1.0]]))
    X = rng.normal(size=(3, 12))
    check_element(mc.Element(mc.Gaussian(4.0) + mc.Linear(), X, rng.normal(size=(3, 2))))


def test_cusps(rng):
    X = rng.normal(size=(4, 2))
    X[3] = X[0]
    psi = mc.Element(mc.Laplace(1.0), X, [1.0, 2.0, -1.0, 0.5])
    at = psi.gradient(X[:1])
    others = mc.Element(mc.Laplace(1.0), X[1:3], [2.0, -1.0])
    assert_allclose(at, others.gradient(X[:1]), rtol=1e-12)
    assert np.isnan(psi.hessian(X[:1])).all()
    assert np.isfinite(psi.hessian(X[:1] + 0.1)).all()
    assert psi.fields(X[:2], order=1).cusp.ravel() == pytest.approx([1.5, 2.0])


def test_opposite_terms_leave_no_cusp(rng):
    x = rng.normal(size=(1, 2))
    psi = mc.Element(mc.Laplace(1.0), np.vstack([x, x, x + 1.0]), [1.0, -1.0, 1.0])
    alone = mc.Element(mc.Laplace(1.0), x + 1.0, [1.0])
    assert_allclose(psi.hessian(x), alone.hessian(x), rtol=1e-10)


# --- combining ------------------------------------------------------------------------------------


def test_indexing_forms(X, rng):
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=(7, 5)))
    V = psi(X)
    for index in (0, -1, np.int64(2)):
        one = psi[index]
        assert one.batch is None
        assert_allclose(one(X), V[:, index], rtol=1e-12)
    for index in (
        slice(None), slice(1, 4), slice(None, None, -2), [0], [4, 0, 0], np.array([1, 2]),
        np.array([True, False, True, False, False]), range(2), -np.arange(1, 3),
    ):  # fmt: skip
        part = psi[index]
        columns = V[:, np.arange(5)[index]]
        assert len(part) == columns.shape[1]
        assert_allclose(part(X), columns, rtol=1e-12)
    assert [one.batch for one in psi] == [None] * 5
    assert_allclose(sum(psi)(X), V.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("index", [5, -6, [5], [], slice(3, 3), [[0]], None, (0, 1), "a", 1.5])
def test_indexing_beyond_a_batch(index, X):
    psi = mc.feature(mc.Gaussian(1.0), X[:5])
    with pytest.raises(IndexError):
        psi[index]


def test_a_single_element_is_no_batch(X):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    with pytest.raises(TypeError, match=r"a single element cannot be indexed"):
        psi[0]
    with pytest.raises(TypeError, match=r"a single element has no length"):
        len(psi)
    with pytest.raises(TypeError):
        list(psi)


def test_a_chosen_feature_keeps_only_its_points(X):
    phi = mc.feature(mc.Gaussian(1.0), X)
    assert phi[3].points.shape == (1, 3)
    assert phi[[2, 4, 2]].points.shape == (2, 3)


def test_sum_of_elements(X, rng):
    k = mc.Gaussian(1.0)
    parts = [mc.Element(k, rng.normal(size=(n, 3)), rng.normal(size=n)) for n in (1, 4, 2)]
    expected = np.sum([p(X) for p in parts], axis=0)
    assert_allclose(sum(parts)(X), expected, rtol=1e-12)
    assert_allclose((parts[0] - parts[1])(X), parts[0](X) - parts[1](X), rtol=1e-12)
    assert sum(parts).points.shape == (7, 3)


def test_a_single_element_joins_every_element_of_a_batch(X, rng):
    k = mc.Gaussian(1.0)
    one, many = mc.mean_embedding(k, X), mc.Element(k, X, rng.normal(size=(7, 4)))
    for both in (one + many, many + one):
        assert len(both) == 4
        assert_allclose(both(X), many(X) + one(X)[:, None], rtol=1e-12)
    assert_allclose(one.distance(many), [one.distance(f) for f in many], rtol=1e-10)
    assert_allclose(one.inner(many), [one.inner(f) for f in many], rtol=1e-11)


def test_shapes_of_inner_products(X, rng):
    k = mc.Gaussian(1.0)
    one, two = mc.mean_embedding(k, X), mc.mean_embedding(k, X[:3])
    four, five = (mc.Element(k, X, rng.normal(size=(7, b))) for b in (4, 5))
    assert np.shape(one.inner(two)) == ()
    assert np.shape(one.inner(four)) == (4,)
    assert np.shape(four.inner(one)) == (4,)
    assert np.shape(four.inner(five)) == (4, 5)
    assert_allclose(four.inner(five), five.inner(four).T, rtol=1e-12)
    assert np.shape(one.norm()) == ()
    assert np.shape(four.norm()) == (4,)


def test_scaling_a_batch(X, rng):
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=(7, 3)))
    w = np.array([2.0, -1.0, 0.0])
    for scaled in (psi * w, w * psi, psi * list(w)):
        assert_allclose(scaled(X), psi(X) * w, rtol=1e-12)
    assert_allclose((psi / np.array([2.0, 4.0, 5.0]))(X), psi(X) / [2.0, 4.0, 5.0], rtol=1e-12)
    assert_allclose((np.float64(2.0) * psi)(X), 2.0 * psi(X), rtol=1e-12)


def test_merge(rng):
    X = np.array([[0.0], [1.0], [0.0], [2.0], [-0.0]])
    psi = mc.Element(mc.Gaussian(1.0), X, [1.0, 2.0, 3.0, 0.0, -0.5])
    merged = psi.merge()
    assert merged.points.ravel().tolist() == [0.0, 1.0]
    Y = rng.normal(size=(4, 1))
    assert_allclose(merged(Y), psi(Y), rtol=1e-14)
    nothing = (psi - psi).merge()
    assert nothing.points.shape == (1, 1)
    assert np.array_equal(nothing(Y), np.zeros(4))


def test_merge_of_two_elements_that_share_points(X, rng):
    k = mc.Gaussian(1.0)
    a, b = rng.normal(size=(2, 7))
    psi = mc.Element(k, X, a) + mc.Element(k, X.copy(), b)
    assert psi.points.shape == (7, 3)
    assert_allclose(psi(X), k(X) @ (a + b), rtol=1e-12)
    psi = mc.Element(k, X, a) + mc.Element(k, X[::-1], b)
    assert psi.points.shape == (14, 3)
    assert psi.merge().points.shape == (6, 3)


def test_paired_evaluation(X, rng):
    phi = mc.feature(mc.Matern(2.5), X)
    Y = rng.normal(size=(7, 3))
    fields = phi.fields(Y, order=2, paired=True)
    assert_allclose(fields.value, np.diag(phi(Y)), rtol=1e-12)
    each = np.arange(7)
    assert_allclose(fields.gradient, phi.gradient(Y)[each, each], rtol=1e-11, atol=1e-14)
    assert_allclose(fields.hessian, phi.hessian(Y)[each, each], rtol=1e-10, atol=1e-13)
    with pytest.raises(mc.InputError, match=r"one query per element: 7 elements, 2 queries"):
        phi.fields(Y[:2], paired=True)


def test_shifted_values(X):
    """Far away every value underflows; with a shift the logarithm is right."""
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    Y = X[:2] + 100.0
    assert np.array_equal(psi(Y), [0.0, 0.0])
    fields = psi.fields(Y, shifted=True)
    u = ((Y[:, None] - X) ** 2).sum(-1)
    expected = np.log(np.exp(-(u - u.min(1, keepdims=True)) / 2).mean(1)) - u.min(1) / 2
    assert_allclose(np.log(fields.value.ravel()) + fields.shift, expected, rtol=1e-12)


# --- norms ----------------------------------------------------------------------------------------


def test_norms_are_zero_by_rounding_and_missing_by_truth():
    k = mc.NegativeDistance(1.0)
    assert np.isnan(mc.Element(k, [[0.0], [1.0]], [1.0, 1.0]).norm())
    assert_allclose(mc.Element(k, [[0.0], [1.0]], [1.0, -1.0]).norm(), np.sqrt(2.0))
    window, points = mc.Epanechnikov(1.0, 0.5), 0.35 * np.arange(5.0)[:, None]
    values, vectors = np.linalg.eigh(window(points))
    assert values[0] < -0.1  # Honeine 2024, Example 6
    assert np.isnan(mc.Element(window, points, vectors[:, 0]).norm())


@pytest.mark.parametrize(
    ("kernel", "points", "coef"),
    [
        (mc.Polynomial(2), [[0.1], [0.2], [0.3], [0.4]], [1.0, -3.0, 3.0, -1.0]),
        (mc.Linear(), [[0.1], [0.2], [0.3]], [1.0, 1.0, -1.0]),
        (mc.Linear(), [[0.1], [0.2], [0.3]], [1e8, 1e8, -1e8]),
        (mc.Gaussian(1.0), [[0.0], [1e-9]], [1.0, -1.0]),
        (mc.Laplace(1.0) * mc.Linear(), [[0.3], [0.3 + 1e-17], [0.3]], [1.0, 1.0, -2.0]),
        (mc.Exponential(1.0), [[0.7], [0.7 + 1e-8], [0.7 - 1e-8]], [2.0, -1.0, -1.0]),
    ],
)
def test_a_positive_definite_kernel_gives_every_element_a_norm(kernel, points, coef):
    """Coefficients of both signs cancel; what rounding leaves must not be taken for a proof."""
    psi = mc.Element(kernel, points, coef)
    largest = np.abs(coef).max() * np.sqrt(kernel.diag(points).max())
    assert psi.norm() <= 1e-6 * largest


def test_null_vectors_of_a_gram_matrix_have_norm_zero(rng):
    X = rng.normal(size=(40, 2))
    for kernel in (mc.Polynomial(2), mc.Linear(), mc.Gaussian(5.0)):
        V = np.linalg.eigh(kernel(X))[1][:, :25]
        norms = mc.Element(kernel, X, V).norm()
        assert np.isfinite(norms).all(), kernel
        assert norms.max() < 1e-3


@pytest.mark.parametrize("kernel", [mc.Linear(), mc.Polynomial(2), mc.Exponential(5.0)], ids=repr)
def test_float32_distances_are_numbers(kernel, rng):
    """The same elements written in two ways: the distance is rounding, not NaN."""
    X = rng.normal(size=(50, 3)).astype(np.float32)
    a, b = mc.feature(kernel, X), mc.Element(kernel, X.copy(), np.eye(50, dtype=np.float32))
    distance = a.distance(b)
    assert np.isfinite(distance).all()
    assert distance.max() <= 2e-3 * a.norm().max()


# --- errors ---------------------------------------------------------------------------------------


def test_elements_of_different_spaces_do_not_mix(X):
    a, b = mc.mean_embedding(mc.Gaussian(1.0), X), mc.mean_embedding(mc.Gaussian(2.0), X)
    for mix in (lambda: a + b, lambda: a - b, lambda: a.inner(b), lambda: a.distance(b)):
        with pytest.raises(
            mc.exceptions.SpaceError, match=r"different spaces: of Gaussian\(length_scale=1\.0\)"
        ):
            mix()
    c = mc.mean_embedding(mc.Gaussian(1.0), X[:, :2])
    with pytest.raises(mc.InputError, match=r"has 3 features, but the other has 2"):
        a + c


@pytest.mark.parametrize(
    ("coef", "message"),
    [
        ([1.0], r"coef must have shape \(2,\) or \(2, b\) for 2 points, got \(1,\)"),
        (np.ones((3, 2)), r"got \(3, 2\)"),
        (np.ones((2, 2, 2)), r"got \(2, 2, 2\)"),
        (3.0, r"got \(\)"),
        (np.ones((2, 0)), "coef has no columns"),
        ([np.nan, 1.0], "coef contains NaN"),
        ([1j, 1.0], "coef is complex"),
        (["a", "b"], "coef must hold numbers"),
    ],
)
def test_bad_coefficients(coef, message):
    with pytest.raises(mc.InputError, match=message):
        mc.Element(mc.Gaussian(1.0), [[0.0], [1.0]], coef)


def test_bad_points_and_queries():
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [1.0]], [1.0, 2.0])
    with pytest.raises(mc.InputError, match=r"points contains NaN"):
        mc.Element(mc.Gaussian(1.0), [[np.nan]], [1.0])
    with pytest.raises(mc.InputError, match=r"the element's points has 1 features, but Y has 2"):
        psi([[0.0, 1.0]])
    with pytest.raises(mc.InputError, match=r"Y must have shape"):
        psi([0.0])
    with pytest.raises(mc.InputError, match=r"Y contains infinity"):
        psi.gradient([[np.inf]])
    with pytest.raises(mc.InputError, match=r"X has no rows"):
        mc.feature(mc.Gaussian(1.0), np.empty((0, 1)))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda psi, batch: psi / 0.0, mc.InputError, "division of an element by zero"),
        (lambda psi, batch: batch / np.arange(7.0), mc.InputError, "division"),
        (lambda psi, batch: psi * np.ones(1), mc.InputError, "by a single number"),
        (lambda psi, batch: psi * np.ones(2), mc.InputError, "by a single number"),
        (
            lambda psi, batch: batch * np.ones(3),
            mc.InputError,
            "factors must have 7 entries, got 3",
        ),
        (lambda psi, batch: psi * np.nan, mc.InputError, "the factor must be finite"),
        (lambda psi, batch: psi * 1j, mc.InputError, "the factor must be a real number"),
        (lambda psi, batch: psi / 1j, mc.InputError, "real"),
        (lambda psi, batch: psi / np.nan, mc.InputError, "finite"),
        (lambda psi, batch: batch + batch[:3], mc.InputError, "batches of 7 and 3 elements"),
        (lambda psi, batch: psi.combine(np.ones(2)), mc.InputError, "one row per element of a"),
        (lambda psi, batch: batch.combine(np.ones(3)), mc.InputError, "one row per element of a"),
        (lambda psi, batch: batch.combine(np.full(7, np.nan)), mc.InputError, "contains NaN"),
        (lambda psi, batch: psi + 1.0, TypeError, "unsupported operand"),
        (lambda psi, batch: 1.0 + psi, TypeError, "unsupported operand"),
        (lambda psi, batch: psi - 1.0, TypeError, "unsupported operand"),
        (lambda psi, batch: psi * psi, TypeError, "unsupported operand"),
        (lambda psi, batch: psi * mc.Gaussian(1.0), (TypeError, ValueError), "Element"),
    ],
)
def test_bad_arithmetic(X, wrong, error, message):
    psi, batch = mc.mean_embedding(mc.Gaussian(1.0), X), mc.feature(mc.Gaussian(1.0), X)
    with pytest.raises(error, match=message):
        wrong(psi, batch)


def test_elements_are_not_changed_by_what_they_were_made_of(rng):
    """Elements are values; a buffer that the caller reuses must not change them."""
    a = np.array([1.0, 2.0])
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [1.0]], a)
    before = psi([[0.5]])
    a[:] = 9.0
    assert np.array_equal(psi([[0.5]]), before)


def test_elements_hold_read_only_arrays(X, rng):
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=7))
    assert not psi.points.flags.writeable
    with pytest.raises(AttributeError):
        psi.coef = None
    with pytest.raises(AttributeError):
        psi.kernel = mc.Linear()


def test_text(X):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    assert repr(psi) == "<Element of Gaussian(length_scale=1.0) on 7 points in 3 dimensions>"
    assert repr(mc.feature(mc.Linear(), X[:2])) == (
        "<batch of 2 Elements of Linear() on 2 points in 3 dimensions>"
    )


# --- any scale of the coefficients ------------------------------------------------------------

SCALES = [1e-300, 1e-200, 1e-120, 1e120, 1e200, 1e300]


def scaled_forms(k, X, s):
    """One element, features, a product of thin matrices, and a sum of two batches."""
    one, features = mc.Element(k, X, [s, -0.5 * s, 0.25 * s]), mc.feature(k, X) * s
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:2]))
    return one, features, plane.element([[1.0, 2.0]]) * s, features + one


@pytest.mark.parametrize("s", SCALES)
def test_norms_and_distances_at_any_scale(s):
    """Squares of coefficients leave the range of numbers, norms do not."""
    k, X = mc.Gaussian(1.0), np.array([[0.0], [1.0], [3.0]])
    plain = scaled_forms(k, X, 1.0)
    for psi, phi in zip(scaled_forms(k, X, s), plain, strict=True):
        assert_allclose(psi.norm() / s, phi.norm(), rtol=1e-14)
        other = mc.Element(k, [[0.5]], [s])
        wanted = phi.distance(mc.Element(k, [[0.5]], [1.0]))
        assert_allclose(psi.distance(other) / s, wanted, rtol=1e-14)
        for origin in (0.0, 1.0):
            far, near = (
                mc.Subspace.span(mc.Element(k, [[2.0]], [origin * t]), mc.feature(k, [[9.0]]))
                for t in (s, 1.0)
            )
            assert_allclose(far.distance(psi) / s, near.distance(phi), rtol=1e-12)


def test_elements_of_different_scales_share_a_batch():
    sizes = np.array([1e-250, 1e-3, 0.0, 1.0, 1e250])
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [9.0]], np.outer([1.0, 1.0], sizes))
    assert_allclose(psi.norm(), np.sqrt(2.0) * sizes, rtol=1e-14)
    tiny = mc.Element(mc.NegativeDistance(1.0), [[0.0], [1.0]], [1e-200, -1e-200])
    assert_allclose(tiny.norm() / 1e-200, np.sqrt(2.0))


def test_operators_at_any_scale():
    k = mc.Gaussian(1.0)
    for s, t in [(1e-200, 1e200), (1e-100, 1e-100), (1e120, 1e20)]:
        u, v = mc.Element(k, [[0.0]], [2.0 * s]), mc.Element(k, [[1.0]], [3.0 * t])
        assert_allclose(mc.space.tensor(u, v).norm(), 6.0 * s * t)
    big = mc.Element(k, [[0.0]], [1e200])
    with pytest.raises(mc.InputError, match="overflows; scale"):
        mc.space.tensor(big, big).norm()
    with pytest.raises(mc.InputError, match="overflows; scale"):
        big.inner(big)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: mc.mean_embedding("gaussian", [[0.0]]), "kernel must be a Kernel"),
        (lambda: mc.mean_embedding(mc.Gaussian, [[0.0]]), "kernel must be a Kernel"),
        (lambda: mc.feature(1.0, [[0.0]]), "kernel must be a Kernel"),
        (lambda: mc.Element(None, [[0.0]], [1.0]), "kernel must be a Kernel"),
        (lambda: mc.covariance(None, [[0.0]], mc.Linear(), [[0.0]]), "kernel must be a Kernel"),
        (lambda: mc.Element(mc.Gaussian(), [[0.0]], [[1.0], [1.0, 2.0]]), "rectangular"),
        (lambda: mc.Element(mc.Gaussian(), [[0.0]], ["a"]), "must hold numbers"),
        (lambda: mc.Element(mc.Gaussian(), [[0.0]], [np.inf]), "infinity"),
        (lambda: mc.Element(mc.Gaussian(), [[0.0]], 1.0), "coef must have shape"),
        (lambda: mc.Element(mc.Gaussian(), [[0.0]], [1.0]).inner([1.0]), "an Element is needed"),
        (lambda: mc.Element(mc.Gaussian(), [[0.0]], [1.0]) / 0.0, "division"),
        (lambda: mc.Subspace.span(3.0, mc.feature(mc.Gaussian(), [[0.0]])), "origin must be"),
        (lambda: mc.Subspace.span(mc.mean_embedding(mc.Gaussian(), [[0.0]]), 3.0), "a batch"),
        (lambda: mc.space.tensor(1.0, 2.0), "u must be an Element"),
    ],
)
def test_wrong_types_are_told(wrong, message):
    with pytest.raises(mc.InputError, match=message):
        wrong()


def test_overflow_is_told_and_not_warned_of():
    k, X = mc.Polynomial(100, 1.0, 1.0), np.array([[1e10], [2e10]])
    psi, big = mc.Element(k, X, [1.0, -1.0]), mc.Element(mc.Gaussian(), X, [1.7e308, 0.0])
    for wrong in (psi.norm, mc.feature(k, X).norm, lambda: mc.preimage(psi)):
        with pytest.raises(mc.InputError, match="overflow; scale the data down"):
            wrong()
    twice = np.full((2, 2), 1e300)
    for wrong in (
        lambda: big + big,
        lambda: big * 2.0,
        lambda: (mc.feature(k, X) * 1e300).combine(twice),
        lambda: mc.Element(k, X, twice).combine(twice),
    ):
        with pytest.raises(mc.InputError, match="coefficients overflow; scale the element down"):
            wrong()


@pytest.mark.parametrize("coef", [0.0, 1.0])
def test_norms_of_kernels_that_overflow_are_refused_without_a_warning(coef, rng):
    psi = mc.Element(mc.kernels.Exponential(0.001), rng.normal(size=(5, 2)), np.full(5, coef))
    with pytest.raises(mc.InputError, match="kernel values at the points overflow"):
        psi.norm()
