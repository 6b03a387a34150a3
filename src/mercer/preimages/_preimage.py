"""preimage: the point whose feature is nearest to an element, with a certificate."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_numbers, check_flag, instance, is_sparse, positive_int
from mercer._progress import Callback, check_callback
from mercer._status import Status
from mercer._tensors import as_numpy, is_tensor
from mercer.engine import n_columns, pieces
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, OpenBall
from mercer.preimages._certify import certify_state
from mercer.preimages._constraint import Ball, as_constraint
from mercer.preimages._implicit import on_host, with_tensors
from mercer.preimages._objective import Nearest, Objective
from mercer.preimages._problem import Problem, default_starts, given_starts
from mercer.preimages._result import Certificate, PreImage, undecided
from mercer.preimages._solver import IterativeSolver, Solver, SolverResult
from mercer.preimages.solvers._candidates import Candidates
from mercer.preimages.solvers._fixed_point import FixedPoint
from mercer.preimages.solvers._global import Global
from mercer.preimages.solvers._gradient_methods import LBFGS, Newton
from mercer.space import Element
from mercer.space._points import concatenated

_BYTES = 1 << 28  # of arrays with one row per search that a block may hold
_NEWTON_DIMENSIONS = 20  # above it a Hessian per step costs more than it saves
_INSIDE = 1.0 - 1e-6  # of the radius of an open ball
_STARTS, _MORE_STARTS = 2, 12  # the second if all starts lead to infinity
_BENT = 1e-6  # of the largest curvature: a critical point that bends down by more is left


def preimage(
    psi: Element,
    solver: Solver | None = None,
    *,
    objective: Objective | None = None,
    start: Any = None,
    n_starts: int | None = None,
    region: Any = None,
    fixed: Any = None,
    random_state: Any = None,
    eigenvalues: bool | None = None,
    history: bool = False,
    callback: Callback | None = None,
) -> PreImage:
    r"""Return the points whose features are nearest to psi: argmin_x \|k(x, .) - psi\|^2.

    For most elements there is no exact pre-image, and the objective k(x, x)/2 - psi(x) has several
    local minimisers. The result says how near the point is, why the search stopped, and what is
    proved about it.

    Parameters
    ----------
    psi : Element
        One element or a batch; a batch is processed in blocks of bounded memory.
    solver : Solver, optional
        `FixedPoint`, `Newton`, `LBFGS`, `GradientDescent`, `MM`, `ClosedForm`, `Distances`,
        `Candidates`, `Global`, or a fitted `LearnedMap`. By default `Newton` up to 20 dimensions
        and `LBFGS` above; `FixedPoint` for radial kernels with cusps and inside a `region`;
        `Candidates` for kernels without derivatives.
    objective : Objective, optional
        `Nearest()` by default; `Collinear()` or `Projected(plane)`.
    start : array_like of shape (d,), (b, d) or (s, b, d), optional
        Starting points in place of the default, such as the noisy input. With s starts per element
        the best result is kept.
    n_starts : int, optional
        Number of starts if `start` is not given: the weighted mean of the points, and the
        `n_starts` - 1 best of the points that lie apart; 2 by default.
    region : Box, Ball or Simplex, optional
        Where the pre-image must lie; by default anywhere, or in the ball on which a kernel such
        as `Geometric` is defined.
    fixed : array_like of shape (d,) or (b, d), optional
        Values of coordinates that are held fixed, NaN for those that are free, as in imputation.
        With several rows, a single element has one pre-image for each row.
    random_state : int, Generator, RandomState or None
        For the choice of starts among more than 2,048 points.
    eigenvalues : bool, optional
        Whether the certificate computes Hessians; by default up to 64 dimensions.
    history : bool
        Whether to keep the paths.
    callback : callable, optional
        Called with a `linalg.Step` after each iteration of a block; True stops.

    Returns
    -------
    PreImage
        For an element on tensors the search runs in NumPy, on the host, and `points` is a tensor of
        the element's kind. Its gradient in the points and coefficients of the element is exact, by
        implicit differentiation; it is NaN for rows that did not converge, at cusps, and where
        the Hessian is singular. A second derivative is refused.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning, 2024.
    B. Scholkopf et al., Input space versus feature space in kernel-based methods, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> back = mc.preimage(mc.mean_embedding(mc.Gaussian(2.0), X))
    >>> back
    <PreImage of 1: 1 CONVERGED>
    >>> back.certificate
    <Certificate: 1 PROVED_MINIMUM>

    A point that is missing its second coordinate:

    >>> psi = mc.mean_embedding(mc.Gaussian(0.3), [[0.0, 0.0], [1.0, 1.0], [2.0, 4.0]])
    >>> mc.preimage(psi, fixed=[1.0, np.nan]).points.round(4)
    array([[1., 1.]])
    """
    check_flag(history, "history")
    check_flag(eigenvalues, "eigenvalues", optional=True)
    check_callback(callback)
    if isinstance(psi, Element) and is_tensor(psi.points):
        settings: dict[str, Any] = {
            "objective": objective, "start": as_numpy(start, "start"), "n_starts": n_starts,
            "region": region, "fixed": as_numpy(fixed, "fixed"), "random_state": random_state,
            "eigenvalues": eigenvalues, "history": history, "callback": callback,
        }  # fmt: skip
        back = preimage(on_host(psi), solver, **settings)
        return with_tensors(back, psi, objective, region, settings["fixed"])
    whole = _as_problem(psi, objective, region, fixed)
    chosen = _default_solver(whole) if solver is None else solver
    if not isinstance(chosen, Solver):
        raise InputError(
            f"solver must be a solver such as Newton(), got {chosen!r}; "
            "a LearnedMap must be fitted first"
        )
    starts = None
    if chosen.needs_start:
        engine.require_derivatives(psi.kernel.program)
        if start is not None:
            starts = given_starts(start, whole.batch, whole.dim)
    elif start is not None or n_starts is not None:
        raise InputError(f"{type(chosen).__name__} does not iterate, so it takes no start")
    count = _STARTS if n_starts is None else positive_int(n_starts, "n_starts")
    norms = np.full(whole.batch, np.nan)  # without a norm
    if psi.kernel.flags.definiteness is not Definiteness.INDEFINITE:
        norms = np.asarray(whole.psi.norm(), dtype=float)
    size = _block_size(chosen, whole.dim, count if starts is None else starts.shape[0])
    single = not is_sparse(psi.points) and getattr(psi.points, "dtype", None) == np.float32
    how: Any = (count, random_state, history, callback)
    with np.errstate(all="ignore"):  # the status reports overflow
        found = None if isinstance(chosen, IterativeSolver) else chosen.solve(whole, starts)
        parts = []
        for rows in pieces(whole.batch, whole.batch if history else size):
            part = whole.part(rows)
            if isinstance(chosen, IterativeSolver):
                ends = _search(part, chosen, None if starts is None else starts[:, rows], *how)
            else:
                assert found is not None
                ends = found if part is whole else found.part(rows)
            if single:  # describe the points that are returned, not those before rounding
                rounded = ends.points.astype(np.float32).astype(float)
                if isinstance(chosen, Global):
                    ends = chosen.rounded(part, ends, rounded)
                ends = replace(ends, points=rounded, state=None)
            parts.append(_as_pre_image(part, ends, norms[rows], eigenvalues))
    result: PreImage = parts[0] if len(parts) == 1 else _join(parts)
    points = result.points.astype(np.float32) if single else result.points
    return replace(result, points=points, header=psi.header)


def _as_problem(psi: Any, objective: Any, region: Any, fixed: Any) -> Problem:
    """Check what the user gave; all elements as one batch, in float64."""
    instance(psi, Element, "psi")
    objective = Nearest() if objective is None else objective
    if not isinstance(objective, Objective):
        raise InputError("objective must be Nearest(), Collinear() or Projected(plane)")
    domain = psi.kernel.domain
    points = engine.as_float64(psi.points) if domain.is_vector else psi.points
    fixed = None if fixed is None else as_numbers(fixed, "fixed")
    if psi.batch is None and np.ndim(fixed) == 2 and len(fixed) > 1:  # one element for all rows
        psi = psi.combine(np.ones((1, len(fixed))))
    batch = Element(psi.kernel, points, psi.coef, psi.coef.shape[1])
    dim = n_columns(points) if domain.is_vector else 0
    if region is None and isinstance(domain, OpenBall):  # the kernel is defined nowhere else
        region = Ball(np.zeros(dim), _INSIDE * domain.radius)
    return Problem(batch, objective, as_constraint(region, fixed, len(batch), dim))


def _default_solver(problem: Problem) -> Solver:
    program = problem.program
    if not problem.is_smooth:
        return Candidates()
    simple = program.kind in ("radial", "dot") and isinstance(problem.objective, Nearest)
    rough = any(program.cusps) or problem.constraint.region is not None
    if simple and rough:
        return FixedPoint()
    if problem.objective.max_order == 2 and problem.dim <= _NEWTON_DIMENSIONS and not rough:
        return Newton()
    return LBFGS()


def _search(
    problem: Problem,
    solver: IterativeSolver,
    starts: Array | None,
    count: int,
    random_state: Any,
    history: bool,
    callback: Callback | None,
) -> SolverResult:
    """Where the search ends; a guarded one restarts after escapes and at saddles."""
    begin = default_starts(problem, count, random_state) if starts is None else starts
    found = solver.solve(problem, begin, history=history, callback=callback)
    if not solver.guarded:
        return found
    lost = np.flatnonzero(found.status == Status.ESCAPED)
    if lost.size and starts is None and count < _MORE_STARTS:
        part = problem.part(lost)
        more = default_starts(part, _MORE_STARTS, random_state)
        found = _search_again(part, solver, more, found, lost)
    return _leave_saddles(problem, solver, found)


def _leave_saddles(problem: Problem, solver: IterativeSolver, found: SolverResult) -> SolverResult:
    """Restart rows that converged where the objective bends down, on both sides."""
    rows = np.flatnonzero(found.status == Status.CONVERGED)
    curved = problem.objective.max_order == 2 and problem.constraint.is_free
    if not curved or not rows.size or problem.dim > _NEWTON_DIMENSIONS or found.state is None:
        return found
    state = found.state
    if state.hessian is None:
        state = problem.at(found.points, np.arange(problem.batch), 2)
        found = replace(found, state=state)
    values, vectors = np.linalg.eigh(state.hessian[rows])
    bent = values[:, 0] < -_BENT * np.abs(values).max(axis=1)
    if not bent.any():
        return found
    rows, step = rows[bent], problem.nudge * vectors[bent, :, 0]
    starts = found.points[rows] + np.stack([step, -step])
    return _search_again(problem.part(rows), solver, starts, found, rows)


def _search_again(
    part: Problem, solver: IterativeSolver, starts: Array, found: SolverResult, rows: Array
) -> SolverResult:
    """Search again for some rows, from other starts; earlier evaluations are counted too."""
    other = solver.solve(part, starts)
    before = found.status, found.n_iter, found.n_evaluations
    status, n_iter, n_evaluations = (np.array(array) for array in before)
    status[rows] = other.status
    n_iter[rows] += other.n_iter
    n_evaluations[rows] += other.n_evaluations
    assert found.state is not None
    assert other.state is not None
    state = found.state.updated(rows, other.state)
    return SolverResult(state.points, status, n_iter, n_evaluations, found.history, state)


def _block_size(solver: Solver, dim: int, starts: int) -> int:
    """How many elements are processed at once."""
    order = getattr(solver, "order", 1)
    per_row = dim * (16 + 2 * getattr(solver, "pairs", 0)) + (4 * dim**2 if order == 2 else 0)
    return int(np.clip(_BYTES // (8 * max(1, per_row) * starts), 16, 8192))


def _as_pre_image(
    problem: Problem, found: SolverResult, norms: Array, eigenvalues: bool | None
) -> PreImage:
    """The result: distance, gradient and certificate do not depend on the solver."""
    psi, nearest = problem.psi, isinstance(problem.objective, Nearest)
    points = found.points if psi.kernel.domain.is_vector else psi.queries(found.points)
    own = np.asarray(engine.diagonal(psi.kernel.program, points), dtype=float)
    proves = problem.is_smooth and nearest and problem.constraint.is_free  # proofs are about this
    if problem.is_smooth:
        order = 2 if proves and problem.dim <= _NEWTON_DIMENSIONS else 1
        state = found.state or problem.at(points, np.arange(problem.batch), order)
        objective, gradient = state.objective + problem.offset, state.gradient_norm
    if problem.is_smooth and nearest:
        value = 0.5 * own - objective
    else:
        value = np.asarray(psi.fields(points, paired=True).value, dtype=float)
    if not problem.is_smooth:
        objective, gradient = 0.5 * own - value, np.full(problem.batch, np.nan)
    if proves:
        certificate = certify_state(psi, points, state, eigenvalues=eigenvalues)
    else:
        certificate = undecided(problem.batch)
    scale = np.maximum(np.maximum(norms, np.sqrt(np.abs(own))), np.finfo(float).tiny)
    squared = (norms / scale) ** 2 + own / scale / scale - 2.0 * (value / scale / scale)
    # a square that is negative by rounding is zero
    distance = scale * np.sqrt(np.where(squared < -2e-12, np.nan, np.maximum(squared, 0.0)))
    counts = found.status, found.n_iter, found.n_evaluations
    return PreImage(
        found.points, distance, objective, gradient, *counts, certificate, found.history
    )


def _join(parts: list[Any]) -> Any:
    """One result from those of the blocks, or one column of it."""
    first = parts[0]
    if first is None:
        return first
    if isinstance(first, PreImage | Certificate):
        names = first.__dataclass_fields__
        return type(first)(*(_join([getattr(p, name) for p in parts]) for name in names))
    if isinstance(first, list):
        return [x for part in parts for x in part]
    return reduce(concatenated, parts) if is_sparse(first) else np.concatenate(parts)
