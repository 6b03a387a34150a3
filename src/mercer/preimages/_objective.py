"""Objectives of pre-images: distance in feature space, angle, distance within a subspace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer.engine import Dense, LowRank, Program
from mercer.preimages._driver import State, row_norms
from mercer.space import Element, Subspace


class Objective(ABC):
    """A function of x for each element of a batch, with derivatives.

    Where the kernel is radial, values and derivatives come with a logarithmic scale per row (see
    `State.shift`), so that the descent direction is known where every kernel value underflows.
    """

    max_order: int = 2  # derivatives that are available

    @abstractmethod
    def at(self, elements: ElementSums, points: Array, owners: Array, order: int) -> State:
        """The objective of element owners[j] at row j of points."""


@dataclass(frozen=True)
class Nearest(Objective):
    """Minimise k(x, x)/2 - psi(x), which is |k(x, .) - psi|^2 / 2 up to a constant.

    For radial kernels k(x, x) is constant and left out. Honeine (2024, see `preimage`), equations
    (4), (12) and (B.4).

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Polynomial(2, offset=0.0), [[1.0, 0.0]], [4.0])
    >>> mc.preimage(psi, objective=mc.preimages.Nearest(), start=[[1.0, 1.0]]).points.round(6)
    array([[2., 0.]])
    """

    def at(self, elements: ElementSums, points: Array, owners: Array, order: int) -> State:
        """Values, gradients and Hessians of k(x, x)/2 - psi(x)."""
        if elements.program.is_translation_invariant:
            return elements.at(points, owners, order, negated=True)
        sums = elements.at(points, owners, order)
        own = _self_sums(elements.program, points, order)
        value = 0.5 * own.value - sums.value
        if not order:
            return State(points, value, shift=sums.shift)
        gradient = 0.5 * own.gradient - sums.gradient
        hessian = 0.5 * own.hessian - sums.hessian if order == 2 else None
        size = None  # k(x, x) is constant, so nothing cancels
        if elements.program.diagonal.variables:
            size = row_norms(own.gradient) / 2 + row_norms(sums.gradient)
        stiffness = own.stiffness if elements.program.kind == "dot" else None
        terms = 0.5 * np.abs(own.value) + np.abs(sums.value)
        return State(points, value, gradient, hessian, stiffness, sums.shift, size, terms)


@dataclass(frozen=True)
class Collinear(Objective):
    """Minimise -psi(x) / sqrt(k(x, x)): the angle between k(x, .) and psi.

    The same minimisers as `Nearest` for radial kernels. Only the direction of psi matters, so the
    length of x is not determined by kernels that are homogeneous.

    References
    ----------
    P. Honeine and C. Richard, A closed-form solution for the pre-image problem in kernel-based
    machines, 2011, section 3.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Polynomial(2), [[1.0, 0.0]], [7.0])
    >>> mc.preimage(psi, objective=mc.preimages.Collinear(), start=[[0.5, 0.5]]).points.round(5)
    array([[1., 0.]])
    """

    max_order = 1

    def at(self, elements: ElementSums, points: Array, owners: Array, order: int) -> State:
        """Values and gradients of -psi(x) k(x, x)^(-1/2)."""
        if elements.program.is_translation_invariant:
            return elements.at(points, owners, order, negated=True)
        sums = elements.at(points, owners, order)
        own = _self_sums(elements.program, points, order)
        root = np.where(own.value > 0, own.value, np.nan) ** -0.5
        value = -sums.value * root
        if not order:
            return State(points, value, shift=sums.shift)
        turned = own.gradient * (0.5 * sums.value * root**3)[:, None]
        scaled = sums.gradient * root[:, None]
        size = row_norms(turned) + row_norms(scaled)
        terms = 2.0 * np.abs(value)
        return State(points, value, turned - scaled, None, None, sums.shift, size, terms)


@dataclass(frozen=True, eq=False)
class Projected(Objective):
    """Minimise |P(k(x, .) - psi)|^2 / 2, P the projection onto the directions of a subspace.

    The substitution of Rathi, Dambreville and Tannenbaum (2006): where psi is itself a projection,
    the part of k(x, .) outside the subspace does not count. A search that starts at the point
    whose feature was projected stays there, because the objective is zero already.

    Parameters
    ----------
    plane : Subspace

    References
    ----------
    Y. Rathi, S. Dambreville and A. Tannenbaum, Statistical shape analysis using kernel PCA, 2006.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Linear()
    >>> plane = mc.Subspace.span(mc.Element(k, [[0.0, 0.0]], [1.0]), mc.feature(k, [[1.0, 0.0]]))
    >>> psi = plane.project(mc.feature(k, [[3.0, 4.0]]))
    >>> within = mc.preimages.Projected(plane)
    >>> mc.preimage(psi, objective=within, start=[[0.0, 5.0]]).points.round(6)
    array([[3., 5.]])
    """

    plane: Subspace
    max_order = 1

    def at(self, elements: ElementSums, points: Array, owners: Array, order: int) -> State:
        """Values and gradients of sum_l (f_l(x) - <f_l, psi>)^2 / 2."""
        f = self.plane.directions
        wanted = np.atleast_2d(np.asarray(elements.psi.inner(f)))[owners]
        gap = f(points) - wanted
        value = 0.5 * np.sum(gap**2, axis=1)
        shift = np.zeros(len(points))
        if not order:
            return State(points, value, shift=shift)
        left = f.coef.tile(slice(None), slice(None))
        mixed = Element(f.kernel, f.points, LowRank(left, gap.T), len(points))
        gradient = np.asarray(mixed.fields(points, order=1, paired=True).gradient, dtype=float)
        apart = np.abs(gap) + np.abs(wanted)
        size = row_norms(gradient) * (1 + apart.sum(axis=1))
        reach = np.sqrt(np.maximum(f.kernel.diag(points), 0.0)) * row_norms(wanted)
        terms = np.sum(gap**2 + wanted**2, axis=1)
        return State(points, value, gradient, None, None, shift, np.maximum(size, reach), terms)


class ElementSums:
    """Values and derivatives of the elements of a batch, each at its own rows.

    The sum of a single element is prepared once; it also runs on every engine. Sums of radial
    kernels are `shifted` where they underflow, see `State.shift`.
    """

    def __init__(self, psi: Element, shifted: bool = True) -> None:
        self.psi, self.program = psi, psi.kernel.program
        self.shifted = shifted and self.program.is_translation_invariant
        self._prepared: engine.PreparedSum | None = None

    def at(self, points: Array, owners: Array, order: int, negated: bool = False) -> State:
        """Element owners[j] at row j; with `negated` minus it."""
        program, X, coef = self.program, self.psi.points, self.psi.coef
        if order:
            engine.require_derivatives(program)
        if coef.shape[1] == 1:
            self._prepared = self._prepared or engine.prepare(program, X, coef, slopes=True)
            f = self._prepared.fields(points, order=order, shifted=self.shifted)
            return _state(points, f, True, negated)
        if not np.array_equal(owners, np.arange(coef.shape[1])):
            coef = coef.columns(owners)
        how: Any = {"order": order, "paired": True, "shifted": self.shifted}
        return _state(points, engine.fields(program, X, points, coef, **how), False, negated)


def _state(points: Array, f: engine.Fields, single: bool, negated: bool = False) -> State:
    """The engine's fields as a state; for a `single` element, the only column of each table.

    The stiffness is the sum of coefficients times the derivative of the profile. With `negated`
    (in place: the engine's arrays are new), the state of -psi for a radial kernel.
    """
    slope = f.slopes[0] if f.gradient is not None and len(f.slopes) == 1 else None
    value, gradient, hessian, slope, cusp = (
        None if part is None else np.asarray(part[:, 0] if single else part, dtype=float)
        for part in (f.value, f.gradient, f.hessian, slope, f.cusp)
    )
    assert value is not None
    if negated:
        for part in (value, gradient, hessian):
            if part is not None:
                np.negative(part, out=part)
        slope = None if slope is None else -2.0 * slope
    return State(points, value, gradient, hessian, slope, f.shift, cusp=cusp)


def _self_sums(program: Program, points: Array, order: int) -> State:
    """k(x, x) and its derivatives in x, as a program in the query alone."""
    one = Dense(np.ones((1, 1)))
    f = engine.fields(program.diagonal, points[:1], points, one, order=order)
    return _state(points, f, single=True)
