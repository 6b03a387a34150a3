"""Pal and Vepakomma, Convergence of mean shift for large bandwidths (2025): Figures 1 to 7."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mercer._array import Array
from mercer._words import counted
from mercer.kernels import Gaussian, Laplace
from mercer.methods import (
    blurring_mean_shift,
    clustering_accuracy,
    convergence_bandwidth,
    mean_shift,
)
from mercer.plot._style import BLUE, COLOURS, GREY, ORANGE
from mercer.reproduce._data import read_faithful, read_iris, read_seeds, standardised
from mercer.reproduce._experiment import Cell, Claim, Experiment, Result
from mercer.reproduce._figures import axes_grid
from mercer.space import mean_embedding

SOURCE = (
    "S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large bandwidths and "
    "simultaneous accurate clustering, 2025"
)
INFINITE = (
    "Theorem 1 gives no bandwidth for the Laplace kernel: its equation has the root 0 only, so "
    "that h₀ is infinite."
)


def _groups(n: int, d: int, rng: np.random.Generator) -> Array:
    """Half of n points from N(1, I), half from N(3, I)."""
    return np.asarray(rng.normal(size=(n, d)) + np.repeat([1.0, 3.0], n // 2)[:, None])


def _laplace_clusters(X: Array, tau: float) -> Array:
    """Labels of mean shift with exp(-tau |x - y|), exact at its cusps."""
    return np.asarray(mean_shift(mean_embedding(Laplace(1.0 / tau), X)).labels)


def _laplace_bandwidth(X: Array) -> float:
    """h0 of Theorem 1, with norms about the origin, as in the paper."""
    return float(convergence_bandwidth(Laplace(1.0), X, centre=np.zeros(X.shape[1])))


# --- Gaussian at the guaranteed bandwidth -----------------------------------------------------


def collapse(_: Path | None) -> Result:
    """Figures 1 and 7: at h0 all points are one cluster."""
    rng, printed = np.random.default_rng(0), 68.04
    rows: list[tuple[Cell, ...]] = []
    off: dict[int, float] = {}
    for d in (1, 100):
        h0 = [
            float(convergence_bandwidth(Gaussian(), _groups(200, d, rng), centre=np.zeros(d)))
            for _ in range(100)
        ]
        mean, sd = float(np.mean(h0)), float(np.std(h0))
        off[d] = abs(printed - mean) / sd
        rows.append((d, mean, sd, printed, off[d]))
    X = _groups(200, 100, rng)
    h0_here = float(convergence_bandwidth(Gaussian(), X, centre=np.zeros(100)))
    found = mean_shift(mean_embedding(Gaussian(h0_here), X))
    narrow = mean_shift(mean_embedding(Gaussian(6.0), X))
    figure, axes = axes_grid(1, 3, 2.5, sharex=True, sharey=True)
    shown = (("samples", X), ("h₀, one step", _gaussian_step(X, h0_here)),
             ("bandwidth 6, modes", narrow.points[narrow.labels]))  # fmt: skip
    for axis, (title, Z), size in zip(axes[0], shown, (4, 9, 9), strict=True):
        axis.plot(X[:, 0], X[:, 1], ".", ms=3, color="0.8")
        for part, colour in ((slice(0, 100), BLUE), (slice(100, 200), ORANGE)):
            axis.plot(Z[part, 0], Z[part, 1], ".", ms=size, color=colour)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("first coordinate", fontsize=8)
    axes[0, 0].set_ylabel("second coordinate", fontsize=8)
    columns = ("dimension", "mean of h₀ (100 draws)", "standard deviation", "printed h₀",
               "standard deviations off")  # fmt: skip
    claims = (
        Claim("h₀ = 68.04 for N(1, 1) and N(3, 1), 200 points on a line (standard deviations "
              "off)", "68.04", off[1], high=3.0,
              why="The bandwidth does not fit points on a line, as in the caption of Figure 2. It "
              "fits 100 dimensions, which the paper does not state.",
              corrected=Claim("the same in 100 dimensions", "68.04", off[100], high=3.0)),
        Claim("at h₀ mean shift finds one cluster (clusters, 100 dimensions)", "1", len(found),
              1.0, 1.0),
        Claim("the right number is two (clusters at bandwidth 6)", "2", len(narrow), 2.0, 2.0),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


def _gaussian_step(X: Array, length: float) -> Array:
    """All points after one step of mean shift."""
    K = np.asarray(Gaussian(length)(X))
    return np.asarray(K @ X / K.sum(axis=1, keepdims=True))


# --- Laplace on two groups --------------------------------------------------------------------


def laplace_groups(_: Path | None) -> Result:
    """Figure 2: 100 points of two groups."""
    rng = np.random.default_rng(0)
    taus = np.geomspace(0.02, 5.0, 25)
    truth = np.repeat([0, 1], 50)
    figure, axes = axes_grid(1, 2, 2.7)
    rows: list[tuple[Cell, ...]] = []
    correct: dict[int, int] = {}
    bandwidth = 0.0
    for d, colour in ((1, BLUE), (100, ORANGE)):
        X = _groups(100, d, rng)
        bandwidth = _laplace_bandwidth(X)
        labels = [_laplace_clusters(X, tau) for tau in taus]
        counts = [int(one.max()) + 1 for one in labels]
        right = [clustering_accuracy(truth, one).correct for one in labels]
        two = [i for i, count in enumerate(counts) if count == 2]
        correct[d] = max((right[i] for i in two), default=0)
        span = f"{taus[two[0]]:.3g} to {taus[two[-1]]:.3g}" if two else "none"
        rows.append((d, bandwidth, counts[0], span, correct[d]))
        label = counted(d, "dimension")
        axes[0, 0].loglog(taus, counts, ".-", ms=4, color=colour, label=label)
        axes[0, 1].semilogx(taus, right, ".-", ms=4, color=colour)
    for axis, label in zip(axes[0], ("clusters", "correct, of 100"), strict=True):
        axis.set_xlabel("λ / h", fontsize=8)
        axis.set_ylabel(label, fontsize=8)
    axes[0, 0].axhline(2, color=GREY, lw=0.7)
    axes[0, 0].legend(fontsize=7.5, frameon=False)
    columns = ("dimension", "h₀ of Theorem 1", "clusters at λ / h = 0.02",
               "two clusters at λ / h from", "correct with two clusters")  # fmt: skip
    claims = (
        Claim("Theorem 1 prescribes a bandwidth for the Laplace kernel", "finite", bandwidth,
              high=1e300, why=f"{INFINITE} For large h all points are one cluster. With λ / h "
              "chosen by hand there are two. On a line the groups overlap, so that the best "
              "possible rule is right for 84 % of the points; in 100 dimensions every point is "
              "right.",
              corrected=Claim("a bandwidth chosen by hand gives two clusters (correct of 100, on "
                              "the line)", "2 clusters", correct[1], low=75.0)),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


# --- Old Faithful -----------------------------------------------------------------------------

LAMBDA, BANDWIDTH = 0.175, 0.602


def old_faithful(data: Path | None) -> Result:
    """Figures 3 and 4: two clusters of eruptions."""
    assert data is not None
    raw = read_faithful(data)
    X, truth = standardised(raw), raw[:, 0] > 3.0
    published = LAMBDA / BANDWIDTH
    rows: list[tuple[Cell, ...]] = []
    for what, points, tau in (
        ("as printed, raw data", raw, published),
        ("as printed, standardised", X, published),
        *((f"standardised, λ / h = {tau:g}", X, tau) for tau in (1.0, 2.0, 4.0)),
    ):
        labels = _laplace_clusters(points, tau)
        rows.append((what, tau, int(labels.max()) + 1, clustering_accuracy(truth, labels).correct))
    figure, axes = axes_grid(1, 2, 2.9, sharey=True)
    for axis, tau in zip(axes[0], (published, 2.0), strict=True):
        found = mean_shift(mean_embedding(Laplace(1.0 / tau), X))
        for j in range(len(found)):
            own = raw[found.labels == j]
            axis.plot(*own.T, ".", ms=4, color=COLOURS[j % len(COLOURS)])
        modes = found.points * raw.std(axis=0) + raw.mean(axis=0)
        axis.plot(*modes.T, "*", ms=13, color="gold", mec="black")
        axis.set_title(f"λ / h = {tau:.3g}", fontsize=9)
        axis.set_xlabel("eruption, minutes", fontsize=8)
    axes[0, 0].set_ylabel("wait, minutes", fontsize=8)
    columns = ("setting", "λ / h", "clusters", "correct, of 272 (eruption > 3 minutes)")
    claims = (
        Claim("Theorem 1 gives h₀ = 0.602 for λ = 0.175", "0.602", _laplace_bandwidth(raw),
              0.6015, 0.6025,
              why=f"{INFINITE} The printed λ / h does not separate the eruptions either, neither "
              "on raw nor on standardised data. At λ / h from 1 to 4 on standardised data mean "
              "shift finds the two clusters."),
        Claim("two clusters at λ = 0.175, h = 0.602 (standardised data)", "2", float(rows[1][2]),
              2.0, 2.0, why="",
              corrected=Claim("two clusters at λ / h = 2", "2", float(rows[3][2]), 2.0, 2.0)),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


# --- accuracies -------------------------------------------------------------------------------

# printed accuracy and interval; the counts are those whose exact interval is printed
TABLE_1 = {
    "seeds": (0.87, (0.8185, 0.9135), 183),
    "Old Faithful": (0.97, (0.9477, 0.9896), 265),
    "iris": (0.90, (0.8404, 0.9429), 135),
    "synthetic": (1.00, (0.9817, 1.0), 200),
}
BY_HAND = {"seeds": 1.0, "Old Faithful": 2.0, "iris": 2.5, "synthetic": 0.2}  # lambda / h


def accuracies(data: Path | None) -> Result:
    """Table 1: shares of correctly clustered rows."""
    from sklearn.cluster import KMeans

    assert data is not None
    faithful, (seeds, kinds), (iris, species) = read_faithful(data), read_seeds(data), read_iris()
    groups = _groups(200, 100, np.random.default_rng(0))
    sets = {
        "seeds": (standardised(seeds), kinds),
        "Old Faithful": (standardised(faithful), faithful[:, 0] > 3.0),
        "iris": (iris, species),
        "synthetic": (groups, np.repeat([0, 1], 100)),
    }
    rows: list[tuple[Cell, ...]] = []
    interval_error, short, clusters_off = 0.0, -1.0, 0
    for name, (X, truth) in sets.items():
        printed, interval, count = TABLE_1[name]
        n, classes = len(X), len(np.unique(truth))
        exact = clustering_accuracy(np.arange(n) < count, np.zeros(n)).interval
        interval_error = max(interval_error, *np.abs(np.subtract(exact, interval)))
        labels = _laplace_clusters(X, BY_HAND[name])
        correct = clustering_accuracy(truth, labels).correct
        large = clustering_accuracy(truth, _laplace_clusters(X, 0.02)).correct
        simple = KMeans(classes, n_init=10, random_state=0).fit_predict(X)
        rows.append((name, n, f"{count} ({printed:.2f})", large, BY_HAND[name],
                     int(labels.max()) + 1, correct,
                     clustering_accuracy(truth, simple).correct))  # fmt: skip
        short = max(short, interval[0] - correct / n)
        clusters_off += int(labels.max()) + 1 != classes
    columns = ("set", "rows", "printed correct", "correct, large h", "λ / h by hand",
               "clusters", "correct", "correct, k-means")  # fmt: skip
    simple_too = sum(float(r[7]) / float(r[1]) >= TABLE_1[str(r[0])][1][0] for r in rows)
    worst = min(float(row[3]) / float(row[1]) - TABLE_1[str(row[0])][1][0] for row in rows)
    claims = (
        Claim("the printed intervals are exact binomial intervals of whole counts (largest "
              "difference)", "four digits", interval_error, high=6e-5),
        Claim("accuracies at the bandwidth of Theorem 1 (smallest excess over the printed "
              "interval's lower end)", "in the interval", worst, low=0.0,
              why=f"{INFINITE} At a large bandwidth all rows are one cluster. With λ / h chosen "
              "by hand for each set, exact mean shift reaches the printed accuracies; so does "
              f"k-means on {simple_too} of {len(rows)} sets. Old Faithful has no true classes "
              "(here: eruptions longer than three minutes).",
              corrected=Claim("accuracies with λ / h chosen by hand (largest shortfall from the "
                              "interval's lower end)", "in the interval", short, high=0.0)),
        Claim("the number of clusters is right with λ / h chosen by hand (sets where it is not)",
              "0", clusters_off, high=0.0),
    )  # fmt: skip
    return Result(columns, rows, claims, _accuracy_figure(rows))


def _accuracy_figure(rows: list[tuple[Cell, ...]]) -> object:
    figure, axes = axes_grid(1, 1, 2.6)
    axis, at = axes[0, 0], np.arange(len(rows))
    bars = ((3, GREY, "large h"), (6, BLUE, "λ / h by hand"), (7, ORANGE, "k-means"))
    for k, (column, colour, label) in enumerate(bars):
        share = [float(row[column]) / float(row[1]) for row in rows]
        axis.bar(at + 0.25 * (k - 1), share, 0.22, color=colour, label=label)
    for x, row in zip(at, rows, strict=True):
        printed, (low, high), _ = TABLE_1[str(row[0])]
        error = [[printed - low], [high - printed]]
        axis.errorbar(x, printed, error, fmt="k_", capsize=14, lw=1.2,
                      label=None if x else "printed, with interval")  # fmt: skip
    axis.set_xticks(at, [str(row[0]) for row in rows])
    axis.set(ylim=(0.0, 1.05), ylabel="share correct")
    axis.legend(fontsize=7.5, frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


# --- weights ----------------------------------------------------------------------------------

ITERATIONS = (0, 1, 3, 10)
TAUS = (0.5, 1.0, 2.0, 4.0, 8.0)  # the paper does not state lambda
SHOWN_TAU = 1.0


def weights(data: Path | None) -> Result:
    """Figure 6: weights between points that move, in the order of the classes."""
    assert data is not None
    sets = {"iris": read_iris(), "seeds": read_seeds(data)}
    figure, axes = axes_grid(len(sets), len(ITERATIONS), 3.9, frame=False)
    rows: list[tuple[Cell, ...]] = []
    for line, (name, (X, truth)) in zip(axes, sets.items(), strict=True):
        same = truth[:, None] == truth[None]
        for tau in TAUS:
            matrices = [_weights(X, tau, steps) for steps in ITERATIONS]
            outside = [float(1.0 - (W * same).sum() / len(X)) for W in matrices]
            rows.append((name, tau, *outside))
            for axis, W, steps in zip(line, matrices, ITERATIONS, strict=True):
                if tau == SHOWN_TAU:
                    axis.imshow(np.sqrt(W), cmap="Blues", vmin=0.0, vmax=0.3)
                    axis.set_title(f"{steps} steps" if steps != 1 else "1 step", fontsize=9)
        line[0].set_ylabel(name, fontsize=9)
    columns = ("set", "λ / h", *(f"weight outside the class after {t} steps" for t in ITERATIONS))
    changes = [float(row[-1]) - float(row[2]) for row in rows if row[1] == SHOWN_TAU]
    claims = (
        Claim("blocks sharpen: the weight outside the class falls (largest change, λ / h = 1)",
              "figure", max(changes), high=0.0),
        Claim("weights outside the classes diminish to near zero (smallest share after 10 steps, "
              "over five λ / h, of the worse set)", "near zero",
              max(min(float(r[-1]) for r in rows if r[0] == name) for name in sets), high=0.02,
              why="Blocks sharpen, but they are not the classes: a share of the weight stays "
              "outside at every λ / h, because the classes overlap. λ is not stated."),
    )  # fmt: skip
    return Result(columns, rows, claims, figure)


def _weights(X: Array, tau: float, steps: int) -> Array:
    """Weights of Laplace mean shift after points moved; a point has no weight for itself.

    The weight of a point for itself would be infinite. Points that met are as far apart as
    rounding, which is far enough for a finite weight.
    """
    Z = X
    if steps:
        k = Laplace(1.0 / tau)
        Z = blurring_mean_shift(k, X, own="exclude", tol=1e-15, max_iter=steps).points
    distance = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    distance = np.maximum(distance, 1e-9 * distance.max())
    W = np.exp(-tau * distance) / distance
    np.fill_diagonal(W, 0.0)
    return np.asarray(W / W.sum(axis=1, keepdims=True))


EXPERIMENTS = (
    Experiment(
        "gaussian-collapse", "Gaussian mean shift at the guaranteed bandwidth", SOURCE,
        "Figs. 1 and 7",
        "Two groups N(1, I) and N(3, I); Gaussian mean shift at h₀ = 2 max |x|, for which "
        "convergence is proved. Figure 7 prints h₀ = 68.04 and neither the dimension nor the "
        "number of points (200 in Table 1).", collapse, 10),
    Experiment(
        "laplace-groups", "Laplace mean shift on two groups", SOURCE, "Fig. 2",
        "50 points of N(1, 1) and 50 of N(3, 1); Laplace mean shift at the bandwidth of "
        "Theorem 1, with a λ that is not stated. Steps at data points, where the kernel has a "
        "cusp, are those of Vardi and Zhang; the printed formula is infinite there.",
        laplace_groups, 10),
    Experiment(
        "faithful", "Laplace mean shift on the Old Faithful data", SOURCE, "Figs. 3 and 4",
        "272 eruptions, Laplace mean shift with λ = 0.175 at h₀ = 0.602. Figure: clusters at the "
        "printed λ / h (left) and at λ / h = 2 (right), standardised data.", old_faithful, 5,
        ("faithful.csv",)),
    Experiment(
        "accuracies", "Clustering accuracies", SOURCE, "Table 1",
        "Laplace mean shift at the bandwidth of Theorem 1 on four sets. λ, scaling and the true "
        "classes of Old Faithful are not stated.", accuracies, 10, ("faithful.csv", "seeds.csv")),
    Experiment(
        "weights", "Weight matrices of Laplace mean shift", SOURCE, "Fig. 6",
        "Weights between points of iris and seeds that move (blurring mean shift), in the order "
        "of their classes. λ is not stated; the figure has λ / h = 1 and square roots of the "
        "weights.", weights, 20, ("seeds.csv",)),
)  # fmt: skip
