"""Pre-image objectives in 60 decimal digits: an oracle that shares no code with the library.

F(x) = k(x, x)/2 - sum_i a_i k(x_i, x) for profiles k(u), u = |x - y|^2, and f(t), t = <x, y>.
"""

from dataclasses import dataclass
from decimal import Decimal, getcontext

getcontext().prec = 60
getcontext().Emin, getcontext().Emax = -(10**9), 10**9


def exact(x):
    """A float, or nested lists of them, without rounding."""
    return [exact(v) for v in x] if hasattr(x, "__len__") else Decimal(float(x))


def _gaussian(s):
    c = 1 / (2 * s * s)

    def derivatives(u):
        k = (-c * u).exp()
        return k, -c * k, c * c * k

    return derivatives


def _rational_quadratic(alpha, s):
    c = 2 * alpha * s * s

    def derivatives(u):
        k = (-alpha * (1 + u / c).ln()).exp()
        first = -alpha * k / (c + u)
        return k, first, -(alpha + 1) * first / (c + u)

    return derivatives


def _inverse_multiquadric(c, p):
    def derivatives(u):
        k = (-p * (c + u).ln()).exp()
        first = -p * k / (c + u)
        return k, first, -(p + 1) * first / (c + u)

    return derivatives


def _matern(nu, s):
    unit = 2 * nu / (s * s)

    def derivatives(u):
        z = (unit * u).sqrt()
        e = (-z).exp()
        if nu == Decimal("1.5"):
            return (1 + z) * e, -unit * e / 2, unit**2 * e / (4 * z) if z else Decimal("Infinity")
        return (1 + z + z * z / 3) * e, -unit * (1 + z) * e / 6, unit**2 * e / 12

    return derivatives


def _laplace(s):
    def derivatives(u):
        r = u.sqrt()
        k = (-r / s).exp()
        return k, -k / (2 * r * s), k * (1 / (4 * u * s * s) + 1 / (4 * r**3 * s))

    return derivatives


def _epanechnikov(c):
    def derivatives(u):
        inside = u <= c
        zero = Decimal(0)
        return (c - u if inside else zero), Decimal(-1 if inside else 0), zero

    return derivatives


def _polynomial(degree, scale, offset):
    p = int(degree)

    def derivatives(t):
        x = t / scale + offset
        return (
            x**p,
            p * x ** (p - 1) / scale if p > 1 else p / scale,
            p * (p - 1) * (x ** (p - 2) if p > 2 else 1) / scale**2 if p > 1 else Decimal(0),
        )

    return derivatives


def _exponential(scale):
    def derivatives(t):
        k = (t / scale).exp()
        return k, k / scale, k / scale**2

    return derivatives


RADIAL = {
    "Gaussian": _gaussian,
    "RationalQuadratic": _rational_quadratic,
    "InverseMultiquadric": _inverse_multiquadric,
    "Matern": _matern,
    "Laplace": _laplace,
    "Epanechnikov": _epanechnikov,
}
DOT = {"Polynomial": _polynomial, "Exponential": _exponential}


@dataclass
class Objective:
    """F for one element; `terms` are (name, parameters, factor) of kernels that are added up."""

    terms: list
    points: list
    coef: list

    @classmethod
    def of(cls, terms, X, a):
        """From kernels as (name, parameters) or (name, parameters, factor), and floats."""
        full = [(*t, 1.0) if len(t) == 2 else t for t in terms]
        return cls([(n, exact(p), exact(f)) for n, p, f in full], exact(X), exact(a))

    def _summed(self, kind: dict, value) -> list:
        total = [Decimal(0)] * 3
        for name, parameters, factor in self.terms:
            if name in kind:
                found = kind[name](*parameters)(value)
                total = [t + factor * v for t, v in zip(total, found, strict=True)]
        return total

    def derivatives(self, x: list) -> tuple[list, list]:
        """Gradient and Hessian at x, exact to some 50 digits."""
        d = range(len(x))
        g, H = [Decimal(0) for _ in d], [[Decimal(0) for _ in d] for _ in d]
        _, first, second = self._summed(DOT, sum(c * c for c in x))
        for i in d:
            g[i] += first * x[i]
            for j in d:
                H[i][j] += (first if i == j else 0) + 2 * second * x[i] * x[j]
        radial = any(name in RADIAL for name, _, _ in self.terms)
        for p, a in zip(self.points, self.coef, strict=True):
            D = [b - c for b, c in zip(x, p, strict=True)]
            r1 = r2 = Decimal(0)
            if radial:
                _, r1, r2 = self._summed(RADIAL, sum(c * c for c in D))
            _, t1, t2 = self._summed(DOT, sum(b * c for b, c in zip(x, p, strict=True)))
            for i in d:
                g[i] -= a * (2 * r1 * D[i] + t1 * p[i])
                for j in d:
                    H[i][j] -= a * (
                        (2 * r1 if i == j else 0)
                        + (4 * r2 * D[i] * D[j] if D[i] and D[j] else 0)
                        + t2 * p[i] * p[j]
                    )
        return g, H

    def critical_point(self, x: list, steps: int = 60) -> list:
        """Newton's method from x until it stands still."""
        for _ in range(steps):
            step = solve(*reversed(self.derivatives(x)))
            x = [b - s for b, s in zip(x, step, strict=True)]
            if norm(step) <= Decimal("1e-45") * (norm(x) or 1):
                break
        return x


def norm(v: list) -> Decimal:
    return sum(c * c for c in v).sqrt()


def solve(A: list, b: list) -> list:
    """Gaussian elimination with pivots."""
    n = len(b)
    rows = [[*row, c] for row, c in zip(A, b, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [p - factor * q for p, q in zip(rows[k], rows[i], strict=True)]
    out = [Decimal(0)] * n
    for i in reversed(range(n)):
        rest = rows[i][n] - sum(rows[i][k] * out[k] for k in range(i + 1, n))
        out[i] = rest / rows[i][i]
    return out


def is_positive_definite(H: list) -> bool:
    """By the pivots of a Cholesky factorisation; False where one is zero."""
    A = [list(row) for row in H]
    n = len(A)
    for i in range(n):
        if A[i][i] <= 0:
            return False
        for k in range(i + 1, n):
            factor = A[k][i] / A[i][i]
            A[k] = [p - factor * q for p, q in zip(A[k], A[i], strict=True)]
    return True


def has_negative_eigenvalue(H: list) -> bool:
    """Whether H + e I is not positive definite for an e far below the digits that are kept."""
    size = max(abs(c) for row in H for c in row)
    e = size * Decimal("1e-45")
    shifted = [[c + (e if i == j else 0) for j, c in enumerate(row)] for i, row in enumerate(H)]
    return not is_positive_definite(shifted)
