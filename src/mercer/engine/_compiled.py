"""The compiled core `mercer._core`, if it was built and may be used."""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import Any

from mercer._config import get_options


@lru_cache(maxsize=1)
def core() -> Any:
    """The compiled module, or None if it was not built."""
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
