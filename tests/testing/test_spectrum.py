"""The conformance kit catches wrong mixing and spectral measures."""

from dataclasses import dataclass

import pytest

import mercer as mc
from mercer.kernels._measures import GammaMixing, PointMass, ScaleMixture
from mercer.testing import check_kernel


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
