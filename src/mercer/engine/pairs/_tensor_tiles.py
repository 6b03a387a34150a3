"""Tiles of a program on tensors: the variables of pairs and the profile, with derivatives.

The equivalent of `_tiles` in a tensor's own namespace, so that torch can record it. Where two
points coincide, a square root of their squared distance has no slope, and backpropagation through
it would give NaN. There the profile is its Taylor polynomial, from the same jets and with the same
convention for cusps (the symmetric derivative) as everywhere in the engine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from mercer._tensors import (
    detached,
    float_bits,
    is_abstract,
    is_tensor,
    is_tracked,
    namespace,
    put,
    recomputed,
    unknown_after,
)
from mercer.engine._sizes import pieces
from mercer.engine.pairs._coordinates import tensor_sums
from mercer.engine.pairs._distance_limits import CLOSE, recompute_below
from mercer.engine.pairs._distances import _DIRECT_DIMENSIONS, _SAMPLE, bound_on_error
from mercer.engine.pairs._distances import middle as middle_of_arrays
from mercer.engine.pairs._tiles import without_cusps
from mercer.engine.programs._expr import (
    Add,
    Const,
    Cut,
    Exp,
    Expr,
    Log,
    LogAddExp,
    Mul,
    Opaque,
    Pow,
    Tanh,
    Unary,
    Var,
)
from mercer.engine.programs._float_range import fits_float32, profile_needs_float64
from mercer.engine.programs._jets import Jet, evaluate, is_zero, plus, times
from mercer.engine.programs._maps import apply_all
from mercer.engine.programs._program import (
    Block,
    Coordinates,
    Distance,
    Dot,
    Gap,
    Norm,
    Own,
    Program,
    Variable,
    maps_of,
)
from mercer.exceptions import InputError

_ENTRIES = 1 << 18  # coordinates that are subtracted at once: 2 MiB
_TINY = {32: 1e-30, 64: 1e-200}  # a squared distance whose root has a finite inverse


def require_tensors(program: Program) -> None:
    """Raise unless a program can be run on tensors."""
    why = None
    for v in program.variables:
        inner = v.variable if isinstance(v, Own) else v
        if isinstance(inner, Block):
            why = "calls a function of NumPy arrays"
        elif not all(step.is_linear for step in maps_of(v)):
            why = "maps points by a function of NumPy arrays"
    if any(isinstance(node, Opaque) for node in nodes(program.profile)):
        why = "has a profile made of NumPy functions that cannot be recorded"
    if why:
        raise InputError(f"this kernel {why}, so it takes no tensors; use X.detach().cpu().numpy()")


class TensorPairs:
    """Points X (columns of a tile) and queries Y (rows of a tile) as a program sees them.

    Attributes
    ----------
    points, queries : list of (n, p) and (m, p) arrays, one for each variable
        Mapped; for distances, relative to a point in the middle of the data.
    """

    def __init__(self, program: Program, X: Any, Y: Any, order: int = 0) -> None:
        require_tensors(program)
        self.program, self.xp = program, namespace(X)
        self.dtype, self.device = X.dtype, X.device
        self.is_tracked = is_tracked(X, Y)
        self.order = order
        self.points, self.queries = [], []
        self._below: dict[int, float] = {}
        for v in program.variables:
            x, y = X, Y
            if isinstance(v, Distance):
                centre = middle(X)
                x, y = X - centre, Y - centre
            self.points.append(apply_all(maps_of(v), x))
            self.queries.append(self.points[-1] if Y is X else apply_all(maps_of(v), y))

    def measured(self) -> bool:
        """Find the distances that need differences; False if float32 would lose digits.

        Products about the middle are off by 4 eps radius^2, which may change the profile, and so
        are derivatives (moments about the middle).
        """
        single = float_bits(self.points[0]) == 32 if self.points else False
        name = "float32" if single else "float64"
        if single and profile_needs_float64(self.program, self.order):
            return False
        for i, v in enumerate(self.program.variables):
            if not isinstance(v, Distance) or is_abstract(self.points[i]):
                continue
            radius2 = self._radius2(self.queries[i])
            if single and not fits_float32(
                self.program, max(radius2, self._radius2(self.points[i]))
            ):
                return False
            direct = self.points[i].shape[1] <= _DIRECT_DIMENSIONS
            if radius2 == 0.0 or (direct and not self.order):
                continue
            error, order = bound_on_error(radius2, name), max(self.order, int(self.is_tracked))
            below = recompute_below(self.program, i, name, error, radius2, order=order)
            self._below[i] = min(below, radius2)
            if single and below > 1.001 * CLOSE * radius2:
                return False
        return True

    def _radius2(self, z: Any) -> float:
        z = detached(z)
        return float(self.xp.max(self.xp.sum(z * z, axis=1)))

    @staticmethod
    def rowwise(program: Program, X: Any, Y: Any) -> list[Any]:
        """The variables of the pairs (x_j, y_j), row by row, each of shape (m,)."""
        xp = namespace(X)
        out: list[Any] = []
        for v in program.variables:
            maps = maps_of(v)
            x, y = apply_all(maps, X), apply_all(maps, Y)
            gap = apply_all(maps, Y - X)
            match v:
                case Distance():
                    out.append(xp.sum(gap * gap, axis=1))
                case Gap(period=period):
                    out.append(wrapped(gap[:, 0], period))
                case Dot():
                    out.append(xp.sum(y * x, axis=1))
                case Norm(of=of):
                    z = y if of == "row" else x
                    out.append(xp.sum(z * z, axis=1))
                case Coordinates(kind=kind):
                    out.append(tensor_sums(kind, y, x))
                case Own(of=of, variable=Coordinates(kind=kind)):
                    z = y if of == "row" else x
                    out.append(tensor_sums(kind, z, z))
        return out

    def tile(self, points: list[Any], queries: list[Any]) -> list[Any]:
        """The variables of some queries and points, each broadcastable to (rows, columns)."""
        both = zip(self.program.variables, points, queries, strict=True)
        return [self._variable(i, v, x, y) for i, (v, x, y) in enumerate(both)]

    def _variable(self, i: int, v: Variable, x: Any, y: Any) -> Any:
        xp = self.xp
        match v:
            case Distance():
                return squared_distances(x, y, self._below.get(i, 0.0))
            case Dot():
                return y @ x.T
            case Norm(of="row"):
                return xp.sum(y * y, axis=1)[:, None]
            case Norm():
                return xp.sum(x * x, axis=1)[None, :]
            case Gap(period=period):
                return wrapped(y[:, 0][:, None] - x[:, 0][None, :], period)
            case Coordinates(kind=kind):
                return tensor_sums(kind, y[:, None, :], x[None, :, :])
            case Own(of=of, variable=Coordinates(kind=kind)):
                z = y if of == "row" else x
                own = tensor_sums(kind, z, z)
                return own[:, None] if of == "row" else own[None, :]
        raise AssertionError(v)  # pragma: no cover

    def jet(self, inputs: list[Any], shape: tuple[int, ...]) -> tuple[Jet, Any]:
        """The profile with derivatives up to `order`, and where queries are at cusps (or None)."""
        xp, program, order = self.xp, self.program, self.order

        def full(a: Any) -> Any:
            if not is_tensor(a):
                return xp.full(shape, float(a), dtype=self.dtype, device=self.device)
            return xp.broadcast_to(a, shape)

        if not self.is_tracked or not _is_rough(program):
            jet = evaluate(program.profile, inputs, order).each(full)
            return without_cusps(program, jet, inputs)
        plain = [detached(v) for v in inputs]
        masks = {
            v: plain[v] == 0
            for v, kind in enumerate(program.variables)
            if isinstance(kind, Distance) or (isinstance(kind, Gap) and program.cusps[v])
        }
        anywhere = xp.any(xp.stack([xp.broadcast_to(m, shape) for m in masks.values()]), axis=0)
        if not bool(xp.any(anywhere)):
            return evaluate(program.profile, inputs, order).each(full), None
        at = _with_slopes(program, evaluate(program.profile, plain, 2).each(full), plain, masks)
        at, cusp = without_cusps(program, at, plain)
        known = 2 if _is_mixed(at, set(masks)) else 3
        if order == known:
            raise InputError(
                "third derivatives of this product or sum of kernels are not known where points "
                "coincide; detach the Hessian"
            )
        safe = [_apart(v, masks[i]) if i in masks else v for i, v in enumerate(inputs)]
        away = evaluate(program.profile, safe, order).each(full)
        return _chosen(anywhere, _taylor(at, inputs, order, anywhere, known), away), cusp


def _apart(u: Any, zero: Any) -> Any:
    """The variable with zeros replaced by a number that occurs, so that nothing overflows."""
    xp = namespace(u)
    other = xp.max(detached(xp.abs(u)))
    other = xp.where(other > 0, other, xp.ones_like(other))
    return xp.where(zero, xp.broadcast_to(other, u.shape), u)


def _with_slopes(program: Program, jet: Jet, inputs: list[Any], masks: dict[int, Any]) -> Jet:
    """The jet with the limits of slopes that are zero times infinity at distance zero.

    Of several variables a limit depends on the others, so it is the slope at a tiny distance.
    """
    xp, first = namespace(jet.value), list(jet.first)
    unknown = {v: xp.isnan(first[v]) & mask for v, mask in masks.items() if not is_zero(first[v])}
    unknown = {v: mask for v, mask in unknown.items() if bool(xp.any(mask))}
    if len(inputs) == 1 or not unknown:  # `without_cusps` knows the limit of one variable
        return jet
    tiny = _TINY[float_bits(jet.value)]
    near = [xp.where(masks[i], tiny, u) if i in masks else u for i, u in enumerate(inputs)]
    slopes = evaluate(program.profile, near, 1).first
    for v, mask in unknown.items():
        first[v] = xp.where(mask, slopes[v], first[v])
    return Jet(jet.value, tuple(first), jet.second)


def _is_mixed(jet: Jet, distances: set[int]) -> bool:
    """Whether third derivatives where points coincide need more than the jet.

    They need mixed derivatives in a distance and another variable, which `without_cusps` leaves
    out, and third ones in other variables. Those of a function of one distance are zero.
    """
    count = range(len(jet.first))
    return any(
        not is_zero(jet.second[v][w])
        for v in count
        for w in count
        if len(count) > 1 and not (v == w and v in distances)
    )


def _taylor(jet: Jet, inputs: list[Any], order: int, mask: Any, known: int) -> Jet:
    """The jet, and how it changes with the inputs, up to second derivatives in all.

    That gives all derivatives up to the order `known`. The next are NaN under the mask.
    """
    count = range(len(inputs))
    move = [v - detached(v) for v in inputs]  # zero, with a slope of one
    first = list(jet.first)
    value = jet.value
    for v in count:
        bent: Any = 0
        for w in count:
            bent = plus(bent, times(jet.second[v][w], move[w]))
        first[v] = plus(jet.first[v], bent)
        value = plus(value, times(plus(jet.first[v], times(0.5, bent)), move[v]))
    total = namespace(value).broadcast_to(sum(move[1:], start=move[0]), value.shape)
    value = value + unknown_after(known, total, mask)
    rest = unknown_after(known - order, total, mask)
    found = Jet(value, tuple(first) if order else (), jet.second if order == 2 else ())
    return replace(found.each(partial(plus, rest)), value=value)


def _chosen(mask: Any, one: Jet, other: Jet) -> Jet:
    """The entries of one jet under a mask, those of the other elsewhere."""
    xp = namespace(one.value)

    def choose(a: Any, b: Any) -> Any:
        return 0 if is_zero(a) and is_zero(b) else xp.where(mask, a, b)

    first = tuple(map(choose, one.first, other.first))
    rows = zip(one.second, other.second, strict=True)
    return Jet(
        choose(one.value, other.value), first, tuple(tuple(map(choose, a, b)) for a, b in rows)
    )


def squared_distances(x: Any, y: Any, below: float) -> Any:
    """|y_j - x_i|^2: as a product of matrices; from differences in few dimensions, or if < below.

    The product is clipped at zero without losing its derivative.
    """
    xp = namespace(x)
    if x.shape[1] <= _DIRECT_DIMENSIONS:
        u: Any = 0
        for k in range(x.shape[1]):
            gap = y[:, k][:, None] - x[:, k][None, :]
            u = plus(u, gap * gap)
        return u
    u = xp.sum(y * y, axis=1)[:, None] + xp.sum(x * x, axis=1)[None, :] - 2.0 * (y @ x.T)
    plain = detached(u)
    u = u + xp.where(plain < 0, -plain, xp.zeros_like(plain))
    if below <= 0.0:
        return u
    rows, columns = xp.nonzero(plain < below)
    if not rows.shape[0]:
        return u
    some = pieces(rows.shape[0], max(1, _ENTRIES // x.shape[1]))
    parts = [recomputed(_rowwise_distances, y, x, rows[at], columns[at]) for at in some]
    return put(u, rows, columns, xp.concat(parts))


def _rowwise_distances(y: Any, x: Any, rows: Any, columns: Any) -> Any:
    xp = namespace(x)
    gap = xp.take(y, rows, axis=0) - xp.take(x, columns, axis=0)
    return xp.sum(gap * gap, axis=1)


def wrapped(gap: Any, period: float | None) -> Any:
    """A difference minus the nearest multiple of the period, in [-period/2, period/2]."""
    if period is None:
        return gap
    return gap - period * namespace(gap).round(detached(gap) / period)


def middle(X: Any) -> Any:
    """A point in the middle of the data: medians of a sample, without gradient history."""
    if not is_tensor(X):
        return middle_of_arrays(X)
    Z = detached(X)
    sample = Z[:: max(1, Z.shape[0] // _SAMPLE), :]
    return namespace(X).sort(sample, axis=0)[sample.shape[0] // 2, :][None, :]


def nodes(expr: Expr) -> list[Expr]:
    """All nodes of an expression."""
    found, stack = [], [expr]
    while stack:
        node = stack.pop()
        found.append(node)
        parts = (getattr(node, name, None) for name in ("left", "right", "gate", "body", "arg"))
        stack += [part for part in parts if part is not None]
    return found


@lru_cache(maxsize=1024)
def _is_rough(program: Program) -> bool:
    """Whether backpropagation through the profile may meet 0 times infinity at distance zero."""
    measured = any(isinstance(v, Distance | Gap) for v in program.variables)
    return measured and not all(_is_analytic(node) for node in nodes(program.profile))


def _is_analytic(node: Expr) -> bool:
    match node:
        case Pow(exponent=p) if p == int(p) and p > 0:
            return True
        case Pow(arg=Add(left=Const(value=c))) | Log(arg=Add(left=Const(value=c))):
            return c > 0
        case Unary():
            return isinstance(node, Exp | Tanh)
    return isinstance(node, Var | Const | Add | Mul | Cut | LogAddExp)
