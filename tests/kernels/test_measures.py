"""Mixing and spectral measures against SciPy's distributions and integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from sklearn.kernel_approximation import RBFSampler

import mercer as mc

N = 4000
SEED = 7


def matches(sample, distribution):
    """Kolmogorov-Smirnov with a fixed seed; a wrong law of 5 % gives p below 1e-4 here."""
    return stats.kstest(sample, distribution).pvalue > 1e-3


# --- mixing measures ------------------------------------------------------------------------------

MIXING = [
    (mc.InverseMultiquadric(2.0, 0.7), stats.gamma(0.7, scale=1 / 2.0), 2.0**-0.7),
    (mc.RationalQuadratic(1.5, 0.8), stats.gamma(1.5, scale=1 / (2 * 1.5 * 0.64)), 1.0),
    (mc.Laplace(0.5), stats.levy(scale=2 * 0.25 / 0.25), 1.0),
    (mc.Matern(0.5, 2.0), stats.invgamma(0.5, scale=0.25 / 4.0), 1.0),
    (mc.Matern(1.5, 2.0), stats.invgamma(1.5, scale=0.75 / 4.0), 1.0),
    (mc.Matern(2.5, 0.4), stats.invgamma(2.5, scale=1.25 / 0.16), 1.0),
    (3.0 * mc.Matern(1.5, 2.0), stats.invgamma(1.5, scale=0.75 / 4.0), 3.0),
]


@pytest.mark.parametrize(("kernel", "law", "mass"), MIXING, ids=lambda v: repr(v)[:40])
def test_mixing_measures_are_known_laws(kernel, law, mass):
    mu = kernel.mixing_measure()
    t = law.ppf([0.001, 0.1, 0.5, 0.9, 0.999])
    assert_allclose(mu.density(t), mass * law.pdf(t), rtol=1e-10)
    assert_allclose(mu.mass, mass, rtol=1e-14)
    assert matches(mu.sample(N, SEED), law.cdf)
    wrong = stats.kstest(1.1 * mu.sample(N, SEED), law.cdf).pvalue
    assert wrong < 0.2  # and the test can tell


def test_gaussian_mixes_nothing():
    mu = mc.Gaussian(2.0).mixing_measure()
    assert np.array_equal(mu.sample(3, 0), np.full(3, 0.125))
    with pytest.raises(mc.exceptions.UnavailableError, match=r"point mass at t = 0\.125"):
        mu.density(1.0)


def test_mixing_measures_of_sums_and_products():
    a, b = mc.InverseMultiquadric(1.0, 2.0), mc.Matern(1.5, 1.0)
    total = (2.0 * a + b).mixing_measure()
    t = np.array([0.1, 1.0, 3.0])
    parts = 2.0 * a.mixing_measure().density(t) + b.mixing_measure().density(t)
    assert_allclose(total.density(t), parts, rtol=1e-14)
    assert total.mass == 3.0
    draws = total.sample(N, SEED)
    law = lambda x: (2 * stats.gamma(2).cdf(x) + stats.invgamma(1.5, scale=0.75).cdf(x)) / 3  # noqa: E731
    assert matches(draws, law)
    moved = (mc.Gaussian(1.0) * a).mixing_measure()
    assert_allclose(moved.density(0.5 + t), a.mixing_measure().density(t), rtol=1e-14)
    assert np.array_equal(moved.density([0.1, 0.49]), [0.0, 0.0])
    assert matches(moved.sample(N, SEED) - 0.5, stats.gamma(2).cdf)
    gammas = (mc.InverseMultiquadric(1.0, 2.0) * mc.InverseMultiquadric(1.0, 1.5)).mixing_measure()
    assert matches(gammas.sample(N, SEED), stats.gamma(3.5).cdf)
    with pytest.raises(mc.exceptions.UnavailableError, match=r"no closed density; sample it"):
        gammas.density(t)


def test_kernels_without_a_mixing_measure_say_so():
    for k in (
        mc.Linear(),
        mc.Epanechnikov(1.0),
        mc.NegativeDistance(1.0),
        mc.Gaussian(1.0) + mc.Linear(),
    ):
        with pytest.raises(mc.exceptions.UnavailableError):
            k.mixing_measure()


# --- spectral measures ----------------------------------------------------------------------------

SPECTRAL_1D = [
    (mc.Gaussian(2.0), stats.norm(scale=0.5)),
    (mc.Laplace(2.0), stats.cauchy(scale=0.5)),
    (mc.Matern(0.5, 2.0), stats.cauchy(scale=0.5)),
    (mc.Matern(1.5, 2.0), stats.t(3, scale=0.5)),
    (mc.Matern(2.5, 0.3), stats.t(5, scale=1 / 0.3)),
    (mc.InverseMultiquadric(4.0, 1.0), stats.laplace(scale=0.5)),
    (mc.RationalQuadratic(1.0, 1.0), stats.laplace(scale=1 / np.sqrt(2.0))),
]


@pytest.mark.parametrize(("kernel", "law"), SPECTRAL_1D, ids=lambda v: repr(v)[:40])
def test_spectral_measures_on_the_line(kernel, law):
    measure = kernel.spectral_measure(1)
    w = law.ppf([0.01, 0.2, 0.6, 0.99])
    assert_allclose(measure.density(w[:, None]), measure.mass * law.pdf(w), rtol=1e-9)
    assert matches(measure.sample(N, SEED)[:, 0], law.cdf)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_spectral_measures_in_more_dimensions(d, rng):
    w = rng.normal(size=(6, d))
    normal = stats.multivariate_normal(np.zeros(d), np.eye(d) / 4.0)
    assert_allclose(mc.Gaussian(2.0).spectral_measure(d).density(w), normal.pdf(w), rtol=1e-12)
    for nu in (0.5, 1.5, 2.5):
        student = stats.multivariate_t(np.zeros(d), np.eye(d) / 4.0, df=2 * nu)
        mine = mc.Matern(nu, 2.0).spectral_measure(d)
        assert_allclose(mine.density(w), student.pdf(w), rtol=1e-11)
        radius = (mine.sample(N, SEED) ** 2).sum(axis=1) * 4.0 / d
        assert matches(radius, stats.f(d, 2 * nu).cdf)
    radius = (mc.Gaussian(2.0).spectral_measure(d).sample(N, SEED) ** 2).sum(axis=1) * 4.0
    assert matches(radius, stats.chi2(d).cdf)


@pytest.mark.parametrize(
    "kernel",
    [mc.RationalQuadratic(0.7, 1.0), mc.InverseMultiquadric(1.0, 2.0), mc.Matern(1.5),
     mc.Laplace(1.0), mc.Gaussian(0.7) + 0.5 * mc.Laplace(2.0), 2.0 * mc.Gaussian(1.0)],
    ids=repr,
)  # fmt: skip
def test_bochner_on_the_line(kernel):
    """k(x) = int cos(w x) dLambda(w)."""
    measure = kernel.spectral_measure(1)
    density = lambda w: measure.density([[w]])[0]  # noqa: E731
    for x in (0.5, 1.5, 4.0):
        value = 2 * integrate.quad(density, 0, np.inf, weight="cos", wvar=x)[0]
        assert_allclose(value, kernel([[0.0]], [[x]])[0, 0], atol=1e-6)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5])
def test_density_at_frequency_zero(p):
    """Finite exactly where the kernel is integrable, p > d/2; the limit from beside it."""
    for d in (1, 2, 3):
        measure = mc.InverseMultiquadric(2.0, p).spectral_measure(d)
        at, beside = measure.density(np.zeros((1, d)))[0], measure.density(np.full((1, d), 1e-9))[0]
        if 2 * p > d:
            assert_allclose(at, beside, rtol=1e-3)
        else:
            assert np.isinf(at)
            assert np.isfinite(beside)


def test_spectral_measure_of_maps(rng):
    A = rng.normal(size=(2, 2))
    k = mc.Gaussian(1.0).transform(mc.kernels.Matrix(A))
    w = rng.normal(size=(5, 2))
    normal = stats.multivariate_normal(np.zeros(2), A.T @ A)
    measure = k.spectral_measure(2)
    assert_allclose(measure.density(w), normal.pdf(w), rtol=1e-10)
    sample = np.linalg.solve(A.T, measure.sample(N, SEED).T)
    assert matches(sample.ravel(), stats.norm.cdf)
    scaled = mc.Laplace(1.0).transform(mc.Scales([2.0, 0.5])).spectral_measure(2)
    assert matches(scaled.sample(N, SEED)[:, 0], stats.cauchy(scale=0.5).cdf)
    assert matches(scaled.sample(N, SEED)[:, 1], stats.cauchy(scale=2.0).cdf)


def test_spectral_measure_of_some_columns_has_draws_but_no_density():
    measure = mc.Gaussian(1.0).transform(mc.Columns([1])).spectral_measure(3)
    sample = measure.sample(N, SEED)
    assert np.array_equal(sample[:, [0, 2]], np.zeros((N, 2)))
    assert matches(sample[:, 1], stats.norm.cdf)
    with pytest.raises(mc.exceptions.UnavailableError, match=r"lies on a subspace"):
        measure.density(np.zeros((1, 3)))


def test_spectral_measures_of_sums_and_products():
    both = (mc.Gaussian(1.0) * mc.Gaussian(0.5)).spectral_measure(1)
    law = stats.norm(scale=np.sqrt(5.0))
    assert matches(both.sample(N, SEED)[:, 0], law.cdf)
    assert_allclose(both.density([[1.3]]), law.pdf(1.3), rtol=1e-12)
    mixture = (mc.Gaussian(1.0) + 3.0 * mc.Gaussian(0.1)).spectral_measure(1)
    cdf = lambda w: 0.25 * stats.norm.cdf(w) + 0.75 * stats.norm(scale=10.0).cdf(w)  # noqa: E731
    assert matches(mixture.sample(N, SEED)[:, 0], cdf)
    sum_of = (mc.Gaussian(1.0) * mc.Laplace(1.0)).spectral_measure(1)
    with pytest.raises(mc.exceptions.UnavailableError, match=r"sample it"):
        sum_of.density([[0.0]])
    columns = mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Laplace(1.0).transform(
        mc.Columns([1])
    )
    sample = columns.spectral_measure(2).sample(N, SEED)
    assert matches(sample[:, 0], stats.norm.cdf)
    assert matches(sample[:, 1], stats.cauchy.cdf)


def test_spectral_densities_follow_from_mixing_measures(rng):
    w = rng.normal(size=(4, 2))
    squared = (w**2).sum(axis=1)
    a, b = mc.Laplace(1.0), mc.InverseMultiquadric(1.0, 2.0)
    for kernel in (a + b, 3.0 * a, a * 3.0, mc.Gaussian(1.0) * mc.Gaussian(2.0)):
        mixed = kernel.mixing_measure().spectral_density(squared, 2)
        assert_allclose(mixed, kernel.spectral_measure(2).density(w), rtol=1e-12)
    with pytest.raises(mc.exceptions.UnavailableError, match=r"no closed density; sample it"):
        (a * b).mixing_measure().spectral_density(squared, 2)


def test_constants_have_their_mass_at_zero():
    measure = mc.kernels.Constant(2.0).spectral_measure(2)
    assert measure.mass == 2.0
    assert np.array_equal(measure.sample(3, 0), np.zeros((3, 2)))
    with pytest.raises(mc.exceptions.UnavailableError, match=r"no density"):
        measure.density(np.zeros((1, 2)))


def test_frequencies_are_those_of_scikit_learn():
    """The same law of frequencies as RBFSampler, which draws sqrt(2 gamma) times normals."""
    theirs = RBFSampler(gamma=0.7, n_components=N, random_state=0).fit(np.zeros((1, 1)))
    mine = mc.Gaussian.from_gamma(0.7).spectral_measure(1).sample(N, SEED)[:, 0]
    assert stats.ks_2samp(mine, theirs.random_weights_[0]).pvalue > 1e-3


def test_random_fourier_features_converge(rng):
    """The error falls like the root of their number."""
    X, errors = rng.normal(size=(15, 3)), []
    k = mc.Matern(1.5, 1.0)
    for size in (100, 10_000):
        w = k.spectral_measure(3).sample(size, 1)
        errors.append(np.abs(np.cos((X[:, None] - X) @ w.T).mean(-1) - k(X)).max())
    assert errors[1] < 0.3 * errors[0] < 0.15


def test_draws_honour_the_seed():
    measure = (mc.Gaussian(1.0) + mc.Laplace(1.0)).spectral_measure(2)
    assert np.array_equal(measure.sample(5, 3), measure.sample(5, 3))
    assert not np.array_equal(measure.sample(5, 3), measure.sample(5, 4))
    generator = np.random.default_rng(3)
    assert np.array_equal(measure.sample(5, generator), measure.sample(5, 3))


def test_frequencies_are_checked():
    measure = mc.Gaussian(1.0).spectral_measure(2)
    with pytest.raises(mc.InputError, match=r"w must have 2 columns, got 1"):
        measure.density([[1.0]])
    with pytest.raises(mc.exceptions.UnavailableError, match=r"no known spectral measure"):
        mc.Linear().spectral_measure(1)
    with pytest.raises(mc.exceptions.UnavailableError, match=r"no completely monotone profile"):
        mc.Epanechnikov(1.0).spectral_measure(1)


@pytest.mark.parametrize("dim", [None, "x", 0, 1.5, True, np.zeros((2, 2))])
@pytest.mark.parametrize("kernel", [
    mc.Gaussian(1.0), mc.Gaussian(1.0) * mc.Laplace(1.0), mc.Laplace(1.0).transform(mc.Scales([1])),
    mc.kernels.LaplaceProduct(1.0), mc.kernels.PeriodicSobolev(1), mc.kernels.Constant(1.0),
], ids=repr)  # fmt: skip
def test_a_dimension_is_a_whole_number(kernel, dim):
    with pytest.raises(mc.InputError, match="dim must be an integer >= 1"):
        kernel.spectral_measure(dim)


@pytest.mark.parametrize("other", [1.0, None, "x", mc.Gaussian(1.0).spectral_measure(1)], ids=repr)
def test_mixing_measures_are_combined_with_mixing_measures(other):
    measure = mc.Gaussian(1.0).mixing_measure()
    for combine in (measure.__add__, measure.__mul__):
        with pytest.raises(mc.InputError, match="other must be"):
            combine(other)
    assert not hasattr(measure + measure, "dim")


@pytest.mark.parametrize("size", ["x", 1.5, 0, -1, None])
def test_sizes_of_samples(size):
    for measure in (mc.Laplace(1.0).mixing_measure(), mc.Laplace(1.0).spectral_measure(2)):
        with pytest.raises((mc.InputError, TypeError), match="size must be"):
            measure.sample(size)
