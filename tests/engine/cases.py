"""Programs, points, coefficients and their double loops: what the tests of sums share."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import mercer as mc
from mercer.engine import Columns, Dense, LowRank, Matrix, Scales, SingleFeatures, Stacked
from tests import naive
from tests.naive import dot, exp, sqrt, squared_distance

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
TINY = 0.001  # MiB: tiles of 8 x 8

LENGTHS = {2: [0.7, 1.9], 5: [0.7, 1.9, 1.1, 2.3, 3.1]}
MATRIX = np.array([[0.9, -0.4, 0.3, 0.2, -0.6], [0.1, 0.8, -0.5, 0.7, 0.2]])


def gaussian(x, y, s=1.3):
    return exp(squared_distance(x, y) * (-0.5 / s**2))


def laplace(x, y, s=1.7):
    return exp(sqrt(squared_distance(x, y)) * (-1 / s))


def matern(x, y, s=1.5):
    z = sqrt(squared_distance(x, y)) * (math.sqrt(3) / s)
    return (1 + z) * exp(-z)


def multiquadric(x, y):
    return (1.5 + squared_distance(x, y)) ** -0.7


def polynomial(x, y):
    return (dot(x, y) * 0.5 + 1) ** 3


def window(x, y):
    u = squared_distance(x, y)
    inside = (u.f if isinstance(u, naive.Hyper) else u) <= 6.0
    return 6.0 - u if inside else 0.0


def cosine(x, y):
    return dot(x, y) / sqrt(dot(x, x) * dot(y, y))


def normalised(x, y):
    return (dot(x, y) + 1) ** 2 / ((dot(x, x) + 1) * (dot(y, y) + 1))


def scaled(k, d):
    return naive.mapped(k, np.diag(1 / np.array(LENGTHS[d])))


def columns(k, index, d):
    return naive.mapped(k, np.eye(d)[index])


def composite(d):
    """Three variables: two metrics and an inner product of some columns."""
    first, second = scaled(gaussian, d), naive.mapped(multiquadric, MATRIX[:, :d])
    third = columns(dot, [1, 0], d)
    return lambda x, y: first(x, y) * (1 + third(x, y)) + 0.5 * second(x, y)


def composite_kernel(d):
    second = mc.InverseMultiquadric(1.5, 0.7).transform(Matrix(MATRIX[:, :d]))
    third = mc.Linear().transform(Columns([1, 0]))
    return mc.Gaussian(1.3).transform(Scales(LENGTHS[d])) * (third + 1.0) + 0.5 * second


# name: kernel and double loop, each for d columns
PROGRAMS = {
    "gaussian": (lambda d: mc.Gaussian(1.3), lambda d: gaussian),
    "laplace": (lambda d: mc.Laplace(1.7), lambda d: laplace),
    "matern": (lambda d: mc.Matern(1.5, 1.5), lambda d: matern),
    "multiquadric": (lambda d: mc.InverseMultiquadric(1.5, 0.7), lambda d: multiquadric),
    "window": (lambda d: mc.Epanechnikov(6.0), lambda d: window),
    "polynomial": (lambda d: mc.Polynomial(3, 2.0), lambda d: polynomial),
    "linear": (lambda d: mc.Linear(), lambda d: dot),
    "constant": (lambda d: mc.kernels.Constant(2.5), lambda d: lambda x, y: 2.5 + 0.0 * y[0]),
    "scales": (
        lambda d: mc.Laplace(1.7).transform(Scales(LENGTHS[d])),
        lambda d: scaled(laplace, d),
    ),
    "columns": (
        lambda d: mc.Gaussian(1.3).transform(Columns([1])),
        lambda d: columns(gaussian, [1], d),
    ),
    "sum": (
        lambda d: 0.5 * mc.Gaussian(1.3) + mc.Laplace(1.7),
        lambda d: lambda x, y: 0.5 * gaussian(x, y) + laplace(x, y),
    ),
    "mixed": (
        lambda d: mc.Laplace(1.7) * mc.Polynomial(3, 2.0),
        lambda d: lambda x, y: laplace(x, y) * polynomial(x, y),
    ),
    "composite": (composite_kernel, composite),
    "normalised": (lambda d: mc.kernels.Normalised(mc.Polynomial(2)), lambda d: normalised),
    "cosine": (
        lambda d: mc.Gaussian(1.3) * mc.kernels.Normalised(mc.Linear()),
        lambda d: lambda x, y: gaussian(x, y) * cosine(x, y),
    ),
}  # fmt: skip
SMOOTH = set(PROGRAMS) - {"laplace", "matern", "scales", "sum", "mixed"}  # also at distance zero


@dataclass(frozen=True)
class Case:
    """Points that float32 holds exactly, and the terms of every sum over them."""

    kernel: mc.Kernel
    X: np.ndarray
    Y: np.ndarray
    terms: tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def case(name: str, d: int, n: int = 19, m: int = 11) -> Case:
    make, loops = PROGRAMS[name]
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    Y = rng.normal(size=(m, d)).astype(np.float32).astype(np.float64)
    X[3] = X[0]  # a duplicate
    if name in SMOOTH:
        Y[0] = X[0]  # a query at a point
    k = loops(d)
    terms = naive.values(k, X, Y), naive.gradients(k, X, Y), naive.hessians(k, X, Y)
    return Case(make(d), X, Y, terms)


def coefficients(form: str, n: int = 19, b: int = 11) -> tuple[Any, np.ndarray]:
    """A coefficient and the matrix it stands for, written out here."""
    rng = np.random.default_rng(8)
    A = rng.normal(size=(n, b))
    index, value = rng.integers(0, n, size=b), rng.normal(size=b)
    left, right = rng.normal(size=(n, 2)), rng.normal(size=(2, b))
    if form == "dense":
        return Dense(A), A
    if form == "selection":
        return SingleFeatures(index, value, n), np.eye(n)[:, index] * value
    if form == "low rank":
        return LowRank(left, right), left @ right
    cut, late = n // 3, n - n // 3
    coef = (
        Dense(A[:cut]),
        SingleFeatures(index % (late - cut), value, late - cut),
        LowRank(left[late:], right),
    )
    middle = np.eye(late - cut)[:, index % (late - cut)] * value
    return Stacked(coef), np.vstack([A[:cut], middle, left[late:] @ right])


FORMS = ["dense", "selection", "low rank", "stacked"]


@cache
def looped(name: str, d: int, form: str, paired: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Value, gradient and Hessian by double loops, each with the sum of absolute terms."""
    add = naive.paired_sums if paired else naive.sums
    A = coefficients(form)[1]
    return [(add(t, A), add(np.abs(t), np.abs(A))) for t in case(name, d).terms]


def assert_close(found, expected, size, tolerance):
    """Compare sums, to a tolerance relative to the sums of absolute terms.

    Single terms may be small by cancellation inside the profile, hence the floor.
    """
    assert found.shape == expected.shape
    axes = tuple(range(1, size.ndim))
    size = np.maximum(size.max(axis=axes, keepdims=True), 0.05 * size.max())
    error = np.abs(found - expected)
    assert np.all(error <= tolerance * size), (error / size).max()


def unshifted(field, shift):
    """The true values of a field."""
    return field * np.exp(shift).reshape(-1, *(1,) * (field.ndim - 1))


def numpy_gaussian(X, Y, A, s):
    """Value, gradient and Hessian of sum_i A_i k(x_i, y), and the size of the terms, in float64."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    gap = Y[:, None] - X[None]
    K = np.exp(-(gap**2).sum(axis=-1) / (2 * s**2))
    first = np.einsum("ji,ib,jip->jbp", K, A, -gap / s**2)
    second = np.einsum("ji,ib,jip,jiq->jbpq", K, A, gap / s**2, gap / s**2)
    second -= np.einsum("ji,ib->jb", K, A)[..., None, None] * np.eye(X.shape[1]) / s**2
    return K @ A, first, second, K @ np.abs(A)
