"""Denoising tables: the default must not do harm, and must help where it can.

Standardised tables with normal noise added; the rows that were fitted are denoised. Figures are
mean squared errors over those of the noisy rows (at noise 0, the mean squared error itself).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn import datasets as sk

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._report import Outcome, at_most

TITLE = "Denoising tables: error over that of the noisy rows"
NEEDS = ("california_housing.npz", "covtype_100k.npz")

LEVELS = (0.0, 0.05, 0.1, 0.3)
SEEDS = 5
_ROWS = 2000


def run(settings: Settings) -> Outcome:
    """Untuned and with the noise given on tables; untuned where noise can be told."""
    outcome = Outcome(TITLE)
    seeds = settings.size(SEEDS, 1)
    for name, draw in _tables():
        for sd in LEVELS:
            untuned, given = _errors(draw, sd, seeds, settings)
            bars = {"untuned": at_most(1.02 if sd else 1e-4), "noise given": at_most(1.0)}
            if not sd:
                del bars["noise given"]
            outcome.add_figures(
                f"{name}, sd {sd}", {"untuned": untuned, "noise given": given}, bars
            )
    for name, draw in _factors():
        for sd in (0.1, 0.3):
            untuned, given = _errors(draw, sd, seeds, settings)
            values = {"untuned": untuned, "noise given": given}
            outcome.add_figures(f"{name}, sd {sd}", values, {"untuned": at_most(0.6)})
    return outcome


Draw = Callable[[np.random.Generator], Array]


def _errors(draw: Draw, sd: float, seeds: int, settings: Settings) -> tuple[float, float]:
    """The largest ratio over the seeds, untuned and with the noise given."""
    ratios = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        clean = draw(rng)[: settings.size(_ROWS, 120)]
        noisy = clean + sd * rng.normal(size=clean.shape)
        before = float(np.mean((noisy - clean) ** 2)) or 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mc.exceptions.MercerWarning)
            models = mc.KernelDenoiser(), mc.KernelDenoiser(noise=sd)
            found = [model.fit_transform(noisy) for model in models]
        ratios.append([float(np.mean((Z - clean) ** 2)) / before for Z in found])
    untuned, given = np.max(ratios, axis=0)
    return float(untuned), float(given)


def _tables() -> Iterator[tuple[str, Draw]]:
    raw = {
        "iris": sk.load_iris().data,
        "wine": sk.load_wine().data,
        "breast cancer": sk.load_breast_cancer().data,
        "diabetes": sk.load_diabetes().data,
    }
    if (DATA / "california_housing.npz").exists():
        raw["california"] = np.load(DATA / "california_housing.npz")["data"][:_ROWS]
        raw["covertype"] = np.load(DATA / "covtype_100k.npz")["num"][:_ROWS].astype(float)
    for name, X in raw.items():
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        yield name, lambda _rng, Z=Z: Z
    yield "independent normals", lambda rng: rng.normal(size=(500, 8))


def _factors() -> Iterator[tuple[str, Draw]]:
    def curve(rng: np.random.Generator) -> Array:
        t = rng.uniform(0.0, 2.0 * np.pi, 500)
        return np.column_stack([np.cos(t), np.sin(t)]) @ rng.normal(size=(2, 20))

    yield "curve in 20 columns", curve
    yield (
        "three factors in 30 columns",
        lambda rng: rng.normal(size=(500, 3)) @ rng.normal(size=(3, 30)),
    )
