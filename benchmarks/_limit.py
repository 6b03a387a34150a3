"""The limit of a kernel sum: its products at the GEMM rate and one exponential per pair.

    seconds = pairs (2 (d + c) / gemm + 1 / exp)

Both rates take part in every race of a suite, and the best of the run counts: a moment in which the
machine was busy must not lower the limit. The exponential is the compiled core's, on arrays that
stay in the cache, from Python threads: short arrays pay for the calls, in which threads wait for
the interpreter lock, and long ones for the cache, so several lengths run. Sums use the core's power
of two, which is a little faster; the limit with that is reported beside.
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
        # per second, of exp and of powers of two; nothing without a compiled core
        self.rates: dict[str, float] = {}

    def contenders(self) -> dict[Key, Contender]:
        rng = np.random.default_rng(0)
        A, B = (rng.standard_normal((self.side, self.side)).astype(self.dtype) for _ in range(2))
        C = np.empty_like(A)
        out: dict[Key, Contender] = {self._key("gemm"): lambda: np.matmul(A, B, out=C)}
        for name, function in self._functions().items():
            out.update({self._key(f"{name} {n}"): self._repeated(function, n) for n in _LENGTHS})
        return out

    def observe(self, race: Race) -> None:
        """Take the rates of a race if they are better than those before."""
        for key, timing in race.timings.items():
            if key == self._key("gemm"):
                self.gemm_rate = max(self.gemm_rate, 2.0 * self.side**3 / timing.minimum)
            elif key.group == self._key("").group:
                name, rate = key.name.split()[0], threads() * self.exps / timing.minimum
                self.rates[name] = max(self.rates.get(name, 0.0), rate)

    def seconds(self, pairs: int, dim: int, columns: int, function: str = "exp") -> float | None:
        """The least time of a sum; None without a compiled core."""
        if function not in self.rates:
            return None
        return pairs * (2 * (dim + columns) / self.gemm_rate + 1 / self.rates[function])

    def _key(self, name: str) -> Key:
        return Key(f"limit {self.dtype}", name)

    def _functions(self) -> dict[str, Any]:
        try:
            core = importlib.import_module("mercer._core")
        except ImportError:
            return {}
        bits = "32" if self.dtype == "float32" else "64"
        return {name: getattr(core, name + bits) for name in ("exp", "two_to")}

    def _repeated(self, exp: Any, length: int) -> Contender:
        x = -np.random.default_rng(0).random(length).astype(self.dtype)
        outs = [np.empty_like(x) for _ in range(threads())]

        def work(out: Any) -> None:
            for _ in range(self.exps // length):
                exp(x, out, "")

        return lambda: list(_pool.map(work, outs))
