"""The global optimum, with proof: branch and bound in at most three dimensions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array, instance, positive, positive_int
from mercer._status import Status
from mercer.engine import Distance, Dot, Norm, as_float64, n_columns
from mercer.exceptions import InputError
from mercer.kernels import Definiteness
from mercer.kernels._parameters import checked
from mercer.preimages._constraint import Box, as_constraint
from mercer.preimages._objective import Collinear, Nearest
from mercer.preimages._problem import Problem
from mercer.preimages._solver import Solver, SolverResult
from mercer.rigor import BoxObjective, GlobalMinimum, Terms, minimise, objective_scale
from mercer.space import Element

_MAX_AXES = 3


@dataclass(frozen=True)
@checked(gap=positive, max_boxes=positive_int)
class Global(Solver):
    """Global search by branch and bound, with proof, in at most three free coordinates.

    With F(x) = k(x, x)/2 - psi(x), the point x returned with `Status.PROVED` has

        F(x) <= F(y) + gap * scale   for every y,

    rounding included, where scale = sum_i |a_i| k(0) for radial kernels with profile k (the largest
    |k| between points of the element, where k is not largest at 0), and otherwise
    (sum_i |a_i| sqrt(k(x_i, x_i)))^2, a bound on |psi|^2. The search runs over all of space, or
    over a `Box` and the coordinates that are not held.

    It is a branch and bound in interval arithmetic: boxes are dropped when F cannot be smaller on
    them, by the range of the profile term by term or by an expansion to second order, and when a
    partial derivative keeps its sign. On a box on which F is proved convex it is minimised.

    `Status.ESCAPED`: nothing is better than points at infinity by more than the gap.
    `Status.MAX_ITER`: `max_boxes` did not suffice, or points in single precision are too coarse for
    the gap; the point is the best that was found, and `global_minimum` reports what is proved.

    Parameters
    ----------
    gap : float
        > 0, relative to scale. Below 1e-12 rounding may prevent a proof.
    max_boxes : int
        Maximum number of boxes for each element.

    Notes
    -----
    Every kernel whose profile is recorded can be used, with linear maps and sums and products.
    Where F is not known to grow at infinity (a kernel that is not positive definite, or that hardly
    depends on a coordinate) a `Box` is needed.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning, 2024,
    equation (19) (the Hessian), Lemma 12 and Theorem 15 (its eigenvalues, here over a box).

    Examples
    --------
    Two bumps, the lower one nearer to where a local search would start:

    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [6.0]], [0.9, 1.0])
    >>> back = mc.preimage(psi, mc.Global())
    >>> back.points.round(4), back.status[0].name
    (array([[6.]]), 'PROVED')
    """

    gap: float = 1e-6
    max_boxes: int = 500_000

    def solve(self, problem: Problem, start: Any = None) -> SolverResult:
        """Each element on its own; starts are not needed, and are offered as candidates."""
        rows = minima(problem, self.gap, self.max_boxes, start)
        status = np.empty(problem.batch, dtype=object)
        status[:] = [row.status for row in rows]
        return SolverResult(
            np.array([row.point for row in rows]),
            status,
            np.array([row.n_rounds for row in rows]),
            np.array([row.n_boxes for row in rows]),
        )

    def rounded(self, problem: Problem, found: SolverResult, points: Array) -> SolverResult:
        """The result at rounded points, PROVED only where they are still within the gap."""
        status = found.status.copy()
        for j in np.flatnonzero(status == Status.PROVED).tolist():
            low, high = _region(problem, j)
            objective = _objective(problem, j, low, high)
            value = objective.values(points[j : j + 1], points[j : j + 1]).hi[0]
            at = points[None, j : j + 1]
            (again,) = minima(problem.part([j]), self.gap / 2, self.max_boxes, at)
            if not value <= again.lower + self.gap * objective_scale(objective):
                status[j] = Status.MAX_ITER
        return replace(found, points=points, status=status, state=None)


def global_minimum(
    psi: Element,
    gap: float = 1e-6,
    max_boxes: int = 500_000,
    *,
    region: Box | None = None,
    fixed: Any = None,
) -> list[GlobalMinimum]:
    """Return proved bounds of k(x, x)/2 - psi(x), one for each element; see `Global`.

    Parameters
    ----------
    psi : Element
        One element, or a batch.
    gap : float, default=1e-6
        > 0, the largest difference of the two bounds, relative to the size of the objective.
    max_boxes : int, default=500000
        Maximum number of boxes for each element.
    region : Box, optional
        As for `preimage`.
    fixed : array_like, optional
        As for `preimage`.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Laplace(1.0), [[0.0], [1.0]], [2.0, -1.0])
    >>> (found,) = mc.preimages.global_minimum(psi, gap=1e-9)
    >>> found.point, round(found.lower, 6), round(found.upper, 6)
    (array([0.]), -1.632121, -1.632121)
    """
    instance(psi, Element, "psi")
    batch = Element(psi.kernel, as_float64(psi.points), psi.coef, psi.coef.shape[1])
    constraint = as_constraint(region, fixed, len(batch), int(n_columns(batch.points)))
    gap, max_boxes = positive(gap, "gap"), positive_int(max_boxes, "max_boxes")
    return minima(Problem(batch, Nearest(), constraint), gap, max_boxes)


def minima(
    problem: Problem, gap: float = 1e-6, max_boxes: int = 500_000, starts: Any = None
) -> list[GlobalMinimum]:
    """The bounds for each element of a problem; `starts` (s, b, d) are offered as candidates."""
    definite = problem.kernel.flags.definiteness is Definiteness.POSITIVE
    found = []
    for j in range(problem.batch):
        low, high = _region(problem, j)
        objective = _objective(problem, j, low, high)
        offered = None if starts is None else starts[:, j]
        found.append(minimise(objective, low, high, gap, max_boxes, offered, definite))
    return found


def _region(problem: Problem, j: int) -> tuple[Array, Array]:
    """The box an element is searched in, a single value along coordinates that are held."""
    if not isinstance(problem.objective, Nearest) and not (
        isinstance(problem.objective, Collinear) and problem.program.is_translation_invariant
    ):
        raise InputError(
            "Global solves Nearest() problems, and Collinear() ones of radial kernels; "
            f"got {type(problem.objective).__name__}"
        )
    region, dim = problem.constraint.region, problem.dim
    if region is not None and not isinstance(region, Box):
        raise InputError(f"Global needs a Box as its region, got {type(region).__name__}")
    low, high = np.full(dim, -np.inf), np.full(dim, np.inf)
    if region is not None:
        low, high = np.broadcast_to(region.low, (dim,)), np.broadcast_to(region.high, (dim,))
    held = problem.constraint.held
    if held is not None:
        row = held[j]
        low, high = np.where(np.isnan(row), low, row), np.where(np.isnan(row), high, row)
    return np.array(low, dtype=float), np.array(high, dtype=float)


def _objective(problem: Problem, j: int, low: Array, high: Array) -> BoxObjective:
    """The terms of element j: equal points merged, positive coefficients first."""
    psi, program = problem.psi, problem.program
    measured = all(isinstance(v, Distance | Dot | Norm) for v in program.variables)
    if not measured or not program.has_derivatives:
        raise InputError(
            "Global needs kernels of squared distances, inner products and norms of vectors, "
            f"which {problem.kernel!r} is not; use another solver, such as Candidates()"
        )
    coef = np.asarray(psi.coef.tile(slice(None), slice(j, j + 1)), dtype=float)[:, 0]
    terms = Terms.merged(program, psi.points, coef)
    seen = sum((np.diag(B) for B, _ in terms.metrics), np.zeros(problem.dim))
    for axis in np.flatnonzero((seen == 0) & (low < high)):  # any value will do
        low[axis] = high[axis] = np.clip(terms.points[0, axis], low[axis], high[axis])
    axes = tuple(int(i) for i in np.flatnonzero(low < high))
    if len(axes) > _MAX_AXES:
        raise InputError(
            f"Global searches at most {_MAX_AXES} free coordinates, got {len(axes)}; hold some "
            "with `fixed`, or use another solver"
        )
    groups = [replace(terms, axes=axes)]
    if not program.is_translation_invariant:
        half = np.array([0.5])
        groups.append(Terms(program.diagonal, np.zeros((1, problem.dim)), -half, half, axes))
    return BoxObjective(tuple(groups), np.sqrt(seen[list(axes)]))
