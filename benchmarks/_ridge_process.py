"""The process that `ridge` measures: one fit, its time and peak memory."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from sklearn import kernel_ridge

import mercer as mc
from benchmarks._harness import data
from benchmarks._resident import forget_peak, status

GAMMA, PENALTY, DIM = 0.05, 0.1, 10


def main(order: dict[str, Any]) -> dict[str, float]:
    """Seconds of a fit to `n` rows, and what it added to resident memory at most."""
    X, _, A = data(order["n"], DIM, "float64")
    y = A[:, 0]
    _fit(order["library"], X[:300], y[:300])  # threads and imports are there from now on
    forget_peak()
    before, start = status("VmRSS"), time.perf_counter()
    model = _fit(order["library"], X, y)
    seconds = time.perf_counter() - start
    growth = status("VmHWM") - before
    return {"seconds": seconds, "bytes": growth, "first": float(model.predict(X[:1]).ravel()[0])}


def _fit(library: str, X: Any, y: Any) -> Any:
    if library == "mercer":
        kernel = mc.Gaussian.from_gamma(GAMMA)
        return mc.KernelRidge(kernel, penalty=PENALTY, fit_intercept=False).fit(X, y)
    return kernel_ridge.KernelRidge(alpha=PENALTY, kernel="rbf", gamma=GAMMA).fit(X, y)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
