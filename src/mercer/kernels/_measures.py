"""Measures behind kernels: mixing measures of profiles, and spectral measures of kernels on R^d.

A completely monotone profile is a mixture of Gaussians, k(u) = int exp(-u t) dmu(t). Its spectral
measure in any dimension follows: w given t is normal with variance 2t, so draws, and for the three
families below densities, come from mu alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points, instance, positive_int
from mercer._random import as_generator
from mercer.engine import Map, column_rank
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels._parameters import checked


class _Measure(ABC):
    """A finite measure that can be sampled."""

    mass: float
    """The total mass, k(0) or k(x, x)."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Independent draws from the measure divided by its mass, one per row."""

    def sample(self, size: int, random_state: Any = None) -> Array:
        """Return independent draws from the measure divided by its mass, one per row."""
        return self.draw(positive_int(size, "size"), as_generator(random_state))


class MixingMeasure(_Measure):
    """A positive measure mu on t >= 0 with k(u) = int exp(-u t) dmu(t).

    Examples
    --------
    The profile of `RationalQuadratic(3.0)` is a mixture of Gaussians with a Gamma distribution:

    >>> import numpy as np
    >>> import mercer as mc
    >>> mu = mc.RationalQuadratic(3.0).mixing_measure()
    >>> mu.mass
    1.0
    >>> t = mu.sample(100_000, random_state=0)
    >>> bool(abs(np.exp(-2.0 * t).mean() - mc.RationalQuadratic(3.0).profile(2.0)) < 0.005)
    True
    """

    @abstractmethod
    def density(self, t: Any) -> Array:
        """The density of mu at t > 0."""

    @abstractmethod
    def spectral_density(self, squared: Array, dim: int) -> Array:
        """Density at |w|^2 = squared of the spectral measure in dimension dim."""

    def __add__(self, other: MixingMeasure) -> MixingMeasure:
        return _MixingSum(self, instance(other, MixingMeasure, "other"))

    def __mul__(self, other: MixingMeasure) -> MixingMeasure:
        instance(other, MixingMeasure, "other")
        if isinstance(self, PointMass) and isinstance(other, PointMass):
            return PointMass(self.t + other.t, self.mass * other.mass)
        return _MixingConvolution(self, other)


@dataclass(frozen=True)
class PointMass(MixingMeasure):
    """All mass at one t: the Gaussian profile exp(-u t), or a constant for t = 0."""

    t: float
    mass: float = 1.0

    def density(self, t: Any) -> Array:
        raise UnavailableError(f"this measure is a point mass at t = {self.t!r}: no density")

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return np.full(size, self.t)

    def spectral_density(self, squared: Array, dim: int) -> Array:
        """Normal with variance 2t."""
        if self.t == 0.0:
            raise UnavailableError("a constant has its spectral measure at w = 0: no density")
        log = -squared / (4 * self.t) - 0.5 * dim * math.log(4 * math.pi * self.t)
        return np.asarray(self.mass * np.exp(log))


@dataclass(frozen=True)
class GammaMixing(MixingMeasure):
    """Gamma distribution of t with given shape and rate: the profile (1 + u / rate)^-shape."""

    shape: float
    rate: float
    mass: float = 1.0

    def density(self, t: Any) -> Array:
        """rate^p t^(p-1) exp(-rate t) / Gamma(p)."""
        from scipy.stats import gamma

        return np.asarray(self.mass * gamma.pdf(t, self.shape, scale=1.0 / self.rate))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return rng.gamma(self.shape, 1.0 / self.rate, size)

    def spectral_density(self, squared: Array, dim: int) -> Array:
        """A Bessel function: int t^(nu-1) exp(-ct - b/t) dt = 2 (b/c)^(nu/2) K_nu(2 sqrt(bc))."""
        from scipy.special import kve

        c, p, nu = self.rate, self.shape, self.shape - dim / 2
        z = np.sqrt(squared * c)
        constant = -math.lgamma(p) - 0.5 * dim * math.log(4 * math.pi / c)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log = constant + math.log(2.0) + nu * np.log(0.5 * z) + np.log(kve(nu, z)) - z
            out = self.mass * np.exp(log)
            at_zero = self.mass * np.exp(constant + math.lgamma(nu)) if nu > 0 else np.inf
        out = np.where(z > 700.0 + abs(nu), 0.0, out)  # far below underflow, where kve gives up
        return np.where(squared > 0, out, at_zero)


@dataclass(frozen=True)
class InverseGammaMixing(MixingMeasure):
    """1/t is Gamma: Matern profiles (shape nu, scale nu / (2 l^2)), Laplace at nu = 1/2."""

    shape: float
    scale: float
    mass: float = 1.0

    def density(self, t: Any) -> Array:
        """scale^a t^(-a-1) exp(-scale / t) / Gamma(a)."""
        from scipy.stats import invgamma

        return np.asarray(self.mass * invgamma.pdf(t, self.shape, scale=self.scale))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.scale / rng.gamma(self.shape, 1.0, size)

    def spectral_density(self, squared: Array, dim: int) -> Array:
        """A multivariate Student distribution."""
        a, b, power = self.shape, self.scale, self.shape + dim / 2
        constant = math.lgamma(power) - math.lgamma(a) - 0.5 * dim * math.log(4 * math.pi * b)
        return np.asarray(self.mass * np.exp(constant - power * np.log1p(squared / (4 * b))))


@dataclass(frozen=True)
class _OfTwo:
    """A measure made of two measures of either kind."""

    left: Any
    right: Any


class _SumOfTwo(_OfTwo):
    """The mass and the draws of the sum of two measures."""

    @property
    def mass(self) -> float:
        return float(self.left.mass + self.right.mass)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        from_left = rng.random(size) * self.mass < self.left.mass
        left, right = self.left.draw(size, rng), self.right.draw(size, rng)
        rows = from_left if left.ndim == 1 else from_left[:, None]
        return np.asarray(np.where(rows, left, right))


class _ConvolutionOfTwo(_OfTwo):
    """The mass and the draws of the distribution of the sum of two independent draws."""

    @property
    def mass(self) -> float:
        return float(self.left.mass * self.right.mass)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(self.left.draw(size, rng) + self.right.draw(size, rng))

    def no_density(self) -> UnavailableError:
        return UnavailableError("the measure of this product has no closed density; sample it")


class _MixingSum(_SumOfTwo, MixingMeasure):  # type: ignore[override]
    def density(self, t: Any) -> Array:
        return np.asarray(self.left.density(t) + self.right.density(t))

    def spectral_density(self, squared: Array, dim: int) -> Array:
        left = self.left.spectral_density(squared, dim)
        return np.asarray(left + self.right.spectral_density(squared, dim))


class _MixingConvolution(_ConvolutionOfTwo, MixingMeasure):  # type: ignore[override]
    """The distribution of t_1 + t_2; a point mass only shifts or scales the other measure."""

    def density(self, t: Any) -> Array:
        for point, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(point, PointMass):
                return np.asarray(point.mass * other.density(np.asarray(t) - point.t))
        raise self.no_density()

    def spectral_density(self, squared: Array, dim: int) -> Array:
        for point, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(point, PointMass) and point.t == 0.0:
                return np.asarray(point.mass * other.spectral_density(squared, dim))
        raise self.no_density()


class SpectralMeasure(_Measure):
    """A finite measure Lambda on R^dim with k(x, y) = int exp(-i <w, x - y>) dLambda(w).

    Examples
    --------
    The frequencies of a Gaussian kernel are normal:

    >>> import mercer as mc
    >>> measure = mc.Gaussian(2.0).spectral_measure(1)
    >>> measure.density([[0.0]]).round(4), measure.mass
    (array([0.7979]), 1.0)
    >>> measure.sample(3, random_state=0).shape
    (3, 1)
    """

    dim: int

    @abstractmethod
    def _density(self, w: Array) -> Array:
        """The density at the rows of w."""

    def density(self, w: Any) -> Array:
        """Return the density of Lambda at the rows of w, shape (n,); it integrates to the mass."""
        w = as_dense_points(w, "w")
        if w.shape[1] != self.dim:
            raise InputError(f"w must have {self.dim} columns, got {w.shape[1]}")
        return self._density(w)


@dataclass(frozen=True)
@checked(dim=positive_int)
class ScaleMixture(SpectralMeasure):
    """w is normal with variance 2t, t from a mixing measure."""

    mixing: MixingMeasure
    dim: int

    @property
    def mass(self) -> float:  # type: ignore[override]
        return self.mixing.mass

    def _density(self, w: Array) -> Array:
        return self.mixing.spectral_density(np.einsum("ij,ij->i", w, w), self.dim)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """A scale for each draw, then a normal vector."""
        scale = np.sqrt(2.0 * self.mixing.draw(size, rng))
        return scale[:, None] * rng.standard_normal((size, self.dim))


class Mixture(_SumOfTwo, SpectralMeasure):  # type: ignore[override]
    """The sum of two measures."""

    @property
    def dim(self) -> int:  # type: ignore[override]
        return int(self.left.dim)

    def _density(self, w: Array) -> Array:
        return np.asarray(self.left._density(w) + self.right._density(w))


class Convolution(_ConvolutionOfTwo, SpectralMeasure):  # type: ignore[override]
    """The distribution of the sum of two independent draws; a radial product keeps its density."""

    @property
    def dim(self) -> int:  # type: ignore[override]
        return int(self.left.dim)

    def _density(self, w: Array) -> Array:
        for point, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(point, ScaleMixture) and point.mixing == PointMass(0.0, point.mass):
                with np.errstate(over="ignore"):  # densities that overflow are infinite
                    return np.asarray(point.mass * other._density(w))
        if isinstance(self.left, ScaleMixture) and isinstance(self.right, ScaleMixture):
            return ScaleMixture(self.left.mixing * self.right.mixing, self.dim)._density(w)
        raise self.no_density()


@dataclass(frozen=True)
class LinearImage(SpectralMeasure):
    """The image of a measure under the transpose of a linear map of points."""

    inner: SpectralMeasure
    point_map: Map
    dim: int

    @property
    def mass(self) -> float:  # type: ignore[override]
        return self.inner.mass

    def _density(self, w: Array) -> Array:
        A = self.point_map.pull(np.eye(self.inner.dim), self.dim)
        if A.shape[0] != A.shape[1] or column_rank(A) < self.dim:
            raise UnavailableError(
                "the map is not invertible, so the spectral measure lies on a subspace and has no "
                "density; sample it"
            )
        inner = self.inner._density(np.linalg.solve(A.T, w.T).T)
        return inner / abs(float(np.linalg.det(A)))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.point_map.pull(self.inner.draw(size, rng), self.dim)
