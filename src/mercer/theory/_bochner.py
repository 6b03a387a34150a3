"""The norm of a function in a kernel's space from its Fourier transform (Bochner's theorem)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, instance, positive_int
from mercer.engine import Distance
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Kernel
from mercer.kernels._parameters import callable_function

_OCTAVES = 80  # frequencies 2^-80 to 2^80 are examined ...
_STEPS = 64  # ... at this many points per octave, before anything is integrated
_NEGLIGIBLE = 60.0  # octaves e^-60 below the largest are not integrated
_LEAST_DENSITY = math.log(1e-290)  # below, doubles have no digits left
_LEAST_POWER = math.log(1e-300) * 2.0  # of a square: the transform itself at 1e-300
_ABRUPT = math.log(1e-200)  # a density that ends above this has ended, not underflowed
_STEEP = 100.0  # a logarithmic slope beyond this is no power law
_WINDOW = 8  # octaves in each of the two runs at an end
_NEAR = 7  # steps in a short window
_FINE = np.polynomial.legendre.leggauss(21)
_COARSE = np.polynomial.legendre.leggauss(10)
_PANELS = 1 << 15
_RTOL = 1e-10  # of the quadrature


@dataclass(frozen=True)
class BochnerNorm:
    """The norm of a function in the space of a kernel, and whether it is in that space.

    Attributes
    ----------
    value : float
        The norm; inf for a function outside the space, NaN where that is undecided.
    error : float
        An estimate of the error of `value`: that of the quadrature plus the part beyond the
        frequencies that were examined.
    inside : bool or None
        Whether the function is in the space; None where it is undecided.
    reason : str
        Why, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> box = mc.theory.bochner_norm(mc.Laplace(1.0), lambda w: 2.0 * np.sinc(w / np.pi))
    >>> box.value, box.inside
    (inf, False)
    """

    value: float
    error: float
    inside: bool | None
    reason: str


def bochner_norm(
    kernel: Kernel,
    transform: Callable[[Array], Any],
    dim: int = 1,
    *,
    breaks: Any = (),
) -> BochnerNorm:
    r"""Norm of f in the space of a kernel q(x - y) on R^dim, from its Fourier transform.

    |f|^2 = (2 pi)^(-2 dim) int |F(w)|^2 / Lambda(w) dw,  F(w) = int exp(i <w, x>) f(x) dx,

    with Lambda the density of the kernel's spectral measure. As Lambda is (2 pi)^-dim times the
    transform Q of q, this is (2 pi)^-dim int |F|^2 / Q.

    Parameters
    ----------
    kernel : Kernel
        With a spectral density; for dim > 1 a profile of |x - y|.
    transform : callable
        F. For dim = 1 it takes an array of frequencies of either sign, for dim > 1 an array of
        lengths |w| (f must be radial then); it returns an array of the same shape, real or complex.
        It must have a small relative error: rounding errors of size 1e-17 are not in the space
        of a Gaussian, and will be detected.
    dim : int
    breaks : sequence of float
        Frequencies > 0 where F jumps or has a narrow peak. Peaks narrower than a hundredth of
        their frequency may be missed otherwise.

    Notes
    -----
    Convergence is judged from frequencies 2^-80 to 2^80. If the integrand is a power at the end of
    that range, by the slope of the logarithm of its integral over octaves, fitted to the last two
    runs of eight: below -0.1 in both the integral converges, above -0.01 in both it diverges,
    anything else is undecided. If Lambda falls faster than any power and below 1e-290 (Gaussian,
    inverse multiquadric), by the slope of log |F|^2 divided by that of log Lambda in the last
    octave before that: above 1.03, even if it keeps falling as it did, the integral converges;
    below 0.97 and not rising it diverges; anything else is undecided. A function whose transform
    changes its behaviour beyond these ranges cannot be distinguished from one whose transform does
    not.

    Oscillating transforms of functions at the edge of smoothness (elements of a Laplace kernel)
    are integrated up to a budget of points; `error` says how well.

    References
    ----------
    Rudi and Gaillard 2021, Theorem 3 and the norm after it, with the factor (2 pi)^-d that is
    missing there; Sakulwongtana, Theorem 2.5.5.

    Examples
    --------
    The norm of k(., 0) is the root of k(0, 0); exp(-|x|) has the transform 2 / (1 + w^2).

    >>> import numpy as np
    >>> import mercer as mc
    >>> found = mc.theory.bochner_norm(mc.Laplace(1.0), lambda w: 2.0 / (1.0 + w**2))
    >>> round(found.value, 8), found.inside
    (1.0, True)

    A Gaussian narrower than 1 / sqrt(2) times the Gaussian kernel is not in its space.

    >>> bump = lambda w: np.exp(-0.5 * (0.6 * w) ** 2)
    >>> mc.theory.bochner_norm(mc.Gaussian(1.0), bump).value
    inf
    """
    dim = positive_int(dim, "dim")
    instance(kernel, Kernel, "kernel")
    integrand = _Integrand(kernel, callable_function(transform, "transform"), dim)
    marks = as_vector(breaks, "breaks").astype(np.float64) if np.size(breaks) else np.empty(0)
    if np.any(marks <= 0):
        raise InputError(f"breaks must be > 0 (both signs are meant), got {float(marks.min())!r}")
    t = np.arange(-_OCTAVES * _STEPS, _OCTAVES * _STEPS + 1) / _STEPS
    log_power, log_density = integrand.parts(2.0**t)
    # the transform may overflow only where the density does, or nearly so
    bad = np.isnan(log_power) | ((log_power == np.inf) & (log_density < 460.0))
    if bad.any():
        raise InputError(
            f"transform is not finite at |w| = {float(2.0 ** t[bad][0])!r}; write it so that it is "
            "at all w != 0, also very large ones"
        )
    log_mass = integrand.log_mass(2.0**t)
    tail = _convergence(t, log_power, log_density, log_mass)
    if not tail.converges:
        value = math.nan if tail.converges is None else math.inf
        return BochnerNorm(value, value, tail.converges, tail.reason)
    known = slice(tail.first, tail.last + 1)
    return _integrate(integrand, t[known], log_mass[known], tail, marks)


def _integrate(g: _Integrand, t: Array, log_mass: Array, tail: Tail, marks: Array) -> BochnerNorm:
    """Integrate over the octaves that matter, in units of the largest integrand."""
    at_marks = g.log_mass(marks).max() if marks.size else -math.inf
    shift = max(float(log_mass.max()), float(at_marks))
    if shift == -math.inf:
        return BochnerNorm(0.0, 0.0, True, "the transform is zero at all frequencies tried")
    matters = np.concatenate([t[log_mass > shift - _NEGLIGIBLE], np.log2(marks)])
    low, high = float(matters.min()) - 1.0 / _STEPS, float(matters.max()) + 1.0 / _STEPS
    octaves = 2.0 ** np.arange(math.floor(low) + 1, math.ceil(high))
    edges = np.unique(np.concatenate([[2.0**low], octaves, marks, [2.0**high]]))
    total, error = adaptive(lambda w: g(w, shift), edges, _RTOL)
    rest = math.exp(min(tail.log_rest - shift, 700.0))
    total, error = total + rest, error + rest
    if total == 0.0:
        return BochnerNorm(0.0, 0.0, True, "the transform is zero but for single frequencies")
    log_norm = 0.5 * (shift + math.log(total)) - g.dim * math.log(2.0 * math.pi)
    if not math.isfinite(total) or log_norm > 709.0:
        return BochnerNorm(math.nan, math.nan, None, "the integral is beyond the range of doubles")
    value = math.exp(log_norm)
    return BochnerNorm(value, 0.5 * value * error / total, True, tail.reason)


class _Integrand:
    """|F|^2 and Lambda as functions of |w|, both signs or the whole sphere together."""

    def __init__(self, kernel: Kernel, transform: Callable[[Array], Any], dim: int) -> None:
        if dim > 1 and any(v != Distance() for v in kernel.program.variables):
            raise UnavailableError(
                f"{kernel!r} is no profile of |x - y|, so its norms in {dim} dimensions are no "
                "integrals over |w|"
            )
        self.transform, self.dim = transform, dim
        self.measure = kernel.spectral_measure(dim)
        self.log_sphere = math.log(2.0) + 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim)

    def parts(self, w: Array) -> tuple[Array, Array]:
        """log |F|^2, summed over the sphere |w|, and log Lambda there."""
        points = np.zeros((w.size, self.dim))
        points[:, 0] = w
        with np.errstate(all="ignore"):
            if self.dim == 1:
                log_power = np.logaddexp(self._log_power(w), self._log_power(-w))
            else:
                log_power = self.log_sphere + self._log_power(w)
            return log_power, np.log(self.measure.density(points))

    def log_mass(self, w: Array) -> Array:
        """Log of the integrand over log w: |F|^2 |w|^dim / Lambda."""
        log_power, log_density = self.parts(w)
        with np.errstate(invalid="ignore"):  # 0 / 0 where both vanish
            log = log_power - log_density + self.dim * np.log(w)
        return np.where(log_power > -np.inf, log, -np.inf)

    def __call__(self, w: Array, shift: float) -> Array:
        """The integrand over w, |F|^2 |w|^(dim - 1) / Lambda, over exp(shift)."""
        flat = w.ravel()
        with np.errstate(over="ignore"):
            values = np.exp(self.log_mass(flat) - shift) / flat
        return np.asarray(values.reshape(w.shape))

    def _log_power(self, w: Array) -> Array:
        values = np.asarray(self.transform(w))
        if values.shape != w.shape or values.dtype.kind not in "biufc":
            raise InputError(
                f"transform must return one value per frequency, shape {w.shape}, got "
                f"{values.shape}"
            )
        return np.asarray(2.0 * np.log(np.abs(values).astype(np.float64)))


# --- does the integral converge? The integrand is known at w = 2^t, as exp(log_mass) over log w ---


@dataclass(frozen=True)
class Tail:
    """`converges`, why, the scan from `first` to `last` to integrate, and what lies beyond."""

    converges: bool | None
    reason: str
    first: int = 0
    last: int = 0
    log_rest: float = -math.inf


def _convergence(t: Array, log_power: Array, log_density: Array, log_mass: Array) -> Tail:
    """Both ends of the frequencies, and holes of the density in between."""
    known = (log_density > _LEAST_DENSITY) & (log_density < np.inf) & (log_power < np.inf)
    alive = log_power > _LEAST_POWER
    if not known.any():
        return Tail(None, "the spectral density is below 1e-290 at all frequencies tried")
    first, last = (int(i) for i in np.flatnonzero(known)[[0, -1]])
    hole = np.flatnonzero(alive[first:last] & (log_density[first:last] == -np.inf))
    if hole.size:
        return _no_mass(float(2.0 ** t[first + hole[0]]))
    low = _end_by_octaves(log_mass[first : last + 1][::-1], "towards frequency zero")
    if not low.converges:
        return Tail(low.converges, low.reason)
    if last + 1 < t.size and alive[last + 1 :].any():
        high = _end_of_density(t, log_power, log_density, log_mass, last)
    elif last + 1 < t.size:
        high = Tail(True, "the transform has vanished where the spectral density does")
    else:
        high = _end_by_octaves(log_mass[first : last + 1], "at high frequencies")
    log_rest = float(np.logaddexp(low.log_rest, high.log_rest))
    return Tail(high.converges, high.reason, first, last, log_rest)


def _end_by_octaves(log_mass: Array, where: str) -> Tail:
    """Fit the logarithm of the integral over octaves on the last two runs."""
    octaves = min(2 * _WINDOW, log_mass.size // _STEPS)
    window = log_mass[log_mass.size - octaves * _STEPS :].reshape(octaves, _STEPS)
    log_octave = np.logaddexp.reduce(window, axis=1) + math.log(math.log(2.0) / _STEPS)
    if octaves < 4:
        return Tail(None, f"the integrand is known on fewer than four octaves {where}")
    if log_octave[-1] == -np.inf:
        return Tail(True, f"the transform vanishes {where}")
    runs = np.array_split(log_octave / math.log(2.0), 2)
    if not np.isfinite(log_octave).all():
        return Tail(None, f"the transform comes and goes {where}")
    slopes = [float(np.polyfit(np.arange(run.size), run, 1)[0]) for run in runs]
    shown = f"the integral over an octave goes like 2^({slopes[1]:.3g} octaves) {where}"
    if min(slopes) > -0.01:
        return Tail(False, f"{shown}, so it diverges")
    if max(slopes) > -0.1:
        return Tail(None, f"{shown}: too near the border to tell whether it converges")
    ratio = 2.0 ** max(slopes)
    rest = float(log_octave[-1]) + math.log(ratio / (1.0 - ratio))
    return Tail(True, f"{shown}, so it converges", log_rest=rest)


def _end_of_density(
    t: Array, log_power: Array, log_density: Array, log_mass: Array, last: int
) -> Tail:
    """The density is below 1e-290 beyond `last`, and the transform is not."""
    w = float(2.0 ** t[last])
    if log_density[last] > _ABRUPT:
        return _no_mass(w)
    slope = float(log_density[last] - log_density[last - 1]) * _STEPS / math.log(2.0)
    if slope > -_STEEP:
        return _end_by_octaves(log_mass[: last + 1], "at high frequencies")
    before, ratio = (_ratio(log_power, log_density, i) for i in (last - _STEPS, last))
    shown = f"log|F|^2 falls {ratio:.4g} times as fast as log(density) at frequency {w:.4g}"
    if ratio < 0.97 and ratio <= max(1.05 * before, 0.001):
        return Tail(False, f"{shown}, so the integral diverges")
    rises = float(log_power[last + 1 :].max() - log_power[last - _NEAR : last + 1].max())
    if ratio > 1.03 and 2.0 * ratio - before > 1.03 and rises < 1.0:
        rest = float(log_mass[last - _NEAR : last + 1].max())
        return Tail(True, f"{shown}, so the integral converges", log_rest=rest)
    return Tail(None, f"{shown}, and the density underflows beyond: undecided")


def _ratio(log_power: Array, log_density: Array, i: int) -> float:
    """Slope of log|F|^2 over that of log(density) in the octave before number i.

    On the envelope: where an oscillating F is largest in a short window.
    """
    ends = [j - _NEAR + int(np.argmax(log_power[j - _NEAR : j + 1])) for j in (i - _STEPS, i)]
    falls = [float(log[ends[1]] - log[ends[0]]) for log in (log_power, log_density)]
    return falls[0] / falls[1]


def _no_mass(w: float) -> Tail:
    return Tail(False, f"there is no spectral mass at frequency {w:.4g}, where the transform is")


# --- adaptive quadrature that asks for many points at once ---


def adaptive(f: Callable[[Array], Array], edges: Array, rtol: float) -> tuple[float, float]:
    """The integral of f >= 0 over [edges[0], edges[-1]], and an estimate of its error.

    Panels whose two Gauss rules differ by more than their share of `rtol` are halved, until the
    differences sum to at most `rtol` of the integral or the budget of panels is spent.
    """
    left, right = np.asarray(edges[:-1], float), np.asarray(edges[1:], float)
    values, errors = _panels(f, left, right)
    while True:
        total, error = float(values.sum()), float(errors.sum())
        split = (errors > rtol * total / len(errors)) & (right - left > 1e-13 * np.abs(right))
        done = error <= rtol * total or not split.any() or not np.isfinite(total)
        if done or len(errors) + np.count_nonzero(split) > _PANELS:
            return total, error
        middle = 0.5 * (left[split] + right[split])
        left, new_left = left[~split], np.concatenate([left[split], middle])
        right, new_right = right[~split], np.concatenate([middle, right[split]])
        parts = zip(
            (left, right, values[~split], errors[~split]),
            (new_left, new_right, *_panels(f, new_left, new_right)),
            strict=True,
        )
        left, right, values, errors = (np.concatenate(pair) for pair in parts)


def _panels(f: Callable[[Array], Array], left: Array, right: Array) -> tuple[Array, Array]:
    half, middle = 0.5 * (right - left), 0.5 * (right + left)
    rules = []
    for nodes, weights in (_FINE, _COARSE):
        values = f(middle[:, None] + half[:, None] * nodes)
        rules.append(half * (values @ weights))
    with np.errstate(invalid="ignore"):
        return rules[0], np.abs(rules[0] - rules[1])
