"""Part E of the specification: certificates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.preimages import certify, weyl_test
from mercer.preimages._diagnostics import preimage_gradient, preimage_hessian
from mercer.preimages._result import Verdict

RADIAL = [mc.Gaussian(1.0), mc.Matern(2.5, 1.5), mc.InverseMultiquadric(1.0, 1.0)]


def problems(rng, count, n=5, d=2):
    """Batches of random problems with coefficients of both signs, one point each."""
    X, Y = rng.normal(size=(n, d)), 1.3 * rng.normal(size=(count, d))
    return np.sqrt(2 / d) * X, rng.normal(size=(n, count)), np.sqrt(2 / d) * Y


def slopes(kernel, v):
    """k' and k'' by their formulas, of u = |x - y|^2 or of t = <x, y>."""
    p = kernel.get_params()
    match type(kernel).__name__:
        case "Gaussian":
            c = 1 / (2 * p["length_scale"] ** 2)
            return -c * np.exp(-c * v), c**2 * np.exp(-c * v)
        case "Matern":  # nu = 5/2
            c = 5 / p["length_scale"] ** 2
            z = np.sqrt(c * v)
            return -c * (1 + z) * np.exp(-z) / 6, c**2 * np.exp(-z) / 12
        case "InverseMultiquadric":
            c, q = p["c"], p["p"]
            return -q * (c + v) ** (-q - 1), q * (q + 1) * (c + v) ** (-q - 2)
        case "Polynomial":
            n, s, x = p["degree"], p["scale"], v / p["scale"] + p["offset"]
            return n * x ** (n - 1) / s, n * (n - 1) * x ** (n - 2) / s**2
        case "Exponential":
            return np.exp(v / p["scale"]) / p["scale"], np.exp(v / p["scale"]) / p["scale"] ** 2
    raise AssertionError(kernel)


def hessians(psi, Y):
    """Of k(x, x)/2 - psi(x), of element j at row j, written out: Honeine (2024), (19)."""
    X, A, d = psi.points, psi.coef.array, Y.shape[1]
    if isinstance(psi.kernel, mc.Radial):
        D = Y[:, None] - X
        k1, k2 = slopes(psi.kernel, np.sum(D**2, axis=2))
        H = -2 * np.einsum("nj,jn->j", A, k1)[:, None, None] * np.eye(d)
        return H - 4 * np.einsum("nj,jn,jna,jnb->jab", A, k2, D, D)
    k1, k2 = slopes(psi.kernel, Y @ X.T)
    own1, own2 = slopes(psi.kernel, np.sum(Y**2, axis=1))
    H = own1[:, None, None] * np.eye(d) + 2 * own2[:, None, None] * Y[:, :, None] * Y[:, None]
    return H - np.einsum("nj,jn,na,nb->jab", A, k2, X, X)


def smallest(psi, Y):
    """The smallest eigenvalue of the Hessian of element j at row j."""
    return np.linalg.eigvalsh(hessians(psi, Y))[:, 0]


# --- E1 -------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 8))
def test_E1_weyl_lemmas(seed, d, n):
    """lam(H) - sum_{v>0} v|r|^2 <= lam(H - sum v r r') <= lam(H) - sum_{v<0} v|r|^2.

    Here H = -2 sum a_i k' I, and the sides are those of the library, in any dimension.
    """
    rng = np.random.default_rng(seed)
    X, A, Y = problems(rng, 3, n=n, d=d)
    psi = mc.Element(mc.Gaussian(rng.uniform(0.3, 3.0)), X, A)
    test, true = weyl_test(psi, Y), smallest(psi, Y)
    k1, _ = slopes(psi.kernel, np.sum((Y[:, None] - X) ** 2, axis=2))
    assert_allclose(test.slope, -np.einsum("nj,jn->j", A, k1), rtol=1e-9, atol=1e-12)
    slack = 1e-12 * (np.abs(A).sum() * np.abs(k1).max() + np.abs(true).max())
    assert (2 * (test.slope - test.rising) <= true + slack).all()
    assert (true <= 2 * (test.slope - test.falling) + slack).all()


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_E1_they_bound_the_hessian_of_a_preimage(kernel, rng):
    X, A, Y = problems(rng, 300)
    psi = mc.Element(kernel, X, A)
    test, true = weyl_test(psi, Y), smallest(psi, Y)
    assert (2 * (test.slope - test.rising) <= true + 1e-12).all()
    assert (true <= 2 * (test.slope - test.falling) + 1e-12).all()


# --- E2, E3, E5 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_E2_E3_the_sides_are_the_sums_of_the_theorems(kernel, rng):
    X, A, Y = problems(rng, 20)
    test = weyl_test(mc.Element(kernel, X, A), Y)
    h = 1e-5
    for j, y in enumerate(Y):
        u = np.sum((X - y) ** 2, axis=1)

        def k(u):  # the profile, through points at distance sqrt(u)
            return kernel(np.zeros((1, 1)), np.sqrt(u)[:, None])[0]

        k1, k2 = (k(u + h) - k(u - h)) / (2 * h), (k(u + h) - 2 * k(u) + k(u - h)) / h**2
        bend = 2 * A[:, j] * k2 * u
        assert_allclose(test.slope[j], -A[:, j] @ k1, rtol=1e-4, atol=1e-6)
        assert_allclose(test.rising[j], bend[bend > 0].sum(), rtol=1e-3, atol=1e-4)
        assert_allclose(test.falling[j], bend[bend < 0].sum(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_E2_E3_E5_never_wrong(kernel, d, rng):
    fired = np.zeros(3, dtype=int)
    for _ in range(5):
        X, A, Y = problems(rng, 400, n=4, d=d)
        psi, Y = mc.Element(kernel, 0.4 * X, A), 0.4 * Y  # close enough for the tests to fire
        test, true = weyl_test(psi, Y), smallest(psi, Y)
        by_weyl = test.slope + test.rounding < test.falling
        assert (true[by_weyl] < 0).all()
        assert (true[test.has_negative_eigenvalue] < 0).all()
        assert (true[test.is_positive_definite] > 0).all()
        fired += [by_weyl.sum(), test.is_positive_definite.sum(), (test.trace < 0).sum()]
    assert (fired > 20).all()


def test_E5_the_trace_fires_more_often(rng):
    X, A, Y = problems(rng, 4000, n=6)
    psi = mc.Element(mc.Gaussian(1.0), X, A)
    test = weyl_test(psi, Y)
    by_weyl = test.slope + test.rounding < test.falling
    by_trace = test.trace < -1e-10
    assert by_trace[by_weyl].all()  # the trace decides all that Weyl does
    assert by_trace.sum() > 2 * by_weyl.sum()


@pytest.mark.parametrize("kernel", [*RADIAL, mc.Polynomial(3), mc.Exponential(2.0)], ids=repr)
def test_E5_trace(kernel, rng):
    X, A, Y = problems(rng, 50, d=3)
    psi = mc.Element(kernel, X, A)
    true = np.trace(hessians(psi, Y), axis1=1, axis2=2)
    assert_allclose(weyl_test(psi, Y).trace, true, rtol=1e-9, atol=1e-10)


def test_E2_proves_no_saddle():
    """The condition holds at a strict maximum too, and saddles need two dimensions."""
    s = 0.8
    psi = mc.Element(mc.Gaussian(s), [[0.0, 0.0]], [-1.0])
    test = weyl_test(psi, [[0.0, 0.0]])
    assert_allclose(test.slope, [-1 / (2 * s**2)])
    assert test.has_negative_eigenvalue[0]
    assert_allclose(preimage_hessian(psi, [[0.0, 0.0]])[0], -np.eye(2) / s**2, rtol=1e-12)
    assert certify(psi, [[0.0, 0.0]]).verdict[0] is Verdict.NOT_A_MINIMUM


def test_E2_fires_where_nothing_is_critical():
    """Such points need not be critical either."""
    psi = mc.Element(mc.Gaussian(1.0), [[0.0]], [-1.0])
    assert weyl_test(psi, [[0.3]]).has_negative_eigenvalue[0]
    assert np.abs(preimage_gradient(psi, [[0.3]])).item() > 0.2


# --- E4 -------------------------------------------------------------------------------------------

PROJECTIVE = [
    (mc.Polynomial(2), lambda t: 2 * (t + 1), lambda t: 2.0 + 0 * t),
    (mc.Polynomial(4), lambda t: 4 * (t + 1) ** 3, lambda t: 12 * (t + 1) ** 2),
    (mc.Exponential(2.0), lambda t: np.exp(t / 2) / 2, lambda t: np.exp(t / 2) / 4),
]


@pytest.mark.parametrize(
    ("kernel", "f1", "f2"),
    PROJECTIVE,
    ids=lambda v: repr(v)[:30] if isinstance(v, mc.Kernel) else "",
)
def test_E4_projective_certificate_is_never_wrong(kernel, f1, f2, rng):
    fired = 0
    for _ in range(5):
        X, A, Y = problems(rng, 300)
        psi = mc.Element(kernel, X, A)
        test, true = weyl_test(psi, Y), smallest(psi, Y)
        assert (true[test.is_positive_definite] > 0).all()
        assert (true[test.has_negative_eigenvalue] < 0).all()
        fired += int(test.is_positive_definite.sum())
        assert_allclose(test.slope, f1(np.sum(Y**2, axis=1)), rtol=1e-12)
        bend = A * f2(X @ Y.T) * np.sum(X**2, axis=1)[:, None]
        assert_allclose(test.rising, np.maximum(bend, 0.0).sum(axis=0), rtol=1e-10)
    assert fired > 100


def test_E4_the_printed_condition_against_minima_is_vacuous(rng):
    """Every term on the left of Theorem 23's "< 0" is >= 0; the trace can be negative."""
    lowest, traces = np.inf, 0
    for _ in range(10):
        X, A, Y = problems(rng, 500)
        own, cross = np.exp(np.sum(Y**2, axis=1)), np.exp(X @ Y.T)  # f = f' = f'' = exp
        sizes = np.sum(X**2, axis=1)[:, None]
        left = (
            own + 2 * own * np.sum(Y**2, axis=1) - np.sum(np.minimum(A, 0) * cross * sizes, axis=0)
        )
        lowest = min(lowest, left.min())
        traces += int(
            weyl_test(mc.Element(mc.Exponential(1.0), X, A), Y).has_negative_eigenvalue.sum()
        )
    assert lowest > 0
    assert traces > 100


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*RADIAL, mc.Polynomial(3), mc.Exponential(2.0)], ids=repr)
def test_E2_E3_E4_E5_certificates_over_random_problems(kernel, rng):
    """Thousands of mixed-sign problems: no verdict contradicts the exact eigenvalues."""
    for eigenvalues in (True, False):
        X, A, Y = problems(rng, 1500)
        psi = mc.Element(kernel, X, A)
        true = smallest(psi, Y)
        result = certify(psi, Y, eigenvalues=eigenvalues)
        for verdict, lam in zip(result.verdict, true, strict=True):
            if verdict in (Verdict.PROVED_MINIMUM, Verdict.POSITIVE_DEFINITE):
                assert lam > 0
            if verdict is Verdict.NOT_A_MINIMUM:
                assert lam < 0
            if eigenvalues and verdict is Verdict.UNDECIDED:
                assert abs(lam) < 1e-8 * max(1.0, np.abs(true).max())


def test_E3_convexity_at_any_point_is_the_sign_of_the_smallest_eigenvalue(rng):
    X, A, Y = problems(rng, 500)
    psi = mc.Element(mc.Gaussian(1.0), X, A)
    assert ((smallest(psi, Y) > 1e-10) == (certify(psi, Y).min_eigenvalue > 0)).all()
