"""The conformance kit passes what is right, and catches each kind of wrong claim."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mercer as mc
from mercer import testing
from mercer.engine import Block, Program, Var
from mercer.kernels import Domain
from mercer.kernels._measures import GammaMixing, PointMass, ScaleMixture
from mercer.testing import (
    awkward_kernels,
    check_algebra,
    check_element,
    check_kernel,
    check_subspace,
    lattice,
)

POSITIVE = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)
CONDITIONAL = mc.kernels.Flags(mc.kernels.Definiteness.CONDITIONAL)
INDEFINITE = mc.kernels.Flags(mc.kernels.Definiteness.INDEFINITE)


def claims(**changes):
    """A refusal of `check_kernel` to believe a claim."""
    return replace(mc.kernels.Flags(), **changes)


# --- the surface ----------------------------------------------------------------------------------


def test_everything_public_is_listed_and_documented():
    public = {name for name in vars(testing) if not name.startswith("_")}
    assert public == set(testing.__all__)
    for name in testing.__all__:
        doc = getattr(testing, name).__doc__
        assert "Examples" in doc, name
        assert ">>> " in doc, name


def test_lattice():
    X = lattice(3, 4, 0.5)
    assert X.shape == (64, 3)
    assert np.array_equal(np.unique(X), [0.0, 0.5, 1.0, 1.5])
    assert np.unique(X, axis=0).shape == (64, 3)
    with pytest.raises(mc.InputError, match=r"step must be > 0, got -1.0"):
        lattice(1, 2, -1.0)
    with pytest.raises(mc.InputError, match=r"side must be an integer >= 1, got 0"):
        lattice(1, 0)


def test_awkward_kernels_are_awkward():
    kernels, X = awkward_kernels(), np.random.default_rng(0).normal(size=(6, 3))
    assert len({repr(k) for k in kernels}) == len(kernels)
    assert any(np.ptp(k.diag(X)) > 0.1 for k in kernels)
    assert any(any(k.program.cusps) for k in kernels)
    assert any(k.program.kind == "mixed" for k in kernels)
    assert any(isinstance(k, mc.kernels.Normalised) for k in kernels)
    assert any(k.flags.definiteness is mc.kernels.Definiteness.UNKNOWN for k in kernels)
    assert any(hasattr(k, "profile_derivatives") for k in kernels)
    assert all(k.program.has_derivatives for k in kernels)
    assert all(np.isfinite(k.gradient(X)).all() for k in kernels)


# --- definiteness ---------------------------------------------------------------------------------


def distance_matern(nu, power):
    """A Matern profile of the sum of |x - y|^power over columns, to the power 1 / power."""

    def function(X, Y):
        r = (np.abs(X[:, None] - Y[None]) ** power).sum(-1) ** (1 / power) * math.sqrt(2 * nu)
        return (1 + r) * np.exp(-r) if nu == 1.5 else (1 + r + r * r / 3) * np.exp(-r)

    return mc.kernels.FromFunction(function)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_matern_of_the_sum_of_absolute_differences_is_caught_in_two_dimensions(nu):
    wrong, right = distance_matern(nu, 1), distance_matern(nu, 2)
    check_kernel(right, claims=POSITIVE)
    check_kernel(wrong, claims=POSITIVE, dims=(1,))
    with pytest.raises(AssertionError, match=r"claims to be positive definite.* in 2 dimensions"):
        check_kernel(wrong, claims=POSITIVE)


@pytest.mark.parametrize("rho", [None, 0.25, 4.0])
@pytest.mark.parametrize("c", [1e-4, 1.0, 1e4])
def test_epanechnikov_as_positive_or_conditional_is_caught(c, rho):
    k = mc.Epanechnikov(c, None if rho is None else rho * c)
    check_kernel(k)
    with pytest.raises(AssertionError, match=r"claims to be positive definite.* eigenvalue -"):
        check_kernel(k, claims=POSITIVE)
    with pytest.raises(AssertionError, match=r"claims to be conditionally positive definite"):
        check_kernel(k, claims=CONDITIONAL)


@pytest.mark.parametrize("p", [2.05, 3.0, 4.0])
def test_negative_distance_beyond_two_as_conditional_is_caught(p):
    with pytest.raises(AssertionError, match=r"claims to be conditionally .* centred Gram matrix"):
        check_kernel(mc.NegativeDistance(p), claims=CONDITIONAL)


def test_conditional_is_not_positive():
    check_kernel(mc.NegativeDistance(1.0, c=3.0), claims=CONDITIONAL)
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_kernel(mc.NegativeDistance(1.0, c=3.0), claims=POSITIVE)


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.NegativeDistance(1.5), mc.Polynomial(2)])
def test_a_claim_to_be_indefinite_needs_a_witness(kernel):
    with pytest.raises(AssertionError, match=r"claims to be indefinite, but no lattice"):
        check_kernel(kernel, claims=INDEFINITE)


def test_a_witness_may_be_given():
    """Indefinite, but only between points that no lattice holds."""

    def function(X, Y):
        far = (X > 1e5) & (Y.T < -1e5) | (X < -1e5) & (Y.T > 1e5)
        return np.exp(-np.abs(X - Y.T)) + 2.0 * far

    k = mc.kernels.FromFunction(function)
    with pytest.raises(AssertionError, match=r"no lattice"):
        check_kernel(k, claims=INDEFINITE, dims=(1,))
    check_kernel(k, [[-3e5], [-2e5], [2e5], [3e5], [0.0]], claims=INDEFINITE, dims=(1,))


def test_definiteness_of_a_matrix_is_tried_on_its_rows():
    good, bad = np.eye(4) + 0.5, np.eye(4) - 0.5
    check_kernel(mc.Precomputed(good, definiteness=mc.kernels.Definiteness.POSITIVE), [0, 1, 2, 3])
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_kernel(
            mc.Precomputed(bad, definiteness=mc.kernels.Definiteness.POSITIVE), [0, 1, 2, 3]
        )
    with pytest.raises(AssertionError, match=r"takes no points .* pass `points`"):
        check_kernel(mc.Precomputed(good))


@dataclass(frozen=True)
class Bent(mc.DotProduct):
    """t - t^2 / 100: its slope turns negative at t = 50, beyond the lattices of size 1."""

    def profile(self, t):
        return t - 0.01 * t**2


def test_a_profile_of_inner_products_that_breaks_the_necessary_conditions_is_caught():
    with pytest.raises(AssertionError, match=r"claims to be positive definite, but f|Gram matrix"):
        check_kernel(Bent(), claims=POSITIVE)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (lambda X, Y: np.exp(-((X[:, :1] - 2 * Y[:, 0]) ** 2)), "symmetry|symmetric"),
        (lambda X, Y: X @ Y.T + np.arange(len(Y)), "symmetr|pair by pair"),
        (lambda X, Y: X @ Y.T / len(X), "pair by pair|symmetry|diag"),
    ],
)
def test_functions_that_are_no_kernels_are_caught(function, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(mc.kernels.FromFunction(function))


@dataclass(frozen=True)
class LyingDiagonal(mc.Kernel):
    def lower(self):
        return Program((Block(lambda X, Y: X @ Y.T, lambda X: np.ones(len(X))),), Var(0))


def test_a_diagonal_that_lies_is_caught():
    with pytest.raises(AssertionError, match=r"diag\(X\) = diagonal of k\(X\) fails by"):
        check_kernel(LyingDiagonal())


@dataclass(frozen=True)
class Careless(Domain):
    def check(self, X, name):
        return np.asarray(X)

    @property
    def is_vector(self):
        return True


def test_points_that_are_not_checked_are_caught():
    k = mc.kernels.FromFunction(lambda X, Y: np.nan_to_num(X @ Y.T).real, on=Careless())
    with pytest.raises(AssertionError, match=r"instead of InputError|is accepted"):
        check_kernel(k)


@dataclass(frozen=True)
class Within(Domain):
    """Vectors in the open unit ball, or with positive coordinates only."""

    ball: bool

    def check(self, X, name):
        X = mc.Linear().points(X, name).array
        bad = (X**2).sum(axis=1) >= 1 if self.ball else (X <= 0).any(axis=1)
        if bad.any():
            raise mc.exceptions.DomainError(
                f"{name} leaves the domain at row {int(np.flatnonzero(bad)[0])}"
            )
        return X

    @property
    def is_vector(self):
        return True


@dataclass(frozen=True)
class Geometric(mc.DotProduct):
    """1 / (1 - <x, y>) on the unit ball."""

    flags = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE, True)

    @property
    def domain(self):
        return Within(ball=True)

    def profile(self, t):
        return 1 / (1 - t)


def test_kernels_on_a_part_of_space_are_tried_there():
    check_kernel(Geometric())
    least = mc.kernels.FromFunction(
        lambda X, Y: np.minimum(X[:, None], Y).prod(-1), on=Within(ball=False)
    )
    check_kernel(least, claims=POSITIVE)
    with pytest.raises(AssertionError, match=r"claims to be indefinite"):
        check_kernel(least, claims=INDEFINITE)
    check_element(mc.Element(Geometric(), [[0.1, 0.2], [-0.3, 0.4]], [1.0, -2.0]))


# --- derivatives ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derived(mc.Radial):
    """exp(-u), with derivatives off by given factors."""

    first: float = 1.0
    second: float = 1.0

    def profile(self, u):
        return np.exp(-u)

    def profile_derivatives(self, u):
        return -self.first * np.exp(-u), self.second * np.exp(-u)


def test_wrong_profile_derivatives_are_caught():
    check_kernel(Derived())
    with pytest.raises(AssertionError, match=r"the gradient in x fails by"):
        check_kernel(Derived(first=1.001))
    with pytest.raises(AssertionError, match=r"the mixed derivative fails by"):
        check_kernel(Derived(second=1.001))


# --- claims about the profile ---------------------------------------------------------------------


@dataclass(frozen=True)
class Cosine(mc.Radial):
    """cos(|x - y|): positive definite on the line, but neither convex nor monotone."""

    def profile(self, u):
        return np.cos(np.sqrt(u))


def test_cosine_is_positive_on_the_line_only():
    check_kernel(Cosine(), claims=POSITIVE, dims=(1,))
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_kernel(Cosine(), claims=POSITIVE, dims=(2, 3))


@pytest.mark.parametrize(
    ("kernel", "claim", "law"),
    [
        (Cosine(), {"convex_profile": True}, "claims a convex profile, but its slope falls"),
        (Cosine(), {"completely_monotone": True}, "claims a completely monotone profile, but"),
        (mc.Epanechnikov(1.0, 0.5), {"convex_profile": True}, "claims a convex profile"),
        (mc.Epanechnikov(1.0), {"completely_monotone": True}, "claims a completely monotone"),
        (mc.Epanechnikov(1.0), {"convex_profile": False}, "not convex, but its slope rises"),
        (mc.NegativeDistance(3.0), {"convex_profile": True}, "claims a convex profile"),
        (mc.NegativeDistance(1.0), {"completely_monotone": True}, "difference 0 with step"),
        (mc.Gaussian(1.0), {"completely_monotone": False}, "but no grid shows it"),
        (mc.Gaussian(1.0), {"convex_profile": False}, "not convex, but its slope rises"),
        (mc.Polynomial(3), {"convex_profile": True}, "claims a convex profile, but its slope"),
        (mc.Linear(), {"completely_monotone": True}, "which is for radial profiles"),
        (mc.Gaussian(1.0) + mc.Linear(), {"convex_profile": True}, "no profile of one variable"),
        (mc.Gaussian(1.0), {"characteristic": False}, "claims not to be characteristic"),
        (mc.Linear(), {"characteristic": True}, "claims to be characteristic, but on"),
        (mc.Polynomial(2), {"characteristic": True}, "claims to be characteristic, but on"),
        (mc.kernels.Constant(1.0), {"characteristic": True}, "claims to be characteristic, but on"),
        (
            mc.Gaussian(1.0).transform(mc.Columns([0])),
            {"characteristic": True},
            "claims to be characteristic, but on",
        ),
    ],
    ids=lambda value: getattr(value, "__class__", type(value)).__name__,
)
def test_wrong_claims_about_the_profile_are_caught(kernel, claim, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(kernel, claims=claims(**claim))


# --- measures -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured(mc.Radial):
    """1 / (1 + u), with a measure to be tried."""

    which: int = 0

    def profile(self, u):
        return 1.0 / (1.0 + u)

    def mixing_measure(self):
        return MEASURES[self.which][0]

    def spectral_measure(self, dim):
        mixing, spectral, _ = MEASURES[self.which]
        return ScaleMixture(spectral or mixing, dim)


@dataclass(frozen=True)
class SlowDensity(GammaMixing):
    """The right draws with the wrong density."""

    def density(self, t):
        return GammaMixing(self.shape, 1.02 * self.rate).density(t)


@dataclass(frozen=True)
class WrongSpectrum(GammaMixing):
    """The right draws with a spectral density that is wrong by a factor that keeps the mass."""

    def spectral_density(self, squared, dim):
        return GammaMixing(self.shape, 1.5 * self.rate).spectral_density(squared, dim)


RIGHT = GammaMixing(1.0, 1.0)
MEASURES = [
    (RIGHT, None, ""),
    (GammaMixing(1.0, 1.0, 1.01), None, "mass of the mixing measure"),
    (GammaMixing(1.0, 1.2), None, "the draws of the mixing measure: off by"),
    (PointMass(1.0), None, "the draws of the mixing measure: off by"),
    (SlowDensity(1.0, 1.0), None, "the Laplace transform of the mixing density fails by"),
    (RIGHT, GammaMixing(1.0, 1.0, 2.0), "mass of the spectral measure"),
    (RIGHT, GammaMixing(1.0, 1.5), "random Fourier features in 1 dimensions"),
    (WrongSpectrum(1.0, 1.0), None, "the spectral density in 1 dimensions against its draws"),
]


@pytest.mark.parametrize("which", range(1, len(MEASURES)))
def test_wrong_measures_are_caught(which):
    check_kernel(Measured())
    with pytest.raises(AssertionError, match=MEASURES[which][2]):
        check_kernel(Measured(which))


# --- values in the sense of equality --------------------------------------------------------------


class Undecorated(mc.Radial):
    def profile(self, u):
        return np.exp(-u)


@dataclass(eq=True, unsafe_hash=True)
class Mutable(mc.Radial):
    scale: float = 1.0

    def profile(self, u):
        return np.exp(-u / self.scale)


@dataclass(frozen=True)
class Unreadable(mc.Radial):
    scale: float = 1.0

    def profile(self, u):
        return np.exp(-u / self.scale)

    def __repr__(self):
        return "Unreadable()"


@dataclass(frozen=True)
class Unfinished(mc.Radial):
    def profile(self, u):
        return np.exp(-u)

    def __repr__(self):
        return "<a kernel>"


@dataclass(frozen=True)
class Forgetful(mc.Radial):
    scale: float = 1.0

    def profile(self, u):
        return np.exp(-u / self.scale)

    def get_params(self, deep=True):
        return {}


@dataclass(frozen=True, eq=False)
class ByIdentity(mc.Radial):
    scale: float = 1.0

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def profile(self, u):
        return np.exp(-u / self.scale)


@pytest.mark.parametrize(
    ("kernel", "law"),
    [
        (Undecorated(), r"put @dataclass\(frozen=True\) on Undecorated"),
        (mc.Gaussian(1.0) + Undecorated(), r"put @dataclass\(frozen=True\) on Undecorated"),
        (Mutable(2.0), "is not immutable: Mutable.scale can be set"),
        (Unreadable(2.0), "evaluated from its repr, it is not equal to itself"),
        (Unfinished(), "its repr cannot be evaluated: SyntaxError"),
        (Forgetful(2.0), "is not rebuilt by its own parameters"),
        (ByIdentity(2.0), "is not rebuilt by its own parameters"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kernels_that_are_not_values_are_caught(kernel, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(kernel)


# --- algebra --------------------------------------------------------------------------------------


def test_algebra_passes_mixed_lists():
    check_algebra([mc.Gaussian(1.0)])
    check_algebra([mc.Epanechnikov(2.0), mc.Linear(), mc.NegativeDistance(1.0)])


def test_algebra_without_derivatives():
    check_algebra([mc.kernels.FromFunction(lambda X, Y: X @ Y.T), mc.Gaussian(1.0)])


def test_algebra_without_common_columns_says_so():
    two, three = (mc.Linear().transform(mc.Scales(np.ones(d))) for d in (2, 3))
    with pytest.raises(AssertionError, match=r"no number of columns"):
        check_algebra([two, three])


@pytest.mark.parametrize(
    ("name", "method", "law"),
    [
        ("__add__", lambda a, b: mc.kernels.Sum(a, a), "a .* fails by"),
        ("__mul__", lambda a, b: mc.kernels.Sum(a, mc.kernels.Constant(1.0)), "a .* fails by"),
        (
            "transform",
            lambda a, m: mc.kernels.Transformed(a, mc.Scales([1.0] * 3)),
            r"k\(Ax, Ay\) fails",
        ),
        ("__sub__", lambda a, b: a, "a - b is not refused"),
        ("__neg__", lambda a: a, "-a is not refused"),
    ],
)
def test_broken_algebra_is_caught(monkeypatch, name, method, law):
    monkeypatch.setattr(mc.Kernel, name, method)
    with pytest.raises(AssertionError, match=law):
        check_algebra([mc.Gaussian(1.0), mc.Linear(), mc.Laplace(1.0)])


def test_a_broken_product_rule_is_caught(monkeypatch):
    right = mc.Kernel.gradient

    def wrong(self, X, Y=None):
        return right(self, X, Y) * (1.001 if isinstance(self, mc.kernels.Product) else 1.0)

    monkeypatch.setattr(mc.Kernel, "gradient", wrong)
    with pytest.raises(AssertionError, match=r"the product rule fails by"):
        check_algebra([mc.Gaussian(1.0), mc.Linear()])


@pytest.mark.parametrize("kernel", [mc.Epanechnikov(1.0), mc.NegativeDistance(1.0)])
@pytest.mark.parametrize("rule", ["plus", "times"])
def test_flags_that_carry_too_much_are_caught(monkeypatch, kernel, rule):
    monkeypatch.setattr(mc.kernels.Flags, rule, lambda self, other, **kind: POSITIVE)
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_algebra([kernel, mc.Gaussian(1.0)])


# --- elements and subspaces -----------------------------------------------------------------------


def element(batch=None):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 2))
    X[4] = X[1]
    shape = 6 if batch is None else (6, batch)
    return mc.Element(mc.Gaussian(1.0) + mc.Linear(), X, rng.normal(size=shape))


def spoil(monkeypatch, cls, name, change):
    """Replace a method by `change` of its result."""
    right = getattr(cls, name)
    monkeypatch.setattr(cls, name, lambda self, *a, **k: change(right(self, *a, **k)))


@pytest.mark.parametrize(
    ("name", "change", "law"),
    [
        ("__call__", lambda r: 1.0001 * r, r"psi\(y\) = sum_i a_i k\(x_i, y\) fails by"),
        ("gradient", lambda r: 1.0001 * r, "its gradient fails by"),
        ("hessian", lambda r: r + 0.001, "its Hessian fails by"),
        ("inner", lambda r: 1.0001 * np.asarray(r), "<psi, psi> = a' K a fails by"),
        ("norm", lambda r: 1.0001 * r, r"\|psi\|\^2 = a' K a fails by"),
        ("distance", lambda r: r + 0.1, r"\|psi - psi\| = 0 fails by"),
        ("__add__", lambda r: 1.001 * r, "fails by"),
        ("__neg__", lambda r: 1.1 * r, "psi - psi fails by|-psi fails by|= 0 fails by"),
        ("__truediv__", lambda r: 2.0 * r, "psi / 2 fails by"),
        ("merge", lambda r: 1.001 * r, r"psi.merge\(\) fails by"),
    ],
)
@pytest.mark.parametrize("batch", [None, 3])
def test_broken_elements_are_caught(monkeypatch, name, change, law, batch):
    psi = element(batch)
    check_element(psi)
    spoil(monkeypatch, mc.Element, name, change)
    with pytest.raises(AssertionError, match=law):
        check_element(psi)


@pytest.mark.parametrize(
    ("name", "change", "law"),
    [
        ("__getitem__", lambda r: 1.001 * r, r"psi\[0\] fails by"),
        ("combine", lambda r: 1.001 * r, r"psi.combine\(W\) fails by"),
    ],
)
def test_broken_batches_are_caught(monkeypatch, name, change, law):
    psi = element(3)
    spoil(monkeypatch, mc.Element, name, change)
    with pytest.raises(AssertionError, match=law):
        check_element(psi)


def test_merging_that_keeps_equal_points_is_caught(monkeypatch):
    psi = element()
    monkeypatch.setattr(mc.Element, "merge", lambda self: self)
    with pytest.raises(AssertionError, match=r"keeps 6 points, of which 5 are distinct"):
        check_element(psi)


def test_evaluation_beyond_the_norm_is_caught(monkeypatch):
    """With a norm that is too small the bound |psi(x)| <= sqrt(k(x, x)) |psi| breaks."""
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [3.0]], [1.0, 0.1])
    check_element(psi)
    spoil(monkeypatch, mc.Element, "norm", lambda r: 0.9 * r)
    with pytest.raises(AssertionError, match=r"\|psi\|\^2 = a' K a fails by"):
        check_element(psi)


def test_wrong_shapes_are_caught(monkeypatch):
    psi = element(3)
    spoil(monkeypatch, mc.Element, "__call__", lambda r: r[:, :1])
    with pytest.raises(AssertionError, match=r"fails: shape \(7, 1\) instead of \(7, 3\)"):
        check_element(psi)


def test_differences_that_never_settle_are_no_check(monkeypatch):
    """A function that is rough everywhere has no derivative to compare with."""
    psi = element()
    rough = np.random.default_rng(0)
    spoil(monkeypatch, mc.Element, "gradient", lambda r: r + 1e-2 * rough.normal(size=r.shape))
    with pytest.raises(AssertionError, match=r"cannot be checked|fails by"):
        check_element(psi)


def plane():
    k, X = mc.Gaussian(1.0), lattice(2, 3, 1.3)
    return mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:4]))


def test_directions_that_are_not_orthonormal_are_caught():
    right = plane()
    check_subspace(right)
    for wrong in (1.001 * right.directions, right.directions.combine(np.eye(4) + 0.01)):
        with pytest.raises(AssertionError, match=r"orthonormality of its directions fails by"):
            check_subspace(mc.Subspace(right.origin, wrong))


@pytest.mark.parametrize(
    ("name", "change", "law"),
    [
        ("coordinates", lambda r: 1.001 * r, "coordinates .* fails by"),
        ("project", lambda r: 1.001 * r, "fails by"),
        ("distance", lambda r: 1.001 * r + 0.01, "Pythagoras fails by"),
        ("element", lambda r: 1.001 * r, "fails by"),
        ("truncate", lambda r: mc.Subspace(r.origin, r.directions * -1.0), "truncation fails by"),
    ],
)
def test_broken_subspaces_are_caught(monkeypatch, name, change, law):
    right = plane()
    spoil(monkeypatch, mc.Subspace, name, change)
    with pytest.raises(AssertionError, match=law):
        check_subspace(right)
