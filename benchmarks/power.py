"""Power of the default tests against published figures, at level 0.05.

The simulations and the published figures are those of `mercer reproduce power`, with larger
samples as well.
"""

from __future__ import annotations

import numpy as np

from benchmarks._harness import Settings
from benchmarks._replications import rejections
from benchmarks._report import Outcome, at_least, at_most
from mercer.reproduce._power import (
    KSD_AGG,
    MGC,
    REPETITIONS,
    STANDARD_ERRORS,
    UNIFORM,
    designs,
    gamma_name,
    standard_error,
    uniform_name,
)

TITLE = "Power of the kernel tests at level 0.05, 200 data sets"
SHORTFALL = 0.01


def run(settings: Settings) -> Outcome:
    outcome = Outcome(TITLE)
    shares = rejections("power", designs(), REPETITIONS, (0.05,), settings)
    power = {name: share[0] for name, share in shares.items()}
    uniform = {uniform_name(*cell): max(found[:2]) for cell, found in UNIFORM.items()}
    _compare(outcome, power, "perturbed uniform", "better of FUSE and Agg", uniform)
    for cell, (_, _, median) in UNIFORM.items():
        name = f"{uniform_name(*cell)}, median rule"
        error = abs(power[name] - median) / standard_error(power[name], median)
        values = {"power": power[name], "published": median, "standard errors off": error}
        outcome.add_figures(name, values, {"standard errors off": at_most(STANDARD_ERRORS)})
    for shape, mgc in MGC.items():
        name = f"dependence, {shape}"
        values = {"power": power[name], "median rule": power[f"{name}, median rule"]}
        low = 0.9 * mgc if mgc is not None else values["median rule"] - 0.05
        outcome.add_figures(name, values | {"MGC": mgc}, {"power": at_least(low)})
    gamma = {gamma_name(shift): found for shift, found in KSD_AGG.items()}
    _compare(outcome, power, "goodness of fit", "KSDAgg", gamma)
    outcome.notes.append(
        "permutations: 999 for 500 rows, 299 for more and for dependence, 499 for KSD"
    )
    return outcome


def _compare(
    outcome: Outcome, power: dict[str, float], group: str, rival: str, published: dict[str, float]
) -> None:
    """Each cell against its published power, and the mean shortfall of all."""
    for name, value in published.items():
        short = (value - power[name]) / standard_error(power[name], value)
        values = {"power": power[name], rival: value, "standard errors short": short}
        outcome.add_figures(name, values, {"standard errors short": at_most(STANDARD_ERRORS)})
    mean = float(np.mean([value - power[name] for name, value in published.items()]))
    bars = {"mean shortfall": at_most(SHORTFALL)}
    outcome.add_figures(group, {"mean shortfall": mean}, bars)
