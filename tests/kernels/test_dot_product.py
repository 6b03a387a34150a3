"""Power series of the inner product, their balls, the sigmoid, and the uniform window."""

import math
import re

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import sigmoid_kernel

import mercer as mc
from mercer.engine import Const, Var, evaluate
from mercer.engine.programs._expr import substitute
from mercer.engine.programs._tape import tape
from mercer.kernels import Vectors
from mercer.kernels._domain import Intersection, Mapped, OpenBall
from mercer.kernels._dot_product import Geometric, Sigmoid, Taylor, VovkPolynomial
from mercer.kernels._radial import Uniform
from mercer.testing import check_algebra, check_kernel
from tests import naive

KERNELS = [
    Geometric(),
    Geometric(0.3),
    Geometric(50.0),
    *(VovkPolynomial(p) for p in (1, 2, 3, 4, 6, 7, 12)),
    Taylor([2.0]),
    Taylor([0.0, 1.0]),
    Taylor([1.0, 1.0, 0.5, 1 / 6]),
    Taylor([0.0, 0.0, 1.0, 0.0, 0.0, 0.1]),
    Taylor([1.0, 0.0, 0.5, 0.0, 0.1]),
    Taylor([1.0, 2.0, 3.0], radius=2.0),
    Sigmoid(),
    Sigmoid(3.0, -1.0),
    Sigmoid(0.5, 2.0),
    Uniform(),
    Uniform(0.3),
    Geometric(1.5) * mc.Gaussian(1.0) + 0.5,
    Geometric(2.0).transform(mc.Scales([0.5, 2.0])),
    mc.kernels.Normalised(Geometric()),
    Taylor([0.0, 1.0, 1.0]) + Sigmoid(2.0),
]


def inside(rng, n, d, radius=0.9):
    """Points with norms up to `radius`, the first on it."""
    X = rng.normal(size=(n, d))
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / length * np.concatenate([[[radius]], rng.uniform(0, radius, (n - 1, 1))])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_conformance(kernel):
    check_kernel(kernel)


def test_algebra():
    check_algebra([Geometric(100.0), VovkPolynomial(3), Taylor([1.0, 0.0, 2.0]), Sigmoid(9.0)])


# --- values ---------------------------------------------------------------------------------------

NAIVE = [
    (Geometric(2.0), lambda t: 1.0 / (1.0 - t / 2.0)),
    (VovkPolynomial(7), lambda t: sum((t**i for i in range(1, 7)), start=1.0)),
    (Taylor([0.5, 0.0, 2.0, 1.0]), lambda t: 0.5 + 2.0 * t**2 + t**3),
]


@pytest.mark.parametrize(("kernel", "f"), NAIVE, ids=lambda a: repr(a)[:12])
def test_values_and_derivatives_are_those_of_a_double_loop(kernel, f, rng):
    X, Y = inside(rng, 5, 3), inside(rng, 4, 3)

    def k(x, y):
        return f(naive.dot(x, y))

    assert_allclose(kernel(X, Y), naive.gram(k, X, Y), rtol=1e-13)
    gradient = naive.gradients(k, Y, X)  # of k(y, x) in x
    assert_allclose(kernel.gradient(X, Y), gradient, rtol=1e-12, atol=1e-14)
    mixed = naive.mixed_derivatives(k, X, Y)
    assert_allclose(kernel.mixed_derivative(X, Y), mixed, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 13, 64, 100, 1000])
@pytest.mark.parametrize("t", [1.0, -1.0, 0.0, 0.5, -0.999, 1.001, -1.01])
def test_vovk_polynomial_is_exact_at_one_and_near_it(p, t):
    exact = math.fsum(t**i for i in range(p))
    bound = 4.0 * np.finfo(float).eps * math.fsum(abs(t) ** i * (i + 1) for i in range(p))
    assert_allclose(VovkPolynomial(p)([[1.0]], [[t]]), exact, rtol=0.0, atol=bound)


@given(st.integers(1, 5000), st.floats(-1.0, 1.0))
def test_vovk_polynomial_is_the_quotient(p, t):
    value = VovkPolynomial(p)([[1.0]], [[t]])[0, 0]
    assert_allclose(value * (1.0 - t), 1.0 - t**p, rtol=0.0, atol=1e-13 * max(1.0, p * abs(t)))


def test_vovk_polynomial_is_short():
    def nodes(expr, seen):
        if id(expr) not in seen:
            seen.add(id(expr))
            for name in ("left", "right", "arg"):
                if hasattr(expr, name):
                    nodes(getattr(expr, name), seen)
        return len(seen)

    assert nodes(VovkPolynomial(2**20 - 1).program.profile, set()) < 8 * 20
    hash(VovkPolynomial(2**53 - 1).program)  # shared nodes are not written out


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=9).filter(any), st.floats(-2.0, 2.0))
def test_taylor_is_the_polynomial(coefficients, t):
    terms = [a * t**n for n, a in enumerate(coefficients)]
    size = math.fsum(map(abs, terms))
    value = Taylor(coefficients)([[1.0]], [[t]])
    assert_allclose(value, math.fsum(terms), rtol=0.0, atol=1e-14 * size)


@pytest.mark.parametrize("n", [64, 65, 128, 300])
@pytest.mark.parametrize("t", [-1.02, 1.02])
def test_high_powers_take_both_signs(n, t):
    assert_allclose(Taylor([1.0] + [0.0] * (n - 1) + [2.0])([[1.0]], [[t]]), 1.0 + 2.0 * t**n)


def test_uniform_window_ends_at_rho():
    K = Uniform(4.0)([[0.0]], [[0.0], [-1.999], [1.9999], [2.0001], [-2.001]])
    assert K.tolist() == [[1.0, 1.0, 1.0, 0.0, 0.0]]


def test_known_kernels_are_taylor_kernels(rng):
    X = rng.normal(size=(6, 3))
    assert_allclose(Taylor([1.0, 2.0, 1.0])(X), mc.Polynomial(2)(X), rtol=1e-13)
    assert_allclose(Taylor([1.0] * 7)(X), VovkPolynomial(7)(X), rtol=1e-12)
    series = Taylor([1.0 / math.factorial(n) for n in range(60)])
    assert_allclose(series(X), mc.Exponential(1.0)(X), rtol=1e-12)


def test_geometric_kernel_is_the_limit_of_both(rng):
    X = inside(rng, 7, 3)
    assert_allclose(VovkPolynomial(200)(X), Geometric()(X), rtol=1e-13)
    assert_allclose(Taylor([1.0] * 200, radius=1.0)(X), Geometric()(X), rtol=1e-13)


def test_profiles_take_plain_arrays():
    t = np.array([-0.5, 0.0, 0.5])
    assert VovkPolynomial(1).profile(t).tolist() == [1.0, 1.0, 1.0]
    assert VovkPolynomial(3).profile(t).tolist() == [0.75, 1.0, 1.75]
    assert Taylor([3.0]).profile(t).tolist() == [3.0, 3.0, 3.0]
    assert Taylor([0.0, 0.0, 2.0]).profile(t).tolist() == [0.5, 0.0, 0.5]
    assert_allclose(Sigmoid(2.0, 1.0).profile(t), np.tanh(t / 2 + 1))
    assert Uniform(0.5).profile(np.array([0.0, 0.5, 0.6])).tolist() == [1.0, 1.0, 0.0]


# --- engines --------------------------------------------------------------------------------------

NATIVE = [
    Geometric(2.0),
    *(VovkPolynomial(p) for p in (2, 3, 4, 5, 6, 8)),
    Taylor([1.0, 1.0, 0.5]),
    Taylor([0.0, 0.0, 1.0, 0.0, 0.0, 0.1]),
    Uniform(1.0),
]


@pytest.mark.parametrize("kernel", NATIVE, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_native_and_blocked_engines_agree(kernel, dtype, rng):
    assert tape(kernel.program.profile) is not None
    X, Y = inside(rng, 40, 4).astype(dtype), inside(rng, 30, 4).astype(dtype)
    tol = 1e-12 if dtype is np.float64 else 2e-5
    psi = mc.Element(kernel, X, rng.normal(size=40).astype(dtype))
    found = {}
    for engine in (None, "blocked"):
        with mc.options(engine=engine):
            f = psi.fields(Y, order=2)
            found[engine] = [kernel(X, Y), f.value, f.gradient, f.hessian]
    for a, b in zip(found[None], found["blocked"], strict=True):
        assert a.dtype == dtype
        assert_allclose(a, b, rtol=tol, atol=tol * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("kernel", [Geometric(3.0), Sigmoid(), VovkPolynomial(30)], ids=repr)
def test_profiles_run_on_other_array_libraries(kernel):
    t = np.linspace(-2.0, 2.0, 9)
    ours = evaluate(kernel.program.profile, [t], 2)
    theirs = evaluate(kernel.program.profile, [strict.asarray(t)], 2)
    for a, b in zip(
        (ours.value, ours.first[0], ours.second[0][0]),
        (theirs.value, theirs.first[0], theirs.second[0][0]),
        strict=True,
    ):
        assert_allclose(np.asarray(b), a, rtol=1e-14)


# --- the open ball --------------------------------------------------------------------------------


def test_ball_names_row_norm_and_cure():
    message = "X must lie inside the ball |x| < 2, but row 1 has norm 3; scale the points down"
    with pytest.raises(mc.exceptions.DomainError, match=re.escape(message)):
        Geometric(4.0)([[0.0, 0.0], [3.0, 0.0]])
    with pytest.raises(mc.exceptions.DomainError, match=r"Y must lie inside .* row 0 has norm 2;"):
        Geometric(4.0)([[0.0, 0.0]], [[2.0, 0.0]])


@pytest.mark.parametrize("s", [1.0, 2.0, 0.1, 7e-9, 3e11])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_sphere_is_outside_and_just_inside_is_in(s, dtype, make, rng):
    k = Geometric(s)
    for d in (1, 3, 200):
        x = rng.normal(size=(1, d))
        x *= np.sqrt(s) / np.linalg.norm(x)
        with pytest.raises(mc.exceptions.DomainError, match="row 0 has norm"):
            k(make(x.astype(dtype)))
        near = make((x * (1.0 - 300 * np.finfo(dtype).eps)).astype(dtype))
        value = k(near)
        assert value.dtype == dtype
        assert 100 < value[0, 0] < np.inf


def is_accepted(k, x):
    """Whether points are in the domain; sums in another order than the library's may differ."""
    try:
        k.points(x)
    except mc.exceptions.DomainError:
        return False
    return True


@given(st.integers(1, 60), st.integers(0, 10**6), st.sampled_from([np.float64, np.float32]))
@example(48, 1200, np.float64)
@example(57, 32, np.float64)
def test_values_are_finite_and_positive_wherever_points_are_accepted(d, seed, dtype):
    """Rounding must not carry 1 - <x, y> to zero or below: the margin is for that."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, d))
    x = x / np.linalg.norm(x) * (1.0 - np.arange(0.0, 8.0 * d, 0.5)[:, None] * np.finfo(dtype).eps)
    x = x.astype(dtype)
    x = x[[is_accepted(Geometric(), row[None]) for row in x]]
    assert len(x) > 4 * d  # the sphere itself and a few steps of rounding are refused
    for engine in (None, "blocked"):
        with mc.options(engine=engine):
            K = Geometric()(x)
        assert np.isfinite(K).all()
        assert (K > 0).all()


def test_ball_in_sums_products_and_maps():
    k, x, y = Geometric(), [[0.9, 0.0]], [[0.0, 1.1]]
    for composite in (
        k + mc.Linear(),
        mc.Gaussian(1.0) * k,
        2.0 * k + 1.0,
        mc.kernels.Normalised(k),
    ):
        composite(x)
        with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
            composite(y)
        with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
            composite.diag(y)
    moved = k.transform(mc.Scales([0.5, 2.0]))  # the second column is halved
    moved(y)
    with pytest.raises(mc.exceptions.DomainError, match=r"row 0 has norm 1\.8"):
        moved(x)
    assert k.transform(mc.Columns([0]))(y, [[0.5, 99.0]]) == 1.0


def test_ball_meets_other_domains():
    ball, small = OpenBall(2.0), OpenBall(1.0)
    assert ball.base == Vectors()
    assert ball.is_vector
    assert ball.meet(Vectors()) == Vectors().meet(ball) == ball
    assert ball.meet(OpenBall(2)) == ball
    assert isinstance(ball.meet(small), Intersection)
    assert (Geometric(4.0) + mc.Linear()).domain == ball
    assert (Geometric(4.0) + 1.0).domain == ball
    assert isinstance(Geometric().transform(mc.Scales([1.0])).domain, Mapped)
    both = (Geometric(4.0) + Geometric(1.0)).domain
    both.check([[0.5]], "X")
    with pytest.raises(mc.exceptions.DomainError, match=r"\|x\| < 1,"):
        both.check([[1.5]], "X")
    with pytest.raises(mc.exceptions.DomainError, match="their points differ"):
        Geometric() + mc.Precomputed([[1.0]])
    assert Taylor([1.0, 1.0]).domain == Vectors()
    assert Taylor([1.0, 1.0], radius=4.0).domain == ball


def test_a_series_with_a_closed_form_is_a_subclass(rng):
    class InverseRoot(mc.DotProduct):
        domain = OpenBall(1.0)

        def profile(self, t):
            return (1.0 - t) ** -0.5

    X = inside(rng, 6, 2, 0.7)
    a = [math.comb(2 * n, n) / 4.0**n for n in range(80)]
    assert_allclose(InverseRoot()(X), Taylor(a, radius=1.0)(X), rtol=1e-13)
    with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
        InverseRoot()([[1.0, 0.0]])


@pytest.mark.parametrize("k", [Geometric(), VovkPolynomial(5), Taylor([1, 2], 3.0)], ids=repr)
def test_one_point_duplicates_and_more_columns_than_rows(k, rng):
    X = inside(rng, 4, 50)
    X[3] = X[1]
    assert k(X[:1]).shape == (1, 1)
    assert_allclose(k(X)[1], k(X)[3])
    assert_allclose(k(csr_array(X), X), k(X), rtol=1e-13)


# --- the sigmoid ----------------------------------------------------------------------------------


def test_sigmoid_is_that_of_scikit_learn(rng):
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    k = Sigmoid.from_gamma(0.4, -0.3)
    assert k == Sigmoid(2.5, -0.3)
    assert_allclose(k(X, Y), sigmoid_kernel(X, Y, gamma=0.4, coef0=-0.3), rtol=1e-13)


def test_sigmoid_claims_nothing_about_definiteness():
    assert Sigmoid().flags.definiteness is mc.kernels.Definiteness.UNKNOWN
    assert Sigmoid().flags.is_positive_definite is None


@pytest.mark.parametrize("s", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("c", [0.0, 0.5, 3.0])
def test_two_near_points_refute_the_sigmoid(s, c):
    """(1, -1) K (1, -1)' < 0 wherever 2 a tanh(a + c) > 1, a = |x|^2 / s: not even conditional."""
    x = math.sqrt(s)  # a = 1
    K = Sigmoid(s, c)([[x], [1.01 * x]])
    assert K[0, 0] + K[1, 1] - 2 * K[0, 1] < 0
    assert np.linalg.eigvalsh(K)[0] < 0


def test_one_point_refutes_the_sigmoid_with_a_negative_offset():
    assert Sigmoid(1.0, -0.2)([[0.1, 0.1]])[0, 0] < 0


@pytest.mark.parametrize("c", [-2.0, -0.5, 0.0, 0.5])
def test_no_series_of_the_sigmoid_has_coefficients_of_one_sign(c):
    """By Cauchy's integral about 0; past the constant, too, so it is not conditional either."""
    n, s = 256, 1.3
    z = np.exp(2j * np.pi * np.arange(n) / n)
    a = np.fft.fft(Sigmoid(s, c).profile(s * z)).real / n  # radius 1 < pi / 2
    x = 0.4
    value = np.sum(a[:60] * (x * x / s) ** np.arange(60))
    assert_allclose(Sigmoid(s, c)([[x]])[0, 0], value, rtol=1e-12)
    assert a[1:30].min() < -1e-6
    assert a[1:30].max() > 1e-6


def test_tanh_is_recorded_with_accurate_derivatives():
    x = np.array([-400.0, -20.0, -1.0, 0.0, 1e-9, 2.0, 20.0])
    jet = evaluate(np.tanh(Var(0)), [x], 2)
    e = np.exp(-np.abs(x))
    sech2 = (2 * e / (1 + e * e)) ** 2
    assert_allclose(jet.value, np.tanh(x), rtol=1e-15)
    assert_allclose(jet.first[0], sech2, rtol=1e-14)
    assert_allclose(jet.second[0][0], -2 * np.tanh(x) * sech2, rtol=1e-14)


def test_tanh_of_a_constant_is_a_constant():
    folded = substitute(np.tanh(Var(0)), [Const(0.5)])
    assert isinstance(folded, Const)
    assert_allclose(folded.value, math.tanh(0.5), rtol=1e-15)
    assert np.tanh(Const(0.5)) == Const(math.tanh(0.5))


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Geometric(0.0), "scale must be > 0, got 0.0"),
        (lambda: Geometric(math.inf), "scale must be finite, got inf"),
        (lambda: VovkPolynomial(0), "degree must be an integer >= 1, got 0"),
        (lambda: VovkPolynomial(2.0), "degree must be an integer >= 1, got 2.0"),
        (lambda: Taylor([]), "coefficients must be >= 0, with one > 0 among them"),
        (lambda: Taylor([0.0, 0.0]), "got [0.0, 0.0]"),
        (lambda: Taylor([1.0, -0.1]), "got [1.0, -0.1]"),
        (lambda: Taylor([1.0, math.nan]), "coefficients contains NaN"),
        (lambda: Taylor([[1.0]]), "coefficients must be one-dimensional, got shape (1, 1)"),
        (lambda: Taylor(1.0), "coefficients must be one-dimensional, got shape ()"),
        (lambda: Taylor([1.0], radius=0.0), "radius must be > 0, got 0.0"),
        (lambda: Taylor([1.0], radius=math.nan), "radius must be finite, got nan"),
        (lambda: Taylor([1.0], radius=[1.0, 2.0]), "radius must be a single number"),
        (lambda: Taylor([1.0], radius="inf"), "radius must be a real number, got 'inf'"),
        (lambda: OpenBall(-1.0), "radius must be > 0, got -1.0"),
        (lambda: Sigmoid(0.0), "scale must be > 0, got 0.0"),
        (lambda: Sigmoid(1.0, math.inf), "offset must be finite, got inf"),
        (lambda: Sigmoid.from_gamma(-1.0), "gamma must be > 0, got -1.0"),
        (lambda: Uniform(0.0), "rho must be > 0, got 0.0"),
    ],
)
def test_errors_name_the_parameter_and_the_cure(make, message):
    with pytest.raises(mc.InputError, match=re.escape(message)):
        make()


def test_taylor_is_a_value():
    k = Taylor(np.array([1, 0, 2]))
    assert k == Taylor((1.0, 0.0, 2.0), math.inf)
    assert type(k.coefficients) is tuple
    assert all(type(a) is float for a in k.coefficients)
    assert hash(k) == hash(Taylor([1, 0, 2]))
    assert repr(k) == "Taylor(coefficients=(1.0, 0.0, 2.0))"
    assert repr(Taylor([1], 2)) == "Taylor(coefficients=(1.0,), radius=2.0)"
    assert k.replace(radius=3.0) == Taylor([1, 0, 2], 3.0)


@pytest.mark.parametrize(
    ("kernel", "convex"),
    [(Geometric(), True), (VovkPolynomial(2), True), (VovkPolynomial(5), True),
     (VovkPolynomial(4), None), (Taylor([0, 1, 1]), True), (Taylor([0, 0, 0, 1]), None),
     (Taylor([1, 1, 1, 0, 1]), True), (Sigmoid(), False), (Uniform(), False)],
)  # fmt: skip
def test_which_profiles_are_convex(kernel, convex):
    assert kernel.flags.convex_profile is convex


@pytest.mark.parametrize("s", [0.1, 1.0, 100.0])
def test_geometric_gram_matrices_of_distinct_points_are_not_singular(s, rng):
    """What universality implies, on points as far apart as the ball allows."""
    assert Geometric(s).flags.universal
    X = np.sqrt(s) * np.concatenate([0.9 * np.eye(3), -0.9 * np.eye(3), np.zeros((1, 3))])
    X = np.concatenate([X, 0.97 * np.sqrt(s) * np.array([[0.6, 0.8, 0.0], [0.0, -0.6, 0.8]])])
    K = mc.kernels.Normalised(Geometric(s))(X)
    assert np.linalg.eigvalsh(K)[0] > 1e-3
    few = VovkPolynomial(2)(X)  # 9 points, 4 features
    assert np.linalg.matrix_rank(few) == 4
