"""The compiled core `mercer._core`: whether it was built, and programs and profiles in it."""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer.engine.programs._program import Coordinates, Program


@lru_cache(maxsize=1)
def core() -> Any:
    """The compiled module, or None where it was not built."""
    try:
        return importlib.import_module("mercer._core")
    except ImportError:
        return None


def core_allowed() -> bool:
    """Whether the core was built and may be used: `options(engine="blocked")` means NumPy alone."""
    return core() is not None and get_options().engine != "blocked"


def instruction_set() -> str:
    """The instruction set forced by the environment variable MERCER_ISA; empty for the best."""
    return os.environ.get("MERCER_ISA", "")


def compiled_program(program: Program, points: Array, form: int) -> Any:
    """Points in the core, with the profile that is summed over them."""
    assert program.tape is not None
    steps, result = program.tape
    kind = core().Program32 if points.dtype == np.float32 else core().Program64
    return kind(points, list(steps), result, form, instruction_set())


def compiled_profile(program: Program) -> Any:
    """The profile as one pass of the core over a tile of products or sums; None if impossible."""
    one = program.runs_on_core or isinstance((*program.variables, None)[0], Coordinates)
    if not one or program.tape is None or not core_allowed():
        return None
    return core().Profile(list(program.tape[0]), program.tape[1], instruction_set())
