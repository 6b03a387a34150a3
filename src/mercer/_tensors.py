"""Arrays of other libraries (PyTorch tensors, any array-API library), called tensors here.

This is the only module that imports torch. Everything else computes in a tensor's own namespace
(`namespace`), so that library, device and dtype stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import lru_cache
from typing import Any

import numpy as np

from mercer.exceptions import InputError

LARGEST_COORDINATE = 1e150  # of a coordinate: its square is a float64 with room for a sum


def is_tensor(a: Any) -> bool:
    """Whether a is an array of another library: a torch tensor, or one with the array API."""
    if isinstance(a, np.ndarray | np.generic):
        return False
    return is_torch(a) or hasattr(a, "__array_namespace__")


def is_torch(a: Any) -> bool:
    """Whether a is a torch tensor (tested without importing torch)."""
    return hasattr(a, "requires_grad") and hasattr(a, "is_leaf")


def namespace(*arrays: Any) -> Any:
    """The array-API namespace of the first argument that has one, else NumPy."""
    for a in arrays:
        if isinstance(a, np.ndarray):
            return np
        if is_torch(a):
            return _torch_namespace()
        get = getattr(a, "__array_namespace__", None)
        if get is not None:
            return get()
    return np


@lru_cache(maxsize=1)
def _torch_namespace() -> Any:
    try:
        import array_api_compat.torch as xp
    except ImportError as error:
        raise InputError(
            "torch tensors need the package array-api-compat; pip install 'mercer[torch]'"
        ) from error
    return xp


def float_bits(a: Any) -> int:
    """The bits of a floating-point type: 32 or 64; 0 for all other types."""
    xp = namespace(a)
    return {xp.float32: 32, xp.float64: 64}.get(a.dtype, 0)


def constant(array: Any, like: Any) -> Any:
    """A NumPy array as an array of the library, device and (if not integer) dtype of another."""
    if not is_tensor(like):
        return array
    xp = namespace(like)
    whole = np.asarray(array).dtype.kind in "iu"
    dtype = xp.int64 if whole else like.dtype
    if is_torch(like):  # without sharing memory with a read-only array
        return xp.tensor(np.asarray(array).tolist(), dtype=dtype, device=like.device)
    return xp.asarray(np.array(array), dtype=dtype, device=like.device)


def host(a: Any) -> Any:
    """The numbers of a tensor as a NumPy array, without its history; other things as they are."""
    if not is_tensor(a):
        return a
    return a.detach().cpu().numpy() if is_torch(a) else np.asarray(a)


def detached(a: Any) -> Any:
    """The same numbers without their history."""
    return a.detach() if is_torch(a) else a


def is_tracked(*arrays: Any) -> bool:
    """Whether torch records what is computed from these arrays."""
    if not any(getattr(a, "requires_grad", False) for a in arrays):
        return False
    import torch

    return bool(torch.is_grad_enabled())


def is_abstract(a: Any) -> bool:
    """Whether a has a shape but no numbers (the meta device of torch)."""
    return bool(getattr(a, "is_meta", False))


def recomputed(function: Callable[..., Any], *arrays: Any) -> Any:
    """function(*arrays); for gradients it is computed again, so that nothing inside it is kept.

    It is computed with the same options again, also if the backward pass runs in another thread.
    """
    if not is_tracked(*arrays):
        return function(*arrays)
    from torch.utils.checkpoint import checkpoint

    context = copy_context()

    def same(*given: Any) -> Any:  # in a copy, because a context cannot be entered twice
        return context.copy().run(function, *given)

    return checkpoint(same, *arrays, use_reentrant=False, preserve_rng_state=False)


def no_autocast(like: Any) -> AbstractContextManager[Any]:
    """Switch the automatic mixed precision of torch off on the device of a tensor."""
    if not is_torch(like):
        return nullcontext()
    import torch

    kind = like.device.type
    mixed = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if mixed else nullcontext()


def as_double(a: Any) -> Any:
    """The array in float64, the precision in which sums are accumulated."""
    if is_tensor(a):
        xp = namespace(a)
        return xp.astype(a, xp.float64, copy=False)
    return np.asarray(a, dtype=np.float64)


def eye_like(Z: Any) -> Any:
    """The identity matrix of the dimension of the points Z."""
    if is_tensor(Z):
        return namespace(Z).eye(Z.shape[1], dtype=Z.dtype, device=Z.device)
    return np.eye(Z.shape[1])


def some_rows(X: Any, rows: Any) -> Any:
    """Rows of a tensor: a slice, NumPy row numbers or a NumPy mask."""
    if isinstance(rows, slice):
        return X[rows, ...]
    index = np.arange(X.shape[0])[host(rows)].reshape(-1)
    return namespace(X).take(X, constant(index, X), axis=0)


def put(tensor: Any, rows: Any, columns: Any, values: Any) -> Any:
    """The tensor with some of its entries replaced."""
    if is_torch(tensor):
        return tensor.index_put((rows, columns), values)
    array = np.array(host(tensor))
    array[host(rows), host(columns)] = host(values)
    return namespace(tensor).asarray(array, device=tensor.device)


def as_tensor(X: Any, name: str) -> Any:
    """Return a tensor of points as it is, if it is an (n, d) matrix of finite floats."""
    if not float_bits(X):
        raise InputError(f"{name} has dtype {X.dtype}; tensors must be float32 or float64")
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(
            f"{name} must have shape (n_points, n_features) with at least one of each, got "
            f"{tuple(X.shape)}"
        )
    check_finite(X, name)
    xp = namespace(X)
    wide = float_bits(X) == 64 and not is_abstract(X)
    if wide and float(xp.max(xp.abs(detached(X)))) > LARGEST_COORDINATE:
        raise InputError(
            f"{name} has entries above {LARGEST_COORDINATE:g}, whose squares overflow; rescale it"
        )
    return X


def check_finite(a: Any, name: str) -> None:
    """Raise unless the entries of a tensor are all finite, without a tangent."""
    check_tangent(a, name)
    xp = namespace(a)
    if not is_abstract(a) and not bool(xp.all(xp.isfinite(detached(a)))):
        raise InputError(f"{name} contains NaN or infinity; drop or impute such rows")


def check_tangent(a: Any, name: str) -> None:
    """Raise for a dual number of forward-mode differentiation, whose tangent would be lost."""
    if not is_torch(a):
        return
    import torch

    if torch.autograd.forward_ad.unpack_dual(a).tangent is not None:
        raise InputError(
            f"{name} carries a tangent of forward-mode differentiation, which mercer does not "
            "support; use reverse mode (torch.autograd.grad, or jacobian without strategy=)"
        )


def check_alike(a: Any, b: Any, names: tuple[str, str]) -> None:
    """Raise unless both are arrays of NumPy (or SciPy), or both tensors of one kind and place."""
    one, other = (_kind(z) for z in (a, b))
    if one != other:
        raise InputError(
            f"{names[0]} is a {one}, but {names[1]} is a {other}; use one library, one device "
            "and one dtype (Y.to(X), or X.detach().cpu().numpy())"
        )


def _kind(a: Any) -> str:
    if not is_tensor(a):
        return "NumPy array"
    library = "torch" if is_torch(a) else type(a).__module__.partition(".")[0]
    dtype = str(a.dtype).rpartition(".")[2]
    return f"{library} tensor of {dtype} on {a.device}"


def as_numpy(X: Any, name: str) -> Any:
    """A tensor as a NumPy array, for functions that compute in NumPy; other things as they are.

    A tensor with a history or on another device is refused: nothing is moved or cut off silently.
    """
    if not is_tensor(X):
        return X
    if is_torch(X) and (X.requires_grad or X.device.type != "cpu"):
        why = "requires a gradient" if X.requires_grad else f"is on {X.device}"
        raise InputError(
            f"{name} is a torch tensor that {why}, and this function computes in NumPy; use "
            f"{name}.detach().cpu().numpy()"
        )
    return host(X)


def from_host(array: Any, like: Any) -> Any:
    """A NumPy array as a torch tensor of the type of another, on the host."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(like.dtype)


def with_backward(forward: Any, backward: Any, recorded: Any, *arrays: Any) -> Any:
    """forward(*arrays), an array of NumPy, as a torch tensor with a derivative.

    backward(g, needed, *arrays) returns NumPy arrays (or None) for the cotangent g. If a second
    derivative is wanted, torch records recorded(*arrays) instead.
    """
    if not is_tracked(*arrays):
        return from_host(forward(*arrays), arrays[0])
    return _host_function().apply(forward, backward, recorded, *arrays)


@lru_cache(maxsize=1)
def _host_function() -> Any:
    import torch

    class OnHost(torch.autograd.Function):  # type: ignore[misc]
        """A function whose values and first derivative are computed by NumPy."""

        @staticmethod
        def forward(ctx: Any, forward: Any, backward: Any, recorded: Any, *arrays: Any) -> Any:
            ctx.save_for_backward(*arrays)
            ctx.backward_of, ctx.recorded = backward, recorded
            return from_host(forward(*arrays), arrays[0])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            arrays, needed = ctx.saved_tensors, ctx.needs_input_grad[3:]
            if torch.is_grad_enabled():  # the derivative of this derivative is wanted
                # one tensor may come twice, and each has its own derivative
                views = [a.view_as(a) for a in arrays]
                wanted = [a for a, need in zip(views, needed, strict=True) if need]
                found = iter(
                    torch.autograd.grad(
                        ctx.recorded(*views), wanted, g, create_graph=True, allow_unused=True
                    )
                )
                return None, None, None, *(next(found) if need else None for need in needed)
            parts = ctx.backward_of(g, needed, *arrays)
            return None, None, None, *(None if a is None else from_host(a, g) for a in parts)

    return OnHost


def unknown_after(known: int, move: Any, where: Any) -> Any:
    """Zero, with so many derivatives in `move` that are zero; the next is NaN under the mask."""
    return _unknown_function().apply(known, move, where)


@lru_cache(maxsize=1)
def _unknown_function() -> Any:
    import torch

    class Unknown(torch.autograd.Function):  # type: ignore[misc]
        """The rest of a Taylor polynomial, of which only the order is known."""

        @staticmethod
        def forward(ctx: Any, known: int, move: Any, where: Any) -> Any:
            ctx.save_for_backward(move, where)
            ctx.known = known
            zero = torch.zeros_like(move)
            return zero if known >= 0 else zero.masked_fill(where, torch.nan)

        @staticmethod
        def backward(ctx: Any, _g: Any) -> Any:
            move, where = ctx.saved_tensors
            return None, Unknown.apply(ctx.known - 1, move, where), None

    return Unknown


def with_implicit_gradient(
    points: Any, gradient: Any, solve: Callable[[Any], Any], *sources: Any
) -> Any:
    """The points x, zeros of the gradient, with dx = -H^-1 d(gradient).

    `gradient` (b, d) is the gradient at x with its history. `solve` returns H^-1 g for an array g
    of shape (b, d), NaN for rows without a derivative, from the numbers of the tensors `sources`. A
    second derivative is refused.
    """
    return _implicit_function().apply(points, gradient, solve, *sources)


@lru_cache(maxsize=1)
def _implicit_function() -> Any:
    import torch
    from torch.autograd.function import once_differentiable

    class Implicit(torch.autograd.Function):  # type: ignore[misc]
        """x(theta), where gradient(x, theta) = 0."""

        @staticmethod
        def forward(ctx: Any, points: Any, _gradient: Any, solve: Any, *sources: Any) -> Any:
            ctx.save_for_backward(*sources)
            ctx.solve = solve
            return points.clone()

        @staticmethod
        @once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, g: Any) -> Any:
            sources = ctx.saved_tensors  # raises if they were changed in place
            pulled = torch.as_tensor(-ctx.solve(as_double(host(g))), dtype=g.dtype, device=g.device)
            return None, pulled, None, *(None for _ in sources)

    return Implicit
