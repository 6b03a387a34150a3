"""The conformance kit catches kernels whose values, derivatives or parameters are wrong."""

from dataclasses import dataclass

import numpy as np
import pytest

import mercer as mc
from mercer.engine import Block, Program, Var
from mercer.kernels import Domain
from mercer.testing import check_element, check_kernel

POSITIVE = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)
INDEFINITE = mc.kernels.Flags(mc.kernels.Definiteness.INDEFINITE)


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


# --- kernels are values --------------------------------------------------------------------------


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
        (Undecorated(), r"put @dataclass\(frozen=True\) on the class Undecorated"),
        (
            mc.Gaussian(1.0) + Undecorated(),
            r"put @dataclass\(frozen=True\) on the class Undecorated",
        ),
        (Mutable(2.0), "is not immutable: Mutable.scale can be set"),
        (Unreadable(2.0), "evaluated from its repr, it is not equal to itself"),
        (Unfinished(), "its repr cannot be evaluated: SyntaxError"),
        (Forgetful(2.0), "rebuilt, it is not equal to itself"),
        (ByIdentity(2.0), "rebuilt, it is not equal to itself"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kernels_that_are_not_values_are_caught(kernel, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(kernel)


def test_gradients_that_are_zero_in_truth_may_differ_by_rounding():
    check_kernel(mc.kernels.Cosine().transform(mc.Scales([0.01])), dims=(1,))


def test_a_small_cusp_beside_large_derivatives_is_no_slope():
    """k = (30 - |x - y|) p(x y): second derivatives at the points range from 1e7 to 1e11."""
    steep = mc.Polynomial(3, 1.0, 0.01).transform(mc.Scales([0.01]))
    check_kernel(mc.NegativeDistance(1.0, 30.0) * steep, dims=(1,))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.75, 0.9])
def test_differences_that_converge_slowly_at_a_cusp_are_no_slope(p):
    """|x - y|^p s(x'y) is even in x - y up to s: its differences at x = y go to 0 as h^p."""
    check_kernel(mc.NegativeDistance(p) * (0.01 * mc.kernels.Sigmoid(2.0, 0.5)), dims=(3, 7))


@pytest.mark.parametrize("scale", [1e-2, 10.0**-1.13, 1e-1])
def test_values_beyond_float32_are_infinite_there(scale):
    """-|x - y|^30 of points a few units apart is 1e64, 1e39 and 1e35."""
    check_kernel(mc.NegativeDistance(30.0).transform(mc.Scales([scale])), dims=(1,))
