"""A kernel density as a function to climb: values, derivatives and the step of mean shift.

Searches in mercer descend, so the states here are those of -f: `heights` gives back f.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, is_sparse, refuse_pieces
from mercer._chunks import Chunks
from mercer._config import get_options
from mercer.engine import (
    Dense,
    Distance,
    Fields,
    Maps,
    Matrix,
    Program,
    Scales,
    apply_all,
    column_rank,
    n_columns,
    prepare,
    total,
)
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.density._density import weight_range, weights_of
from mercer.preimages._driver import State, smallest_subgradients
from mercer.preimages._problem import kernel_length
from mercer.rigor import cusp_slope
from mercer.space import Element
from mercer.space._chunked import add_fields
from mercer.space._points import unique

_MANY_COLUMNS = 20  # above, Hessians and their eigenvalues take longer than the ascents
_WIDEST = (1e5, 1e6, 1e7)  # lengths that points of one sum may extend over, the first if possible
_MOST_PARTS = 1000  # of sums
_STEPS = 10  # about how often a start is evaluated until it is retired


class Group(NamedTuple):
    """sum_i a_i k(|z_i - z|^2), a_i > 0, with a convex profile."""

    kernel: Kernel  # of the data, behind the maps
    program: Program  # of one squared distance, without maps
    points: Any  # the z_i; in pieces with the a_i
    coef: Array  # the a_i; in pieces their sum


@dataclass(frozen=True, eq=False)
class DensitySum:
    """f(z), a sum of groups."""

    groups: tuple[Group, ...]
    maps: Maps  # from data x to z = A x, A invertible
    dim: int  # the number of columns of the data
    tolerance: float  # the error of sums, as a share of their largest possible value
    n_queries: int  # how many points are climbed from
    log_unit: float  # the logarithm of the factor that values have to be multiplied by

    @classmethod
    def of(cls, density: Any, n_queries: int | None = None) -> DensitySum:
        """From an element, or anything that has `elements`."""
        whole = isinstance(density, Element)
        if not whole and not hasattr(density, "log_scales"):
            raise InputError(
                f"density must be an Element or a Density, got {type(density).__name__}"
            )
        elements = (density,) if whole else density.elements
        logs = np.zeros(1) if whole else density.log_scales
        unit, maps = float(logs.max()), _maps(elements[0])
        if any(_maps(element) != maps for element in elements[1:]):
            raise InputError("the elements of a density must measure distances alike")
        groups = tuple(
            _group(element, maps, np.exp(log - unit))
            for element, log in zip(elements, logs, strict=True)
        )
        n = sum(len(group.points) for group in groups)
        tolerance = float(np.clip(1e-3 / n, 1e-10, 1e-8))
        d = n_columns(elements[0].points)
        return cls(groups, maps, d, tolerance, n if n_queries is None else n_queries, unit)

    def forth(self, X: Array) -> Array:
        """Where data points lie in z."""
        return _mapped(X, self.maps)

    def back(self, Z: Array) -> Array:
        """The data points of z."""
        for step in reversed(self.maps):
            A: Any = step.array  # type: ignore[attr-defined]
            Z = Z * A if isinstance(step, Scales) else np.linalg.solve(A, Z.T).T
        return np.ascontiguousarray(Z)

    def pulled(self, H: Array) -> Array:
        """Hessians in x, from those in z: A' H A."""
        for step in reversed(self.maps):
            H = step.pull(np.swapaxes(step.pull(H, self.dim), -1, -2), self.dim)
        return H

    @cached_property
    def length(self) -> float:
        """The length over which the density changes: that of the narrowest kernel."""
        return min(kernel_length(group.program) for group in self.groups)

    @cached_property
    def mass(self) -> float:
        """sum_i a_i k(0): no value of the density is larger."""
        return float(sum(g.program.value_at_zero * g.coef.sum() for g in self.groups))

    @cached_property
    def points(self) -> Array:
        refuse_pieces(self.groups[0].points, "the density")
        return np.concatenate([group.points for group in self.groups])

    @property
    def n_points(self) -> int:
        return sum(len(group.points) for group in self.groups)

    @property
    def in_pieces(self) -> bool:
        return isinstance(self.groups[0].points, Chunks)

    @property
    def has_few_columns(self) -> bool:
        """Whether Hessians are cheap: they are not used in more columns, unless requested."""
        return self.dim <= _MANY_COLUMNS

    @property
    def block_rows(self) -> int:
        """How many points to hold at a time: several copies must fit into the memory."""
        return max(1, int(get_options().working_memory * 2**14) // self.dim)

    @property
    def hessian_rows(self) -> int:
        """How many Hessians to hold at a time: those that fit into a quarter of the memory."""
        return max(1, int(get_options().working_memory * 2**15) // self.dim**2)

    @property
    def error(self) -> float:
        """A bound on the error of values that are not exact."""
        return self.tolerance * self.mass

    @cached_property
    def tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.points)

    @property
    def has_cusps(self) -> bool:
        """Whether a slope is infinite at the points."""
        return any(any(group.program.cusps) for group in self.groups)

    def at(self, Z: Array, order: int = 1, *, exact: bool = False) -> State:
        """The state of -f at some points; its fixed-point step is that of mean shift.

        The step is sum_i w_i (z_i - z) / sum_i w_i with w_i = -2 a_i k'(u_i); on a data point where
        the kernel has a cusp it is that of Vardi and Zhang. `cusp` is the slope of the cusp there.
        Order 2 gives Hessians too; `exact` means up to rounding, instead of up to `error`.
        """
        f, pull = self.fields(Z, order, exact=exact)
        gradient: Any = f.gradient
        cusp = None
        if self.has_cusps:
            cusp = pull * np.exp(np.where(pull > 0.0, -f.shift, 0.0))
            gradient = smallest_subgradients(gradient, np.linalg.norm(gradient, axis=1), cusp)
        H = None if f.hessian is None else -f.hessian
        return State(Z, -f.value, -gradient, H, -2.0 * f.slopes[0], f.shift, cusp=cusp)

    def values(self, Z: Array, *, exact: bool = False) -> Array:
        """f at some points, without derivatives."""
        if not len(Z):
            return np.empty(0)
        f = self.fields(Z, 0, exact=exact)[0]
        return np.asarray(f.value * np.exp(f.shift))

    def fields(self, Z: Array, order: int = 1, *, exact: bool) -> tuple[Fields, Array]:
        """f and its derivatives, and the slope of the cusp at each row; 0 where there is none.

        Points at a cusp are left out of the derivatives.
        """
        parts, pull = [], np.zeros(len(Z))
        for program, summed in self._sums:
            f = summed.fields(Z, order=order, shifted=True, exact=exact)
            if f.cusp is not None:
                pull += cusp_slope(program) * f.cusp[:, 0]
            parts.append(replace(f, cusp=None))
        return total(parts).only_element(), pull

    @cached_property
    def _sums(self) -> list[tuple[Program, Any]]:
        """Sums over points that are close enough together, each with its program."""
        settings = {"n_queries": _STEPS * self.n_queries, "tolerance": self.tolerance}
        if self.in_pieces:
            how = (self.length, self.tolerance)
            return [(p, _SumInPieces(p, Z, *how)) for _, p, Z, _ in self.groups]
        return [
            (p, prepare(p, Z[rows], Dense(a[rows, None]), slopes=True, **settings))  # type: ignore[arg-type]
            for _, p, Z, a in self.groups
            for rows in _parts(Z, self.length)
        ]


def _parts(Z: Array, length: float) -> list[Any]:
    """Rows in cells of a grid, so that each sum is over points of limited extent.

    The engine sums moments about the middle of its points. With an extent of e lengths, gradients
    lose e eps to rounding and Hessians e^2 eps.
    """
    extent = float((Z.max(axis=0) - Z.min(axis=0)).max(initial=0.0)) / length
    if extent <= _WIDEST[0]:
        return [slice(None)]
    middle = np.median(Z, axis=0)  # so that outliers leave the others in one cell
    for width in _WIDEST:
        cells, group = unique(np.round((Z - middle) / (width * length)) + 0.0)
        if len(cells) <= _MOST_PARTS:
            order = np.argsort(group, kind="stable")
            return np.split(order, np.cumsum(np.bincount(group))[:-1])
    raise InputError(
        f"the points extend over {extent:.3g} lengths of the kernel, too far for mean shift to "
        "resolve; use a larger bandwidth, or cluster distant parts of the data one by one"
    )


class _SumInPieces:
    """Sums over points in pieces; every evaluation is a pass over them."""

    def __init__(self, program: Program, rows: Chunks, length: float, tolerance: float) -> None:
        self.program, self.rows, self.length, self.tolerance = program, rows, length, tolerance

    def fields(self, Z: Array, **how: Any) -> Fields:
        given = (self.program, self.length, self.tolerance, np.asarray(Z), how)
        found: Fields = self.rows.total(_fields_of_piece, *given, add=add_fields, task="mean shift")
        return found


def _fields_of_piece(
    points: Array,
    a: Array,
    program: Program,
    length: float,
    tolerance: float,
    Z: Array,
    how: dict[str, Any],
) -> Fields:
    settings: Any = {"n_queries": len(Z), "tolerance": tolerance, "slopes": True}
    return total(
        [
            prepare(program, points[rows], Dense(a[rows]), **settings).fields(Z, **how)
            for rows in _parts(points, length)
        ]
    )


def _mapped(X: Array, maps: Maps) -> Array:
    return np.ascontiguousarray(apply_all(maps, X), dtype=np.float64)


def heights(state: State) -> Array:
    """The density f at the points of a state, which is that of -f."""
    return -state.objective


def is_held(state: State) -> Array:
    """Rows on a data point whose cusp outweighs the pull of the other points: modes."""
    if state.cusp is None:
        return np.zeros(len(state.points), dtype=bool)
    return np.asarray((state.cusp > 0.0) & ~state.gradient.any(axis=1))


def newton_steps(state: State) -> Array:
    """Newton's steps where f is strictly concave, infinite elsewhere; shape (m, d)."""
    known = np.isfinite(state.hessian).all(axis=(1, 2), keepdims=True)
    values, V = np.linalg.eigh(np.where(known, state.hessian, 0.0))
    with np.errstate(all="ignore"):
        turned = V.swapaxes(1, 2) @ state.gradient[:, :, None]
        step = -(V @ (turned / values[:, :, None]))[:, :, 0]
        return np.where((values[:, :1] > 0.0) & (np.abs(step) < 1e150), step, np.inf)


def is_top(state: State, distance: float) -> Array:
    """Whether f is strictly concave and Newton's step no longer than a distance."""
    return np.asarray(np.linalg.norm(newton_steps(state), axis=1) <= distance)


def _maps(element: Element) -> Maps:
    """The maps of the one distance that a kernel measures, if mean shift can climb the element."""
    kernel = element.kernel
    if kernel.program.kind != "radial" or kernel.flags.convex_profile is not True:
        raise InputError(
            "mean shift needs a kernel with a convex, decreasing profile of one squared distance, "
            f"which {kernel!r} is not known to have; mercer.preimage takes any kernel"
        )
    if element.batch is not None:
        raise InputError("mean shift takes one element; choose one of the batch, psi[j]")
    if is_sparse(element.points):
        raise InputError("mean shift needs dense points; use X.toarray()")
    maps: Maps = kernel.program.variables[0].maps  # type: ignore[union-attr]
    d = n_columns(element.points)
    for step in maps:
        square = isinstance(step, Matrix) and step.array.shape[0] == step.array.shape[1]
        invertible = square and column_rank(step.array) == d  # type: ignore[attr-defined]
        if not isinstance(step, Scales) and not invertible:
            raise InputError(
                f"the kernel does not see every direction of the data ({step!r}), so the density "
                "has no modes; leave those columns out of the data instead"
            )
    return tuple(maps)


def _group(element: Element, maps: Maps, scale: float) -> Group:
    """The points of one element with coefficients > 0, mapped, and these times a scale."""
    kernel, in_pieces = element.kernel, isinstance(element.points, Chunks)
    _, lowest, mass = weight_range(element)
    if lowest < 0.0 or mass == 0.0:
        raise InputError(
            "mean shift needs coefficients >= 0, not all zero; mercer.preimage takes elements "
            "with coefficients of both signs"
        )
    program = replace(kernel.program, variables=(Distance(),))
    if not (1e-76 <= kernel_length(program) <= 1e76 and program.value_at_zero <= 1e150):
        raise InputError(
            f"mean shift needs a kernel that is positive at distance 0 (at most 1e150) and falls "
            f"over some length (1e-76 to 1e76), which {kernel!r} does not; use Gaussian, or "
            "Epanechnikov instead of a flat kernel; rescale the data if they are very small"
        )
    if in_pieces:
        if any(program.cusps):
            raise InputError(
                f"{kernel!r} has a cusp at each point, and mean shift looks among all rows in "
                "memory for the nearest; use a smooth kernel for rows in pieces"
            )
        points, d = element.points, element.points.tail
        z = points.mapped(_mapped, maps, tail=d, dtype=np.float64)
        rows = z.zip(element.coef.scale(scale).chunks)
        return Group(kernel, program, rows, np.array([mass * scale]))
    coef = weights_of(element)
    used = coef > 0
    X = np.asarray(element.points, dtype=np.float64)[used]
    return Group(kernel, program, _mapped(X, maps), coef[used] * scale)
