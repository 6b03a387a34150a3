"""The instruction sets of the compiled core that run here, and how to force one."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from mercer.engine._compiled import core

ISAS = core().instruction_sets() if core() is not None else []

compiled = pytest.mark.skipif(not ISAS, reason="the compiled core was not built")
each_isa = pytest.mark.parametrize("isa", ISAS or ["none"])


@contextmanager
def forced(isa: str) -> Iterator[None]:
    """Inside the block the core runs on this instruction set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MERCER_ISA", isa)
        yield


def core_program(dtype, *arguments):
    """A program of the core itself, for tests that go past the engine."""
    kind = core().Program32 if np.dtype(dtype) == np.float32 else core().Program64
    return kind(*arguments)
