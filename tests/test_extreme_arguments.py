"""Extreme but legal arguments, as `make fuzz` found them: right answers, or errors that say why.

Warnings are errors in the suite, so every call here also shows that none leaks.
"""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import kernels, methods, preimages
from mercer.testing import check_element
from mercer.testing._claims import check_claims

X = np.random.default_rng(0).normal(size=(8, 3))


@pytest.mark.parametrize("rho", [1e-150, 1e-70, 1e-20, 1e-16, 1e-3])
@pytest.mark.parametrize("other", [mc.Linear(), mc.Polynomial(3, 1.0, 0.01), mc.Gaussian(1.0)])
def test_windows_smaller_than_the_rounding_of_a_distance(rho, other):
    Y = np.concatenate([X, X[:2]])
    for k in (kernels.Uniform(rho) + other, kernels.Uniform(rho) * other + mc.Linear()):
        assert_allclose(np.diag(k(Y)), k.diag(Y), rtol=1e-12)
        assert_allclose(k(Y)[0, 8], k.diag(Y)[0], rtol=1e-12)
        assert_allclose(mc.Element(k, Y, np.ones(10))(Y), k(Y).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("p", [2.0, 30.0, 300.0])
def test_the_gradient_bound_of_steep_kernels_is_that_of_the_points(p):
    bound = preimages.gradient_bound(mc.Element(mc.NegativeDistance(p), [[0.0], [1.0]], [1.0, 1.0]))
    assert_allclose(bound, 2.0 * p, rtol=1e-6)  # the diameter is 1


@pytest.mark.parametrize("c", [1e75, 1e160, 1e300])
def test_kernels_whose_length_is_beyond_the_square_root_of_all_numbers(c):
    psi = mc.Element(mc.NegativeDistance(1.0, c), X, np.ones((8, 3)))
    assert mc.preimage(psi, region=mc.Box(0.5, 2.0), random_state=0).points.shape == (3, 3)


@pytest.mark.parametrize("solver", [mc.MM(), mc.GradientDescent()], ids=repr)
def test_searches_without_an_end_are_cut_short(solver):
    """MM and gradient descent may need hundreds of thousands of steps for one row."""
    assert solver.max_iter == 1000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
def test_a_denoiser_with_such_a_search_ends():
    began = time.perf_counter()
    mc.KernelDenoiser(10, inverse=mc.MM()).fit(np.random.default_rng(0).normal(size=(30, 1)))
    assert time.perf_counter() - began < 20.0  # about three seconds


@pytest.mark.parametrize("coef", [1e300, 1e308])
def test_norms_that_overflow_are_infinite(coef):
    psi = mc.Element(1e75 * mc.Gaussian(1.0), X, np.full(8, coef))
    assert psi.norm() == np.inf


@pytest.mark.parametrize("kernel", [kernels.Epanechnikov, kernels.Uniform])
@pytest.mark.parametrize("size", [5e-324, 1e-160, 1e160, 1e300])
def test_windows_outside_of_the_range_of_squared_lengths(kernel, size):
    with pytest.raises(mc.InputError, match="must be between 1e-150 and 1e"):
        kernel(size)
    with pytest.raises(mc.InputError, match="rho must be between 1e-150 and 1e"):
        kernels.Epanechnikov(1.0, rho=size)


@pytest.mark.parametrize("size", [1e-150, 1e-100, 1e100, 1e150])
def test_modes_of_narrow_and_wide_windows(size):
    points = np.sqrt(size) * np.array([[0.0], [0.5], [10.0]])
    found = mc.mean_shift(mc.mean_embedding(kernels.Epanechnikov(size), points))
    assert_allclose(np.sort(found.points[:, 0]), np.sqrt(size) * np.array([0.25, 10.0]))


def test_modes_of_a_kernel_whose_length_underflows():
    class Steep(mc.Radial):
        """exp(-1e306 u): the length is 7e-154, and its square underflows."""

        flags = mc.Gaussian.flags

        def profile(self, u):
            return np.exp(-1e306 * u)

    with pytest.raises(mc.InputError, match="falls over some length"):
        mc.mean_shift(mc.mean_embedding(Steep(), X))


def test_queries_at_the_end_of_all_numbers_have_a_nearest_cluster():
    model = mc.MeanShift(kernel=mc.Laplace(2.0), blurring=True).fit(X)
    assert model.predict(1e300 * X).shape == (8,)


@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1.0, 1e300])
def test_clusters_are_ordered_by_weight_in_any_unit(weight):
    Z = np.array([[0.0], [0.1], [10.0], [10.1], [10.2]])
    model = mc.MeanShift(bandwidth=1.0).fit(Z, sample_weight=np.full(5, weight))
    assert model.labels_.tolist() == [1, 1, 0, 0, 0]


def test_no_cluster_is_large_enough_in_scaled_columns():
    model = mc.MeanShift(scale_columns="std", min_cluster_size=100).fit(X)
    assert model.cluster_centers_.shape == (0, 3)
    assert set(model.labels_) == {-1}


def test_denoising_with_a_kernel_of_denormal_numbers():
    tiny = 5e-324 * kernels.Epanechnikov(1.0) * kernels.VovkPolynomial(2)
    denoiser = methods.fit_denoiser(mc.kernel_pca(tiny, X[:5, :1], 3), X[3:, :1])
    assert np.isfinite(denoiser(X[:, :1])).all()


@pytest.mark.parametrize("tol", [1.0, 2.0, 1e160, 1e300])
def test_a_tolerance_above_one_is_one(tol):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    assert mc.compress(psi, 3, tol=tol).relative_error <= 1.0


@pytest.mark.parametrize("name", ["spatial", "colour"])
@pytest.mark.parametrize("value", [5e-324, 1e-80, 1e80])
def test_lengths_of_segments(name, value):
    with pytest.raises(mc.InputError, match=f"{name} must be between 1e-75 and 1e"):
        methods.segment(np.zeros((4, 4, 3)), **{name: value})


@pytest.mark.parametrize("length", [1e-75, 1e-40, 1e40, 1e75])
def test_lengths_beyond_the_range_of_float32(length):
    Y = np.array([[0.0, 1.0], [0.5, 1.0]], dtype=np.float32)
    k = mc.Gaussian(1.0).transform(mc.Scales([length, 1.0]))
    expected = 1.0 if length > 1.0 else 0.0
    assert_allclose(k(Y), [[1.0, expected], [expected, 1.0]])


@pytest.mark.parametrize("rows", [30, 400])
def test_an_imputer_says_that_its_kernel_is_not_positive_definite(rows):
    Z = np.random.default_rng(6).normal(size=(rows, 2))
    Z[0, 0] = np.nan
    kernel = mc.NegativeDistance(0.5) * (2.0 * mc.Epanechnikov(2.0))
    with pytest.raises(mc.InputError, match="kernel is not positive definite on these rows"):
        mc.KernelImputer(kernel, random_state=0, n_landmarks=300).fit(Z)


def test_sparse_points_in_all_diagnostics():
    import scipy.sparse

    psi = mc.mean_embedding(mc.Exponential(2.0), X)
    for function in (
        preimages.preimage_objective,
        preimages.preimage_gradient,
        preimages.preimage_hessian,
    ):
        assert_allclose(function(psi, scipy.sparse.csr_array(X)), function(psi, X))


@pytest.mark.parametrize("scales", [[30.0, 1.0], [1.0, 1.0]])
@pytest.mark.parametrize("solver", [mc.Newton(), mc.LBFGS()], ids=repr)
def test_a_search_does_not_return_to_the_same_cusp_for_ever(solver, scales):
    Z = np.random.default_rng(0).normal(size=(30, 2))
    psi = mc.Element(mc.Laplace(30.0).transform(mc.Scales(scales)), Z, np.ones(30))
    found = mc.preimage(psi, solver, random_state=0)
    assert found.status[0].ok
    assert found.n_evaluations[0] < 2000  # it was 29,000


def test_sparse_points_that_are_summed_again_by_differences():
    import scipy.sparse

    k = mc.Laplace(1.0).transform(mc.Scales([1e75, 0.5, 0.01]))
    dense, sparse = (mc.Element(k, Z, np.ones(8)) for Z in (X, scipy.sparse.csr_array(X)))
    for Y in (X, scipy.sparse.csr_array(X)):
        assert_allclose(sparse.gradient(Y), dense.gradient(X), rtol=1e-9, atol=1e-12)


def test_directions_of_features_that_overflow():
    large, other = mc.Exponential(0.01), kernels.Taylor((1.0, 1.0, 0.5))
    for k in (large, large * other):  # computed without k(x, x)
        assert np.isfinite(kernels.Normalised(k)(10.0 * X)).all()
    with pytest.raises(mc.exceptions.DomainError, match=r"k\(x, x\) = inf \(row \d\); scale the"):
        kernels.Normalised(large + other)(10.0 * X)


def test_objectives_that_overflow_have_no_minimum():
    psi = mc.feature(mc.Exponential(0.01), 10.0 * X[:, :2])
    with pytest.raises(mc.InputError, match="the objective overflows at the points of psi"):
        preimages.global_minimum(psi, 0.01, 10)


def test_products_with_a_matrix_that_overflows():
    S = mc.linalg.GramOperator(mc.Exponential(0.01), 10.0 * X, centred=True)
    assert np.isnan(S @ np.ones(8)).any()


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
@pytest.mark.parametrize("model", [mc.KernelDenoiser, mc.KernelNovelty, mc.KernelPCA])
def test_columns_are_scaled_with_weights_in_any_unit(model):
    one, other = (
        model(scale_columns="std", random_state=0).fit(X, sample_weight=np.full(8, weight))
        for weight in (1.0, 1e160)
    )
    assert_allclose(one.scaler_.scale_, other.scaler_.scale_)


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
def test_the_score_of_rows_at_the_end_of_all_numbers():
    model = mc.KernelDenoiser(3, noise=0.1).fit(X)
    assert model.score(1e300 * X) == -np.inf


def test_noise_in_features_that_overflow():
    kernel = mc.Exponential(0.01) * (2.0 * mc.Laplace(2.0))
    with pytest.raises(mc.InputError, match="overflow at these rows; scale them down"):
        methods.feature_noise(kernel, 10.0 * X, 0.1)


@pytest.mark.parametrize("other", [None, 3.0, X, mc.Gaussian(1.0)], ids=repr)
def test_distances_are_between_elements(other):
    with pytest.raises(mc.InputError, match=r"an Element is needed, got \w+"):
        mc.mean_embedding(mc.Gaussian(1.0), X).distance(other)


def test_an_imputer_whose_kernel_overflows():
    Z = np.random.default_rng(1).normal(size=(30, 2))
    with pytest.raises(mc.InputError, match="overflow at these rows; scale them down"):
        mc.KernelImputer(mc.Exponential(0.01), n_landmarks=2, random_state=0).fit(10.0 * Z)


@pytest.mark.parametrize("scale", [1e-75, 1e-15, 1e-10, 1e-3])
@pytest.mark.parametrize(
    "other", [mc.Gaussian(2.0), kernels.Constant(2.0), mc.Exponential(0.5)], ids=repr
)
def test_directions_of_steep_exponentials(scale, other):
    """<x, y> - |x|^2 / 2 - |y|^2 / 2 cancels, so it is computed as a distance."""
    k = kernels.Normalised(mc.Exponential(scale))
    once, scaled = kernels.Normalised(k), kernels.Normalised(mc.Exponential(scale) * other)
    behind = kernels.Normalised(mc.Exponential(scale).transform(mc.Scales([1.0, 2.0, 3.0])))
    for made in (k, once, scaled, behind):
        assert_allclose(np.diag(made(X)), np.ones(8), rtol=1e-12)
    assert_allclose(k(X), mc.Gaussian(np.sqrt(scale))(X), rtol=1e-9, atol=1e-12)
    assert_allclose(scaled(X), k(X) * kernels.Normalised(other)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "size"),
    [(kernels.ArcCosine(1), 1e-160), (mc.Linear(), 1e-160)],
    ids=repr,
)
def test_directions_of_features_whose_digits_are_lost(kernel, size):
    with pytest.raises(mc.exceptions.DomainError, match=r"digits are lost; scale the points or"):
        kernels.Normalised(kernel)(size * X)


@pytest.mark.parametrize("size", [1e-150, 1e-100, 1e100, 1e150])
def test_directions_of_short_and_long_points(size):
    for kernel in (kernels.ArcCosine(1), mc.Linear()):
        k = kernels.Normalised(kernel)
        assert_allclose(k(size * X), k(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", [kernels.Constant(2.0), mc.Gaussian(1.0), mc.Linear()], ids=repr)
@pytest.mark.parametrize("noise", [1e160, 1e300])
def test_noise_whose_square_overflows(kernel, noise):
    with pytest.raises(mc.InputError, match="overflows in the features of"):
        methods.feature_noise(kernel, X, noise)


@pytest.mark.parametrize("p", [0.5, 2.0, 30.0])
def test_a_density_that_grows_without_end(p):
    with pytest.raises(mc.InputError, match="has no finite integral over 3 dimensions"):
        mc.kernel_density(mc.NegativeDistance(0.5) * mc.NegativeDistance(p), X)


@pytest.mark.parametrize("model", [mc.KernelPCA, mc.KernelDenoiser, mc.KernelNovelty])
def test_columns_whose_standard_deviation_overflows(model):
    import scipy.sparse

    wide = X * [1.0, 1e160, 1e300]
    for Z in (1e300 * X, wide, scipy.sparse.csr_array(wide)):
        for scale in ("std", "none"):
            with pytest.raises(mc.InputError, match="whose squares overflow; rescale it"):
                model(scale_columns=scale, random_state=0).fit(Z)


@pytest.mark.parametrize("c", [0.0, 30.0, 1e75, 1e140])
@pytest.mark.parametrize("scales", [[1.0, 1.0], [30.0, 0.01]])
def test_a_profile_that_is_negative_far_away_is_not_completely_monotone(c, scales):
    """All its differences have the right sign but that of order zero, the value."""
    kernel = mc.NegativeDistance(1.0, c).transform(mc.Scales(scales))
    check_claims(kernel, kernel.flags, dims=(2,))


@pytest.mark.parametrize("weight", [1.0, 1e300])
def test_an_imputer_whose_kernel_overflows_with_its_weights(weight):
    Z = np.random.default_rng(1).normal(size=(30, 2))
    Z[0, 0] = np.nan
    model = mc.KernelImputer(mc.Polynomial(1000, 1.0, 1.0), random_state=0)
    with pytest.raises(mc.InputError, match="overflow at these rows; scale them down"):
        model.fit(3.0 * Z, sample_weight=np.full(30, weight))


@pytest.mark.parametrize("scales", [[1.0, 30.0, 0.01], [0.01, 0.01, 30.0]])
@pytest.mark.parametrize("kernel", [mc.RationalQuadratic(2.0), mc.Gaussian(1.0)], ids=repr)
def test_characteristic_kernels_behind_very_different_scales(kernel, scales):
    """Points must be far apart along each axis, or the smallest eigenvalue is below rounding."""
    scaled = kernel.transform(mc.Scales(scales))
    check_claims(scaled, scaled.flags, dims=(3,))
    flat = mc.Linear().transform(mc.Scales(scales))
    with pytest.raises(AssertionError, match="claims to be characteristic, but"):
        check_claims(flat, kernels.Flags(characteristic=True), dims=(3,))


@pytest.mark.parametrize("name", ["blurring", "bin_seeding"])
@pytest.mark.parametrize("value", [np.zeros((2, 2)), "yes", None], ids=repr)
def test_switches_of_mean_shift(name, value):
    with pytest.raises(mc.InputError, match=f"{name} must be True or False, got"):
        mc.MeanShift(**{name: value}).fit(X)


@pytest.mark.parametrize(("n_terms", "dim"), [(2**31, 1), (2**31, 2), (2, 2**31)])
def test_expansions_of_very_many_terms(n_terms, dim):
    with pytest.raises(mc.InputError, match=r"n_terms \* dim must be at most 1000000, got"):
        mc.theory.MercerExpansion(0.01, 0.5, n_terms, dim)
    assert len(mc.theory.MercerExpansion(0.01, 0.5, 10**5, 3).orders) == 10**5


@pytest.mark.parametrize("coef", [1.0, -1.0, 0.0])
def test_contours_of_what_is_no_density(coef):
    plt = pytest.importorskip("matplotlib.pyplot")
    from mercer import plot

    modes = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.5), X[:, :2]))
    density = mc.Element(mc.NegativeDistance(1.0), X[:, :2], np.full(8, coef))
    axis = plot.plot_modes(modes, X=X[:, :2], density=density)
    assert bool(axis.collections) == (coef != 0.0)
    plt.close("all")


@pytest.mark.parametrize("scale", [1e-75, 1e-20, 1e-14])
@pytest.mark.parametrize("kernel", [kernels.Periodic((1.0, 2.0)), kernels.PeriodicSobolev(1, 2.0)])
def test_angles_that_are_lost_in_rounding(kernel, scale):
    k = kernel.transform(mc.Scales([scale]))
    for made in (k, mc.Linear() + k):
        with pytest.raises(mc.InputError, match=r"more than 1e\+12 periods apart .*; rescale them"):
            made(X[:, :1], X[:4, :1])


def test_angles_behind_a_scale_are_those_of_the_differences():
    k, Z, Y = kernels.Periodic((1.0, 2.0)), X[:, :1], 2.0 * X[:5, 1:2]
    scaled = k.transform(mc.Scales([1e-3]))
    assert_allclose(scaled(Z, Y), scaled(Y, Z).T, atol=1e-10)
    assert_allclose(scaled(Z, Y), k(1e3 * Z, 1e3 * Y), atol=1e-10)


@pytest.mark.parametrize("weight", [1e-160, 1e160])
def test_the_variance_is_the_same_with_weights_in_any_unit(weight):
    one, other = (mc.KernelPCA(2).fit(X, sample_weight=np.full(8, w)) for w in (1.0, weight))
    assert_allclose(one.variance_, other.variance_)


@pytest.mark.parametrize("model", [mc.MeanShift, mc.KernelPCA, mc.KernelNovelty])
@pytest.mark.parametrize("value", [np.zeros((2, 2)), ["std"], 1, None], ids=repr)
def test_scale_columns_is_a_word(model, value):
    with pytest.raises(mc.InputError, match='scale_columns must be "auto", "none" or "std"'):
        model(scale_columns=value).fit(X)


@pytest.mark.parametrize("columns", [X[:, :2], [0, X], ["x0", ["x1"]], [[0, 1]]])
def test_columns_of_a_plot_are_two(columns):
    pytest.importorskip("matplotlib")
    from mercer import plot

    modes = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.5), X))
    with pytest.raises(mc.InputError, match="columns must be two different numbers below 3"):
        plot.plot_modes(modes, X=X, columns=columns)


def test_derivatives_at_points_that_are_not_numbers():
    psi = mc.Element(kernels.Hamming(2.0), [["a", "b"], ["c", "d"]], np.ones(2))
    for function in (preimages.preimage_gradient, preimages.preimage_hessian):
        with pytest.raises(mc.MercerError, match="no derivatives"):
            function(psi, [["a", "d"]])


@pytest.mark.parametrize("weight", [1e-200, 1e-100, 1e100])
def test_novelty_is_the_same_with_weights_in_any_unit(weight):
    one, other = (mc.KernelNovelty().fit(X, sample_weight=np.full(8, w)) for w in (1.0, weight))
    assert_allclose(one.score_samples(2.0 * X), other.score_samples(2.0 * X), rtol=1e-6)


def test_elements_whose_values_overflow_cannot_be_checked():
    psi = mc.feature(mc.Exponential(0.01), np.random.default_rng(3).normal(size=(3, 2)))
    with pytest.raises(AssertionError, match="kernel values overflow; take points"):
        check_element(psi)


@pytest.mark.parametrize("factor", [1e-300, 1e200, 1e300])
@pytest.mark.parametrize("kernel", [mc.NegativeDistance(1.0, 0.01), mc.Gaussian(9.0)], ids=repr)
def test_a_factor_does_not_change_the_bandwidth_of_convergence(kernel, factor):
    one, other = (mc.theory.convergence_bandwidth(k, X) for k in (kernel, factor * kernel))
    assert (one.root, one.proved, one.holds) == (other.root, other.proved, other.holds)


def test_plots_of_kernels_at_the_ends_of_all_numbers():
    plt = pytest.importorskip("matplotlib.pyplot")
    from mercer import plot

    plot.plot_kernel(5e-324 * mc.NegativeDistance(1.0, 1.0), random_state=0)
    for kernel in (mc.Exponential(0.01), 1e305 * mc.Linear()):
        with pytest.raises(mc.InputError, match="overflow at these points; scale them down"):
            plot.plot_gram(kernel, 10.0 * X)
    plt.close("all")


def test_a_region_whose_square_overflows_is_searched():
    k = mc.Linear().transform(mc.Scales([1.0, 0.5, 1e75]))
    points = np.random.default_rng(7).normal(size=(5, 3))
    found = preimages.global_minimum(mc.mean_embedding(k, points), 30.0, 50)[0]
    assert found.lower <= found.upper


def test_a_density_of_frequencies_may_be_infinite():
    measure = (2.0 * mc.RationalQuadratic(0.01, 1.0)).spectral_measure(2)
    values = measure.density(np.geomspace(1e-160, 1e-150, 2000)[:, None] * [1.0, 0.5])
    assert np.all(values > 0.0)
    assert np.isinf(values).any()


@pytest.mark.parametrize("other", [kernels.ArcCosine(1), 2.0 * kernels.Exponential(1.0)])
def test_a_sum_whose_characteristic_part_is_below_rounding_passes_its_checks(other):
    for kernel in (mc.Gaussian(30.0) + other, mc.InverseMultiquadric(2.0, 0.5) + other):
        check_claims(kernel, kernel.flags, dims=(1,))
