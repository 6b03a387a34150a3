"""Tapes: a profile translated into steps of the compiled core, on a few slots.

Every step computes f(a x + b), so that scalings and shifts of arguments cost nothing: while the
expression is walked, a value is carried as (slot, a, b) and stored in a slot only where it must be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from mercer.engine.programs._expr import Add, Const, Cut, Exp, Expr, Log, Matern, Mul, Pow, Var
from mercer.engine.programs._jets import magnifies
from mercer.engine.programs._log_profile import is_nonnegative

MAX_SLOTS, MAX_STEPS = 8, 24  # as in native/task.hpp

_OPS = [
    "linear", "exponential", "logarithm", "power", "large_power", "root", "inverse",
    "inverse_root", "whole_power", "matern3", "matern5", "add", "multiply", "cut",
]  # fmt: skip

Step = tuple[int, int, int, int, float, float, float]
"""(operation, slot written, first slot read, second slot read, a, b, p)."""


class _NoTapeError(Exception):
    """The profile has a part the compiled core does not support, or is too long for it."""


@dataclass(frozen=True)
class _Affine:
    """The value a * slot + b."""

    slot: int
    a: float = 1.0
    b: float = 0.0


@dataclass
class _Writer:
    steps: list[Step] = field(default_factory=list)
    slots: int = 1  # slot 0 is the variable
    known: dict[Expr, _Affine] = field(default_factory=dict)

    def step(
        self,
        op: str,
        x: int,
        y: int = 0,
        a: float = 1.0,
        b: float = 0.0,
        p: float = 0.0,
        out: int | None = None,
    ) -> _Affine:
        """Append a step; it writes to a new slot, or over the slot `out`."""
        new = out is None
        if len(self.steps) >= MAX_STEPS or (new and self.slots >= MAX_SLOTS):
            raise _NoTapeError
        slot = self.slots if out is None else out
        self.steps.append((_OPS.index(op), slot, x, y, a, b, p))
        self.slots += new
        return _Affine(slot)

    def function(self, op: str, arg: Expr, p: float = 0.0) -> _Affine:
        x = self.visit(arg)
        return self.step(op, x.slot, a=x.a, b=x.b, p=p)

    def written(self, x: _Affine) -> int:
        """The slot that holds the value itself."""
        return x.slot if (x.a, x.b) == (1.0, 0.0) else self.step("linear", x.slot, 0, x.a, x.b).slot

    def visit(self, node: Expr) -> _Affine:
        if node not in self.known:
            self.known[node] = self._lower(node)
        return self.known[node]

    def _lower(self, node: Expr) -> _Affine:
        match node:
            case Var(index=0):
                return _Affine(0)
            case Add(left=Const(value=c), right=y):
                x = self.visit(y)
                return _Affine(x.slot, x.a, x.b + c)
            case Mul(left=Const(value=c), right=y):
                x = self.visit(y)
                return _Affine(x.slot, c * x.a, c * x.b)
            case Add(left=left, right=right):
                x, z = self.visit(left), self.visit(right)
                both = self.step("add", x.slot, z.slot, x.a, z.a)
                return _Affine(both.slot, 1.0, x.b + z.b)
            case Mul(left=left, right=right):
                x, z = self._without_shift(left), self._without_shift(right)
                return self.step("multiply", x.slot, z.slot, x.a * z.a)
            case Cut(gate=gate, body=body, outside=0.0):
                g = self.visit(gate)
                return self.step("cut", g.slot, self.written(self.visit(body)), g.a, g.b)
            case Exp(arg=arg):
                return self.function("exponential", arg)
            case Log(arg=arg):
                return self.function("logarithm", arg)
            case Matern(arg=arg, nu=nu):
                return self.function("matern3" if nu == 1.5 else "matern5", arg)
            case Pow(arg=arg, exponent=p):
                return self._power(arg, p)
        raise _NoTapeError

    def _without_shift(self, node: Expr) -> _Affine:
        x = self.visit(node)
        return x if x.b == 0.0 else _Affine(self.written(x))

    def _power(self, arg: Expr, p: float) -> _Affine:
        special = {0.5: "root", -1.0: "inverse", -0.5: "inverse_root"}
        if p in special:
            return self.function(special[p], arg)
        if p == int(p) and abs(p) <= 64:  # by multiplication: any sign of the argument
            if p > 0:
                return self.function("whole_power", arg, p)
            return self.step("whole_power", self.function("inverse", arg).slot, p=-p)
        if not magnifies(p):
            return self.function("power", arg, p)
        match arg:
            case Add(left=Const(value=c), right=x) if c > 0 and is_nonnegative(x):
                return self.step("exponential", self._log_of_sum(c, x).slot, a=p)
        if p == int(p):  # of any sign
            raise _NoTapeError
        return self.function("large_power", arg, p)

    def _log_of_sum(self, c: float, x: Expr) -> _Affine:
        """log(c + x) = log(v) + (x - (v - c)) / v with v = c + x as rounded."""
        t = self._without_shift(x)
        v = self.step("linear", t.slot, a=t.a, b=c).slot
        error = self.step("linear", v, b=-c).slot
        self.step("add", t.slot, error, t.a, -1.0, out=error)
        log = self.step("inverse", v).slot
        self.step("multiply", error, log, out=error)
        self.step("logarithm", v, out=log)
        return self.step("add", error, log, b=1.0, out=v)


@lru_cache(maxsize=1024)
def tape(profile: Expr) -> tuple[tuple[Step, ...], int] | None:
    """The steps of a profile of one variable and the slot of its result; None if it has no tape."""
    writer = _Writer()
    try:
        result = writer.written(writer.visit(profile))
    except _NoTapeError:
        return None
    return tuple(writer.steps), result
