"""Sakulwongtana, Advanced topics in machine learning (notes): Remarks 73 to 77 and 98."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mercer._array import Array
from mercer.plot._style import BLUE, COLOURS, GREEN, GREY, ORANGE
from mercer.reproduce._experiment import Cell, Claim, Experiment, Result
from mercer.reproduce._figures import axes_grid
from mercer.theory.first_order import decreasing_steps, subgradient_method
from mercer.theory.learning import Thresholds

SOURCE = "P. Sakulwongtana, Advanced topics in machine learning"
DELTA, FLIP, TARGET = 0.1, 0.2, 0.3456  # confidence, share of wrong labels, best threshold
SIZES = (25, 50, 100, 200, 400, 800, 1600)
REPETITIONS = 400


def thresholds(_: Path | None) -> Result:
    """Remarks 73 to 77: bounds on the error of the best of 20 thresholds."""
    rng, learner = np.random.default_rng(0), Thresholds(1)
    rows: list[tuple[Cell, ...]] = []
    for n in SIZES:
        gaps, excess = np.array([_fitted(learner, n, rng) for _ in range(REPETITIONS)]).T
        mean_bound = 10.0**learner.digits / np.sqrt(n)
        rows.append((n, float(gaps.mean()), mean_bound, float(np.quantile(gaps, 1.0 - DELTA)),
                     learner.deviation_bound(n, DELTA), float(np.quantile(excess, 1.0 - DELTA)),
                     learner.excess_bound(n, DELTA)))  # fmt: skip
    columns = ("rows n", "mean |Eₙ - E|", "10^p / √n", "90 % quantile of |Eₙ - E|",
               "√((4 + 6p - 2 log δ) / n)", "90 % quantile of the excess risk",
               "bound of Remark 77")  # fmt: skip
    figure, axes = axes_grid(1, 2, 2.8)
    parts = ((axes[0, 0], (1, 2, 3, 4)), (axes[0, 1], (5, 6)))
    for axis, shown in parts:
        for j in shown:
            style = {"color": COLOURS[(j - 1) // 2], "ls": "--" if j % 2 == 0 else "-"}
            axis.loglog(SIZES, [float(row[j]) for row in rows], **style, lw=1.3, label=columns[j])
        axis.legend(fontsize=7, frameon=False, loc="lower left")
        axis.set_xlabel("n", fontsize=8)
        axis.set_ylim(bottom=1e-3)  # room for the legend
    return Result(columns, rows, _threshold_claims(rows, learner, rng), figure)


def _fitted(learner: Thresholds, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """|E_n - E| and the excess risk of a threshold fitted to n uniform rows with noisy labels."""
    x = rng.uniform(-1.0, 1.0, n)
    y = (x >= TARGET) ^ (rng.random(n) < FLIP)
    a = learner.fit(x, y.astype(int))
    excess = (1.0 - 2.0 * FLIP) * abs(a - TARGET) / 2.0
    return abs(float(np.mean((x >= a) != y)) - FLIP - excess), excess


def _threshold_claims(
    rows: list[tuple[Cell, ...]], learner: Thresholds, rng: np.random.Generator
) -> tuple[Claim, ...]:
    numbers = np.array(rows, dtype=float)
    digits = np.arange(12)
    logs = np.log([2.0 * Thresholds(int(p)).size for p in digits]) - (2.0 + 3.0 * digits)

    def approximation(x: Array, target: float) -> float:
        risks = [float(np.mean((x >= a) != (x >= target))) for a in learner.values]
        return min(risks)

    return (
        Claim("|H₁| = 20", "20", len(learner.values), 20.0, 20.0),
        Claim("E|Eₙ - E| <= 10^p / √n (largest ratio)", "<= 1",
              float((numbers[:, 1] / numbers[:, 2]).max()), high=1.0),
        Claim("|Eₙ - E| <= √((4 + 6p - 2 log δ) / n) with probability 1 - δ (largest ratio of the "
              "quantile)", "<= 1", float((numbers[:, 3] / numbers[:, 4]).max()), high=1.0),
        Claim("log 2|H_p| <= 2 + 3p (largest difference, p < 12)", "<= 0", float(logs.max()),
              high=0.0),
        Claim("excess risk <= bound of Remark 77 with probability 1 - δ (largest ratio of the "
              "quantile)", "<= 1", float((numbers[:, 5] / numbers[:, 6]).max()), high=1.0),
        Claim("the approximation error is at most 10^-p for any distribution on [-1, 1] (density 5 "
              "on [0, 0.2], p = 1)", "<= 0.1", approximation(rng.uniform(0.0, 0.2, 100_000), 0.05),
              high=0.1,
              why="Lemma 3.2.2, behind Remark 77, needs a density of at most 1: with density 5 "
              "the best threshold with one decimal is wrong for a quarter of the rows.",
              corrected=Claim("the same with density at most 1 (uniform on [-1, 1])", "<= 0.1",
                              approximation(rng.uniform(-1.0, 1.0, 100_000), 0.05), high=0.1)),
    )  # fmt: skip


# --- a subgradient step that goes uphill ------------------------------------------------------


def _f(x: Array) -> float:
    return float(abs(x[0]) + 2.0 * abs(x[1]))


def _subgradient(x: Array) -> Array:
    """A subgradient of f; at x_2 = 0 the one of the notes, 2 in the second coordinate."""
    return np.array([1.0 if x[0] >= 0 else -1.0, 2.0 if x[1] >= 0 else -2.0])


def subgradient(_: Path | None) -> Result:
    """Remark 98: f = |x1| + 2 |x2| at (1, 0) with the subgradient (1, 2)."""
    start = np.array([1.0, 0.0])
    rows: list[tuple[Cell, ...]] = []
    for step in (1e-3, 1e-2, 0.1, 0.3, 1.0):
        after = start - step * _subgradient(start)
        rows.append((step, _f(start), _f(after), _f(after) - _f(start)))
    found = subgradient_method(_f, _subgradient, start, decreasing_steps(3000, 0.3))
    figure, axes = axes_grid(1, 2, 2.8)
    left, right = axes[0]
    x, y = np.meshgrid(np.linspace(-0.6, 1.6, 200), np.linspace(-1.0, 1.0, 200))
    left.contour(x, y, np.abs(x) + 2.0 * np.abs(y), levels=12, colors=GREY, linewidths=0.6)
    left.plot(*found.points[:30].T, ".-", color=BLUE, ms=3, lw=0.6)
    left.annotate("", start - 0.3 * _subgradient(start), start,
                  arrowprops={"arrowstyle": "->", "color": ORANGE, "lw": 2})  # fmt: skip
    left.plot(*start, "o", color=ORANGE, ms=5)
    left.set(xlabel="x₁", ylabel="x₂")
    right.loglog(np.arange(1, len(found.values) + 1), found.values, color=GREY, lw=0.4,
                 label="f at each step")  # fmt: skip
    right.loglog(np.arange(1, len(found.values) + 1), found.best_values, color=GREEN, lw=1.5,
                 label="best value so far")  # fmt: skip
    right.set(xlabel="step", ylabel="f")
    right.legend(fontsize=7.5, frameon=False)
    columns = ("step size", "f before", "f after", "change")
    claims = (
        Claim("the step from (1, 0) along (1, 2) does not descend (smallest change)", "> 0",
              min(float(row[3]) for row in rows), low=1e-12),
        Claim("this choice does not lead to any convergence (best value after 3,000 steps of size "
              "0.3 / √(k + 1))", "no convergence", float(found.best_values[-1]), low=0.5,
              why="A step may go uphill, but the method converges: with step sizes that fall as "
              "1 / √k the best value tends to the minimum 0.",
              corrected=Claim("single steps may go uphill while the best value converges (largest "
                              "rise of a step on the way)", "> 0",
                              float(np.diff(found.values).max()), low=1e-12)),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


EXPERIMENTS = (
    Experiment(
        "thresholds", "Bounds for threshold functions", SOURCE, "Remarks 73 to 77",
        "The 20 thresholds with one decimal; 400 samples of n uniform rows whose labels are wrong "
        "with probability 0.2 (chosen here; the notes have no simulation), δ = 0.1. Fitted "
        "thresholds against both bounds.", thresholds, 3),
    Experiment(
        "subgradient", "A subgradient step that goes uphill", SOURCE, "Remark 98",
        "f(x) = |x₁| + 2 |x₂| at (1, 0) with the subgradient (1, 2). Figure: the step (orange) and "
        "the path of the method with step sizes 0.3 / √(k + 1).", subgradient, 1),
)  # fmt: skip
