"""The limit of a kernel sum: its products at the GEMM rate and one exponential per pair.

    seconds = pairs (2 (d + c) / gemm + 1 / exp)

Both rates take part in every race of a suite, and the best of the run counts: a moment in which the
machine was busy must not lower the limit. The exponential is the core's power of two, which
is what its sums use and faster than its exp, on arrays that stay in the cache, from Python threads:
short arrays pay for the calls, in which threads wait for the interpreter lock, and long ones for
the cache, so several lengths run.
"""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks._harness import Contender, Key, Race, Settings, threads

_LENGTHS = (8192, 32768, 65536)  # float32 in and out: 64 KiB, 256 KiB, 512 KiB; float64 twice that
_pool = ThreadPoolExecutor(threads())


class Limit:
    """Contenders that measure the two rates of one dtype, and the limit from all their races."""

    def __init__(self, dtype: str, settings: Settings) -> None:
        self.dtype = dtype
        self.side = settings.size(3000, 400)
        self.exps = settings.size(1 << 24, 1 << 18)  # of each thread in one call
        self.gemm_rate = 0.0  # flops per second
        self.exp_rate = 0.0  # per second; 0 without a compiled core

    def contenders(self) -> dict[Key, Contender]:
        rng = np.random.default_rng(0)
        A, B = (rng.standard_normal((self.side, self.side)).astype(self.dtype) for _ in range(2))
        C = np.empty_like(A)
        out: dict[Key, Contender] = {self._key("gemm"): lambda: np.matmul(A, B, out=C)}
        exp = self._exp()
        if exp is not None:
            out.update({self._key(f"exp {n}"): self._repeated(exp, n) for n in _LENGTHS})
        return out

    def observe(self, race: Race) -> None:
        """Take the rates of a race if they are better than those before."""
        for key, timing in race.timings.items():
            if key == self._key("gemm"):
                self.gemm_rate = max(self.gemm_rate, 2.0 * self.side**3 / timing.minimum)
            elif key.group == self._key("").group:
                self.exp_rate = max(self.exp_rate, threads() * self.exps / timing.minimum)

    def seconds(self, pairs: int, dim: int, columns: int) -> float | None:
        """The least time of a sum; None without a compiled core."""
        if not self.exp_rate:
            return None
        return pairs * (2 * (dim + columns) / self.gemm_rate + 1 / self.exp_rate)

    def _key(self, name: str) -> Key:
        return Key(f"limit {self.dtype}", name)

    def _exp(self) -> Any:
        try:
            core = importlib.import_module("mercer._core")
        except ImportError:
            return None
        return core.two_to32 if self.dtype == "float32" else core.two_to64

    def _repeated(self, exp: Any, length: int) -> Contender:
        x = -np.random.default_rng(0).random(length).astype(self.dtype)
        outs = [np.empty_like(x) for _ in range(threads())]

        def work(out: Any) -> None:
            for _ in range(self.exps // length):
                exp(x, out, "")

        return lambda: list(_pool.map(work, outs))
