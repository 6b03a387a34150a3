"""Profiles with closed-form derivatives, and profiles with a logarithm."""

import numpy as np

from mercer.engine import Const, Var
from mercer.engine.programs._expr import Cut, Matern

U = Var(0, nonnegative=True)
T = Var(0)
V = Var(1, nonnegative=True)

GRID = np.array([0.05, 0.3, 0.7, 1.3, 2.0, 5.0])


def written_out(entry, like=GRID):
    """An entry of a jet as an array; structural zeros and numbers filled in."""
    return np.broadcast_to(np.asarray(entry, dtype=float), np.shape(like))


# profile, its value, first and second derivative in closed form
CLOSED_FORMS = {
    "gaussian": (
        lambda u: np.exp(-0.5 * u),
        lambda u: np.exp(-0.5 * u),
        lambda u: -0.5 * np.exp(-0.5 * u),
        lambda u: 0.25 * np.exp(-0.5 * u),
    ),
    "laplace": (
        lambda u: np.exp(-np.sqrt(u) / 2),
        lambda u: np.exp(-np.sqrt(u) / 2),
        lambda u: -np.exp(-np.sqrt(u) / 2) / (4 * np.sqrt(u)),
        lambda u: np.exp(-np.sqrt(u) / 2) * (1 / (16 * u) + 1 / (8 * u**1.5)),
    ),
    "inverse multiquadric": (
        lambda u: (2.0 + u) ** -0.75,
        lambda u: (2.0 + u) ** -0.75,
        lambda u: -0.75 * (2.0 + u) ** -1.75,
        lambda u: 0.75 * 1.75 * (2.0 + u) ** -2.75,
    ),
    "polynomial": (
        lambda u: (u / 3.0 + 1.0) ** 5,
        lambda u: (u / 3.0 + 1.0) ** 5,
        lambda u: (5 / 3.0) * (u / 3.0 + 1.0) ** 4,
        lambda u: (20 / 9.0) * (u / 3.0 + 1.0) ** 3,
    ),
    "quotient": (
        lambda u: (1 - u) / (1 + u),
        lambda u: (1 - u) / (1 + u),
        lambda u: -2 / (1 + u) ** 2,
        lambda u: 4 / (1 + u) ** 3,
    ),
    "logarithm": (
        lambda u: -np.log(1 + 2 * u),
        lambda u: -np.log(1 + 2 * u),
        lambda u: -2 / (1 + 2 * u),
        lambda u: 4 / (1 + 2 * u) ** 2,
    ),
    "matern 3/2": (
        lambda u: Matern(3 * u, 1.5),
        lambda u: (1 + np.sqrt(3 * u)) * np.exp(-np.sqrt(3 * u)),
        lambda u: -1.5 * np.exp(-np.sqrt(3 * u)),
        lambda u: 2.25 * np.exp(-np.sqrt(3 * u)) / np.sqrt(3 * u),
    ),
    "matern 5/2": (
        lambda u: Matern(5 * u, 2.5),
        lambda u: (1 + np.sqrt(5 * u) + 5 * u / 3) * np.exp(-np.sqrt(5 * u)),
        lambda u: -5 / 6 * (1 + np.sqrt(5 * u)) * np.exp(-np.sqrt(5 * u)),
        lambda u: 25 / 12 * np.exp(-np.sqrt(5 * u)),
    ),
}  # fmt: skip

POSITIVE = {
    "gaussian": np.exp(-0.5 * U),
    "scaled": 3.0 * np.exp(-0.5 * U),
    "laplace": np.exp(-np.sqrt(U) / 2.0),
    "matern 3/2": Matern(3.0 * U, 1.5),
    "matern 5/2": Matern(5.0 * U, 2.5),
    "multiquadric": (1.5 + U) ** -0.5,
    "rational": 1.0 / (1.0 + U / 2.0) ** 2,
    "constant": Const(2.5),
    "sum": np.exp(-0.5 * U) + 0.5 * np.exp(-0.05 * U),
    "sum with a constant": 0.25 + np.exp(-U),
    "product": np.exp(-0.5 * U) * (1 + U) ** -1,
    "product of sums": (np.exp(-U) + Matern(U, 1.5)) * (2.0 + np.exp(-3.0 * U)),
    "power of a sum": (np.exp(-U) + 1.0) ** 2.5,
    "cut": Cut(10.0 - U, np.exp(-U)),
}
