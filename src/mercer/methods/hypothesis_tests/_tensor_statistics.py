"""Sums over pairs of rows of tensors, for HSIC and the kernel Stein discrepancy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from mercer import engine
from mercer._tensors import as_double, check_alike, check_finite, namespace, recomputed
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.space import Element, mean_embedding

_TILE = 1024  # rows and columns of the kernel matrices that are held at once


def offsets(kernel: Kernel, x: Any, w: Any) -> Any:
    """g with k(x, y) - g(x) - g(y) the kernel of the features minus their weighted mean."""
    means = as_double(mean_embedding(kernel, x, weights=w)(x))
    return means - 0.5 * (as_double(w) @ means)


def tensor_pair_sums(kernels: Any, arrays: Any, shifts: Any, w: Any) -> list[Any]:
    """Sums over j != i of k_ij, l_ij and k_ij l_ij with the weights w_j, w_j^2 and w_j^3.

    k_ij and l_ij are kernel values less the shifts of both rows. Each is an array (n, 3). A tile is
    computed again in the backward pass.
    """
    xp, n = namespace(w), w.shape[0]
    arrays, w = [as_double(z) for z in arrays], as_double(w)
    powers = xp.stack([w, w**2, w**3], axis=1)
    blocks = list(pieces(n, _TILE))

    def tile(
        xr: Any, yr: Any, gr: Any, hr: Any, xc: Any, yc: Any, gc: Any, hc: Any, *p: Any
    ) -> Any:
        K, L = (
            engine.gram(kernel.program, one, other) - g[:, None] - h[None, :]
            for kernel, one, other, g, h in zip(
                kernels, (xr, yr), (xc, yc), (gr, hr), (gc, hc), strict=True
            )
        )
        if len(p) == 2:
            K, L = K * p[1], L * p[1]
        return [T @ p[0] for T in (K, L, K * L)]

    def given(rows: slice) -> list[Any]:
        return [z[rows, ...] for z in (*arrays, *shifts)]

    out: list[list[Any]] = [[], [], []]
    for rows in blocks:
        sums: Any = None
        for columns in blocks:
            weights = [powers[columns, :]]
            if rows == columns:  # without the diagonal
                size = rows.stop - rows.start
                weights.append(1.0 - xp.eye(size, dtype=xp.float64, device=w.device))
            part = recomputed(tile, *given(rows), *given(columns), *weights)
            sums = part if sums is None else [a + b for a, b in zip(sums, part, strict=True)]
        for total, one in zip(out, sums, strict=True):
            total.append(one)
    return [xp.concat(total, axis=0) for total in out]


def quadratic_form(tile: Callable[[slice, slice], Any], w: Any, *sources: Any) -> Any:
    """w'Hw of a matrix that is known by its tiles, each computed again in the backward pass.

    The tiles are computed from `sources`, which may have a history.
    """
    total: Any = 0.0
    for rows, columns in product(pieces(w.shape[0], _TILE), repeat=2):

        def part(v: Any, u: Any, *_: Any, rows: slice = rows, columns: slice = columns) -> Any:
            return v @ (tile(rows, columns) @ u)

        total = total + recomputed(part, w[rows], w[columns], *sources)
    return total


def tensor_scores(score: Any, X: Any) -> Any:
    """The scores of a model at a tensor of points: a function of tensors, or an element."""
    if isinstance(score, Element):
        if score.batch is not None:
            raise InputError("score must be a single element, got a batch")
        S = score.gradient(X) / score(X)[:, None]
    elif callable(score) and not hasattr(score, "logpdf"):
        S = score(X)
    else:
        raise InputError(
            "the score of a tensor must be a function of tensors, or an Element; a distribution of "
            "scipy.stats takes X.detach().cpu().numpy()"
        )
    check_alike(X, S, ("X", "the score"))
    if tuple(S.shape) != tuple(X.shape):
        raise InputError(
            f"score must return one gradient per row, shape {tuple(X.shape)}, got {tuple(S.shape)}"
        )
    check_finite(S, "the score")
    return S
