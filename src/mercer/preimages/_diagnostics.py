"""The objective of a pre-image at any points: gradient, Hessian, and quadratic surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_vector, instance
from mercer._config import options
from mercer.engine import dense
from mercer.exceptions import DerivativeError, InputError
from mercer.preimages._driver import State
from mercer.preimages._objective import ElementSums, Nearest
from mercer.space import Element

_ROUNDING = 1e-12  # of the sum of the sizes of all terms


def preimage_objective(psi: Element, X: Any) -> Array:
    """Return k(x, x)/2 - psi(x) at the rows of X: what a pre-image minimises.

    It is half the squared distance |k(x, .) - psi|^2 in feature space, less |psi|^2 / 2. Honeine
    (2024, see `preimage`), equations (4), (12) and (B.4).

    Parameters
    ----------
    psi : Element
        One element.
    X : array_like of shape (m, d)
        Where to evaluate.

    Returns
    -------
    ndarray of shape (m,)
        NaN where k(x, x) and psi(x) both overflow.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, 1.0])
    >>> mc.preimages.preimage_objective(psi, [[0.0], [1.0], [2.0]]).round(4)
    array([-0.6353, -0.7131, -0.6353])
    >>> distances = mc.feature(psi.kernel, [[0.0], [1.0], [2.0]]).distance(psi)
    >>> (distances**2 / 2 - psi.norm() ** 2 / 2).round(4)
    array([-0.6353, -0.7131, -0.6353])
    """
    X = _queries(psi, X)
    own = engine.diagonal(psi.kernel.program, X)
    with np.errstate(invalid="ignore"):
        return np.asarray(0.5 * own - psi(X))


def preimage_gradient(psi: Element, X: Any) -> Array:
    """Return the gradient of k(x, x)/2 - psi(x) at the rows of X.

    2 sum a_i k'(u_i) (x_i - x) for a radial kernel, f'(|x|^2) x - sum a_i f'(<x, x_i>) x_i for an
    inner-product kernel. At a cusp the term of that point is left out. Honeine (2024, see
    `preimage`), equations (13) and (B.4); its example for the Gaussian has 2/s^2 in place of 1/s^2.

    Parameters
    ----------
    psi : Element
        One element.
    X : array_like of shape (m, d)
        Where to evaluate.

    Returns
    -------
    ndarray of shape (m, d)

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(2.0), [[0.0]], [1.0])
    >>> mc.preimages.preimage_gradient(psi, [[2.0]]).round(4)
    array([[0.3033]])
    """
    state = _state(psi, X, 1)
    return np.asarray(state.gradient * np.exp(state.shift)[:, None])


def preimage_hessian(psi: Element, X: Any) -> Array:
    """Return the Hessian of k(x, x)/2 - psi(x) at the rows of X.

    -2 sum a_i (k'(u_i) I + 2 k''(u_i) (x_i - x)(x_i - x)') for a radial kernel,
    f' I + 2 f'' x x' - sum a_i f''_i x_i x_i' for an inner-product kernel. NaN at a cusp. Honeine
    (2024, see `preimage`), equations (19) and (B.6).

    Parameters
    ----------
    psi : Element
        One element.
    X : array_like of shape (m, d)
        Where to evaluate.

    Returns
    -------
    ndarray of shape (m, d, d)

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(2.0), [[0.0, 0.0]], [1.0])
    >>> mc.preimages.preimage_hessian(psi, [[0.0, 0.0]])
    array([[[0.25, 0.  ],
            [0.  , 0.25]]])
    """
    state = _state(psi, X, 2)
    hessian = state.hessian * np.exp(state.shift)[:, None, None]
    if state.cusp is not None:
        hessian[state.cusp != 0] = np.nan
    return np.asarray(hessian + 0.0)  # no negative zeros


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Result of `surrogate`: q(x) = value + <gradient, x - at> + curvature |x - at|^2 / 2.

    Attributes
    ----------
    at : ndarray of shape (d,)
        Where it touches the objective.
    value : float
        q(at).
    gradient : ndarray of shape (d,)
        The gradient of q at `at`.
    curvature : float
        The Hessian of q is this times the identity.
    minimiser : ndarray of shape (d,)
        The stationary point of q: the fixed-point step, correct even where value and derivatives
        underflow. NaN where q is constant.
    is_minimum : bool
        Whether q has a minimum there; else it is a maximum, or q is constant.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, 1.0])
    >>> q = mc.preimages.surrogate(psi, [0.5])
    >>> q([[0.5]]).round(4), mc.preimages.preimage_objective(psi, [[0.5]]).round(4)
    (array([-0.7071]), array([-0.7071]))
    """

    at: Array
    value: float
    gradient: Array
    curvature: float
    minimiser: Array
    is_minimum: bool

    def __call__(self, X: Any) -> Array:
        """Return q at the rows of X, shape (m,)."""
        step = np.atleast_2d(np.asarray(X, dtype=float)) - self.at
        bent = 0.5 * self.curvature * np.sum(step * step, axis=1)
        return np.asarray(self.value + step @ self.gradient + bent)


def surrogate(psi: Element, at: Any) -> Surrogate:
    """Return the quadratic that the fixed point minimises instead of k(x, x)/2 - psi(x).

    For a radial kernel, with u_i = |at - x_i|^2, each k is replaced by its tangent in u:

        q(x) = k(0)/2 - sum a_i (k(u_i) + k'(u_i) (|x - x_i|^2 - u_i)),

    with the Hessian -2 sum a_i k'(u_i) I. For a kernel f(<x, y>), f is replaced by its tangent
    likewise, with the Hessian f'(|at|^2) I. Its stationary point is the fixed-point step. It lies
    above the objective for a_i >= 0 and convex radial profiles only (see `is_majorised`). Honeine
    (2024, see `preimage`), Theorems 17 and 26, whose constant lacks f'(|x_t|^2) |x_t|^2 / 2.

    Parameters
    ----------
    psi : Element
        One element of a kernel of one distance or inner product, without a map.
    at : array_like of shape (d,)
        The point where it touches.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, 1.0])
    >>> q = mc.preimages.surrogate(psi, [0.5])
    >>> q.is_minimum, q.minimiser.round(4)
    (True, array([0.5379]))
    """
    at = as_vector(at, "at").astype(float)
    program = instance(psi, Element, "psi").kernel.program
    if program.kind not in ("radial", "dot") or program.maps:
        raise DerivativeError(
            f"the surrogate needs a profile of one distance or inner product, without a map, and "
            f"{psi.kernel!r} has none; transform the points instead"
        )
    state = _state(psi, at[None, :], 1)
    gradient, curvature = np.asarray(state.gradient[0]), float(state.stiffness[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        minimiser = at - gradient / np.float64(curvature)
    scale = float(np.exp(state.shift[0]))
    return Surrogate(
        at,
        float(preimage_objective(psi, at[None, :])[0]),
        gradient * scale,
        curvature * scale,
        np.where(np.isfinite(minimiser), minimiser, np.nan),
        curvature > 0,
    )


def is_majorised(psi: Element, at: Any, X: Any) -> Array:
    """Check whether the surrogate at one point lies above the objective at others.

    It does everywhere if a_i >= 0 and the profile of a radial kernel is convex, which is why the
    fixed point then descends (majorise, minimise). It need not for negative a_i, for Epanechnikov
    with c > rho, or for kernels of the inner product. Honeine (2024, see `preimage`), Theorem 18,
    which needs a convex profile; Theorem 27, for inner products, does not hold.

    Parameters
    ----------
    psi : Element
        One element, as for `surrogate`.
    at : array_like of shape (d,)
        The point where the surrogate touches.
    X : array_like of shape (m, d)
        The other points.

    Returns
    -------
    bool array of shape (m,)

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, 1.0])
    >>> mc.preimages.is_majorised(psi, [0.5], [[0.0], [1.0], [9.0]])
    array([ True,  True,  True])
    >>> mc.preimages.is_majorised(-psi, [0.5], [[0.0], [1.0], [9.0]])
    array([False, False, False])
    """
    q, values = surrogate(psi, at)(X), preimage_objective(psi, X)
    own = np.abs(psi.kernel.diag(X))
    # sizes of the terms: sum |a_i k(x_i, x)| <= |a|_1 max k, and those of the quadratic
    points = np.abs(psi.kernel.diag(psi.support)).max()
    size = own + psi.coef.sizes[0] * (np.sqrt(own) * np.sqrt(points) + points) + np.abs(q)
    return np.asarray(values <= q + _ROUNDING * size)


def _queries(psi: Element, X: Any) -> Any:
    if instance(psi, Element, "psi").batch is not None:
        raise InputError(f"one element is needed, not a batch of {psi.batch}; index it")
    return psi.queries(X)


def _state(psi: Element, X: Any, order: int) -> State:
    X = _queries(psi, X)
    engine.require_derivatives(psi.kernel.program)
    X = dense(X)
    with options(tolerance=0.0):  # sums over frequencies come without stiffness
        return Nearest().at(ElementSums(psi), X, np.zeros(len(X), dtype=int), order)
