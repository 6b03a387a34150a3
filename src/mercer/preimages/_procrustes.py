"""Procrustes alignment: the rotation and shift that bring one set of points onto another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_points, is_sparse
from mercer.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Alignment:
    """x -> scale x R + shift, for points as rows; see `procrustes`.

    `residual` is the root of the sum of squared distances that is left.

    Examples
    --------
    >>> import mercer as mc
    >>> A, B = [[0.0, 0.0], [1.0, 0.0]], [[2.0, 1.0], [4.0, 1.0]]
    >>> fit = mc.preimages.procrustes(A, B, scale=True)
    >>> fit.apply([[0.5, 0.0]]).round(12)
    array([[3., 1.]])
    """

    rotation: Array
    shift: Array
    scale: float
    residual: float

    def apply(self, X: Any) -> Array:
        """Move the rows of X."""
        X = _dense(X, "X")
        if X.shape[1] != self.shift.size:
            raise InputError(f"X has {X.shape[1]} features, the alignment {self.shift.size}")
        return np.asarray(self.scale * (X @ self.rotation) + self.shift)


def procrustes(A: Any, B: Any, *, scale: bool = False) -> Alignment:
    """Return the R, c and t that minimise sum_i |c a_i R + t - b_i|^2.

    R is a rotation or a reflection: with centred points and A'B = U S V', R = U V' and
    c = tr(S) / |A|^2. What is known by distances alone, such as an embedding, is determined up to
    such a motion.

    Parameters
    ----------
    A, B : array_like of shape (n, d)
        Row i of A goes to row i of B.
    scale : bool, default=False
        Whether to scale too; otherwise c = 1.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> import mercer as mc
    >>> A = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    >>> B = [[5.0, 5.0], [5.0, 6.0], [3.0, 5.0]]
    >>> fit = mc.preimages.procrustes(A, B)
    >>> fit.apply(A).round(12), round(fit.residual, 12)
    (array([[5., 5.],
           [5., 6.],
           [3., 5.]]), 0.0)
    """
    from scipy.linalg import orthogonal_procrustes

    A, B = _dense(A, "A"), _dense(B, "B")
    if A.shape != B.shape:
        raise InputError(f"A and B must have the same shape, got {A.shape} and {B.shape}")
    a, b = A.mean(axis=0), B.mean(axis=0)
    R, total = orthogonal_procrustes(A - a, B - b)
    size = float(np.sum((A - a) ** 2))
    c = float(total) / size if scale and size > 0 else 1.0
    left = c * ((A - a) @ R) - (B - b)
    return Alignment(R, b - c * (a @ R), c, float(np.linalg.norm(left)))


def _dense(X: Any, name: str) -> Array:
    X = as_points(X, name)
    if is_sparse(X):
        raise InputError(f"{name} must be dense; use {name}.toarray()")
    return np.asarray(X, dtype=np.float64)
