"""A sum of tensors and its gradient need no n x m matrix."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mercer as mc

torch = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")

ROOT = Path(__file__).resolve().parents[2]
SIZE = 2000  # a matrix of 32 MB
# What is held is measured, not what the allocator of C keeps for later: it returns large blocks.
ENVIRONMENT = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
MEASURE = """
import resource, torch
torch.set_num_threads(1)
import mercer as mc
from mercer.methods import mmd
def loss(n):
    X, Y = (torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mmd(mc.Gaussian(3.0), X, Y).backward()
    assert torch.isfinite(X.grad).all()
with mc.options(engine={engine!r}, working_memory=32):
    loss(300)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loss({size})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_torch_keeps_no_tile_for_the_backward_pass():
    X, Y = (torch.randn(1000, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for engine in (None, "blocked"):
        kept = []

        def pack(tensor, kept=kept):
            kept.append(tensor.untyped_storage().nbytes())
            return tensor

        with mc.options(engine=engine), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            mc.mean_embedding(mc.Matern(1.5), X)(Y).sum()
        assert sum(kept) < 2e6  # the matrix has 8 MB


@pytest.mark.parametrize("engine", [None, "blocked"])
def test_memory_of_a_loss_and_its_gradient(engine):
    code = MEASURE.format(engine=engine, size=SIZE)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 20  # MiB
