"""The tape: lowering profiles, and every step with its derivatives on every instruction set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer import engine
from mercer.engine import Dense, Var
from mercer.engine._compiled import core
from mercer.engine.programs._expr import Cut, LogAddExp, Matern, Opaque
from mercer.engine.programs._tape import _OPS, MAX_SLOTS, MAX_STEPS, tape
from tests.engine.cases import PROGRAMS, TOLERANCE, assert_close, case, coefficients, looped
from tests.engine.isas import ISAS, compiled, core_program, each_isa, forced

U = Var(0, nonnegative=True)
DTYPES = ["float32", "float64"]
TAPED = [name for name, (make, _) in PROGRAMS.items() if make(5).program.runs_on_core]

# --- lowering -------------------------------------------------------------------------------------


def names(profile):
    """The operations of a tape, in order."""
    return [_OPS[step[0]] for step in tape(profile)[0]]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (np.exp(-0.5 * U), ["exponential"]),
        (np.exp(-np.sqrt(U) / 2.0), ["root", "exponential"]),
        ((1.0 + U / 3.0) ** -0.7, ["power"]),
        (1.0 / (1.0 + U), ["inverse"]),
        ((1.0 + U) ** -0.5, ["inverse_root"]),
        ((2.0 * U - 1.0) ** 3, ["whole_power"]),
        ((1.0 + U) ** -3, ["inverse", "whole_power"]),
        ((2.0 * U - 1.0) ** 40.5, ["large_power"]),
        (
            (1.0 + U) ** 40.5,
            ["linear", "linear", "add", "inverse", "multiply", "logarithm", "add", "exponential"],
        ),
        (np.log(1.0 + U), ["logarithm"]),
        (Matern(3.0 * U, 1.5), ["matern3"]),
        (Matern(5.0 * U, 2.5), ["matern5"]),
        (3.0 * np.exp(-U) + 1.0, ["exponential", "linear"]),
        (2.0 * np.exp(-U) + 0.5 * np.exp(-3.0 * U), ["exponential", "exponential", "add"]),
        ((1.0 + U) * np.exp(-U), ["linear", "exponential", "multiply"]),
        (Cut(1.0 - U, 1.0 - U), ["linear", "cut"]),
    ],
    ids=repr,
)
def test_scalings_and_shifts_cost_nothing(profile, expected):
    assert names(profile) == expected


def test_what_occurs_twice_is_computed_once():
    e = np.exp(-U)
    assert names(e * (1.0 + np.log(1.0 + e))) == ["exponential", "logarithm", "linear", "multiply"]


@pytest.mark.parametrize(
    "profile",
    [
        Opaque(U, np.tanh),
        LogAddExp(-U, -2.0 * U),
        Cut(1.0 - U, 1.0 - U, -np.inf),
        sum((np.exp(-c * U) for c in range(1, 9)), start=engine.Const(0.5)),
    ],
    ids=["opaque", "log space", "a gap that is not zero", "too long"],
)
def test_what_the_core_does_not_know_has_no_tape(profile):
    assert tape(profile) is None


def test_a_second_variable_has_no_tape():
    assert tape(Var(0) * Var(1)) is None


@compiled
def test_python_and_the_core_agree_on_the_sizes():
    assert (core().MAX_SLOTS, core().MAX_STEPS) == (MAX_SLOTS, MAX_STEPS)


# --- steps ----------------------------------------------------------------------------------------

STEPS = {
    "linear": 2.0 - 0.7 * U,
    "exponential": np.exp(-0.7 * U + 0.3),
    "logarithm": np.log(0.4 + 1.3 * U),
    "power": (0.4 + 1.3 * U) ** -1.7,
    "positive power": (0.4 + 1.3 * U) ** 2.3,
    "root": np.sqrt(0.4 + 1.3 * U),
    "inverse": 1.0 / (0.4 + 1.3 * U),
    "inverse root": (0.4 + 1.3 * U) ** -0.5,
    "whole power": (-0.4 - 1.3 * U) ** 5,
    "negative whole power": (0.4 + 1.3 * U) ** -4,
    "large power": (1.0 + 0.01 * U) ** 40.5,
    "matern 3/2": Matern(1.3 * U, 1.5),
    "matern 5/2": Matern(1.3 * U, 2.5),
    "add": 0.3 * np.exp(-U) + 2.0 * np.log(1.0 + U),
    "multiply": np.exp(-0.1 * U) * np.log(2.0 + U),
    "cut": Cut(9.1 - U, np.exp(-U)),
    "nested": np.exp(-0.2 * (1.0 + np.log(1.0 + U)) ** 1.5) * (np.exp(-0.1 * U) + 0.25),
}


def jets(isa, dtype, profile, u):
    """k, k' and k'' at u by the core: one point at 1, queries at u, and their inner product."""
    steps, result = tape(profile)
    program = core_program(dtype, np.ones((1, 1), dtype), list(steps), result, 0, isa)
    for kind in range(3):
        program.set_coef(kind, np.ones((1, 1), dtype))
    out = [np.empty((u.size, 1)) for _ in range(3)]
    program.sums(u.astype(dtype)[:, None], out)
    return [a[:, 0] for a in out]


def exact_jets(profile, u):
    jet = engine.evaluate(profile, [u.astype(np.longdouble)], order=2)
    parts = jet.value, jet.first[0], jet.second[0][0]
    return [np.broadcast_to(np.asarray(a, dtype=np.longdouble), u.shape) for a in parts]


def assert_jets(isa, dtype, profile, u, tolerance):
    u = u.astype(dtype)
    exact = exact_jets(profile, u)
    size, tiny = np.zeros(u.size), np.finfo(dtype).tiny  # where digits are lost
    for k, (found, expected) in enumerate(zip(jets(isa, dtype, profile, u), exact, strict=True)):
        # a derivative is a sum of terms as large as the derivatives below it
        size = np.maximum(size / (0.4 + u), np.abs(expected))
        error = np.abs(found - expected)
        assert np.all(error <= 10**k * tolerance * size + 1e5 ** (k + 1) * tiny), (
            k,
            (error / size).max(),
        )


@compiled
@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STEPS)
def test_every_step_with_its_derivatives(name, dtype, isa, rng):
    u = np.concatenate([[0.0], rng.uniform(0, 20, size=400), np.exp(rng.uniform(-20, 0, size=99))])
    if name == "matern 3/2":
        u = u[1:]  # k'' is infinite at zero
    assert_jets(isa, dtype, STEPS[name], u, {"float32": 4e-6, "float64": 5e-15}[dtype])


@compiled
@each_isa
@pytest.mark.parametrize(("dtype", "low", "high"), [("float32", -87, 88), ("float64", -708, 709)])
def test_exponentials_over_their_whole_range(dtype, low, high, isa, rng):
    """Two units, and one for the scaling of the argument times its size."""
    u = np.concatenate([rng.uniform(low, high, size=20_000), rng.normal(size=5000)]).astype(dtype)
    exact = np.exp(u.astype(np.longdouble))
    error = np.abs(jets(isa, dtype, np.exp(U), u)[0] - exact) / exact
    assert np.all(error <= np.finfo(dtype).eps * (1.5 + np.abs(u)))


@compiled
@each_isa
@pytest.mark.parametrize(("dtype", "edge"), [("float32", 87.5), ("float64", 708.5)])
def test_exponentials_of_special_arguments(dtype, edge, isa):
    inf, nan, largest = np.inf, np.nan, np.finfo(dtype).max
    u = np.array([0, -0.0, inf, -inf, nan, largest, -largest, -edge, 1.01 * edge + 5, 1e17])
    expected = [1, 1, inf, 0, nan, inf, 0, 0, inf, inf]
    for k in range(2):  # the second derivative has a term inf * 0
        found = jets(isa, dtype, np.exp(U), np.tile(u, 7))[k]
        np.testing.assert_array_equal(found, np.tile(expected, 7))


def profiles():
    """Positive profiles of positive arguments, nested."""
    scale = st.sampled_from([0.3, 1.0, 1.7])

    def grown(inner):
        pair = st.tuples(inner, inner)
        return st.one_of(
            st.builds(lambda a, p: np.exp(-a * p), scale, inner),
            st.builds(lambda a, p: np.log(1.0 + a + p), scale, inner),
            st.builds(lambda a, p, e: (a + p) ** e, scale, inner, st.sampled_from([-1.3, 0.5, 2])),
            st.builds(lambda a, p, e: (a + p) ** e, scale, inner, st.sampled_from([-0.5, -1, -2])),
            st.builds(lambda a, p: Matern(a + p, 2.5), scale, inner),
            st.builds(lambda a, p: Cut(1.03 - a * U, p), scale, inner),
            pair.map(lambda p: p[0] + 0.5 * p[1]),
            pair.map(lambda p: p[0] * p[1]),
        )

    return st.recursive(scale.map(lambda a: a * U), grown, max_leaves=4)


@compiled
@given(
    profile=profiles(),
    isa=st.sampled_from(ISAS or ["none"]),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**31),
)
def test_nested_profiles_with_their_derivatives(profile, isa, dtype, seed):
    u = np.random.default_rng(seed).uniform(0.01, 1.5, size=50).astype(np.float32)
    if tape(profile) is not None:
        assert_jets(isa, dtype, profile, u, {"float32": 2e-4, "float64": 1e-12}[dtype])


@compiled
@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("profile", "at_zero"),
    [
        (U**0.75, (0.0, np.inf, -np.inf)),
        (U**1.25, (0.0, 0.0, np.inf)),
        (U**2.5, (0.0, 0.0, 0.0)),
        (U**-0.75, (np.inf, -np.inf, np.inf)),
        (np.sqrt(U), (0.0, np.inf, -np.inf)),
        (1.0 / U, (np.inf, -np.inf, np.inf)),
        (np.log(U), (-np.inf, np.inf, -np.inf)),
        (Matern(U, 1.5), (1.0, -0.5, np.inf)),
    ],
    ids=repr,
)
def test_limits_at_zero(profile, at_zero, dtype, isa):
    found = np.ravel(jets(isa, dtype, profile, np.zeros(1)))
    # u'' = 0 times an infinite slope is no number; the engine drops second derivatives there
    steps = 2 if np.isinf(at_zero[1]) else 3
    np.testing.assert_array_equal(found[:steps], at_zero[:steps])


@compiled
@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exponential", "power", "logarithm", "matern 5/2", "multiply"])
def test_what_is_not_a_number_stays_so(name, dtype, isa):
    found = jets(isa, dtype, STEPS[name], np.array([1.0, np.nan, 2.0]))
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False]] * 3)


# --- kernels --------------------------------------------------------------------------------------


@compiled
@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("name", TAPED)
def test_sums_are_double_loops(name, d, dtype, isa):
    c, coef = case(name, d), coefficients("dense")[0]
    with forced(isa), mc.options(engine="native"):
        X, Y = c.X.astype(dtype), c.Y.astype(dtype)
        f = engine.fields(c.kernel.program, X, Y, coef, order=2)
    expected = looped(name, d, "dense", False)
    for k, found in enumerate((f.value, f.gradient, f.hessian)):
        assert_close(found, *expected[k], 10**k * TOLERANCE[dtype])


KERNELS = [
    mc.Gaussian(1.3),
    mc.Laplace(1.7),
    mc.Matern(0.5, 2.0),
    mc.Matern(1.5, 2.0),
    mc.Matern(2.5, 2.0),
    mc.RationalQuadratic(0.7, 1.5),
    mc.RationalQuadratic(2.0, 1.5),
    mc.RationalQuadratic(50.0, 1.5),
    mc.InverseMultiquadric(1.5, 0.5),
    mc.InverseMultiquadric(1.5, 0.7),
    mc.InverseMultiquadric(1.5, 2.0),
    mc.Epanechnikov(6.0),
    mc.Epanechnikov(6.0, 4.0),
    mc.NegativeDistance(0.5),
    mc.NegativeDistance(1.0),
    mc.NegativeDistance(1.5, c=2.0),
    mc.NegativeDistance(2.0),
    mc.NegativeDistance(2.5),
    mc.NegativeDistance(3.0),
    mc.NegativeDistance(5.0),
    mc.Linear(),
    mc.Polynomial(2, scale=3.0, offset=0.5),
    mc.Polynomial(7, scale=10.0),
    mc.Exponential(8.0),
    mc.kernels.Uniform(6.0),
    mc.kernels.Geometric(200.0),
    mc.kernels.VovkPolynomial(5),
    mc.kernels.Taylor([0.5, 0.0, 1.0, 0.25]),
    0.5 * mc.Gaussian(1.3) + mc.Laplace(1.7),
    mc.Laplace(1.7) * mc.Matern(1.5, 2.0) + 0.25,
    (mc.Gaussian(2.0) + 0.5) * (mc.InverseMultiquadric(1.0, 0.7) + mc.Gaussian(1.0)),
    mc.Gaussian(2.0) * mc.NegativeDistance(3.0),
    mc.Linear() * mc.Exponential(8.0) + 1.0,
]


@compiled
@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel_against_the_blocked_engine(kernel, d, dtype, isa, rng):
    """With duplicates, and with queries at points, where slopes may be infinite."""
    X, Y = (rng.normal(size=(n, d)).astype(dtype) for n in (37, 19))
    X[5], Y[:3], A = X[4], X[3:6], rng.normal(size=(37, 2))
    with mc.options(engine="blocked"):
        wide = X.astype(np.float64), Y.astype(np.float64)
        expected = engine.fields(kernel.program, *wide, Dense(A), order=2)
    with forced(isa), mc.options(engine="native"):
        f = engine.fields(kernel.program, X, Y, Dense(A), order=2)
    for k, name in enumerate(("value", "gradient", "hessian", "cusp")):
        found, wanted = getattr(f, name), getattr(expected, name)
        if wanted is not None:
            size = np.abs(wanted).max()
            np.testing.assert_allclose(found, wanted, rtol=0, atol=10**k * TOLERANCE[dtype] * size)
    assert np.isfinite(expected.hessian).all()


def test_every_class_of_kernel_is_in_the_list():
    """Classes whose programs the core does not run are told apart by their kind."""
    listed = {type(k) for k in KERNELS}
    blocked = {
        "AdditiveChiSquare", "ArcCosine", "ChiSquare", "Constant", "Cosine", "FromFunction",
        "Hamming", "Harmonic", "Jaccard", "JacobiTheta", "LaplaceProduct", "Minimum",
        "Normalised", "Overlap", "Periodic", "PeriodicSobolev", "Precomputed", "Sigmoid",
        "Spectrum", "Subsequences", "Table", "Transformed",
    }  # fmt: skip
    abstract = {"Circular", "DotProduct", "Kernel", "Radial"}
    every = {
        v for v in vars(mc.kernels).values() if isinstance(v, type) and issubclass(v, mc.Kernel)
    }
    assert {c.__name__ for c in every - listed} == blocked | abstract


@pytest.mark.parametrize("degree", [64, 65, 66, 67, 100, 129])
def test_high_whole_powers_keep_the_sign_of_their_argument(degree):
    X = np.array([[-1.05], [-0.9], [0.0], [0.7], [1.04]])
    k = mc.Polynomial(degree, offset=0.0)
    expected = (X @ X.T) ** float(degree)
    assert_allclose(k(X), expected, rtol=1e-12)
    with mc.options(engine="blocked"):
        assert_allclose(k(X), expected, rtol=1e-12)
    value = mc.Element(k, X, np.ones(5)).gradient(X)
    assert_allclose(value[:, 0], (degree * (X @ X.T) ** (degree - 1.0) * X.T).sum(1), rtol=1e-11)
