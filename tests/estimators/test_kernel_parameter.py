"""The `kernel` parameter of estimators: names, "auto", and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import InputTags, Tags, TargetTags

import mercer as mc
from mercer.estimators._kernel_parameter import resolve_kernel, set_kernel_tags
from mercer.kernels._names import KERNELS

NAMES = ["rbf", "poly", "polynomial", "linear", "cosine", "sigmoid", "chi2"]
FIXED = ["linear", "cosine"]


def auto_length(X, weights=None):
    """Length scale of "auto", by a double loop over pairs of rows."""
    w = np.ones(len(X), dtype=int) if weights is None else np.asarray(weights)
    rows = np.repeat(np.asarray(X, dtype=float), w, axis=0)
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(rows) for b in rows[:i]]
    gaps = [gap for gap in gaps if gap > 0]
    return np.median(gaps) / np.sqrt(2.0) if gaps else 1.0


@pytest.mark.parametrize(
    ("name", "gamma"),
    [(name, None) for name in NAMES] + [(name, 0.3) for name in NAMES if name not in FIXED],
)
def test_names_are_scikit_learns(name, gamma, rng):
    X, Y = rng.uniform(0.1, 2.0, size=(7, 4)), rng.uniform(0.1, 2.0, size=(5, 4))
    options = {} if gamma is None else {"gamma": gamma}
    if name in ("poly", "polynomial"):
        options |= {"degree": 3, "coef0": 1}
    ours = resolve_kernel(name, X, gamma=gamma)(X, Y)
    np.testing.assert_allclose(ours, pairwise_kernels(X, Y, metric=name, **options), rtol=1e-12)


def test_two_names_of_the_gaussian_and_the_euclidean_laplace(rng):
    X = rng.normal(size=(6, 3))
    assert (
        resolve_kernel("gaussian", X) == resolve_kernel("rbf", X) == mc.Gaussian.from_gamma(1 / 3)
    )
    assert resolve_kernel("laplace", X, gamma=0.5) == mc.Laplace(2.0)
    assert resolve_kernel("laplace", X) == mc.Laplace(3.0)
    assert resolve_kernel("laplacian", X) == mc.kernels.LaplaceProduct(3.0)


def test_a_kernel_is_returned_without_a_look_at_the_points():
    kernel = mc.Spectrum(2)
    assert resolve_kernel(kernel, ["abc", "bcd"]) is kernel


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), "auto", "linear", "cosine"])
def test_a_gamma_that_would_be_ignored_is_refused(kernel):
    with pytest.raises(mc.InputError, match="would be ignored"):
        resolve_kernel(kernel, [[0.0], [1.0]], gamma=0.1)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, "scale", True])
def test_gamma_is_a_positive_number(gamma):
    for name in ("rbf", "laplace", "matern", "poly", "sigmoid", "chi2"):
        with pytest.raises(mc.InputError, match="gamma"):
            resolve_kernel(name, [[0.0], [1.0]], gamma=gamma)


def test_the_names_of_the_command_line_are_names_here():
    from mercer.cli._options import parse_kernel

    assert parse_kernel("rbf:2") == mc.Gaussian(2.0)
    X = [[0.0, 1.0]]
    for name, cls in KERNELS.items():
        assert type(resolve_kernel(name, X)) is cls


@pytest.mark.parametrize("kernel", ["RBF", "precomputed", None, 3, mc.Gaussian, ["rbf"]])
def test_anything_else_is_refused_with_what_is_accepted(kernel):
    with pytest.raises(mc.InputError, match=r"'auto', 'gaussian', 'laplace', .*'rbf', 'poly'"):
        resolve_kernel(kernel, [[0.0], [1.0]])


def test_functions_are_refused_with_a_cure():
    with pytest.raises(mc.InputError, match="FromFunction"):
        resolve_kernel(np.dot, [[0.0], [1.0]])


@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 7), st.integers(1, 3)), elements=st.integers(-4, 4)
    ),
    st.data(),
)
def test_auto_is_the_weighted_median_over_distinct_pairs(X, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X)))
    assert resolve_kernel("auto", X).length_scale == pytest.approx(auto_length(X), rel=1e-12)
    if sum(weights) == 0:
        with pytest.raises(mc.InputError, match="weights must not all be zero"):
            resolve_kernel("auto", X, sample_weight=weights)
        return
    found = resolve_kernel("auto", X, sample_weight=weights).length_scale
    assert found == pytest.approx(auto_length(X, weights), rel=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, csr_array, csr_matrix])
def test_auto_without_two_different_rows_has_length_one(kind):
    assert resolve_kernel("auto", kind([[2.0, 0.0]])) == mc.Gaussian(1.0)
    assert resolve_kernel("auto", kind(np.tile([2.0, 0.0], (5, 1)))) == mc.Gaussian(1.0)
    one = resolve_kernel("auto", kind([[2.0, 0.0], [0.0, 1.0]]), sample_weight=[0.0, 3.0])
    assert one == mc.Gaussian(1.0)


@pytest.mark.parametrize("kind", [np.asarray, csr_array, csr_matrix])
def test_auto_sees_few_rows_that_differ_among_very_many(kind):
    X = np.zeros((20_000, 2))
    X[[7, 11_111]] = [[3.0, 4.0], [3.0, 4.0]]
    assert resolve_kernel("auto", kind(X)).length_scale == pytest.approx(5.0 / np.sqrt(2.0))


def test_auto_follows_scale_and_ignores_the_origin(rng):
    X = rng.normal(size=(60, 3))
    length = resolve_kernel("auto", X).length_scale
    assert resolve_kernel("auto", 8.0 * X).length_scale == pytest.approx(8.0 * length, rel=1e-12)
    assert resolve_kernel("auto", X + 1e6).length_scale == pytest.approx(length, rel=1e-8)
    assert resolve_kernel("auto", csr_array(X)).length_scale == pytest.approx(length, rel=1e-12)
    assert resolve_kernel("auto", X.astype(np.float32)).length_scale == pytest.approx(length, 1e-6)


def test_auto_of_distances_that_underflow():
    with pytest.raises(mc.InputError, match="rescale the data"):
        resolve_kernel("auto", [[0.0], [1e-200]])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_auto_does_not_hide_bad_points_and_weights(bad):
    with pytest.raises(mc.InputError, match=r"NaN|infinity"):
        resolve_kernel("auto", [[0.0], [bad]])
    with pytest.raises(mc.InputError, match=r"NaN|infinity"):
        resolve_kernel("auto", [[0.0], [1.0]], sample_weight=[1.0, bad])
    with pytest.raises(mc.InputError, match="2 entries"):
        resolve_kernel("auto", [[0.0], [1.0]], sample_weight=[1.0])


@pytest.mark.parametrize(
    ("kernel", "sparse", "positive", "pairwise", "matrix"),
    [
        ("auto", True, False, False, True),
        (mc.Gaussian(1.0), True, False, False, True),
        ("chi2", False, True, False, True),
        (mc.kernels.Minimum(), False, True, False, True),
        ("precomputed", True, False, True, True),
        (mc.Spectrum(2), False, False, False, False),
    ],
)
def test_tags_say_which_matrices_are_taken(kernel, sparse, positive, pairwise, matrix):
    tags = Tags(None, TargetTags(required=False), input_tags=InputTags())
    set_kernel_tags(tags, kernel)
    found = tags.input_tags
    assert (found.sparse, found.positive_only, found.pairwise) == (sparse, positive, pairwise)
    assert found.two_d_array == matrix
