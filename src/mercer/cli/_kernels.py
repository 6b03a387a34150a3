"""Kernels as words: `gaussian:0.5`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.cli._problems import UsageProblem
from mercer.exceptions import InputError
from mercer.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
)
from mercer.kernels._names import ALIASES


def _polynomial(degree: float, scale: float = 1.0, offset: float = 1.0) -> Polynomial:
    return Polynomial(int(degree) if degree == int(degree) else degree, scale, offset)  # type: ignore[arg-type]


# the kernel, and its numbers: those that must be given come first
_KERNELS: dict[str, tuple[Callable[..., Any], str, int]] = {
    "gaussian": (Gaussian, "LENGTH", 1),
    "laplace": (Laplace, "LENGTH", 1),
    "matern": (Matern, "NU,LENGTH", 2),
    "polynomial": (_polynomial, "DEGREE[,SCALE,OFFSET]", 1),
    "linear": (Linear, "", 0),
}
FORMS = ("auto", *(f"{name}:{form}" if form else name for name, (_, form, _) in _KERNELS.items()))


def parse_kernel(text: str) -> Any:
    """A kernel, or "auto"."""
    name, _, numbers = text.strip().lower().partition(":")
    if name == "auto" and not numbers:
        return "auto"
    name = ALIASES.get(name, name)
    if name not in _KERNELS:
        raise UsageProblem(f"there is no kernel {text!r}; write one of {', '.join(FORMS)}")
    make, form, least = _KERNELS[name]
    most = form.count(",") + 1 if form else 0
    try:
        values = [float(number) for number in numbers.split(",")] if numbers else []
        if not least <= len(values) <= most:
            raise ValueError
        return make(*values)
    except InputError as error:
        raise UsageProblem(f"--kernel {text}: {error}") from error
    except ValueError as error:
        raise UsageProblem(
            f"--kernel {text} is not of the form {name}{':' + form if form else ''}"
        ) from error
