"""A sum of tensors and its gradient need no n x m matrix."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mercer as mc
from mercer.methods import ksd
from mercer.preimages._implicit import _newton_steps

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


@pytest.mark.parametrize("engine", [None, "blocked"])
def test_stein_discrepancies_keep_no_tile(engine):
    n, kept = 2000, []
    X = torch.randn(n, 3, dtype=torch.float64, requires_grad=True)
    c = torch.ones(1, dtype=torch.float64, requires_grad=True)

    def pack(tensor):
        kept.append(tensor.untyped_storage().nbytes())
        return tensor

    with mc.options(engine=engine), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        ksd(mc.InverseMultiquadric(1.0, 0.5), X, lambda X: -c * X)
    assert sum(kept) < 4e6  # the matrix has 32 MB


def test_preimages_solve_for_their_gradient_in_blocks(monkeypatch):
    """Hessians are made in the backward pass, some rows at a time, for rows that need them."""
    calls = []

    def watched(problem, rows, *rest):
        calls.append(len(rows))
        return _newton_steps(problem, rows, *rest)

    monkeypatch.setattr("mercer.preimages._implicit._newton_steps", watched)
    X = torch.randn(30, 8, dtype=torch.float64, requires_grad=True)
    a = torch.rand(30, 20, dtype=torch.float64) / 30
    points = mc.preimage(mc.Element(mc.Gaussian(4.0), X, a)).points
    assert not calls
    slopes = []
    for memory in (0.02, 128):
        with mc.options(working_memory=memory):
            slopes.append(torch.autograd.grad(points[:15].sum(), X, retain_graph=True)[0])
    assert calls == [5, 5, 5, 15]
    assert torch.allclose(*slopes, rtol=1e-12)
    assert torch.isfinite(slopes[0]).all()
