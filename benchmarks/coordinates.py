"""Gram matrices of kernels that add up over coordinates: chi-square, minimum and Hamming."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels

from benchmarks import _peers
from benchmarks._harness import Array, Contender, Key, Settings, race, threads
from benchmarks._report import Bar, Outcome, at_least
from benchmarks.sums import error
from mercer.engine import gram
from mercer.kernels._coordinates import ChiSquare, Minimum
from mercer.kernels.structured._categorical import Hamming

TITLE = "Gram matrices of kernels that add up over coordinates"

FASTER = "times faster than the best other"
POINTS, DIM = 5_000, 64
OURS = "mercer"
_GAMMA = 1.0 / DIM
_CHECKED = 50  # rows that are compared with a loop over coordinates
_BARS: Mapping[str, Bar] = {
    "chi-square": at_least(4),
    "minimum": at_least(2),
    "Hamming": at_least(2),
}


def run(settings: Settings) -> Outcome:
    """k(X, Y) in float64, of counts and of codes of five categories."""
    outcome = Outcome(TITLE, notes=_peers.missing())
    n = settings.size(POINTS, 1000)
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(1.0, size=(n, DIM)).astype(np.float64) for _ in range(2))
    A, B = (rng.integers(0, 5, size=(n, DIM)).astype(np.float64) for _ in range(2))
    _run("chi-square", _chi_square(X, Y), _loop(_chi2_term, X, Y, -_GAMMA), settings, outcome)
    _run("minimum", _minimum(X, Y), _loop(np.minimum, X, Y), settings, outcome)
    _run("Hamming", _hamming(A, B), _loop(np.not_equal, A, B, -1.0), settings, outcome)
    return outcome


def _run(
    case: str, named: dict[str, Contender], reference: Array, settings: Settings, outcome: Outcome
) -> None:
    errors: dict[Key, float] = {}

    def inspect(key: Key, result: Array) -> None:
        errors[key] = error(result[:_CHECKED], reference)

    contenders = {Key(case, name): call for name, call in named.items()}
    raced = race(f"coordinates, {case}", contenders, settings, inspect)
    ours = Key(case, OURS)
    outcome.add_notes(case, raced)
    outcome.add_rows(case, raced, ours, errors=errors)
    others = [raced.ratio(key, ours) for key in contenders if key != ours]
    best = min((ratio for ratio in others if ratio is not None), default=None)
    outcome.add_figures(case, {FASTER: best}, {FASTER: _BARS[case]})


def _loop(
    term: Callable[[Array, Array], Array], X: Array, Y: Array, exponent: float | None = None
) -> Array:
    """The first rows, a coordinate at a time; the exponential of `exponent` times them if given."""
    total = np.zeros((_CHECKED, len(Y)))
    for c in range(DIM):
        total += term(X[:_CHECKED, c, None], Y[None, :, c])
    return total if exponent is None else np.exp(exponent * total)


def _chi2_term(x: Array, y: Array) -> Array:
    total = x + y
    return np.asarray((x - y) ** 2 / np.where(total == 0, 1.0, total))


def _chi_square(X: Array, Y: Array) -> dict[str, Contender]:
    program = ChiSquare(_GAMMA).program
    return {
        OURS: lambda: gram(program, X, Y),
        "sklearn chi2_kernel": lambda: chi2_kernel(X, Y, gamma=_GAMMA),
        "sklearn pairwise, n_jobs": lambda: pairwise_kernels(
            X, Y, metric="chi2", n_jobs=threads(), gamma=_GAMMA
        ),
    }


def _minimum(X: Array, Y: Array) -> dict[str, Contender]:
    """Of others by min(x, y) = (x + y - |x - y|) / 2, and by NumPy, a column at a time."""
    program = Minimum().program
    sums = X.sum(axis=1)[:, None] + Y.sum(axis=1)

    def of(distances: Callable[[], Array]) -> Contender:
        return lambda: 0.5 * (sums - distances())

    def by_columns() -> Array:
        total, part = np.zeros((2, len(X), len(Y)))
        for c in range(DIM):
            total += np.minimum(X[:, c, None], Y[:, c], out=part)
        return np.asarray(total)

    out: dict[str, Contender] = {
        OURS: lambda: gram(program, X, Y),
        "scipy cdist cityblock": of(lambda: cdist(X, Y, "cityblock")),
        "NumPy, columns": by_columns,
    }
    if _peers.torch() is not None:
        out["torch cdist, p = 1"] = of(lambda: _torch_distances(X, Y, 1.0))
    return out


def _hamming(X: Array, Y: Array) -> dict[str, Contender]:
    program = Hamming(1.0).program
    out: dict[str, Contender] = {
        OURS: lambda: gram(program, X, Y),
        "scipy cdist hamming": lambda: np.exp(-DIM * cdist(X, Y, "hamming")),
    }
    if _peers.torch() is not None:
        out["torch cdist, p = 0"] = lambda: np.exp(-_torch_distances(X, Y, 0.0))
    return out


def _torch_distances(X: Array, Y: Array, p: float) -> Array:
    torch = _peers.torch()
    with torch.inference_mode():
        return torch.cdist(torch.from_numpy(X), torch.from_numpy(Y), p=p).numpy()  # type: ignore[no-any-return]
