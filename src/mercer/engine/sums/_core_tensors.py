"""Sums and Gram matrices of torch tensors on the CPU, by the engines for NumPy arrays.

A tensor on the host shares its memory with a NumPy array, so values need no copy. The derivative of
a kernel sum is made of kernel sums: with S = sum_i a_i k(x_i, y_j) and its cotangent g,

    da_i = sum_j g_j k(x_i, y_j),   dy_j = g_j sum_i a_i grad_y k(x_i, y_j),   dx_i likewise,

which the same engines compute without a matrix. A second derivative records the tiles of
`_tensor_sums` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._tensors import from_host, host, is_torch, with_backward
from mercer.engine._compiled import core
from mercer.engine.programs._coef import Coef, Dense, LowRank
from mercer.engine.programs._program import Program
from mercer.engine.sums._fields import Fields

HostFields = Callable[..., Fields]


@dataclass(frozen=True)
class Host:
    """The engines for NumPy arrays."""

    gram: Callable[[Program, Any, Any], Array]
    fields: HostFields


def runs_on_host(program: Program, X: Any) -> bool:
    """Whether the compiled core can read a tensor and knows its program."""
    here = is_torch(X) and X.device.type == "cpu" and get_options().engine != "blocked"
    return here and program.runs_on_core and core() is not None


def host_gram(host_engines: Host, program: Program, X: Any, Y: Any, recorded: Any) -> Any:
    """The matrix k(x_i, y_j), with its derivative."""

    def forward(*arrays: Any) -> Any:
        return host_engines.gram(program, *_numbers(*arrays))

    def backward(g: Any, needed: tuple[bool, ...], *arrays: Any) -> list[Any]:
        (x, y), G = _numbers(*arrays), np.ascontiguousarray(host(g))
        how: Any = {"order": 1, "paired": True}
        return [
            host_engines.fields(program, y, x, Dense(G.T), **how).gradient if needed[0] else None,
            host_engines.fields(program, x, y, Dense(G), **how).gradient if needed[1] else None,
        ]

    return with_backward(forward, backward, recorded, X, Y)


def host_values(host_engines: Host, program: Program, X: Any, Y: Any, A: Any, recorded: Any) -> Any:
    """sum_i A[i, b] k(x_i, y_j), shape (m, b), with its derivative."""

    def forward(*arrays: Any) -> Any:
        x, y, a = _numbers(*arrays)
        return host_engines.fields(program, x, y, Dense(a)).value

    def backward(g: Any, needed: tuple[bool, ...], *arrays: Any) -> list[Any]:
        (x, y, a), G = _numbers(*arrays), np.ascontiguousarray(host(g))
        dx = _slopes(host_engines, program, y, x, G, a) if needed[0] else None
        dy = _slopes(host_engines, program, x, y, a, G) if needed[1] else None
        da = host_engines.fields(program, y, x, Dense(G)).value if needed[2] else None
        return [dx, dy, da]

    return with_backward(forward, backward, recorded, X, Y, A)


def _slopes(engines: Host, program: Program, X: Any, Y: Any, A: Array, G: Array) -> Any:
    """sum_i <A_i, G_j> grad_y k(x_i, y_j), shape (m, d)."""
    if A.shape[1] == 1:
        gradient = engines.fields(program, X, Y, Dense(A), order=1).gradient
        assert gradient is not None
        return gradient[:, 0] * G
    pairs: Coef = LowRank(A, np.ascontiguousarray(G.T))
    return engines.fields(program, X, Y, pairs, order=1, paired=True).gradient


def host_fields(
    engines: Host, program: Program, X: Any, Y: Any, coef: Coef, order: int, paired: bool
) -> Fields:
    """Values and derivatives that torch does not record."""
    x, y, *arrays = _numbers(X, Y, *coef.arrays)
    f = engines.fields(program, x, y, coef.rebuilt(arrays), order=order, paired=paired)
    return f.each(lambda a: from_host(np.asarray(a, dtype=x.dtype), X))


def _numbers(*tensors: Any) -> list[Any]:
    """The tensors as arrays on the host; a tensor that occurs twice gives one array."""
    seen: dict[Any, Array] = {}
    keys = [(z.data_ptr(), tuple(z.shape), tuple(z.stride())) for z in tensors]
    both = zip(keys, tensors, strict=True)
    return [seen.setdefault(key, np.ascontiguousarray(host(z))) for key, z in both]
