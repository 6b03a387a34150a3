"""Denoising handwritten digits: kernel PCA beside PCA, nearest neighbours and scikit-learn.

Nine cells: three data sets by three kinds of noise, on training and test rows alike. A tuned row is
the best of its settings on validation rows whose clean versions are known; the other rows see noisy
data only. Errors are mean squared errors per pixel, times 1e4 in the table. BLAS runs on one thread
for everybody: the matrices are small.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sklearn.decomposition
import threadpoolctl
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._report import Outcome, Row, at_least, at_most
from mercer.methods import feature_noise, fit_denoiser

TITLE = "Denoising digits, USPS and MNIST"
NEEDS = ("usps.npz", "mnist_small.npz")

BEST = "untuned default over the best row"
NOISY = "untuned default over the noisy input"
RATIO = "tuned over tuned sklearn"
AHEAD = "standard errors by which tuned is ahead of tuned sklearn, paired"
WON = "cells in which tuned is ahead by more than a standard error"
BARS = {BEST: at_most(1.25), RATIO: at_most(1.01)}
QUIET_BARS = {NOISY: at_most(1.05)}
CELLS_WON = at_least(4)

SPLITS = 5
SIZES = 500, 150, 200  # train, validation, test
BUDGET = 60  # settings of a tuned row at most

Denoise = Callable[[Array], Array]


@dataclass(frozen=True)
class Split:
    """Noisy rows to fit to, and noisy rows beside clean ones to tune and to test on."""

    train: Array
    validation: Array
    clean_validation: Array
    test: Array
    clean: Array


class Answer(NamedTuple):
    """Errors on the validation rows, by which settings are chosen, and on the test rows."""

    validation: float
    test: float
    seconds: float


# --- data -----------------------------------------------------------------------------------------


def _digits() -> Array:
    return np.asarray(load_digits().data) / 16.0


def _usps() -> Array:
    with np.load(DATA / "usps.npz") as file:
        X = file["X_train"] / file["scale"]
    return np.asarray(0.5 + 0.5 * X.reshape(len(X), -1))


def _mnist() -> Array:
    with np.load(DATA / "mnist_small.npz") as file:
        X = file["X_train"]
    return np.asarray(X.reshape(len(X), -1) / 255.0)


SETS: dict[str, Callable[[], Array]] = {"digits": _digits, "usps": _usps, "mnist": _mnist}


def _gaussian(sd: float) -> Callable[[Array, np.random.Generator], Array]:
    return lambda X, rng: X + sd * rng.normal(size=X.shape)


def _speckle(X: Array, rng: np.random.Generator) -> Array:
    """A pixel becomes 0 or 1 with probability 0.1 each."""
    u = rng.uniform(size=X.shape)
    return np.where(u < 0.1, 0.0, np.where(u < 0.2, 1.0, X))


NOISE = {"sd 0.25": _gaussian(0.25), "sd 0.5": _gaussian(0.5), "speckle 0.2": _speckle}
LOW_NOISE = {"sd 0.05": _gaussian(0.05), "sd 0.1": _gaussian(0.1)}


def _split(X: Array, noise: Callable, seed: int, sizes: tuple[int, int, int]) -> Split:
    rng = np.random.default_rng(seed)
    clean = X[rng.permutation(len(X))[: sum(sizes)]]
    noisy = noise(clean, rng)
    a, b = sizes[0], sizes[0] + sizes[1]
    return Split(noisy[:a], noisy[a:b], clean[a:b], noisy[b:], clean[b:])


# --- rows that others stand in --------------------------------------------------------------------


def _pca(train: Array) -> Iterator[Denoise]:
    """Sixty numbers of components."""
    most = min(len(train) - 1, train.shape[1])
    model = sklearn.decomposition.PCA(most).fit(train)
    numbers = np.unique(np.geomspace(1, most, 90).astype(int))
    for q in numbers[np.unique(np.linspace(0, len(numbers) - 1, BUDGET).astype(int))]:
        axes = model.components_[:q]
        yield lambda Y, V=axes, m=model.mean_: m + (Y - m) @ V.T @ V


def _neighbours(train: Array) -> Iterator[Denoise]:
    """The mean of the nearest training rows, and a share of the input."""
    model = NearestNeighbors(algorithm="brute").fit(train)
    for k in (1, 2, 3, 5, 8, 12, 20, 30, 50, 80):
        k = min(k, len(train))
        for share in (0.0, 0.1, 0.2, 0.3, 0.45, 0.6):
            yield (
                lambda Y, k=k, s=share: (
                    s * Y + (1.0 - s) * train[model.kneighbors(Y, k, return_distance=False)].mean(1)
                )
            )


def _sklearn(train: Array, **parameters: Any) -> Denoise:
    model = sklearn.decomposition.KernelPCA(
        kernel="rbf", fit_inverse_transform=True, **parameters
    ).fit(train)
    return lambda Y: np.asarray(model.inverse_transform(model.transform(Y)))


def _sklearn_grid(train: Array) -> Iterator[Denoise]:
    """The 60 settings of a larger search (384 of them) that did best over all cells.

    The ridge penalty goes with gamma, since distances in its feature space are scaled by it.
    """
    for share in (0.5, 1.0, 2.0):
        gamma = 1.0 / (2.0 * share * mc.median_scale(train) ** 2)
        for q in (20, 40, 80, None):
            for penalty in (0.6, 1.25, 2.5, 5.0, 10.0):
                yield _sklearn(train, gamma=gamma, n_components=q, alpha=penalty * gamma)


# --- our rows -------------------------------------------------------------------------------------

Way = Callable[[mc.Subspace, Array], Any]
_LOOSE = 1e-4  # of iterative solvers in grids: far below the noise

WAYS: dict[str, tuple[Any, Way]] = {  # untuned, and in a grid
    "regression": (None, lambda _plane, _train: None),
    "FixedPoint": (mc.FixedPoint(), lambda _plane, _train: mc.FixedPoint(tol=_LOOSE)),
    "LBFGS": (mc.LBFGS(), lambda _plane, _train: mc.LBFGS(tol=_LOOSE)),
    "ClosedForm": (mc.ClosedForm(), lambda _plane, _train: mc.ClosedForm()),
    "LearnedMap": (mc.LearnedMap(), lambda plane, train: mc.LearnedMap().fit(plane, train)),
}


def _untuned(**parameters: Any) -> Callable[[Array], Denoise]:
    return lambda train: mc.KernelDenoiser(**parameters).fit(train).transform


def _tikhonov(_plane: mc.Subspace, strength: float) -> mc.methods.Tikhonov:
    return mc.methods.Tikhonov(strength)


def _landweber(plane: mc.Subspace, strength: float) -> mc.methods.Landweber:
    """As many steps as halve a direction of this strength."""
    assert plane.eigenvalues is not None
    return mc.methods.Landweber(max(1, round(float(np.log(2.0) * plane.eigenvalues[0]) / strength)))


def _grid(way: Way, make: Callable = _tikhonov) -> Callable[[Array], Iterator[Denoise]]:
    """Four widths by five strengths, one decomposition for each width; trust from noisy rows.

    Squared widths are in units of the median squared distance; strengths in units of n s^2 over
    that, s the estimated noise. The default is a half and two.
    """

    def settings(train: Array) -> Iterator[Denoise]:
        noise = mc.methods.noise_level(train).sd or 0.25  # a quick run has too few rows to tell
        length = mc.median_scale(train)
        for share in (0.25, 0.5, 1.0, 2.0):
            kernel = mc.Gaussian(share**0.5 * length)
            plane = mc.kernel_pca(kernel, train)
            inverse = way(plane, train)
            unit = share * feature_noise(kernel, train, noise)
            for strength in (0.5, 1.0, 1.5, 2.5, 4.0):
                chosen = make(plane, strength * unit)
                yield fit_denoiser(plane, train, filter=chosen, noise=noise, inverse=inverse)

    return settings


# --- a cell ---------------------------------------------------------------------------------------

DEFAULT, TUNED, PEER = "mercer KernelDenoiser()", "mercer tuned", "sklearn tuned"
INPUT = "noisy input"

CONTENDERS: dict[str, Callable[[Array], Denoise | Iterator[Denoise]]] = {
    INPUT: lambda _train: lambda Y: Y,
    "PCA tuned": _pca,
    "nearest neighbours tuned": _neighbours,
    "sklearn default": _sklearn,
    PEER: _sklearn_grid,
    DEFAULT: _untuned(),
    **{
        f"mercer {name}": _untuned(inverse=way)
        for name, (way, _) in WAYS.items()
        if way is not None
    },
    "mercer Landweber": _untuned(filter=mc.methods.Landweber()),
    **{f"mercer {name} tuned": _grid(way) for name, (_, way) in WAYS.items()},
    "mercer Landweber tuned": _grid(WAYS["regression"][1], _landweber),
}
# 20 settings each; together they are the row of `TUNED`, with as many as the others
OURS_TUNED = tuple(f"mercer {name} tuned" for name in ("regression", "Landweber", "FixedPoint"))


def _answer(contender: Callable[[Array], Any], split: Split, most: int) -> Answer:
    """Fit, choose, denoise; `most` settings are tried."""
    start = time.perf_counter()
    made = contender(split.train)
    candidates: Iterable[Denoise] = [made] if callable(made) else made
    best, least = None, np.inf
    for count, denoise in enumerate(candidates):
        if count == most:
            break
        found = 0.0 if callable(made) else _error(denoise(split.validation), split.clean_validation)
        if found < least:
            best, least = denoise, found
    assert best is not None
    test = best(split.test)
    return Answer(least, _error(test, split.clean), time.perf_counter() - start)


def _error(found: Array, clean: Array) -> float:
    return float(np.mean((found - clean) ** 2))


Cell = dict[str, list[Answer]]


def _run_cell(X: Array, noise: Callable, names: Iterable[str], settings: Settings) -> Cell:
    """Every contender on every split; mercer tuned is the best of three, on validation rows."""
    cell: Cell = {name: [] for name in names}
    sizes = (60, 30, 30) if settings.quick else SIZES
    with threadpoolctl.threadpool_limits(1, "blas"):
        for seed in range(settings.size(SPLITS, 2)):
            split = _split(X, noise, seed, sizes)
            for name in cell:
                found = _answer(CONTENDERS[name], split, settings.size(BUDGET, 2))
                cell[name].append(found)
    if all(name in cell for name in OURS_TUNED):
        groups = zip(*(cell[name] for name in OURS_TUNED), strict=True)
        cell[TUNED] = [min(g)._replace(seconds=sum(a.seconds for a in g)) for g in groups]
    return cell


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    cells: dict[str, Cell] = {}
    for name, load in SETS.items():
        if settings.quick and name != "digits":
            continue
        try:
            X = load()
        except FileNotFoundError:
            outcome.notes.append(f"{name} left out: the data sets are not here")
            continue
        for kind, noise in (NOISE | LOW_NOISE).items():
            case = f"{name}, {kind}"
            print(f"denoising: {case}", file=sys.stderr, flush=True)
            chosen = CONTENDERS if kind in NOISE else (INPUT, DEFAULT)
            cell = _run_cell(X, noise, chosen, settings)
            _add_rows(outcome, case, cell)
            if kind in NOISE:
                cells[case] = cell
                outcome.add_figures(case, _figures(cell), BARS)
            else:
                ratio = _mean(cell, DEFAULT) / _mean(cell, INPUT)
                outcome.add_figures(case, {NOISY: ratio}, QUIET_BARS)
    won = sum(_figures(cell)[AHEAD] > 1.0 for cell in cells.values())
    outcome.add_figures("all cells", {WON: won}, {WON: CELLS_WON})
    outcome.notes += _winners(cells) + _table(cells)
    return outcome


# --- what is reported -----------------------------------------------------------------------------


def _errors(cell: Cell, name: str) -> Array:
    return np.array([answer.test for answer in cell[name]])


def _mean(cell: Cell, name: str) -> float:
    return float(_errors(cell, name).mean())


def _spread(values: Array) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _figures(cell: Cell) -> dict[str, float]:
    gap = _errors(cell, PEER) - _errors(cell, TUNED)
    return {
        BEST: _mean(cell, DEFAULT) / min(_mean(cell, name) for name in cell),
        RATIO: _mean(cell, TUNED) / _mean(cell, PEER),
        AHEAD: float(gap.mean() / _spread(gap)),
    }


def _add_rows(outcome: Outcome, case: str, cell: Cell) -> None:
    for name, answers in cell.items():
        seconds = [answer.seconds for answer in answers]
        outcome.rows.append(
            Row(
                case,
                name,
                min(seconds),
                float(np.median(seconds)),
                len(seconds),
                error=_mean(cell, name),
            )
        )


def _winners(cells: dict[str, Cell]) -> list[str]:
    """Which row is best in each cell, and where the simple ones beat ours."""
    lines = []
    for case, cell in cells.items():
        best = min(cell, key=lambda name: _mean(cell, name))
        simple = [name for name in cell if name.startswith(("PCA", "nearest"))]
        ahead = [
            f"{name} beats {ours}"
            for name in simple
            for ours in (DEFAULT, TUNED)
            if _mean(cell, name) < _mean(cell, ours)
        ]
        lines.append("; ".join([f"{case}: best is {best}", *ahead]))
    return lines


def _table(cells: dict[str, Cell]) -> list[str]:
    """Markdown: mean squared error x 1e4 +- standard error over splits."""
    if not cells:
        return []
    names = list(next(iter(cells.values())))
    lines = ["| | " + " | ".join(cells) + " |", "|---" * (1 + len(cells)) + "|"]
    for name in names:
        values = [1e4 * _errors(cell, name) for cell in cells.values()]
        best = [min(_mean(cell, other) for other in cell) for cell in cells.values()]
        texts = [
            f"**{v.mean():.0f}** +- {_spread(v):.0f}"
            if v.mean() <= 1e4 * least
            else f"{v.mean():.0f} +- {_spread(v):.0f}"
            for v, least in zip(values, best, strict=True)
        ]
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return lines
