"""Gaussian sums and Gram matrices by other libraries, each at its best documented setting.

All use the same number of threads. A peer that is not installed is left out with a note. KeOps
compiles each formula on first use and keeps it in `build/`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import Array, Contender, Key, PeerError, threads

_KEOPS_DIMENSIONS = 10  # beyond, a sum takes KeOps many seconds
_SCIPY_DIMENSIONS = 64  # and cdist as long
_FINALISTS = 2


class Peer:
    """A contender of another library. The first call, the warm-up, compiles and tunes it."""

    def __init__(self, prepare: Callable[[], tuple[Contender, str]]) -> None:
        self._prepare = prepare
        self._call: Contender | None = None
        self.setting = ""

    def __call__(self) -> Any:
        try:
            if self._call is None:
                self._call, self.setting = self._prepare()
            return self._call()
        except Exception as error:
            first = (str(error).splitlines() or [""])[0][:80]
            raise PeerError(f"{type(error).__name__}: {first}") from error


def sums(X: Array, Y: Array, A: Array, gamma: float) -> dict[str, Peer]:
    """sum_i exp(-gamma |y_j - x_i|^2) A_i for every query y_j."""
    out = {name: _times(gram, A) for name, gram in _materialised(Y, X, gamma).items()}
    if torch() is not None:
        out["torch"] = Peer(lambda: torch_sum(X, Y, A, gamma))
    if keops() is not None and X.shape[1] <= _KEOPS_DIMENSIONS:
        out["KeOps"] = Peer(lambda: (keops_sum(X, Y, A, gamma), ""))
    return out


def grams(X: Array, Y: Array, gamma: float) -> dict[str, Peer]:
    """The matrix exp(-gamma |x_i - y_j|^2)."""
    out = {name: _ready(gram) for name, gram in _materialised(X, Y, gamma).items()}
    if torch() is not None:
        out["torch"] = Peer(lambda: torch_gram(X, Y, gamma))
    return out


def missing() -> list[str]:
    """Notes on peers that are not here."""
    found = {"torch": torch(), "KeOps": keops()}
    return [f"{name} is not installed and was left out" for name, it in found.items() if it is None]


def settings(contenders: Mapping[Key, Contender]) -> list[str]:
    """Notes on what was found best for each peer that was tuned."""
    return [
        f"{key.group}: {key.name} ran as {peer.setting}"
        for key, peer in contenders.items()
        if isinstance(peer, Peer) and peer.setting
    ]


def _ready(call: Contender) -> Peer:
    return Peer(lambda: (call, ""))


def _times(gram: Contender, A: Array) -> Peer:
    return _ready(lambda: gram() @ A)


def _materialised(X: Array, Y: Array, gamma: float) -> dict[str, Contender]:
    """Libraries that compute the matrix."""
    from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

    out: dict[str, Contender] = {
        "sklearn rbf_kernel": lambda: rbf_kernel(X, Y, gamma=gamma),
        "sklearn pairwise, n_jobs": lambda: pairwise_kernels(
            X, Y, metric="rbf", n_jobs=threads(), gamma=gamma
        ),
    }
    if X.shape[1] <= _SCIPY_DIMENSIONS and X.dtype == np.float64:  # cdist answers in float64
        out["scipy cdist"] = lambda: _scipy_gram(X, Y, gamma)
    return out


def _scipy_gram(X: Array, Y: Array, gamma: float) -> Array:
    from scipy.spatial.distance import cdist

    K = cdist(X, Y, "sqeuclidean")
    K *= -gamma
    return np.asarray(np.exp(K, out=K))


# --- torch ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def torch() -> Any:
    """The module with its threads set, or None."""
    if importlib.util.find_spec("torch") is None:
        return None
    module = importlib.import_module("torch")
    module.set_num_threads(threads())
    importlib.import_module("torch._dynamo").config.recompile_limit = 256  # one per shape
    return module


def torch_sum(X: Array, Y: Array, A: Array, gamma: float) -> tuple[Contender, str]:
    """exp(2 gamma <x, y> - gamma |x|^2 - gamma |y|^2) @ A in tiles, the fastest way of several.

    Ways: the exponent as one product of augmented matrices; the product with the norms subtracted;
    the latter by torch.compile, which fuses it with the exponential. Each with several tiles, tried
    on a part of the queries; the best few are then tried on all of them.
    """
    t = torch()
    x, y, a = (t.from_numpy(np.ascontiguousarray(array)) for array in (X, Y, A))
    n = x.shape[0]
    tiles = [(250, n), (1000, n), (500, 2000), (1000, 1000)]
    tried = {}
    for way in (_augmented, _subtracted, _compiled):
        for tile in tiles:
            call = _torch_tiles(way, x, y[: max(2000, n // 5)], a, gamma, tile)
            with contextlib.suppress(Exception):  # torch.compile needs a compiler of its own
                tried[way, tile] = _seconds(call)
    finalists = sorted(tried, key=lambda choice: tried[choice])[:_FINALISTS]
    calls = {(way, tile): _torch_tiles(way, x, y, a, gamma, tile) for way, tile in finalists}
    way, (rows, columns) = min(calls, key=lambda choice: _seconds(calls[choice]))
    name = f"{way.__name__.strip('_')} tiles of {rows} x {columns}"
    return calls[way, (rows, columns)], name


def _seconds(call: Contender) -> float:
    """The better of two calls after a first."""
    call()
    out = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        out.append(time.perf_counter() - start)
    return min(out)


def _torch_tiles(
    way: Callable[..., Any], x: Any, y: Any, a: Any, gamma: float, tile: tuple[int, int]
) -> Contender:
    t = torch()
    rows, columns = tile

    def run() -> Array:
        with t.inference_mode():
            xs, ys = x * (2 * gamma) ** 0.5, y * (2 * gamma) ** 0.5
            step = way(xs, ys)
            out = t.zeros((y.shape[0], a.shape[1]), dtype=x.dtype)
            for i in range(0, y.shape[0], rows):
                for j in range(0, x.shape[0], columns):
                    K = step(slice(i, i + rows), slice(j, j + columns))
                    out[i : i + rows].addmm_(K, a[j : j + columns])
            return out.numpy()  # type: ignore[no-any-return]

    return run


def _augmented(x: Any, y: Any) -> Callable[[slice, slice], Any]:
    t = torch()
    x2, y2 = (x * x).sum(1, keepdim=True) / 2, (y * y).sum(1, keepdim=True) / 2
    left = t.cat([y, -y2, t.ones_like(y2)], 1)
    right = t.cat([x, t.ones_like(x2), -x2], 1).T.contiguous()
    return lambda rows, columns: t.mm(left[rows], right[:, columns]).exp_()


def _subtracted(x: Any, y: Any) -> Callable[[slice, slice], Any]:
    t = torch()
    x2, y2 = -(x * x).sum(1) / 2, (y * y).sum(1, keepdim=True) / 2
    right = x.T.contiguous()
    return lambda rows, columns: (
        t.addmm(x2[columns], y[rows], right[:, columns]).sub_(y2[rows]).exp_()
    )


def _compiled(x: Any, y: Any) -> Callable[[slice, slice], Any]:
    fused = _fused()
    x2, y2 = (x * x).sum(1) / 2, (y * y).sum(1, keepdim=True) / 2
    right = x.T.contiguous()
    return lambda rows, columns: fused(y[rows], right[:, columns], x2[columns], y2[rows])


@lru_cache(maxsize=1)
def _fused() -> Any:
    t = torch()
    return t.compile(lambda y, x, x2, y2: t.exp(y @ x - x2 - y2), dynamic=False)


def torch_gram(X: Array, Y: Array, gamma: float) -> tuple[Contender, str]:
    """The whole matrix at once, the fastest of the three ways."""
    t = torch()
    x, y = t.from_numpy(X), t.from_numpy(Y)

    def contender(way: Callable[..., Any]) -> Contender:
        def run() -> Array:
            with t.inference_mode():
                scale = (2 * gamma) ** 0.5
                return way(y * scale, x * scale)(slice(None), slice(None)).numpy()  # type: ignore[no-any-return]

        return run

    times: dict[float, tuple[Contender, str]] = {}
    for way in (_augmented, _subtracted, _compiled):
        call = contender(way)
        with contextlib.suppress(Exception):  # torch.compile needs a compiler of its own
            times[_seconds(call)] = call, way.__name__.strip("_")
    return times[min(times)]


# --- KeOps ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def keops() -> Any:
    """pykeops.numpy, or None; what it prints on the way is dropped."""
    if importlib.util.find_spec("pykeops") is None:
        return None
    cache = Path(__file__).parents[1] / "build" / "keops"
    cache.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("KEOPS_CACHE_FOLDER", str(cache))
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            importlib.import_module("pykeops").set_verbose(False)
            return importlib.import_module("pykeops.numpy")
        except Exception:  # noqa: BLE001  it looks for compilers while it is imported
            return None


def keops_sum(X: Array, Y: Array, A: Array, gamma: float) -> Contender:
    """Its reduction of a formula over points, compiled for these dimensions."""
    dim, columns = X.shape[1], A.shape[1]
    variables = [f"y = Vi({dim})", f"x = Vj({dim})", f"a = Vj({columns})"]
    reduce = keops().Genred("Exp(-SqDist(y, x)) * a", variables, reduction_op="Sum", axis=1)
    scale = X.dtype.type(gamma**0.5)
    return lambda: reduce(Y * scale, X * scale, A, backend="CPU")
