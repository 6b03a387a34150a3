"""Gradients and Hessians of kernel sums, put together from weighted moments of the points.

Each variable v of a program changes with the query y along D_v = alpha z + beta z_i + gamma, where
z and z_i are the mapped query and point:

    squared distance  2 (z - z_i)     inner product  z_i     |query|^2  2 z     gap  1

So derivatives need three sums over the points, with weights w: sum w, sum w z_i and sum w z_i z_i'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine._sizes import dense
from mercer.engine.programs._jets import is_zero
from mercer.engine.programs._maps import pull_all, pull_both
from mercer.engine.programs._program import Distance, Dot, Gap, Norm, Program, Variable, maps_of

_OUTER_COLUMNS = 600  # up to this many products of coordinates are summed as one matrix product

Moments = dict[tuple[Any, ...], Array]
"""Sums over points by name: ("value",), ("cusp",), and of the weights of variable v (and w)
("sum", v), ("first", v), ("sum", v, w), ("left", v, w), ("right", v, w), ("second", v, w)."""


def direction(v: Variable) -> tuple[float, float, float]:
    """(alpha, beta, gamma) of D_v = alpha z + beta z_i + gamma."""
    match v:
        case Distance():
            return 2.0, -2.0, 0.0
        case Dot():
            return 0.0, 1.0, 0.0
        case Norm(of="row"):
            return 2.0, 0.0, 0.0
        case Gap():
            return 0.0, 0.0, 1.0
    return 0.0, 0.0, 0.0


def add_moments(
    moments: Moments, program: Program, weights: Any, coordinates: list[Any], order: int
) -> None:
    """Add one tile to the moments.

    `weights` is a `Jet` of (rows, columns) arrays that already carry the coefficients;
    `coordinates[v]` holds the centred points of the tile where variable v measures them.
    """
    accumulate(moments, ("value",), weights.value.sum(axis=1, dtype=np.float64))
    for v, kind in enumerate(program.variables if order >= 1 else ()):
        W = weights.first[v]
        if is_zero(W):
            continue
        accumulate(moments, ("sum", v), W.sum(axis=1, dtype=np.float64))
        if direction(kind)[1]:
            accumulate(moments, ("first", v), _weighted_sum(W, coordinates[v]))
    if order == 2:
        _add_second(moments, program, weights.second, coordinates)


def _add_second(moments: Moments, program: Program, second: Any, coordinates: list[Any]) -> None:
    kinds = program.variables
    for v in range(len(kinds)):
        for w in range(v, len(kinds)):
            W = second[v][w]
            if is_zero(W):
                continue
            moves_v, moves_w = direction(kinds[v])[1], direction(kinds[w])[1]
            accumulate(moments, ("sum", v, w), W.sum(axis=1, dtype=np.float64))
            if moves_v:
                accumulate(moments, ("left", v, w), _weighted_sum(W, coordinates[v]))
            if moves_w and w != v:
                accumulate(moments, ("right", v, w), _weighted_sum(W, coordinates[w]))
            if moves_v and moves_w:
                outer = _weighted_outer(W, coordinates[v], coordinates[w])
                accumulate(moments, ("second", v, w), outer)


def gradient_of(program: Program, moments: Moments, queries: list[Array], dim: int) -> Array:
    """Sum_v sum_i w D_v in the original coordinates, shape (m, b, d), of moments (m, b, ...).

    `queries[v]` are the queries where variable v measures them, centred like the points.
    """
    total = np.zeros((*moments[("value",)].shape, dim))
    for v, kind in enumerate(program.variables):
        if ("sum", v) not in moments:
            continue
        alpha, beta, gamma = direction(kind)
        part = moments[("sum", v)][:, :, None] * (alpha * queries[v] + gamma)[:, None]
        if beta:
            part += beta * moments[("first", v)]
        total += pull_all(maps_of(kind), part, dim)
    return total


def hessian_of(program: Program, moments: Moments, queries: list[Array], dim: int) -> Array:
    """The second derivative: curvature of the variables, plus products of their directions."""
    total = np.zeros((*moments[("value",)].shape, dim, dim))
    for v, kind in enumerate(program.variables):
        if ("sum", v) in moments and direction(kind)[0]:
            identity = 2.0 * moments[("sum", v)][..., None, None] * np.eye(queries[v].shape[1])
            total += pull_both(maps_of(kind), maps_of(kind), identity, dim)
        for w in range(v, len(program.variables)):
            if ("sum", v, w) in moments:
                other = program.variables[w]
                outer = _outer_of(moments, v, w, kind, other, queries)
                part = pull_both(maps_of(kind), maps_of(other), outer, dim)
                total += part if w == v else part + np.swapaxes(part, -1, -2)
    return total


def _outer_of(
    moments: Moments, v: int, w: int, kind: Variable, other: Variable, queries: list[Array]
) -> Array:
    """sum_i W (alpha_v z + beta_v z_i + gamma_v)(alpha_w z + beta_w z_i + gamma_w)'."""
    (a, b, g), (c, e, h) = direction(kind), direction(other)
    z, y = (a * queries[v] + g)[:, None], (c * queries[w] + h)[:, None]
    out = moments[("sum", v, w)][..., None, None] * _outer(z, y)
    left = moments.get(("left", v, w))
    right = left if w == v else moments.get(("right", v, w))
    if (a or g) and e and right is not None:
        out += e * _outer(z, right)
    if b and (c or h) and left is not None:
        out += b * _outer(left, y)
    if b and e:
        out += b * e * moments[("second", v, w)]
    return np.asarray(out)


def _outer(a: Array, b: Array) -> Array:
    return a[..., :, None] * b[..., None, :]


def accumulate(moments: Moments, key: tuple[Any, ...], part: Array) -> None:
    """Add an array to the moments under a key, which may keep it."""
    if key in moments:
        moments[key] += part
    else:
        moments[key] = part


def _weighted_sum(W: Array, Z: Any) -> Array:
    return np.asarray(W @ Z, dtype=np.float64)


def _weighted_outer(W: Array, Z: Any, V: Any) -> Array:
    """sum_i W[j, i] z_i v_i' for every query j."""
    p, q = Z.shape[1], V.shape[1]
    if is_sparse(Z) or p * q > _OUTER_COLUMNS:
        scaled = (Z.multiply(w[:, None]).tocsr() if is_sparse(Z) else Z * w[:, None] for w in W)
        return np.stack([dense(z.T @ V) for z in scaled])
    products = (Z[:, :, None] * V[:, None, :]).reshape(Z.shape[0], p * q)
    return np.asarray(W @ products, dtype=np.float64).reshape(W.shape[0], p, q)
