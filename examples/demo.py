"""What mercer is for: noise, missing values and novelties, untuned beside scikit-learn.

Prints one table and writes one picture, build/demo.png, in about a minute. All data come with
scikit-learn. Run with `make run`.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import threadpoolctl
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import ExtraTreesRegressor, IsolationForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

import mercer as mc

mpl.use("agg")
import matplotlib.pyplot as plt

OUTPUT = Path("build/demo.png")
SEEDS = 3
Method = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Contender:
    """A method, or one for each of several settings; the best is then chosen by its true error."""

    group: str  # "before", "mercer", "untuned" or "tuned"
    name: str
    settings: list[Method]


class Outcome(NamedTuple):
    """The error of a contender, its seconds without tuning, and what it returned."""

    error: float
    seconds: float
    found: Any


Results = dict[Contender, Outcome]
Panel = list[tuple[str, str, np.ndarray, str]]  # group, name, images and error of each row
SHOWN = (2, 3, 5, 6, 8, 9)  # digits in the picture


def compare(
    contenders: list[Contender], error: Callable[[Any], float], *data: np.ndarray
) -> Results:
    """Run every setting of every contender on the data, and keep the best."""
    results = {}
    for contender in contenders:
        outcomes = []
        for method in contender.settings:
            start = time.perf_counter()
            found = method(*data)
            outcomes.append(Outcome(error(found), time.perf_counter() - start, found))
        results[contender] = min(outcomes, key=lambda outcome: outcome.error)
    return results


def averaged(results: list[Results]) -> Results:
    """The mean errors and seconds of several comparisons."""
    return {c: Outcome(*np.mean([r[c][:2] for r in results], axis=0), None) for c in results[0]}


def panel(labels: np.ndarray, clean: np.ndarray, damaged: np.ndarray, results: Results) -> Panel:
    """Some images: clean, damaged, and what each contender makes of them, ours last."""
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in SHOWN]
    given = next((f"{o.error:.0f}" for c, o in results.items() if c.name == "noisy"), "")
    rows = [("", "clean", clean[chosen], "error\nx 1e4"), ("", "given", damaged[chosen], given)]
    rows += [
        (c.group, f"{c.name}, {c.group}", o.found[chosen], f"{o.error:.0f}")
        for c, o in sorted(results.items(), key=lambda item: item[0].group == "mercer")
        if c.group != "before"
    ]
    return rows


# --- noise: fit to noisy digits, denoise others -------------------------------------------------


def pca(components: int) -> Method:
    def denoise(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        model = PCA(components).fit(train)
        return model.inverse_transform(model.transform(test))

    return denoise


def kernel_pca(share: float = 0.0, components: int | None = None, penalty: float = 1.0) -> Method:
    """scikit-learn's, with its default width, or a share of the squared median distance."""

    def denoise(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        gamma = 1.0 / (2.0 * share * mc.median_scale(train) ** 2) if share else None
        alpha = penalty * gamma if gamma else penalty
        model = KernelPCA(
            components, kernel="rbf", gamma=gamma, alpha=alpha, fit_inverse_transform=True
        ).fit(train)
        return model.inverse_transform(model.transform(test))

    return denoise


DENOISERS = [
    Contender("before", "noisy", [lambda _, test: test]),
    Contender("tuned", "PCA", [pca(q) for q in (4, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50)]),
    Contender("untuned", "KernelPCA", [kernel_pca()]),
    Contender(
        "tuned",
        "KernelPCA",
        [
            kernel_pca(share, q, penalty)
            for share in (0.5, 1.0, 2.0)
            for q in (20, 80)
            for penalty in (5.0, 10.0, 20.0)
        ],
    ),
    Contender(
        "mercer",
        "KernelDenoiser",
        [lambda train, test: mc.KernelDenoiser().fit(train).transform(test)],
    ),
]


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images with pixels in [0, 1], in random order, and what they show."""
    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.data))
    return data.data[order] / 16.0, data.target[order]


def denoising(sd: float, seed: int, train: int = 500, test: int = 200) -> tuple[Panel, Results]:
    """Digits with noise: fit to some, denoise others."""
    rng = np.random.default_rng([seed, 1])
    clean, labels = (a[: train + test] for a in digits(seed))
    noisy = clean + sd * rng.normal(size=clean.shape)
    results = compare(DENOISERS, mean_square(clean[train:]), noisy[:train], noisy[train:])
    return panel(labels[train:], clean[train:], noisy[train:], results), results


def mean_square(truth: np.ndarray) -> Callable[[np.ndarray], float]:
    """The mean squared error, times 1e4."""
    return lambda found: 1e4 * float(np.mean((found - truth) ** 2))


# --- missing values -----------------------------------------------------------------------------


def fill(imputer: Callable[..., Any], **settings: Any) -> Method:
    def filled(holes: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return imputer(keep_empty_features=True, **settings).fit_transform(holes)

    return filled


NEIGHBOURS = Contender(
    "tuned", "KNNImputer", [fill(KNNImputer, n_neighbors=k) for k in (3, 10, 20)]
)
IMPUTERS = [
    Contender("before", "column means", [fill(SimpleImputer)]),
    Contender("untuned", "KNNImputer", [fill(KNNImputer)]),
    NEIGHBOURS,
    Contender("untuned", "IterativeImputer", [fill(IterativeImputer, random_state=0)]),
    Contender("mercer", "KernelImputer", [fill(mc.KernelImputer)]),
]
FOREST = ExtraTreesRegressor(50, random_state=0)
TREES = Contender(
    "tuned", "extra trees", [fill(IterativeImputer, estimator=FOREST, random_state=0)]
)


def missing_pixels(seed: int, count: int = 500, share: float = 0.5) -> tuple[Panel, Results]:
    """Digits with pixels missing."""
    truth, labels = (a[:count] for a in digits(seed))
    gone = np.random.default_rng([seed, 2]).random(truth.shape) < share
    holes, error = np.where(gone, np.nan, truth), mean_square(truth[gone])
    results = compare(IMPUTERS, lambda Z: error(Z[gone]), holes)
    return panel(labels, truth, holes, results), results


def missing_cells(seed: int, share: float = 0.2) -> tuple[Panel, Results]:
    """Three tables with cells missing: the mean of their errors in standard deviations."""
    contenders = [*IMPUTERS, TREES]
    results = []
    for table in (load_iris().data, load_wine().data, load_diabetes().data):
        truth = (table - table.mean(axis=0)) / table.std(axis=0)
        gone = np.random.default_rng([seed, 3]).random(truth.shape) < share
        results.append(
            compare(
                contenders,
                lambda Z, truth=truth, gone=gone: float(np.sqrt(np.mean((Z - truth)[gone] ** 2))),
                np.where(gone, np.nan, truth),
            )
        )
    return [], averaged(results)


# --- novelties: fit to one digit, find the others -----------------------------------------------


def detect(detector: Callable[..., Any], **settings: Any) -> Method:
    return lambda train, test: detector(**settings).fit(train).predict(test) == -1


DETECTORS = [
    Contender("before", "no alarm", [lambda _, test: np.zeros(len(test), bool)]),
    Contender("untuned", "IsolationForest", [detect(IsolationForest, random_state=0)]),
    Contender("untuned", "LocalOutlierFactor", [detect(LocalOutlierFactor, novelty=True)]),
    Contender("untuned", "OneClassSVM", [detect(OneClassSVM)]),
    Contender(
        "tuned",
        "LocalOutlierFactor",
        [
            detect(LocalOutlierFactor, novelty=True, n_neighbors=k, contamination=share)
            for k in (5, 10, 20)
            for share in (0.01, 0.03, 0.1)
        ],
    ),
    Contender(
        "tuned",
        "OneClassSVM",
        [
            detect(OneClassSVM, gamma=gamma, nu=nu)
            for gamma in (0.02, 0.05, 0.1, 0.2)
            for nu in (0.01, 0.03, 0.1)
        ],
    ),
    Contender("mercer", "KernelNovelty", [detect(mc.KernelNovelty)]),
]


def novelties(seed: int, outliers: int = 300) -> tuple[Panel, Results]:
    """Each digit in turn: the mean share of false alarms and of strangers that were not found."""
    images, labels = digits(seed)
    results = []
    for digit in range(10):
        own, others = images[labels == digit], images[labels != digit][:outliers]
        n = int(0.7 * len(own))
        strange = np.arange(len(own) - n + len(others)) >= len(own) - n
        results.append(
            compare(
                DETECTORS,
                lambda alarm, s=strange: 50.0 * float(alarm[~s].mean() + (~alarm[s]).mean()),
                own[:n], np.vstack([own[n:], others]),
            )
        )  # fmt: skip
    return [], averaged(results)


# --- what is shown ------------------------------------------------------------------------------


WIDTHS = ("<40", ">9", ">17", "<25", "<26")
HEADER = (
    (
        "smaller is better",
        "baseline",
        "mercer  ",
        "best of scikit-learn",
        "best of scikit-learn",
    ),
    ("", "", "untuned  ", "untuned", "tuned on the truth"),
)


def line(cells: Iterable[str]) -> str:
    """A line of the table: text to the left, numbers to the right."""
    return "".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def row(title: str, runs: list[Results], decimals: int) -> str:
    """Of each group the contender with the smallest mean error."""
    mean = {c: float(np.mean([run[c].error for run in runs])) for c in runs[0]}
    best = {
        group: min((c for c in mean if c.group == group), key=mean.__getitem__)
        for group in ("before", "mercer", "untuned", "tuned")
    }
    ours = [run[best["mercer"]].error for run in runs]
    spread = np.std(ours) / np.sqrt(max(1, len(runs) - 1))
    said = {group: f"{mean[c]:.{decimals}f}" for group, c in best.items()}
    return line([
        title, said["before"], f"{said['mercer']} ± {spread:.{decimals}f}  ",
        *(f"{said[group]} {best[group].name}" for group in ("untuned", "tuned")),
    ])  # fmt: skip


def certified(seed: int = 0) -> str:
    """Bring the mean feature of each digit back to an image, and say what is proved."""
    images, labels = digits(seed)
    kernel = mc.Gaussian(0.5 * mc.median_scale(images))
    means = [mc.mean_embedding(kernel, images[labels == digit]) for digit in range(10)]
    found = [mc.preimage(mean).certificate for mean in means]
    proved = [c for c in found if c.verdict[0].name == "PROVED_MINIMUM"]
    radius = max((float(c.radius[0]) for c in proved), default=np.nan)
    return (
        f"The mean feature of each digit, brought back to an image: {len(proved)} of {len(found)} "
        f"pre-images are\nproved to be minima, at most {radius:.0e} from the exact one."
    )


def contact_sheet(panels: dict[str, Panel], output: Path) -> None:
    """Panels side by side; a line of images for each row, ours in blue."""
    side, left, right, top = 0.55, 1.85, 0.5, 0.4  # inches
    wide, high = left + len(SHOWN) * side + right, max(len(rows) for rows in panels.values())
    size = np.array([len(panels) * wide, top + high * side + 0.1])
    fig = plt.figure(figsize=tuple(size), facecolor="white")
    for p, (title, rows) in enumerate(panels.items()):
        middle = p * wide + left + 0.5 * len(SHOWN) * side
        fig.text(*((middle, size[1] - 0.3) / size), title, ha="center", size=13, weight="bold")
        for r, (group, name, images, error) in enumerate(rows):
            x, y = p * wide + left, size[1] - top - (r + 1) * side
            whose = {"": "", "mercer": "mercer\n"}.get(group, "scikit-learn\n")
            colour = "#0072B2" if group == "mercer" else "black"
            style = {"va": "center", "color": colour, "size": 9.5}
            text = whose + name.replace(", mercer", ", untuned")
            fig.text(*((x - 0.12, y + 0.46 * side) / size), text, ha="right", **style)
            fig.text(*((x + len(SHOWN) * side + 0.04, y + 0.46 * side) / size), error, **style)
            for c, image in enumerate(images):
                corner, extent = (x + c * side, y) / size, 0.93 * side / size
                ax = fig.add_axes((*corner, *extent), facecolor="#f3c9a5")  # missing pixels
                smooth = "nearest" if name == "given" else "bicubic"
                ax.imshow(image.reshape(8, 8), "gray_r", vmin=0.0, vmax=1.0, interpolation=smooth)
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set(color=colour if group == "mercer" else "0.8")
    output.parent.mkdir(exist_ok=True)
    fig.savefig(output, dpi=130)
    plt.close(fig)


TASKS = {
    "denoise digits, sd 0.25 (error x 1e4)": (partial(denoising, 0.25), 0),
    "denoise digits, sd 0.5 (error x 1e4)": (partial(denoising, 0.5), 0),
    "fill digits, half missing (error x 1e4)": (missing_pixels, 0),
    "fill tables, a fifth missing (in sd)": (missing_cells, 3),
    "find foreign digits (% misjudged)": (novelties, 1),
}


def main() -> None:
    print(f"{__doc__.splitlines()[0]}\n\n{line(HEADER[0])}\n{line(HEADER[1])}", flush=True)
    panels = []
    # matrices are small: threads of BLAS would only wait for each other
    with threadpoolctl.threadpool_limits(1, "blas"):
        for title, (task, decimals) in TASKS.items():
            runs = [task(seed) for seed in range(SEEDS)]
            panels.append(runs[0][0])
            print(row(title, [results for _, results in runs], decimals), flush=True)
        print(
            f"\nErrors of digits are squared; means over {SEEDS} draws, ± standard error."
            "\nBaseline: noisy digits, column means, no alarm. Tuned: the setting with the smallest"
            "\nerror in this table, so scikit-learn knows the truth here, and mercer does not."
        )
        print(f"\n{certified()}")
    contact_sheet({"Noise, sd 0.25": panels[0], "Half of the pixels missing": panels[2]}, OUTPUT)
    print(f"Picture: {OUTPUT}")


if __name__ == "__main__":
    main()
