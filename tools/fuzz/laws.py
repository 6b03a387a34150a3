"""Laws that fuzzed answers must obey: engines agree, bounds hold, searches tell the truth."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse

import mercer
import mercer.testing
from mercer import methods, preimages, theory
from mercer.engine import Distance, Expr, evaluate
from mercer.preimages import preimage_objective
from mercer.rigor import Interval, as_interval, enclose


def check_engines(kernel: Any, X: Any, coef: Any, Y: Any) -> None:
    """Every engine, with much memory or little, gives the sums and gradients of the pairs."""
    psi = mercer.Element(kernel, X, coef)
    a = np.asarray(coef, float)
    K, slopes = np.asarray(kernel(Y, X), float), None
    with contextlib.suppress(mercer.MercerError):
        slopes = np.asarray(kernel.gradient(Y, X), float)
    with np.errstate(all="ignore"):
        expected = [(K @ a, np.abs(K) @ np.abs(a))]
    if slopes is not None:
        with np.errstate(all="ignore"):
            parts = [np.einsum("jid,i->jd", f(slopes), f(a)) for f in (np.asarray, np.abs)]
        expected.append((parts[0], parts[1].max(axis=1, keepdims=True, initial=0.0)))
    for engine, memory in ((None, 128.0), ("blocked", 0.01), ("native", 0.01), ("blocked", 128.0)):
        try:
            with mercer.options(engine=engine, working_memory=memory, n_jobs=1):
                found = [psi(Y)] if slopes is None else [psi(Y), psi.gradient(Y)]
        except mercer.InputError:
            if engine == "native":  # it does not run every kernel
                continue
            raise
        for name, value, (truth, size) in zip(("psi", "grad psi"), found, expected, strict=False):
            with np.errstate(all="ignore"):
                scale = max(size.max(initial=0.0), expected[0][1].max(initial=0.0))
                off = np.abs(value - truth).max(initial=0.0)
            if np.isfinite(scale):
                allowed = 1e-8 * scale + 1e-305  # terms below the smallest normal number are lost
                assert off <= allowed, f"{name} of engine {engine} is off by {off / scale:.1e}"


def check_kernel_laws(kernel: Any, d: int) -> None:
    """The public checks of a kernel pass, if there are points in d dimensions that it takes."""
    try:
        mercer.testing.check_kernel(kernel, dims=(d,))
    except AssertionError as error:
        if not any(words in str(error) for words in ("pass `points`", "cannot be checked")):
            raise


def check_element_laws(psi: Any) -> None:
    """The public checks of an element pass, unless they say that they cannot judge."""
    try:
        mercer.testing.check_element(psi)
    except AssertionError as error:
        if "cannot be checked" not in str(error):  # differences are too coarse for its steepness
            raise


def check_subspace_laws(plane: Any) -> None:
    """The public checks of a subspace pass, if its kernel is positive definite."""
    if plane.origin.kernel.flags.is_positive_definite:
        mercer.testing.check_subspace(plane)


def check_bounds(psi: Any) -> None:
    """Gradients and Hessians at the points of an element stay within the bounds for all points."""
    Y = psi.points
    with np.errstate(all="ignore"):
        first, second = np.asarray(psi.gradient(Y)), np.asarray(psi.hessian(Y))
        slope = np.linalg.norm(first, axis=-1).max(initial=0.0)
        curvature = np.abs(second).max(initial=0.0)  # an entry is at most the spectral norm
    for name, bound, largest in (
        ("gradient_bound", np.max(preimages.gradient_bound(psi)), slope),
        ("lipschitz", np.max(preimages.lipschitz(psi)), curvature),
    ):
        if np.isfinite(bound) and np.isfinite(largest):
            assert largest <= bound * (1.0 + 1e-6), f"{name} {bound} is below {largest}"
    preimages.hessian_lipschitz(psi)
    preimages.weyl_test(psi, Y)


def check_enclosure(kernel: Any, distances: Any) -> None:
    """Values and derivatives of a profile lie in their enclosures, at each distance and between."""
    profile, variables = kernel.program.profile, kernel.program.variables
    if not isinstance(profile, Expr) or [type(v) for v in variables] != [Distance]:
        return
    with np.errstate(all="ignore"):
        u = np.sort(np.abs(np.asarray(distances, float)).ravel()) ** 2
    if len(u) == 0 or not np.isfinite(u).all():
        return
    between = 0.5 * (u[1:] + u[:-1])
    cells = Interval(np.r_[u, u[:-1]], np.r_[u, u[1:]])
    with np.errstate(all="ignore"):
        truth = evaluate(profile, [np.r_[u, between]], 2)
        bound = enclose(profile, [cells], 2)
    for name, value, held in (
        ("k", truth.value, bound.value),
        ("k'", truth.first[0], bound.first[0]),
        ("k''", truth.second[0][0], bound.second[0][0]),
    ):
        held, finite = as_interval(held).known(), np.isfinite(value)
        inside = (held.lo <= value) & (value <= held.hi)
        assert np.all(inside | ~finite), f"{name} is outside of its enclosure"


def check_minimum(psi: Any, Y: Any, gap: float, boxes: int) -> None:
    """No point is below a proved lower bound, and the best point has the value that is claimed."""
    for j, found in enumerate(preimages.global_minimum(psi, gap, boxes)):
        assert found.lower <= found.upper, f"{found.lower} > {found.upper}"
        one = psi if psi.batch is None else psi[j]
        half = 0.0 if np.ndim(kernel_diagonal(one, Y)) == 0 else 0.5 * kernel_diagonal(one, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            values = half - np.asarray(one(Y))  # NaN where both overflow
        least = float(np.fmin.reduce(values, axis=None, initial=np.inf))
        slack = 1e-9 * max(abs(found.lower), abs(least))
        assert least >= found.lower - slack, f"{least} is below the proved bound {found.lower}"


def kernel_diagonal(psi: Any, Y: Any) -> Any:
    """k(y, y), or 0 if it is the same everywhere."""
    values = np.asarray(psi.kernel.diag(Y))
    return 0.0 if len(psi.kernel.program.diagonal.variables) == 0 else values


def check_preimage(psi: Any, solver: Any, **options: Any) -> None:
    """The distance of a pre-image is that of its feature, and no worse than the point 0."""
    found = mercer.preimage(psi, solver, random_state=0, **options)
    repr(found)
    points, size = found.points, np.asarray(psi.norm())
    points = points.toarray() if scipy.sparse.issparse(points) else np.asarray(points)
    ok = np.isfinite(points).all(axis=-1)
    fine = np.array([status.ok for status in found.status])
    assert np.all(ok | ~fine), "a pre-image at infinity"
    if psi.batch is None and ok.all() and np.isfinite(found.distance).all():
        truth = (mercer.feature(psi.kernel, points.reshape(1, -1)) - psi).norm()
        slack = 1e-6 * (float(np.max(size)) + float(np.max(truth)))
        assert np.allclose(found.distance, truth, 1e-6, slack), f"{found.distance} is not {truth}"
        assert np.isfinite(preimage_objective(psi, points.reshape(1, -1))).all()


def check_modes(density: Any, start: Any) -> None:
    """Ascents end no lower than they begin, and proved modes are among all modes."""
    found = mercer.mean_shift(density, start)
    found.table()
    repr(found)
    labels = np.asarray(found.labels)
    assert labels.size == 0 or (labels.min() >= -1 and labels.max() < len(found.points)), "labels"
    assert len(found.density) == len(found.points) == len(found.proved)
    X = density.points if start is None else start
    values, kept = np.asarray(density(X), float), labels >= 0
    reached = np.asarray(found.density, float)[labels[kept]]
    assert (reached >= values[kept] - 1e-6 * np.abs(values[kept])).all(), (
        "an ascent ends below its start"
    )
    if np.shape(found.points)[1] <= 2 and np.asarray(found.proved).any():
        with contextlib.suppress(mercer.MercerError):
            every = methods.all_modes(density, max_boxes=2000)
            if every.complete:
                count = int(np.asarray(found.proved).sum())
                assert count <= len(every), f"{count} proved modes, but {len(every)} in all"


def check_compressed(psi: Any, n_points: int, method: Any, tol: Any) -> None:
    """The error of a compression is the distance, and within the tolerance if it says so."""
    found = mercer.compress(psi, n_points, method=method, tol=tol, random_state=0)
    repr(found)
    assert len(found.element.points) <= n_points, "too many points"
    if not psi.kernel.flags.is_positive_definite:
        return  # there is no distance
    size, truth = np.asarray(psi.norm(), float), np.asarray((psi - found.element).norm(), float)
    terms = psi.coef.sizes * np.sqrt(np.abs(psi.kernel.diag(psi.points)).max())
    assert np.all(np.abs(found.error - truth) <= 1e-6 * terms), f"{found.error} is not {truth}"
    if tol is not None and found.ok and found.status.name == "CONVERGED":
        left, whole = np.linalg.norm(found.error), np.linalg.norm(size)
        assert left <= (tol + 1e-9) * whole, f"{left / whole} is above {tol}"


def check_divergences(p: Any, q: Any) -> None:
    """Pinsker's and Le Cam's inequalities, and KL <= log(1 + chi^2)."""
    tv, h = theory.total_variation(p, q), theory.hellinger(p, q)
    kl, chi = theory.kl_divergence(p, q), theory.chi_square_divergence(p, q)
    slack = 1e-9  # of sums that need not be one exactly
    assert h**2 - slack <= tv <= h * np.sqrt(max(2.0 - h**2, 0.0)) + slack, (h, tv)
    assert tv**2 - slack <= kl / 2.0 <= np.log1p(chi) / 2.0 + slack, (tv, kl, chi)
    theory.largest_power(p, q, 10)


def check_problem(seed: int) -> None:
    """A problem is solved up to the accuracy of the solver, and its dual is below it."""
    given = problem(seed)
    if given.status != "optimal":
        return
    found = theory.kkt(given)
    size = 1.0 + abs(found.primal) + max((float(np.max(np.abs(c.dual_value)))
                                         for c in given.constraints), default=0.0)  # fmt: skip
    off = max(found.feasibility, found.complementarity, found.stationarity, abs(found.gap))
    assert off <= 1e-4 * size, f"{found}"
    assert theory.duality.dual_function(given) <= found.primal + 1e-5 * size, "weak duality"


def check_duality(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """The optimum of the dual is that of the problem, or below if it is not convex."""
    found = function(*args, **options)
    slack = 1e-5 * (1.0 + abs(found.primal))
    assert found.gap >= -slack, f"dual {found.dual} is above primal {found.primal}"
    if function is not theory.duality.two_way_partition:
        assert found.gap <= slack, f"a gap of {found.gap} at {found.primal}"


def problem(seed: int) -> Any:
    """A convex problem of cvxpy, solved unless that fails."""
    rng = np.random.default_rng(seed)
    x = cp.Variable(rng.integers(1, 4))
    A, b = rng.normal(size=(3, x.size)), rng.normal(size=3)
    goals = [cp.sum_squares(A @ x - b), cp.norm1(x - b[0]), cp.sum(x), cp.norm(A @ x - b),
             cp.log_sum_exp(A @ x), cp.sum_squares(x) + cp.max(x)]  # fmt: skip
    limits = [A @ x <= b + 2.0, x >= -1.0, cp.sum(x) == b[0], cp.norm(x) <= 3.0, x <= 1e-9,
              cp.diag(x) + 2.0 * np.eye(x.size) >> 0]  # fmt: skip
    chosen = [limits[i] for i in rng.choice(len(limits), rng.integers(0, 4), replace=False)]
    made = cp.Problem(cp.Minimize(goals[rng.integers(len(goals))]), chosen)
    if rng.random() < 0.2:
        made = cp.Problem(cp.Maximize(-made.objective.args[0]), chosen)
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(cp.SolverError):
        made.solve(solver=cp.CLARABEL)
    return made


def expressions(seed: int) -> list[Any]:
    """Two convex expressions of one variable."""
    x = cp.Variable(2)
    given = [cp.sum_squares(x), cp.norm1(x - 1.0), cp.sum(x), cp.sum_squares(x + 1.0), cp.max(x)]
    return [given[seed % 5], given[seed // 5 % 5]]


def draw(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Make a figure, and write it as an image."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    try:
        function(*args, **options)
        plt.gcf().savefig(io.BytesIO(), dpi=40)
    finally:
        plt.close("all")
