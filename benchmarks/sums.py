"""The Gaussian mean-shift sum: c = d + 1 columns, beside other libraries and the limit."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import mercer
from benchmarks import _peers
from benchmarks._harness import Array, Contender, Key, Race, Settings, data, race
from benchmarks._limit import Limit
from benchmarks._report import Bar, Outcome, at_least, at_most
from mercer.engine import Dense, fields

TITLE = "Gaussian mean-shift sum"

SKLEARN = "times faster than sklearn rbf_kernel"
SHARE = "share of the limit"
POWERS = "share of the limit with powers of two"
RATE = "float32 rate over float64 rate"
GEMMS = "time over its two GEMMs"
TORCH = "time over torch"
ERROR = "error"

OURS = "mercer"
NUMPY = "mercer, NumPy only"
TWO_GEMMS = "two GEMMs"

POINTS = 10_000
DTYPES = ("float64", "float32")
ACCURATE = {"float64": at_most(1e-14), "float32": at_most(6e-6)}  # about 50 units of rounding
_CHECKED = 200  # queries that are compared with a float64 sum of differences


@dataclass(frozen=True)
class Case:
    """A dimension and its bars by dtype."""

    dim: int
    bars: Mapping[str, Mapping[str, Bar]]

    @property
    def by_blas(self) -> bool:
        """Whether two large products are all there is to it."""
        return self.dim > 200


CASES = (
    Case(
        2,
        {
            "float64": {SKLEARN: at_least(15), SHARE: at_least(0.70)},
            "float32": {RATE: at_least(1.6)},
        },
    ),
    Case(
        10,
        {
            "float64": {SKLEARN: at_least(11), SHARE: at_least(0.65)},
            "float32": {RATE: at_least(1.6)},
        },
    ),
    Case(
        64,
        {
            "float64": {SKLEARN: at_least(5), SHARE: at_least(0.70)},
            "float32": {RATE: at_least(1.6)},
        },
    ),
    Case(
        784,
        {
            "float64": {GEMMS: at_most(1.35), TORCH: at_most(1.05)},
            "float32": {GEMMS: at_most(1.25), TORCH: at_most(1.05)},
        },
    ),
)


def run(settings: Settings) -> Outcome:
    """Every case, both dtypes of a dimension in one race; then all beside the limit of the run."""
    outcome = Outcome(TITLE, notes=_peers.missing())
    limits = {dtype: Limit(dtype, settings) for dtype in DTYPES}
    n = settings.size(POINTS, 1000)
    runs = [(case, *_raced(case, n, limits, settings, outcome)) for case in CASES]
    for case, raced, errors in runs:
        for dtype, limit in limits.items():
            size = n * n, case.dim, case.dim + 1
            _add(outcome, case, dtype, raced, errors, limit.seconds(*size))
            faster, ours = limit.seconds(*size, "two_to"), raced.timings[Key(dtype, OURS)].minimum
            share = {POWERS: faster / ours if faster else None}
            outcome.add_figures(f"d = {case.dim}, {dtype}", share, {})
    for dtype, limit in limits.items():
        rates = {
            "GEMM rate, Gflop/s": limit.gemm_rate / 1e9,
            "exponentials, G/s": limit.rates.get("exp", 0.0) / 1e9 or None,
            "powers of two, G/s": limit.rates.get("two_to", 0.0) / 1e9 or None,
        }
        outcome.add_figures(f"limit, {dtype}", rates, {})
    return outcome


def _raced(
    case: Case, n: int, limits: Mapping[str, Limit], settings: Settings, outcome: Outcome
) -> tuple[Race, dict[Key, float]]:
    """The race of one dimension, and the error of each contender."""
    contenders: dict[Key, Contender] = {}
    references: dict[str, Array] = {}
    errors: dict[Key, float] = {}
    for dtype, limit in limits.items():
        X, Y, A = data(n, case.dim, dtype)
        references[dtype] = _reference(X, Y[:_CHECKED], A, 0.5 / case.dim)
        named = _contenders(case, X, Y, A)
        contenders.update({Key(dtype, name): call for name, call in named.items()})
        contenders.update(limit.contenders())

    def inspect(key: Key, result: Any) -> None:
        if key.group in references and key.name != TWO_GEMMS:
            errors[key] = error(result[:_CHECKED], references[key.group])

    label = f"d = {case.dim}"
    raced = race(f"sums, {label}", contenders, settings, inspect)
    for limit in limits.values():
        limit.observe(raced)
    outcome.add_notes(label, raced)
    outcome.notes.extend(f"{label}, {note}" for note in _peers.settings(contenders))
    return raced, errors


def _contenders(case: Case, X: Array, Y: Array, A: Array) -> dict[str, Contender]:
    program, coef = mercer.Gaussian(case.dim**0.5).program, Dense(A)

    def ours(engine: str | None) -> Contender:
        def call() -> Array:
            with mercer.options(engine=engine):
                return fields(program, X, Y, coef).value

        return call

    out: dict[str, Contender] = {OURS: ours(None)}
    if not case.by_blas:
        out[NUMPY] = ours("blocked")
    else:
        out[TWO_GEMMS] = _two_gemms(X, Y, A)
        if importlib.util.find_spec("mercer._core") is not None:
            out["mercer, native"] = ours("native")
    return {**out, **_peers.sums(X, Y, A, 0.5 / case.dim)}


def _two_gemms(X: Array, Y: Array, A: Array) -> Contender:
    """Y X' and K A, into memory that is there already."""
    K = np.empty((len(Y), len(X)), X.dtype)
    out = np.empty((len(Y), A.shape[1]), X.dtype)

    def call() -> Array:
        np.matmul(Y, X.T, out=K)
        return np.matmul(K, A, out=out)

    return call


def _add(
    outcome: Outcome,
    case: Case,
    dtype: str,
    raced: Race,
    errors: Mapping[Key, float],
    limit: float | None,
) -> None:
    """Rows and figures of one dimension and dtype; `limit` in seconds."""
    label, ours = f"d = {case.dim}, {dtype}", Key(dtype, OURS)

    def over(name: str) -> float | None:
        return raced.ratio(Key(dtype, name), ours)

    def under(name: str) -> float | None:
        return raced.ratio(ours, Key(dtype, name))

    values = {
        SKLEARN: over("sklearn rbf_kernel"),
        "times faster than sklearn pairwise_kernels": over("sklearn pairwise, n_jobs"),
        "times faster than scipy": over("scipy cdist"),
        "times faster than KeOps": over("KeOps"),
        "times faster than NumPy only": over(NUMPY),
        TORCH: under("torch"),
        GEMMS: under(TWO_GEMMS),
        SHARE: limit / raced.timings[ours].minimum if limit else None,
        RATE: raced.ratio(Key("float64", OURS), ours) if dtype == "float32" else None,
        ERROR: errors[ours],
    }
    outcome.add_rows(label, raced, ours, limit=limit, errors=errors)
    outcome.add_figures(label, values, {**case.bars[dtype], ERROR: ACCURATE[dtype]})
    outcome.notes.extend(
        f"{label}: {key.name} is less accurate than asked for"
        for key, value in errors.items()
        if key.group == dtype and not ACCURATE[dtype].holds(value)
    )


def _reference(X: Array, Y: Array, A: Array, gamma: float) -> Array:
    """The sum in float64, from differences."""
    K = np.exp(-gamma * cdist(Y.astype(float), X.astype(float), "sqeuclidean"))
    return np.asarray(K @ A.astype(float))


def error(value: Array, reference: Array) -> float:
    """Largest difference over largest value."""
    return float(np.abs(value - reference).max() / np.abs(reference).max())
