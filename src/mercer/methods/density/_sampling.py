"""Random draws from a radial kernel as a density: a direction and a radius."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.kernels import Kernel
from mercer.kernels._measures import GammaMixing, InverseGammaMixing, PointMass
from mercer.methods.density._normaliser import RadialLaw, mixing_of, radial_parts

_PANELS = 4096  # inside each, the density is taken to be linear


def draw(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Array:
    """Return independent draws from k(x, 0) / Z, shape (size, dim)."""
    parts = radial_parts(kernel, dim)
    logs = np.array([part.log_integral for part in parts])
    share = np.exp(logs - logs.max())
    counts = rng.multinomial(size, share / share.sum())
    drawn = [np.empty((0, dim))]
    for part, count in zip(parts, counts.tolist(), strict=True):
        if count:
            z, R = _draw_radial(part.kernel, count, dim, rng), part.metric
            if R is not None:
                z = z / R if R.ndim == 1 else np.linalg.solve(R, z.T).T
            drawn.append(z)
    rows = np.concatenate(drawn)
    return rows if len(drawn) < 3 else np.asarray(rng.permutation(rows))


def _draw_radial(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Array:
    """A mixture of normal laws if the mixing measure is known, otherwise by the radius.

    x given t is normal with variance 1 / (2t), and t has density ~ t^(-d/2) dmu(t).
    """
    z = rng.standard_normal((size, dim))
    match mixing_of(kernel):
        case PointMass(t=t) if t > 0:
            return np.asarray(z * np.sqrt(0.5 / t))
        case GammaMixing(shape=p, rate=c):
            return np.asarray(z * np.sqrt(0.5 * c / rng.gamma(p - 0.5 * dim, 1.0, (size, 1))))
        case InverseGammaMixing(shape=a, scale=b):
            return np.asarray(z * np.sqrt(0.5 / b * rng.gamma(a + 0.5 * dim, 1.0, (size, 1))))
    radius = np.exp(0.5 * _Table(RadialLaw.of(kernel, dim, _PANELS)).draw(size, rng))
    return np.asarray(z * (radius / np.linalg.norm(z, axis=1))[:, None])


class _Table:
    """The distribution of t = log u: exact on panels, with a linear density inside each."""

    def __init__(self, law: RadialLaw) -> None:
        used = law.mass > 0
        self.low, self.high = law.low[used], law.high[used]
        self.left, self.right = law.density(self.low), law.density(self.high)
        below = np.cumsum(law.mass[used])
        self.below = below / below[-1]

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draws of t."""
        panel = np.searchsorted(self.below, rng.random(size), side="right")
        p, q, r = self.left[panel], self.right[panel], rng.random(size)
        # the root s of (p s + (q - p) s^2 / 2) = r (p + q) / 2, written without cancellation
        bottom = p + np.sqrt(p * p + r * (q * q - p * p))
        s = np.divide(r * (p + q), bottom, out=r.copy(), where=bottom > 0)
        return np.asarray(self.low[panel] + s * (self.high - self.low)[panel])
