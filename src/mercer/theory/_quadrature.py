"""Adaptive quadrature that asks for many points at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer._array import Array

_FINE = np.polynomial.legendre.leggauss(21)
_COARSE = np.polynomial.legendre.leggauss(10)
_PANELS = 1 << 15


def adaptive(f: Callable[[Array], Array], edges: Array, rtol: float) -> tuple[float, float]:
    """The integral of f >= 0 over [edges[0], edges[-1]], and an estimate of its error.

    Panels whose two Gauss rules differ most are halved, many at a time, until the differences sum
    to at most `rtol` of the integral or the budget of panels is spent.
    """
    left, right = np.asarray(edges[:-1], float), np.asarray(edges[1:], float)
    values, errors = _panels(f, left, right)
    while True:
        total = float(values.sum())
        worst = np.argsort(-errors)
        rest = errors.sum() - np.cumsum(errors[worst])  # were the worst ones exact
        count = 1 + int(np.searchsorted(-rest, -0.5 * rtol * total))
        count = min(count, _PANELS - len(values), len(values))
        narrow = (right - left) <= 1e-13 * np.abs(right)
        chosen = worst[:count]
        chosen = chosen[~narrow[chosen]]
        if float(errors.sum()) <= rtol * total or chosen.size == 0 or not np.isfinite(total):
            return total, float(errors.sum())
        middle = 0.5 * (left[chosen] + right[chosen])
        new_left = np.concatenate([left[chosen], middle])
        new_right = np.concatenate([middle, right[chosen]])
        new_values, new_errors = _panels(f, new_left, new_right)
        left = np.concatenate([np.delete(left, chosen), new_left])
        right = np.concatenate([np.delete(right, chosen), new_right])
        values = np.concatenate([np.delete(values, chosen), new_values])
        errors = np.concatenate([np.delete(errors, chosen), new_errors])


def _panels(f: Callable[[Array], Array], left: Array, right: Array) -> tuple[Array, Array]:
    half, middle = 0.5 * (right - left), 0.5 * (right + left)
    rules = []
    for nodes, weights in (_FINE, _COARSE):
        values = f(middle[:, None] + half[:, None] * nodes)
        rules.append(half * (values @ weights))
    with np.errstate(invalid="ignore"):
        return rules[0], np.abs(rules[0] - rules[1])
