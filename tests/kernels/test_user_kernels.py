"""Kernels that users write: one method, functions that cannot be recorded, own derivatives."""

import copy
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

import mercer as mc
from mercer.testing import check_element, check_kernel


@dataclass(frozen=True)
class Cauchy(mc.Radial):
    scale: float = 1.0

    def profile(self, u):
        return 1 / (1 + u / self.scale**2)


@dataclass(frozen=True)
class Everything(mc.Radial):
    """Each operation that can be recorded, in one profile."""

    def profile(self, u):
        v = np.square(np.sqrt(1.0 + u)) / 2 - np.negative(np.multiply(0.1, u))
        w = np.reciprocal(v + 1) + np.exp(-v) + 1 / np.log(3.0 + u) - 0.01 / (2.0 - (-u))
        return np.add(w, np.power(1.0 + u, -1.5)) + np.power(2.0, -u) + np.subtract(1.0, 0.5)


@dataclass(frozen=True)
class GeneralMatern(mc.Radial):
    """Matern of any smoothness, through a Bessel function that mercer cannot look into."""

    nu: float = 2.0

    def profile(self, u):
        z = np.sqrt(2 * self.nu * np.maximum(np.asarray(u, dtype=np.float64), 1e-100))
        return 2 ** (1 - self.nu) / special.gamma(self.nu) * z**self.nu * special.kv(self.nu, z)


@dataclass(frozen=True)
class GeneralMaternWithDerivatives(mc.Radial):
    """M_nu' in z^2 is -M_(nu-1) / (4 (nu - 1)) in the same z: the recursion of Bessel functions."""

    nu: float = 3.0

    def profile(self, u):
        return self._matern(self.nu, u)

    def profile_derivatives(self, u):
        c = 2 * self.nu
        first = -c / (4 * (self.nu - 1)) * self._matern(self.nu - 1, u)
        second = c**2 / (16 * (self.nu - 1) * (self.nu - 2)) * self._matern(self.nu - 2, u)
        return first, second

    def _matern(self, mu, u):
        z = np.sqrt(2 * self.nu * np.maximum(np.asarray(u, dtype=np.float64), 1e-60))
        return 2 ** (1 - mu) / special.gamma(mu) * z**mu * special.kv(mu, z)


@dataclass(frozen=True)
class Cosh(mc.DotProduct):
    def profile(self, t):
        return 0.5 * (np.exp(t) + np.exp(-t))


@dataclass(frozen=True)
class ArcCosine(mc.DotProduct):
    """A dot-product profile with a function that cannot be recorded."""

    def profile(self, t):
        return np.arctan(t)


@pytest.mark.parametrize(
    "kernel",
    [Cauchy(0.5), Everything(), GeneralMatern(2.0), GeneralMaternWithDerivatives(3.0), Cosh()],
    ids=repr,
)
def test_users_kernels_conform(kernel):
    check_kernel(kernel)


def test_one_method_gives_everything(rng):
    X, Y = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    k, known = Cauchy(1.5), 2.25 * mc.InverseMultiquadric(2.25, 1.0)
    assert_allclose(k(X, Y), known(X, Y), rtol=1e-13)
    assert_allclose(k.gradient(X, Y), known.gradient(X, Y), rtol=1e-12)
    assert_allclose(k.mixed_derivative(X, Y), known.mixed_derivative(X, Y), rtol=1e-11, atol=1e-14)
    psi = mc.Element(k, X, rng.normal(size=5))
    check_element(psi)
    check_element(mc.Element(k + mc.Linear() * k, X, rng.normal(size=(5, 2))))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_special_functions_need_no_recording(nu, rng):
    X = rng.normal(size=(6, 3))
    assert_allclose(GeneralMatern(nu)(X), mc.Matern(nu, 1.0)(X), rtol=1e-9)


def test_a_profile_that_cannot_be_recorded_has_no_derivatives_and_says_the_cure(rng):
    X = rng.normal(size=(4, 2))
    for call in (
        lambda: GeneralMatern(2.0).gradient(X),
        lambda: mc.Element(GeneralMatern(2.0), X, np.ones(4)).gradient(X),
        lambda: (GeneralMatern(2.0) + mc.Linear()).mixed_derivative(X),
        lambda: ArcCosine().gradient(X),
    ):
        with pytest.raises(
            mc.exceptions.DerivativeError, match=r"add a method profile_derivatives\(u\)"
        ):
            call()


def test_own_derivatives_are_used(rng):
    X = rng.normal(size=(6, 3))
    psi = mc.Element(GeneralMaternWithDerivatives(3.0), X, rng.normal(size=6))
    check_element(psi)
    check_kernel(0.5 * GeneralMaternWithDerivatives(3.0) * mc.Linear() + 1.0)


def test_own_derivatives_in_float32(rng):
    X = rng.normal(size=(6, 3)).astype(np.float32)
    k = GeneralMaternWithDerivatives(3.0)
    assert k(X).dtype == np.float32
    assert k.gradient(X).dtype == np.float32
    assert_allclose(k.gradient(X), k.gradient(X.astype(float)), atol=1e-5)


# --- profiles must mean what NumPy means ----------------------------------------------------------


@dataclass(frozen=True)
class Written(mc.Radial):
    """A profile by name, so that many can be tried."""

    name: str

    def profile(self, u):
        return PROFILES[self.name](u)


def _by_index(u):
    out = np.zeros_like(u)
    out[u < 1] = 1.0
    return out


PROFILES = {
    "maximum with 0": lambda u: np.maximum(1.0 - u, 0.0),
    "0 with maximum": lambda u: np.maximum(0.0, 1.0 - u),
    "maximum with a number": lambda u: np.maximum(1.0 - u, 0.25),
    "maximum of two": lambda u: np.maximum(np.exp(-u), 0.5 - u),
    "minimum": lambda u: np.minimum(1.0, 1.0 / (0.5 + u)),
    "where": lambda u: np.where(u < 1.0, 1.0 - u, 0.0),
    "abs": lambda u: np.exp(-np.abs(u)),
    "clip": lambda u: np.clip(1.0 - u, 0.0, 1.0),
    "base to the variable": lambda u: 0.5**u,
    "power of a power": lambda u: np.power(np.exp(-u), 0.5),
    "variable to the variable": lambda u: np.power(1.0 + u, -u),
    "expm1": lambda u: -np.expm1(-1.0 / (1.0 + u)),
    "hypot": lambda u: 1.0 / np.hypot(1.0, u),
    "its shape": lambda u: np.ones(u.shape) / (1.0 + u),
    "its type": lambda u: (1.0 / (1.0 + u)).astype(u.dtype),
    "an array of it": lambda u: 1.0 / (1.0 + np.atleast_1d(u)),
    "an index": _by_index,
    "a constant": lambda u: 2.0,
    "a sum over nothing": lambda u: np.exp(-u) * np.sum([1.0, 2.0]),
    "integers": lambda u: 1 / (1 + u) ** 2,
    "nested": lambda u: np.exp(-np.log(1.0 + np.sqrt(1.0 + u**2))),
}


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_means_what_numpy_computes(name):
    x, u = np.linspace(0.0, 2.0, 9), np.linspace(0.0, 2.0, 9) ** 2
    expected = np.broadcast_to(PROFILES[name](u), u.shape)
    assert_allclose(Written(name)([[0.0]], x[:, None])[0], expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "kernel",
    [mc.Gaussian(1.3), mc.Laplace(1.3), mc.Matern(0.5), mc.Matern(1.5), mc.Matern(2.5),
     mc.RationalQuadratic(0.7), mc.InverseMultiquadric(2.0, 0.3), mc.Epanechnikov(1.0),
     mc.Epanechnikov(1.0, 0.5), mc.NegativeDistance(1.5)],
    ids=repr,
)  # fmt: skip
def test_profiles_are_functions_of_arrays(kernel):
    """`profile(u)` is public and documented as k as a function of u."""
    u = np.array([0.0, 0.3, 0.9, 4.0])
    expected = kernel([[0.0]], np.sqrt(u)[:, None])[0]
    assert_allclose(np.asarray(kernel.profile(u), dtype=np.float64), expected, rtol=1e-14)


# --- classes without a decorator ------------------------------------------------------------------


class Plain(mc.Radial):
    """What a reader of the documentation may write: no dataclass, parameters in __init__."""

    def __init__(self, scale):
        self.scale = scale

    def profile(self, u):
        return np.exp(-u / self.scale)


def test_a_plain_class_survives_copying():
    k = copy.deepcopy(Plain(2.0))
    assert k([[0.0]], [[1.0]]) == Plain(2.0)([[0.0]], [[1.0]])


def test_kernels_without_parameters_are_equal_without_a_decorator():
    """The documentation shows such a class; its elements must live in one space."""

    class Cosh(mc.DotProduct):
        def profile(self, t):
            return 0.5 * (np.exp(t) + np.exp(-t))

    assert Cosh() == Cosh()
    psi, phi = (mc.Element(Cosh(), [[1.0]], [1.0]) for _ in range(2))
    assert float((psi - phi).norm()) == 0.0
