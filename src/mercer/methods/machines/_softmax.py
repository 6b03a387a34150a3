"""Logistic regression with several classes (softmax, multinomial) by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array, Points
from mercer.kernels import Kernel
from mercer.linalg import GramOperator
from mercer.linalg._solve import DIRECT_UP_TO
from mercer.methods.machines._newton import NewtonProblem, NewtonState

_PRODUCTS = 1000  # of conjugate gradients in one step
_SWEEPS = 100
_BALANCED = 1e-14  # of the sum of all flows: rounding


@dataclass(frozen=True, eq=False)
class SoftmaxProblem(NewtonProblem):
    """min sum_k |f_k|^2 / 2 + sum_i u_i (log sum_k exp t_ik - t_iy), t_i = f(x_i) + c, y = y_i.

    Dual: max -sum_k |f_k|^2 / 2 + sum_i u_i H(p_i), with H the entropy, p_i probabilities of the
    classes, f_k = sum_i a_ik k(x_i, .) and a_i = u_i (e_y - p_i); and sum_i a_i = 0 if there is an
    intercept. At the optimum p_i = softmax(t_i).
    """

    y: Array  # numbers of classes
    bounds: Array  # u >= 0
    n_classes: int
    fit_intercept: bool = True

    @property
    def start(self) -> Array:
        """a = 0 and c = 0."""
        return np.zeros((len(self.y) + 1) * self.n_classes)

    def _state(self, kernel: Kernel, X: Points, start: Array) -> NewtonState:
        return _State(self, kernel, X, start)


class _State(NewtonState):
    """One function for each class."""

    def __init__(self, problem: SoftmaxProblem, kernel: Kernel, X: Points, start: Array) -> None:
        self.problem, self.u = problem, problem.bounds[:, None]
        variables = start.reshape(-1, problem.n_classes)
        self.a, self.c = variables[:-1].copy(), variables[-1].copy()
        self.one_hot = np.eye(problem.n_classes)[problem.y]
        self.K = GramOperator(kernel, X, held=len(X) <= DIRECT_UP_TO)
        # a change of the intercept is measured like a function with the mean k(x, x)
        self.unit = float(np.mean(self.K.diag)) if problem.fit_intercept else 0.0
        self.largest = self.primal(0.0, np.zeros_like(self.a))

    def primal(self, square: float, t: Array) -> float:
        losses = np.logaddexp.reduce(t, axis=1) - np.einsum("ik,ik->i", self.one_hot, t)
        return 0.5 * square + float(self.problem.bounds @ losses)

    def objectives(self) -> tuple[float, float]:
        """The primal objective here; the dual one at the gradient of the losses, balanced."""
        self.f = self.K @ self.a
        self.t = self.f + self.c
        self.p = np.exp(self.t - np.logaddexp.reduce(self.t, axis=1, keepdims=True))
        self.b = self.u * (self.one_hot - self.p)
        p = self._dual_point()
        a = self.u * (self.one_hot - p)
        both = self.K @ np.hstack([self.b, a])
        self.Kb, values = both[:, : a.shape[1]], both[:, a.shape[1] :]
        self.imbalance = float(np.abs(a.sum(axis=0)).max()) if self.problem.fit_intercept else 0.0
        entropy = -np.sum(p * np.log(np.where(p > 0.0, p, 1.0)), axis=1)
        dual = float(self.problem.bounds @ entropy) - 0.5 * float(np.vdot(a, values))
        return self.primal(float(np.vdot(self.a, self.f)), self.t), dual

    def _dual_point(self) -> Array:
        """Probabilities near p whose weighted sums over the rows are those of the classes.

        u_i p_ik flows from the class of row i to the class k. Flows between two classes are scaled
        down so that as much flows into each class as out of it.
        """
        if not self.problem.fit_intercept:
            return np.asarray(self.p)
        flows = self.one_hot.T @ (self.u * self.p)
        p = self.p * balancing_factors(flows)[self.problem.y]
        p[np.arange(len(p)), self.problem.y] = 0.0
        p += self.one_hot * (1.0 - p.sum(axis=1, keepdims=True))
        return np.asarray(p)

    def direction(self, gap: float) -> tuple[Array, Array]:
        """Newton's changes d of a and s of c, by conjugate gradients in the space of the functions.

        d + H (K d + s) = b - a, and the sum of H (K d + s) over the rows is that of b, with
        H_i = u_i (diag p_i - p_i p_i'). The inner product is <d, K d> + |s|^2 / T.
        """
        T, p = self.unit, self.p
        d, s = np.zeros_like(self.a), np.zeros(p.shape[1])
        r, rs, Kr = self.b - self.a, T * self.b.sum(axis=0), self.Kb - self.f
        direction, Kdirection, shift = r, Kr, rs
        square = first = _square(r, Kr, rs, T)
        tol = min(max(gap, 1e-10), 0.1)  # a step need not be exact, at first
        for _ in range(_PRODUCTS):
            w = Kdirection + shift
            Hw = self.u * p * (w - np.sum(p * w, axis=1, keepdims=True))
            image, moved = direction + Hw, T * Hw.sum(axis=0)
            bend = float(np.vdot(direction, Kdirection) + np.vdot(Hw, w))
            if not (square > tol**2 * first and bend > 0.0):
                break
            step = square / bend
            d, s = d + step * direction, s + step * shift
            r, rs = r - step * image, rs - step * moved
            Kr, before = self.K @ r, square
            square = _square(r, Kr, rs, T)
            share = square / before
            direction, shift = r + share * direction, rs + share * shift
            Kdirection = Kr + share * Kdirection
        return d, s


def _square(r: Array, Kr: Array, rs: Array, T: float) -> float:
    return float(np.vdot(r, Kr)) + (float(rs @ rs) / T if T else 0.0)


def balancing_factors(flows: Array) -> Array:
    """Factors in [0, 1] of flows F_jk from j to k, so that each inflow equals the outflow.

    They are x_j / x_k times a constant (Osborne 1960, On pre-conditioning of matrices), and 0 for
    flows that never come back. If that does not converge, take the smaller of two opposite flows.
    """
    F = flows - np.diag(np.diag(flows))
    while True:
        ends = (F.sum(axis=0) == 0.0) | (F.sum(axis=1) == 0.0)
        if not (F[ends].any() or F[:, ends].any()):
            break
        F[ends], F[:, ends] = 0.0, 0.0
    x, inner = np.ones(len(F)), np.flatnonzero(~ends)
    for _ in range(_SWEEPS):
        factors = np.where(F > 0.0, np.divide.outer(x, x), 0.0)
        scaled = F * factors
        if np.abs(scaled.sum(axis=0) - scaled.sum(axis=1)).max() <= _BALANCED * scaled.sum():
            return np.asarray(factors / max(factors.max(), 1.0))
        for k in inner:
            x[k] = np.sqrt((F[:, k] @ x) / (F[k] @ (1.0 / x)))
    least = np.minimum(F, F.T)
    return np.asarray(np.divide(least, F, out=np.zeros_like(F), where=F > 0.0))
