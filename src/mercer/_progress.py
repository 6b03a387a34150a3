"""Progress callbacks of iterative functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from mercer.exceptions import InputError


@dataclass(frozen=True)
class Step:
    """What a callback receives after each iteration; the iteration stops if it returns True.

    Attributes
    ----------
    n_iter : int
        Iterations done.
    residual : float
        The largest relative residual among what is still iterated.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> steps = []
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 0.0, 1.0]
    >>> _ = linalg.solve(mc.Gaussian(1.0), X, y, 0.1, method="cg", callback=steps.append)
    >>> steps[-1].residual < 1e-8
    True
    """

    n_iter: int
    residual: float


Callback: TypeAlias = Callable[[Step], Any]


def check_callback(callback: Any) -> None:
    """Raise unless this is a function or None."""
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function or None, got {type(callback).__name__}")
