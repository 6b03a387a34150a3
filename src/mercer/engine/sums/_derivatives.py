"""Gradients and Hessians of kernel sums, put together from weighted moments of the points.

Each variable v of a program changes with the query y along D_v = alpha z + beta z_i + gamma, where
z and z_i are the mapped query and point:

    squared distance  2 (z - z_i)     inner product  z_i     |query|^2  2 z     gap  1

So derivatives need sums over the points of w c_i and w c_i c_i', where w are weights and c_i is the
point with a 1 in front, (1, z_i).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._tensors import as_double, eye_like, is_tensor, namespace
from mercer.engine._sizes import dense
from mercer.engine.programs._jets import is_zero, plus
from mercer.engine.programs._maps import pull_all, pull_both
from mercer.engine.programs._program import Distance, Dot, Gap, Norm, Program, Variable, maps_of

_OUTER_COLUMNS = 600  # up to this many products of coordinates are summed as one matrix product

_NEAR = 1e6  # squared distances in lengths of the kernel: no check of smooth kernels below
# Errors of gradients and Hessians that are too large, as shares of their natural sizes, over
# eps = 2e-16: 1e-6 and 1e-7, and 1e-8 and 1e-9 for kernels with cusps, which are steep near points.
_SMOOTH, _WITH_CUSPS = (5e9, 5e8), (5e7, 5e6)

Moments = dict[tuple[Any, ...], Array]
"""Sums over points by name: ("value",), ("cusp",), ("first", v) of the weights of variable v times
c_i, and ("second", v, w) of those of v and w times c_i c_i'."""


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


def with_one(v: Variable, Z: Any, dtype: Any) -> Any:
    """The coordinates c_i = (1, z_i) of points; (1,) if the variable does not move with them."""
    if is_tensor(Z):
        xp = namespace(Z)
        one = xp.ones((Z.shape[0], 1), dtype=dtype, device=Z.device)
        return xp.concat([one, Z], axis=1) if direction(v)[1] else one
    ones = np.ones((Z.shape[0], 1), dtype=dtype)
    if not direction(v)[1]:
        return ones
    if is_sparse(Z):
        from scipy.sparse import hstack

        return hstack([ones, Z], format="csr", dtype=dtype)
    return np.hstack([ones, Z.astype(dtype, copy=False)])


def add_moments(
    moments: Moments, program: Program, weights: Any, coordinates: list[Any], order: int
) -> None:
    """Add one tile to the moments.

    `weights` is a `Jet` of (rows, columns) arrays that already carry the coefficients;
    `coordinates[v]` are those of the tile's points as variable v measures them (`with_one`).
    """
    xp = namespace(weights.value)
    accumulate(moments, ("value",), xp.sum(weights.value, axis=1, dtype=xp.float64))
    count = len(program.variables) if order else 0
    for v in range(count):
        if not is_zero(weights.first[v]):
            accumulate(moments, ("first", v), as_double(weights.first[v] @ coordinates[v]))
        for w in range(v, count if order == 2 else v):
            if not is_zero(weights.second[v][w]):
                outer = _weighted_outer(weights.second[v][w], coordinates[v], coordinates[w])
                accumulate(moments, ("second", v, w), outer)


def gradient_of(program: Program, moments: Moments, queries: list[Array], dim: int) -> Array:
    """Sum_v sum_i w D_v in the original coordinates, shape (m, b, d), from moments (m, b, ...).

    `queries[v]` are the queries as variable v measures them, centred like the points.
    """
    total: Any = 0
    for v, kind in enumerate(program.variables):
        if ("first", v) in moments:
            alpha, beta, gamma = direction(kind)
            sums = moments[("first", v)]
            part = sums[..., :1] * (alpha * queries[v] + gamma)[:, None, :]
            if beta:
                part = part + beta * sums[..., 1:]
            total = plus(total, pull_all(maps_of(kind), part, dim))
    return _zeros(moments, dim) if is_zero(total) else total + 0.0  # no negative zeros


def hessian_of(program: Program, moments: Moments, queries: list[Array], dim: int) -> Array:
    """The second derivative: curvature of the variables, plus products of their directions."""
    total: Any = 0
    for v, kind in enumerate(program.variables):
        if ("first", v) in moments and direction(kind)[0]:
            identity = 2.0 * moments[("first", v)][..., :1, None] * eye_like(queries[v])
            total = plus(total, pull_both(maps_of(kind), maps_of(kind), identity, dim))
        for w in range(v, len(program.variables)):
            if ("second", v, w) in moments:
                other = program.variables[w]
                outer = _outer_of(moments[("second", v, w)], kind, other, queries[v], queries[w])
                part = pull_both(maps_of(kind), maps_of(other), outer, dim)
                both = part if w == v else part + namespace(part).matrix_transpose(part)
                total = plus(total, both)
    return _zeros(moments, dim, dim) if is_zero(total) else total + 0.0


def _zeros(moments: Moments, *shape: int) -> Array:
    """Zeros in a new array; those of a tensor keep its gradient history."""
    value = moments[("value",)]
    if not is_tensor(value):
        return np.zeros((*value.shape, *shape))
    xp = namespace(value)
    ones = xp.ones(shape, dtype=value.dtype, device=value.device)
    return (0.0 * value)[(..., *(None for _ in shape))] * ones  # type: ignore[no-any-return]


def _outer_of(sums: Array, v: Variable, w: Variable, z: Array, y: Array) -> Array:
    """sum_i W (alpha_v z + beta_v z_i + gamma_v)(alpha_w y + beta_w y_i + gamma_w)'."""
    (a, b, g), (c, e, h) = direction(v), direction(w)
    left, right = (a * z + g)[:, None, :], (c * y + h)[:, None, :]
    out = sums[..., :1, :1] * (left[..., :, None] * right[..., None, :])
    if e:
        out = out + e * left[..., :, None] * sums[..., :1, 1:]
    if b:
        out = out + b * sums[..., 1:, :1] * right[..., None, :]
    if b and e:
        out = out + b * e * sums[..., 1:, 1:]
    return out


def cancelling_rows(program: Program, moments: Moments, queries: list[Array]) -> Array:
    """The queries so far from the centre, in lengths of the kernel, that derivatives cancel.

    With z the centred query, a gradient is off by eps |z| sum w and a Hessian by eps |z|^2 sum w'',
    where w and w'' are the weights of the first and of the second derivative. A natural size of the
    gradient is the value over |z| at least, and of the Hessian sum w.
    """
    value, bad = np.abs(moments[("value",)]), None
    for v, kind in enumerate(program.variables if queries else ()):
        if not isinstance(kind, Distance) or ("first", v) not in moments:
            continue
        far2 = np.einsum("ij,ij->i", queries[v], queries[v])
        steepest = abs(program.derivatives_at_zero[v][0])
        if program.is_smooth and steepest * far2.max() < _NEAR * abs(program.value_at_zero):
            continue
        slope = np.abs(moments[("first", v)][..., 0])
        gradient, hessian = _SMOOTH if program.is_smooth else _WITH_CUSPS
        worse = far2[:, None] * slope > gradient * value
        if ("second", v, v) in moments:
            curvature = np.abs(moments[("second", v, v)][..., 0, 0])
            worse |= far2[:, None] * curvature > hessian * slope
        bad = worse if bad is None else bad | worse
    return np.flatnonzero(bad.any(axis=1)) if bad is not None else np.empty(0, dtype=int)


def accumulate(moments: Moments, key: tuple[Any, ...], part: Array) -> None:
    """Add an array to the moments under a key; the array may be kept."""
    if key in moments and is_tensor(part):  # keep its gradient history
        moments[key] = moments[key] + part
    elif key in moments:
        moments[key] += part
    else:
        moments[key] = part


def _weighted_outer(W: Array, Z: Any, V: Any) -> Array:
    """sum_i W[j, i] z_i v_i' for every query j, of coordinates of points."""
    p, q, xp = Z.shape[1], V.shape[1], namespace(Z)
    if is_tensor(Z) and p * q > _OUTER_COLUMNS:
        rows = (W[j, :][:, None] for j in range(W.shape[0]))
        outer: Array = as_double(xp.stack([(Z * w).T @ V for w in rows]))
        return outer
    if is_sparse(Z) or p * q > _OUTER_COLUMNS:
        scaled = (Z.multiply(w[:, None]).tocsr() if is_sparse(Z) else Z * w[:, None] for w in W)
        return np.stack([dense(z.T @ V) for z in scaled])
    products = xp.reshape(Z[:, :, None] * V[:, None, :], (Z.shape[0], p * q))
    return xp.reshape(as_double(W @ products), (W.shape[0], p, q))  # type: ignore[no-any-return]
