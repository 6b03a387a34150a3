"""The compiled core, where it was built, and what it knows."""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import Any

from mercer._config import get_options
from mercer.engine.programs._program import Program
from mercer.engine.programs._tape import tape


@lru_cache(maxsize=1)
def core() -> Any:
    """The compiled module, or None where it was not built."""
    try:
        return importlib.import_module("mercer._core")
    except ImportError:
        return None


def instruction_set() -> str:
    """The instruction set forced by the environment variable MERCER_ISA; empty for the best."""
    return os.environ.get("MERCER_ISA", "")


def can_run(program: Program) -> bool:
    """Whether the core knows this program: one distance or inner product, and a taped profile."""
    return program.kind in ("radial", "dot") and tape(program.profile) is not None


def profile_of_tiles(program: Program) -> Any:
    """The profile as a pass of the core over inner products made by BLAS; None if that cannot be.

    `options(engine="blocked")` asks for NumPy alone.
    """
    if core() is None or get_options().engine == "blocked" or not can_run(program):
        return None
    lowered = tape(program.profile)
    assert lowered is not None
    return core().Profile(list(lowered[0]), lowered[1], instruction_set())
