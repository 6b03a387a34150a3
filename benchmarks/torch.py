"""MMD^2 as a training loss: the value and its gradient, beside plain PyTorch.

Each contender runs in a process of its own, which reports its time and what it adds to resident
memory. Plain PyTorch is what one writes without a library: `torch.cdist`, `exp`, means. The time of
mercer is that of the compiled core, which reads tensors on the host; its tiles in PyTorch itself,
which other devices use, are beside it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import mercer as mc
from benchmarks._harness import Contender, Settings
from benchmarks._process import measured
from benchmarks._report import Outcome, Row, at_most
from mercer.methods import mmd

TITLE = "MMD as a loss of PyTorch"

SHARE_OF_TIME = "time over that of plain PyTorch"
SHARE_OF_MEMORY = "resident memory over that of plain PyTorch"
ERROR = "relative difference of the gradients"

DIM, LENGTH = 10, 3.0
REPEATS = 3
CONTENDERS = {"mercer": None, "mercer, tiles of tensors": "blocked", "torch.cdist": "torch"}


def run(settings: Settings) -> Outcome:
    """Value and gradient for two samples of n rows."""
    outcome, n = Outcome(TITLE), settings.size(5000, 500)
    case, best = f"value and gradient, n = m = {n:,}, d = {DIM}, float64", {}
    for name, engine in CONTENDERS.items():
        print(f"torch: {name}", file=sys.stderr, flush=True)
        found: list[Any] = [measured(make_loss, n=n, engine=engine) for _ in range(REPEATS)]
        if errors := [one for one in found if isinstance(one, str)]:
            outcome.notes.append(f"{name}: {errors[0]}")
            return outcome
        seconds = sorted(one.seconds for one in found)
        best[name] = seconds[0], max(one.bytes for one in found)
        outcome.rows.append(Row(case, name, seconds[0], seconds[len(seconds) // 2], REPEATS))
    own, plain = best["mercer"], best["torch.cdist"]
    values = {
        SHARE_OF_TIME: own[0] / plain[0],
        SHARE_OF_MEMORY: own[1] / plain[1],
        ERROR: difference(min(n, 500)),
    }
    bars = {SHARE_OF_TIME: at_most(1.0), SHARE_OF_MEMORY: at_most(0.5), ERROR: at_most(1e-9)}
    outcome.add_figures(case, values, bars)
    return outcome


def make_loss(n: int, engine: str | None) -> Contender:
    """The value with its gradient, by one contender."""
    torch: Any = importlib.import_module("torch")
    gradient_of(*samples(torch, 50), engine)  # what is loaded once
    X, Y = samples(torch, n)
    return lambda: gradient_of(X, Y, engine).numpy()


def samples(torch: Any, n: int) -> tuple[Any, Any]:
    """Two samples, the first with a gradient."""
    torch.manual_seed(0)
    X, Y = torch.randn(2, n, DIM, dtype=torch.float64)
    return X.requires_grad_(), Y


def gradient_of(X: Any, Y: Any, engine: str | None) -> Any:
    """The gradient of the biased MMD^2 in the first sample."""
    X.grad = None
    if engine == "torch":
        value = _plain(X, Y)
    else:
        with mc.options(engine=engine):
            value = mmd(mc.Gaussian(LENGTH), X, Y, estimator="biased")
    value.backward()
    return X.grad


def _plain(X: Any, Y: Any) -> Any:
    torch: Any = importlib.import_module("torch")

    def mean(A: Any, B: Any) -> Any:
        return torch.exp(-(torch.cdist(A, B) ** 2) / (2.0 * LENGTH**2)).mean()

    return mean(X, X) + mean(Y, Y) - 2.0 * mean(X, Y)


def difference(n: int) -> float:
    """How much the gradients of mercer and of plain PyTorch differ."""
    torch: Any = importlib.import_module("torch")
    X, Y = samples(torch, n)
    own, plain = (gradient_of(X, Y, engine).clone() for engine in (None, "torch"))
    return float((own - plain).abs().max() / plain.abs().max())
