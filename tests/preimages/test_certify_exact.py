"""Certificates against 60 decimal digits: no verdict, eigenvalue or radius is false."""

from decimal import Decimal

import numpy as np
import pytest

import mercer as mc
from mercer.preimages import certify
from tests import decimals

KERNELS = {
    name: getattr(mc, name)
    for name in (
        "Gaussian",
        "RationalQuadratic",
        "InverseMultiquadric",
        "Matern",
        "Laplace",
        "Epanechnikov",
        "Exponential",
    )
}
KERNELS["Polynomial"] = lambda degree, *rest: mc.Polynomial(int(degree), *rest)


def built(terms):
    """The sum of kernels given as (name, parameters, factor)."""
    parts = [factor * KERNELS[name](*parameters) for name, parameters, factor in terms]
    return sum(parts[1:], parts[0])


def falsehood(terms, X, a, x, certificate, j=0):
    """What is false about row j of a certificate, or nothing."""
    verdict, F, y = (
        certificate.verdict[j].name,
        decimals.Objective.of(terms, X, a),
        decimals.exact(x),
    )
    if verdict == "UNDECIDED" or (any(t[0] == "Laplace" for t in terms) and y in F.points):
        return ""
    _, H = F.derivatives(y)
    if verdict == "NOT_A_MINIMUM":
        return "" if decimals.has_negative_eigenvalue(H) else "it may be a minimum"
    least = Decimal(float(certificate.min_eigenvalue[j]))
    shifted = [[c - (least if i == k else 0) for k, c in enumerate(row)] for i, row in enumerate(H)]
    if not decimals.is_positive_definite(shifted):
        return "min_eigenvalue is too large"
    if verdict == "PROVED_MINIMUM":
        z = F.critical_point(y)
        if not decimals.is_positive_definite(F.derivatives(z)[1]):
            return "no minimum is near"
        off = decimals.norm([p - q for p, q in zip(z, y, strict=True)])
        if off > Decimal(float(certificate.radius[j])):
            return f"radius {certificate.radius[j]} but the minimum is {off:.3e} away"
    return ""


# --- cases --------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("degree", [3, 5, 7])
@pytest.mark.parametrize("scale", [0.5, 1.0, 37.0])
@pytest.mark.parametrize("start", [-0.5, -1e-30, -1e-94, -1e-160])
def test_an_inflection_at_the_origin_is_no_minimum(degree, scale, start):
    """From below, the objective of a homogeneous kernel of odd degree is flat at 0 and falls on."""
    terms = [("Polynomial", [float(degree), scale, 0.0], 1.0)]
    psi = mc.Element(built(terms), [[1.0]], [1.0])
    with np.errstate(all="ignore"):
        back = mc.preimage(psi, start=[[start]])
    assert not falsehood(terms, [[1.0]], [1.0], back.points[0], back.certificate)
    assert not falsehood(terms, [[1.0]], [1.0], [start], certify(psi, [[start]]))
    assert certify(psi, [[start]]).verdict[0].name != "PROVED_MINIMUM"


@pytest.mark.parametrize("alpha", [1.0, 3e4, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("d", [1, 3])
def test_a_rational_quadratic_of_large_alpha(alpha, d):
    rng = np.random.default_rng(3)
    X, a = rng.normal(size=(5, d)), rng.uniform(0.2, 1.0, 5)
    terms = [("RationalQuadratic", [alpha, 1.4], 1.0)]
    psi = mc.Element(built(terms), X, a)
    back = mc.preimage(psi)
    assert not falsehood(terms, X, a, back.points[0], back.certificate)
    for x in rng.normal(size=(6, d)):
        assert not falsehood(terms, X, a, x, certify(psi, x[None]))


@pytest.mark.parametrize("degree", [100, 10**5, 10**7])
def test_a_polynomial_of_high_degree(degree):
    rng = np.random.default_rng(4)
    X, a = rng.normal(size=(4, 2)), rng.normal(size=4)
    terms = [("Polynomial", [float(degree), float(2 * degree), 1.0], 1.0)]
    psi = mc.Element(built(terms), X, a)
    back = mc.preimage(psi)
    assert not falsehood(terms, X, a, back.points[0], back.certificate)


def test_most_minima_are_proved(rng):
    """Bounds that are too large would prove nothing."""
    proved = 0
    for _ in range(6):
        X, a = rng.normal(size=(4, 2)), rng.uniform(0.2, 1.0, 4)
        for kernel in (mc.Gaussian(1.0), mc.RationalQuadratic(1e4), mc.Polynomial(3)):
            found = mc.preimage(mc.Element(kernel, X, a)).certificate
            proved += found.verdict[0].name == "PROVED_MINIMUM" and found.radius[0] < 1e-5
    assert proved >= 16


# --- an attack ----------------------------------------------------------------------------------


def random_terms(rng, length):
    """A sum of one to three kernels with lengths of the given order, tiny and huge parameters."""

    def one():
        name = rng.choice(list(KERNELS))
        scale = length * rng.uniform(0.3, 3.0)
        degree = float(rng.choice([1, 2, 3, 4, 5, 7, 100, 100_000]))
        parameters = {
            "Gaussian": [scale],
            "RationalQuadratic": [10 ** rng.uniform(-1, 9), scale],
            "InverseMultiquadric": [scale**2, rng.choice([0.2, 0.5, 1.0, 3.0])],
            "Matern": [rng.choice([1.5, 2.5]), scale],
            "Laplace": [scale],
            "Epanechnikov": [scale**2],
            "Polynomial": [degree, degree * scale, rng.choice([0.0, 0.5, 1.0])],
            "Exponential": [scale],
        }[str(name)]
        factor = rng.choice([1.0, 1.0, 10 ** rng.uniform(-6, 2)])
        return str(name), [float(p) for p in parameters], float(factor)

    return [one() for _ in range(rng.choice([1, 1, 2, 3]))]


def random_problem(seed):
    """Kernels, points and coefficients of mixed scales, far from the origin at times."""
    rng = np.random.default_rng(seed)
    length = 10 ** rng.uniform(-1, 1)
    terms = random_terms(rng, length)
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    X, a = length * rng.normal(size=(n, d)), rng.normal(size=n) + 0.3
    dots = any(name in ("Polynomial", "Exponential") for name, _, _ in terms)
    if rng.random() < 0.3:
        X = X * 10 ** rng.uniform(-3, 0) if dots else X + length * 10 ** rng.uniform(0, 6)
    if rng.random() < 0.2:
        a = a * 10 ** rng.uniform(-8, 8, n)
    return rng, terms, X, a


@pytest.mark.parametrize("seed", range(40))
def test_no_certificate_is_false(seed):
    rng, terms, X, a = random_problem(seed)
    psi = mc.Element(built(terms), X, a)
    points = X[:1] + rng.normal(size=X[:1].shape) * 10 ** rng.uniform(-3, 0)
    with np.errstate(all="ignore"):
        back = mc.preimage(psi)
    for x, found in ((back.points[0], back.certificate), (points[0], certify(psi, points))):
        assert not falsehood(terms, X, a, x, found), (terms, X, a, x)
