"""Programs: a kernel as the engine runs it, a profile of variables measured between two points.

    k(x, y) = profile(v_1(x, y), ..., v_g(x, y))

A radial kernel has one variable, a squared distance; a dot-product kernel one inner product;
sums and products of kernels of different kinds, metrics or columns have several. The engine never
sees a Kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.programs._expr import Const, Expr, Var, substitute
from mercer.engine.programs._jets import derivatives_at_zero, evaluate, profile_at
from mercer.engine.programs._log_profile import log_expr
from mercer.engine.programs._maps import Maps, apply_all
from mercer.engine.programs._tape import Step, tape


@dataclass(frozen=True)
class Distance:
    """u = |Ax - Ay|^2."""

    maps: Maps = ()


@dataclass(frozen=True)
class Dot:
    """t = <Ax, Ay>."""

    maps: Maps = ()


@dataclass(frozen=True)
class Norm:
    """|Ax|^2 of the point (`of="column"`) or of the query (`of="row"`)."""

    of: str
    maps: Maps = ()


@dataclass(frozen=True)
class Gap:
    """v = Ay - Ax, query minus point, of points that the maps take to one coordinate.

    With a period the points lie on a circle: v is wrapped into [-period/2, period/2].
    """

    maps: Maps = ()
    period: float | None = None


@dataclass(frozen=True)
class Coordinates:
    """v = sum_c f(x_c, y_c) over the coordinates of Ax and Ay, with f(x, y) by its name:

        minimum     min(x, y)
        harmonic    x y / (x + y), 0 at x = y = 0
        chi2        (x - y)^2 / (x + y), 0 at x = y = 0
        absolute    |x - y|
        differing   1 where x != y, else 0
        equal       1 / d where x = y, else 0: the share of equal coordinates

    Points must be >= 0 for the first three. For the last two they may be any objects that can be
    hashed, in a two-dimensional array.
    """

    kind: str
    maps: Maps = ()


@dataclass(frozen=True)
class Block:
    """Any function of two blocks of points, which need not be vectors."""

    function: Callable[[Any, Any], Any]
    diagonal: Callable[[Any], Any]


@dataclass(frozen=True)
class Own:
    """A variable at (x, x), for the point x (`of="column"`) or the query x (`of="row"`)."""

    of: str
    variable: Coordinates | Block

    @property
    def maps(self) -> Maps:
        return maps_of(self.variable)


Variable = Distance | Dot | Norm | Gap | Coordinates | Block | Own
_Valued = Coordinates | Block | Own  # without derivatives in the points
Spectrum = Callable[[Array, int], Array]


def maps_of(v: Variable) -> Maps:
    """The maps before a variable; none before a function of blocks."""
    return () if isinstance(v, Block) else v.maps


@dataclass(frozen=True)
class Program:
    """A profile of variables.

    `spectrum`, where it is known, gives the spectral density of a radial program: a function of the
    squared frequencies |w|^2 and the dimension of the (mapped) points. `is_normalised` programs are
    1 on the diagonal by construction.
    """

    variables: tuple[Variable, ...]
    profile: Expr
    spectrum: Spectrum | None = field(default=None, compare=False)
    is_normalised: bool = False

    @cached_property
    def log_profile(self) -> Expr | None:
        """log k as an expression; None if the form of k does not show that it is positive."""
        return log_expr(self.profile)

    @cached_property
    def tape(self) -> tuple[tuple[Step, ...], int] | None:
        """The profile as steps of the compiled core; None if it has several variables or none."""
        return tape(self.profile) if len(self.variables) == 1 else None

    @cached_property
    def value_at_zero(self) -> float:
        """The profile where every variable is zero: k(x, x) of a radial kernel."""
        with np.errstate(all="ignore"):
            at_zero = evaluate(self.profile, [np.zeros(1) for _ in self.variables]).value
        return float(np.ravel(at_zero)[0])

    @cached_property
    def runs_on_core(self) -> bool:
        """Whether the compiled core runs this: one distance or inner product, a taped profile."""
        return self.kind in ("radial", "dot") and self.tape is not None

    @cached_property
    def kind(self) -> str:
        """`radial`, `dot`, `constant` (no variable) or `mixed` (everything else)."""
        if not self.variables:
            return "constant"
        names = {Distance: "radial", Dot: "dot"}
        return names.get(type(self.variables[0]), "mixed") if len(self.variables) == 1 else "mixed"

    @cached_property
    def maps(self) -> Maps:
        """The maps before the only variable; none if there are several variables, or none."""
        return maps_of(self.variables[0]) if len(self.variables) == 1 else ()

    @cached_property
    def is_translation_invariant(self) -> bool:
        """Whether all variables are distances, so that k(x, x) is constant."""
        return all(isinstance(v, Distance) for v in self.variables)

    @cached_property
    def has_derivatives(self) -> bool:
        """Whether every variable can be differentiated in the points."""
        return all(
            not isinstance(v, _Valued) and all(step.is_linear for step in v.maps)
            for v in self.variables
        )

    @cached_property
    def derivatives_at_zero(self) -> tuple[tuple[float, float], ...]:
        """For each variable the first and second derivative of the profile at zero."""
        count = len(self.variables)
        return tuple(derivatives_at_zero(self.profile, count, v) for v in range(count))

    @cached_property
    def cusps(self) -> tuple[bool, ...]:
        """For each variable: is the slope of the profile infinite at zero distance (Laplace)?

        A profile of a gap may have a kink there, which it marks by a second derivative of NaN.
        """
        return tuple(
            (isinstance(v, Distance) and math.isinf(first))
            or (isinstance(v, Gap) and math.isfinite(first) and math.isnan(second))
            for v, (first, second) in zip(self.variables, self.derivatives_at_zero, strict=True)
        )

    @cached_property
    def has_hidden_slope(self) -> bool:
        """Whether the slope at zero is finite, but computed as zero times infinity.

        An example is -u exp(-sqrt(u)), of a squared distance u.
        """
        if self.kind != "radial" or not math.isfinite(self.derivatives_at_zero[0][0]):
            return False
        return math.isnan(profile_at(self.profile, np.zeros(1), 1)[1][0])

    @cached_property
    def is_smooth(self) -> bool:
        """Whether first and second derivatives are finite at zero distance, as for the Gaussian."""
        return all(
            math.isfinite(first) and math.isfinite(second)
            for v, (first, second) in zip(self.variables, self.derivatives_at_zero, strict=True)
            if isinstance(v, Distance | Gap)
        )

    @cached_property
    def diagonal(self) -> Program:
        """k(x, x) as a program in the query alone."""
        return Program((), Const(1.0)) if self.is_normalised else _diagonal(self, "row")

    def __add__(self, other: Program) -> Program:
        variables, left, right = _merge(self, other)
        return Program(variables, left + right, _added(self, other, variables))

    def __mul__(self, other: Program) -> Program:
        variables, left, right = _merge(self, other)
        unit = self.is_normalised and other.is_normalised
        return Program(variables, left * right, _scaled(self, other), unit)

    def normalised(self) -> Program:
        """k(x, y) / sqrt(k(x, x) k(y, y))."""
        sides = [_diagonal(self, of) for of in ("row", "column")]
        # separately: their product may overflow or underflow
        row, column = (Program(side.variables, side.profile**-0.5) for side in sides)
        return replace(self * (row * column), is_normalised=True)

    def mapped(self, maps: Maps) -> Program:
        """The program on mapped points, k(Ax, Ay)."""
        return replace(self, variables=tuple(_mapped(v, maps) for v in self.variables))


def _merge(a: Program, b: Program) -> tuple[tuple[Variable, ...], Expr, Expr]:
    """Bring two programs onto one list of variables; equal variables are computed once."""
    index = {v: i for i, v in enumerate(a.variables)}
    moved = [_node(v, index.setdefault(v, len(index))) for v in b.variables]
    return tuple(index), a.profile, substitute(b.profile, moved)


def _added(a: Program, b: Program, variables: tuple[Variable, ...]) -> Spectrum | None:
    """Spectra of the same distance add; a constant has its mass at zero and no density."""
    f, g = a.spectrum, b.spectrum
    if f is None or g is None or len(variables) != 1:
        return None
    return lambda squared, dim: f(squared, dim) + g(squared, dim)


def _scaled(a: Program, b: Program) -> Spectrum | None:
    """A constant factor scales a spectrum; other products have none in closed form."""
    for constant, other in ((a, b), (b, a)):
        spectrum = other.spectrum
        if isinstance(constant.profile, Const) and spectrum is not None:
            c = constant.profile.value
            return lambda squared, dim: c * spectrum(squared, dim)
    return None


def _node(v: Variable, index: int) -> Expr:
    measured = v.variable if isinstance(v, Own) else v
    return Var(index, nonnegative=isinstance(measured, Distance | Norm | Coordinates))


def _diagonal(program: Program, of: str) -> Program:
    variables: list[Variable] = []
    nodes: list[Expr] = []
    for v in program.variables:
        match v:
            case Distance() | Gap() | Coordinates(kind="absolute" | "chi2" | "differing"):
                nodes.append(Const(0.0))
                continue
            case Coordinates(kind="equal"):
                nodes.append(Const(1.0))
                continue
            case Dot(maps=maps) | Norm(maps=maps):
                single: Variable = Norm(of, maps)
            case Coordinates() | Block():
                single = Own(of, v)
            case Own(variable=inner):
                single = Own(of, inner)
        if single not in variables:
            variables.append(single)
        nodes.append(_node(single, variables.index(single)))
    return Program(tuple(variables), substitute(program.profile, nodes))


@dataclass(frozen=True)
class _Mapped:
    """A block function of mapped points, comparable by value."""

    function: Callable[..., Any]
    maps: Maps

    def __call__(self, *blocks: Any) -> Any:
        return self.function(*(apply_all(self.maps, block) for block in blocks))


def _mapped(v: Any, maps: Maps) -> Any:
    match v:
        case Block(function=f, diagonal=g):
            return Block(_Mapped(f, maps), _Mapped(g, maps))
        case Own(of=of, variable=inner):
            return Own(of, _mapped(inner, maps))
    return replace(v, maps=maps + v.maps)
