"""Check a kernel: its laws and its claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import is_sparse
from mercer._random import as_generator
from mercer.kernels import Flags, Kernel
from mercer.testing._claims import check_claims
from mercer.testing._lattice import DIMENSIONS, accepts, cloud, dimensions
from mercer.testing._parameters import check_parameters
from mercer.testing._report import require
from mercer.testing._spectrum import check_measures
from mercer.testing._values import (
    check_derivatives,
    check_float32,
    check_refusals,
    check_sparse,
    check_values,
)


def check_kernel(
    kernel: Kernel,
    points: Any = None,
    *,
    claims: Flags | None = None,
    dims: tuple[int, ...] = DIMENSIONS,
    random_state: Any = 0,
) -> None:
    """Check the laws of a kernel, and the claims in its `flags`.

    The checks are:

    - symmetry, k(X, Y) = k(Y, X)', which must be exact for k(X); the diagonal; values pair by pair;
    - gradients and mixed derivatives, against differences;
    - definiteness on lattices in each dimension at several scales (a kernel that claims to be
      INDEFINITE must show it on one of them);
    - convexity and complete monotonicity of the profile;
    - mixing and spectral measures, against draws and integrals;
    - float32 and sparse points, and errors for invalid points;
    - that the kernel is an immutable value, which can be rebuilt, copied, compared, printed and
      pickled.

    Parameters
    ----------
    kernel : Kernel
    points : optional
        At least four additional points, required if the domain is not R^d.
    claims : Flags, optional
        Claims to check instead of the kernel's own `flags`, for example for a `FromFunction`.
    dims : tuple of int, default=(1, 2, 3, 5)
        Dimensions to test; those that the kernel does not accept are left out.
    random_state : int, Generator, RandomState or None, default=0
        Draws points and frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.testing import check_kernel
    >>> check_kernel(mc.Gaussian(2.0) + 0.5 * mc.Linear())
    >>> product = mc.kernels.FromFunction(lambda X, Y: np.cos(X @ Y.T))
    >>> check_kernel(product, claims=mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE), dims=(1,))
    Traceback (most recent call last):
    ...
    AssertionError: FromFunction(...): claims to be positive definite, but the Gram matrix of 14
    points in 1 dimensions, step ... has the eigenvalue ... (at least ... is allowed)
    """
    rng = as_generator(random_state)
    claims = kernel.flags if claims is None else claims
    clouds = [cloud(kernel, d, rng) for d in dimensions(kernel, dims)]
    some = clouds or points is not None
    require(some, kernel, f"accepts no points in {dims} dimensions; pass `points`")
    check_parameters(kernel)
    for X in clouds:
        _check_vectors(kernel, X, np.concatenate([X[3:6], -0.7 * X[:2] + 0.1 * X[4:6]]))
    if points is not None:
        X = kernel.points(points, "points").array
        require(len(points) >= 4, kernel, "needs at least four `points`")
        check_values(kernel, X[:8], X[2:12])
        if kernel.domain.is_vector and not is_sparse(X):
            _check_vectors(kernel, np.asarray(X[:8]), np.asarray(X[2:6]))
    check_claims(kernel, claims, points, dims)
    check_measures(kernel, claims, dims, rng)


def _check_vectors(kernel: Kernel, X: Any, Y: Any) -> None:
    Y = Y if accepts(kernel, Y) else X[:4]
    check_values(kernel, X, Y)
    check_derivatives(kernel, X, Y)
    check_float32(kernel, X, Y)
    check_sparse(kernel, X, Y)
    check_refusals(kernel, X)
